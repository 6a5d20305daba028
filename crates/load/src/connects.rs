//! Connections set up per second: connect, show the token, take one byte, reset.
//!
//! What comes in: threads, time, a number. What goes out: how many were made and how long each took. The
//! reset at the end leaves no TIME_WAIT at either end, and the number is bounded: the ephemeral ports are the
//! host's own. The receiver takes connections in as many threads; one that does not show the token gets no
//! answer, is closed, and holds up no other.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use linerate_model::connects::ConnectsEnd;
use linerate_model::kind::ConnectsPlan;
use linerate_model::load::{LoadReport, Role};
use linerate_sys::affinity;
use linerate_sys::socket::{self, Ready};

use crate::admission;
use crate::job::{Job, LoadError, SLICE, is_passing};
use crate::load::Load;
use crate::token::{STAMP_BYTES, same};
use crate::unproven::{self, ProofRead, QueueLimits, Unproven};

/// The load `connects`.
pub(crate) struct Connects;

/// Labels of what a connection shows: it counts, or it is the last.
const ONE: &str = "connects one";
const END: &str = "connects end";
/// Number of the connection and the stamp of it.
const SHOWN_BYTES: usize = 8 + STAMP_BYTES;
const ANSWER: u8 = b'!';

/// Longest life of one connection: the first packet of one is sent again after a second.
const ONE_MAX: Duration = Duration::from_secs(3);
/// Failures in a row of one thread after which it ends.
const FAILED_MAX: u32 = 10;
/// Without a last word, the receiver ends so long after the expected end.
const WITHOUT_END: Duration = Duration::from_secs(4);

impl Load for Connects {
    type Plan = ConnectsPlan;

    fn run(&self, job: &Job<'_>, plan: &ConnectsPlan, report: &mut LoadReport) -> Result<(), LoadError> {
        match job.spec.role {
            Role::Receiver => receive(job, *plan, report),
            Role::Sender { peer } => send(job, *plan, peer, report),
        }
    }
}

/// What the threads of an end share.
struct Shared {
    over: AtomicBool,
    /// Connections that were started (sender) or answered (receiver).
    number: AtomicU64,
}

/// Runs `work` in so many threads and gives their results.
fn crew<T: Send>(
    job: &Job<'_>,
    parallel: u16,
    work: impl Fn() -> Result<T, LoadError> + Sync,
) -> Result<Vec<T>, LoadError> {
    let work = &work;
    thread::scope(|scope| {
        let workers: Result<Vec<_>, LoadError> = (0..parallel)
            .map(|number| {
                Builder::new()
                    .name(format!("connects-{number}"))
                    .spawn_scoped(scope, move || job.account(work))
                    .map_err(LoadError::io("start a thread"))
            })
            .collect();
        let broken =
            || Err(LoadError::Io { what: "run a thread", source: std::io::Error::other("it panicked") });
        workers?.into_iter().map(|worker| worker.join().unwrap_or_else(|_| broken())).collect()
    })
}

fn shown(job: &Job<'_>, label: &str, number: u64) -> [u8; SHOWN_BYTES] {
    let mut bytes = [0; SHOWN_BYTES];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..].copy_from_slice(&job.token.stamp(label, &number.to_be_bytes()));
    bytes
}

fn receive(job: &Job<'_>, plan: ConnectsPlan, report: &mut LoadReport) -> Result<(), LoadError> {
    // Strangers take descriptors too. If the limit cannot be raised, the oldest of them leaves earlier.
    let _ = affinity::raise_open_files();
    let listener = TcpListener::bind((job.spec.bind, 0)).map_err(LoadError::io("listen"))?;
    listener.set_nonblocking(true).map_err(LoadError::io("listen without blocking"))?;
    let port = listener.local_addr().map_err(LoadError::io("read the address of the listener"))?.port();
    (job.control.listening)(port);
    let shared = Shared { over: AtomicBool::new(false), number: AtomicU64::new(0) };
    let begun = Instant::now();
    let life = Duration::from_millis(plan.duration_ms.into()) + WITHOUT_END;
    let result = crew(job, plan.parallel, || {
        let mut taker = Taker::new(plan);
        let result = taker.run(job, &shared, &listener, (begun, life));
        job.met_connections(taker.candidates.unproven(), 0);
        result
    });
    report.elapsed_s = begun.elapsed().as_secs_f64();
    let done = shared.number.load(Ordering::Relaxed);
    report.connects = Some(ConnectsEnd { done, ..ConnectsEnd::default() });
    report.bytes = done;
    result?;
    if done == 0 && !shared.over.load(Ordering::Relaxed) {
        return Err(LoadError::NobodyCame { waited_ms: begun.elapsed().as_millis(), got: 0, wanted: 1 });
    }
    Ok(())
}

/// A connection that has not shown the token yet.
struct Candidate {
    stream: TcpStream,
    shown: [u8; SHOWN_BYTES],
    length: usize,
}

/// One thread of the receiver. It never waits for a single connection: one that stays silent would hold up
/// the others.
struct Taker {
    candidates: Unproven<Candidate>,
    /// Those that have their byte: the sender resets them, and our own end must not overtake that.
    answered: VecDeque<(Instant, TcpStream)>,
    answered_max: usize,
}

impl Taker {
    fn new(plan: ConnectsPlan) -> Self {
        let parallel = usize::from(plan.parallel);
        // All that the sender has open at the same time may come to one thread; the strangers are for all
        // threads.
        let limits = QueueLimits::data_port(0);
        let strangers = (limits.capacity / parallel).max(8);
        let limits = QueueLimits { capacity: parallel + strangers, life: ONE_MAX, ..limits };
        Self { candidates: Unproven::new(limits), answered: VecDeque::new(), answered_max: 2 * parallel }
    }

    fn run(
        &mut self,
        job: &Job<'_>,
        shared: &Shared,
        listener: &TcpListener,
        (begun, life): (Instant, Duration),
    ) -> Result<(), LoadError> {
        while !shared.over.load(Ordering::Relaxed) {
            let waited = begun.elapsed();
            let anyone = !self.candidates.is_empty() || shared.number.load(Ordering::Relaxed) > 0;
            if waited >= life || (!anyone && unproven::is_over(waited, false)) {
                break;
            }
            job.check("taking connections")?;
            let sockets: Vec<BorrowedFd<'_>> =
                (self.candidates.takes().then(|| listener.as_fd()).into_iter())
                    .chain(self.candidates.iter().map(|candidate| candidate.stream.as_fd()))
                    .chain(self.answered.iter().map(|(_, stream)| stream.as_fd()))
                    .collect();
            socket::wait(&sockets, Ready::Readable, SLICE).map_err(LoadError::io("wait for connections"))?;
            let now = Instant::now();
            self.forget(now);
            // One at a time: the other threads take the next ones.
            let mut next = Some(|| listener.accept());
            let accept = || next.take().map_or_else(|| Err(ErrorKind::WouldBlock.into()), |accept| accept());
            self.candidates
                .fill(now, accept, |_, (stream, _)| Candidate::new(stream))
                .map_err(LoadError::io("accept connections"))?;
            while let Some((candidate, label)) =
                self.candidates.next_proven(now, |candidate| candidate.poll(job))
            {
                self.take(shared, candidate.stream, label, now);
            }
        }
        Ok(())
    }

    /// One connection that showed the token. Whatever goes wrong with it, the sender counts.
    fn take(&mut self, shared: &Shared, mut stream: TcpStream, label: &str, now: Instant) {
        if label == END {
            shared.over.store(true, Ordering::Relaxed);
        } else if stream.write_all(&[ANSWER]).is_ok() {
            shared.number.fetch_add(1, Ordering::Relaxed);
            self.answered.push_back((now, stream));
        }
    }

    /// Closes what the sender has reset, or should have.
    fn forget(&mut self, now: Instant) {
        self.answered.retain_mut(|(since, stream)| {
            let waits = matches!(stream.read(&mut [0; 1]), Err(error) if is_passing(&error));
            waits && now.saturating_duration_since(*since) < ONE_MAX
        });
        while self.answered.len() > self.answered_max {
            self.answered.pop_front();
        }
    }
}

impl Candidate {
    fn new(stream: TcpStream) -> Option<Self> {
        stream.set_nonblocking(true).and_then(|()| socket::reset_on_close(&stream)).ok()?;
        Some(Self { stream, shown: [0; SHOWN_BYTES], length: 0 })
    }

    /// The label that it showed.
    fn poll(&mut self, job: &Job<'_>) -> ProofRead<&'static str> {
        while self.length < SHOWN_BYTES {
            match self.stream.read(&mut self.shown[self.length..]) {
                Ok(0) => return ProofRead::Wrong,
                Ok(length) => self.length += length,
                Err(error) if is_passing(&error) => return ProofRead::Part,
                Err(_) => return ProofRead::Wrong,
            }
        }
        let (number, stamp) = self.shown.split_at(8);
        let label = [ONE, END].into_iter().find(|label| same(stamp, &job.token.stamp(label, number)));
        label.map_or(ProofRead::Wrong, ProofRead::Proof)
    }
}

fn send(
    job: &Job<'_>,
    plan: ConnectsPlan,
    peer: SocketAddr,
    report: &mut LoadReport,
) -> Result<(), LoadError> {
    let shared = Shared { over: AtomicBool::new(false), number: AtomicU64::new(0) };
    let begun = Instant::now();
    let time = Duration::from_millis(plan.duration_ms.into());
    let ends = crew(job, plan.parallel, || {
        let mut end = ConnectsEnd::default();
        let mut in_a_row = 0;
        while begun.elapsed() < time && in_a_row < FAILED_MAX {
            job.check("making connections")?;
            let number = shared.number.fetch_add(1, Ordering::Relaxed);
            if number >= u64::from(plan.count_max) {
                break;
            }
            match one(job, peer, ONE, number, &mut end) {
                Ok(()) => in_a_row = 0,
                Err(LoadError::Stopped) => return Err(LoadError::Stopped),
                Err(error) => {
                    in_a_row += 1;
                    end.failed += 1;
                    // Between which ends is known.
                    let reason = match error {
                        LoadError::Connect { reason, .. } => reason,
                        other => other.to_string(),
                    };
                    end.first_failure.get_or_insert(reason);
                }
            }
        }
        Ok(end)
    });
    report.elapsed_s = begun.elapsed().as_secs_f64();
    // Nothing hangs on it: a receiver without an end message ends by itself.
    let _ = one(job, peer, END, 0, &mut ConnectsEnd::default());
    let mut all = ConnectsEnd::default();
    for end in ends? {
        all.done += end.done;
        all.failed += end.failed;
        all.connect_ns.merge(&end.connect_ns);
        all.whole_ns.merge(&end.whole_ns);
        all.first_failure = all.first_failure.or(end.first_failure);
    }
    report.bytes = all.done;
    let none = all.done == 0;
    let reason = all.first_failure.clone().unwrap_or_else(|| "no time for one".to_owned());
    report.connects = Some(all);
    if none {
        return Err(LoadError::Connect { peer, bind: job.spec.bind, reason });
    }
    Ok(())
}

/// One connection of the sender.
fn one(
    job: &Job<'_>,
    peer: SocketAddr,
    label: &str,
    number: u64,
    end: &mut ConnectsEnd,
) -> Result<(), LoadError> {
    let begun = Instant::now();
    let mut stream = admission::connect(job, peer, ONE_MAX, "making a connection")?;
    let connected = begun.elapsed();
    socket::reset_on_close(&stream).map_err(LoadError::io("prepare a connection"))?;
    stream.write_all(&shown(job, label, number)).map_err(LoadError::io("show the token"))?;
    loop {
        match stream.read(&mut [0; 1]) {
            Ok(1..) => break,
            // What ends the test is not answered.
            Ok(0) if label == END => return Ok(()),
            Ok(0) => {
                let source = std::io::ErrorKind::UnexpectedEof.into();
                return Err(LoadError::Io { what: "take the answer", source });
            }
            Err(error) if is_passing(&error) && begun.elapsed() < ONE_MAX => {
                job.check("waiting for an answer")?;
                socket::wait(&[stream.as_fd()], Ready::Readable, SLICE).map_err(LoadError::io("wait"))?;
            }
            Err(source) => return Err(LoadError::Io { what: "take the answer", source }),
        }
    }
    end.done += 1;
    end.connect_ns.record(connected.as_nanos() as u64);
    end.whole_ns.record(begun.elapsed().as_nanos() as u64);
    Ok(())
}
