//! Everything that one end knows about a test: what was asked, the streams, the intervals, both ends' counts.
//!
//! What comes in: the watchdog's samples and the peer's results. What goes out: plain values from which the
//! outputs are made. It does no I/O.

use std::net::SocketAddr;

use linerate_sys::cpu::ThreadTimes;
use linerate_sys::tcp_info::TcpInfo;

use super::parameters::{DataDirection, Iperf3Protocol, Parameters};
use super::protocol::Cookie;
use super::results::{Results, ServerOutput, StreamResult};

/// A stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// Number in the results.
    pub id: u32,
    /// We send.
    pub sends: bool,
    /// Our descriptor, by which iperf3's outputs name a stream.
    pub socket: i32,
    /// Own end.
    pub local: SocketAddr,
    /// The peer's.
    pub peer: SocketAddr,
}

/// One stream in one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamInterval {
    /// Bytes sent or received.
    pub bytes: u64,
    /// Of a TCP sender: acknowledged, where the kernel reports it.
    pub acknowledged: Option<u64>,
    /// Datagrams sent, or numbers passed by at the receiver.
    pub packets: u64,
    /// Datagrams lost.
    pub lost: i64,
    /// Datagrams out of order.
    pub out_of_order: u64,
    /// At the end of the interval, seconds.
    pub jitter_s: f64,
    /// Of a TCP sender.
    pub tcp: Option<TcpNow>,
}

/// State of a TCP sender at the end of an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TcpNow {
    /// Segments retransmitted in the interval.
    pub retransmits: u64,
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Window that the peer offers, bytes.
    pub send_window: u64,
    /// Smoothed RTT, microseconds.
    pub rtt_us: u32,
    /// Its mean deviation, microseconds.
    pub rttvar_us: u32,
    /// Path MTU, bytes.
    pub pmtu: u32,
    /// Times that segments were seen to overtake one another since the start; nothing where the kernel does
    /// not count.
    pub reorder: Option<u32>,
}

/// An interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordInterval {
    /// Begin, seconds after the start.
    pub start_s: f64,
    /// End.
    pub end_s: f64,
    /// Belongs to the start-up that is left out.
    pub omitted: bool,
    /// In the order of the lanes.
    pub streams: Vec<StreamInterval>,
}

/// What one end counted of a stream, without what was omitted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamCount {
    /// Bytes.
    pub bytes: u64,
    /// How long, seconds.
    pub seconds: f64,
    /// Segments retransmitted, where that end knows.
    pub retransmits: Option<u64>,
    /// Datagrams.
    pub packets: u64,
    /// Lost.
    pub lost: i64,
    /// Out of order; only this end's own receivers know.
    pub out_of_order: u64,
    /// Seconds.
    pub jitter_s: f64,
}

impl StreamCount {
    /// bit/s.
    pub fn bits_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 * 8.0 / self.seconds } else { 0.0 }
    }
}

/// Extremes of a TCP sender.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Extremes {
    /// Largest congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Largest window of the peer, bytes.
    pub send_window: u64,
    /// Largest RTT, microseconds.
    pub rtt_max_us: u32,
    /// Smallest RTT, microseconds.
    pub rtt_min_us: u32,
    /// Mean of the samples, microseconds.
    pub rtt_mean_us: u32,
}

/// A stream at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LaneEnd {
    /// As its sender counted.
    pub sent: StreamCount,
    /// As its receiver counted.
    pub received: StreamCount,
    /// When this end sent.
    pub extremes: Extremes,
    /// State of the connection at the end, when this end sent by TCP.
    pub info: Option<TcpInfo>,
}

/// A test as this end saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct TestRecord {
    /// This end is the server.
    pub server: bool,
    /// What was asked.
    pub parameters: Parameters,
    /// Name of the test.
    pub cookie: Cookie,
    /// Host and port as the user wrote them (client), or the client's address (server).
    pub target: (String, u16),
    /// Begin, Unix milliseconds.
    pub start_unix_ms: u64,
    /// Length of an interval, seconds; 0 for none.
    pub interval_s: f64,
    /// Largest segment of the control connection, bytes.
    pub mss: u32,
    /// Block of a write or payload of a datagram, bytes.
    pub block: u32,
    /// Socket buffers of the first stream as the kernel counts them: send, receive; bytes.
    pub buffers: (u64, u64),
    /// Streams, in order of creation.
    pub lanes: Vec<Lane>,
    /// Intervals.
    pub intervals: Vec<RecordInterval>,
    /// Streams at their end; empty when it did not come to that.
    pub ends: Vec<LaneEnd>,
    /// CPU of this process: all, user, system; percent of one CPU.
    pub cpu_percent: [f64; 3],
    /// What the threads of the streams took here.
    pub costs: ThreadTimes,
    /// The peer's.
    pub cpu_percent_remote: [f64; 3],
    /// Congestion control here.
    pub congestion: Option<String>,
    /// Congestion control there.
    pub congestion_remote: Option<String>,
    /// What the server printed, when it was asked for.
    pub server_output: Option<ServerOutput>,
    /// User of the client, when the server demands one.
    pub user: Option<String>,
    /// Why it ended early.
    pub error: Option<String>,
}

/// What this end has to subtract from a peer's counts when the peer does not report what it omitted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Omitted {
    pub(super) packets: u64,
    pub(super) lost: i64,
}

impl TestRecord {
    /// Sums of one direction: as its senders counted, as its receivers did.
    pub fn sums(&self, sends: bool) -> (StreamCount, StreamCount) {
        let of = |pick: fn(&LaneEnd) -> StreamCount| {
            let mut sum = StreamCount::default();
            let mut lanes = 0.0;
            for (_, end) in self.lanes.iter().zip(&self.ends).filter(|(lane, _)| lane.sends == sends) {
                let side = pick(end);
                lanes += 1.0;
                sum.bytes += side.bytes;
                sum.seconds = sum.seconds.max(side.seconds);
                sum.packets += side.packets;
                sum.lost = sum.lost.saturating_add(side.lost);
                sum.out_of_order += side.out_of_order;
                sum.jitter_s += side.jitter_s;
                if let Some(count) = side.retransmits {
                    sum.retransmits = Some(sum.retransmits.unwrap_or(0) + count);
                }
            }
            if lanes > 0.0 {
                sum.jitter_s /= lanes;
            }
            sum
        };
        (of(|end| end.sent), of(|end| end.received))
    }

    /// The directions in which this end has streams: first the one from client to server, as in iperf3.
    pub fn directions(&self) -> Vec<bool> {
        match (self.parameters.direction, self.server) {
            (DataDirection::Both, server) => vec![!server, server],
            (DataDirection::Forward, false) | (DataDirection::Reverse, true) => vec![true],
            (DataDirection::Forward, true) | (DataDirection::Reverse, false) => vec![false],
        }
    }

    /// Whether the streams are UDP.
    pub fn is_udp(&self) -> bool {
        self.parameters.protocol == Iperf3Protocol::Udp
    }

    /// Takes what the peer counted; our own side is in the ends already.
    pub(super) fn merge(&mut self, theirs: &Results, omitted: &[Omitted]) {
        self.cpu_percent_remote = theirs.cpu_percent;
        self.congestion_remote.clone_from(&theirs.congestion);
        self.server_output.clone_from(&theirs.server_output);
        for (index, (lane, end)) in self.lanes.iter().zip(&mut self.ends).enumerate() {
            let Some(stream) = theirs.stream(lane.id) else {
                self.error
                    .get_or_insert_with(|| format!("the peer reports nothing about stream {}", lane.id));
                continue;
            };
            let own = if lane.sends { end.sent } else { end.received };
            let side = remote_side(stream, omitted.get(index).copied().unwrap_or_default(), own.seconds);
            if lane.sends {
                end.received = side;
            } else {
                end.sent = side;
            }
        }
    }
}

fn remote_side(stream: &StreamResult, omitted: Omitted, seconds: f64) -> StreamCount {
    let packets = stream.omitted_packets.unwrap_or(omitted.packets as i64);
    let lost = stream.omitted_errors.unwrap_or(omitted.lost);
    StreamCount {
        bytes: stream.bytes,
        seconds: if stream.end_s > 0.0 { stream.end_s } else { seconds },
        retransmits: u64::try_from(stream.retransmits).ok(),
        packets: u64::try_from(stream.packets.saturating_sub(packets)).unwrap_or(0),
        lost: stream.errors.saturating_sub(lost).max(0),
        out_of_order: 0,
        jitter_s: stream.jitter_s,
    }
}
