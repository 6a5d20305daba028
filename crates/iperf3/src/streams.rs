//! The threads that send and receive: one per stream.
//!
//! What comes in: a connected socket, the shared board, block and rate. What goes out: counts on the stream's
//! meter. Every wait is bounded by a slice, so that a thread ends soon after its order to stop. A receiver of
//! TCP throws bytes away in the kernel without copying them.

use std::io::{self, ErrorKind, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_sys::datagram::{self, Trains};
use linerate_sys::socket::{self, BATCH_MAX, Ready};
use linerate_sys::{affinity, zerocopy};

use super::SLICE;
use super::board::{Board, Meter};
use super::parameters::{GRO_BYTES, GSO_BYTES_MAX};
use super::tally::{HEADER_BYTES, header};

/// A receiver that is draining ends when nothing came for so long.
const QUIET: Duration = Duration::from_millis(60);

/// What one receive call may take out of the kernel at once.
const RECEIVE_BYTES: usize = 1 << 20;

/// Most datagrams of a train: `UDP_MAX_SEGMENTS` of the kernel was 64 until 6.9.
const SEGMENTS_MAX: usize = 64;

/// Trains that one receive call takes.
const TRAINS: usize = 16;

/// One refusal may be an echo of an earlier datagram; so many in a row are an answer.
const FAILED_SENDS_MAX: u32 = 100;

/// A socket of a stream.
#[derive(Debug, Clone)]
pub(super) enum Wire {
    Tcp(Arc<TcpStream>),
    Udp(Arc<UdpSocket>),
}

/// How a stream sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Block of a write or payload of a datagram, bytes.
    pub(super) block: usize,
    /// bit/s; 0 for as fast as it goes.
    pub(super) rate_bps: u64,
    /// Blocks that go at once when there is a rate.
    pub(super) burst: u32,
    /// Numbers of datagrams have 64 bits.
    pub(super) wide: bool,
    /// Pages of a file in memory are handed to the kernel.
    pub(super) zerocopy: bool,
    /// Datagrams go and come in trains.
    pub(super) gsro: bool,
    /// CPU of the thread.
    pub(super) cpu: Option<u32>,
}

impl Pace {
    /// How many blocks are due at `elapsed` after the start.
    fn due(&self, elapsed: Duration) -> u64 {
        let blocks = elapsed.as_secs_f64() * self.rate_bps as f64 / 8.0 / self.block.max(1) as f64;
        let burst = u64::from(self.burst.max(1));
        (blocks as u64 / burst + 1).saturating_mul(burst)
    }

    /// When block number `number` (from 0) is due.
    fn due_at(&self, number: u64) -> Duration {
        let burst = u64::from(self.burst.max(1));
        let bits = (number / burst * burst) as f64 * self.block as f64 * 8.0;
        Duration::try_from_secs_f64(bits / self.rate_bps.max(1) as f64).unwrap_or(Duration::MAX)
    }
}

/// Starts the thread of a stream.
pub(super) fn start(
    wire: &Wire,
    sends: bool,
    pace: Pace,
    board: &Arc<Board>,
    meter: &Arc<Meter>,
) -> io::Result<JoinHandle<()>> {
    match wire {
        Wire::Tcp(stream) => {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(SLICE))?;
            stream.set_write_timeout(Some(SLICE))?;
        }
        Wire::Udp(socket) => {
            socket.set_nonblocking(false)?;
            socket.set_read_timeout(Some(SLICE))?;
        }
    }
    let (wire, board, meter) = (wire.clone(), Arc::clone(board), Arc::clone(meter));
    std::thread::Builder::new().name("iperf3".into()).spawn(move || {
        let pinned = pace.cpu.map_or(Ok(()), |cpu| {
            let words = |error| io::Error::other(format!("CPU {cpu} cannot be used: {error}"));
            affinity::restrict(0, &[cpu]).map_err(words)
        });
        let result = match (&wire, sends) {
            _ if pinned.is_err() => pinned,
            (Wire::Tcp(stream), true) => send_bytes(stream, pace, &board, &meter),
            (Wire::Tcp(stream), false) => receive_bytes(stream, &board, &meter),
            (Wire::Udp(socket), true) => send_datagrams(socket, pace, &board, &meter),
            (Wire::Udp(socket), false) => receive_datagrams(socket, pace, &board, &meter),
        };
        if let Err(error) = result {
            meter.fail(error.to_string());
        }
        // A thread of its own has its whole life to account for.
        board.add_costs(linerate_sys::cpu::thread_times());
        meter.ended.store(true, Ordering::Relaxed);
    })
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Sleeps until the block is due, at most a slice; `false` when it is not due yet.
fn wait_until_due(pace: Pace, start: Instant, number: u64) -> bool {
    if pace.rate_bps == 0 {
        return true;
    }
    let ahead = pace.due_at(number).saturating_sub(start.elapsed());
    if !ahead.is_zero() {
        std::thread::sleep(ahead.min(SLICE));
    }
    ahead <= SLICE
}

fn send_bytes(mut stream: &TcpStream, pace: Pace, board: &Board, meter: &Meter) -> io::Result<()> {
    let block: Vec<u8> = (0..pace.block).map(|i| (i % 251) as u8).collect();
    let file = if pace.zerocopy { Some(zerocopy::memory_file(&block)?) } else { None };
    let start = Instant::now();
    let mut number = 0;
    while board.senders_go_on() {
        if !wait_until_due(pace, start, number) {
            continue;
        }
        let granted = board.take(block.len());
        // The end of the block, so that the length of the rest gives the offset in the file.
        let mut rest = &block[block.len() - granted..];
        if rest.is_empty() {
            return Ok(());
        }
        number += 1;
        while !rest.is_empty() && board.senders_go_on() {
            let written = match &file {
                Some(file) => {
                    zerocopy::send_file(stream, file, (block.len() - rest.len()) as u64, rest.len())
                }
                None => stream.write(rest),
            };
            match written {
                Ok(written) => {
                    meter.note(written as u64, u64::from(written == rest.len()), board.now());
                    rest = &rest[written..];
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Whether a receiver to which nothing came has waited long enough.
fn is_quiet(board: &Board, quiet_since: &mut Option<Instant>) -> bool {
    if !board.is_draining() {
        *quiet_since = None;
        return false;
    }
    quiet_since.get_or_insert_with(Instant::now).elapsed() >= QUIET
}

fn receive_bytes(stream: &TcpStream, board: &Board, meter: &Meter) -> io::Result<()> {
    let mut buffer = vec![0; RECEIVE_BYTES];
    let mut quiet_since = None;
    while board.receivers_go_on() {
        match socket::receive_discarding(stream, &mut buffer) {
            Ok(0) => return Ok(()),
            Ok(bytes) => {
                meter.note(bytes as u64, 0, board.now());
                quiet_since = None;
            }
            Err(error) if is_passing(&error) => {
                if is_quiet(board, &mut quiet_since) {
                    return Ok(());
                }
            }
            // A peer that has ended its part may reset what it did not want to read.
            Err(_) if board.is_draining() => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn send_datagrams(udp: &UdpSocket, pace: Pace, board: &Board, meter: &Meter) -> io::Result<()> {
    let block = pace.block.max(HEADER_BYTES);
    // As many as a train of about 64 KiB, so that small datagrams cost few calls and large ones come evenly.
    let train = if pace.gsro { GSO_BYTES_MAX as usize } else { 65_536 };
    let batch = (train / block).clamp(1, if pace.gsro { SEGMENTS_MAX } else { BATCH_MAX });
    if pace.gsro {
        datagram::set_segment_bytes(udp, block as u16)?;
    }
    let mut buffer: Vec<u8> = (0..block * batch).map(|i| (i % 251) as u8).collect();
    let start = Instant::now();
    let (mut sent, mut failed) = (0_u64, 0);
    while board.senders_go_on() {
        if !wait_until_due(pace, start, sent) {
            continue;
        }
        let due = if pace.rate_bps == 0 { u64::MAX } else { pace.due(start.elapsed()) };
        let wanted = due.saturating_sub(sent).min(batch as u64) as usize;
        let granted = (0..wanted).take_while(|_| board.take(block) > 0).count();
        if granted == 0 {
            if board.is_spent() {
                return Ok(());
            }
            continue;
        }
        let now = board.now();
        for (part, number) in buffer.chunks_exact_mut(block).take(granted).zip(sent + 1..) {
            part[..HEADER_BYTES].copy_from_slice(&header(now, number, pace.wide));
        }
        let mut went = 0;
        while went < granted && board.senders_go_on() {
            let rest = &buffer[went * block..granted * block];
            let sent = if pace.gsro {
                udp.send(rest).map(|bytes| bytes / block)
            } else {
                socket::send_batch(udp, rest, block)
            };
            match sent {
                Ok(count) => {
                    went += count;
                    failed = 0;
                    meter.note((count * block) as u64, count as u64, board.now());
                }
                Err(error) if is_passing(&error) || socket::is_full(&error) => {
                    socket::wait(&[udp.as_fd()], Ready::Writable, Duration::from_millis(1))?;
                }
                Err(error) => {
                    failed += 1;
                    if failed >= FAILED_SENDS_MAX {
                        return Err(error);
                    }
                }
            }
        }
        sent += went as u64;
    }
    Ok(())
}

fn receive_datagrams(udp: &UdpSocket, pace: Pace, board: &Board, meter: &Meter) -> io::Result<()> {
    let slot = if pace.gsro { GRO_BYTES as usize } else { HEADER_BYTES };
    let mut inbox = Trains::new(if pace.gsro { TRAINS } else { BATCH_MAX }, slot);
    if pace.gsro {
        datagram::set_receive_offload(udp, true)?;
    }
    let mut quiet_since = None;
    while board.receivers_go_on() {
        match inbox.receive(udp) {
            Ok(_) => {
                let at = board.now();
                let mut tally = meter.tally();
                let mut count = |head: &[u8], length: usize| {
                    if tally.note(head, pace.wide, at) { length } else { 0 }
                };
                let bytes: usize = inbox
                    .iter()
                    .map(|unit| match unit.length.div_ceil(unit.segment.max(1)) {
                        // What was cut off by a small slot has its length all the same.
                        0 | 1 => count(unit.bytes, unit.length),
                        _ => unit.bytes.chunks(unit.segment).map(|part| count(part, part.len())).sum(),
                    })
                    .sum();
                drop(tally);
                meter.note(bytes as u64, 0, at);
                quiet_since = None;
            }
            Err(error) if is_passing(&error) => {
                if is_quiet(board, &mut quiet_since) {
                    return Ok(());
                }
            }
            // An echo of a datagram that we sent to a port that is closed by now.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                if board.is_draining() {
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_due_at_their_rate_and_in_bursts() {
        let pace = Pace {
            block: 1000,
            rate_bps: 8_000_000,
            burst: 0,
            wide: false,
            zerocopy: false,
            gsro: false,
            cpu: None,
        };
        assert_eq!(pace.due(Duration::ZERO), 1);
        assert_eq!(pace.due(Duration::from_millis(10)), 11);
        assert_eq!(pace.due_at(10), Duration::from_millis(10));
        let bursts = Pace { burst: 10, ..pace };
        assert_eq!(bursts.due(Duration::from_millis(5)), 10);
        assert_eq!(bursts.due_at(19), Duration::from_millis(10));
        let senseless = Pace { block: usize::MAX, rate_bps: 1, ..pace };
        assert!(senseless.due_at(u64::MAX) > Duration::from_secs(1));
    }
}
