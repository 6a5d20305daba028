//! The receiving end of a TCP load.
//!
//! What comes in: proven streams. What goes out: the report of the receiver. Bytes are taken out of the
//! kernel by the chosen method; only a verifying method reads them.

use std::io::Write;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_model::load::{LoadReport, TransferMethod};
use linerate_sys::socket::{self, Ready};
use linerate_sys::tcp_info;

use super::crew::{self, Crew, Watchdog};
use super::methods::Methods;
use super::placement::{Follower, Placement};
use super::plan::Plan;
use super::receive::method::{Pull, ReceiveMethod};
use super::stream_end::{StreamEnd, Tail, end_state, verdict};
use crate::job::{Job, LoadError, SLICE, is_passing};
use crate::sampler::{Series, Totals, read_at};

/// A reader may always wait for a 32nd of the receive buffer: what is unread then narrows the window that the
/// sender sees by 3 %.
const WAKE_SHARE: u64 = 32;
const WAKE_BYTES: u64 = 128 << 10;

/// On a fast path that would wake it too often, and each wake-up costs microseconds: there it waits for what
/// comes in so long, up to an eighth of the buffer.
const WAKE_EVERY_S: f64 = 100e-6;
const WAKE_SHARE_FAST: u64 = 8;
const WAKE_BYTES_FAST: u64 = 1 << 20;

/// Buffer of one read; many streams share the cache.
const CALL_BYTES: usize = 4 << 20;
const CALL_BYTES_MANY: usize = 256 << 10;
const MANY: usize = 16;

/// After the sender's kernel has the count, its reset is waited for so long.
const RESET_WAIT: Duration = Duration::from_millis(250);

/// A receiver waits a little longer than a sender, so that the sender's reason is the one reported.
const STALL_EXTRA: Duration = Duration::from_millis(300);

/// How readers are woken: rarely, but before the window suffers.
pub(super) struct Wakes<'a> {
    streams: &'a [TcpStream],
    set: Vec<u32>,
    last: Option<(Instant, u64)>,
}

impl<'a> Wakes<'a> {
    pub(super) fn new(streams: &'a [TcpStream]) -> Self {
        Self { streams, set: vec![1; streams.len()], last: None }
    }

    /// Follows the rate and the kernel's autotuning of the receive buffer.
    pub(super) fn adapt(&mut self, now: Instant, bytes: u64) {
        let (then, before) = self.last.unwrap_or((now, bytes));
        let seconds = (now - then).as_secs_f64();
        self.last = Some((now, bytes));
        if seconds <= 0.0 {
            return;
        }
        let rate = (bytes - before.min(bytes)) as f64 / seconds / self.streams.len().max(1) as f64;
        let due = (rate * WAKE_EVERY_S) as u64;
        for (stream, set) in self.streams.iter().zip(&mut self.set) {
            let Ok(buffer) = socket::receive_buffer(stream) else { continue };
            let fast = due.min(buffer / WAKE_SHARE_FAST).min(WAKE_BYTES_FAST);
            let wanted = fast.max((buffer / WAKE_SHARE).min(WAKE_BYTES)).max(1) as u32;
            // Small differences are not worth a call; a stream that slowed down must not wait long.
            if (wanted > *set + *set / 4 || wanted < *set / 2)
                && socket::set_wake_bytes(stream, wanted).is_ok()
            {
                *set = wanted;
            }
        }
    }

    /// Lets every byte wake its reader: the rest is short.
    pub(super) fn hurry(&mut self) {
        for (stream, set) in self.streams.iter().zip(&mut self.set) {
            if *set > 1 && socket::set_wake_bytes(stream, 1).is_ok() {
                *set = 1;
            }
        }
    }
}

/// Samples what was read.
struct Sampler<'a> {
    duration: Duration,
    series: Series,
    wakes: Wakes<'a>,
}

impl Watchdog for Sampler<'_> {
    fn start(&mut self, now: Instant) {
        self.series = Series::new(now, self.duration, Totals::default());
    }

    fn tick(&mut self, crew: &Crew) -> u64 {
        let (now, bytes) = read_at(|| crew.bytes());
        if self.series.is_open() {
            self.series.push(now, Totals { bytes, ..Totals::default() });
            self.wakes.adapt(now, bytes);
        } else {
            self.wakes.hurry();
        }
        bytes
    }
}

/// Bytes of one read.
pub(super) fn call_bytes(job: &Job<'_>, streams: usize) -> usize {
    let own = if streams > MANY { CALL_BYTES_MANY } else { CALL_BYTES };
    job.spec.tuning.write_bytes.map_or(own, |bytes| own.max(bytes as usize))
}

/// Runs the receiving end.
pub(super) fn receive(
    job: &Job<'_>,
    plan: Plan,
    streams: &[TcpStream],
    methods: &Methods,
    report: &mut LoadReport,
) -> Result<(), LoadError> {
    let method = methods.receive;
    let placement = Placement::of(&job.spec.tuning.pin, job.spec.bind);
    let call_bytes = call_bytes(job, streams.len());
    report.way = Some(TransferMethod {
        name: method.name().to_owned(),
        call_bytes: call_bytes as u64,
        pages: "plain".to_owned(),
        cpus: placement.cpus(),
        remark: String::new(),
    });
    let drops = || streams.iter().map(|stream| socket::dropped(stream).ok()).sum::<Option<u64>>();
    let before = drops();
    let mut sampler = Sampler {
        duration: plan.duration,
        series: Series::new(Instant::now(), plan.duration, Totals::default()),
        wakes: Wakes::new(streams),
    };
    let plan = Plan { stall: plan.stall + STALL_EXTRA, ..plan };
    let (mut ends, kept) = job.account_aside(|| {
        crew::run(job, plan, streams, &mut sampler, |crew, index, stream| {
            placement.take(index, false);
            read_to_end(crew, index, stream, method, call_bytes)
        })
    });
    if let Some(method) = &mut report.way {
        method.cpus = placement.cpus();
    }
    report.bytes = ends.iter().map(|end| end.bytes).sum();
    let first = ends.iter().filter_map(|end| end.span).map(|span| span.0).min();
    let last = ends.iter().filter_map(|end| end.span).map(|span| span.1).max();
    report.elapsed_s = first.zip(last).map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    report.series = sampler.series.finish();
    report.socket_drops = drops().zip(before).map(|(now, then)| now.saturating_sub(then));
    let mut end = end_state(streams, &ends);
    end.mss = ends.iter().map(|end| end.info.rcv_mss).max().unwrap_or(0);
    report.tcp = Some(end);
    kept.and_then(|()| verdict(&mut ends))?;
    placement.verdict()?;
    report.drained = true;
    Ok(())
}

/// Pulls until the stream ends or everything that is to come has come; true when the stream ended.
pub(super) fn pull_all(
    crew: &Crew,
    index: usize,
    stream: &TcpStream,
    beside: bool,
    pull: &mut dyn Pull,
    end: &mut StreamEnd,
) -> bool {
    let mut follower = Follower::new(beside);
    while !crew.is_aborted() && !crew.has_all() {
        match pull.pull(stream) {
            Ok(0) => return true,
            Ok(length) => {
                crew.add(index, length);
                let now = Instant::now();
                end.span = Some((end.span.map_or(now, |span| span.0), now));
                follower.follow(stream, now);
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                end.error = Some(error);
                return false;
            }
        }
    }
    false
}

/// Reads one stream to its end and sends the count.
fn read_to_end(
    crew: &Crew,
    index: usize,
    stream: &TcpStream,
    method: &'static dyn ReceiveMethod,
    call_bytes: usize,
) -> StreamEnd {
    let mut end = StreamEnd::default();
    let mut pull = method.open(call_bytes);
    let ended = pull_all(crew, index, stream, method.is_beside(), pull.as_mut(), &mut end);
    end.info = tcp_info::read(stream).unwrap_or_default();
    end.bytes = crew.bytes_of(index);
    end.checksum = pull.checksum();
    if ended {
        end.error = send_count(crew, stream, Tail { bytes: end.bytes, checksum: end.checksum }).err();
    }
    end
}

/// Sends the count and stays until the sender has it and closed: an early close would destroy it in transit.
fn send_count(crew: &Crew, mut stream: &TcpStream, tail: Tail) -> std::io::Result<()> {
    stream.write_all(&tail.to_bytes())?;
    let mut arrived = None;
    while !crew.is_aborted() {
        if socket::wait(&[stream.as_fd()], Ready::Closed, SLICE)? {
            return Ok(());
        }
        // A family that does not report unacknowledged bytes delivers at once.
        if arrived.is_none() && socket::unacknowledged(stream).unwrap_or(0) == 0 {
            arrived = Some(Instant::now());
        }
        if arrived.is_some_and(|at: Instant| at.elapsed() >= RESET_WAIT) {
            return Ok(());
        }
    }
    Ok(())
}
