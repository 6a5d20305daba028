//! Two hosts with the same address: one that was written down twice, and a virtual machine that was cloned
//! with its hardware address.

use std::fmt::Write as _;

use linerate_model::finding::Suspect;

use super::fault::{Fault, FaultInfo, FaultTarget, Truth};
use crate::damage::{ClusterMachine, Damage};
use crate::error::Result;
use crate::topology::Topology;

/// The first host of the pair has the address of the second one too.
pub(super) struct DuplicateAddress;

impl Fault for DuplicateAddress {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::pair(
            "duplicate-address",
            "duplicate-address",
            "one host has the address of another one beside its own",
        );
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let (a, b) = target.pair()?;
        let (_, machine) = damage.host(a)?;
        let address = format!("{}/32 dev eth0\n", damage.host(b)?.0.underlay());
        damage.ip(machine, &format!("address add {address}"), format!("address del {address}"))
    }

    fn truth(&self, _topology: &Topology, target: &FaultTarget) -> Truth {
        either(self, target)
    }
}

/// The second host of the pair was cloned from the first one.
pub(super) struct ClonedMac;

impl Fault for ClonedMac {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::pair(
            "cloned-mac",
            "duplicate-mac",
            "two hosts have the same hardware address, as a virtual machine and its clone",
        );
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let (a, b) = target.pair()?;
        let ((original, _), (clone, machine)) = (damage.host(a)?, damage.host(b)?);
        // A device that changes its address forgets its neighbours, those that were written down too.
        let mut known = String::new();
        for (peer, _) in damage.cluster.hosts.iter().filter(|(peer, _)| peer.number != clone.number) {
            let (address, mac) = (peer.underlay(), peer.underlay_mac());
            let _ = writeln!(known, "neigh replace {address} lladdr {mac} dev eth0 nud permanent");
        }
        let device = |mac: &str| format!("link set eth0 address {mac}\n{known}");
        damage.ip(machine, &device(&original.underlay_mac()), device(&clone.underlay_mac()))?;
        // The peers would learn the new address by themselves; here their entries are written down.
        let peers: Vec<usize> = (0..damage.cluster.hosts.len())
            .filter(|n| damage.cluster.hosts[*n].0.number != clone.number)
            .collect();
        for peer in peers {
            let entry = |mac: &str| {
                format!("neigh replace {} lladdr {mac} dev eth0 nud permanent\n", clone.underlay())
            };
            let (new, old) = (entry(&original.underlay_mac()), entry(&clone.underlay_mac()));
            damage.ip(ClusterMachine::Host(peer), &new, old)?;
        }
        Ok(())
    }

    fn truth(&self, _topology: &Topology, target: &FaultTarget) -> Truth {
        either(self, target)
    }
}

/// The pair, or either of its hosts: none of them is more at fault than the other.
fn either(fault: &dyn Fault, target: &FaultTarget) -> Truth {
    let suspects = match target {
        FaultTarget::Pair(a, b) => {
            vec![Suspect::Pair(a.clone(), b.clone()), Suspect::Host(a.clone()), Suspect::Host(b.clone())]
        }
        _ => Vec::new(),
    };
    Truth {
        cause: fault.about().cause.into(),
        accepted: suspects.into_iter().map(|suspect| (suspect, Vec::new())).collect(),
    }
}
