//! A bulk transfer as the tools report it: the reports of both ends come in, a test of the model goes out.

use linerate_model::datagram::UdpOptions;
use linerate_model::kind::{TcpPlan, TestKind, UdpPlan};
use linerate_model::load::{Interval, LoadReport, UdpEnd};
use linerate_model::sample::{Measurement, Outcome};

use crate::context::Context;
use crate::sink::{Raw, Sink};
use crate::units::leading;

/// Figures of one transfer; `None` if the tool does not report it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transfer {
    /// Sender and receiver: names or addresses.
    pub ends: (String, String),
    /// Addresses and ports, sender first.
    pub flow: Option<String>,
    /// Parallel streams.
    pub streams: u16,
    /// Seconds.
    pub seconds: f64,
    /// What the sender counted, bit/s.
    pub sent_bps: Option<f64>,
    /// What the receiver counted, bit/s.
    pub received_bps: Option<f64>,
    /// Segments retransmitted.
    pub retransmits: Option<f64>,
    /// Mean RTT during the transfer, microseconds.
    pub rtt_us: Option<f64>,
    /// RTT of the connection's set-up, microseconds.
    pub rtt_idle_us: Option<f64>,
    /// Bytes that a stream may have in flight.
    pub window_bytes: Option<f64>,
    /// Maximum segment size, bytes.
    pub mss_bytes: Option<f64>,
    /// Share of one CPU that the program used at the sender and at the receiver.
    pub cpu: (Option<f64>, Option<f64>),
    /// Parts of the transfer.
    pub series: Vec<Interval>,
    /// The series is the receiver's.
    pub series_received: bool,
    /// Datagrams: lost and sent.
    pub datagrams: Option<(f64, f64)>,
    /// Bytes of a datagram, where the tool prints them.
    pub datagram_bytes: Option<f64>,
    /// It is UDP.
    pub udp: bool,
    /// Start, Unix milliseconds.
    pub start_ms: u64,
}

/// Bytes of a datagram that the options of a command ask for: `-l 1200`, `-l 8K`.
fn asked_bytes(context: &Context) -> Option<f64> {
    let text = context.command.value(&["-l", "--len", "--length"])?;
    let factor = if text.ends_with(['k', 'K']) { 1024.0 } else { 1.0 };
    leading(text).map(|number| number * factor).filter(|bytes| *bytes > 0.0)
}

impl Transfer {
    /// Hands the test to the sink. Names of transports that are no Ethernet make it a figure of storage
    /// instead.
    pub(crate) fn put(self, context: &Context, out: &mut Sink) {
        let Some(bps) = self.received_bps.or(self.sent_bps).filter(|b| b.is_finite() && *b >= 0.0) else {
            return;
        };
        let duration_ms = (self.seconds.clamp(0.0, 4e6) * 1000.0).round() as u32;
        let kind = if self.udp {
            let rate_bps = self.sent().unwrap_or(bps);
            let payload_bytes = self.payload_bytes(rate_bps, asked_bytes(context));
            TestKind::from(UdpPlan { rate_bps, payload_bytes, duration_ms, options: UdpOptions::default() })
        } else {
            TestKind::from(TcpPlan { streams: self.streams.max(1), duration_ms })
        };
        let outcome = if bps == 0.0 && !self.udp {
            Outcome::NothingThrough { reason: "no byte arrived".to_owned() }
        } else {
            Outcome::Measured(Box::new(self.measurement(bps)))
        };
        let variant = super::storage_words::transport(context);
        let (from, to) = self.ends;
        let (flow, start_ms) = (self.flow, self.start_ms);
        out.sample(Raw { from, to, layer: context.layer(), kind, outcome, flow, start_ms, variant });
    }

    /// Sent rate, bit/s, if known: the datagrams that arrived give the size of the lost ones.
    fn sent(&self) -> Option<f64> {
        let by_datagrams = || {
            let (lost, all) = self.datagrams.filter(|(lost, all)| all > lost)?;
            Some(self.received_bps? * all / (all - lost))
        };
        self.sent_bps.or_else(by_datagrams).or(self.received_bps.filter(|_| !self.udp))
    }

    /// Bytes of a datagram: as printed, as asked for, else from the total sent, to the two digits that a
    /// rounded rate is good for; 0 if not counted.
    fn payload_bytes(&self, sent_bps: f64, asked: Option<f64>) -> u16 {
        let count = self.datagrams.map_or(0.0, |(_, all)| all);
        let counted = || {
            let bytes = sent_bps * self.seconds / 8.0 / count;
            let step = 10_f64.powf((bytes.log10().floor() - 1.0).max(0.0));
            (bytes / step).round() * step
        };
        let bytes = self.datagram_bytes.or(asked).unwrap_or_else(counted);
        if bytes.is_finite() { bytes.round().clamp(0.0, f64::from(u16::MAX)) as u16 } else { 0 }
    }

    fn measurement(&self, bps: f64) -> Measurement {
        let arrived = |lost: f64, all: f64| (all - lost).max(0.0);
        let counted = |count: f64| UdpEnd { datagrams: count as u64, ..UdpEnd::default() };
        let sent = self.datagrams.map(|(_, all)| counted(all));
        let received = self.datagrams.map(|(lost, all)| counted(arrived(lost, all)));
        let gigabytes = bps * self.seconds / 8e9;
        let cpu_s = |share: Option<f64>| share.map_or(0.0, |s| s * self.seconds);
        let both = self.cpu.0.zip(self.cpu.1).filter(|_| gigabytes > 0.0);
        // An end without input has no report, rather than a report of no bytes.
        let is_sender_known = self.sent_bps.is_some()
            || self.cpu.0.is_some()
            || !self.series_received && !self.series.is_empty();
        let sent_bps = self.sent().filter(|_| is_sender_known || sent.is_some());
        let end = |bps: Option<f64>, cpu: Option<f64>, series: &[Interval], udp: Option<UdpEnd>| {
            let report = LoadReport {
                bytes: bps.map_or(0, |b| (b * self.seconds / 8.0) as u64),
                elapsed_s: self.seconds,
                cpu_s: cpu_s(cpu),
                // More than one thread can use more than one CPU.
                core_busy_max: cpu.map(|c| c.min(1.0)),
                series: series.to_vec(),
                udp,
                ..LoadReport::default()
            };
            let is_known = bps.is_some() || cpu.is_some() || !series.is_empty() || udp.is_some();
            is_known.then(|| Box::new(report))
        };
        let (tx, rx): (&[Interval], &[Interval]) =
            if self.series_received { (&[], &self.series) } else { (&self.series, &[]) };
        Measurement {
            throughput_bps: Some(bps),
            loss: self
                .datagrams
                .filter(|(_, all)| *all > 0.0)
                .map(|(lost, all)| (lost / all).clamp(0.0, 1.0)),
            rtt_idle_us: self.rtt_idle_us,
            rtt_loaded_us: self.rtt_us,
            retransmits_per_s: self.retransmits.filter(|_| self.seconds > 0.0).map(|r| r / self.seconds),
            cpu_s_per_gb: both.map(|(tx, rx)| (tx + rx) * self.seconds / gigabytes),
            window_bytes: self.window_bytes,
            mss_bytes: self.mss_bytes,
            tx: end(sent_bps, self.cpu.0, tx, sent),
            rx: end(self.received_bps, self.cpu.1, rx, received),
            ..Measurement::default()
        }
    }
}
