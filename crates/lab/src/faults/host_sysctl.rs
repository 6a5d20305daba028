//! Sysctls of one host that cost throughput. The values bite at the round trip of the labs; see
//! `docs/journal/2026-lab-parameters.md` for what each of them costs.

use linerate_model::finding::Direction;

use super::{Fault, Place, Truth};
use crate::damage::{Damage, Machine};
use crate::error::Result;
use crate::topology::Topology;

pub(super) struct HostSysctl {
    name: &'static str,
    cause: &'static str,
    summary: &'static str,
    /// Keys with their values, set in this order.
    values: &'static [(&'static str, &'static str)],
    /// Empty accepts each.
    directions: &'static [Direction],
}

/// The receive window never grows.
pub(super) static SMALL_RMEM: HostSysctl = HostSysctl {
    name: "small-rmem",
    cause: "tcp-rmem-small",
    summary: "tcp_rmem of one host ends at 24 kB",
    values: &[("net.ipv4.tcp_rmem", "4096 16384 24576")],
    directions: &[Direction::Rx],
};

/// The send buffer never grows.
pub(super) static SMALL_WMEM: HostSysctl = HostSysctl {
    name: "small-wmem",
    cause: "tcp-wmem-small",
    summary: "tcp_wmem of one host ends at 16 kB",
    values: &[("net.ipv4.tcp_wmem", "4096 16384 16384")],
    directions: &[Direction::Tx],
};

/// No window above 64 kB in either direction, since both ends have to offer the option.
pub(super) static WINDOW_SCALING_OFF: HostSysctl = HostSysctl {
    name: "window-scaling-off",
    cause: "tcp-window-scaling-off",
    summary: "one host does not offer window scaling",
    values: &[("net.ipv4.tcp_window_scaling", "0")],
    directions: &[Direction::Both],
};

/// The receive buffer stays at its default.
pub(super) static RCVBUF_AUTOTUNING_OFF: HostSysctl = HostSysctl {
    name: "rcvbuf-autotuning-off",
    cause: "tcp-rcvbuf-autotuning-off",
    summary: "one host does not grow its receive buffers",
    values: &[("net.ipv4.tcp_moderate_rcvbuf", "0")],
    directions: &[Direction::Rx],
};

impl HostSysctl {
    /// Sets the values on one host.
    pub(super) fn set(&self, damage: &mut Damage<'_>, machine: Machine) -> Result<()> {
        self.values.iter().try_for_each(|(key, value)| damage.sysctl(machine, key, value))
    }
}

/// Every loss is repaired packet by packet, in both directions, since both ends have to offer the option.
pub(super) static SACK_OFF: HostSysctl = HostSysctl {
    name: "sack-off",
    cause: "tcp-sack-off",
    summary: "one host does not offer selective acknowledgements",
    values: &[("net.ipv4.tcp_sack", "0")],
    directions: &[],
};

impl Fault for HostSysctl {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cause(&self) -> &'static str {
        self.cause
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_hosts(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, _strength: f64) -> Result<()> {
        let (_, machine) = damage.host(place.host()?)?;
        self.set(damage, machine)
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::host(self, topology, place, self.directions)
    }
}
