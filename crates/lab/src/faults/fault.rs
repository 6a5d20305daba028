//! What a fault is: its names, its targets, what it breaks, and the correct verdict.
//!
//! In: one line for each fault. Out: its targets in a lab, and the truth at a target. It knows no fault by
//! name.

use linerate_model::finding::{Direction, Suspect};

use crate::damage::Damage;
use crate::error::{LabError, Result};
use crate::topology::Topology;

/// A fault that can be injected and healed while the cluster runs.
pub trait Fault: Sync {
    /// Its names, targets and truth.
    fn about(&self) -> &FaultInfo;

    /// Why this machine cannot show the fault, if it cannot.
    fn unavailable(&self) -> Option<String> {
        None
    }

    /// Injects the fault. `strength` from 0 to 1 chooses within the range in which it is detectable.
    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()>;

    /// The correct verdict.
    fn truth(&self, topology: &Topology, target: &FaultTarget) -> Truth {
        self.about().truth(topology, target)
    }
}

/// What a fault is.
#[derive(Debug)]
pub struct FaultInfo {
    /// Name on the command line.
    pub name: &'static str,
    /// Id of the knowledge file that must be named.
    pub cause: &'static str,
    /// What it does, one line.
    pub summary: &'static str,
    /// Directions that a verdict may name; an empty list accepts each.
    pub directions: &'static [Direction],
    /// Whether the remedy lies outside the cluster, with the network team.
    pub outside_the_hosts: bool,
    /// Whether it needs real root: a user namespace is not enough.
    pub needs_root: bool,
    seat: Seat,
    /// Whether it shows only in comparison with other pairs.
    needs_others: bool,
}

#[derive(Debug, Clone, Copy)]
enum Seat {
    Host,
    Hypervisor,
    Pair,
    Between,
    Everywhere,
}

impl FaultInfo {
    const fn at(
        seat: Seat,
        name: &'static str,
        cause: &'static str,
        summary: &'static str,
        directions: &'static [Direction],
    ) -> Self {
        Self {
            name,
            cause,
            summary,
            directions,
            outside_the_hosts: false,
            needs_root: false,
            seat,
            needs_others: false,
        }
    }

    /// A fault of one host.
    pub(super) const fn host(
        name: &'static str,
        cause: &'static str,
        summary: &'static str,
        directions: &'static [Direction],
    ) -> Self {
        Self::at(Seat::Host, name, cause, summary, directions)
    }

    /// A fault of everything on a hypervisor.
    pub(super) const fn hypervisor(
        name: &'static str,
        cause: &'static str,
        summary: &'static str,
        directions: &'static [Direction],
    ) -> Self {
        Self::at(Seat::Hypervisor, name, cause, summary, directions)
    }

    /// A fault between two hosts.
    pub(super) const fn pair(name: &'static str, cause: &'static str, summary: &'static str) -> Self {
        Self::at(Seat::Pair, name, cause, summary, &[])
    }

    /// A fault of the path from one hypervisor to another one.
    pub(super) const fn between(name: &'static str, cause: &'static str, summary: &'static str) -> Self {
        Self::at(Seat::Between, name, cause, summary, &[])
    }

    /// A fault of every host.
    pub(super) const fn everywhere(name: &'static str, cause: &'static str, summary: &'static str) -> Self {
        Self::at(Seat::Everywhere, name, cause, summary, &[])
    }

    /// The same, with the remedy outside the cluster.
    pub(super) const fn in_the_network(mut self) -> Self {
        self.outside_the_hosts = true;
        self
    }

    /// The same, with real root required.
    pub(super) const fn root_only(mut self) -> Self {
        self.needs_root = true;
        self
    }

    /// The same, detectable only with three hosts or more: a path is long only compared with others.
    pub(super) const fn beside_others(mut self) -> Self {
        self.needs_others = true;
        self
    }

    /// Possible targets.
    pub fn targets(&self, topology: &Topology) -> Vec<FaultTarget> {
        if self.needs_others && topology.hosts().len() < 3 {
            return Vec::new();
        }
        let hosts = || topology.hosts().into_iter().map(|h| h.name);
        let hypervisors = || topology.hypervisors.iter().map(|h| h.name.clone());
        match self.seat {
            Seat::Host => hosts().map(FaultTarget::Host).collect(),
            Seat::Hypervisor => hypervisors().map(FaultTarget::Hypervisor).collect(),
            Seat::Pair => {
                let names: Vec<String> = hosts().collect();
                let later =
                    names.iter().enumerate().flat_map(|(n, a)| names[n + 1..].iter().map(move |b| (a, b)));
                later.map(|(a, b)| FaultTarget::Pair(a.clone(), b.clone())).collect()
            }
            Seat::Between => {
                let from = hypervisors().flat_map(|a| hypervisors().map(move |b| (a.clone(), b)));
                from.filter(|(a, b)| a != b).map(|(a, b)| FaultTarget::Between(a, b)).collect()
            }
            Seat::Everywhere => vec![FaultTarget::Everywhere],
        }
    }

    /// The correct verdict for this target. In a group with one host two names mean the same.
    pub fn truth(&self, topology: &Topology, target: &FaultTarget) -> Truth {
        let alone = |group: &str| {
            let group = topology.hypervisors.iter().find(|h| h.name == group)?;
            if let [host] = &group.hosts[..] { Some(host.clone()) } else { None }
        };
        let suspects = match target {
            FaultTarget::Host(name) => {
                let group = topology.hypervisors.iter().find(|h| h.hosts == [name.clone()]);
                let group = group.map(|h| Suspect::Group(h.name.clone()));
                [Some(Suspect::Host(name.clone())), group]
            }
            FaultTarget::Hypervisor(name) => {
                [Some(Suspect::Group(name.clone())), alone(name).map(Suspect::Host)]
            }
            FaultTarget::Pair(a, b) => [Some(Suspect::Pair(a.clone(), b.clone())), None],
            FaultTarget::Between(from, to) => {
                let pair = alone(from).zip(alone(to)).map(|(a, b)| Suspect::Pair(a, b));
                [Some(Suspect::GroupToGroup(from.clone(), to.clone())), pair]
            }
            FaultTarget::Everywhere => [Some(Suspect::All), None],
        };
        let accepted = suspects.into_iter().flatten().map(|e| (e, self.directions.to_vec())).collect();
        Truth { cause: self.cause.into(), accepted }
    }
}

/// Target of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultTarget {
    /// A host.
    Host(String),
    /// A hypervisor and so all its hosts.
    Hypervisor(String),
    /// The path between two hosts.
    Pair(String, String),
    /// The path from one hypervisor to another one.
    Between(String, String),
    /// Every host.
    Everywhere,
}

impl std::fmt::Display for FaultTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host(name) | Self::Hypervisor(name) => f.write_str(name),
            Self::Pair(a, b) | Self::Between(a, b) => write!(f, "{a}:{b}"),
            Self::Everywhere => f.write_str("everywhere"),
        }
    }
}

impl FaultTarget {
    /// The host, for faults of hosts only.
    pub fn host(&self) -> Result<&str> {
        if let Self::Host(name) = self { Ok(name) } else { Err(self.unfit("a host")) }
    }

    /// The hypervisor, for faults of hypervisors only.
    pub fn hypervisor(&self) -> Result<&str> {
        if let Self::Hypervisor(name) = self { Ok(name) } else { Err(self.unfit("a hypervisor")) }
    }

    /// Both hosts, for faults between two.
    pub fn pair(&self) -> Result<(&str, &str)> {
        if let Self::Pair(a, b) = self { Ok((a, b)) } else { Err(self.unfit("a pair of hosts such as a:b")) }
    }

    pub(super) fn unfit(&self, wanted: &str) -> LabError {
        LabError::Unknown(format!("target {self}: {wanted} required"))
    }
}

/// The correct verdict about a fault.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Truth {
    /// Cause id.
    pub cause: String,
    /// Suspects with the directions that are right; an empty list of directions accepts each. More than one
    /// suspect where several names mean the same thing, such as a group with one host.
    pub accepted: Vec<(Suspect, Vec<Direction>)>,
}

impl Truth {
    /// At one suspect in one direction; in any for [`Direction::Both`].
    pub fn at(suspect: Suspect, direction: Direction, cause: &str) -> Self {
        let directions = if direction == Direction::Both { Vec::new() } else { vec![direction] };
        Self { cause: cause.into(), accepted: vec![(suspect, directions)] }
    }

    /// Whether a verdict names the right suspect in a right direction. A fact in which one host differs from
    /// all others is a fault of that host.
    pub fn accepts(&self, suspect: &Suspect, direction: Direction) -> bool {
        let same = |accepted: &Suspect| match (accepted, suspect) {
            (Suspect::Host(host), Suspect::Mismatch(_, minority)) => minority == std::slice::from_ref(host),
            (Suspect::Pair(a, b), Suspect::Pair(c, d)) => (a, b) == (c, d) || (a, b) == (d, c),
            (a, b) => a == b,
        };
        self.accepted.iter().any(|(accepted, directions)| {
            let any = directions.is_empty() || matches!(suspect, Suspect::Mismatch(..));
            same(accepted) && (any || directions.contains(&direction))
        })
    }
}
