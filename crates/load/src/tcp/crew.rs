//! The threads of a transfer, one per stream, and the clock that one more thread keeps for them.
//!
//! What comes in: the work on one stream, and what to do at every tick. What goes out: how each stream ended.
//! It bounds the transfer: the time of the test, no progress, the deadline, the stop flag.

use std::io;
use std::net::TcpStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use linerate_sys::cpu;

use super::plan::Plan;
use super::stream_end::StreamEnd;
use crate::job::{Job, LoadError};

/// What the threads of a transfer share.
pub(super) struct Crew {
    aborted: AtomicBool,
    /// End of the test; set when all workers are there, which is what they wait for. They check it
    /// themselves: on a machine with many more streams than CPUs the watchdog may be late.
    end: OnceLock<Instant>,
    done: AtomicUsize,
    /// Bytes moved by each stream.
    bytes: Vec<AtomicU64>,
    /// Receiver, in a turn: it is over when so many bytes came.
    target: AtomicU64,
    /// Something other than bytes moved: the count of a stream came.
    moved: AtomicBool,
    watchdog: Thread,
}

impl Crew {
    /// For the calling thread as watchdog of the clock.
    fn new(streams: usize) -> Self {
        Self {
            aborted: AtomicBool::new(false),
            end: OnceLock::new(),
            done: AtomicUsize::new(0),
            bytes: (0..streams).map(|_| AtomicU64::new(0)).collect(),
            target: AtomicU64::new(u64::MAX),
            moved: AtomicBool::new(false),
            watchdog: thread::current(),
        }
    }

    /// Whether everything is to be dropped.
    pub(super) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Whether no more data is to be sent.
    pub(super) fn is_over(&self) -> bool {
        self.is_aborted() || self.end.get().is_some_and(|&end| Instant::now() >= end)
    }

    /// Lets readers end when so many bytes came in all.
    pub(super) fn end_at(&self, bytes: u64) {
        self.target.store(bytes, Ordering::Relaxed);
    }

    /// Whether readers have all that is to come.
    pub(super) fn has_all(&self) -> bool {
        self.bytes() >= self.target.load(Ordering::Relaxed)
    }

    /// Whether the end of the readers is known.
    pub(super) fn knows_end(&self) -> bool {
        self.target.load(Ordering::Relaxed) != u64::MAX
    }

    /// Accounts bytes of a stream.
    pub(super) fn add(&self, stream: usize, bytes: usize) {
        self.bytes[stream].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes of one stream.
    pub(super) fn bytes_of(&self, stream: usize) -> u64 {
        self.bytes[stream].load(Ordering::Relaxed)
    }

    /// Bytes of all streams.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }

    fn wait_for_start(&self) {
        while self.end.get().is_none() && !self.is_aborted() {
            thread::park();
        }
    }

    fn leave(&self) {
        self.moved.store(true, Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::Release);
        self.watchdog.unpark();
    }
}

/// What is done by the thread that keeps the clock.
pub(super) trait Watchdog {
    /// Begins the series: the workers start now.
    fn start(&mut self, now: Instant);
    /// Takes a sample; returns the bytes that got through so far.
    fn tick(&mut self, crew: &Crew) -> u64;
    /// How long until the next tick, at least.
    fn pause(&self, interval: Duration) -> Duration {
        interval
    }
}

/// Runs `work` on every stream until all are done or a limit is reached; the ends of the streams come back in
/// any case.
pub(super) fn run<K: Watchdog>(
    job: &Job<'_>,
    plan: Plan,
    streams: &[TcpStream],
    watchdog: &mut K,
    work: impl Fn(&Crew, usize, &TcpStream) -> StreamEnd + Sync,
) -> (Vec<StreamEnd>, Result<(), LoadError>) {
    let crew = Crew::new(streams.len());
    let (crew, work) = (&crew, &work);
    thread::scope(|scope| {
        let mut workers = Vec::with_capacity(streams.len());
        let mut result = Ok(());
        for (index, stream) in streams.iter().enumerate() {
            let body = move || {
                crew.wait_for_start();
                let end = job.account(|| work(crew, index, stream));
                crew.leave();
                end
            };
            match thread::Builder::new().name(format!("stream-{index}")).spawn_scoped(scope, body) {
                Ok(worker) => workers.push(worker),
                Err(source) => {
                    result = Err(LoadError::Io { what: "start a thread", source });
                    break;
                }
            }
        }
        let nice = if streams.len() > 1 {
            // With more streams than CPUs the samples would come late; without the right to it they do. Only
            // now, for threads inherit it.
            cpu::prefer_thread().ok()
        } else {
            None
        };
        let start = || workers.iter().for_each(|worker| worker.thread().unpark());
        let kept = result.and_then(|()| {
            let now = Instant::now();
            watchdog.start(now);
            let end = *crew.end.get_or_init(|| now + plan.duration);
            start();
            keep_time(job, plan, crew, end, watchdog)
        });
        if kept.is_err() {
            crew.aborted.store(true, Ordering::Relaxed);
            start();
        }
        let broken =
            || StreamEnd { error: Some(io::Error::other("its thread panicked")), ..StreamEnd::default() };
        if let Some(nice) = nice {
            // The threads of what follows must not inherit it.
            let _ = cpu::set_nice(nice);
        }
        let ends = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| broken())).collect();
        (ends, kept)
    })
}

fn keep_time<K: Watchdog>(
    job: &Job<'_>,
    plan: Plan,
    crew: &Crew,
    end: Instant,
    watchdog: &mut K,
) -> Result<(), LoadError> {
    let mut next = Instant::now() + plan.interval;
    let (mut most, mut progress) = (0, Instant::now());
    loop {
        let now = Instant::now();
        if crew.done.load(Ordering::Acquire) == crew.bytes.len() {
            watchdog.tick(crew);
            return Ok(());
        }
        if now >= next {
            let through = watchdog.tick(crew);
            // The last interval ends with the time of the test.
            let pause = watchdog.pause(plan.interval);
            next = if now < end { end.min(now + pause) } else { now + pause };
            if through > most || crew.moved.swap(false, Ordering::Relaxed) {
                most = most.max(through);
                progress = now;
            }
            if now - progress >= plan.stall {
                return Err(LoadError::Stalled { bytes: most, waited_ms: (now - progress).as_millis() });
            }
        }
        job.check(if now < end { "moving data" } else { "waiting for the last bytes" })?;
        thread::park_timeout(next.saturating_duration_since(Instant::now()));
    }
}
