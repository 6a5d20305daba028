//! The receiving end of a TCP load.
//!
//! What comes in: proven streams. What goes out: the report of the receiver. Bytes are taken out of the kernel without
//! copying them; their content is never looked at.

use std::io::Write;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_model::load::LoadReport;
use linerate_sys::socket::{self, Ready};
use linerate_sys::tcp_info;

use super::accept::{self, Proven};
use super::crew::{self, Crew, Keeper};
use super::{BUFFER_BYTES, GO, Plan, StreamEnd, end_state, is_passing, verdict};
use crate::job::{Job, LoadError, SLICE};
use crate::sampler::{Series, Totals, read_at};

/// A reader is woken for a 32nd of the receive buffer: rarely, yet what waits unread does not narrow the window that the
/// sender sees by more than 6 %. The upper limit is half a read.
const WAKE_SHARE: u64 = 32;
const WAKE_BYTES_MAX: u64 = (BUFFER_BYTES / 2) as u64;

/// After the sender's kernel has the count, its reset is waited for so long.
const RESET_WAIT: Duration = Duration::from_millis(250);

/// A receiver waits a little longer than a sender, so that the sender's reason is the one that is told.
const STALL_EXTRA: Duration = Duration::from_millis(300);

/// Samples what was read.
struct Sampler<'a> {
    streams: &'a [TcpStream],
    duration: Duration,
    series: Series,
    wake_bytes: Vec<u32>,
}

impl Keeper for Sampler<'_> {
    fn start(&mut self, now: Instant) {
        self.series = Series::new(now, self.duration, Totals::default());
    }

    fn tick(&mut self, crew: &Crew) -> u64 {
        let (now, bytes) = read_at(|| crew.bytes());
        if self.series.is_open() {
            self.series.push(now, Totals { bytes, ..Totals::default() });
            self.adapt_wake_bytes();
        }
        bytes
    }
}

impl Sampler<'_> {
    /// Follows the kernel's autotuning of the receive buffer.
    fn adapt_wake_bytes(&mut self) {
        for (stream, current) in self.streams.iter().zip(&mut self.wake_bytes) {
            let Ok(buffer) = socket::receive_buffer(stream) else { continue };
            let wanted = u32::try_from((buffer / WAKE_SHARE).min(WAKE_BYTES_MAX)).unwrap_or(1);
            if wanted > *current && socket::set_wake_bytes(stream, wanted).is_ok() {
                *current = wanted;
            }
        }
    }
}

/// Runs the receiving end.
pub(super) fn receive(job: &Job<'_>, plan: Plan, report: &mut LoadReport) -> Result<(), LoadError> {
    let proven = accept::accept(job, plan)?;
    for Proven { stream, nonce } in &proven {
        let mut stream = stream;
        stream.write_all(&job.token.stamp(GO, nonce)).map_err(LoadError::io("start a stream"))?;
    }
    let streams: Vec<TcpStream> = proven.into_iter().map(|proven| proven.stream).collect();
    let mut sampler = Sampler {
        streams: &streams,
        duration: plan.duration,
        series: Series::new(Instant::now(), plan.duration, Totals::default()),
        wake_bytes: vec![1; streams.len()],
    };
    let plan = Plan { stall: plan.stall + STALL_EXTRA, ..plan };
    let (mut ends, kept) = job.account(|| crew::run(job, plan, &streams, &mut sampler, read_to_end));
    report.bytes = ends.iter().map(|end| end.bytes).sum();
    let first = ends.iter().filter_map(|end| end.span).map(|span| span.0).min();
    let last = ends.iter().filter_map(|end| end.span).map(|span| span.1).max();
    report.elapsed_s = first.zip(last).map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    report.series = sampler.series.finish();
    let mut end = end_state(&streams, &ends);
    end.mss = ends.iter().map(|end| end.info.rcv_mss).max().unwrap_or(0);
    report.tcp = Some(end);
    kept.and_then(|()| verdict(&mut ends))
}

/// Reads one stream to its end and tells the count.
fn read_to_end(crew: &Crew, index: usize, stream: &TcpStream) -> StreamEnd {
    let mut end = StreamEnd::default();
    let mut room = vec![0; BUFFER_BYTES];
    while !crew.is_aborted() {
        match socket::receive_discarding(stream, &mut room) {
            Ok(0) => {
                end.info = tcp_info::read(stream).unwrap_or_default();
                end.bytes = crew.bytes_of(index);
                end.error = tell_count(crew, stream, end.bytes).err();
                return end;
            }
            Ok(length) => {
                crew.add(index, length);
                let now = Instant::now();
                end.span = Some((end.span.map_or(now, |span| span.0), now));
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                end.error = Some(error);
                break;
            }
        }
    }
    end.info = tcp_info::read(stream).unwrap_or_default();
    end.bytes = crew.bytes_of(index);
    end
}

/// Sends the count and stays until the sender has it and hung up: an early close would destroy it on the way.
fn tell_count(crew: &Crew, mut stream: &TcpStream, bytes: u64) -> std::io::Result<()> {
    stream.write_all(&bytes.to_be_bytes())?;
    let mut arrived = None;
    while !crew.is_aborted() {
        if socket::wait(&[stream.as_fd()], Ready::Closed, SLICE)? {
            return Ok(());
        }
        if arrived.is_none() && socket::unacknowledged(stream)? == 0 {
            arrived = Some(Instant::now());
        }
        if arrived.is_some_and(|at: Instant| at.elapsed() >= RESET_WAIT) {
            return Ok(());
        }
    }
    Ok(())
}
