//! The sending end of a TCP load.
//!
//! What comes in: proven streams. What goes out: the report of the sender, with the state of the connections
//! sampled all along.

use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crc32fast::Hasher;
use linerate_model::load::{LoadReport, TransferMethod};
use linerate_sys::cpu;
use linerate_sys::socket;
use linerate_sys::stream::StreamKind;
use linerate_sys::tcp_info::{self, TcpInfo};

use super::crew::{self, Crew, Watchdog};
use super::inside::{self, Recorder};
use super::methods::Methods;
use super::placement::Placement;
use super::plan::Plan;
use super::send::content::Content;
use super::send::method::SendMethod;
use super::stream_end::{StreamEnd, Tail, end_state, verdict};
use crate::job::{Job, LoadError, is_passing};
use crate::sampler::{Series, Totals, read_at};

/// A queue of unsent bytes that takes longer than this to drain is kept from growing, or the end of a slow
/// test would be spent on draining it. Nothing of the kind happens on a path that runs well.
const UNSENT_TIME_MAX: f64 = 0.1;

/// To what it is limited then: enough to keep the path busy between two wake-ups of the sender.
const UNSENT_TIME: f64 = 0.05;
const UNSENT_BYTES_MIN: u32 = 64 * 1024;

/// Reading the state of many connections takes its time: the pause after it is so many times as long, so that
/// it never takes more than half a percent of one CPU.
const PAUSE_TIMES: u32 = 200;

/// Samples the connections.
struct Sampler<'a> {
    streams: &'a [TcpStream],
    kind: StreamKind,
    /// State when the transfer began: the proofs are not part of it.
    base: Vec<TcpInfo>,
    start: Instant,
    duration: Duration,
    series: Series,
    recorder: Recorder,
    in_flight_max: u64,
    window_max: u64,
    last_bytes: u64,
    /// What the readings took, all and the last one.
    took: Duration,
    last_took: Duration,
}

impl Watchdog for Sampler<'_> {
    fn start(&mut self, now: Instant) {
        self.start = now;
        self.series = Series::new(now, self.duration, Totals::default());
    }

    fn tick(&mut self, crew: &Crew) -> u64 {
        let before = cpu::thread_running();
        let (now, infos) = read_at(|| {
            self.streams.iter().map(|stream| tcp_info::read(stream).unwrap_or_default()).collect::<Vec<_>>()
        });
        let totals = self.totals(&infos, crew);
        self.last_bytes = self.last_bytes.max(totals.bytes);
        for info in &infos {
            self.in_flight_max = self.in_flight_max.max(info.in_flight_bytes());
            let window = info.snd_wnd.unwrap_or(0);
            self.window_max = self.window_max.max(u64::from(window));
        }
        if self.series.is_open() {
            self.series.push(now, totals);
            self.recorder.record(now.saturating_duration_since(self.start), &infos);
            self.limit_unsent(now, &infos);
        }
        self.last_took = cpu::thread_running().saturating_sub(before);
        self.took += self.last_took;
        totals.bytes
    }

    fn pause(&self, interval: Duration) -> Duration {
        interval.max(self.last_took * PAUSE_TIMES)
    }
}

impl<'a> Sampler<'a> {
    fn new(streams: &'a [TcpStream], plan: Plan) -> Self {
        let base: Vec<TcpInfo> =
            streams.iter().map(|stream| tcp_info::read(stream).unwrap_or_default()).collect();
        let (start, duration) = (Instant::now(), plan.duration);
        Self {
            streams,
            kind: plan.kind,
            base,
            start,
            duration,
            series: Series::new(start, duration, Totals::default()),
            recorder: Recorder::new(streams.len(), duration, plan.interval),
            in_flight_max: 0,
            window_max: 0,
            last_bytes: 0,
            took: Duration::ZERO,
            last_took: Duration::ZERO,
        }
    }

    fn totals(&self, infos: &[TcpInfo], crew: &Crew) -> Totals {
        let mut totals = Totals::default();
        for (index, (info, base)) in infos.iter().zip(&self.base).enumerate() {
            let acked = info.bytes_acked.zip(base.bytes_acked).filter(|_| self.kind == StreamKind::Tcp);
            totals.bytes += if let Some((now, then)) = acked {
                now.saturating_sub(then)
            } else {
                // A kernel that does not count acknowledged bytes, or counts those of one path of several:
                // what was written and is no longer queued.
                let queued = socket::unacknowledged(&self.streams[index]).unwrap_or(0);
                crew.bytes_of(index).saturating_sub(queued)
            };
            totals.retransmits += u64::from(info.total_retrans.saturating_sub(base.total_retrans));
        }
        if let Some(first) = infos.first() {
            totals.rtt_us = f64::from(first.rtt_us);
            totals.cwnd = first.snd_cwnd;
            totals.delivery_bps = first.delivery_rate.unwrap_or(0) as f64 * 8.0;
        }
        totals
    }

    fn limit_unsent(&self, now: Instant, infos: &[TcpInfo]) {
        let elapsed_s = (now - self.start).as_secs_f64();
        if elapsed_s < UNSENT_TIME_MAX {
            return;
        }
        for ((stream, info), base) in self.streams.iter().zip(infos).zip(&self.base) {
            let (Some(acked), Some(unsent)) = (info.bytes_acked, info.notsent_bytes) else { continue };
            let rate = acked.saturating_sub(base.bytes_acked.unwrap_or(0)) as f64 / elapsed_s;
            if unsent > UNSENT_BYTES_MIN && f64::from(unsent) > rate * UNSENT_TIME_MAX {
                // Without it the end only takes longer.
                let _ = socket::set_unsent_bytes(stream, UNSENT_BYTES_MIN.max((rate * UNSENT_TIME) as u32));
            }
        }
    }
}

/// What the threads of one transfer send, and how.
pub(super) struct Sending {
    method: &'static dyn SendMethod,
    content: Content,
    placement: Placement,
    alone: bool,
    verify: bool,
    /// Most that one stream sends, bytes.
    stream_bytes_max: u64,
}

impl Sending {
    /// Makes the content and tries the method on one stream.
    pub(super) fn new(job: &Job<'_>, methods: &Methods, streams: &[TcpStream]) -> Result<Self, LoadError> {
        let method = methods.send;
        let bytes = job.spec.tuning.write_bytes.map_or(method.call_bytes(), |bytes| bytes as usize);
        let content = Content::new(bytes).map_err(LoadError::io("get memory to send from"))?;
        if let Some(first) = streams.first() {
            method.open(&content, first).map_err(|error| LoadError::Option {
                what: "send method",
                value: method.name().to_owned(),
                reason: error.to_string(),
            })?;
        }
        let stream_bytes_max =
            job.spec.tuning.bytes_max.map_or(u64::MAX, |bytes| bytes / streams.len().max(1) as u64);
        let placement = Placement::of(&job.spec.tuning.pin, job.spec.bind);
        Ok(Self {
            method,
            content,
            placement,
            alone: methods.receive.is_beside(),
            verify: job.spec.tuning.verify,
            stream_bytes_max,
        })
    }

    /// Sends until the time is over.
    pub(super) fn push_all_the_time(&self, crew: &Crew, index: usize, stream: &TcpStream) -> StreamEnd {
        let begun = Instant::now();
        let mut end = StreamEnd::default();
        self.placement.take(index, self.alone);
        match self.method.open(&self.content, stream) {
            Err(error) => end.error = Some(error),
            Ok(mut push) => {
                let (mut position, mut hasher) = (0_u64, Hasher::new());
                // A thread that got no CPU in all the time sends once all the same: no bytes would mean a
                // dead path.
                let is_full = |position: u64| {
                    position.saturating_add(self.content.len() as u64) > self.stream_bytes_max
                };
                while end.error.is_none()
                    && !crew.is_aborted()
                    && (position == 0 || !(crew.is_over() || is_full(position)))
                {
                    match push.push(stream, position) {
                        Ok(length) => {
                            if self.verify {
                                hasher.update(&self.content.from(position)[..length]);
                            }
                            position += length as u64;
                            crew.add(index, length);
                        }
                        Err(error) if is_passing(&error) => {}
                        Err(error) => end.error = Some(error),
                    }
                }
                end.bytes = position;
                end.checksum = if self.verify { hasher.finalize() } else { 0 };
                end.remark = push.remark();
            }
        }
        end.span = Some((begun, Instant::now()));
        end
    }
}

/// Runs the sending end.
pub(super) fn send(
    job: &Job<'_>,
    plan: Plan,
    streams: &[TcpStream],
    methods: &Methods,
    report: &mut LoadReport,
) -> Result<(), LoadError> {
    let sending = Sending::new(job, methods, streams)?;
    let mut sampler = Sampler::new(streams, plan);
    let (mut ends, kept) = job.account_aside(|| {
        crew::run(job, plan, streams, &mut sampler, |crew, index, stream| {
            let end = sending.push_all_the_time(crew, index, stream);
            finish(crew, stream, end)
        })
    });
    let last = ends.iter().filter_map(|end| end.span).map(|span| span.1).max();
    report.elapsed_s =
        last.unwrap_or_else(Instant::now).saturating_duration_since(sampler.start).as_secs_f64();
    report.way = Some(TransferMethod {
        name: sending.method.name().to_owned(),
        call_bytes: sending.content.len() as u64,
        pages: sending.content.pages().name().to_owned(),
        cpus: sending.placement.cpus(),
        remark: ends.iter().map(|end| &end.remark).find(|r| !r.is_empty()).cloned().unwrap_or_default(),
    });
    let acked = sampler.last_bytes;
    for (end, base) in ends.iter_mut().zip(&sampler.base) {
        since(&mut end.info, base);
    }
    let mut end = end_state(streams, &ends);
    end.mss = ends.iter().map(|end| end.info.snd_mss).max().unwrap_or(0);
    end.unacked_bytes_max = sampler.in_flight_max;
    end.snd_wnd_max = sampler.window_max;
    report.series = sampler.series.finish();
    report.sampling_s = Some(sampler.took.as_secs_f64());
    let readings = sampler.recorder.finish();
    report.started_ms = inside::started_ms(&readings);
    report.inside = inside::pack(&readings);
    report.tcp = Some(end);
    let confirmed: Option<u64> = ends.iter().map(|end| end.tail.map(|tail| tail.bytes)).sum();
    // What the receiver did not confirm counts only as far as its kernel acknowledged it.
    let sent: u64 = ends.iter().map(|end| end.bytes).sum();
    report.bytes = confirmed.unwrap_or_else(|| acked.min(sent));
    kept?;
    verdict(&mut ends)?;
    sending.placement.verdict()?;
    if ends.iter().any(|end| end.tail.map(|tail| tail.bytes) != Some(end.bytes)) {
        return Err(LoadError::BytesDiffer { sent, received: confirmed.unwrap_or(0) });
    }
    report.drained = true;
    if job.spec.tuning.verify {
        let differ =
            ends.iter().filter(|end| end.tail.map(|tail| tail.checksum) != Some(end.checksum)).count();
        report.verified_streams = u16::try_from(ends.len() - differ).ok();
        if differ > 0 {
            return Err(LoadError::ContentDiffers { streams: differ });
        }
    }
    Ok(())
}

/// What a calibration did before is not part of the test.
fn since(info: &mut TcpInfo, base: &TcpInfo) {
    fn less<T: Copy>(now: Option<T>, then: Option<T>, minus: impl Fn(T, T) -> T) -> Option<T> {
        now.map(|now| then.map_or(now, |then| minus(now, then)))
    }
    info.total_retrans = info.total_retrans.saturating_sub(base.total_retrans);
    info.busy_time_us = less(info.busy_time_us, base.busy_time_us, u64::saturating_sub);
    info.rwnd_limited_us = less(info.rwnd_limited_us, base.rwnd_limited_us, u64::saturating_sub);
    info.sndbuf_limited_us = less(info.sndbuf_limited_us, base.sndbuf_limited_us, u64::saturating_sub);
    info.dsack_dups = less(info.dsack_dups, base.dsack_dups, u32::saturating_sub);
    info.delivered = less(info.delivered, base.delivered, u32::saturating_sub);
    info.delivered_ce = less(info.delivered_ce, base.delivered_ce, u32::saturating_sub);
    info.reord_seen = less(info.reord_seen, base.reord_seen, u32::saturating_sub);
}

/// Ends a stream and waits for the receiver's word.
fn finish(crew: &Crew, stream: &TcpStream, mut end: StreamEnd) -> StreamEnd {
    if end.error.is_none() && !crew.is_aborted() {
        match stream.shutdown(Shutdown::Write).and_then(|()| read_tail(crew, stream)) {
            Ok(tail) => end.tail = tail,
            Err(error) => end.error = Some(error),
        }
    }
    end.span = end.span.map(|(begun, _)| (begun, Instant::now()));
    end.info = tcp_info::read(stream).unwrap_or_default();
    end
}

fn read_tail(crew: &Crew, mut stream: &TcpStream) -> io::Result<Option<Tail>> {
    let mut bytes = [0; Tail::BYTES];
    let mut length = 0;
    while !crew.is_aborted() {
        match stream.read(&mut bytes[length..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => length += more,
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        if length == Tail::BYTES {
            return Ok(Some(Tail::of(bytes)));
        }
    }
    Ok(None)
}
