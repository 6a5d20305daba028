//! The receiving end: reads until the sender's last word, or until its time is over.
//!
//! What comes in: datagrams from anyone who finds the port. What goes out: the count of those that show the
//! stamp. It answers nothing, and counts the others.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use linerate_model::datagram::UdpFlow;
use linerate_model::load::LoadReport;
use linerate_sys::datagram::{self as kernel, DatagramRead, Trains};
use linerate_sys::socket::{self, BATCH_MAX};

use super::plan::{DATA, END, Plan};
use super::tally::{Delays, Tally};
use crate::datagram::{self, HEADER_BYTES};
use crate::job::{FIRST_CONTACT, Job, LoadError, is_passing};
use crate::sampler::{INTERVAL, Series, Totals};
use crate::token::Stamp;

/// Receive buffer that is asked for: 100 ms of 500 Mbit/s, so that a receiver that waits for a CPU loses
/// nothing.
const RECEIVE_BUFFER_BYTES: u32 = 16 << 20;

/// After the sender's last word, datagrams that were overtaken by it are waited for so long.
const AFTER_END: Duration = Duration::from_millis(60);

/// Without a last word, the receiver ends so long after the expected end. A sender that waits for a CPU is
/// late with it: a receiver that ends first would count as lost what it did not read. An operator gives a
/// receiver 700 ms.
const WITHOUT_END: Duration = Duration::from_millis(500);

/// Reads of one system call that may be glued together: half a megabyte, which stays in the cache.
const GLUED_UNITS: usize = 8;

/// A running receiver.
struct Collector {
    plan: Plan,
    socket: UdpSocket,
    data: Stamp,
    end: Stamp,
    tally: Tally,
    delays: Delays,
    units: u64,
    announced: Option<u64>,
    /// Datagrams without the stamp.
    strangers: u64,
    /// When the first and the last datagram were read.
    span: Option<(Instant, Instant)>,
    limit: Instant,
}

pub(super) fn receive(job: &Job<'_>, plan: Plan, report: &mut LoadReport) -> Result<(), LoadError> {
    let socket = datagram::bind(job, Some(RECEIVE_BUFFER_BYTES))?;
    let glues = plan.glues() && kernel::set_receive_offload(&socket, true).is_ok();
    if plan.gap_s.is_some() {
        // Without the kernel's stamps the time of reading must do.
        let _ = kernel::set_time_stamps(&socket);
    }
    let mut collector = Collector {
        plan,
        data: job.token.stamp(DATA, &[]),
        end: job.token.stamp(END, &[]),
        tally: Tally::default(),
        delays: Delays::default(),
        units: 0,
        announced: None,
        strangers: 0,
        span: None,
        limit: Instant::now() + FIRST_CONTACT,
        socket,
    };
    let trains = if glues { Trains::new(GLUED_UNITS, 65_536) } else { Trains::new(BATCH_MAX, HEADER_BYTES) };
    let mut series = None;
    let result = collector.run(job, trains, &mut series);
    collector.tally.end.kernel_drops =
        socket::dropped(&collector.socket).ok().map(|drops| collector.dropped(drops, glues));
    job.met_datagrams(collector.strangers, &collector.socket);
    report.udp = Some(collector.tally.end);
    report.bytes = collector.tally.bytes;
    report.elapsed_s =
        collector.span.map_or(0.0, |(first, last)| last.saturating_duration_since(first).as_secs_f64());
    report.series = series.map(Series::finish).unwrap_or_default();
    report.udp_flow = Some(UdpFlow {
        jitter_us: collector.delays.jitter_us(),
        delay_change_ns: collector.delays.changes(),
        gaps: Some(collector.tally.gaps(collector.announced)),
        units: collector.units,
        offload: glues.then(|| "gro".to_owned()),
        receive_buffer_bytes: socket::receive_buffer(&collector.socket).unwrap_or(0),
        ..UdpFlow::default()
    });
    result
}

impl Collector {
    fn run(
        &mut self,
        job: &Job<'_>,
        mut trains: Trains,
        series: &mut Option<Series>,
    ) -> Result<(), LoadError> {
        let mut next_sample = self.limit;
        while Instant::now() < self.limit && self.announced != Some(self.tally.end.datagrams) {
            job.check("receiving datagrams")?;
            if let Err(source) = trains.receive(&self.socket)
                && !is_passing(&source)
            {
                return Err(LoadError::Io { what: "receive datagrams", source });
            }
            let (now, now_ns) = (Instant::now(), kernel::now_ns());
            trains.iter().for_each(|unit| self.take(&unit, now, now_ns));
            if series.is_none() && self.tally.end.datagrams > 0 {
                let until = now + self.plan.duration + WITHOUT_END;
                self.limit = if self.announced.is_none() { until } else { self.limit.min(until) };
                let totals = Totals { bytes: self.tally.bytes, ..Totals::default() };
                *series = Some(Series::new(now, self.plan.duration, totals));
                next_sample = now + INTERVAL;
            }
            if let Some(series) = series
                && now >= next_sample
            {
                series.push(now, Totals { bytes: self.tally.bytes, ..Totals::default() });
                next_sample = now + INTERVAL;
            }
        }
        if self.tally.end.datagrams == 0 && self.announced.is_none() {
            return Err(LoadError::NobodyCame { waited_ms: FIRST_CONTACT.as_millis(), got: 0, wanted: 1 });
        }
        Ok(())
    }

    /// Datagrams of the flow that the socket dropped. The kernel counts what it drops at once: a whole train
    /// where trains are glued, all of one size unless the path cut them. An end message may be among them.
    fn dropped(&self, drops: u64, glues: bool) -> u64 {
        let missing = self.announced.map_or(u64::MAX, |sent| sent.saturating_sub(self.tally.end.datagrams));
        let each = if glues { self.plan.burst() } else { 1 };
        drops.saturating_mul(each).min(missing)
    }

    /// One read: a datagram, or several glued together.
    fn take(&mut self, unit: &DatagramRead<'_>, now: Instant, now_ns: i64) {
        let taken_ns = unit.taken_ns.unwrap_or(now_ns);
        let mut proven = false;
        let segment = unit.segment.max(1);
        for at in (0..unit.length.max(1)).step_by(segment) {
            let Some(head) = unit.bytes.get(at..).filter(|head| !head.is_empty()) else { break };
            if let Some((sequence, sent_ns)) = datagram::parse(&self.data, head) {
                self.tally.note(sequence, segment.min(unit.length - at));
                self.delays.note(taken_ns.wrapping_sub(sent_ns as i64));
                proven = true;
            } else if let Some((_, sent)) = datagram::parse(&self.end, head) {
                self.announced = self.announced.or(Some(sent));
                self.limit = self.limit.min(now + AFTER_END);
            } else {
                self.strangers += 1;
            }
        }
        if proven {
            self.units += 1;
            self.span = Some((self.span.map_or(now, |(first, _)| first), now));
        }
    }
}
