//! Requests and answers, one after the other, over TCP and UDP, both ends blocking or spinning, idle and loaded.
//!
//! What comes in: a list of phases. What goes out: per phase a histogram of all round trips and their course. One control
//! connection carries the order of phases and the requests over TCP; datagrams have a socket of their own; the load is the
//! load `tcp`, from the same sender to the same receiver. A request is never sent before the last one is answered or given
//! up, and never sent again.

mod answerer;
mod asker;

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use linerate_model::latency::{LatencyPlan, Phase, Waiting};
use linerate_model::load::{LoadReport, LoadSpec, Role, TestKind};

use crate::job::{Job, LoadError, patience};
use crate::{Control, Load, datagram};

/// The load `latency`.
pub(crate) struct Latency;

/// Stamps of the datagrams.
const REQUEST: &str = "latency request";
const ANSWER: &str = "latency answer";

/// First bytes on the control connection: a phase begins (its number follows), a request, the phase is over, all is over.
pub(crate) const BEGIN: u8 = b'P';
const ASK: u8 = b'R';
pub(crate) const END: u8 = b'E';
pub(crate) const QUIT: u8 = b'Q';

const PHASES_MAX: usize = 16;
/// Longest phase: ten minutes.
const TIME_MAX_MS: u32 = 600_000;
/// A request and its answer fit into one packet, so that a round trip is one.
const PAYLOAD_MAX: u16 = 1200;
/// The load goes on for so long after a phase, so that the last requests are loaded too.
const LOAD_TAIL: Duration = Duration::from_millis(100);
/// The load may take so much longer than planned to drain a bloated queue.
const LOAD_SLACK: Duration = patience(5_000, 60_000);

impl Load for Latency {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn run(&self, job: &Job<'_>, report: &mut LoadReport) -> Result<(), LoadError> {
        let TestKind::Latency(plan) = &job.spec.kind else {
            return Err(LoadError::Unknown { name: "latency" });
        };
        check(plan)?;
        let begun = Instant::now();
        let result = job.account(|| match job.spec.role {
            Role::Receiver => answerer::answer(job, plan, report),
            Role::Sender { peer } => asker::ask(job, plan, peer, report),
        });
        report.elapsed_s = begun.elapsed().as_secs_f64();
        result
    }
}

fn check(plan: &LatencyPlan) -> Result<(), LoadError> {
    let wrong = |what, value: usize, limit| Err(LoadError::Spec { what, value: value as f64, limit });
    if plan.phases.is_empty() || plan.phases.len() > PHASES_MAX {
        return wrong("the number of phases", plan.phases.len(), "1 to 16");
    }
    if !(1..=PAYLOAD_MAX).contains(&plan.payload_bytes) {
        return wrong("payload_bytes", plan.payload_bytes.into(), "1 to 1200");
    }
    if plan.phase_ms > TIME_MAX_MS || plan.settle_ms > TIME_MAX_MS {
        return wrong("phase_ms or settle_ms", plan.phase_ms.max(plan.settle_ms) as usize, "at most 600,000");
    }
    if plan.phases.iter().any(|phase| phase.loaded) && !(1..=64).contains(&plan.load_streams) {
        return wrong("load_streams", plan.load_streams.into(), "1 to 64");
    }
    Ok(())
}

/// Bytes of a datagram: the payload, at least its header.
fn datagram_bytes(plan: &LatencyPlan) -> usize {
    usize::from(plan.payload_bytes).max(datagram::HEADER_BYTES)
}

/// Prepares a stream for a way of waiting.
fn set_waiting(stream: &TcpStream, waiting: Waiting) -> Result<(), LoadError> {
    stream.set_nonblocking(waiting == Waiting::Spinning).map_err(LoadError::io("choose how to wait"))
}

/// What a spinning end does after a look in vain: now and then lets others of its CPU run, for on a busy host the other end
/// may be one of them.
fn spin(looks: &mut u32) {
    *looks = looks.wrapping_add(1);
    if looks.is_multiple_of(64) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

/// A `tcp` load beside the requests.
struct Background<'scope> {
    stop: Arc<AtomicBool>,
    thread: ScopedJoinHandle<'scope, LoadReport>,
}

impl<'scope> Background<'scope> {
    /// Starts one end. `listening` hears the port of a receiver.
    fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        job: &Job<'_>,
        plan: &LatencyPlan,
        role: Role,
        listening: impl Fn(u16) + Send + Sync + 'static,
    ) -> Result<Self, LoadError> {
        let duration_ms = plan.settle_ms + plan.phase_ms + LOAD_TAIL.as_millis() as u32;
        let spec = LoadSpec {
            kind: TestKind::Tcp { streams: plan.load_streams, duration_ms },
            role,
            deadline_ms: duration_ms + LOAD_SLACK.as_millis() as u32,
            // As a survey makes it: a calibration would begin with pauses.
            tuning: Box::default(),
            ..job.spec.clone()
        };
        let stop = Arc::new(AtomicBool::new(false));
        let control = Control { stop: stop.clone(), listening: Box::new(listening) };
        let work = move || crate::run(&spec, &control);
        let thread = Builder::new()
            .name("load beside".into())
            .spawn_scoped(scope, work)
            .map_err(LoadError::io("start a thread"))?;
        Ok(Self { stop, thread })
    }

    /// Its report. It ends by itself soon after the phase; with `now` it is stopped.
    fn end(self, now: bool) -> LoadReport {
        if now {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.thread.join().unwrap_or_default()
    }
}

/// The peer of the load or of the datagrams: another port of the same host.
fn other_port(peer: SocketAddr, port: u16) -> SocketAddr {
    let mut other = peer;
    other.set_port(port);
    other
}

/// Whether a phase needs a socket for datagrams.
fn has_datagrams(phase: Phase) -> bool {
    phase.carrier == linerate_model::latency::Carrier::Udp
}
