//! Bulk TCP from sender to receiver over one or more streams.
//!
//! What comes in: number of streams and time. What goes out: bytes, which both ends counted and compared, the series of
//! short intervals, and the end state of the connections. One thread per stream, and one that samples all of them and keeps
//! the time. Neither end sets a buffer size: the host's own autotuning and limits are what is measured.
//!
//! After the time is over the sender closes its direction; the receiver reads to the end and tells its count on
//! the same stream; then the sender resets the stream, so that neither end keeps a TIME_WAIT.

mod accept;
mod crew;
mod receiver;
mod sender;

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use linerate_model::load::{LoadReport, Role, TcpEnd, TestKind};
use linerate_sys::socket;
use linerate_sys::tcp_info::{self, TcpInfo};

use crate::Load;
use crate::job::{Job, LoadError, SLICE};
use crate::sampler::INTERVAL;
use crate::token::STAMP_BYTES;

/// The load `tcp`.
pub(crate) struct Tcp;

/// Buffer of one write or one read.
const BUFFER_BYTES: usize = 256 * 1024;

/// What a sender shows: the number of its stream, then the stamp of the receiver's nonce.
const PROOF_BYTES: usize = 2 + STAMP_BYTES;

/// Label of the sender's proof.
const PROOF: &str = "tcp proof";

/// Label of the receiver's proof, which is the word to start as well.
const GO: &str = "tcp go";

/// Bytes of the receiver's count at the end.
const COUNT_BYTES: usize = 8;

/// Streams of one test.
const STREAMS_MAX: u16 = 128;

/// The least time without progress that counts as a stall: longer than the first retransmission time-outs.
const STALL_MIN: Duration = Duration::from_millis(500);

/// The numbers of a test, checked.
#[derive(Clone, Copy)]
struct Plan {
    streams: usize,
    duration: Duration,
    /// No progress for so long ends the test.
    stall: Duration,
    /// Length of an interval: reading the state of many streams takes its time.
    interval: Duration,
}

impl Plan {
    fn new(kind: &TestKind) -> Result<Self, LoadError> {
        let &TestKind::Tcp { streams, duration_ms } = kind else {
            return Err(LoadError::Unknown { name: "tcp" });
        };
        if !(1..=STREAMS_MAX).contains(&streams) {
            return Err(LoadError::Spec { what: "streams", value: f64::from(streams), limit: "1 to 128" });
        }
        let duration = Duration::from_millis(u64::from(duration_ms));
        let interval = if streams <= 16 { INTERVAL } else { 2 * INTERVAL };
        Ok(Self { streams: usize::from(streams), duration, stall: STALL_MIN.max(duration), interval })
    }
}

impl Load for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn run(&self, job: &Job<'_>, report: &mut LoadReport) -> Result<(), LoadError> {
        let plan = Plan::new(&job.spec.kind)?;
        match job.spec.role {
            Role::Receiver => receiver::receive(job, plan, report),
            Role::Sender { peer } => sender::send(job, plan, peer, report),
        }
    }
}

/// Whether an error of a stream only says "not now".
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// A proven stream blocks, but never longer than a slice.
fn set_time_outs(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(SLICE))?;
    stream.set_write_timeout(Some(SLICE))?;
    socket::reset_on_close(stream)
}

/// How the work on one stream ended.
#[derive(Debug, Default)]
struct StreamEnd {
    /// Bytes that this end sent or received.
    bytes: u64,
    /// The receiver's count, once the sender has it.
    confirmed: Option<u64>,
    /// First and last time at which something came.
    span: Option<(Instant, Instant)>,
    /// State of the connection when its data was through.
    info: TcpInfo,
    /// What broke.
    error: Option<io::Error>,
}

/// Sums and extremes over the streams; what was sampled on the way is added by the sender.
fn end_state(streams: &[TcpStream], ends: &[StreamEnd]) -> TcpEnd {
    let mut end = TcpEnd::default();
    for info in ends.iter().map(|end| &end.info) {
        let rtt_us = f64::from(info.min_rtt_us.unwrap_or(0));
        if rtt_us > 0.0 && (end.rtt_min_us <= 0.0 || rtt_us < end.rtt_min_us) {
            end.rtt_min_us = rtt_us;
        }
        end.retransmits += u64::from(info.total_retrans);
        end.busy_us += info.busy_time_us.unwrap_or(0);
        end.rwnd_limited_us += info.rwnd_limited_us.unwrap_or(0);
        end.sndbuf_limited_us += info.sndbuf_limited_us.unwrap_or(0);
        end.reord_seen += u64::from(info.reord_seen.unwrap_or(0));
        end.dsack_dups += u64::from(info.dsack_dups.unwrap_or(0));
        end.rcv_ooopack += u64::from(info.rcv_ooopack.unwrap_or(0));
    }
    if let (Some(stream), Some(first)) = (streams.first(), ends.first()) {
        end.wscale = first.info.window_scale.unwrap_or((0, 0));
        end.congestion = tcp_info::congestion(stream).unwrap_or_default();
        end.sndbuf_bytes = socket::send_buffer(stream).unwrap_or(0);
    }
    end
}

/// Why a transfer is worth less than it seems, if it is: what broke, or counts that differ.
fn verdict(ends: &mut [StreamEnd]) -> Result<(), LoadError> {
    let bytes = ends.iter().map(|end| end.bytes).sum();
    if let Some(source) = ends.iter_mut().find_map(|end| end.error.take()) {
        return Err(LoadError::Broken { bytes, source });
    }
    Ok(())
}
