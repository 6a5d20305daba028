//! The thread that sends probes when they are due and answers those of others.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use linerate_model::probe::{PROBE_PORTS, PartnerCounts, ProbePartner, ProbeSpec};
use linerate_sys::datagram::{DatagramRead, Trains, set_time_stamps};
use linerate_sys::socket::{Ready, wait};

use super::counts::Counts;
use super::datagram::{BYTES, Probe};
use crate::job::{LoadError, enter, is_passing};
use crate::token::{Nonces, Stamp, Token};

/// Probes to each partner, each second.
const PER_S: f64 = 1.0;
/// Sleeps are no longer than this, so that an end is noticed.
const SLICE: Duration = Duration::from_millis(200);
/// Datagrams that are read at a time.
const READ: usize = 16;
/// Reads of a port in a turn: what strangers send holds up neither the other ports nor the end.
const BATCHES: usize = 16;
/// RTTs above this are a clock that was set, microseconds.
const RTT_US_MAX: u64 = 10_000_000;

/// A partner that is probed.
struct Partner {
    at: Vec<SocketAddr>,
    counts: Counts,
    /// Number of the next datagram to it.
    sequence: u64,
    probes: usize,
    due: Instant,
}

/// Partners and pace.
#[derive(Default)]
pub(super) struct State {
    partners: BTreeMap<u32, Partner>,
    faster: Option<(f64, Instant)>,
    has_lost: bool,
}

impl State {
    pub(super) fn set_partners(&mut self, wanted: &[ProbePartner], now: Instant) {
        let mut old = std::mem::take(&mut self.partners);
        let count = wanted.len().max(1) as u32;
        for (position, one) in wanted.iter().enumerate() {
            let partner = old.remove(&one.number).filter(|partner| partner.at == one.at);
            // One after the other within the second.
            let due = now + Duration::from_secs(1) * position as u32 / count;
            let new =
                || Partner { at: one.at.clone(), counts: Counts::new(now), sequence: 0, probes: 0, due };
            self.partners.insert(one.number, partner.unwrap_or_else(new));
        }
    }

    pub(super) fn faster(&mut self, per_s: f64, until: Instant) {
        self.faster = Some((per_s, until));
    }

    pub(super) fn has_lost(&self) -> bool {
        self.has_lost
    }

    pub(super) fn report(&mut self) -> Vec<PartnerCounts> {
        self.has_lost = false;
        self.partners.iter_mut().map(|(number, partner)| partner.counts.report(*number)).collect()
    }

    fn pause(&self, now: Instant) -> Duration {
        let per_s = self.faster.filter(|(_, until)| now < *until).map_or(PER_S, |(per_s, _)| per_s);
        Duration::from_secs_f64(1.0 / per_s)
    }
}

/// What the thread of probes and its asker share.
#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Something was lost.
    pub(super) lost: Condvar,
    pub(super) ends: AtomicBool,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Its sockets.
pub(super) struct Worker {
    sockets: Vec<UdpSocket>,
    stamp: Stamp,
    number: u32,
    run: u64,
    read: Trains,
}

impl Worker {
    pub(super) fn bind(spec: &ProbeSpec) -> Result<Self, LoadError> {
        if let Some(netns) = &spec.netns {
            enter(netns)?;
        }
        let bind = || {
            let socket = UdpSocket::bind((spec.bind, 0))?;
            socket.set_nonblocking(true)?;
            set_time_stamps(&socket)?;
            Ok(socket)
        };
        let sockets: Result<Vec<_>, _> = (0..PROBE_PORTS).map(|_| bind()).collect();
        let nonce =
            Nonces::open().and_then(|nonces| nonces.next()).map_err(LoadError::io("draw a random number"))?;
        Ok(Self {
            sockets: sockets.map_err(LoadError::io("bind a UDP socket"))?,
            stamp: Token::new(spec.token).stamp("probe", &[]),
            number: spec.number,
            run: u128::from_ne_bytes(nonce) as u64,
            read: Trains::new(READ, BYTES),
        })
    }

    pub(super) fn ports(&self) -> Vec<u16> {
        self.sockets.iter().filter_map(|socket| Some(socket.local_addr().ok()?.port())).collect()
    }

    /// Reads what came, counts what did not, sends what is due; waits for the next.
    pub(super) fn turn(&mut self, shared: &Shared) {
        // First: what waited for this thread is not lost.
        self.take(shared);
        let now = Instant::now();
        let mut next = now + SLICE;
        {
            let mut state = shared.state();
            let pause = state.pause(now);
            let mut has_lost = false;
            for partner in state.partners.values_mut() {
                if now >= partner.due {
                    self.probe(partner);
                    // A thread that was late does not make up for it.
                    partner.due = (partner.due + pause).max(now + pause / 2);
                }
                partner.due = partner.due.min(now + pause);
                next = next.min(partner.due);
                has_lost |= partner.counts.pass(now);
            }
            if has_lost {
                state.has_lost = true;
                shared.lost.notify_all();
            }
        }
        let sockets: Vec<BorrowedFd<'_>> = self.sockets.iter().map(|socket| socket.as_fd()).collect();
        // A millisecond at least: what is due a little earlier can be sent a little later.
        let pause = next.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        // Whatever ends the wait, the next turn reads first.
        let _ = wait(&sockets, Ready::Readable, pause);
    }

    fn probe(&self, partner: &mut Partner) {
        let port = partner.probes % PROBE_PORTS;
        partner.probes += 1;
        self.send(partner, port, None, now_ns());
    }

    fn send(&self, partner: &mut Partner, port: usize, answers: Option<u64>, time_ns: u64) {
        let probe = Probe { from: self.number, run: self.run, sequence: partner.sequence, answers, time_ns };
        partner.sequence += 1;
        // What the kernel refuses to send is lost too.
        let _ = self.sockets[port].send_to(&probe.bytes(&self.stamp), partner.at[port]);
    }

    /// Takes what came, and answers probes to where their sender is known to be.
    fn take(&mut self, shared: &Shared) {
        let mut read = std::mem::replace(&mut self.read, Trains::new(1, 1));
        for port in 0..self.sockets.len() {
            for _ in 0..BATCHES {
                match read.receive(&self.sockets[port]) {
                    Ok(count) => {
                        read.iter().for_each(|datagram| self.took(port, &datagram, shared));
                        if count < READ {
                            break;
                        }
                    }
                    Err(error) if is_passing(&error) => break,
                    // The echo of a probe that was not taken; the next read goes on.
                    Err(_) => {}
                }
            }
        }
        self.read = read;
    }

    fn took(&self, port: usize, datagram: &DatagramRead<'_>, shared: &Shared) {
        let now_ns = now_ns();
        let Some(probe) = Probe::read(&self.stamp, datagram.bytes) else { return };
        let mut state = shared.state();
        let Some(partner) = state.partners.get_mut(&probe.from) else { return };
        partner.counts.arrived(probe.run, probe.sequence, Instant::now());
        let taken_ns = datagram.taken_ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(now_ns);
        match probe.answers {
            None => self.send(partner, port, Some(probe.time_ns), now_ns.saturating_sub(taken_ns)),
            Some(sent_ns) => {
                let rtt_us = taken_ns.saturating_sub(sent_ns).saturating_sub(probe.time_ns) / 1000;
                if rtt_us > 0 && rtt_us < RTT_US_MAX {
                    partner.counts.answered(rtt_us as u32);
                }
            }
        }
    }
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
