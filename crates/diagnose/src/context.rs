//! The context in which suspects are judged: facts, cells, rows and ports of one snapshot, and the peers that
//! suspects are compared with.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use linerate_model::finding::{Direction, Suspect};

use crate::attribute::Peers;
use crate::ceilings::Ports;
use crate::evidence::{CellEvidence, Facts};
use crate::metrics::Row;

/// All that suspects are judged from.
pub(crate) struct Context<'a> {
    /// Facts.
    pub facts: Facts<'a>,
    /// Cells.
    pub cells: Vec<CellEvidence<'a>>,
    /// Rows.
    pub rows: Vec<Row>,
    /// Speeds of ports, as they seem from throughput alone.
    pub ports: Ports<'a>,
    /// Hosts that are an end of some cell, in order of their names.
    pub measured: Vec<&'a str>,
    /// Machines that are a group, in order of their names.
    pub machines: Vec<&'a str>,
    /// Peers of a suspect that is none of them: hosts, and machines.
    pub usual_peers: [Rc<Peers<'a>>; 2],
}

impl<'a> Context<'a> {
    /// What a snapshot gives.
    pub(crate) fn new(
        facts: Facts<'a>,
        cells: Vec<CellEvidence<'a>>,
        rows: Vec<Row>,
        ports: Ports<'a>,
    ) -> Self {
        let measured: HashSet<&'a str> = cells.iter().flat_map(|c| [c.from, c.to]).collect();
        let measured: BTreeSet<&'a str> = measured.into_iter().collect();
        let groups = &facts.snapshot.inventory.groups;
        let machines: BTreeSet<&'a str> = groups.iter().filter_map(|g| g.machine.as_deref()).collect();
        let (measured, machines): (Vec<&str>, Vec<&str>) =
            (measured.into_iter().collect(), machines.into_iter().collect());
        let usual_peers = [&measured, &machines]
            .map(|all| Rc::new(Peers::new(some_of(all, facts.rules.attribute.peers_max).collect())));
        Self { facts, cells, rows, ports, measured, machines, usual_peers }
    }

    /// Whether what goes from one host to another passes a suspect in a direction.
    pub(crate) fn passes(&self, suspect: &Suspect, direction: Direction, from: &str, to: &str) -> bool {
        let inside = |host: &str| match suspect {
            Suspect::Host(name) => name == host,
            Suspect::Group(group) => self.facts.members(group).iter().any(|h| h.name == host),
            _ => false,
        };
        match direction {
            Direction::Tx => inside(from),
            Direction::Rx => inside(to),
            Direction::Both => inside(from) || inside(to),
        }
    }
}

/// What most peers have is known from a few hundred of them: so many are asked, spread over all.
fn some_of<'a>(all: &[&'a str], most: usize) -> impl Iterator<Item = &'a str> {
    let count = all.len().min(most);
    (0..count).map(move |i| all[i * all.len() / count])
}
