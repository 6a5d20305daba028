//! The receiving end: answers requests in the waiting mode of the phase.
//!
//! What comes in: orders and requests on the proven connection, datagrams that show the stamp. What goes out:
//! answers of the request's length. It keeps no figures.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use linerate_model::kind::LatencyPlan;
use linerate_model::latency::{LatencyPhase, Waiting};
use linerate_model::load::{LoadReport, Role};
use linerate_sys::socket::{self, Ready};

use super::background::Background;
use super::free_cpus::FreeCpus;
use super::protocol::{
    ANSWER, ASK, BEGIN, END, NO_FREE_CPU, QUIT, REQUEST, datagram_bytes, has_datagrams, set_waiting, spin,
    write_all,
};
use crate::admission;
use crate::datagram::{self, HEADER_BYTES};
use crate::job::{Job, LoadError, SLICE, is_passing};

/// Longest silence of a sender: a phase, its load, and a queue that drains.
const ORDER_WAIT: Duration = Duration::from_secs(30);
/// Longest wait for the receiver of the load to listen.
const LISTEN_WAIT: Duration = Duration::from_secs(3);
/// Polls of a spinning end between two checks for the end of the phase or a stop.
const CHECK_EVERY: u32 = 1024;

pub(super) fn answer(job: &Job<'_>, plan: &LatencyPlan, report: &mut LoadReport) -> Result<(), LoadError> {
    let mut control = admission::accept_one(job)?;
    let mut refuses = None;
    loop {
        let mut order = [0; 1];
        admission::read_exactly(job, &mut control, &mut order, ORDER_WAIT)?;
        match order[0] {
            BEGIN => {
                admission::read_exactly(job, &mut control, &mut order, ORDER_WAIT)?;
                let Some(phase) = plan.phases.get(usize::from(order[0])) else {
                    return Err(disorder());
                };
                if plan.spins_on_free_cpus && phase.waiting == Waiting::Spinning && refuses.is_none() {
                    refuses = Some(FreeCpus::sample(job)?.is_some_and(|free| free.refusal().is_some()));
                }
                let refuses = refuses == Some(true) && phase.waiting == Waiting::Spinning;
                report.bytes +=
                    thread::scope(|scope| one_phase(scope, job, plan, *phase, refuses, &mut control))?;
            }
            QUIT => return Ok(()),
            _ => return Err(disorder()),
        }
    }
}

fn disorder() -> LoadError {
    let source = std::io::Error::new(std::io::ErrorKind::InvalidData, "the sender is out of step");
    LoadError::Broken { bytes: 0, source }
}

fn one_phase<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    job: &Job<'_>,
    plan: &LatencyPlan,
    phase: LatencyPhase,
    refuses: bool,
    control: &mut TcpStream,
) -> Result<u64, LoadError> {
    let (port_out, port_in) = mpsc::channel();
    let start = || {
        Background::start(scope, job, plan, Role::Receiver, move |port| {
            // The phase may be over and `port_in` dropped.
            let _ = port_out.send(port);
        })
    };
    let load = phase.loaded.then(start).transpose()?;
    let load_port = match &load {
        Some(_) => port_in.recv_timeout(LISTEN_WAIT).unwrap_or(0),
        None if refuses => NO_FREE_CPU,
        None => 0,
    };
    let result = serve(job, plan, phase, control, load_port);
    if let Some(load) = load {
        job.met(load.end(result.is_err()).strangers.unwrap_or_default());
    }
    result
}

fn serve(
    job: &Job<'_>,
    plan: &LatencyPlan,
    phase: LatencyPhase,
    control: &mut TcpStream,
    load_port: u16,
) -> Result<u64, LoadError> {
    let socket = has_datagrams(phase)
        .then(|| UdpSocket::bind((job.spec.bind, 0)))
        .transpose()
        .map_err(LoadError::io("bind a UDP socket"))?;
    let port = match &socket {
        Some(socket) => {
            socket.local_addr().map_err(LoadError::io("read the address of a UDP socket"))?.port()
        }
        None => 0,
    };
    let [[a, b], [c, d]] = [port, load_port].map(u16::to_be_bytes);
    control.write_all(&[a, b, c, d]).map_err(LoadError::io("send the ports of a phase"))?;
    if let Some(socket) = socket {
        return answer_datagrams(job, plan, phase.waiting, &socket, control);
    }
    set_waiting(control, phase.waiting)?;
    let served = answer_stream(job, plan, phase.waiting, control);
    set_waiting(control, Waiting::Blocking)?;
    served
}

fn answer_stream(
    job: &Job<'_>,
    plan: &LatencyPlan,
    waiting: Waiting,
    control: &mut TcpStream,
) -> Result<u64, LoadError> {
    let size = usize::from(plan.payload_bytes);
    let mut buffer = vec![0; size];
    let (mut bytes, mut got, mut polls) = (0_u64, 0, 0);
    job.check("answering")?;
    loop {
        match control.read(&mut buffer[got..]) {
            Ok(0) => {
                let source = std::io::ErrorKind::UnexpectedEof.into();
                return Err(LoadError::Broken { bytes, source });
            }
            Ok(length) => got += length,
            Err(error) if is_passing(&error) => {
                spin(&mut polls);
                // A blocking end wakes up 50 times a second for this.
                if waiting == Waiting::Blocking || polls.is_multiple_of(CHECK_EVERY) {
                    job.check("answering")?;
                }
                continue;
            }
            Err(source) => return Err(LoadError::Broken { bytes, source }),
        }
        if buffer[0] != ASK && buffer[0] != END {
            return Err(disorder());
        }
        if got == size {
            if buffer[0] == END {
                return Ok(bytes);
            }
            write_all(job, control, &buffer)?;
            bytes += size as u64;
            got = 0;
        }
    }
}

fn answer_datagrams(
    job: &Job<'_>,
    plan: &LatencyPlan,
    waiting: Waiting,
    socket: &UdpSocket,
    control: &mut TcpStream,
) -> Result<u64, LoadError> {
    let [request, reply] = [REQUEST, ANSWER].map(|label| job.token.stamp(label, &[]));
    let spinning = waiting == Waiting::Spinning;
    socket.set_nonblocking(spinning).map_err(LoadError::io("choose how to wait"))?;
    socket.set_read_timeout(Some(SLICE)).map_err(LoadError::io("set a time-out"))?;
    let mut buffer = vec![0; datagram_bytes(plan)];
    let (mut bytes, mut known, mut polls, mut strangers) = (0, false, 0_u32, 0_u64);
    let mut checked = Instant::now();
    loop {
        let due = match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                if let Some((sequence, _)) = datagram::parse(&request, &buffer[..length]) {
                    if !known {
                        // Cheaper to answer, and closed to all others.
                        known = socket.connect(from).is_ok();
                    }
                    bytes += length as u64;
                    buffer[..HEADER_BYTES].copy_from_slice(&datagram::header(&reply, sequence, 0));
                    // A lost answer is what the sender measures.
                    let _ = socket.send_to(&buffer[..length], from);
                } else {
                    strangers += 1;
                }
                // Datagrams that keep coming, of whatever origin, do not hold up the end of the phase.
                checked.elapsed() >= SLICE
            }
            Err(error) if is_passing(&error) => {
                spin(&mut polls);
                !spinning || polls.is_multiple_of(CHECK_EVERY)
            }
            // The echo of an answer that was not received.
            Err(_) => true,
        };
        if due {
            if is_over(job, control)? {
                job.met_datagrams(strangers, socket);
                return Ok(bytes);
            }
            checked = Instant::now();
        }
    }
}

/// Whether the sender reported the end of the phase.
fn is_over(job: &Job<'_>, control: &mut TcpStream) -> Result<bool, LoadError> {
    job.check("answering")?;
    if !socket::wait(&[control.as_fd()], Ready::Readable, Duration::ZERO).map_err(LoadError::io("wait"))? {
        return Ok(false);
    }
    let mut order = [0; 1];
    admission::read_exactly(job, control, &mut order, SLICE)?;
    if order[0] == END { Ok(true) } else { Err(disorder()) }
}
