//! The sending end: a clock, bursts, and the count of what the kernel took.
//!
//! What comes in: a plan. What goes out: datagrams with number and time of sending, then a few times the last
//! word. It never catches up faster than at twice the rate.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use linerate_model::datagram::UdpFlow;
use linerate_model::load::{LoadReport, UdpEnd};
use linerate_sys::datagram as kernel;
use linerate_sys::socket::{self, BATCH_MAX};

use super::plan::{DATA, END, Plan, SEQUENCE_MAX};
use crate::datagram::{self, HEADER_BYTES};
use crate::job::{Job, LoadError, is_passing};
use crate::sampler::{INTERVAL, Series, Totals};
use crate::token::Stamp;

/// A sender that is later than this, and than two bursts, leaves out what it missed.
const LATE_MAX: Duration = Duration::from_millis(5);

/// A wait shorter than this is not worth going to sleep.
const SLEEP_MIN: Duration = Duration::from_micros(5);

/// Trains in one system call of a sender that sends flat out.
const TRAINS: usize = 8;

/// Sends in a row that failed after which the rest is not tried.
const FAILED_SENDS_MAX: u32 = 50;

/// A running sender.
struct Pacer {
    plan: Plan,
    socket: UdpSocket,
    start: Instant,
    /// When datagram 0 was due; moves when datagrams are skipped.
    origin: Instant,
    /// Not before: what keeps a late sender from bursts.
    next: Instant,
    sent: u64,
    skipped: u64,
    units: u64,
    failed_sends: u32,
    /// The kernel cuts each write into datagrams.
    cuts: bool,
    buffer: Vec<u8>,
    stamp: Stamp,
}

pub(super) fn send(
    job: &Job<'_>,
    plan: Plan,
    peer: SocketAddr,
    report: &mut LoadReport,
) -> Result<(), LoadError> {
    let socket = datagram::connect(job, peer)?;
    kernel::sleep_exactly();
    let cuts = plan.cuts() && kernel::set_segment_bytes(&socket, plan.payload as u16).is_ok();
    let start = Instant::now();
    let datagrams = (TRAINS * plan.segments_max()).max(BATCH_MAX);
    let mut pacer = Pacer {
        plan,
        socket,
        start,
        origin: start,
        next: start,
        sent: 0,
        skipped: 0,
        units: 0,
        failed_sends: 0,
        cuts,
        buffer: vec![0; plan.payload * datagrams],
        stamp: job.token.stamp(DATA, &[]),
    };
    let mut series = Series::new(start, plan.duration, Totals::default());
    let result = pacer.run(job, &mut series);
    report.elapsed_s = start.elapsed().as_secs_f64();
    datagram::farewell(&pacer.socket, &job.token.stamp(END, &[]), pacer.sent);
    report.bytes = pacer.sent * plan.payload as u64;
    report.series = series.finish();
    report.udp = Some(UdpEnd { datagrams: pacer.sent, ..UdpEnd::default() });
    report.udp_flow = Some(UdpFlow {
        units: pacer.units,
        offload: pacer.cuts.then(|| "gso".to_owned()),
        train: plan.burst() as u32,
        skipped: pacer.skipped,
        ..UdpFlow::default()
    });
    result
}

impl Pacer {
    fn run(&mut self, job: &Job<'_>, series: &mut Series) -> Result<(), LoadError> {
        let mut next_sample = self.start + INTERVAL;
        loop {
            let now = Instant::now();
            if now >= next_sample {
                let bytes = self.sent * self.plan.payload as u64;
                series.push(now, Totals { bytes, ..Totals::default() });
                next_sample = now + INTERVAL;
            }
            if now - self.start >= self.plan.duration || self.sent >= SEQUENCE_MAX {
                return Ok(());
            }
            job.check("sending datagrams")?;
            match self.plan.gap_s {
                Some(gap_s) => self.step(now, gap_s)?,
                None => {
                    self.send_some(self.flat_out())?;
                }
            }
        }
    }

    /// Datagrams of one system call of a sender that sends flat out.
    fn flat_out(&self) -> usize {
        if self.cuts { TRAINS * self.plan.segments_max() } else { BATCH_MAX }
    }

    /// Sends one burst of what is due, or waits until one is.
    fn step(&mut self, now: Instant, gap_s: f64) -> Result<(), LoadError> {
        let burst = self.plan.burst();
        let at = self.next.max(self.origin + Duration::from_secs_f64((self.sent + burst - 1) as f64 * gap_s));
        let wait = at.saturating_duration_since(now);
        if !wait.is_zero() {
            if wait < SLEEP_MIN {
                std::hint::spin_loop();
            } else {
                // Slow rates wait long for one datagram: the stop flag is checked in between.
                std::thread::sleep(wait.min(INTERVAL));
            }
            return Ok(());
        }
        let due = (now.saturating_duration_since(self.origin).as_secs_f64() / gap_s) as u64 + 1;
        let most = ((LATE_MAX.as_secs_f64() / gap_s) as u64).max(2 * burst);
        let missed = due.saturating_sub(self.sent + most);
        if missed > 0 {
            self.origin += Duration::from_secs_f64(missed as f64 * gap_s);
            self.skipped += missed;
        }
        let went = self.send_some(burst as usize)?;
        self.next = now + Duration::from_secs_f64(went as f64 * gap_s / 2.0);
        Ok(())
    }

    /// Sends so many datagrams in one call, or fewer where the kernel takes no more; returns how many went.
    fn send_some(&mut self, number: usize) -> Result<usize, LoadError> {
        let size = self.plan.payload;
        let sent_ns = self.start.elapsed().as_nanos() as u64;
        for (index, part) in self.buffer.chunks_exact_mut(size).take(number).enumerate() {
            let head = datagram::header(&self.stamp, self.sent + index as u64, sent_ns);
            part[..HEADER_BYTES].copy_from_slice(&head);
        }
        let per_unit = if self.cuts { self.plan.segments_max().min(number) } else { 1 };
        match socket::send_batch(&self.socket, &self.buffer[..number * size], per_unit * size) {
            Ok(units) => {
                self.failed_sends = 0;
                self.units += units as u64;
                self.sent += (units * per_unit) as u64;
                Ok(units * per_unit)
            }
            Err(error) if is_passing(&error) || socket::is_full(&error) => Ok(0),
            Err(error) if self.cuts && kernel::is_no_offload(&error) => {
                // The output device cannot cut: from now on each datagram is written alone.
                self.cuts = false;
                kernel::set_segment_bytes(&self.socket, 0).map_err(LoadError::io("switch segmenting off"))?;
                Ok(0)
            }
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
