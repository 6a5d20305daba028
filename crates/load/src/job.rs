//! What every load needs of the outside: its spec, its time limits, its stop flag, and where its threads
//! account their CPU time; and the list of reasons for which a load ends early.
//!
//! What comes in: the spec and the caller's control. What goes out: yes or no, and errors that become a
//! report's `stopped`. It never touches a socket.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use linerate_model::kind::OutOfLimits;
use linerate_model::load::{LoadReport, LoadSpec, Strangers};
use linerate_sys::cpu::{self, CpuTicks, ThreadTimes};
use linerate_sys::place::{self, PlaceError};
use linerate_sys::root::Root;
use linerate_sys::socket;
use thiserror::Error;

use crate::token::Token;

/// How long any thread of a load waits at most before it checks its stop flag again.
pub(crate) const SLICE: Duration = Duration::from_millis(20);

/// Whether a socket error only means that nothing came, or could go, within a slice.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// How long a receiver waits for the first sign of its sender: the operator passes the port on in
/// milliseconds.
pub(crate) const FIRST_CONTACT: Duration = Duration::from_secs(3);

/// Moves the calling thread into a network namespace: `pid:1234`, `container:NAME`, a path.
pub fn enter(netns: &Path) -> Result<(), LoadError> {
    let path = place::resolve(&Root::live(), netns)
        .map_err(|e| LoadError::Place { place: netns.to_path_buf(), reason: e.into() })?;
    linerate_sys::netns::enter(&path).map_err(|source| LoadError::Namespace { path, source })
}

/// What the caller keeps in hand while a load runs.
pub struct LoadControl {
    /// Set to end the load early; it ends within about 50 ms.
    pub stop: Arc<AtomicBool>,
    /// Called once by a receiver, with the port on which it is ready.
    pub listening: Box<dyn Fn(u16) + Send + Sync>,
}

/// Why a load ended before it was done. Becomes the `stopped` of its report: a value, not a failure of the
/// program.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The caller set the stop flag.
    #[error("stopped by the operator")]
    Stopped,
    /// `deadline_ms` is over.
    #[error("the deadline of {limit_ms} ms passed while {what}")]
    Deadline {
        /// The interrupted operation.
        what: &'static str,
        /// The deadline.
        limit_ms: u32,
    },
    /// A step failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// The step.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The receiver's address does not answer.
    #[error("cannot connect to {peer} from {bind}: {reason}")]
    Connect {
        /// Receiver.
        peer: SocketAddr,
        /// Own address.
        bind: IpAddr,
        /// The kernel's answer, or after how long none came.
        reason: String,
    },
    /// The addresses do not fit together.
    #[error(
        "own address {bind} and receiver {peer} are not of one family\nhint: give both ends IPv4 or both IPv6"
    )]
    Family {
        /// Own address.
        bind: IpAddr,
        /// Receiver.
        peer: SocketAddr,
    },
    /// The namespace of the endpoint cannot be entered.
    #[error("cannot enter the network namespace {path}: {source}\nhint: this needs root")]
    Namespace {
        /// Its path.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The namespace of the endpoint is not there.
    #[error("network namespace {place}: {reason}")]
    Place {
        /// What was asked for.
        place: PathBuf,
        /// What is wrong, and what exists instead.
        reason: Box<PlaceError>,
    },
    /// What should be read or written on a disk cannot be.
    #[error("{path}: {reason}\nhint: {hint}")]
    Target {
        /// File, folder or device.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// A kind that this program does not know.
    #[error("no load is called {name}")]
    Unknown {
        /// Its name.
        name: &'static str,
    },
    /// A number of the spec is outside its limits.
    #[error("{what} is {}, allowed is {limit}", linerate_model::fact::decimal(*value))]
    Spec {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What is allowed.
        limit: &'static str,
    },
    /// An option that cannot be had.
    #[error("cannot use the {what} `{value}`: {reason}")]
    Option {
        /// Which.
        what: &'static str,
        /// What was asked for.
        value: String,
        /// Why not.
        reason: String,
    },
    /// CPUs on which threads were to run cannot be had.
    #[error("cannot run on CPU {missing}: this host allows CPU {allowed}\nhint: --pin {example}")]
    Cpus {
        /// Those that cannot be had.
        missing: String,
        /// Those that can.
        allowed: String,
        /// One that can.
        example: u32,
    },
    /// Every phase spins, and an end has no CPU for it.
    #[error("{why}\nhint: --block measures without spinning; end other work on the host")]
    NoFreeCpu {
        /// Which end, and what was idle.
        why: String,
    },
    /// What arrived is not what was sent.
    #[error("the content of {streams} streams differs: the checksums of the two ends are not equal")]
    ContentDiffers {
        /// How many.
        streams: usize,
    },
    /// The two ends did not understand each other.
    #[error("the calibration lost its thread: {what}")]
    OutOfStep {
        /// What came instead of what.
        what: String,
    },
    /// The other end of a stream did not show that it knows the token.
    #[error("the receiver at {peer} did not show the token of this test")]
    NotProven {
        /// Receiver.
        peer: SocketAddr,
    },
    /// No sender came.
    #[error("nothing arrived within {waited_ms} ms: {got} of {wanted} streams")]
    NobodyCame {
        /// How long was waited.
        waited_ms: u128,
        /// Streams that came.
        got: usize,
        /// Streams that were announced.
        wanted: usize,
    },
    /// No progress for too long.
    #[error("nothing got through after {bytes} bytes (no progress for {waited_ms} ms)")]
    Stalled {
        /// Bytes that got through before.
        bytes: u64,
        /// How long was waited.
        waited_ms: u128,
    },
    /// The ends counted differently.
    #[error("bytes differ: {sent} sent, {received} received")]
    BytesDiffer {
        /// By the sender.
        sent: u64,
        /// By the receiver.
        received: u64,
    },
    /// The connection broke.
    #[error("the connection broke after {bytes} bytes: {source}")]
    Broken {
        /// Bytes before.
        bytes: u64,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Requests are not answered.
    #[error("nothing got through: the last {unanswered} requests of {sent} were not answered")]
    Unanswered {
        /// At the end, in a row.
        unanswered: u32,
        /// In all.
        sent: u32,
    },
}

impl From<OutOfLimits> for LoadError {
    fn from(OutOfLimits { what, value, limit }: OutOfLimits) -> Self {
        Self::Spec { what, value, limit }
    }
}

impl LoadError {
    /// Whether the test was not begun, because this host or this program cannot do what was asked for.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Spec { .. }
                | Self::Option { .. }
                | Self::Cpus { .. }
                | Self::NoFreeCpu { .. }
                | Self::Unknown { .. }
        )
    }

    /// For `map_err`: a failed step.
    pub fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

/// One end of one running test.
pub struct Job<'a> {
    /// What was asked.
    pub spec: &'a LoadSpec,
    /// The caller's control.
    pub control: &'a LoadControl,
    /// The secret of the test.
    pub(crate) token: Token,
    deadline: Instant,
    costs: Mutex<ThreadTimes>,
    strangers: Mutex<Strangers>,
    /// Ticks of all CPUs when what is reported began.
    ticks: Mutex<Vec<CpuTicks>>,
}

impl<'a> Job<'a> {
    /// Starts the clock of the deadline.
    pub fn new(spec: &'a LoadSpec, control: &'a LoadControl) -> Self {
        Self {
            spec,
            control,
            token: Token::new(spec.token),
            deadline: Instant::now() + Duration::from_millis(u64::from(spec.deadline_ms)),
            costs: Mutex::new(ThreadTimes::default()),
            strangers: Mutex::new(Strangers::default()),
            ticks: Mutex::new(cpu::cpu_ticks(Path::new("/"))),
        }
    }

    /// Whether the load may go on with `what`.
    pub fn check(&self, what: &'static str) -> Result<(), LoadError> {
        if self.control.stop.load(Ordering::Relaxed) {
            return Err(LoadError::Stopped);
        }
        if Instant::now() >= self.deadline {
            return Err(LoadError::Deadline { what, limit_ms: self.spec.deadline_ms });
        }
        Ok(())
    }

    /// Runs `work` on the calling thread and adds the CPU time that it took, and waited for, to the test's.
    pub fn account<T>(&self, work: impl FnOnce() -> T) -> T {
        let (result, times) = timed(work);
        self.add(times);
        result
    }

    /// The same for a thread that only observes: its wait for a CPU did not delay the test.
    pub(crate) fn account_aside<T>(&self, work: impl FnOnce() -> T) -> T {
        let (result, times) = timed(work);
        self.add(ThreadTimes { waiting: Duration::ZERO, ..times });
        result
    }

    /// The whole of a load that runs on the calling thread: its time, and what it took of a CPU.
    pub(crate) fn whole(
        &self,
        report: &mut LoadReport,
        work: impl FnOnce(&mut LoadReport) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let begun = Instant::now();
        let result = self.account(|| work(report));
        report.elapsed_s = begun.elapsed().as_secs_f64();
        result
    }

    fn add(&self, times: ThreadTimes) {
        let mut costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        costs.running += times.running;
        costs.waiting += times.waiting;
    }

    /// Counts what came to a port of the test without its token.
    pub(crate) fn met(&self, strangers: Strangers) {
        let mut all = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        *all = all.and(strangers);
    }

    /// Counts the connections that came to a listener of the test without its token; `own` of them may be the
    /// sender's.
    pub(crate) fn met_connections(&self, unproven: u64, own: u64) {
        self.met(Strangers { connections: unproven.saturating_sub(own), ..Strangers::default() });
    }

    /// Counts the datagrams that came to a socket of the test without its token.
    pub(crate) fn met_datagrams(&self, datagrams: u64, socket: &UdpSocket) {
        if datagrams > 0 {
            let dropped = socket::dropped(socket).unwrap_or(0);
            self.met(Strangers { datagrams, dropped, ..Strangers::default() });
        }
    }

    /// Takes what the threads took so far; from here on it is counted anew.
    pub(crate) fn take_costs(&self) -> ThreadTimes {
        std::mem::take(&mut *self.costs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is reported begins now: nothing that came before is part of it.
    pub(crate) fn restart(&self) {
        let _ = self.take_costs();
        *self.ticks.lock().unwrap_or_else(PoisonError::into_inner) = cpu::cpu_ticks(Path::new("/"));
    }

    /// Ticks of all CPUs when what is reported began.
    pub(crate) fn ticks_before(&self) -> Vec<CpuTicks> {
        self.ticks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes what the threads took, and who else came, into the report.
    pub(crate) fn complete(&self, report: &mut LoadReport) {
        report.strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner).some();
        let costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        report.cpu_s = costs.running.as_secs_f64();
        report.wait_s = costs.waiting.as_secs_f64();
    }
}

/// What a piece of work took of the calling thread's time.
fn timed<T>(work: impl FnOnce() -> T) -> (T, ThreadTimes) {
    let before = cpu::thread_times();
    let result = work();
    let after = cpu::thread_times();
    let times = ThreadTimes {
        running: after.running.saturating_sub(before.running),
        waiting: after.waiting.saturating_sub(before.waiting),
    };
    (result, times)
}
