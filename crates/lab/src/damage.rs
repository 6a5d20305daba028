//! What was broken in a cluster, each step with its undo.
//!
//! In: steps. Out: the steps done, or everything undone when one of them failed. It never loses a step that
//! worked.

use linerate_sys::offload::OffloadSwitch;

use crate::cluster::Cluster;
use crate::error::{LabError, Result};
use crate::namespace::Namespace;
use crate::topology::HostPlan;
use crate::wire::Toward;
use crate::wire::settings::Settings;

type Undo = Box<dyn FnOnce(&Cluster) -> Result<()> + Send>;

/// Undo steps, in the order in which the damage was done.
#[derive(Default)]
pub struct Healing {
    steps: Vec<Undo>,
}

impl Healing {
    /// Undoes everything, last step first. Goes on after an error and returns the first one.
    pub fn heal(mut self, cluster: &Cluster) -> Result<()> {
        let mut result = Ok(());
        while let Some(step) = self.steps.pop() {
            let undone = step(cluster);
            result = result.and(undone);
        }
        result
    }
}

/// A machine of the cluster, by kind and index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterMachine {
    /// Index among the hosts.
    Host(usize),
    /// Index among the hypervisors.
    Hypervisor(usize),
    /// The switch between them.
    Core,
}

impl ClusterMachine {
    /// Its namespace.
    pub fn of(self, cluster: &Cluster) -> &Namespace {
        match self {
            Self::Host(n) => &cluster.hosts[n].1,
            Self::Hypervisor(n) => &cluster.hypervisors[n],
            Self::Core => &cluster.core,
        }
    }
}

/// Damage in the making.
pub struct Damage<'a> {
    /// The cluster that is being broken.
    pub cluster: &'a Cluster,
    healing: Healing,
}

impl<'a> Damage<'a> {
    /// Runs `break_it`; when it fails midway, what it did is undone.
    pub fn make(cluster: &'a Cluster, break_it: impl FnOnce(&mut Self) -> Result<()>) -> Result<Healing> {
        let mut damage = Self { cluster, healing: Healing::default() };
        match break_it(&mut damage) {
            Ok(()) => Ok(damage.healing),
            Err(error) => damage.healing.heal(cluster).and(Err(error)),
        }
    }

    /// A host by name.
    pub fn host(&self, name: &str) -> Result<(HostPlan, ClusterMachine)> {
        let found = self.cluster.hosts.iter().position(|(plan, _)| plan.name == name);
        let index = found.ok_or_else(|| LabError::Unknown(format!("no host {name:?}")))?;
        Ok((self.cluster.hosts[index].0.clone(), ClusterMachine::Host(index)))
    }

    /// A step with its undo.
    pub fn step(
        &mut self,
        forth: impl FnOnce(&Cluster) -> Result<()>,
        back: impl FnOnce(&Cluster) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        forth(self.cluster)?;
        self.healing.steps.push(Box::new(back));
        Ok(())
    }

    /// Lines for `ip` and the lines that undo them.
    pub fn ip(&mut self, machine: ClusterMachine, lines: &str, back: String) -> Result<()> {
        self.step(|c| machine.of(c).ip(lines), move |c| machine.of(c).ip(&back))
    }

    /// Lines for `tc` and the lines that undo them.
    pub fn tc(&mut self, machine: ClusterMachine, lines: &str, back: String) -> Result<()> {
        self.step(|c| machine.of(c).tc(lines), move |c| machine.of(c).tc(&back))
    }

    /// Rules for frames that the bridge of a hypervisor forwards.
    pub fn bridge_rules(&mut self, hypervisor: usize, rules: &str) -> Result<()> {
        let machine = ClusterMachine::Hypervisor(hypervisor);
        let table = format!(
            "table bridge lab {{\nchain forward {{\ntype filter hook forward priority 0; policy accept;\n{rules}\n}}\n}}\n"
        );
        self.step(|c| machine.of(c).nft(&table), move |c| machine.of(c).nft("delete table bridge lab\n"))
    }

    /// A table of rules for what a machine itself receives and sends.
    pub fn host_rules(&mut self, machine: ClusterMachine, chains: &str) -> Result<()> {
        let table = format!("table inet lab {{\n{chains}\n}}\n");
        self.step(|c| machine.of(c).nft(&table), move |c| machine.of(c).nft("delete table inet lab\n"))
    }

    /// A sysctl.
    pub fn sysctl(&mut self, machine: ClusterMachine, key: &str, value: &str) -> Result<()> {
        let old = machine.of(self.cluster).read_sysctl(key)?;
        let again = key.to_owned();
        self.step(
            |c| machine.of(c).write_sysctl(key, value),
            move |c| machine.of(c).write_sysctl(&again, &old),
        )
    }

    /// Offload switches of one device; the undo restores every feature bit.
    pub fn offload(
        &mut self,
        machine: ClusterMachine,
        device: &'static str,
        switches: &[(OffloadSwitch, bool)],
    ) -> Result<()> {
        let old = machine.of(self.cluster).features(device)?;
        self.step(|_| Ok(()), move |c| machine.of(c).restore_features(device, &old))?;
        switches
            .iter()
            .try_for_each(|(switch, on)| machine.of(self.cluster).set_offload(device, *switch, *on))
    }

    /// Settings of one direction of the wire of a hypervisor.
    pub fn wire(
        &mut self,
        hypervisor: usize,
        toward: Toward,
        change: impl FnOnce(&mut Settings),
    ) -> Result<()> {
        let shared = self.cluster.wires[hypervisor].toward(toward);
        let old = shared.get();
        shared.update(change);
        self.step(
            |_| Ok(()),
            move |c| {
                c.wires[hypervisor].toward(toward).update(|s| {
                    // Not ours: the watcher of the NIC sets them.
                    let (joins, nic_mtu) = (s.destroys_joined_overlay, s.nic_mtu);
                    *s = Settings { destroys_joined_overlay: joins, nic_mtu, ..old };
                });
                Ok(())
            },
        )
    }
}
