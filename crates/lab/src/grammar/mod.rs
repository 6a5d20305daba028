//! Faults that nobody wrote down: drawn from a grammar of what may happen to which packets, where.
//!
//! In: a topology, a seed. Out: a [`DrawnFault`] with its truth: element, direction, mechanism, and what
//! betrays it. A production is one file and one line in [`PRODUCTIONS`]; it draws one sentence of its own
//! kind. Whether a sentence takes effect is measured ([`effect`]), never assumed: one without is harmless.

pub mod effect;
mod firewall;
mod packets;
mod queues;
mod routes;
mod settings;
mod sizes;
mod wires;

use std::fmt;

use linerate_model::finding::{Direction, Suspect};
use linerate_model::random::Random;

use crate::cluster::Cluster;
use crate::damage::Damage;
use crate::error::Result;
use crate::faults::fault::Truth;
use crate::topology::{HostPlan, Topology};

/// How a sentence is drawn; `None` where this cluster has no element of the kind.
type Production = fn(&Cluster, &mut Random) -> Option<DrawnFault>;

/// All kinds of sentences, each drawn equally often.
const PRODUCTIONS: &[Production] = &[
    firewall::of_a_host,
    firewall::of_a_bridge,
    queues::of_a_host,
    queues::of_a_port,
    wires::of_an_uplink,
    sizes::of_a_device,
    routes::of_a_host,
    routes::of_the_overlay,
    settings::of_the_kernel,
    settings::of_a_nic,
];

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
type Make = Box<dyn Fn(&mut Damage<'_>) -> Result<()> + Send + Sync>;

/// A sentence of the grammar.
pub struct DrawnFault {
    /// In words: element, direction, packets, mechanism.
    pub summary: String,
    /// Suspects and directions that are right; no cause, for no file knows it.
    pub truth: Truth,
    /// What it does.
    pub mechanism: Mechanism,
    /// Beginnings of keys of facts that betray it; none where no host can see it.
    pub signs: Vec<String>,
    /// Two hosts whose traffic passes the element.
    pub ends: (String, String),
    make: Make,
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

/// Draws a sentence for a cluster; the same seed draws the same one.
pub fn draw(cluster: &Cluster, seed: u64) -> Option<DrawnFault> {
    let mut random = Random(seed);
    // The first numbers of seeds that follow each other are alike.
    random.next_u64();
    let production = random.pick(PRODUCTIONS)?;
    production(cluster, &mut random)
}

/// A host, and another one on another hypervisor.
fn two_hosts(topology: &Topology, random: &mut Random) -> Option<(HostPlan, HostPlan)> {
    let hosts = topology.hosts();
    let host = random.pick(&hosts)?.clone();
    let others: Vec<HostPlan> = hosts.into_iter().filter(|h| h.hypervisor != host.hypervisor).collect();
    Some((host, random.pick(&others)?.clone()))
}

/// The truth about one host; a group with this one host means the same.
fn at_host(topology: &Topology, host: &HostPlan, directions: &[Direction]) -> Truth {
    let mut accepted = vec![(Suspect::Host(host.name.clone()), directions.to_vec())];
    let hypervisor = &topology.hypervisors[host.hypervisor];
    if hypervisor.hosts.len() == 1 {
        accepted.push((Suspect::Group(hypervisor.name.clone()), directions.to_vec()));
    }
    Truth { cause: String::new(), accepted }
}

/// The truth about all hosts of a hypervisor.
fn at_group(topology: &Topology, hypervisor: usize, directions: &[Direction]) -> Truth {
    let group = &topology.hypervisors[hypervisor];
    let mut accepted = vec![(Suspect::Group(group.name.clone()), directions.to_vec())];
    if let [host] = group.hosts.as_slice() {
        accepted.push((Suspect::Host(host.clone()), directions.to_vec()));
    }
    Truth { cause: String::new(), accepted }
}

/// The truth about what one host sends to another.
fn at_pair(from: &HostPlan, to: &HostPlan) -> Truth {
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
