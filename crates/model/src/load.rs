//! What a node is told to measure, and what each side reports.

pub mod host_cpu;
mod spec;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::connects::ConnectsEnd;
use crate::datagram::UdpFlow;
use crate::disk_load::DiskEnd;
use crate::http::HttpFetch;
use crate::inside::Packed;
use crate::latency::LatencyResult;
use crate::path_mtu::{MtuProbe, PathMtu};

pub use host_cpu::HostCpu;
pub use spec::{LoadSpec, Role};

/// How the values of an interval are written: a transfer has tens of them, a survey of thousands of hosts
/// millions, on the wire and in the store. Digits that no clock and no counter gave are left out, and so is
/// what is zero anyway.
// By reference, because serde calls them so.
#[allow(clippy::trivially_copy_pass_by_ref)]
mod digits {
    use serde::Serializer;

    pub(super) fn whole<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(value.round())
    }

    pub(super) fn thousandths<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded = (value * 1e3).round() / 1e3;
        serializer.serialize_f64(if rounded.is_finite() { rounded } else { *value })
    }

    pub(super) fn is_zero(value: &f64) -> bool {
        *value == 0.0
    }

    pub(super) fn is_none<T: Default + PartialEq>(value: &T) -> bool {
        *value == T::default()
    }
}

/// State of a TCP connection over one interval, from the sender's TCP_INFO.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// End of the interval since the start of the transfer, in milliseconds.
    #[serde(serialize_with = "digits::thousandths")]
    pub at_ms: f64,
    /// Throughput of bytes acknowledged (sender) or read (receiver) in the interval, bit/s, all streams.
    #[serde(serialize_with = "digits::whole")]
    pub throughput_bps: f64,
    /// Smoothed RTT of the first stream, in microseconds; 0 at the receiver.
    #[serde(default, skip_serializing_if = "digits::is_zero", serialize_with = "digits::thousandths")]
    pub rtt_us: f64,
    /// Segments retransmitted in the interval, all streams.
    #[serde(default, skip_serializing_if = "digits::is_none")]
    pub retransmits: u64,
    /// Congestion window of the first stream, in segments.
    #[serde(default, skip_serializing_if = "digits::is_none")]
    pub cwnd: u32,
    /// The kernel's delivery-rate estimate of the first stream, bit/s.
    #[serde(default, skip_serializing_if = "digits::is_zero", serialize_with = "digits::whole")]
    pub delivery_bps: f64,
}

/// What one end of a load has to say when it ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadReport {
    /// Payload bytes sent (sender) or received (receiver).
    pub bytes: u64,
    /// Time between first and last byte at this end, in seconds.
    pub elapsed_s: f64,
    /// CPU seconds of this end's threads.
    pub cpu_s: f64,
    /// CPU seconds that all CPUs of the host spent in softirq during the test; `None` where the kernel does
    /// not report them. Kept apart from `cpu_s`, because other traffic of the host is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub softirq_s: Option<f64>,
    /// CPU time of the whole host during the test; `None` in reports of older nodes and of other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_cpu: Option<HostCpu>,
    /// Seconds that the threads of this end that move data waited for a CPU (schedstat), all together.
    pub wait_s: f64,
    /// Highest busy share of one CPU during the test, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_busy_max: Option<f64>,
    /// Every 50 ms or less.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Interval>,
    /// Bulk transfer, sender: the inside of each connection, one entry a stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Packed>,
    /// CPU seconds that reading the state of the connections took; part of `cpu_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_s: Option<f64>,
    /// Use of the CPUs of the host during the test, the busiest first, at most 16 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<CoreUse>,
    /// Bulk transfer: how the bytes were moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<TransferMethod>,
    /// Bulk transfer, sender: what the ways did in their turns before the test; empty when none were tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibration: Vec<Turn>,
    /// Bulk transfer, sender: when slow start ended, milliseconds since the start, by the state of the
    /// connections; `None` when it did not end, or the kernel reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<f64>,
    /// Bulk transfer with checksums: streams whose checksums agreed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_streams: Option<u16>,
    /// Bulk transfer, receiver: packets that the kernel threw away for want of room in the sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_drops: Option<u64>,
    /// Bulk transfer: the receiver read every stream to its end, and the sender had its count: bytes of both
    /// ends must be equal.
    #[serde(default)]
    pub drained: bool,
    /// Bulk transfer both ways: this end's report of the streams that went the other way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Box<LoadReport>>,
    /// TCP: sums over streams and last values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpEnd>,
    /// UDP: datagram counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpEnd>,
    /// RTT of each answered request in microseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rtt_us: Vec<f64>,
    /// Path MTU probes at the sender.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mtu: Vec<MtuProbe>,
    /// UDP: delay, jitter, and how the datagrams were carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_flow: Option<UdpFlow>,
    /// Phases of a latency test, at the sender.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<LatencyResult>,
    /// Limits of both directions, at the sender of the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_mtu: Option<PathMtu>,
    /// Connections set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connects: Option<ConnectsEnd>,
    /// Downloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpFetch>,
    /// Requests to a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Box<DiskEnd>>,
    /// What an iperf3 server at the other end counted: of a test in which only this end has a node program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Box<LoadReport>>,
    /// What others sent to the port of the test at this end; `None` where nothing came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strangers: Option<Strangers>,
    /// This end cannot do what was asked for (`stopped` says what), and did not begin: that says nothing
    /// about the path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// Why nothing or not everything got through (cannot connect, stalled, deadline). A value, not an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// Connections and datagrams at the port of a test that did not show its token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Strangers {
    /// Connections, without as many as the sender itself may have opened; of a test of connections, with
    /// those.
    pub connections: u64,
    /// Datagrams that were read.
    pub datagrams: u64,
    /// Datagrams, of the test or not, that found the socket's buffer full while there were others.
    pub dropped: u64,
}

impl Strangers {
    /// `None` where nothing came.
    pub fn some(self) -> Option<Self> {
        (self.connections > 0 || self.datagrams > 0).then_some(self)
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            connections: self.connections.saturating_add(other.connections),
            datagrams: self.datagrams.saturating_add(other.datagrams),
            dropped: self.dropped.saturating_add(other.dropped),
        }
    }
}

/// Use of one CPU during a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoreUse {
    /// Its number.
    pub cpu: u32,
    /// Busy share, 0 to 1.
    pub busy: f64,
    /// Share in softirq, 0 to 1.
    pub softirq: f64,
}

/// How one end moved its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransferMethod {
    /// Way of sending or of receiving.
    pub name: String,
    /// Bytes of one write or read.
    pub call_bytes: u64,
    /// Pages of the buffer: `huge` (reserved), `transparent` (asked for), `plain`.
    pub pages: String,
    /// CPUs on which the threads were allowed, where that was narrowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// What is worth knowing about it, such as that the kernel copied after all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
}

/// One turn of the calibration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// Way of sending.
    pub send: String,
    /// Way of receiving.
    pub receive: String,
    /// Payload rate, bit/s.
    pub bps: f64,
    /// CPU seconds per gigabyte, sender.
    pub tx_s_per_gb: f64,
    /// CPU seconds per gigabyte, receiver.
    pub rx_s_per_gb: f64,
    /// CPU seconds per gigabyte of the whole hosts of both ends, softirq included and steal not; `None` where
    /// an end does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_s_per_gb: Option<f64>,
    /// Share of the CPU time of both hosts that hypervisors took, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<f64>,
    /// Length, ms; 0 in reports of older nodes: 150.
    #[serde(default, skip_serializing_if = "digits::is_none")]
    pub turn_ms: u32,
    /// Measured only for comparison: a receive that copies every byte, as applications do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copying: bool,
    /// Why it could not be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// This way was used for the test.
    #[serde(default)]
    pub chosen: bool,
}

/// End state of a TCP load at one end, from TCP_INFO; times and counts summed over the streams.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Largest receive window that the peer offered, bytes; 0 where the kernel reports none.
    pub snd_wnd_max: u64,
    /// Options that both ends agreed on when the connections were opened; `None` in reports of older nodes
    /// and of other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<AgreedOptions>,
    /// Segments delivered to the receiver (sender).
    #[serde(default, skip_serializing_if = "digits::is_none")]
    pub delivered: u64,
    /// Of them marked by a queue on the path (CE), as the receiver echoed.
    #[serde(default, skip_serializing_if = "digits::is_none")]
    pub delivered_ce: u64,
}

/// Options of TCP that hold for a connection, beside the window scale. Each of them needs both ends, and a
/// path that lets it pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgreedOptions {
    /// Selective acknowledgements.
    pub sack: bool,
    /// Explicit congestion notification.
    pub ecn: bool,
    /// Timestamps.
    pub timestamps: bool,
}

/// Datagram counts of a UDP load at one end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UdpEnd {
    /// Datagrams sent (sender) or received, without duplicates (receiver).
    pub datagrams: u64,
    /// Received out of order.
    pub reordered: u64,
    /// Received more than once.
    pub duplicates: u64,
    /// Thrown away by the receiver's own socket for want of buffer: lost by the measurement, not by the path.
    /// Exact for datagrams that are read alone; where trains are read (`UdpFlow::offload`), trains times
    /// their length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_drops: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_written_without_digits_that_nothing_gave() {
        let interval = Interval {
            at_ms: 50.000_123_4,
            throughput_bps: 24_132_312_345.678,
            rtt_us: 0.0,
            ..Interval::default()
        };
        let text = serde_json::to_string(&interval).unwrap();
        assert_eq!(text, r#"{"at_ms":50.0,"throughput_bps":24132312346.0}"#);
        // What is read and written again stays as it is: a stored run is the live one.
        let again: Interval = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
        let full =
            Interval { at_ms: 0.5, rtt_us: 81.25, retransmits: 1, cwnd: 10, delivery_bps: 1e9, ..interval };
        let again: Interval = serde_json::from_str(&serde_json::to_string(&full).unwrap()).unwrap();
        assert_eq!(again, Interval { throughput_bps: 24_132_312_346.0, ..full });
    }
}
