//! A location to explain, and whose facts count there.

use std::rc::Rc;

use linerate_knowledge::FactSide;
use linerate_model::finding::{Direction, LayerScope, Metric, Suspect};

use super::population::Peers;
use super::shape::Shape;

/// A location to explain.
#[derive(Clone)]
pub(crate) struct SuspectContext<'a> {
    /// Where.
    pub suspect: &'a Suspect,
    /// Which direction.
    pub direction: Direction,
    /// Which layers.
    pub layer: LayerScope,
    /// Responses that show it, strongest first.
    pub responses: &'a [Metric],
    /// Measured values.
    pub shape: &'a Shape,
    /// Hosts whose facts count, by side.
    pub subjects: &'a Subjects<'a>,
    /// The same suspect seen as a host when it is a group of one, or the reverse.
    pub has_alias: bool,
}

impl<'a> SuspectContext<'a> {
    /// A location with facts and without a measured loss.
    pub(crate) fn read(
        suspect: &'a Suspect,
        direction: Direction,
        layer: LayerScope,
        shape: &'a Shape,
        subjects: &'a Subjects<'a>,
    ) -> Self {
        Self { suspect, direction, layer, responses: &[Metric::Setting], shape, subjects, has_alias: false }
    }
}

/// Hosts whose facts count, by side.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subjects<'a> {
    /// The suspected hosts, or the machines of the suspected group.
    pub suspects: Vec<&'a str>,
    /// The machines under them.
    pub machines: Vec<&'a str>,
    /// Senders of the bad cells.
    pub senders: Vec<&'a str>,
    /// Receivers of the bad cells.
    pub receivers: Vec<&'a str>,
    /// Hosts with endpoints that are fine.
    pub host_peers: Rc<Peers<'a>>,
    /// Machines of groups that are fine.
    pub machine_peers: Rc<Peers<'a>>,
    /// Of two hosts one direction suffers and the other is fine: the way back is the peer that nobody else
    /// is, so that what is the same at both ends indicates nothing.
    pub way_back_is_fine: bool,
}

impl<'a> Subjects<'a> {
    /// The hosts of a side.
    pub(crate) fn side(&self, side: FactSide) -> Vec<&'a str> {
        match side {
            FactSide::Suspect => self.suspects.clone(),
            FactSide::Machine => self.machines.clone(),
            FactSide::Sender => self.senders.clone(),
            FactSide::Receiver => self.receivers.clone(),
            FactSide::Either => {
                let mut both = self.suspects.clone();
                both.extend(self.machines.iter().filter(|m| !self.suspects.contains(m)));
                both
            }
        }
    }

    /// The peers of a host: machines for a machine, else hosts.
    pub(crate) fn peers_of(&self, host: &str) -> &Peers<'a> {
        let machine = self.machines.contains(&host) || self.machine_peers.hosts().contains(&host);
        if machine { &self.machine_peers } else { &self.host_peers }
    }
}
