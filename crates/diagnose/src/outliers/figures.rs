//! Figures by which hosts are compared. To add one: one line of [`FIGURES`].

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
}

/// What a counter is divided by.
pub(super) enum Whole {
    /// Another counter of the same device, which has to grow by so much in an interval.
    Counter(&'static str, f64),
    /// The same, where the figure grows with the load: equals are compared at the same rate.
    Load(&'static str, f64),
    /// Hours.
    Hours,
    /// Time, for a counter of microseconds; of several devices of a host the largest one counts.
    Time,
}

use Whole::{Counter, Hours, Load, Time};

const fn figure(words: &'static str, key: &'static str, of: Whole, unit: OutlierUnit, floor: f64) -> Figure {
    Figure { words, key, of, unit, floor }
}

const OUT: &str = "snmp.Tcp.OutSegs";
const RECEIVED: &str = "nic.*.stat.rx_packets";
const SENT: &str = "nic.*.stat.tx_packets";

/// All figures. A share of packets is noise below 1000 of them.
#[rustfmt::skip]
pub(super) const FIGURES: &[Figure] = &[
    figure("segments sent again", "snmp.Tcp.RetransSegs", Counter(OUT, 1000.0), Share, 5e-4),
    figure("timeouts of TCP", "netstat.TcpExt.TCPTimeouts", Counter(OUT, 1000.0), Share, 1e-4),
    figure("connections dropped by full queues", "netstat.TcpExt.ListenDrops", Hours, PerHour, 10.0),
    figure("datagrams dropped by full sockets", "snmp.Udp.RcvbufErrors", Counter("snmp.Udp.InDatagrams", 1000.0), Share, 5e-4),
    figure("damaged frames", "nic.*.stat.rx_errors", Counter(RECEIVED, 1000.0), Share, 1e-5),
    figure("received packets dropped", "nic.*.stat.rx_dropped", Counter(RECEIVED, 1000.0), Share, 1e-4),
    figure("frames that the NIC missed", "nic.*.stat.rx_fifo_errors", Counter(RECEIVED, 1000.0), Share, 1e-5),
    figure("frames that the NIC missed", "nic.*.stat.rx_missed_errors", Counter(RECEIVED, 1000.0), Share, 1e-5),
    figure("errors of sending", "nic.*.stat.tx_errors", Counter(SENT, 1000.0), Share, 1e-5),
    figure("sent packets dropped", "nic.*.stat.tx_dropped", Counter(SENT, 1000.0), Share, 1e-4),
    figure("changes of the carrier", "nic.*.stat.carrier_changes", Hours, PerHour, 0.5),
    figure("packets dropped by a full backlog", "softnet.dropped", Counter("softnet.processed", 1000.0), Share, 1e-5),
    figure("work on packets that ended early", "softnet.time_squeeze", Counter("softnet.processed", 1000.0), Share, 1e-3),
    figure("packets dropped by the table of connections", "conntrack.drop", Hours, PerHour, 10.0),
    figure("connections that the table did not take", "conntrack.insert_failed", Hours, PerHour, 10.0),
    figure("time of a read", "disk.*.stat.read_ms", Load("disk.*.stat.reads", 100.0), Milliseconds, 1.0),
    figure("time of a write", "disk.*.stat.write_ms", Load("disk.*.stat.writes", 100.0), Milliseconds, 1.0),
    figure("time in which tasks waited for a CPU", "pressure.cpu.some_us", Time, Share, 0.05),
    figure("time in which tasks waited for storage", "pressure.io.some_us", Time, Share, 0.05),
    figure("time in which tasks waited for memory", "pressure.memory.some_us", Time, Share, 0.02),
    figure("time of a CPU in software interrupts", "cpu.*.softirq_us", Time, Share, 0.1),
    figure("time of a CPU that the hypervisor took", "cpu.*.steal_us", Time, Share, 0.02),
    figure("NFS requests sent again", "nfs.rpc.repeated", Counter("nfs.rpc.calls", 1000.0), Share, 1e-3),
    figure("probes lost on the path to it", "watch.received_lost", Counter("watch.received", 100.0), Share, 1e-3),
    figure("probes lost on the path from it", "watch.sent_lost", Counter("watch.sent", 100.0), Share, 1e-3),
];
