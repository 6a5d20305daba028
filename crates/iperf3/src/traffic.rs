//! The streams of a running test: starts their threads, samples them, ends them.
//!
//! What comes in: connected sockets and the parameters. What goes out: intervals, and this end's counts. It
//! never speaks on the control connection.

mod stream;

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use linerate_sys::{cpu, socket, tcp_info};

use super::board::Board;
use super::parameters::{DataDirection, Parameters};
use super::record::{Extremes, Lane, LaneEnd, Omitted, RecordInterval, StreamCount, TestRecord};
use super::results::{Results, StreamResult, stream_ids};
use super::streams::{self, Pace, Wire};

use stream::{Snapshot, Stream};

/// Receivers get at most so long to take what is in flight when a test is over.
pub(super) const DRAIN_MAX: Duration = Duration::from_secs(1);

/// Intervals that are kept; a longer test keeps its beginning.
const INTERVALS_MAX: usize = 100_000;

/// The streams of a test.
pub(super) struct Traffic {
    board: Arc<Board>,
    streams: Vec<Stream>,
    ids: Vec<u32>,
    pace: Pace,
    parameters: Parameters,
    server: bool,
    /// Since the board's origin, when the clocks were started.
    begun: Option<Duration>,
    /// When the senders got the order to stop.
    ended: Option<Duration>,
    /// Without what is omitted, when time ends the test.
    time: Duration,
    omitting: bool,
    every: Duration,
    next: Duration,
    last_end: Duration,
    cpu: (Duration, Duration),
}

impl Traffic {
    /// For a test; `every` is the length of an interval (zero for none), `block` what is sent at once.
    /// `cpu` is where its threads run.
    pub(super) fn new(
        parameters: &Parameters,
        server: bool,
        block: u32,
        every: Duration,
        cpu: Option<u32>,
    ) -> Self {
        // A server counts down only where its client cannot be left waiting for what was lost.
        let bounded = !server || parameters.protocol == super::parameters::Iperf3Protocol::Tcp;
        Self {
            board: Arc::new(Board::new(parameters, bounded)),
            streams: Vec::new(),
            ids: stream_ids(parameters.streams()),
            pace: Pace {
                block: block as usize,
                rate_bps: parameters.rate_bps,
                burst: parameters.burst,
                wide: parameters.udp_counters_64bit,
                zerocopy: parameters.zerocopy,
                gsro: parameters.gsro,
                cpu,
            },
            parameters: parameters.clone(),
            server,
            begun: None,
            ended: None,
            time: Duration::from_secs(parameters.time_s.into()),
            omitting: parameters.omit_s > 0,
            every,
            next: Duration::MAX,
            last_end: Duration::ZERO,
            cpu: cpu::process_times(),
        }
    }

    /// A finer time than the whole seconds that travel.
    pub(super) fn set_time(&mut self, time: Duration) {
        self.time = time;
    }

    /// Whether the next stream is one on which this end sends. A client sends on the first half of a test in
    /// both directions.
    pub(super) fn next_sends(&self) -> bool {
        let first_half = self.streams.len() < self.parameters.parallel as usize;
        match self.parameters.direction {
            DataDirection::Forward => !self.server,
            DataDirection::Reverse => self.server,
            DataDirection::Both => first_half != self.server,
        }
    }

    /// Streams that are still to come.
    pub(super) fn missing(&self) -> usize {
        self.ids.len() - self.streams.len()
    }

    /// Takes the next stream.
    pub(super) fn add(&mut self, wire: Wire) -> io::Result<()> {
        let (socket, local, peer) = match &wire {
            Wire::Tcp(stream) => (stream.as_raw_fd(), stream.local_addr()?, stream.peer_addr()?),
            Wire::Udp(udp) => (udp.as_raw_fd(), udp.local_addr()?, udp.peer_addr()?),
        };
        let id = self.ids[self.streams.len()];
        let sends = self.next_sends();
        self.streams.push(Stream {
            lane: Lane { id, sends, socket, local, peer },
            wire,
            meter: Arc::default(),
            thread: None,
            base: Snapshot::default(),
            last: Snapshot::default(),
            extremes: Extremes::default(),
            rtt_sum_us: 0,
            rtt_samples: 0,
        });
        Ok(())
    }

    pub(super) fn lanes(&self) -> Vec<Lane> {
        self.streams.iter().map(|stream| stream.lane.clone()).collect()
    }

    /// Buffers of the first stream as the kernel counts them: send, receive.
    pub(super) fn buffers(&self) -> (u64, u64) {
        let read = |wire: &Wire| match wire {
            Wire::Tcp(stream) => (socket::send_buffer(&**stream), socket::receive_buffer(&**stream)),
            Wire::Udp(udp) => (socket::send_buffer(&**udp), socket::receive_buffer(&**udp)),
        };
        let (send, receive) = self.streams.first().map_or((Ok(0), Ok(0)), |stream| read(&stream.wire));
        (send.unwrap_or(0), receive.unwrap_or(0))
    }

    /// Congestion control of the first stream.
    pub(super) fn congestion(&self) -> Option<String> {
        match &self.streams.first()?.wire {
            Wire::Tcp(stream) => tcp_info::congestion(&**stream).ok(),
            Wire::Udp(_) => None,
        }
    }

    /// Starts clocks and threads.
    pub(super) fn go(&mut self) -> io::Result<()> {
        for stream in &mut self.streams {
            stream.last = stream.read().0;
            stream.base = stream.last;
        }
        let now = self.board.now();
        self.begun = Some(now);
        self.last_end = Duration::ZERO;
        self.next = if self.every.is_zero() { Duration::MAX } else { self.every };
        self.cpu = cpu::process_times();
        for stream in &mut self.streams {
            let thread =
                streams::start(&stream.wire, stream.lane.sends, self.pace, &self.board, &stream.meter)?;
            stream.thread = Some(thread);
        }
        Ok(())
    }

    /// Since the start; zero before it.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| self.board.now().saturating_sub(begun))
    }

    fn omit(&self) -> Duration {
        Duration::from_secs(self.parameters.omit_s.into())
    }

    /// What ended by itself, or has to: time, bytes or blocks. Only a client asks.
    pub(super) fn is_enough(&self) -> bool {
        if self.parameters.by_time() {
            // Without a time it goes on until it is interrupted.
            return !self.time.is_zero() && self.elapsed() >= self.omit() + self.time;
        }
        if self.omitting {
            return false;
        }
        let all = |sends: bool| self.streams.iter().filter(move |stream| stream.lane.sends == sends);
        // What was taken from the budget must also be written.
        let sent = self.board.is_spent() && all(true).all(|s| s.meter.ended.load(Ordering::Relaxed));
        if sent && all(true).next().is_some() {
            return true;
        }
        let got = |pick: fn(&Snapshot) -> u64| {
            all(false).map(|s| pick(&s.read().0).saturating_sub(pick(&s.base))).sum::<u64>()
        };
        let (bytes, blocks) = (self.parameters.bytes, self.parameters.blocks);
        let block = self.pace.block.max(1) as u64;
        (bytes > 0 && got(|s| s.bytes) >= bytes) || (blocks > 0 && got(|s| s.bytes) / block >= blocks)
    }

    /// Whether every thread has ended.
    pub(super) fn is_over(&self) -> bool {
        self.streams.iter().all(|stream| stream.meter.ended.load(Ordering::Relaxed))
    }

    /// Time of the last byte of any stream, since the start.
    pub(super) fn last_byte(&self) -> Duration {
        let last = |stream: &Stream| Duration::from_micros(stream.meter.last_us.load(Ordering::Relaxed));
        let begun = self.begun.unwrap_or_default();
        self.streams.iter().map(last).max().unwrap_or_default().saturating_sub(begun)
    }

    /// What made a stream end by itself.
    pub(super) fn error(&self) -> Option<String> {
        self.streams.iter().find_map(|s| s.meter.error().map(|why| format!("stream {}: {why}", s.lane.id)))
    }

    /// When something is due next: the end of an interval or of what is omitted.
    pub(super) fn due(&self) -> Duration {
        let next = if self.omitting { self.next.min(self.omit()) } else { self.next };
        next.saturating_sub(self.elapsed())
    }

    /// An interval, when one has ended.
    pub(super) fn tick(&mut self) -> Option<RecordInterval> {
        let now = self.elapsed();
        if self.begun.is_none() || self.ended.is_some() {
            return None;
        }
        if self.omitting && now >= self.omit() {
            let interval = (self.next != Duration::MAX).then(|| self.take_interval(now));
            self.omitting = false;
            self.board.end_omitting();
            for stream in &mut self.streams {
                stream.last = stream.read().0;
                stream.base = stream.last;
                stream.meter.tally().jitter_s = 0.0;
            }
            self.last_end = now;
            if self.next != Duration::MAX {
                self.next = now + self.every;
            }
            return interval;
        }
        (now >= self.next).then(|| {
            // A late sample must not be followed by a hurried one.
            self.next = (self.next + self.every).max(now);
            self.take_interval(now)
        })
    }

    fn take_interval(&mut self, now: Duration) -> RecordInterval {
        let shift = if self.omitting { Duration::ZERO } else { self.omit() };
        let streams = self.streams.iter_mut().map(Stream::interval).collect();
        let interval = RecordInterval {
            start_s: self.last_end.saturating_sub(shift).as_secs_f64(),
            end_s: now.saturating_sub(shift).as_secs_f64(),
            omitted: self.omitting,
            streams,
        };
        self.last_end = now;
        interval
    }

    /// Senders stop; receivers go on until nothing comes any more. Gives the last interval.
    pub(super) fn drain(&mut self) -> Option<RecordInterval> {
        if self.ended.is_some() {
            return None;
        }
        let now = self.elapsed();
        self.ended = Some(now);
        self.board.drain();
        let short = now.saturating_sub(self.last_end) < self.every / 10;
        (!self.every.is_zero() && !short).then(|| self.take_interval(now))
    }

    /// Everything stops. Returns when all threads have ended, which takes a slice at most.
    pub(super) fn stop(&mut self) {
        self.ended.get_or_insert(self.begun.map_or(Duration::ZERO, |b| self.board.now().saturating_sub(b)));
        self.board.stop();
        for stream in &mut self.streams {
            if let Some(thread) = stream.thread.take() {
                // A panic of a stream's thread shows in its missing bytes.
                let _ = thread.join();
            }
        }
    }

    /// Waits for the senders, which have the order to stop: a slice at most.
    pub(super) fn join_senders(&mut self) {
        for stream in self.streams.iter_mut().filter(|stream| stream.lane.sends) {
            if let Some(thread) = stream.thread.take() {
                let _ = thread.join();
            }
        }
    }

    /// Waits until the peer's kernel has everything that we sent, within bounds: an iperf3 server stops
    /// reading at the end message, and what it had not read by then is missing in its count.
    pub(super) fn wait_until_acknowledged(&self) {
        let until = Instant::now() + DRAIN_MAX;
        let in_flight = |stream: &Stream| match &stream.wire {
            Wire::Tcp(tcp) if stream.lane.sends => socket::unacknowledged(tcp).is_ok_and(|bytes| bytes > 0),
            _ => false,
        };
        while self.streams.iter().any(in_flight) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Closes our sending streams of TCP, once the control connection has sent the end too.
    pub(super) fn close_senders(&self) {
        for stream in self.streams.iter().filter(|stream| stream.lane.sends) {
            if let Wire::Tcp(tcp) = &stream.wire {
                // The peer may have closed it already.
                let _ = tcp.shutdown(std::net::Shutdown::Write);
            }
        }
    }

    /// Takes what is in flight, within bounds, then stops.
    pub(super) fn run_dry(&mut self) {
        let until = Instant::now() + DRAIN_MAX;
        while !self.is_over() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.stop();
    }

    /// This end's counts of each stream, without what was omitted.
    pub(super) fn ends(&self) -> Vec<LaneEnd> {
        let ended = self.ended.unwrap_or_else(|| self.elapsed());
        let omit = if self.omitting { Duration::ZERO } else { self.omit() };
        self.streams
            .iter()
            .map(|stream| {
                let (now, info) = stream.read();
                let base = stream.base;
                let last = Duration::from_micros(stream.meter.last_us.load(Ordering::Relaxed))
                    .saturating_sub(self.begun.unwrap_or_default());
                // A receiver counts until its last byte, which may come after the end.
                let until = if stream.lane.sends { ended } else { ended.max(last) };
                let side = StreamCount {
                    bytes: now.bytes.saturating_sub(base.bytes),
                    seconds: until.saturating_sub(omit).as_secs_f64(),
                    retransmits: info.map(|_| now.retransmits.saturating_sub(base.retransmits)),
                    packets: now.packets.saturating_sub(base.packets),
                    lost: now.tally.lost.saturating_sub(base.tally.lost).max(0),
                    out_of_order: now.tally.out_of_order.saturating_sub(base.tally.out_of_order),
                    jitter_s: now.tally.jitter_s,
                };
                let (sent, received) = if stream.lane.sends {
                    (side, StreamCount::default())
                } else {
                    (StreamCount::default(), side)
                };
                LaneEnd { sent, received, extremes: stream.extremes, info }
            })
            .collect()
    }

    /// What was omitted, by stream.
    pub(super) fn omitted(&self) -> Vec<Omitted> {
        let of = |s: &Stream| Omitted { packets: s.base.packets, lost: s.base.tally.lost };
        self.streams.iter().map(of).collect()
    }

    /// What the threads of the streams took: running, and waiting for a CPU. Known when they have ended.
    pub(super) fn costs(&self) -> cpu::ThreadTimes {
        self.board.costs()
    }

    /// CPU of this process since the start: all, user, system; percent of one CPU.
    pub(super) fn cpu_percent(&self) -> [f64; 3] {
        let wall = self.elapsed().as_secs_f64().max(1e-3);
        let (user, system) = cpu::process_times();
        let share = |now: Duration, then: Duration| now.saturating_sub(then).as_secs_f64() / wall * 100.0;
        let (user, system) = (share(user, self.cpu.0), share(system, self.cpu.1));
        [user + system, user, system]
    }

    /// The message with this end's counts.
    pub(super) fn results(&self, record: &TestRecord) -> Results {
        let streams =
            self.streams.iter().zip(&record.ends).zip(self.omitted()).map(|((stream, end), omitted)| {
                let own = if stream.lane.sends { end.sent } else { end.received };
                StreamResult {
                    id: stream.lane.id,
                    bytes: own.bytes,
                    retransmits: own.retransmits.map_or(-1, |count| count as i64),
                    jitter_s: own.jitter_s,
                    errors: own.lost + omitted.lost,
                    omitted_errors: Some(omitted.lost),
                    packets: (own.packets + omitted.packets) as i64,
                    omitted_packets: Some(omitted.packets as i64),
                    end_s: own.seconds,
                }
            });
        let sends = self.streams.iter().any(|stream| stream.lane.sends);
        Results {
            cpu_percent: record.cpu_percent,
            sender_has_retransmits: match (sends, record.is_udp()) {
                (false, _) => -1,
                (true, udp) => i64::from(!udp),
            },
            congestion: record.congestion.clone(),
            streams: streams.collect(),
            server_output: record.server_output.clone(),
        }
    }

    /// Keeps an interval in the record.
    pub(super) fn keep(record: &mut TestRecord, interval: RecordInterval) {
        if record.intervals.len() < INTERVALS_MAX {
            record.intervals.push(interval);
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop();
    }
}
