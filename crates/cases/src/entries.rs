//! Samples of a case: entries with many values for one pair or many, and downloads. Entries come in, samples
//! go out.

use std::collections::BTreeMap;

use linerate_model::http::HttpFetch;
use linerate_model::inventory::{Inventory, Layer};
use linerate_model::kind::{HttpPlan, MtuPlan, RttPlan, TcpPlan, TestKind, UdpPlan};
use linerate_model::load::{Interval, LoadReport, TcpEnd};
use linerate_model::path_mtu::MtuProbe;
use linerate_model::plan::Test;
use linerate_model::sample::{Measurement, Outcome, Sample};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// A host, several, or `"*"` for all with endpoints; every ordered pair of them.
    pub(super) from: Names,
    pub(super) to: Names,
    /// Replaces what earlier entries said of these pairs in this layer.
    #[serde(default)]
    pub(super) instead: bool,
    #[serde(default)]
    pub(super) layer: Layer,
    #[serde(default = "one")]
    streams: u16,
    #[serde(default)]
    throughput_mbit: Option<f64>,
    #[serde(default)]
    loss: Option<f64>,
    #[serde(default)]
    rtt_idle_us: Option<f64>,
    #[serde(default)]
    rtt_loaded_us: Option<f64>,
    #[serde(default)]
    retransmits_per_s: Option<f64>,
    #[serde(default)]
    reordered: Option<f64>,
    #[serde(default)]
    cpu_s_per_gb: Option<f64>,
    #[serde(default)]
    core_busy_tx: Option<f64>,
    #[serde(default)]
    core_busy_rx: Option<f64>,
    /// Shares of the busy time, from TCP_INFO of the sender.
    #[serde(default)]
    rwnd_limited_share: Option<f64>,
    #[serde(default)]
    sndbuf_limited_share: Option<f64>,
    /// Most bytes in flight.
    #[serde(default)]
    window_bytes: Option<u64>,
    /// Change of counters around the test, at the sender and at the receiver.
    #[serde(default)]
    tx_counters: BTreeMap<String, i64>,
    #[serde(default)]
    rx_counters: BTreeMap<String, i64>,
    /// Mbit/s per interval.
    #[serde(default)]
    series_mbit: Vec<f64>,
    #[serde(default)]
    interval_ms: Option<f64>,
    #[serde(default)]
    mtu: Vec<MtuProbe>,
}

/// A download through a front end.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Download {
    via: String,
    mbyte_per_s: f64,
}

/// A host, a list of hosts, or `"*"`.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Names {
    One(String),
    Many(Vec<String>),
}

impl Names {
    /// The names.
    pub(super) fn of<'a>(&'a self, inventory: &'a Inventory) -> Vec<&'a str> {
        match self {
            Self::One(name) if name == EVERY => {
                inventory.hosts.iter().filter(|h| !h.endpoints.is_empty()).map(|h| h.name.as_str()).collect()
            }
            Self::One(name) => vec![name],
            Self::Many(names) => names.iter().map(String::as_str).collect(),
        }
    }
}

/// Stands for every host.
pub(super) const EVERY: &str = "*";

fn one() -> u16 {
    1
}

/// Bulk TCP of ten seconds.
pub(super) fn tcp(streams: u16) -> TestKind {
    TestKind::from(TcpPlan { streams, duration_ms: 10_000 })
}

/// A sample with nothing around it.
pub(super) fn sample(from: &str, to: &str, layer: Layer, kind: TestKind, measurement: Measurement) -> Sample {
    Sample::new(
        Test::new(from.to_owned(), to.to_owned(), layer, kind),
        0,
        Outcome::Measured(Box::new(measurement)),
    )
}

/// All downloads as one test of a client that is no host of the case.
pub(super) fn downloads(list: &[Download]) -> Option<Sample> {
    /// Bytes of the file; only the rate matters.
    const BYTES: f64 = 1e9;
    let fetch = |d: &Download| HttpFetch {
        via: d.via.clone(),
        body_ms: Some(BYTES / (d.mbyte_per_s.max(1e-9) * 1e6) * 1000.0),
        total_ms: BYTES / (d.mbyte_per_s.max(1e-9) * 1e6) * 1000.0,
        bytes: BYTES as u64,
        status: Some(200),
        ..HttpFetch::default()
    };
    let http: Vec<HttpFetch> = list.iter().map(fetch).collect();
    let plan = HttpPlan {
        url: "http://service/file".to_owned(),
        via: http.iter().map(|f| f.via.clone()).collect(),
        repeat: 1,
        max_bytes: BYTES as u64,
        timeout_ms: 0,
        trusted_pem: None,
        insecure: false,
    };
    let end = LoadReport { http, ..LoadReport::default() };
    (!list.is_empty()).then(|| {
        let measured = Measurement { tx: Some(Box::new(end)), ..Measurement::default() };
        sample("client", "service", Layer::Underlay, TestKind::from(plan), measured)
    })
}

/// TCP_INFO of the sender, where the entry tells some of it.
fn tcp_end(entry: &Entry) -> Option<TcpEnd> {
    const BUSY_US: f64 = 10e6;
    let part = |share: Option<f64>| share.map(|s| (s.clamp(0.0, 1.0) * BUSY_US) as u64);
    let (rwnd, sndbuf) = (part(entry.rwnd_limited_share), part(entry.sndbuf_limited_share));
    (rwnd.is_some() || sndbuf.is_some() || entry.window_bytes.is_some()).then(|| TcpEnd {
        busy_us: BUSY_US as u64,
        rwnd_limited_us: rwnd.unwrap_or(0),
        sndbuf_limited_us: sndbuf.unwrap_or(0),
        unacked_bytes_max: entry.window_bytes.unwrap_or(0),
        wscale: (7, 7),
        ..TcpEnd::default()
    })
}

/// One entry can hold a transfer, and path MTU probes as a test of their own.
pub(super) fn samples(entry: &Entry, from: &str, to: &str) -> Vec<Sample> {
    let mut all = Vec::new();
    let make = |kind, m| Sample {
        tx_counters: entry.tx_counters.clone(),
        rx_counters: entry.rx_counters.clone(),
        ..sample(from, to, entry.layer, kind, m)
    };
    if !entry.mtu.is_empty() {
        let kind = TestKind::from(MtuPlan { sizes: entry.mtu.iter().map(|p| p.bytes).collect(), tries: 3 });
        all.push(make(kind, Measurement { mtu: entry.mtu.clone(), ..Measurement::default() }));
    }
    let step = entry.interval_ms.unwrap_or(1000.0);
    let series: Vec<Interval> = (1..)
        .zip(&entry.series_mbit)
        .map(|(i, mbit)| Interval {
            at_ms: step * f64::from(i),
            throughput_bps: mbit * 1e6,
            ..Interval::default()
        })
        .collect();
    let mean = (!series.is_empty())
        .then(|| series.iter().map(|i| i.throughput_bps).sum::<f64>() / series.len() as f64);
    let throughput = entry.throughput_mbit.map(|m| m * 1e6).or(mean);
    if throughput.is_some() {
        let end = |busy, series| LoadReport { core_busy_max: busy, series, ..LoadReport::default() };
        let tx = LoadReport { tcp: tcp_end(entry), ..end(entry.core_busy_tx, Vec::new()) };
        all.push(make(
            tcp(entry.streams),
            Measurement {
                throughput_bps: throughput,
                rtt_loaded_us: entry.rtt_loaded_us,
                retransmits_per_s: entry.retransmits_per_s,
                cpu_s_per_gb: entry.cpu_s_per_gb,
                tx: Some(Box::new(tx)),
                rx: Some(Box::new(end(entry.core_busy_rx, series))),
                ..Measurement::default()
            },
        ));
    }
    if entry.loss.is_some() {
        let kind = TestKind::from(UdpPlan::paced(1e8, 1200, 500));
        all.push(make(
            kind,
            Measurement { loss: entry.loss, reordered: entry.reordered, ..Measurement::default() },
        ));
    }
    if entry.rtt_idle_us.is_some() {
        let measured = Measurement { rtt_idle_us: entry.rtt_idle_us, ..Measurement::default() };
        all.push(make(TestKind::from(RttPlan { count: 10 }), measured));
    }
    all
}
