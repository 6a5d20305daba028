//! Bulk transfer from sender to receiver over one or more streams, in one direction or both.
//!
//! What comes in: number of streams, time, options. What goes out: bytes, which both ends counted and compared, the series
//! of short intervals, the inside of each connection, and the end state. One thread per stream, and one that samples all of
//! them and keeps the time. Unless a window is asked for, neither end sets a buffer size: the host's own autotuning and
//! limits are what is measured.
//!
//! After the time is over the sender closes its direction; the receiver reads to the end and tells its count and checksum
//! on the same stream; then the sender resets the stream, so that neither end keeps a TIME_WAIT.
//!
//! Streams are numbered: first those to the receiver, then those back, last the control stream of a calibration.

mod accept;
mod calibrate;
mod choose;
mod connect;
mod crew;
mod inside;
mod options;
mod place;
mod receive;
mod receiver;
mod send;
mod sender;
mod ways;

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use linerate_model::load::{LoadReport, Role, TcpEnd, TestKind, Turn};
use linerate_model::tuning::STREAMS_MAX;
use linerate_sys::stream::Kind;
use linerate_sys::tcp_info::{self, TcpInfo};
use linerate_sys::{affinity, socket};

use self::ways::Ways;
use crate::job::{Job, LoadError, SLICE, patience};
use crate::load::Load;
use crate::token::STAMP_BYTES;

/// The load `tcp`.
pub(crate) struct Tcp;

/// What a sender shows: the number of its stream, then the stamp of the receiver's nonce.
const PROOF_BYTES: usize = 2 + STAMP_BYTES;

/// Label of the sender's proof.
const PROOF: &str = "tcp proof";

/// Label of the receiver's proof, which is the word to start as well.
const GO: &str = "tcp go";

/// The least time without progress that counts as a stall: longer than the first retransmission time-outs.
const STALL_MIN: Duration = patience(500, 8_000);

/// The numbers of a test, checked.
#[derive(Clone, Copy)]
struct Plan {
    /// In one direction.
    streams: usize,
    both_ways: bool,
    calibrate: bool,
    duration: Duration,
    /// No progress for so long ends the test.
    stall: Duration,
    /// Length of an interval.
    interval: Duration,
    kind: Kind,
}

impl Plan {
    fn new(job: &Job<'_>) -> Result<Self, LoadError> {
        let &TestKind::Tcp { streams, duration_ms } = &job.spec.kind else {
            return Err(LoadError::Unknown { name: "tcp" });
        };
        if !(1..=STREAMS_MAX).contains(&streams) {
            return Err(LoadError::Spec { what: "streams", value: f64::from(streams), limit: "1 to 512" });
        }
        let tuning = &job.spec.tuning;
        options::check(tuning)?;
        let duration = Duration::from_millis(u64::from(duration_ms));
        Ok(Self {
            streams: usize::from(streams),
            both_ways: tuning.both_ways,
            calibrate: tuning.calibrate,
            duration,
            stall: STALL_MIN.max(duration),
            interval: Duration::from_secs(1) / u32::from(tuning.sample_hz),
            kind: options::kind(tuning.protocol),
        })
    }

    /// Connections in all.
    fn connections(self) -> usize {
        self.streams * (1 + usize::from(self.both_ways)) + usize::from(self.calibrate)
    }

    /// The streams to the receiver, those back, and the control stream.
    fn split(self, all: &[TcpStream]) -> (&[TcpStream], &[TcpStream], Option<&TcpStream>) {
        let (forward, rest) = all.split_at(self.streams.min(all.len()));
        let (back, control) = rest.split_at(if self.both_ways { self.streams.min(rest.len()) } else { 0 });
        (forward, back, control.first())
    }
}

impl Load for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn run(&self, job: &Job<'_>, report: &mut LoadReport) -> Result<(), LoadError> {
        let plan = Plan::new(job)?;
        if plan.connections() > 64 {
            // With fewer the limit does not matter; if it cannot be raised, opening the streams says so.
            let _ = affinity::raise_open_files();
        }
        let all = match job.spec.role {
            Role::Receiver => accept::accept(job, plan)?,
            Role::Sender { peer } => connect::connect(job, plan, peer)?,
        };
        let (forward, back, control) = plan.split(&all);
        let mut ways = Ways::asked_for(&job.spec.tuning)?;
        let sends = matches!(job.spec.role, Role::Sender { .. });
        if let Some(control) = control {
            let mut turns: Vec<Turn> = Vec::new();
            ways = if sends {
                calibrate::lead(job, plan, forward, control, &mut turns)?
            } else {
                calibrate::follow(job, plan, forward, control)?
            };
            report.calibration = turns;
            // What the turns cost is in their table, not in the test's figures.
            job.restart();
        }
        if sends {
            both(job, report, &|report| sender::send(job, plan, forward, &ways, report), back, &|report| {
                receiver::receive(job, plan, back, &ways, report)
            })
        } else {
            both(
                job,
                report,
                &|report| receiver::receive(job, plan, forward, &ways, report),
                back,
                &|report| sender::send(job, plan, back, &ways, report),
            )
        }
    }
}

type Half<'a> = &'a (dyn Fn(&mut LoadReport) -> Result<(), LoadError> + Sync);

/// Runs what goes one way, and at the same time what goes the other way when there are streams for it.
fn both(
    job: &Job<'_>,
    report: &mut LoadReport,
    there: Half<'_>,
    streams_back: &[TcpStream],
    back: Half<'_>,
) -> Result<(), LoadError> {
    if streams_back.is_empty() {
        return there(report);
    }
    job.check("starting")?;
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().name("load-back".into()).spawn_scoped(scope, || {
            let mut report = LoadReport::default();
            let result = back(&mut report);
            report.stopped = result.as_ref().err().map(ToString::to_string);
            (report, result)
        });
        let result = there(report);
        let other = other.map_err(LoadError::io("start a thread"))?;
        let (other_report, other_result) = other
            .join()
            .map_err(|_| LoadError::io("run the way back")(io::Error::other("its thread panicked")))?;
        report.back = Some(Box::new(other_report));
        result.and(other_result)
    })
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

/// What the receiver of a stream says about it at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tail {
    bytes: u64,
    checksum: u32,
}

impl Tail {
    const BYTES: usize = 12;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..8].copy_from_slice(&self.bytes.to_be_bytes());
        out[8..].copy_from_slice(&self.checksum.to_be_bytes());
        out
    }

    fn of(bytes: [u8; Self::BYTES]) -> Self {
        Self {
            bytes: bytes.first_chunk().map_or(0, |count| u64::from_be_bytes(*count)),
            checksum: bytes.last_chunk().map_or(0, |sum| u32::from_be_bytes(*sum)),
        }
    }
}

/// How the work on one stream ended.
#[derive(Debug, Default)]
struct StreamEnd {
    /// Bytes that this end sent or received.
    bytes: u64,
    /// Checksum of them, where one was made.
    checksum: u32,
    /// The receiver's word, once the sender has it.
    tail: Option<Tail>,
    /// First and last time at which something came.
    span: Option<(Instant, Instant)>,
    /// State of the connection when its data was through.
    info: TcpInfo,
    /// What the way of moving bytes had to say.
    remark: String,
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

/// Why a transfer is worth less than it seems, if it is: what broke.
fn verdict(ends: &mut [StreamEnd]) -> Result<(), LoadError> {
    let bytes = ends.iter().map(|end| end.bytes).sum();
    if let Some(source) = ends.iter_mut().find_map(|end| end.error.take()) {
        return Err(LoadError::Broken { bytes, source });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
