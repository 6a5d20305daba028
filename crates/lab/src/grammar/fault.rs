//! What a sentence of the grammar is: its damage, its truth, its kind of mechanism, and what reveals it.
//!
//! In: a topology and drawn hosts. Out: a fault with its truth. It knows no production.

use std::fmt;

use linerate_model::finding::{Direction, Suspect};
use linerate_model::random::Random;

use crate::damage::Damage;
use crate::error::Result;
use crate::faults::fault::Truth;
use crate::topology::{HostPlan, Topology};

/// What happens to packets; the topics of knowledge files are the classes of mechanisms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// Some are dropped, damaged, doubled or reordered.
    Loss,
    /// None arrives.
    Blocked,
    /// Only a rate gets through.
    Rate,
    /// They wait.
    Queue,
    /// Large ones are in trouble.
    Size,
    /// An option of TCP, a window or a buffer.
    Tcp,
    /// Work that a NIC or the kernel's offloads no longer do.
    Offload,
    /// Any setting: what it does was not known when it was drawn.
    Setting,
}

impl Mechanism {
    /// Whether it may harm nothing. Without an offload a path may be as fast, and costs CPU, which is not
    /// measured here; what drops, doubles or limits packets harms those that it selects, although the few
    /// flows that measure its effect may not be among them.
    pub fn may_be_harmless(self) -> bool {
        !matches!(self, Self::Offload | Self::Loss | Self::Blocked | Self::Rate)
    }

    /// Topics of knowledge files that name it rightly.
    pub fn areas(self) -> &'static [&'static str] {
        match self {
            Self::Loss => &["loss"],
            // What drops all large packets is a matter of sizes as well.
            Self::Blocked => &["loss", "mtu"],
            // A policer is seen by what it drops, a shaper by what waits in front of it.
            Self::Rate => &["rate", "queue"],
            Self::Queue => &["queue"],
            Self::Size => &["mtu"],
            Self::Tcp => &["tcp"],
            Self::Offload => &["offload", "cpu"],
            Self::Setting => &["tcp", "queue", "offload", "cpu", "setting"],
        }
    }
}

/// What makes the damage.
pub(super) type Make = Box<dyn Fn(&mut Damage<'_>) -> Result<()> + Send + Sync>;

/// A sentence of the grammar.
pub struct DrawnFault {
    /// In words: component, direction, packets, mechanism.
    pub summary: String,
    /// Suspects and directions that are right; no cause, for no file knows it.
    pub truth: Truth,
    /// What it does.
    pub mechanism: Mechanism,
    /// Beginnings of keys of facts that reveal it; none where no host can see it.
    pub signs: Vec<String>,
    /// Two hosts whose traffic passes the component.
    pub ends: (String, String),
    pub(super) make: Make,
}

impl fmt::Debug for DrawnFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary)
    }
}

impl DrawnFault {
    /// Applies it.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn inject(&self, damage: &mut Damage<'_>) -> Result<()> {
        (self.make)(damage)
    }
}

/// A host, and another one on another hypervisor.
pub(super) fn two_hosts(topology: &Topology, random: &mut Random) -> Option<(HostPlan, HostPlan)> {
    let hosts = topology.hosts();
    let host = random.pick(&hosts)?.clone();
    let others: Vec<HostPlan> = hosts.into_iter().filter(|h| h.hypervisor != host.hypervisor).collect();
    Some((host, random.pick(&others)?.clone()))
}

/// The truth about one host; a group with this one host means the same.
pub(super) fn at_host(topology: &Topology, host: &HostPlan, directions: &[Direction]) -> Truth {
    let mut accepted = vec![(Suspect::Host(host.name.clone()), directions.to_vec())];
    let hypervisor = &topology.hypervisors[host.hypervisor];
    if hypervisor.hosts.len() == 1 {
        accepted.push((Suspect::Group(hypervisor.name.clone()), directions.to_vec()));
    }
    Truth { cause: String::new(), accepted }
}

/// The truth about all hosts of a hypervisor.
pub(super) fn at_group(topology: &Topology, hypervisor: usize, directions: &[Direction]) -> Truth {
    let group = &topology.hypervisors[hypervisor];
    let mut accepted = vec![(Suspect::Group(group.name.clone()), directions.to_vec())];
    if let [host] = group.hosts.as_slice() {
        accepted.push((Suspect::Host(host.clone()), directions.to_vec()));
    }
    Truth { cause: String::new(), accepted }
}

/// The truth about an entry of one host for another: that host and the pair are the same.
pub(super) fn at_entry(host: &HostPlan, peer: &HostPlan) -> Truth {
    let mut truth = at_pair(host, peer);
    truth.accepted.push((Suspect::Host(host.name.clone()), Vec::new()));
    truth
}

/// The truth about what one host sends to another.
pub(super) fn at_pair(from: &HostPlan, to: &HostPlan) -> Truth {
    let suspect = Suspect::Pair(from.name.clone(), to.name.clone());
    Truth { cause: String::new(), accepted: vec![(suspect, Vec::new())] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mechanism_has_topics_of_knowledge_files() {
        use Mechanism::{Blocked, Loss, Offload, Queue, Rate, Setting, Size, Tcp};
        for mechanism in [Loss, Blocked, Rate, Queue, Size, Tcp, Offload, Setting] {
            assert!(!mechanism.areas().is_empty());
        }
    }

    #[test]
    fn a_host_alone_on_its_hypervisor_has_two_names() {
        let topology = Topology::load("three").unwrap();
        let host = topology.host("node-1").unwrap();
        assert!(
            at_host(&topology, &host, &[Direction::Rx])
                .accepts(&Suspect::Group("rack-1".into()), Direction::Rx)
        );
        assert!(at_group(&topology, 0, &[]).accepts(&Suspect::Host("node-1".into()), Direction::Tx));
        let (one, other) = two_hosts(&topology, &mut Random(5)).unwrap();
        assert_ne!(one.hypervisor, other.hypervisor);
    }
}
