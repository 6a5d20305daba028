//! Everything that the lab can break, each with the truth about it: where, which direction, which cause.
//!
//! In: a running cluster and a place in it. Out: damage that can be undone exactly. A new fault is one file (or one entry
//! of a table of like faults) and one line in [`ALL`]. It never touches anything outside the cluster.

mod about;
mod between_groups;
mod bridge_filter;
mod bufferbloat;
mod congestion_control;
mod cpu_starved;
mod duplicate;
mod everywhere;
mod forgotten_shaper;
mod gso_segments;
mod host_firewall;
mod host_link_flap;
mod host_route;
mod host_sysctl;
mod link_speed;
mod loss;
mod machine_mtu;
mod mtu_mismatch;
mod offload;
mod overlay_mtu;
mod path_blocked;
mod port_rate;
mod short_queue;
mod tunnel;
mod uplink;
mod uplink_flap;

pub use about::About;
use linerate_model::finding::{Direction, Element};

use crate::damage::Damage;
use crate::error::{LabError, Result};
use crate::topology::Topology;

/// All faults.
pub static ALL: &[&dyn Fault] = &[
    &port_rate::RX,
    &port_rate::TX,
    &forgotten_shaper::ForgottenShaper,
    &loss::RX,
    &loss::TX,
    &mtu_mismatch::MtuMismatch,
    &uplink::PMTU_BLACK_HOLE,
    &overlay_mtu::OverlayMtuTooLarge,
    &host_sysctl::SMALL_RMEM,
    &host_sysctl::SMALL_WMEM,
    &host_sysctl::WINDOW_SCALING_OFF,
    &host_sysctl::RCVBUF_AUTOTUNING_OFF,
    &congestion_control::WrongCongestionControl,
    &offload::GRO_OVERLAY,
    &offload::OVERLAY_OFFLOAD_OFF,
    &offload::TSO_OFF,
    &uplink::HYPERVISOR_RX_CAP,
    &uplink::SLOW_UPLINK,
    &uplink::CAPACITY_FLAPPING,
    &cpu_starved::CpuStarved,
    &bufferbloat::Bufferbloat,
    &uplink::REORDERING,
    &path_blocked::PathBlocked,
    &everywhere::SMALL_RMEM,
    &everywhere::SMALL_WMEM,
    &host_sysctl::SACK_OFF,
    &offload::TX_CHECKSUM_OFF,
    &offload::SCATTER_GATHER_OFF,
    &gso_segments::GsoSegments,
    &host_route::WINDOW,
    &host_route::SMALL_MTU,
    &host_route::Refused,
    &host_route::Detour,
    &host_route::ReversePath,
    &host_route::WrongNeighbour,
    &host_firewall::DROPS,
    &host_firewall::RATE_LIMIT,
    &host_firewall::LONG_LIST,
    &bridge_filter::BridgeFilter,
    &host_link_flap::HostLinkFlap,
    &duplicate::DuplicateAddress,
    &duplicate::ClonedMac,
    &uplink::DAMAGED_FRAMES,
    &uplink::DUPLICATES,
    &uplink::LONGER_PATH,
    &uplink::JITTER,
    &uplink::POLICED_UPLINK,
    &uplink::PACKET_RATE,
    &uplink::PAUSES,
    &link_speed::LinkSpeedLow,
    &uplink_flap::UplinkFlapping,
    &machine_mtu::MachineMtuLow,
    &short_queue::ShortQueue,
    &tunnel::LOSS,
    &uplink::POLICED_TUNNEL,
    &tunnel::FILTERED,
    &between_groups::SlowBetweenGroups,
];

/// Something that can be broken and healed while the cluster runs.
pub trait Fault: Sync {
    /// Its names, where it can be put and what is true then.
    fn about(&self) -> &About;

    /// Why this machine cannot show the fault, if it cannot.
    fn unavailable(&self) -> Option<String> {
        None
    }

    /// Breaks. `strength` from 0 to 1 chooses within the range in which the fault is plain to see.
    fn inject(&self, damage: &mut Damage<'_>, place: &Place, strength: f64) -> Result<()>;

    /// What a verdict has to say.
    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        self.about().truth(topology, place)
    }
}

/// The fault of this name.
pub fn find(name: &str) -> Result<&'static dyn Fault> {
    ALL.iter().copied().find(|f| f.about().name == name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|f| f.about().name).collect();
        LabError::Unknown(format!("no fault {name:?}\nhint: there are {}", names.join(", ")))
    })
}

/// Where a fault is put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
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

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host(name) | Self::Hypervisor(name) => f.write_str(name),
            Self::Pair(a, b) | Self::Between(a, b) => write!(f, "{a}:{b}"),
            Self::Everywhere => f.write_str("everywhere"),
        }
    }
}

impl Place {
    /// The host of a fault that is put on hosts only.
    pub fn host(&self) -> Result<&str> {
        if let Self::Host(name) = self { Ok(name) } else { Err(self.unfit("a host")) }
    }

    /// The hypervisor of a fault that is put on hypervisors only.
    pub fn hypervisor(&self) -> Result<&str> {
        if let Self::Hypervisor(name) = self { Ok(name) } else { Err(self.unfit("a hypervisor")) }
    }

    /// Both hosts of a fault that is put between two.
    pub fn pair(&self) -> Result<(&str, &str)> {
        if let Self::Pair(a, b) = self { Ok((a, b)) } else { Err(self.unfit("a pair of hosts such as a:b")) }
    }

    fn unfit(&self, wanted: &str) -> LabError {
        LabError::Unknown(format!("place {self}: {wanted} wanted"))
    }
}

/// The place of this name among those that the fault allows.
pub fn place(fault: &dyn Fault, topology: &Topology, name: &str) -> Result<Place> {
    let places = fault.about().places(topology);
    let swapped = name.split_once(':').map(|(a, b)| format!("{b}:{a}"));
    let named = |wanted: &str| places.iter().find(|p| p.to_string() == wanted).cloned();
    named(name).or_else(|| named(&swapped?)).ok_or_else(|| {
        let names: Vec<_> = places.iter().map(Place::to_string).collect();
        LabError::Unknown(format!(
            "{} cannot be put at {name:?}\nhint: it goes to {}",
            fault.about().name,
            names.join(", ")
        ))
    })
}

/// What a verdict has to say about a fault.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Truth {
    /// Cause id.
    pub cause: String,
    /// Elements with the directions that are right; an empty list of directions accepts each. More than one element
    /// where several names mean the same thing, such as a group with one host.
    pub accepted: Vec<(Element, Vec<Direction>)>,
}

impl Truth {
    /// At one element in one direction; in any for [`Direction::Both`].
    pub fn at(element: Element, direction: Direction, cause: &str) -> Self {
        let directions = if direction == Direction::Both { Vec::new() } else { vec![direction] };
        Self { cause: cause.into(), accepted: vec![(element, directions)] }
    }

    /// Whether a verdict names the right element in a right direction. A fact in which one host differs from all others
    /// is a fault of that host.
    pub fn accepts(&self, element: &Element, direction: Direction) -> bool {
        let same = |accepted: &Element| match (accepted, element) {
            (Element::Host(host), Element::Mismatch(_, minority)) => minority == std::slice::from_ref(host),
            (Element::Pair(a, b), Element::Pair(c, d)) => (a, b) == (c, d) || (a, b) == (d, c),
            (a, b) => a == b,
        };
        self.accepted.iter().any(|(accepted, directions)| {
            let any = directions.is_empty() || matches!(element, Element::Mismatch(..));
            same(accepted) && (any || directions.contains(&direction))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_fault_has_a_name_and_a_truth_at_every_place_of_every_lab() {
        let names: BTreeSet<_> = ALL.iter().map(|f| f.about().name).collect();
        assert_eq!(names.len(), ALL.len());
        for fault in ALL {
            let mut labs = 0;
            for (lab, _) in crate::topology::BUILT_IN {
                let topology = Topology::load(lab).unwrap();
                let places = fault.about().places(&topology);
                labs += usize::from(!places.is_empty());
                for p in places {
                    let truth = fault.truth(&topology, &p);
                    assert!(!truth.accepted.is_empty(), "{} at {p}", fault.about().name);
                    assert_eq!(place(*fault, &topology, &p.to_string()).unwrap(), p);
                    let (element, directions) = &truth.accepted[0];
                    assert!(truth.accepts(element, directions.first().copied().unwrap_or_default()));
                }
            }
            assert!(labs > 0, "{} has no place in any lab", fault.about().name);
        }
    }

    #[test]
    fn equivalent_names_are_accepted_and_wrong_ones_are_not() {
        let topology = Topology::load("casebook-a").unwrap();
        let alone = uplink::HYPERVISOR_RX_CAP.truth(&topology, &Place::Hypervisor("vs-3".into()));
        assert!(alone.accepts(&Element::Host("arc-3".into()), Direction::Rx));
        assert!(!alone.accepts(&Element::Host("arc-3".into()), Direction::Tx));
        let many = uplink::HYPERVISOR_RX_CAP.truth(&topology, &Place::Hypervisor("vs-4".into()));
        assert!(!many.accepts(&Element::Host("arc-1".into()), Direction::Rx));
        let mtu = mtu_mismatch::MtuMismatch.truth(&topology, &Place::Host("arc-2".into()));
        assert!(
            mtu.accepts(&Element::Mismatch("nic.eth0.mtu".into(), vec!["arc-2".into()]), Direction::Both)
        );
        assert!(
            !mtu.accepts(&Element::Mismatch("nic.eth0.mtu".into(), vec!["arc-1".into()]), Direction::Both)
        );
    }
}
