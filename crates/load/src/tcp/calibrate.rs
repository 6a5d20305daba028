//! Selects the send and receive method for this path: they take turns on the connections of the test.
//!
//! What comes in: proven streams and one more for control. What goes out: the methods to use, and at the
//! sender the table of the turns. A turn begins when both ends are ready and ends when the receiver has
//! everything that was sent, so that no byte of one turn is counted in another, nor in the test. The sender
//! leads. Bounded in number and time.
//!
//! On the control stream the sender sends `T` and the two methods (each a length and a name), and the
//! receiver answers `R`. After the turn the sender sends its byte count (8 bytes). When the receiver has them
//! all, it sends its CPU time in nanoseconds, the bytes, and the time between the first and the last in
//! microseconds (8 bytes each). At the end the sender sends `U` and the methods to use, and the receiver
//! answers `R`. Numbers are big-endian.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_model::load::Turn;
use linerate_model::tuning::{CALIBRATION_MS_MAX, TURN_MS};
use linerate_sys::socket::{self, Ready};

use super::choose;
use super::crew::{self, Crew, Watchdog};
use super::methods::Methods;
use super::placement::Placement;
use super::plan::Plan;
use super::receiver::{self, Wakes};
use super::sender::Sending;
use super::stream_end::StreamEnd;
use crate::job::{Job, LoadError, is_passing};

const ROUNDS: usize = 2;
const TURN: Duration = Duration::from_millis(TURN_MS as u64);
/// No turn begins later.
const LAST_TURN: Duration = Duration::from_millis(CALIBRATION_MS_MAX as u64 / 2);
/// An answer that takes longer will not come.
const ANSWER_TIME: Duration = Duration::from_millis(CALIBRATION_MS_MAX as u64 / 2);
/// A path with a longer delivery time than this is so slow that any method fills it. Threads of both ends
/// that wait for a CPU do not take as long.
const SLOW: Duration = Duration::from_secs(1);
/// A receiver that took everything in less time than this waited for a CPU while it arrived: that is no rate.
const RATE_FROM: Duration = Duration::from_millis(TURN_MS as u64 / 2);
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
    let begun = Instant::now();
    'rounds: for round in 0..ROUNDS {
        let mut order = candidates.clone();
        if round % 2 == 1 {
            order.reverse();
        }
        for methods in order {
            let (send, receive) = (methods.send.name(), methods.receive.name());
            let due = round == 0 || choose::is_worth_a_turn(turns, send, receive);
            if candidates.len() < 2 || !due || begun.elapsed() >= LAST_TURN {
                continue;
            }
            let since = Instant::now();
            turns.push(lead_turn(job, plan, streams, control, methods)?);
            if since.elapsed() >= TURN + SLOW {
                break 'rounds;
            }
        }
    }
    let methods = match choose::best(turns) {
        Some((send, receive)) => Methods::named(send, receive)?,
        None => Methods::asked_for(&job.spec.tuning)?,
    };
    use_methods(job, control, turns, methods)
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
        turn.chosen = turn.send == methods.send.name() && turn.receive == methods.receive.name();
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
) -> Result<Turn, LoadError> {
    let mut turn = named(&methods);
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
    write(control, &bytes.to_be_bytes())?;
    let [cpu_ns, received, took_us] = read_numbers::<3>(job, control)?;
    if received != bytes {
        return Err(LoadError::BytesDiffer { sent: bytes, received });
    }
    let gigabytes = bytes as f64 / 1e9;
    if bytes > 0 && u128::from(took_us) >= RATE_FROM.as_micros() {
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
    let mut answer = Vec::with_capacity(24);
    for number in [costs.running.as_nanos() as u64, bytes, took.as_micros() as u64] {
        answer.extend_from_slice(&number.to_be_bytes());
    }
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
    let limit = Instant::now() + TURN + ANSWER_TIME;
    let broken = |source| LoadError::Broken { bytes: 0, source };
    while length < N {
        job.check("calibrating")?;
        match control.read(&mut buffer[length..]) {
            Ok(0) => return Err(broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(more) => length += more,
            Err(error) if is_passing(&error) && Instant::now() < limit => {}
            Err(error) if is_passing(&error) => {
                return Err(LoadError::Stalled { bytes: 0, waited_ms: (TURN + ANSWER_TIME).as_millis() });
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
