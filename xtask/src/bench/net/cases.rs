//! The cases and what is demanded in each.

use super::contest::{Case, Contender, Demand, Job, Metric};
use super::{iperf2, iperf3, netperf, nuttcp, ours, qperf, sockperf};
use crate::bench::arena::Wire;

const IPERF3: Option<(&str, &str)> = Some(("iperf3", "package iperf3"));
/// Debian 12 has none that cuts its datagrams by the kernel; one built from source is measured too.
const IPERF3_GSO: Option<(&str, &str)> =
    Some(("iperf3-gso", "iperf3 3.19 or newer under this name, on the search path"));
const IPERF2: Option<(&str, &str)> = Some(("iperf", "package iperf"));
const NUTTCP: Option<(&str, &str)> = Some(("nuttcp", "package nuttcp"));
const NETPERF: Option<(&str, &str)> = Some(("netperf", "package netperf, non-free in Debian"));
const SOCKPERF: Option<(&str, &str)> = Some(("sockperf", "package sockperf"));
const QPERF: Option<(&str, &str)> = Some(("qperf", "package qperf"));

const JOB: Job = Job { streams: 1, bytes: 0, seconds: 1 };

/// All cases; the first contender of each is ours.
pub(crate) const ALL: &[Case] = &[
    TCP_1,
    TCP_2,
    calibration("calibration beside fixed methods, veth", Wire::Trains),
    calibration("calibration beside fixed methods, MTU 576", Wire::Small),
    calibration("calibration beside fixed methods, 2 Gbit/s", Wire::Shaped),
    calibration("calibration beside fixed methods, loopback", Wire::Loopback),
    UDP_BULK,
    UDP_SMALL,
    UDP_SMALL_CUT,
    REQUESTS,
];

const TCP: &[Contender] = &[
    Contender { name: "linerate measure", needs: None, turn: ours::tcp },
    Contender { name: "linerate survey", needs: None, turn: ours::tcp_survey },
    Contender { name: "linerate, receive copies", needs: None, turn: ours::tcp_copying },
    Contender { name: "iperf3", needs: IPERF3, turn: iperf3::tcp },
    Contender { name: "iperf3 -l 1M", needs: IPERF3, turn: iperf3::tcp_large },
    Contender { name: "iperf3 -Z -l 1M", needs: IPERF3, turn: iperf3::tcp_sendfile },
    Contender { name: "iperf2", needs: IPERF2, turn: iperf2::tcp },
    Contender { name: "iperf2 -l 1M", needs: IPERF2, turn: iperf2::tcp_large },
    Contender { name: "nuttcp -l1m", needs: NUTTCP, turn: nuttcp::tcp },
];

/// netperf makes one stream only.
const TCP_AND_NETPERF: &[Contender] = &[
    TCP[0],
    TCP[1],
    TCP[2],
    TCP[3],
    TCP[4],
    TCP[5],
    TCP[6],
    TCP[7],
    TCP[8],
    Contender { name: "netperf", needs: NETPERF, turn: netperf::tcp },
];

const TUNED: &[&str] = &["iperf3 -l 1M", "iperf3 -Z -l 1M", "iperf2", "iperf2 -l 1M", "nuttcp -l1m"];

const TCP_1: Case = Case {
    name: "TCP, one stream",
    job: JOB,
    wire: Wire::Trains,
    contenders: TCP_AND_NETPERF,
    metrics: &[Metric::Throughput, Metric::Cpu, Metric::MachineCpu],
    demands: &[
        Demand { ours: "linerate measure", theirs: &["iperf3"], metric: Metric::Cpu, limit: 0.60 },
        Demand { ours: "linerate measure", theirs: TUNED, metric: Metric::Cpu, limit: 0.80 },
        Demand { ours: "linerate measure", theirs: &["iperf3"], metric: Metric::Throughput, limit: 1.35 },
        Demand { ours: "linerate measure", theirs: TUNED, metric: Metric::Throughput, limit: 1.0 },
    ],
};

const TCP_2: Case = Case {
    name: "TCP, two streams",
    job: Job { streams: 2, ..JOB },
    wire: Wire::Trains,
    contenders: TCP,
    metrics: &[Metric::Throughput, Metric::Cpu, Metric::MachineCpu],
    demands: &[
        Demand { ours: "linerate measure", theirs: &["iperf3"], metric: Metric::Throughput, limit: 1.45 },
        Demand { ours: "linerate measure", theirs: TUNED, metric: Metric::Throughput, limit: 1.0 },
    ],
};

macro_rules! fixed {
    ($send:literal, $receive:literal) => {
        Contender {
            name: concat!($send, " > ", $receive),
            needs: None,
            turn: |arena, job| ours::fixed(arena, job, $send, $receive),
        }
    };
}

const FIXED: &[&str] = &[
    "write > truncate",
    "write > truncate-beside",
    "write-4m > truncate",
    "write-4m > truncate-beside",
    "sendfile > truncate",
    "sendfile > truncate-beside",
    "zerocopy > truncate",
    "zerocopy > truncate-beside",
    "splice > truncate",
    "splice > truncate-beside",
];

const CALIBRATED: &[Contender] = &[
    Contender { name: "linerate measure", needs: None, turn: ours::tcp },
    fixed!("write", "truncate"),
    fixed!("write", "truncate-beside"),
    fixed!("write-4m", "truncate"),
    fixed!("write-4m", "truncate-beside"),
    fixed!("sendfile", "truncate"),
    fixed!("sendfile", "truncate-beside"),
    fixed!("zerocopy", "truncate"),
    fixed!("zerocopy", "truncate-beside"),
    fixed!("splice", "truncate"),
    fixed!("splice", "truncate-beside"),
];

/// What calibration chose beside every method that it could have chosen.
const fn calibration(name: &'static str, wire: Wire) -> Case {
    Case {
        name,
        job: JOB,
        wire,
        contenders: CALIBRATED,
        metrics: &[Metric::Throughput, Metric::MachineCpu],
        demands: &[Demand {
            ours: "linerate measure",
            theirs: FIXED,
            metric: Metric::Throughput,
            limit: 0.95,
        }],
    }
}

const UDP_BULK: Case = Case {
    name: "UDP flat out, 1448 bytes",
    job: Job { bytes: 1448, ..JOB },
    wire: Wire::Trains,
    contenders: &[
        Contender { name: "linerate", needs: None, turn: ours::udp },
        Contender { name: "iperf3 -u", needs: IPERF3, turn: iperf3::udp },
        Contender { name: "iperf3 -u --gsro", needs: IPERF3_GSO, turn: iperf3::udp_gso },
        Contender { name: "iperf2 -u", needs: IPERF2, turn: iperf2::udp },
        Contender { name: "nuttcp -u", needs: NUTTCP, turn: nuttcp::udp },
    ],
    metrics: &[Metric::Throughput, Metric::Packets, Metric::Cpu, Metric::MachineCpu],
    demands: &[
        Demand { ours: "linerate", theirs: &["iperf3 -u"], metric: Metric::Throughput, limit: 10.0 },
        Demand { ours: "linerate", theirs: &["iperf3 -u --gsro"], metric: Metric::Throughput, limit: 1.0 },
    ],
};

const SMALL_PEERS: &[&str] = &["iperf3 -u", "iperf2 -u", "nuttcp -u"];

// iperf3 --gsro is not among these: its trains of so small datagrams have more segments than the kernel
// takes, and hardly any goes.
const UDP_SMALL: Case = Case {
    name: "UDP flat out, 64 bytes",
    job: Job { bytes: 64, ..JOB },
    wire: Wire::Trains,
    contenders: &[
        Contender { name: "linerate, read one by one", needs: None, turn: ours::udp_send },
        Contender { name: "linerate, no offload", needs: None, turn: ours::udp_plain },
        Contender { name: "linerate, read in trains", needs: None, turn: ours::udp },
        Contender { name: "iperf3 -u", needs: IPERF3, turn: iperf3::udp },
        Contender { name: "iperf2 -u", needs: IPERF2, turn: iperf2::udp },
        Contender { name: "nuttcp -u", needs: NUTTCP, turn: nuttcp::udp },
    ],
    metrics: &[Metric::Packets, Metric::Wire, Metric::Cpu],
    demands: &[
        Demand { ours: "linerate, no offload", theirs: SMALL_PEERS, metric: Metric::Packets, limit: 2.0 },
        Demand {
            ours: "linerate, read one by one",
            theirs: SMALL_PEERS,
            metric: Metric::Packets,
            limit: 4.0,
        },
        Demand { ours: "linerate, read in trains", theirs: SMALL_PEERS, metric: Metric::Packets, limit: 4.0 },
    ],
};

/// Packets on the wire, so that a rate of datagrams is one of packets.
const UDP_SMALL_CUT: Case = Case {
    name: "UDP flat out, 64 bytes, cut before the wire",
    job: Job { bytes: 64, ..JOB },
    wire: Wire::Packets,
    contenders: &[
        Contender { name: "linerate", needs: None, turn: ours::udp_send },
        Contender { name: "linerate, no offload", needs: None, turn: ours::udp_plain },
        Contender { name: "iperf3 -u", needs: IPERF3, turn: iperf3::udp },
        Contender { name: "iperf2 -u", needs: IPERF2, turn: iperf2::udp },
        Contender { name: "nuttcp -u", needs: NUTTCP, turn: nuttcp::udp },
    ],
    metrics: &[Metric::Packets, Metric::Wire, Metric::Cpu],
    demands: &[
        Demand { ours: "linerate, no offload", theirs: SMALL_PEERS, metric: Metric::Packets, limit: 2.0 },
        Demand { ours: "linerate", theirs: SMALL_PEERS, metric: Metric::Packets, limit: 4.0 },
    ],
};

const PEERS_RR: &[&str] = &["sockperf tcp", "sockperf udp", "qperf tcp_lat", "qperf udp_lat"];

const REQUESTS: Case = Case {
    name: "request and response",
    job: Job { bytes: 14, ..JOB },
    wire: Wire::Trains,
    contenders: &[
        Contender { name: "linerate tcp", needs: None, turn: ours::requests_tcp },
        Contender { name: "linerate udp", needs: None, turn: ours::requests_udp },
        Contender { name: "linerate tcp, spinning", needs: None, turn: ours::requests_tcp_spinning },
        Contender { name: "linerate udp, spinning", needs: None, turn: ours::requests_udp_spinning },
        Contender { name: "sockperf tcp", needs: SOCKPERF, turn: sockperf::tcp },
        Contender { name: "sockperf udp", needs: SOCKPERF, turn: sockperf::udp },
        Contender { name: "qperf tcp_lat", needs: QPERF, turn: qperf::tcp },
        Contender { name: "qperf udp_lat", needs: QPERF, turn: qperf::udp },
        Contender { name: "netperf TCP_RR", needs: NETPERF, turn: netperf::requests_tcp },
        Contender { name: "netperf UDP_RR", needs: NETPERF, turn: netperf::requests_udp },
    ],
    metrics: &[Metric::Transactions],
    demands: &[
        Demand {
            ours: "linerate tcp",
            theirs: &["sockperf tcp", "qperf tcp_lat", "netperf TCP_RR"],
            metric: Metric::Transactions,
            limit: 1.0,
        },
        Demand {
            ours: "linerate udp",
            theirs: &["sockperf udp", "qperf udp_lat", "netperf UDP_RR"],
            metric: Metric::Transactions,
            limit: 1.0,
        },
        Demand { ours: "linerate tcp, spinning", theirs: PEERS_RR, metric: Metric::Transactions, limit: 4.0 },
        Demand { ours: "linerate udp, spinning", theirs: PEERS_RR, metric: Metric::Transactions, limit: 4.0 },
    ],
};
