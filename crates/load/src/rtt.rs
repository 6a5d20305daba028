//! RTTs of 64 bytes over UDP on an otherwise idle pair.
//!
//! What comes in: a number of requests. What goes out: the RTT of each one that was answered, in
//! microseconds. The first exchange is left out: it pays for the resolution of addresses. It ends after a few
//! requests in a row without an answer.
//!
//! Not a phase of `latency`, which needs a TCP connection beside it and drops late answers: with a survey the
//! RTT is what still shows where TCP is blocked, and a late answer is a long RTT, not a loss.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use linerate_model::kind::RttPlan;
use linerate_model::load::{LoadReport, Role};
use linerate_sys::socket;

use crate::datagram::{self, HEADER_BYTES, Labels};
use crate::job::{Job, LoadError, SLICE, is_passing};
use crate::load::Load;
use crate::token::Stamp;

/// The load `rtt`.
pub(crate) struct Rtt;

const LABELS: Labels = Labels { request: "rtt request", answer: "rtt answer", end: "rtt end" };

/// Payload of a request and of an answer.
const PAYLOAD_BYTES: usize = 64;

/// How long an answer is waited for before the next request goes out; an answer that comes later still
/// counts.
const ANSWER_WAIT: Duration = Duration::from_millis(100);

/// The same for the first exchange, which waits for the resolution of addresses. A peer that is not there
/// costs five of them, as long as a connection attempt of the load `tcp`.
const FIRST_ANSWER_WAIT: Duration = Duration::from_millis(300);

/// How long answers are waited for after the last request, when some are missing.
const LATE_WAIT: Duration = Duration::from_millis(400);

/// Requests in a row without an answer after which the rest is not tried.
const UNANSWERED_MAX: u32 = 5;

impl Load for Rtt {
    type Plan = RttPlan;

    fn run(&self, job: &Job<'_>, plan: &RttPlan, report: &mut LoadReport) -> Result<(), LoadError> {
        job.whole(report, |report| match job.spec.role {
            Role::Receiver => {
                report.bytes = datagram::answer(job, &LABELS, PAYLOAD_BYTES)?;
                Ok(())
            }
            Role::Sender { peer } => ask(job, peer, plan.count, report),
        })
    }
}

/// Requests in flight.
struct Asker {
    socket: UdpSocket,
    request: Stamp,
    answer: Stamp,
    /// When each request went out; `None` once it was answered.
    sent: Vec<Option<Instant>>,
    unanswered: u32,
}

fn ask(job: &Job<'_>, peer: SocketAddr, count: u16, report: &mut LoadReport) -> Result<(), LoadError> {
    let mut asker = Asker {
        socket: datagram::connect(job, peer)?,
        request: job.token.stamp(LABELS.request, &[]),
        answer: job.token.stamp(LABELS.answer, &[]),
        sent: Vec::new(),
        unanswered: 0,
    };
    let result = asker.ask_all(job, count, report);
    datagram::farewell(&asker.socket, &job.token.stamp(LABELS.end, &[]), 0);
    report.bytes = (report.rtt_us.len() * PAYLOAD_BYTES) as u64;
    result
}

impl Asker {
    fn ask_all(&mut self, job: &Job<'_>, count: u16, report: &mut LoadReport) -> Result<(), LoadError> {
        let mut first = Vec::new();
        while first.is_empty() {
            self.ask_once(job, FIRST_ANSWER_WAIT, &mut first)?;
        }
        // Late answers to other first requests do not count either.
        self.sent.fill(None);
        for _ in 0..count {
            self.ask_once(job, ANSWER_WAIT, &mut report.rtt_us)?;
        }
        self.take_late(job, &mut report.rtt_us)
    }

    /// Takes answers that are still in flight.
    fn take_late(&mut self, job: &Job<'_>, trips_us: &mut Vec<f64>) -> Result<(), LoadError> {
        let begun = Instant::now();
        while self.sent.iter().any(Option::is_some) {
            job.check("waiting for late answers")?;
            let left = LATE_WAIT.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            self.receive(left.min(SLICE), trips_us)?;
        }
        Ok(())
    }

    /// Sends one request, waits for its answer, and keeps the RTTs of all answers that came meanwhile.
    fn ask_once(&mut self, job: &Job<'_>, wait: Duration, trips_us: &mut Vec<f64>) -> Result<(), LoadError> {
        let sequence = self.sent.len();
        let mut datagram = [0; PAYLOAD_BYTES];
        datagram[..HEADER_BYTES].copy_from_slice(&datagram::header(&self.request, sequence as u64, 0));
        let begun = Instant::now();
        self.sent.push(Some(begun));
        if let Err(source) = self.socket.send(&datagram)
            && !is_passing(&source)
            && !socket::is_full(&source)
        {
            return Err(LoadError::Io { what: "send a request", source });
        }
        loop {
            job.check("waiting for an answer")?;
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            if self.receive(left.min(SLICE), trips_us)? == Some(sequence) {
                return Ok(());
            }
        }
        self.unanswered += 1;
        if self.unanswered >= UNANSWERED_MAX {
            return Err(LoadError::Unanswered { unanswered: self.unanswered, sent: self.sent.len() as u32 });
        }
        Ok(())
    }

    /// Waits for one answer; returns the number of the request that it answers.
    fn receive(&mut self, wait: Duration, trips_us: &mut Vec<f64>) -> Result<Option<usize>, LoadError> {
        self.socket.set_read_timeout(Some(wait)).map_err(LoadError::io("set a time-out"))?;
        let mut buffer = [0; 256];
        let length = match self.socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if is_passing(&error) => return Ok(None),
            Err(source) => return Err(LoadError::Io { what: "receive an answer", source }),
        };
        let now = Instant::now();
        let Some((sequence, _)) = datagram::parse(&self.answer, &buffer[..length]) else { return Ok(None) };
        let Ok(sequence) = usize::try_from(sequence) else { return Ok(None) };
        let Some(sent) = self.sent.get_mut(sequence).and_then(Option::take) else { return Ok(None) };
        trips_us.push(now.duration_since(sent).as_secs_f64() * 1e6);
        self.unanswered = 0;
        Ok(Some(sequence))
    }
}
