//! The sending end: asks, waits, and keeps every RTT.
//!
//! What comes in: the phases. What goes out: a histogram and a course for each. An RTT is taken from
//! just before the request is handed to the kernel until just after its answer was taken from it.

use std::io::Read;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use linerate_model::histogram::Histogram;
use linerate_model::kind::LatencyPlan;
use linerate_model::latency::{LatencyPhase, LatencyPoint, LatencyResult, Waiting};
use linerate_model::load::{LoadReport, Role};
use linerate_sys::cpu;

use super::background::Background;
use super::free_cpus::FreeCpus;
use super::protocol::{
    ANSWER, ASK, BEGIN, END, NO_FREE_CPU, QUIT, REQUEST, datagram_bytes, has_datagrams, other_port,
    set_waiting, spin, write_all,
};
use crate::admission;
use crate::datagram::{self, HEADER_BYTES};
use crate::job::{Job, LoadError, SLICE, is_passing};

/// Longest wait for the receiver to prepare a phase.
const BEGIN_WAIT: Duration = Duration::from_secs(5);
/// A datagram that was not answered for so long is lost: longer than a bloated queue.
const DATAGRAM_WAIT: Duration = Duration::from_millis(800);
/// An answer over TCP may take so long after the end of a phase: a retransmission or two.
const STREAM_WAIT: Duration = Duration::from_secs(3);
/// How long the receiver may take to read the last word and close.
const CLOSE_WAIT: Duration = Duration::from_millis(500);
/// Datagrams in a row without an answer after which the phase ends.
const LOST_MAX: u32 = 5;
/// Pieces of the course of a phase.
const POINTS: u32 = 100;
/// Polls of a spinning end between two reads of the clock.
const CHECK_EVERY: u32 = 256;

pub(super) fn ask(
    job: &Job<'_>,
    plan: &LatencyPlan,
    peer: SocketAddr,
    report: &mut LoadReport,
) -> Result<(), LoadError> {
    let mut control = admission::knock(job, peer)?;
    // Why no end spins, once it is known.
    let (mut is_sampled, mut refusal) = (false, None);
    for (number, phase) in plan.phases.iter().enumerate() {
        let spins = plan.spins_on_free_cpus && phase.waiting == Waiting::Spinning;
        if spins && !is_sampled {
            is_sampled = true;
            refusal = FreeCpus::sample(job)?.and_then(FreeCpus::refusal).map(|why| format!("sender: {why}"));
        }
        if spins && refusal.is_some() {
            report.latency.push(refused(*phase, refusal.clone()));
            continue;
        }
        let result =
            thread::scope(|scope| one_phase(scope, job, plan, (number, *phase), peer, &mut control))?;
        if spins {
            refusal.clone_from(&result.refused);
        }
        report.bytes += result.round_trip_ns.count() * u64::from(plan.payload_bytes);
        report.latency.push(result);
    }
    write_all(job, &mut control, &[QUIT])?;
    // The receiver closes when it has read that; a reset must not overtake it.
    let _ = admission::read_exactly(job, &mut control, &mut [0; 1], CLOSE_WAIT);
    if let Some(why) = refusal.filter(|_| report.latency.iter().all(|result| result.refused.is_some())) {
        return Err(LoadError::NoFreeCpu { why });
    }
    if report.latency.iter().all(|result| result.round_trip_ns.count() == 0) {
        let lost = report.latency.iter().map(|result| result.lost).sum::<u64>() as u32;
        return Err(LoadError::Unanswered { unanswered: lost, sent: lost });
    }
    Ok(())
}

fn one_phase<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    job: &Job<'_>,
    plan: &LatencyPlan,
    (number, phase): (usize, LatencyPhase),
    peer: SocketAddr,
    control: &mut TcpStream,
) -> Result<LatencyResult, LoadError> {
    write_all(job, control, &[BEGIN, number as u8])?;
    let mut ports = [0; 4];
    admission::read_exactly(job, control, &mut ports, BEGIN_WAIT)?;
    let [port, load_port] = [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_be_bytes);
    if !phase.loaded && load_port == NO_FREE_CPU {
        write_all(job, control, &end_of(plan, phase))?;
        return Ok(refused(phase, Some("receiver: no free CPU to spin on".to_owned())));
    }
    let load = if phase.loaded {
        let role = Role::Sender { peer: other_port(peer, load_port) };
        let load = Background::start(scope, job, plan, role, |_| {})?;
        wait_for_load(job, Duration::from_millis(plan.settle_ms.into()))?;
        Some(load)
    } else {
        None
    };
    let before = cpu::thread_times();
    let asked = if has_datagrams(phase) {
        over_datagrams(job, plan, phase, other_port(peer, port))
    } else {
        over_stream(job, plan, phase, control)
    };
    let cpu_s = cpu::thread_times().running.saturating_sub(before.running).as_secs_f64();
    let ended = write_all(job, control, &end_of(plan, phase));
    let loaded = load.map(|load| load.end(asked.is_err() || ended.is_err()));
    let mut course = asked?;
    ended?;
    if let Some(load) = &loaded
        && load.bytes == 0
    {
        let reason = load.stopped.clone().unwrap_or_else(|| "it sent nothing".to_owned());
        return Err(LoadError::Io { what: "make the load", source: std::io::Error::other(reason) });
    }
    course.close();
    Ok(LatencyResult {
        phase,
        round_trip_ns: course.all,
        elapsed_s: course.last.saturating_duration_since(course.start).as_secs_f64(),
        lost: course.lost,
        cpu_s,
        load_bps: loaded.map(|load| load.bytes as f64 * 8.0 / load.elapsed_s.max(1e-3)),
        series: course.points,
        refused: None,
    })
}

/// The end of a phase. On a stream as long as a request: what follows it must not be read with it.
fn end_of(plan: &LatencyPlan, phase: LatencyPhase) -> Vec<u8> {
    vec![END; if has_datagrams(phase) { 1 } else { plan.payload_bytes.into() }]
}

/// A phase that an end refused.
fn refused(phase: LatencyPhase, refused: Option<String>) -> LatencyResult {
    LatencyResult {
        phase,
        round_trip_ns: Histogram::default(),
        elapsed_s: 0.0,
        lost: 0,
        cpu_s: 0.0,
        load_bps: None,
        series: Vec::new(),
        refused,
    }
}

/// Lets the load fill its queue.
fn wait_for_load(job: &Job<'_>, time: Duration) -> Result<(), LoadError> {
    let begun = Instant::now();
    while begun.elapsed() < time {
        job.check("waiting for a steady load")?;
        thread::sleep(SLICE.min(time.saturating_sub(begun.elapsed())));
    }
    Ok(())
}

/// RTTs of a phase as they come.
struct Course {
    start: Instant,
    end: Instant,
    last: Instant,
    all: Histogram,
    lost: u64,
    piece: Duration,
    piece_end: Instant,
    /// Answers, sum and maximum of the piece, nanoseconds.
    sums: (u32, u64, u64),
    points: Vec<LatencyPoint>,
}

impl Course {
    fn new(plan: &LatencyPlan) -> Self {
        let start = Instant::now();
        let time = Duration::from_millis(plan.phase_ms.into());
        let piece = (time / POINTS).max(Duration::from_millis(1));
        Self {
            start,
            end: start + time,
            last: start,
            all: Histogram::default(),
            lost: 0,
            piece,
            piece_end: start + piece,
            sums: (0, 0, 0),
            points: Vec::new(),
        }
    }

    fn note(&mut self, sent: Instant, answered: Instant) {
        let ns = answered.saturating_duration_since(sent).as_nanos() as u64;
        self.all.record(ns);
        self.sums = (self.sums.0 + 1, self.sums.1 + ns, self.sums.2.max(ns));
        self.last = answered;
        if answered >= self.piece_end {
            self.close();
            self.piece_end = answered + self.piece;
        }
    }

    fn close(&mut self) {
        let (answers, sum, max) = std::mem::take(&mut self.sums);
        if answers > 0 {
            self.points.push(LatencyPoint {
                at_ms: self.last.saturating_duration_since(self.start).as_secs_f64() * 1e3,
                answers,
                mean_us: sum as f64 / f64::from(answers) / 1e3,
                max_us: max as f64 / 1e3,
            });
        }
    }
}

fn over_stream(
    job: &Job<'_>,
    plan: &LatencyPlan,
    phase: LatencyPhase,
    control: &mut TcpStream,
) -> Result<Course, LoadError> {
    let request = vec![ASK; usize::from(plan.payload_bytes)];
    let mut buffer = request.clone();
    set_waiting(control, phase.waiting)?;
    let result = (|| {
        // The first exchange is left out: it pays for what is done once.
        one_over_stream(job, phase.waiting, control, &request, &mut buffer)?;
        let mut course = Course::new(plan);
        let mut sent = course.start;
        while sent < course.end {
            one_over_stream(job, phase.waiting, control, &request, &mut buffer)?;
            let now = Instant::now();
            course.note(sent, now);
            sent = now;
            if course.all.count().is_multiple_of(u64::from(CHECK_EVERY)) {
                job.check("asking")?;
            }
        }
        Ok(course)
    })();
    set_waiting(control, Waiting::Blocking)?;
    result
}

fn one_over_stream(
    job: &Job<'_>,
    waiting: Waiting,
    control: &mut TcpStream,
    request: &[u8],
    buffer: &mut [u8],
) -> Result<(), LoadError> {
    write_all(job, control, request)?;
    let (mut got, mut polls, mut begun) = (0, 0, None);
    while got < buffer.len() {
        match control.read(&mut buffer[got..]) {
            Ok(0) => {
                let source = std::io::ErrorKind::UnexpectedEof.into();
                return Err(LoadError::Broken { bytes: got as u64, source });
            }
            Ok(length) => got += length,
            Err(error) if is_passing(&error) => {
                spin(&mut polls);
                // A blocking end wakes up 50 times a second for this.
                if waiting == Waiting::Blocking || polls.is_multiple_of(CHECK_EVERY) {
                    job.check("waiting for an answer")?;
                    let waited = begun.get_or_insert_with(Instant::now).elapsed();
                    if waited >= STREAM_WAIT {
                        return Err(LoadError::Stalled { bytes: got as u64, waited_ms: waited.as_millis() });
                    }
                }
            }
            Err(source) => return Err(LoadError::Broken { bytes: got as u64, source }),
        }
    }
    Ok(())
}

fn over_datagrams(
    job: &Job<'_>,
    plan: &LatencyPlan,
    phase: LatencyPhase,
    peer: SocketAddr,
) -> Result<Course, LoadError> {
    let socket = datagram::connect(job, peer)?;
    socket
        .set_nonblocking(phase.waiting == Waiting::Spinning)
        .map_err(LoadError::io("choose how to wait"))?;
    let [request, answer] = [REQUEST, ANSWER].map(|label| job.token.stamp(label, &[]));
    let mut asker = Datagrams {
        buffer: vec![0; datagram_bytes(plan)],
        socket,
        request,
        answer,
        sequence: 0,
        spins: phase.waiting == Waiting::Spinning,
    };
    let mut in_a_row = 0;
    // The first exchange pays for the resolution of addresses.
    while !asker.ask_once(job)? {
        in_a_row += 1;
        if in_a_row >= LOST_MAX {
            let mut course = Course::new(plan);
            course.lost = u64::from(in_a_row);
            return Ok(course);
        }
    }
    let mut course = Course::new(plan);
    in_a_row = 0;
    loop {
        let sent = Instant::now();
        if sent >= course.end || in_a_row >= LOST_MAX {
            return Ok(course);
        }
        if asker.ask_once(job)? {
            course.note(sent, Instant::now());
            in_a_row = 0;
        } else {
            course.lost += 1;
            in_a_row += 1;
        }
        if asker.sequence.is_multiple_of(u64::from(CHECK_EVERY)) {
            job.check("asking")?;
        }
    }
}

/// The socket of a phase over UDP.
struct Datagrams {
    socket: UdpSocket,
    request: [u8; 16],
    answer: [u8; 16],
    sequence: u64,
    spins: bool,
    buffer: Vec<u8>,
}

impl Datagrams {
    /// Whether one request was answered in time.
    fn ask_once(&mut self, job: &Job<'_>) -> Result<bool, LoadError> {
        self.sequence += 1;
        self.buffer[..HEADER_BYTES].copy_from_slice(&datagram::header(&self.request, self.sequence, 0));
        // What the kernel does not take is a lost request.
        let _ = self.socket.send(&self.buffer);
        let (mut polls, begun) = (0, Instant::now());
        loop {
            match self.socket.recv(&mut self.buffer) {
                Ok(length) => {
                    let shown = datagram::parse(&self.answer, &self.buffer[..length]);
                    if shown.is_some_and(|(sequence, _)| sequence == self.sequence) {
                        return Ok(true);
                    }
                }
                Err(error) if is_passing(&error) => {
                    spin(&mut polls);
                    if !self.spins || polls.is_multiple_of(CHECK_EVERY) {
                        job.check("waiting for an answer")?;
                    }
                }
                // The echo of a datagram that was not received.
                Err(_) => job.check("waiting for an answer")?,
            }
            if (!self.spins || polls.is_multiple_of(CHECK_EVERY)) && begun.elapsed() >= DATAGRAM_WAIT {
                return Ok(false);
            }
        }
    }
}
