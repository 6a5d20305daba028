//! Finds out which ways of sending and receiving suit this path: they take turns on the connections of the
//! test.
//!
//! What comes in: proven streams and one more for control. What goes out: the ways to use, and at the sender
//! the table of the turns. A turn begins when both ends are ready and ends when the receiver has everything
//! that was sent, so that no byte of one turn is counted in another, nor in the test. The sender leads.
//! Bounded in number and time.
//!
//! On the control stream the sender says `T` and the two ways (each a length and a name), the receiver
//! answers `R`; after the turn the sender says how many bytes it sent (8 bytes) and the receiver, when it has
//! them, its CPU time in nanoseconds, the bytes and the time between the first and the last in microseconds
//! (8 bytes each). At the end the sender says `U` and the ways to use, and the receiver answers `R`. Numbers
//! are big-endian.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_model::load::Turn;
use linerate_model::tuning::{CALIBRATION_MS_MAX, TURN_MS};
use linerate_sys::socket::{self, Ready};

use super::choose;
use super::crew::{self, Crew, Watchdog};
use super::place::Place;
use super::plan::Plan;
use super::receiver::{self, Wakes};
use super::sender::Sending;
use super::stream_end::StreamEnd;
use super::ways::Ways;
use crate::job::{Job, LoadError, is_passing};

const ROUNDS: usize = 2;
const TURN: Duration = Duration::from_millis(TURN_MS as u64);
/// No turn begins later.
const LAST_TURN: Duration = Duration::from_millis(CALIBRATION_MS_MAX as u64 / 2);
/// An answer that takes longer will not come.
const ANSWER_TIME: Duration = Duration::from_millis(CALIBRATION_MS_MAX as u64 / 2);
/// A path on which what was sent takes so long to arrive is so slow that any way fills it. Threads of both
/// ends that wait for a CPU do not take as long.
const SLOW: Duration = Duration::from_secs(1);
/// How often a receiver looks for the end of a turn.
const LOOK_EVERY: Duration = Duration::from_millis(5);

const SAY_TURN: u8 = b'T';
const SAY_USE: u8 = b'U';
const READY: u8 = b'R';

/// Leads the calibration from the sender's end.
pub(super) fn lead(
    job: &Job<'_>,
    plan: Plan,
    streams: &[TcpStream],
    control: &TcpStream,
    turns: &mut Vec<Turn>,
) -> Result<Ways, LoadError> {
    let candidates = Ways::candidates(&job.spec.tuning)?;
    let begun = Instant::now();
    for round in 0..ROUNDS {
        let mut order = candidates.clone();
        if round % 2 == 1 {
            order.reverse();
        }
        for ways in order {
            let (send, receive) = (ways.send.name(), ways.receive.name());
            let due = round == 0 || choose::is_worth_a_turn(turns, send, receive);
            if candidates.len() < 2 || !due || begun.elapsed() >= LAST_TURN {
                continue;
            }
            let since = Instant::now();
            turns.push(lead_turn(job, plan, streams, control, ways)?);
            if since.elapsed() >= TURN + SLOW {
                return use_ways(job, control, turns, Ways::asked_for(&job.spec.tuning)?);
            }
        }
    }
    let ways = match choose::best(turns) {
        Some((send, receive)) => Ways::named(send, receive)?,
        None => Ways::asked_for(&job.spec.tuning)?,
    };
    use_ways(job, control, turns, ways)
}

fn use_ways(job: &Job<'_>, control: &TcpStream, turns: &mut [Turn], ways: Ways) -> Result<Ways, LoadError> {
    for turn in turns.iter_mut() {
        turn.chosen = turn.send == ways.send.name() && turn.receive == ways.receive.name();
    }
    say(control, SAY_USE, ways)?;
    hear_ready(job, control)?;
    Ok(ways)
}

fn lead_turn(
    job: &Job<'_>,
    plan: Plan,
    streams: &[TcpStream],
    control: &TcpStream,
    ways: Ways,
) -> Result<Turn, LoadError> {
    let mut turn = Turn {
        send: ways.send.name().to_owned(),
        receive: ways.receive.name().to_owned(),
        ..Turn::default()
    };
    let sending = match Sending::new(job, &ways, streams) {
        Ok(sending) => sending,
        Err(error) => {
            turn.failed = Some(error.to_string());
            return Ok(turn);
        }
    };
    say(control, SAY_TURN, ways)?;
    hear_ready(job, control)?;
    let _ = job.take_costs();
    let plan = Plan { duration: TURN, ..plan };
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
    tell(control, &bytes.to_be_bytes())?;
    let [cpu_ns, received, took_us] = hear_numbers::<3>(job, control)?;
    if received != bytes {
        return Err(LoadError::BytesDiffer { sent: bytes, received });
    }
    let gigabytes = bytes as f64 / 1e9;
    if bytes > 0 && took_us > 0 {
        turn.bps = bytes as f64 * 8e6 / took_us as f64;
        turn.tx_s_per_gb = cpu_s / gigabytes;
        turn.rx_s_per_gb = cpu_ns as f64 / 1e9 / gigabytes;
    }
    Ok(turn)
}

/// Follows the calibration at the receiver's end.
pub(super) fn follow(
    job: &Job<'_>,
    plan: Plan,
    streams: &[TcpStream],
    control: &TcpStream,
) -> Result<Ways, LoadError> {
    let begun = Instant::now();
    loop {
        let [word] = hear(job, control)?;
        if word != SAY_TURN && word != SAY_USE {
            return Err(LoadError::OutOfStep { what: format!("byte {word} instead of a turn") });
        }
        let (send, receive) = (hear_name(job, control)?, hear_name(job, control)?);
        let ways = Ways::named(&send, &receive)?;
        tell(control, &[READY])?;
        if word == SAY_USE {
            return Ok(ways);
        }
        follow_turn(job, plan, streams, control, ways)?;
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
    ways: Ways,
) -> Result<(), LoadError> {
    let _ = job.take_costs();
    let place = Place::of(&job.spec.tuning.pin, job.spec.bind);
    let call_bytes = receiver::call_bytes(job, streams.len());
    let plan = Plan { duration: TURN, interval: LOOK_EVERY, stall: plan.stall.max(ANSWER_TIME), ..plan };
    let mut waiting = Waiting { control, heard: [0; 8], length: 0, wakes: Wakes::new(streams), ticks: 0 };
    let (mut ends, kept) = job.account_aside(|| {
        crew::run(job, plan, streams, &mut waiting, |crew, index, stream| {
            place.take(index, false);
            let mut end = StreamEnd::default();
            let mut pull = ways.receive.open(call_bytes);
            receiver::pull_all(crew, index, stream, ways.receive.is_beside(), pull.as_mut(), &mut end);
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
    place.verdict()?;
    let first = ends.iter().filter_map(|end| end.span).map(|span| span.0).min();
    let last = ends.iter().filter_map(|end| end.span).map(|span| span.1).max();
    let took = first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first);
    let mut answer = Vec::with_capacity(24);
    for number in [costs.running.as_nanos() as u64, bytes, took.as_micros() as u64] {
        answer.extend_from_slice(&number.to_be_bytes());
    }
    tell(control, &answer)
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
    heard: [u8; 8],
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
            && let Ok(more) = control.read(&mut self.heard[self.length..])
        {
            self.length += more;
            if self.length == self.heard.len() {
                crew.end_at(u64::from_be_bytes(self.heard));
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

fn say(control: &TcpStream, word: u8, ways: Ways) -> Result<(), LoadError> {
    let mut message = vec![word];
    for name in [ways.send.name(), ways.receive.name()] {
        message.push(name.len() as u8);
        message.extend_from_slice(name.as_bytes());
    }
    tell(control, &message)
}

fn tell(mut control: &TcpStream, message: &[u8]) -> Result<(), LoadError> {
    control.write_all(message).map_err(|source| LoadError::Broken { bytes: 0, source })
}

fn hear<const N: usize>(job: &Job<'_>, mut control: &TcpStream) -> Result<[u8; N], LoadError> {
    let mut room = [0; N];
    let mut length = 0;
    let limit = Instant::now() + TURN + ANSWER_TIME;
    let broken = |source| LoadError::Broken { bytes: 0, source };
    while length < N {
        job.check("calibrating")?;
        match control.read(&mut room[length..]) {
            Ok(0) => return Err(broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(more) => length += more,
            Err(error) if is_passing(&error) && Instant::now() < limit => {}
            Err(error) if is_passing(&error) => {
                return Err(LoadError::Stalled { bytes: 0, waited_ms: (TURN + ANSWER_TIME).as_millis() });
            }
            Err(source) => return Err(broken(source)),
        }
    }
    Ok(room)
}

fn hear_ready(job: &Job<'_>, control: &TcpStream) -> Result<(), LoadError> {
    match hear(job, control)? {
        [READY] => Ok(()),
        [other] => Err(LoadError::OutOfStep { what: format!("byte {other} instead of a ready receiver") }),
    }
}

fn hear_numbers<const N: usize>(job: &Job<'_>, control: &TcpStream) -> Result<[u64; N], LoadError> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = u64::from_be_bytes(hear(job, control)?);
    }
    Ok(numbers)
}

fn hear_name(job: &Job<'_>, control: &TcpStream) -> Result<String, LoadError> {
    let [length] = hear(job, control)?;
    let mut name = Vec::new();
    for _ in 0..length {
        let [byte] = hear(job, control)?;
        name.push(byte);
    }
    Ok(String::from_utf8_lossy(&name).into_owned())
}
