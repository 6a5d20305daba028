//! The file format of a case. Unknown keys, bad tables and unknown hosts are errors with file, line and a hint.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::inventory::{Endpoint, Group, Host, Inventory, Layer, TransportSpec};
use linerate_model::load::{Interval, LoadReport, MtuProbe, TestKind};
use linerate_model::plan::Test;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::{Snapshot, StorageFigure};
use serde::Deserialize;

use super::{Case, CaseError, Expect};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    #[serde(default)]
    #[expect(dead_code, reason = "for people who read the file")]
    source: String,
    #[serde(default)]
    group: Vec<Group>,
    #[serde(default)]
    host: Vec<HostEntry>,
    #[serde(default)]
    facts: BTreeMap<String, BTreeMap<String, FactValue>>,
    #[serde(default)]
    matrix: Vec<Matrix>,
    #[serde(default)]
    sample: Vec<Entry>,
    #[serde(default)]
    storage: Vec<Storage>,
    #[serde(default)]
    before: Option<Before>,
    #[serde(default)]
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    name: String,
    #[serde(default)]
    groups: Vec<String>,
    /// No endpoints: only facts are known.
    #[serde(default)]
    machine: bool,
    #[serde(default)]
    link_mbit: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Before {
    matrix: Vec<Matrix>,
}

/// Rows send, columns receive; Mbit/s; `-` where nothing was measured.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Matrix {
    #[serde(default)]
    layer: Layer,
    table: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    from: String,
    to: String,
    #[serde(default)]
    layer: Layer,
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
    core_busy_tx: Option<f64>,
    #[serde(default)]
    core_busy_rx: Option<f64>,
    /// Mbit/s per interval.
    #[serde(default)]
    series_mbit: Vec<f64>,
    #[serde(default)]
    interval_ms: Option<f64>,
    #[serde(default)]
    mtu: Vec<MtuProbe>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Storage {
    #[serde(default)]
    host: String,
    what: String,
    #[serde(default)]
    variant: String,
    pattern: String,
    mbyte_per_s: f64,
}

fn one() -> u16 {
    1
}

/// Reads a case.
pub(super) fn parse(file: &str, text: &str) -> Result<Case, CaseError> {
    let read: File = toml::from_str(text).map_err(|error| CaseError {
        file: file.to_owned(),
        line: error.span().map_or(0, |span| line_of(text, span.start)),
        problem: error.message().replace('\n', " "),
        hint: "cases/README.md lists every field".to_owned(),
    })?;
    let wrong = |near: &str, problem: String, hint: &str| CaseError {
        file: file.to_owned(),
        line: text.find(near).map_or(0, |at| line_of(text, at)),
        problem,
        hint: hint.to_owned(),
    };
    let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".toml");
    let mut snapshot = Snapshot {
        schema: linerate_model::SCHEMA,
        id: name.to_owned(),
        inventory: inventory(&read, name),
        facts: read
            .facts
            .iter()
            .map(|(host, readings)| {
                (host.clone(), HostFacts { readings: readings.clone().into(), ..HostFacts::default() })
            })
            .collect(),
        storage: read
            .storage
            .iter()
            .map(|s| StorageFigure {
                host: s.host.clone(),
                what: s.what.clone(),
                variant: s.variant.clone(),
                pattern: s.pattern.clone(),
                bytes_per_s: s.mbyte_per_s * 1e6,
                ..StorageFigure::default()
            })
            .collect(),
        ..Snapshot::default()
    };
    if let Some(host) = read.facts.keys().find(|h| snapshot.inventory.host(h).is_none()) {
        return Err(wrong(
            host,
            format!("facts of `{host}`, which is no host"),
            "add a [[host]] with that name",
        ));
    }
    let mut before = None;
    if let Some(earlier) = &read.before {
        let samples =
            tables(&earlier.matrix, &snapshot.inventory).map_err(|(near, p)| wrong(&near, p, TABLE_HINT))?;
        before = Some(Snapshot { id: format!("{name}-before"), samples, ..snapshot.clone() });
    }
    snapshot.samples =
        tables(&read.matrix, &snapshot.inventory).map_err(|(near, p)| wrong(&near, p, TABLE_HINT))?;
    for entry in &read.sample {
        for host in [&entry.from, &entry.to] {
            if snapshot.inventory.host(host).is_none() {
                return Err(wrong(host, format!("`{host}` is no host"), "add a [[host]] with that name"));
            }
        }
        snapshot.samples.extend(samples(entry));
    }
    for (id, sample) in (1..).zip(&mut snapshot.samples) {
        sample.test.id = id;
    }
    Ok(Case { title: read.title, snapshot, before, expect: read.expect })
}

const TABLE_HINT: &str =
    "first line: corner and receivers; then one line per sender with Mbit/s or `-` in each column";

fn line_of(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|b| *b == b'\n').count() + 1
}

fn inventory(read: &File, name: &str) -> Inventory {
    let mut layers: Vec<Layer> =
        read.matrix.iter().map(|m| m.layer).chain(read.sample.iter().map(|s| s.layer)).collect();
    layers.sort();
    layers.dedup();
    let host = |(number, entry): (usize, &HostEntry)| Host {
        name: entry.name.clone(),
        transport: TransportSpec::Local,
        groups: entry.groups.clone(),
        endpoints: layers
            .iter()
            .filter(|_| !entry.machine)
            .map(|layer| Endpoint {
                // Addresses of foreign evidence are unknown; these are from the block for documentation.
                address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, (number % 250) as u8 + 1)),
                layer: *layer,
                netns: None,
                link_bps: entry.link_mbit.map(|m| m * 1e6),
            })
            .collect(),
        state_dir: None,
        etc_dir: None,
    };
    Inventory {
        name: name.to_owned(),
        groups: read.group.clone(),
        hosts: read.host.iter().enumerate().map(host).collect(),
        disturbances: None,
        ..Inventory::default()
    }
}

/// Samples of all tables; on error the text near it and the problem.
fn tables(matrices: &[Matrix], inventory: &Inventory) -> Result<Vec<Sample>, (String, String)> {
    let mut samples = Vec::new();
    for matrix in matrices {
        let mut lines = matrix.table.lines().map(str::trim).filter(|l| !l.is_empty());
        let first = lines.next().unwrap_or("");
        let columns: Vec<&str> = first.split_whitespace().skip(1).collect();
        if let Some(name) = columns.iter().find(|name| inventory.host(name).is_none()) {
            return Err((first.to_owned(), format!("`{name}` is no host")));
        }
        for line in lines {
            let mut fields = line.split_whitespace();
            let from = fields.next().unwrap_or("");
            if inventory.host(from).is_none() {
                return Err((line.to_owned(), format!("`{from}` is no host")));
            }
            let values: Vec<&str> = fields.collect();
            if values.len() != columns.len() {
                return Err((
                    line.to_owned(),
                    format!("{} values for {} columns", values.len(), columns.len()),
                ));
            }
            for (to, value) in columns.iter().zip(values).filter(|(_, v)| *v != "-") {
                let Some(mbit) = value.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0) else {
                    return Err((line.to_owned(), format!("`{value}` is no rate in Mbit/s")));
                };
                let measurement = Measurement { throughput_bps: Some(mbit * 1e6), ..Measurement::default() };
                samples.push(sample(from, to, matrix.layer, tcp(1), measurement));
            }
        }
    }
    Ok(samples)
}

fn tcp(streams: u16) -> TestKind {
    TestKind::Tcp { streams, duration_ms: 10_000 }
}

fn sample(from: &str, to: &str, layer: Layer, kind: TestKind, measurement: Measurement) -> Sample {
    Sample {
        test: Test {
            id: 0,
            from: from.to_owned(),
            to: to.to_owned(),
            layer,
            kind,
            repeat: 0,
            serial: true,
            second_stage: false,
        },
        start_ms: 0,
        outcome: Outcome::Measured(Box::new(measurement)),
        tx_counters: BTreeMap::new(),
        rx_counters: BTreeMap::new(),
    }
}

/// One entry can hold a transfer, and path MTU probes as a test of their own.
fn samples(entry: &Entry) -> Vec<Sample> {
    let mut all = Vec::new();
    let make = |kind, m| sample(&entry.from, &entry.to, entry.layer, kind, m);
    if !entry.mtu.is_empty() {
        let kind = TestKind::Mtu { sizes: entry.mtu.iter().map(|p| p.bytes).collect(), tries: 3 };
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
        all.push(make(
            tcp(entry.streams),
            Measurement {
                throughput_bps: throughput,
                rtt_loaded_us: entry.rtt_loaded_us,
                retransmits_per_s: entry.retransmits_per_s,
                tx: Some(Box::new(end(entry.core_busy_tx, Vec::new()))),
                rx: Some(Box::new(end(entry.core_busy_rx, series))),
                ..Measurement::default()
            },
        ));
    }
    if entry.loss.is_some() {
        let kind = TestKind::udp(1e8, 1200, 500);
        all.push(make(kind, Measurement { loss: entry.loss, ..Measurement::default() }));
    }
    if entry.rtt_idle_us.is_some() {
        let measured = Measurement { rtt_idle_us: entry.rtt_idle_us, ..Measurement::default() };
        all.push(make(TestKind::Rtt { count: 10 }, measured));
    }
    all
}
