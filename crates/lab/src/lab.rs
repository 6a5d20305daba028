//! A running lab: the cluster, its folder, and its faults.
//!
//! In: requests from the command line, the judge or the demo. Out: faults injected and healed. Dropping it
//! leaves nothing.

use std::fmt::Write as _;

use linerate_model::random::Random;
use linerate_sys::interrupt::Interrupt;
use linerate_sys::{sandbox, tap};

use crate::access;
use crate::access::transport::{LabAccess, LabTransport};
use crate::cluster::Cluster;
use crate::control::{ControlAnswer, LabRequest};
use crate::damage::{Damage, Healing};
use crate::error::{LabError, Result};
use crate::faults;
use crate::faults::fault::{Fault, FaultTarget, Truth};
use crate::folder::LabFolder;
use crate::grammar;
use crate::grammar::effect::{self, Strength};
use crate::grammar::fault::DrawnFault;
use crate::namespace;
use crate::topology::Topology;

/// Rights, signals and programs: what every command needs that builds a cluster. Must run before any thread
/// starts.
pub fn prepare() -> Result<Interrupt> {
    if !sandbox::is_root() {
        sandbox::become_root_of_a_new_world().map_err(|source| LabError::NoRights { source })?;
    }
    let interrupt = Interrupt::new().map_err(LabError::at("blocking the stop signals"))?;
    namespace::check_programs()?;
    tap::is_usable().map_err(|source| LabError::NoTun { source })?;
    Ok(interrupt)
}

/// Faults that are drawn until one has the wanted effect.
const DRAWS_MAX: u64 = 40;

/// A fault in a running cluster.
pub struct Injected {
    /// Which.
    pub fault: &'static dyn Fault,
    /// Where.
    pub target: FaultTarget,
    /// The correct verdict.
    pub truth: Truth,
    strength: f64,
    /// `None` while it is suspended.
    healing: Option<Healing>,
}

/// A running lab.
pub struct Lab {
    /// Access to the hosts. Its daemons end first.
    pub reached: LabAccess,
    /// The cluster. Declared before the folder: nothing may write into the folder while it is removed.
    pub cluster: Cluster,
    /// Its folder.
    pub folder: LabFolder,
    injected: Vec<Injected>,
    /// A fault that was drawn from the grammar, and how it is undone; `None` while it is suspended.
    drawn: Option<(DrawnFault, Option<Healing>)>,
    /// Benign differences.
    differences: Vec<Healing>,
}

impl Lab {
    /// Builds the cluster in a new folder. Its hosts are reached by the default transport.
    pub fn up(topology: Topology) -> Result<Self> {
        Self::up_via(topology, access::TRANSPORTS[0])
    }

    /// The same with another transport to the hosts.
    pub fn up_via(topology: Topology, transport: &dyn LabTransport) -> Result<Self> {
        let folder = LabFolder::create()?;
        let cluster = Cluster::build(topology, folder.path())?;
        let reached = transport.prepare(&cluster)?;
        Ok(Self { reached, cluster, folder, injected: Vec::new(), drawn: None, differences: Vec::new() })
    }

    /// The injected faults.
    pub fn injected(&self) -> &[Injected] {
        &self.injected
    }

    /// Injects a fault at the target `at`, or at a random one. The same seed repeats the choice.
    pub fn inject(&mut self, fault: &'static dyn Fault, at: Option<&str>, seed: u64) -> Result<&Injected> {
        if self.injected.iter().any(|i| i.fault.about().name == fault.about().name) {
            return Err(LabError::Unknown(format!(
                "{} is already injected\nhint: linerate-lab heal",
                fault.about().name
            )));
        }
        if let Some(reason) = fault.unavailable() {
            return Err(LabError::Unknown(format!("{}: {reason}", fault.about().name)));
        }
        let topology = &self.cluster.topology;
        let mut random = Random(seed);
        let target = match at {
            Some(name) => faults::target(fault, topology, name)?,
            None => random.pick(&fault.about().targets(topology)).cloned().ok_or_else(|| {
                LabError::Unknown(format!("{} has no target in this lab", fault.about().name))
            })?,
        };
        let strength = random.fraction();
        let truth = fault.truth(topology, &target);
        let healing = Damage::make(&self.cluster, |damage| fault.inject(damage, &target, strength))?;
        self.injected.push(Injected { fault, target, truth, strength, healing: Some(healing) });
        Ok(&self.injected[self.injected.len() - 1])
    }

    /// Draws faults from the grammar until one has the wanted effect, measured before and after, and leaves
    /// it in. The same seed draws the same ones.
    ///
    /// # Errors
    /// None of many has it.
    pub fn inject_drawn(&mut self, seed: u64, wanted: Strength) -> Result<&DrawnFault> {
        for attempt in 0..DRAWS_MAX {
            let seed = seed.wrapping_add(attempt.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let Some(drawn) = grammar::draw(&self.cluster, seed) else { continue };
            if wanted == Strength::None && !drawn.mechanism.may_be_harmless() {
                continue;
            }
            let before = effect::measured(&self.cluster, &drawn.ends)?;
            // A value that the kernel refuses is no fault.
            let Ok(healing) = Damage::make(&self.cluster, |damage| drawn.inject(damage)) else { continue };
            let mut after = effect::measured(&self.cluster, &drawn.ends)?;
            if wanted == Strength::Clear && effect::strength(&before, &after) == wanted {
                // A machine that was busy for a moment resembles a fault, but not twice on the same path.
                after = effect::better(&after, &effect::measured(&self.cluster, &drawn.ends)?);
            }
            if effect::strength(&before, &after) == wanted {
                return Ok(&self.drawn.insert((drawn, Some(healing))).0);
            }
            healing.heal(&self.cluster)?;
            self.cluster.forget_what_hosts_learned()?;
        }
        Err(LabError::Unknown(format!("none of {DRAWS_MAX} drawn faults has the effect {wanted:?}")))
    }

    /// Suspends all faults; [`Self::put_in_again`] restores them as they were.
    pub fn take_out(&mut self) -> Result<()> {
        let drawn = self.drawn.as_mut().and_then(|(_, healing)| healing.take());
        let mut result = drawn.map_or(Ok(()), |healing| healing.heal(&self.cluster));
        for injected in self.injected.iter_mut().rev() {
            let healed = injected.healing.take().map_or(Ok(()), |healing| healing.heal(&self.cluster));
            result = result.and(healed);
        }
        result
    }

    /// Restores suspended faults.
    pub fn put_in_again(&mut self) -> Result<()> {
        for injected in self.injected.iter_mut().filter(|i| i.healing.is_none()) {
            let (fault, target, strength) = (injected.fault, &injected.target, injected.strength);
            let healing = Damage::make(&self.cluster, |damage| fault.inject(damage, target, strength))?;
            injected.healing = Some(healing);
        }
        if let Some((drawn, healing @ None)) = &mut self.drawn {
            *healing = Some(Damage::make(&self.cluster, |damage| drawn.inject(damage))?);
        }
        Ok(())
    }

    /// Applies benign differences to hosts; undone with the faults. Returns the descriptions of `change`.
    pub fn differ(
        &mut self,
        change: impl FnOnce(&mut Damage<'_>) -> Result<Vec<String>>,
    ) -> Result<Vec<String>> {
        let mut descriptions = Vec::new();
        let healing = Damage::make(&self.cluster, |damage| {
            descriptions = change(damage)?;
            Ok(())
        })?;
        self.differences.push(healing);
        Ok(descriptions)
    }

    /// Undoes all faults, the last one first.
    pub fn heal(&mut self) -> Result<()> {
        let mut result = Ok(());
        while let Some(difference) = self.differences.pop() {
            let healed = difference.heal(&self.cluster);
            result = result.and(healed);
        }
        let healed = self.take_out();
        self.injected.clear();
        self.drawn = None;
        result = result.and(healed);
        result.and(self.cluster.forget_what_hosts_learned())
    }

    /// Answers a request from outside.
    pub fn answer(&mut self, request: &LabRequest) -> ControlAnswer {
        let result = match request {
            LabRequest::Break { fault, at, seed } => faults::find(fault)
                .and_then(|fault| self.inject(fault, at.as_deref(), *seed))
                .map(|i| format!("{} at {}: {}", i.fault.about().name, i.target, i.fault.about().summary)),
            LabRequest::Heal => self.heal().map(|()| "healed".into()),
            LabRequest::Status => Ok(self.status()),
            LabRequest::Down => Ok("going down".into()),
        };
        match result {
            Ok(text) => ControlAnswer { done: true, text },
            Err(error) => ControlAnswer { done: false, text: error.to_string() },
        }
    }

    /// The state as text.
    pub fn status(&self) -> String {
        let topology = &self.cluster.topology;
        let mut text = format!(
            "lab {} of process {}: {} hosts on {} hypervisors, uplinks {} Mbit/s\n",
            topology.name,
            std::process::id(),
            self.cluster.hosts.len(),
            topology.hypervisors.len(),
            topology.uplink.rate_mbit
        );
        for hypervisor in &topology.hypervisors {
            let _ = writeln!(text, "  {}: {}", hypervisor.name, hypervisor.hosts.join(" "));
        }
        let _ = writeln!(text, "inventory: {}", self.reached.inventory.display());
        for (variable, value) in &self.reached.environment {
            let _ = writeln!(text, "environment: {variable}={}", value.display());
        }
        for injected in &self.injected {
            let _ = writeln!(text, "broken: {} at {}", injected.fault.about().name, injected.target);
        }
        if self.injected.is_empty() {
            text.push_str("nothing is broken\n");
        }
        text
    }
}
