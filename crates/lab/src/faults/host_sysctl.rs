//! Sysctls of one host that cost throughput. The values matter at the RTT of the labs; `docs/dev/lab.md`
//! lists the cost of each.

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::{ClusterMachine, Damage};
use crate::error::Result;

pub(super) struct HostSysctl {
    pub(super) about: FaultInfo,
    /// Keys with their values, set in this order.
    values: &'static [(&'static str, &'static str)],
}

/// The receive window never grows.
pub(super) static SMALL_RMEM: HostSysctl = HostSysctl {
    about: FaultInfo::host(
        "small-rmem",
        "tcp-rmem-small",
        "tcp_rmem of one host ends at 24 kB",
        &[Direction::Rx],
    ),
    values: &[("net.ipv4.tcp_rmem", "4096 16384 24576")],
};

/// The send buffer never grows.
pub(super) static SMALL_WMEM: HostSysctl = HostSysctl {
    about: FaultInfo::host(
        "small-wmem",
        "tcp-wmem-small",
        "tcp_wmem of one host ends at 16 kB",
        &[Direction::Tx],
    ),
    values: &[("net.ipv4.tcp_wmem", "4096 16384 16384")],
};

/// No window above 64 kB in either direction, since both ends have to offer the option.
pub(super) static WINDOW_SCALING_OFF: HostSysctl = HostSysctl {
    about: FaultInfo::host(
        "window-scaling-off",
        "tcp-window-scaling-off",
        "one host does not offer window scaling",
        &[Direction::Both],
    ),
    values: &[("net.ipv4.tcp_window_scaling", "0")],
};

/// The receive buffer stays at its default.
pub(super) static RCVBUF_AUTOTUNING_OFF: HostSysctl = HostSysctl {
    about: FaultInfo::host(
        "rcvbuf-autotuning-off",
        "tcp-rcvbuf-autotuning-off",
        "one host does not grow its receive buffers",
        &[Direction::Rx],
    ),
    values: &[("net.ipv4.tcp_moderate_rcvbuf", "0")],
};

impl HostSysctl {
    /// Sets the values on one host.
    pub(super) fn set(&self, damage: &mut Damage<'_>, machine: ClusterMachine) -> Result<()> {
        self.values.iter().try_for_each(|(key, value)| damage.sysctl(machine, key, value))
    }
}

/// Every loss is repaired packet by packet, in both directions, since both ends have to offer the option.
pub(super) static SACK_OFF: HostSysctl = HostSysctl {
    about: FaultInfo::host(
        "sack-off",
        "tcp-sack-off",
        "one host does not offer selective acknowledgements",
        &[],
    ),
    values: &[("net.ipv4.tcp_sack", "0")],
};

impl Fault for HostSysctl {
    fn about(&self) -> &FaultInfo {
        &self.about
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let (_, machine) = damage.host(target.host()?)?;
        self.set(damage, machine)
    }
}
