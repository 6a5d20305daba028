//! Paced datagrams from sender to receiver; both ends count.
//!
//! What comes in: payload rate, datagram size, time. What goes out: datagrams sent, and received without duplicates, out of
//! order, twice. Datagrams leave on an absolute schedule in batches of at most 1 ms; a sender that was late leaves datagrams
//! out instead of sending a burst that a queue on the way would drop. What the receiver's own socket had to drop is told
//! apart from what the path lost.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use linerate_model::load::{LoadReport, Role, TestKind, UdpEnd};
use linerate_sys::socket::{self, BATCH_MAX, Inbox};

use crate::Load;
use crate::datagram::{self, HEADER_BYTES};
use crate::job::{FIRST_CONTACT, Job, LoadError};
use crate::sampler::{INTERVAL, Series, Totals};
use crate::token::Stamp;

/// The load `udp`.
pub(crate) struct Udp;

const DATA: &str = "udp data";
const END: &str = "udp end";

/// Datagrams are collected for half of the 1 ms that a batch may hold: the other half is reserve for a late wake-up.
const BATCH_TIME: Duration = Duration::from_micros(500);

/// A sender that is later than this skips what it missed.
const LATE_MAX: Duration = Duration::from_millis(1);

/// Receive buffer that is asked for: 100 ms of 500 Mbit/s, so that a receiver that waits for a CPU loses nothing.
const RECEIVE_BUFFER_BYTES: u32 = 16 << 20;

/// After the sender's last word, datagrams that were overtaken by it are waited for so long.
const AFTER_END: Duration = Duration::from_millis(60);

/// Without a last word, the receiver ends so long after the expected end.
const WITHOUT_END: Duration = Duration::from_millis(200);

/// Sequence numbers that are counted: 8 MB of bitmap.
const SEQUENCE_MAX: u64 = 1 << 26;

/// Sends in a row that failed after which the rest is not tried.
const FAILED_SENDS_MAX: u32 = 50;

/// The numbers of a test, checked.
#[derive(Clone, Copy)]
struct Plan {
    gap_s: f64,
    payload: usize,
    duration: Duration,
}

impl Plan {
    fn new(kind: &TestKind) -> Result<Self, LoadError> {
        let &TestKind::Udp { rate_bps, payload_bytes, duration_ms } = kind else {
            return Err(LoadError::Unknown { name: "udp" });
        };
        if !(1e3..=1e12).contains(&rate_bps) {
            return Err(LoadError::Spec { what: "rate_bps", value: rate_bps, limit: "1 kbit/s to 1 Tbit/s" });
        }
        // The header needs its room; 65 507 is what fits into one IPv4 packet.
        let payload = usize::from(payload_bytes).clamp(HEADER_BYTES, 65_507);
        let gap_s = payload as f64 * 8.0 / rate_bps;
        Ok(Self { gap_s, payload, duration: Duration::from_millis(u64::from(duration_ms)) })
    }

    fn datagrams_in(&self, time: Duration) -> u64 {
        (time.as_secs_f64() / self.gap_s) as u64
    }
}

impl Load for Udp {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn run(&self, job: &Job<'_>, report: &mut LoadReport) -> Result<(), LoadError> {
        let plan = Plan::new(&job.spec.kind)?;
        job.account(|| match job.spec.role {
            Role::Receiver => receive(job, plan, report),
            Role::Sender { peer } => send(job, plan, peer, report),
        })
    }
}

/// A sender under way.
struct Pacer {
    plan: Plan,
    socket: UdpSocket,
    /// When datagram 0 was due; moves when datagrams are skipped.
    origin: Instant,
    sent: u64,
    failed_sends: u32,
    room: Vec<u8>,
    stamp: Stamp,
}

fn send(job: &Job<'_>, plan: Plan, peer: SocketAddr, report: &mut LoadReport) -> Result<(), LoadError> {
    let socket = datagram::connect(job, peer)?;
    let start = Instant::now();
    let mut pacer = Pacer {
        plan,
        socket,
        origin: start,
        sent: 0,
        failed_sends: 0,
        room: vec![0; plan.payload * BATCH_MAX],
        stamp: job.token.stamp(DATA, &[]),
    };
    let mut series = Series::new(start, plan.duration, Totals::default());
    let mut next_sample = start + INTERVAL;
    let result = loop {
        let now = Instant::now();
        let bytes = pacer.sent * plan.payload as u64;
        if now >= next_sample {
            series.push(now, Totals { bytes, ..Totals::default() });
            next_sample = now + INTERVAL;
        }
        if now - start >= plan.duration {
            break Ok(());
        }
        if let Err(error) = job.check("sending datagrams").and_then(|()| pacer.step(now)) {
            break Err(error);
        }
    };
    report.elapsed_s = start.elapsed().as_secs_f64();
    datagram::farewell(&pacer.socket, &job.token.stamp(END, &[]), pacer.sent);
    report.bytes = pacer.sent * plan.payload as u64;
    report.series = series.finish();
    report.udp = Some(UdpEnd { datagrams: pacer.sent, ..UdpEnd::default() });
    result
}

impl Pacer {
    /// Sends what is due, or waits until a batch is.
    fn step(&mut self, now: Instant) -> Result<(), LoadError> {
        let due = self.plan.datagrams_in(now.saturating_duration_since(self.origin)) + 1;
        let mut ready = due.saturating_sub(self.sent);
        let most = self.plan.datagrams_in(LATE_MAX).max(1);
        if ready > most {
            self.origin += Duration::from_secs_f64((ready - most) as f64 * self.plan.gap_s);
            ready = most;
        }
        if ready == 0 {
            let batch = self.plan.datagrams_in(BATCH_TIME);
            let at = self.origin + Duration::from_secs_f64((self.sent + batch) as f64 * self.plan.gap_s);
            // Slow rates wait long for one datagram: the stop flag is looked at in between.
            let wait = at.saturating_duration_since(now).min(INTERVAL);
            std::thread::sleep(wait);
            return Ok(());
        }
        while ready > 0 {
            let went = self.send_some((ready as usize).min(BATCH_MAX))?;
            if went == 0 {
                break;
            }
            ready -= went as u64;
        }
        Ok(())
    }

    fn send_some(&mut self, number: usize) -> Result<usize, LoadError> {
        let size = self.plan.payload;
        for (index, part) in self.room.chunks_exact_mut(size).take(number).enumerate() {
            part[..HEADER_BYTES].copy_from_slice(&datagram::header(&self.stamp, self.sent + index as u64, 0));
        }
        match socket::send_batch(&self.socket, &self.room[..number * size], size) {
            Ok(went) => {
                self.failed_sends = 0;
                self.sent += went as u64;
                Ok(went)
            }
            Err(error) if datagram::is_passing(&error) || socket::is_full(&error) => Ok(0),
            Err(source) => {
                // One refusal may be an echo of an earlier datagram; many are an answer.
                self.failed_sends += 1;
                if self.failed_sends >= FAILED_SENDS_MAX {
                    return Err(LoadError::Io { what: "send datagrams", source });
                }
                std::thread::sleep(Duration::from_millis(1));
                Ok(0)
            }
        }
    }
}

/// Which datagrams came.
#[derive(Default)]
struct Tally {
    seen: Vec<u64>,
    next: u64,
    end: UdpEnd,
    bytes: u64,
}

impl Tally {
    fn note(&mut self, sequence: u64, bytes: usize) {
        if sequence >= SEQUENCE_MAX {
            return;
        }
        let (word, bit) = ((sequence / 64) as usize, 1_u64 << (sequence % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            self.end.duplicates += 1;
            return;
        }
        self.seen[word] |= bit;
        self.end.datagrams += 1;
        self.bytes += bytes as u64;
        if sequence < self.next {
            self.end.reordered += 1;
        }
        self.next = self.next.max(sequence + 1);
    }
}

fn receive(job: &Job<'_>, plan: Plan, report: &mut LoadReport) -> Result<(), LoadError> {
    let socket = datagram::bind(job, Some(RECEIVE_BUFFER_BYTES))?;
    let mut tally = Tally::default();
    let mut first = None;
    let mut last = Instant::now();
    let result = collect(job, plan, &socket, &mut tally, &mut first, &mut last, report);
    tally.end.kernel_drops = socket::dropped(&socket).ok();
    report.udp = Some(tally.end);
    report.bytes = tally.bytes;
    report.elapsed_s = first.map_or(0.0, |first| last.saturating_duration_since(first).as_secs_f64());
    result
}

fn collect(
    job: &Job<'_>,
    plan: Plan,
    socket: &UdpSocket,
    tally: &mut Tally,
    first: &mut Option<Instant>,
    last: &mut Instant,
    report: &mut LoadReport,
) -> Result<(), LoadError> {
    let (data, end) = (job.token.stamp(DATA, &[]), job.token.stamp(END, &[]));
    let mut inbox = Inbox::new(HEADER_BYTES);
    let mut limit = Instant::now() + FIRST_CONTACT;
    let mut announced = None;
    let mut series: Option<Series> = None;
    let mut next_sample = limit;
    while Instant::now() < limit && announced != Some(tally.end.datagrams) {
        job.check("receiving datagrams")?;
        if let Err(source) = inbox.receive(socket)
            && !datagram::is_passing(&source)
        {
            return Err(LoadError::Io { what: "receive datagrams", source });
        }
        let now = Instant::now();
        for (head, length) in inbox.iter() {
            if let Some((sequence, _)) = datagram::parse(&data, head) {
                tally.note(sequence, length);
                *last = now;
            } else if let Some((_, sent)) = datagram::parse(&end, head) {
                announced = announced.or(Some(sent));
                limit = limit.min(now + AFTER_END);
            }
        }
        if first.is_none() && tally.end.datagrams > 0 {
            *first = Some(now);
            limit = limit.max(now + plan.duration + WITHOUT_END);
            if announced.is_none() {
                limit = now + plan.duration + WITHOUT_END;
            }
            series =
                Some(Series::new(now, plan.duration, Totals { bytes: tally.bytes, ..Totals::default() }));
            next_sample = now + INTERVAL;
        }
        if let Some(series) = &mut series
            && now >= next_sample
        {
            series.push(now, Totals { bytes: tally.bytes, ..Totals::default() });
            next_sample = now + INTERVAL;
        }
    }
    report.series = series.map(Series::finish).unwrap_or_default();
    if tally.end.datagrams == 0 && announced.is_none() {
        return Err(LoadError::NobodyCame { waited_ms: FIRST_CONTACT.as_millis(), got: 0, wanted: 1 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_and_reordering_are_counted_apart() {
        let mut tally = Tally::default();
        for sequence in [0, 1, 3, 2, 2, 5, 4, 100, 100, SEQUENCE_MAX] {
            tally.note(sequence, 10);
        }
        let end = UdpEnd { datagrams: 7, reordered: 2, duplicates: 2, kernel_drops: None };
        assert_eq!((tally.end, tally.bytes), (end, 70));
    }

    #[test]
    fn senseless_numbers_are_refused() {
        let plan = |rate_bps| Plan::new(&TestKind::Udp { rate_bps, payload_bytes: 0, duration_ms: 1 });
        assert!(plan(f64::NAN).is_err() && plan(-1.0).is_err() && plan(f64::INFINITY).is_err());
        assert_eq!(plan(1e6).map(|plan| plan.payload).ok(), Some(HEADER_BYTES));
    }
}
