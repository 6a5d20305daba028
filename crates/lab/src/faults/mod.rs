//! Everything that the lab can break, each with the truth about it: where, which direction, which cause.
//!
//! In: a running cluster and a target in it. Out: damage that can be undone exactly. A new fault is one file
//! (or one entry of a table of like faults) and one line in [`ALL`]. It never touches anything outside the
//! cluster.

mod between_groups;
mod bridge_filter;
mod bufferbloat;
mod congestion_control;
mod cpu_starved;
mod duplicate;
mod everywhere;
pub mod fault;
mod forgotten_shaper;
mod gso_segments;
mod host_firewall;
mod host_forwarding;
mod host_link_flap;
mod host_route;
mod host_sysctl;
mod link_speed;
mod loss;
mod machine_mtu;
mod mtu_mismatch;
mod offload;
mod other_traffic;
mod overlay_mtu;
mod packet_program;
mod path_blocked;
mod port_rate;
mod short_queue;
mod syn_options;
mod tunnel;
mod uplink;
mod uplink_flap;

use self::fault::{Fault, FaultTarget};
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
    &host_route::PolicyDetour,
    &host_route::ReversePath,
    &host_route::WrongNeighbour,
    &host_firewall::DROPS,
    &host_firewall::RATE_LIMIT,
    &host_firewall::LONG_LIST,
    &host_firewall::POLICY,
    &host_firewall::REFUSES,
    &other_traffic::OtherTraffic,
    &packet_program::XDP,
    &packet_program::FILTER,
    &host_forwarding::WrongForwarding,
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
    &syn_options::WINDOW_SCALE,
    &syn_options::SACK,
    &syn_options::SEGMENT,
    &between_groups::SlowBetweenGroups,
];

/// The fault of this name.
pub fn find(name: &str) -> Result<&'static dyn Fault> {
    ALL.iter().copied().find(|f| f.about().name == name).ok_or_else(|| {
        LabError::Unknown(format!("no fault {name:?}\nhint: `linerate-lab faults` lists them"))
    })
}

/// The target of this name among those that the fault allows.
pub fn target(fault: &dyn Fault, topology: &Topology, name: &str) -> Result<FaultTarget> {
    let targets = fault.about().targets(topology);
    let swapped = name.split_once(':').map(|(a, b)| format!("{b}:{a}"));
    let named = |wanted: &str| targets.iter().find(|p| p.to_string() == wanted).cloned();
    named(name).or_else(|| named(&swapped?)).ok_or_else(|| {
        let names: Vec<_> = targets.iter().map(FaultTarget::to_string).collect();
        LabError::Unknown(format!(
            "{} has no target {name:?}\nhint: possible targets: {}",
            fault.about().name,
            names.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use linerate_model::finding::{Direction, Suspect};

    use super::*;

    #[test]
    fn every_fault_has_a_name_and_a_truth_at_every_target_of_every_lab() {
        let names: BTreeSet<_> = ALL.iter().map(|f| f.about().name).collect();
        assert_eq!(names.len(), ALL.len());
        for fault in ALL {
            let mut labs = 0;
            for (lab, _) in crate::topology::BUILT_IN {
                let topology = Topology::load(lab).unwrap();
                let targets = fault.about().targets(&topology);
                labs += usize::from(!targets.is_empty());
                for p in targets {
                    let truth = fault.truth(&topology, &p);
                    assert!(!truth.accepted.is_empty(), "{} at {p}", fault.about().name);
                    assert_eq!(target(*fault, &topology, &p.to_string()).unwrap(), p);
                    let (suspect, directions) = &truth.accepted[0];
                    assert!(truth.accepts(suspect, directions.first().copied().unwrap_or_default()));
                }
            }
            assert!(labs > 0, "{} has no target in any lab", fault.about().name);
        }
    }

    #[test]
    fn equivalent_names_are_accepted_and_wrong_ones_are_not() {
        let topology = Topology::load("casebook-a").unwrap();
        let alone = uplink::HYPERVISOR_RX_CAP.truth(&topology, &FaultTarget::Hypervisor("vs-3".into()));
        assert!(alone.accepts(&Suspect::Host("arc-3".into()), Direction::Rx));
        assert!(!alone.accepts(&Suspect::Host("arc-3".into()), Direction::Tx));
        let many = uplink::HYPERVISOR_RX_CAP.truth(&topology, &FaultTarget::Hypervisor("vs-4".into()));
        assert!(!many.accepts(&Suspect::Host("arc-1".into()), Direction::Rx));
        let mtu = mtu_mismatch::MtuMismatch.truth(&topology, &FaultTarget::Host("arc-2".into()));
        assert!(
            mtu.accepts(&Suspect::Mismatch("nic.eth0.mtu".into(), vec!["arc-2".into()]), Direction::Both)
        );
        assert!(
            !mtu.accepts(&Suspect::Mismatch("nic.eth0.mtu".into(), vec!["arc-1".into()]), Direction::Both)
        );
    }
}
