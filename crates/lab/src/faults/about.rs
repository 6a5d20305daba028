//! What every fault says of itself: its names, where it can be put, and with that what a verdict has to say about it.
//!
//! In: one line for each fault. Out: its places in a lab, and the truth at a place. It breaks nothing.

use linerate_model::finding::{Direction, Element};

use super::{Place, Truth};
use crate::topology::Topology;

/// What a fault is.
#[derive(Debug)]
pub struct About {
    /// Name to type.
    pub name: &'static str,
    /// Id of the knowledge file that must be named.
    pub cause: &'static str,
    /// What it does, one line.
    pub summary: &'static str,
    /// Directions that a verdict may name; an empty list accepts each.
    pub directions: &'static [Direction],
    /// Whether nothing inside the cluster can remedy it, so that the people of the network have to.
    pub outside_the_hosts: bool,
    /// Whether a user namespace is not enough.
    pub needs_root: bool,
    seat: Seat,
    /// Whether only other pairs can tell that something is wrong.
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

impl About {
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

    /// The same, where nothing inside the cluster can remedy it.
    pub(super) const fn in_the_network(mut self) -> Self {
        self.outside_the_hosts = true;
        self
    }

    /// The same, where a user namespace is not enough.
    pub(super) const fn root_only(mut self) -> Self {
        self.needs_root = true;
        self
    }

    /// The same, where two hosts alone show nothing that could not be right: a path is longer only beside others.
    pub(super) const fn beside_others(mut self) -> Self {
        self.needs_others = true;
        self
    }

    /// Where it can be put.
    pub fn places(&self, topology: &Topology) -> Vec<Place> {
        if self.needs_others && topology.hosts().len() < 3 {
            return Vec::new();
        }
        let hosts = || topology.hosts().into_iter().map(|h| h.name);
        let hypervisors = || topology.hypervisors.iter().map(|h| h.name.clone());
        match self.seat {
            Seat::Host => hosts().map(Place::Host).collect(),
            Seat::Hypervisor => hypervisors().map(Place::Hypervisor).collect(),
            Seat::Pair => {
                let names: Vec<String> = hosts().collect();
                let later =
                    names.iter().enumerate().flat_map(|(n, a)| names[n + 1..].iter().map(move |b| (a, b)));
                later.map(|(a, b)| Place::Pair(a.clone(), b.clone())).collect()
            }
            Seat::Between => {
                let from = hypervisors().flat_map(|a| hypervisors().map(move |b| (a.clone(), b)));
                from.filter(|(a, b)| a != b).map(|(a, b)| Place::Between(a, b)).collect()
            }
            Seat::Everywhere => vec![Place::Everywhere],
        }
    }

    /// What a verdict has to say when it is put there. Two names mean the same where a group has one host.
    pub fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        let alone = |group: &str| {
            let group = topology.hypervisors.iter().find(|h| h.name == group)?;
            if let [host] = &group.hosts[..] { Some(host.clone()) } else { None }
        };
        let elements = match place {
            Place::Host(name) => {
                let group = topology.hypervisors.iter().find(|h| h.hosts == [name.clone()]);
                let group = group.map(|h| Element::Group(h.name.clone()));
                [Some(Element::Host(name.clone())), group]
            }
            Place::Hypervisor(name) => [Some(Element::Group(name.clone())), alone(name).map(Element::Host)],
            Place::Pair(a, b) => [Some(Element::Pair(a.clone(), b.clone())), None],
            Place::Between(from, to) => {
                let pair = alone(from).zip(alone(to)).map(|(a, b)| Element::Pair(a, b));
                [Some(Element::GroupToGroup(from.clone(), to.clone())), pair]
            }
            Place::Everywhere => [Some(Element::All), None],
        };
        let accepted = elements.into_iter().flatten().map(|e| (e, self.directions.to_vec())).collect();
        Truth { cause: self.cause.into(), accepted }
    }
}
