//! Selects the send and receive method for this path: they take turns on the connections of the test.
//!
//! What comes in: proven streams and one more for control. What goes out: the methods to use, and at the
//! sender the table of the turns. A turn begins when both ends are ready and ends when the receiver has
//! everything that was sent, so that no byte of one turn is counted in another, nor in the test. Short turns
//! of all methods come first, then long ones of the best three, which decide; last, the chosen methods beside
//! a receive that copies. The sender leads. Bounded in number and time.
//!
//! On the control stream the sender sends `T` and the two methods (each a length and a name), and the
//! receiver answers `R`. After the turn the sender sends its byte count (8 bytes). When the receiver has them
//! all, it sends its CPU time in nanoseconds, the bytes, and the time between the first and the last in
//! microseconds (8 bytes each); with `host_turns` also what all CPUs of its host did: busy, stolen, and what
//! they could have done, nanoseconds. At the end the sender sends `U` and the methods to use, and the
//! receiver answers `R`. Numbers are big-endian.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use linerate_model::load::{HostCpu, Turn};
use linerate_model::tuning::{CALIBRATION_MS_MAX, LONG_TURN_MS, TURN_MS};
use linerate_sys::cpu::{self, CpuTicks};
use linerate_sys::socket::{self, Ready};

use super::choose;
use super::crew::{self, Crew, Watchdog};
use super::methods::Methods;
use super::placement::Placement;
use super::plan::Plan;
use super::receiver::{self, Wakes};
use super::sender::Sending;
use super::stream_end::StreamEnd;
use crate::endpoint;
use crate::job::{Job, LoadError, is_passing};

/// Rounds of short turns.
const ROUNDS: usize = 2;
/// Rounds of long turns: the median of three survives one contended turn.
const LONG_ROUNDS: usize = 3;
/// How many pairs of methods get long turns.
const FINALISTS: usize = 3;
const TURN: Duration = Duration::from_millis(TURN_MS as u64);
const LONG_TURN: Duration = Duration::from_millis(LONG_TURN_MS as u64);
/// No short turn begins later, and no long one; the rest is for the last answer.
const LAST_SHORT_TURN: Duration = Duration::from_millis(CALIBRATION_MS_MAX as u64 * 3 / 10);
const LAST_TURN: Duration = Duration::from_millis(CALIBRATION_MS_MAX as u64 * 6 / 10);
/// An answer that takes longer will not come.
const ANSWER_TIME: Duration = Duration::from_millis(CALIBRATION_MS_MAX as u64 * 4 / 10);
/// A path with a longer delivery time than this is so slow that any method fills it. Threads of both ends
/// that wait for a CPU do not take as long.
const SLOW: Duration = Duration::from_secs(1);
/// How often a receiver polls for the end of a turn.
const POLL_EVERY: Duration = Duration::from_millis(5);

const COMMAND_TURN: u8 = b'T';
const COMMAND_USE: u8 = b'U';
const READY: u8 = b'R';

/// Leads the calibration from the sender's end.
pub(super) fn lead(
    job: &Job<'_>,
    plan: Plan,
    streams: &[TcpStream],
    control: &TcpStream,
    turns: &mut Vec<Turn>,
) -> Result<Methods, LoadError> {
    let candidates = usable(job, streams, turns, Methods::candidates(&job.spec.tuning)?);
    let mut leader = Leader { job, plan, streams, control, begun: Instant::now(), turns, is_slow: false };
    if candidates.len() >= 2 {
        leader.short_turns(&candidates)?;
        leader.long_turns()?;
    }
    let methods = match choose::best(leader.turns) {
        Some((send, receive)) => Methods::named(send, receive)?,
        None => Methods::asked_for(&job.spec.tuning)?,
    };
    leader.copying_turns(methods, candidates.len())?;
    use_methods(job, control, turns, methods)
}

/// The sender's end of a calibration.
struct Leader<'a> {
    job: &'a Job<'a>,
    plan: Plan,
    streams: &'a [TcpStream],
    control: &'a TcpStream,
    begun: Instant,
    turns: &'a mut Vec<Turn>,
    /// Any method fills this path: no further turn is worth its time.
    is_slow: bool,
}

impl Leader<'_> {
    /// All methods in opposite orders; those far behind once.
    fn short_turns(&mut self, candidates: &[Methods]) -> Result<(), LoadError> {
        for round in 0..ROUNDS {
            for methods in in_turn(candidates, round) {
                let (send, receive) = (methods.send.name(), methods.receive.name());
                if (round == 0 || choose::is_worth_a_turn(self.turns, send, receive))
                    && self.begun.elapsed() < LAST_SHORT_TURN
                {
                    self.turn(methods, TURN, false)?;
                }
            }
        }
        Ok(())
    }

    /// The best of them, for longer.
    fn long_turns(&mut self) -> Result<(), LoadError> {
        let finalists: Result<Vec<Methods>, LoadError> = choose::ranked(self.turns)
            .into_iter()
            .take(FINALISTS)
            .map(|(send, receive)| Methods::named(send, receive))
            .collect();
        let finalists = finalists?;
        for round in 0..LONG_ROUNDS {
            for methods in in_turn(&finalists, round) {
                self.turn(methods, LONG_TURN, false)?;
            }
        }
        Ok(())
    }

    /// The chosen methods between receives that copy what they read, each placement twice.
    fn copying_turns(&mut self, chosen: Methods, candidates: usize) -> Result<(), LoadError> {
        let tuning = &self.job.spec.tuning;
        let names = chosen.receive.copying(tuning.host_turns);
        if names.is_empty() || candidates == 0 || tuning.receive.is_some() || tuning.verify {
            return Ok(());
        }
        for name in names {
            self.turn(Methods::named(chosen.send.name(), name)?, LONG_TURN, true)?;
        }
        self.turn(chosen, LONG_TURN, false)?;
        for name in names.iter().rev() {
            self.turn(Methods::named(chosen.send.name(), name)?, LONG_TURN, true)?;
        }
        Ok(())
    }

    /// One turn, if there is time for it.
    fn turn(&mut self, methods: Methods, length: Duration, copying: bool) -> Result<(), LoadError> {
        if self.is_slow || self.begun.elapsed() >= LAST_TURN {
            return Ok(());
        }
        let since = Instant::now();
        let turn = lead_turn(self.job, self.plan, self.streams, self.control, methods, length)?;
        self.turns.push(Turn { copying, ..turn });
        self.is_slow = since.elapsed() >= length + SLOW;
        Ok(())
    }
}

/// The order of a round: every other one is reversed, so that a trend favours none.
fn in_turn(methods: &[Methods], round: usize) -> Vec<Methods> {
    let mut order = methods.to_vec();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// The candidates that these connections can be sent with. The others are in the table with their reason,
/// however little time the turns get.
fn usable(
    job: &Job<'_>,
    streams: &[TcpStream],
    turns: &mut Vec<Turn>,
    mut candidates: Vec<Methods>,
) -> Vec<Methods> {
    candidates.retain(|methods| {
        let failed = Sending::new(job, methods, streams).err();
        let is_usable = failed.is_none();
        turns.extend(failed.map(|error| Turn { failed: Some(error.to_string()), ..named(methods) }));
        is_usable
    });
    candidates
}

fn named(methods: &Methods) -> Turn {
    Turn {
        send: methods.send.name().to_owned(),
        receive: methods.receive.name().to_owned(),
        ..Turn::default()
    }
}

fn use_methods(
    job: &Job<'_>,
    control: &TcpStream,
    turns: &mut [Turn],
    methods: Methods,
) -> Result<Methods, LoadError> {
    for turn in turns.iter_mut() {
        let is_same = turn.send == methods.send.name() && turn.receive == methods.receive.name();
        turn.chosen = is_same && !turn.copying;
    }
    send_command(control, COMMAND_USE, methods)?;
    expect_ready(job, control)?;
    Ok(methods)
}

fn lead_turn(
    job: &Job<'_>,
    plan: Plan,
    streams: &[TcpStream],
    control: &TcpStream,
    methods: Methods,
    length: Duration,
) -> Result<Turn, LoadError> {
    let mut turn = Turn { turn_ms: length.as_millis() as u32, ..named(&methods) };
    let sending = match Sending::new(job, &methods, streams) {
        Ok(sending) => sending,
        Err(error) => {
            turn.failed = Some(error.to_string());
            return Ok(turn);
        }
    };
    send_command(control, COMMAND_TURN, methods)?;
    expect_ready(job, control)?;
    let _ = job.take_costs();
    let before = cpu::cpu_ticks(Path::new("/"));
    let plan = Plan { duration: length, ..plan };
    let (mut ends, kept) = job.account_aside(|| {
        crew::run(job, plan, streams, &mut Counting, |crew, index, stream| {
            sending.push_all_the_time(crew, index, stream)
        })
    });
    kept?;
    let cpu_s = job.take_costs().running.as_secs_f64();
    let bytes: u64 = ends.iter().map(|end| end.bytes).sum();
    if let Some(error) = ends.iter_mut().find_map(|end| end.error.take()) {
        turn.failed = Some(error.to_string());
    }
    write(control, &bytes.to_be_bytes())?;
    let [cpu_ns, received, took_us] = read_numbers::<3>(job, control)?;
    if received != bytes {
        return Err(LoadError::BytesDiffer { sent: bytes, received });
    }
    let hosts = hosts(job, control, &before)?;
    let gigabytes = bytes as f64 / 1e9;
    // A receiver that took everything in much less time waited for a CPU while it arrived: that is no rate.
    if bytes > 0 && u128::from(took_us) >= length.as_micros() / 2 {
        turn.host_s_per_gb = hosts.map(|hosts| hosts.busy_s / gigabytes);
        turn.steal = hosts.map(HostCpu::steal_share);
        turn.bps = bytes as f64 * 8e6 / took_us as f64;
        turn.tx_s_per_gb = cpu_s / gigabytes;
        turn.rx_s_per_gb = cpu_ns as f64 / 1e9 / gigabytes;
    }
    Ok(turn)
}

/// What the CPUs of both hosts did since `before`; `None` where an end does not report it.
fn hosts(job: &Job<'_>, control: &TcpStream, before: &[CpuTicks]) -> Result<Option<HostCpu>, LoadError> {
    if !job.spec.tuning.host_turns {
        return Ok(None);
    }
    let seconds = |ns: u64| ns as f64 / 1e9;
    let [busy, steal, capacity] = read_numbers::<3>(job, control)?.map(seconds);
    let far = HostCpu {
        busy_s: busy,
        steal_s: steal,
        capacity_s: capacity,
        same_host: job.spec.same_host,
        ..HostCpu::default()
    };
    let near = endpoint::host_cpu(before, &cpu::cpu_ticks(Path::new("/")));
    Ok(near.filter(|_| capacity > 0.0).map(|near| near.and(far)))
}

/// Follows the calibration at the receiver's end.
pub(super) fn follow(
    job: &Job<'_>,
    plan: Plan,
    streams: &[TcpStream],
    control: &TcpStream,
) -> Result<Methods, LoadError> {
    let begun = Instant::now();
    loop {
        let [word] = read_bytes(job, control)?;
        if word != COMMAND_TURN && word != COMMAND_USE {
            return Err(LoadError::OutOfStep { what: format!("byte {word} instead of a turn") });
        }
        let (send, receive) = (read_name(job, control)?, read_name(job, control)?);
        let methods = Methods::named(&send, &receive)?;
        write(control, &[READY])?;
        if word == COMMAND_USE {
            return Ok(methods);
        }
        follow_turn(job, plan, streams, control, methods)?;
        if begun.elapsed() >= 2 * (LAST_TURN + ANSWER_TIME) {
            return Err(LoadError::OutOfStep { what: "the sender makes no end of it".to_owned() });
        }
    }
}

fn follow_turn(
    job: &Job<'_>,
    plan: Plan,
    streams: &[TcpStream],
    control: &TcpStream,
    methods: Methods,
) -> Result<(), LoadError> {
    let _ = job.take_costs();
    let before = cpu::cpu_ticks(Path::new("/"));
    let placement = Placement::of(&job.spec.tuning.pin, job.spec.bind);
    let call_bytes = receiver::call_bytes(job, streams.len());
    let plan = Plan { duration: TURN, interval: POLL_EVERY, stall: plan.stall.max(ANSWER_TIME), ..plan };
    let mut waiting = Waiting { control, received: [0; 8], length: 0, wakes: Wakes::new(streams), ticks: 0 };
    let (mut ends, kept) = job.account_aside(|| {
        crew::run(job, plan, streams, &mut waiting, |crew, index, stream| {
            placement.take(index, false);
            let mut end = StreamEnd::default();
            let mut pull = methods.receive.open(call_bytes);
            receiver::pull_all(crew, index, stream, methods.receive.is_beside(), pull.as_mut(), &mut end);
            end.bytes = crew.bytes_of(index);
            end
        })
    });
    kept?;
    let costs = job.take_costs();
    let bytes: u64 = ends.iter().map(|end| end.bytes).sum();
    if let Some(source) = ends.iter_mut().find_map(|end| end.error.take()) {
        return Err(LoadError::Broken { bytes, source });
    }
    placement.verdict()?;
    let first = ends.iter().filter_map(|end| end.span).map(|span| span.0).min();
    let last = ends.iter().filter_map(|end| end.span).map(|span| span.1).max();
    let took = first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first);
    let mut numbers = vec![costs.running.as_nanos() as u64, bytes, took.as_micros() as u64];
    if job.spec.tuning.host_turns {
        // No capacity: this kernel does not report it.
        let host = endpoint::host_cpu(&before, &cpu::cpu_ticks(Path::new("/"))).unwrap_or_default();
        numbers.extend([host.busy_s, host.steal_s, host.capacity_s].map(|s| (s * 1e9) as u64));
    }
    let answer: Vec<u8> = numbers.into_iter().flat_map(u64::to_be_bytes).collect();
    write(control, &answer)
}

/// The clock of a turn at the sender.
struct Counting;

impl Watchdog for Counting {
    fn start(&mut self, _: Instant) {}

    fn tick(&mut self, crew: &Crew) -> u64 {
        crew.bytes()
    }
}

/// The clock of a turn at the receiver: waits for the sender's word how much it was.
struct Waiting<'a> {
    control: &'a TcpStream,
    received: [u8; 8],
    length: usize,
    wakes: Wakes<'a>,
    ticks: u32,
}

impl Watchdog for Waiting<'_> {
    fn start(&mut self, _: Instant) {}

    fn tick(&mut self, crew: &Crew) -> u64 {
        let there = socket::wait(&[self.control.as_fd()], Ready::Readable, Duration::ZERO);
        let mut control = self.control;
        if !crew.knows_end()
            && matches!(there, Ok(true))
            && let Ok(more) = control.read(&mut self.received[self.length..])
        {
            self.length += more;
            if self.length == self.received.len() {
                crew.end_at(u64::from_be_bytes(self.received));
                self.wakes.hurry();
            }
        }
        self.ticks += 1;
        if !crew.knows_end() && self.ticks.is_multiple_of(4) {
            self.wakes.adapt(Instant::now(), crew.bytes());
        }
        crew.bytes()
    }
}

fn send_command(control: &TcpStream, word: u8, methods: Methods) -> Result<(), LoadError> {
    let mut message = vec![word];
    for name in [methods.send.name(), methods.receive.name()] {
        message.push(name.len() as u8);
        message.extend_from_slice(name.as_bytes());
    }
    write(control, &message)
}

fn write(mut control: &TcpStream, message: &[u8]) -> Result<(), LoadError> {
    control.write_all(message).map_err(|source| LoadError::Broken { bytes: 0, source })
}

fn read_bytes<const N: usize>(job: &Job<'_>, mut control: &TcpStream) -> Result<[u8; N], LoadError> {
    let mut buffer = [0; N];
    let mut length = 0;
    let limit = Instant::now() + LONG_TURN + ANSWER_TIME;
    let broken = |source| LoadError::Broken { bytes: 0, source };
    while length < N {
        job.check("calibrating")?;
        match control.read(&mut buffer[length..]) {
            Ok(0) => return Err(broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(more) => length += more,
            Err(error) if is_passing(&error) && Instant::now() < limit => {}
            Err(error) if is_passing(&error) => {
                return Err(LoadError::Stalled {
                    bytes: 0,
                    waited_ms: (LONG_TURN + ANSWER_TIME).as_millis(),
                });
            }
            Err(source) => return Err(broken(source)),
        }
    }
    Ok(buffer)
}

fn expect_ready(job: &Job<'_>, control: &TcpStream) -> Result<(), LoadError> {
    match read_bytes(job, control)? {
        [READY] => Ok(()),
        [other] => Err(LoadError::OutOfStep { what: format!("byte {other} instead of a ready receiver") }),
    }
}

fn read_numbers<const N: usize>(job: &Job<'_>, control: &TcpStream) -> Result<[u64; N], LoadError> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = u64::from_be_bytes(read_bytes(job, control)?);
    }
    Ok(numbers)
}

fn read_name(job: &Job<'_>, control: &TcpStream) -> Result<String, LoadError> {
    let [length] = read_bytes(job, control)?;
    let mut name = Vec::new();
    for _ in 0..length {
        let [byte] = read_bytes(job, control)?;
        name.push(byte);
    }
    Ok(String::from_utf8_lossy(&name).into_owned())
}
