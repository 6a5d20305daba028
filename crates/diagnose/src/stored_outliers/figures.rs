//! Figures by which hosts are compared. To add one: one line of [`FIGURES`].
//!
//! A figure is a share of what was done, so that a host is not blamed for being busy, and counts only at a
//! rate of events that matters, so that none is blamed for being idle. What only grows with the load (PSI,
//! the budget of NAPI), or is harmless by itself, is no figure.

use linerate_model::outlier::OutlierUnit::{self, Milliseconds, PerHour, Share};

/// A figure of a host or of one of its devices.
pub(super) struct Figure {
    /// What it is called.
    pub(super) words: &'static str,
    /// Key of the counter, with `*` for the device.
    pub(super) key: &'static str,
    /// What it is a part of.
    pub(super) of: Whole,
    /// Unit of the result.
    pub(super) unit: OutlierUnit,
    /// Added to both sides of a comparison: much less than this is no trouble.
    pub(super) floor: f64,
    /// The counter has to grow by so much in a second: fewer events are no trouble, whatever their share.
    pub(super) least_per_s: f64,
}

/// What a counter is divided by. The other counter has to grow by so much in a second.
pub(super) enum Whole {
    /// Another counter of the same device.
    Counter(&'static str, f64),
    /// The same, where the figure grows with the load: equals are compared at the same rate, and at a like
    /// size of requests.
    Load(&'static str, f64),
    /// A counter of the host, for one of microseconds that is the sum over its devices: milliseconds each.
    Each(&'static str, f64),
    /// Hours.
    Hours,
    /// Time, for a counter of microseconds; of several devices of a host the largest one counts.
    Time,
}

use Whole::{Counter, Each, Hours, Load, Time};

const fn figure(
    words: &'static str,
    key: &'static str,
    of: Whole,
    unit: OutlierUnit,
    floor: f64,
    least_per_s: f64,
) -> Figure {
    Figure { words, key, of, unit, floor, least_per_s }
}

const OUT: &str = "snmp.Tcp.OutSegs";
const RECEIVED: &str = "nic.*.stat.rx_packets";
const SENT: &str = "nic.*.stat.tx_packets";

/// All figures. Received packets are dropped for harmless reasons too (spanning tree each 2 s, broadcasts of
/// other VLANs), on a NIC in standby all of them: only many on a NIC with traffic count.
#[rustfmt::skip]
pub(super) const FIGURES: &[Figure] = &[
    figure("segments sent again", "snmp.Tcp.RetransSegs", Counter(OUT, 2.0), Share, 5e-4, 0.1),
    figure("timeouts of TCP", "netstat.TcpExt.TCPTimeouts", Counter(OUT, 2.0), Share, 1e-4, 0.1),
    figure("connections dropped by full queues", "netstat.TcpExt.ListenDrops", Counter("snmp.Tcp.PassiveOpens", 0.1), Share, 1e-3, 0.01),
    figure("datagrams dropped by full sockets", "snmp.Udp.RcvbufErrors", Counter("snmp.Udp.InDatagrams", 2.0), Share, 5e-4, 0.1),
    figure("damaged frames", "nic.*.stat.rx_errors", Counter(RECEIVED, 2.0), Share, 1e-5, 0.01),
    figure("received packets dropped", "nic.*.stat.rx_dropped", Counter(RECEIVED, 100.0), Share, 1e-3, 10.0),
    figure("frames that the NIC missed", "nic.*.stat.rx_fifo_errors", Counter(RECEIVED, 2.0), Share, 1e-5, 0.1),
    figure("frames that the NIC missed", "nic.*.stat.rx_missed_errors", Counter(RECEIVED, 2.0), Share, 1e-5, 0.1),
    figure("errors of sending", "nic.*.stat.tx_errors", Counter(SENT, 2.0), Share, 1e-5, 0.01),
    figure("sent packets dropped", "nic.*.stat.tx_dropped", Counter(SENT, 100.0), Share, 1e-4, 1.0),
    figure("changes of the carrier", "nic.*.stat.carrier_changes", Hours, PerHour, 0.5, 0.0),
    figure("packets dropped by a full backlog", "softnet.dropped", Counter("softnet.processed", 2.0), Share, 1e-5, 0.1),
    figure("packets dropped by the table of connections", "conntrack.drop", Hours, PerHour, 10.0, 0.01),
    figure("time of a read", "disk.*.stat.read_ms", Load("disk.*.stat.reads", 0.3), Milliseconds, 1.0, 0.0),
    figure("time of a write", "disk.*.stat.write_ms", Load("disk.*.stat.writes", 0.3), Milliseconds, 1.0, 0.0),
    figure("time in software interrupts for each packet", "cpu.*.softirq_us", Each("softnet.processed", 5000.0), Milliseconds, 0.005, 0.0),
    figure("time of a CPU that the hypervisor took", "cpu.*.steal_us", Time, Share, 0.02, 0.0),
    figure("NFS requests sent again", "nfs.rpc.repeated", Counter("nfs.rpc.calls", 2.0), Share, 1e-3, 0.1),
    figure("probes lost on the path to it", "watch.received_lost", Counter("watch.received", 0.3), Share, 1e-3, 0.003),
    figure("probes lost on the path from it", "watch.sent_lost", Counter("watch.sent", 0.3), Share, 1e-3, 0.003),
];
