//! Faults of the wire between a hypervisor and the core.

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::Damage;
use crate::error::Result;
use crate::wire::Toward;
use crate::wire::settings::Settings;

pub(super) struct UplinkFault {
    about: FaultInfo,
    change: fn(&mut Settings, f64),
}

/// A packet of full size with all that it occupies on a wire.
const FULL_PACKET_BYTES: f64 = 1538.0;

/// 25 to 50 % of the rate.
fn slower(settings: &mut Settings, strength: f64) {
    settings.rate_bps = (settings.rate_bps as f64 * (0.25 + 0.25 * strength)) as u64;
}

/// Receive rate limit of a hypervisor.
pub(super) static HYPERVISOR_RX_CAP: UplinkFault = UplinkFault {
    about: FaultInfo::hypervisor(
        "hypervisor-rx-cap",
        "uplink-rate-limited",
        "the uplink of a hypervisor is limited to 25-50 % in the receive direction",
        &[Direction::Rx],
    )
    .in_the_network(),
    change: slower,
};

/// The whole uplink is slow.
pub(super) static SLOW_UPLINK: UplinkFault = UplinkFault {
    about: FaultInfo::hypervisor(
        "slow-uplink",
        "uplink-slow",
        "the uplink of a hypervisor runs at 25-50 % of its rate in both directions",
        &[Direction::Both],
    )
    .in_the_network(),
    change: slower,
};

/// Two rates in turn.
pub(super) static CAPACITY_FLAPPING: UplinkFault = UplinkFault {
    about: FaultInfo::hypervisor(
        "capacity-flapping",
        "capacity-flapping",
        "the uplink of a hypervisor jumps between its rate and a quarter of it every 100-200 ms, receiving",
        &[Direction::Rx],
    )
    .in_the_network(),
    change: |settings, _| settings.flapping_rate_bps = settings.rate_bps / 4,
};

/// Full-size packets vanish.
pub(super) static PMTU_BLACK_HOLE: UplinkFault = UplinkFault {
    about: FaultInfo::hypervisor(
        "pmtu-black-hole",
        "pmtu-black-hole",
        "the uplink of a hypervisor silently drops packets of more than 1400 bytes, receiving",
        &[Direction::Rx],
    )
    .in_the_network(),
    change: |settings, _| settings.packet_bytes_max = 1400,
};

/// Packets overtake each other.
pub(super) static REORDERING: UplinkFault = UplinkFault {
    about: FaultInfo::hypervisor(
        "reordering",
        "packet-reordering",
        "2-4 % of the packets into a hypervisor are overtaken by later ones",
        &[Direction::Rx],
    )
    .in_the_network(),
    change: |settings, strength| settings.reorder_ppm = 20_000 + (20_000.0 * strength) as u32,
};

/// Bit errors on the wire.
pub(super) static DAMAGED_FRAMES: UplinkFault = UplinkFault {
    about: FaultInfo::hypervisor(
        "damaged-frames",
        "frames-damaged",
        "1-2 % of the packets into a hypervisor arrive with a wrong bit",
        &[Direction::Rx],
    )
    .in_the_network(),
    change: |settings, strength| settings.damage_ppm = 10_000 + (10_000.0 * strength) as u32,
};

/// Packets arrive twice.
pub(super) static DUPLICATES: UplinkFault = UplinkFault {
    about: FaultInfo::hypervisor(
        "duplicates",
        "packets-duplicated",
        "2-5 % of the packets into a hypervisor arrive twice",
        &[Direction::Rx],
    )
    .in_the_network(),
    change: |settings, strength| settings.duplicate_ppm = 20_000 + (30_000.0 * strength) as u32,
};

/// Longer path.
pub(super) static LONGER_PATH: UplinkFault = UplinkFault {
    about: FaultInfo::hypervisor(
        "longer-path",
        "path-longer",
        "everything from and to a hypervisor takes 6-10 ms longer there and back",
        &[Direction::Both],
    )
    .in_the_network()
    .beside_others(),
    change: |settings, strength| settings.delay_ns += 3_000_000 + (2_000_000.0 * strength) as u64,
};

/// Variable delay.
pub(super) static JITTER: UplinkFault = UplinkFault {
    about: FaultInfo::hypervisor(
        "jitter",
        "delay-jitters",
        "each packet from and to a hypervisor is late by a random time of up to 8-16 ms",
        &[Direction::Both],
    )
    .in_the_network(),
    change: |settings, strength| settings.jitter_ns = 8_000_000 + (8_000_000.0 * strength) as u64,
};

/// A policer: drops instead of queueing.
pub(super) static POLICED_UPLINK: UplinkFault = UplinkFault {
    about: FaultInfo::hypervisor(
        "policed-uplink",
        "rate-policed",
        "a policer drops what a hypervisor receives above 30-50 % of its uplink",
        &[Direction::Rx],
    )
    .in_the_network(),
    change: |settings, strength| {
        settings.police_bps = (settings.rate_bps as f64 * (0.3 + 0.2 * strength)) as u64;
    },
};

/// The same for the tunnel only.
pub(super) static POLICED_TUNNEL: UplinkFault = UplinkFault {
    about: FaultInfo::hypervisor(
        "tunnel-policed",
        "tunnel-policed",
        "a policer drops what a hypervisor receives of the tunnel above 30-50 % of its uplink",
        &[Direction::Rx],
    )
    .in_the_network(),
    change: |settings, strength| {
        settings.police_bps = (settings.rate_bps as f64 * (0.3 + 0.2 * strength)) as u64;
        settings.polices_tunnel_only = true;
    },
};

/// A limit that counts packets.
pub(super) static PACKET_RATE: UplinkFault = UplinkFault {
    about: FaultInfo::hypervisor(
        "packet-rate-limit",
        "packet-rate-limited",
        "the uplink of a hypervisor takes in 30-40 % of the packets that fill it, whatever their size",
        &[Direction::Rx],
    )
    .in_the_network(),
    change: |settings, strength| {
        let full = settings.rate_bps as f64 / 8.0 / FULL_PACKET_BYTES;
        settings.packets_per_s = (full * (0.3 + 0.1 * strength)) as u32;
    },
};

/// Periodic pauses.
pub(super) static PAUSES: UplinkFault = UplinkFault {
    about: FaultInfo::hypervisor(
        "pauses",
        "path-pauses",
        "twice a second nothing reaches a hypervisor for 60-120 ms, then all of it at once",
        &[Direction::Rx],
    )
    .in_the_network(),
    change: |settings, strength| settings.pause_ns = 60_000_000 + (60_000_000.0 * strength) as u64,
};

impl Fault for UplinkFault {
    fn about(&self) -> &FaultInfo {
        &self.about
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()> {
        let hypervisor = damage.cluster.topology.hypervisor(target.hypervisor()?)?;
        damage.wire(hypervisor, Toward::Hypervisor, |s| (self.change)(s, strength))?;
        if self.about.directions == [Direction::Both] {
            damage.wire(hypervisor, Toward::Core, |s| (self.change)(s, strength))?;
        }
        Ok(())
    }
}
