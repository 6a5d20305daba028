//! What a node is told to measure, and what each side reports.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What is measured between two endpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestKind {
    /// Bulk TCP from sender to receiver.
    Tcp {
        /// Parallel streams, 1 to 128.
        streams: u16,
        /// Time of the transfer.
        duration_ms: u32,
    },
    /// Paced UDP from sender to receiver; both ends count.
    Udp {
        /// Payload rate.
        rate_bps: f64,
        /// UDP payload of each datagram.
        payload_bytes: u16,
        /// Time of the transfer.
        duration_ms: u32,
    },
    /// Request and response of 64 bytes over UDP on an otherwise idle pair.
    Rtt {
        /// Number of requests.
        count: u16,
    },
    /// Which datagram sizes arrive unfragmented: each size is sent with "do not fragment" and answered by a small datagram.
    Mtu {
        /// IP packet sizes to probe, small and full size.
        sizes: Vec<u32>,
        /// Probes per size.
        tries: u8,
    },
}

impl TestKind {
    /// Short stable name: `tcp`, `udp`, `rtt`, `mtu`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tcp { .. } => "tcp",
            Self::Udp { .. } => "udp",
            Self::Rtt { .. } => "rtt",
            Self::Mtu { .. } => "mtu",
        }
    }
}

/// Which end of a test a node is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Binds an ephemeral port on `bind` and reports it; accepts only streams that carry the token.
    Receiver,
    /// Connects to the receiver.
    Sender {
        /// Where the receiver listens.
        peer: SocketAddr,
    },
}

/// One end of one test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSpec {
    /// What.
    pub kind: TestKind,
    /// Which end.
    pub role: Role,
    /// Own address of the endpoint.
    pub bind: IpAddr,
    /// Namespace inside the host in which the address lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<PathBuf>,
    /// Secret of this test: 16 random bytes. Streams that do not show it are refused before anything is read from them.
    pub token: [u8; 16],
    /// The load ends itself after this time whatever happens.
    pub deadline_ms: u32,
}

/// State of a TCP connection over one interval, from the sender's TCP_INFO.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// End of the interval since the start of the transfer, in milliseconds.
    pub at_ms: f64,
    /// Throughput of bytes acknowledged (sender) or read (receiver) in the interval, bit/s, all streams.
    pub throughput_bps: f64,
    /// Smoothed RTT of the first stream, in microseconds; 0 at the receiver.
    #[serde(default)]
    pub rtt_us: f64,
    /// Segments retransmitted in the interval, all streams.
    #[serde(default)]
    pub retransmits: u64,
    /// Congestion window of the first stream, in segments.
    #[serde(default)]
    pub cwnd: u32,
    /// The kernel's delivery-rate estimate of the first stream, bit/s.
    #[serde(default)]
    pub delivery_bps: f64,
}

/// What one end of a load has to say when it ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Payload bytes sent (sender) or received (receiver).
    pub bytes: u64,
    /// Time between first and last byte at this end, in seconds.
    pub elapsed_s: f64,
    /// CPU seconds of this end's threads.
    pub cpu_s: f64,
    /// CPU seconds that all CPUs of the host spent in softirq during the test; `None` where the kernel does not say.
    /// Kept apart from `cpu_s`, because other traffic of the host is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub softirq_s: Option<f64>,
    /// Seconds that this end's threads waited for a CPU (schedstat).
    pub wait_s: f64,
    /// Highest busy share of one CPU during the test, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_busy_max: Option<f64>,
    /// Every 50 ms or less.
    #[serde(default)]
    pub series: Vec<Interval>,
    /// TCP: sums over streams and last values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpEnd>,
    /// UDP: datagram counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpEnd>,
    /// RTT of each answered request in microseconds.
    #[serde(default)]
    pub rtt_us: Vec<f64>,
    /// Path MTU probes at the sender.
    #[serde(default)]
    pub mtu: Vec<MtuProbe>,
    /// What an iperf3 server at the other end counted: of a test in which only this end has a node program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Box<LoadReport>>,
    /// Why nothing or not everything got through (cannot connect, stalled, deadline). A value, not an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// End state of a TCP load at one end, from TCP_INFO; times and counts summed over the streams.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpEnd {
    /// Smallest RTT seen, microseconds.
    pub rtt_min_us: f64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Time with data to send, microseconds.
    pub busy_us: u64,
    /// Of it limited by the receiver's window.
    pub rwnd_limited_us: u64,
    /// Of it limited by the send buffer.
    pub sndbuf_limited_us: u64,
    /// Reordering events seen.
    pub reord_seen: u64,
    /// Duplicate SACKs received.
    pub dsack_dups: u64,
    /// Out-of-order packets received (receiver).
    pub rcv_ooopack: u64,
    /// Maximum segment size in use, bytes.
    pub mss: u32,
    /// Congestion control in use.
    pub congestion: String,
    /// Window scale shifts (ours, the peer's); both 0 when scaling is off.
    pub wscale: (u8, u8),
    /// Largest number of bytes in flight that was sampled.
    pub unacked_bytes_max: u64,
    /// Send buffer size at the end (`SO_SNDBUF` as the kernel counts it), bytes.
    pub sndbuf_bytes: u64,
    /// Largest receive window that the peer offered, bytes; 0 where the kernel does not say.
    pub snd_wnd_max: u64,
}

/// Datagram counts of a UDP load at one end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpEnd {
    /// Datagrams sent (sender) or received, without duplicates (receiver).
    pub datagrams: u64,
    /// Received out of order.
    pub reordered: u64,
    /// Received more than once.
    pub duplicates: u64,
    /// Thrown away by the receiver's own socket for want of buffer: lost by the measurement, not by the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_drops: Option<u64>,
}

/// Answer to the path MTU probes of one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MtuProbe {
    /// IP packet size.
    pub bytes: u32,
    /// Probes sent.
    pub sent: u8,
    /// Probes answered.
    pub answered: u8,
    /// The sending kernel refused (EMSGSIZE) and knows this path MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_mtu: Option<u32>,
}
