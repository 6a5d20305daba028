//! The file format of a case. Unknown keys, bad tables and unknown hosts are errors with file, line and a
//! hint.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::inventory::{Endpoint, Group, Host, Inventory, Layer, TransportSpec};
use linerate_model::sample::{Measurement, Sample};
use linerate_model::snapshot::{CounterWatch, Snapshot, StorageFigure, StoragePattern, StorageSubject};
use serde::Deserialize;
use thiserror::Error;

use super::entries::{Download, EVERY, Entry, downloads, sample, samples, tcp};
use super::expect::Expect;

/// A case file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {problem}\nhint: {hint}")]
pub struct CaseError {
    /// File.
    pub file: String,
    /// Line, 1-based; 0 when it concerns the whole file.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

/// Recorded evidence.
#[derive(Debug, Clone, Default)]
pub struct Case {
    /// One line.
    pub title: String,
    /// The evidence.
    pub snapshot: Snapshot,
    /// The evidence before a fix.
    pub before: Option<Snapshot>,
    /// What the diagnosis must say.
    pub expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    #[serde(default)]
    #[expect(dead_code, reason = "for people who read the file")]
    source: String,
    /// A whole snapshot as JSON, as `linerate show --anonymize` writes it; then there are no tables.
    #[serde(default)]
    snapshot: Option<String>,
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
    watched: Vec<CounterWatch>,
    #[serde(default)]
    download: Vec<Download>,
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
struct Storage {
    #[serde(default)]
    host: String,
    what: StorageSubject,
    #[serde(default)]
    variant: String,
    pattern: StoragePattern,
    mbyte_per_s: f64,
    #[serde(default)]
    requests_per_s: Option<f64>,
    #[serde(default)]
    merged_per_s: Option<f64>,
    #[serde(default)]
    wait_ms: Option<f64>,
    #[serde(default)]
    busy: Option<f64>,
}

/// Reads a case from the text of its file.
pub fn parse(file: &str, text: &str) -> Result<Case, CaseError> {
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
    if let Some(json) = &read.snapshot {
        let snapshot = serde_json::from_str(json).map_err(|error| {
            wrong("snapshot", format!("the snapshot does not read: {error}"), "record it again")
        })?;
        return Ok(Case { title: read.title, snapshot, before: None, expect: read.expect });
    }
    let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".toml");
    let mut snapshot = Snapshot {
        schema: linerate_model::SCHEMA,
        id: name.to_owned(),
        inventory: inventory(&read, name),
        facts: facts(&read),
        storage: read
            .storage
            .iter()
            .map(|s| StorageFigure {
                host: s.host.clone(),
                what: s.what,
                variant: s.variant.clone(),
                pattern: s.pattern,
                bytes_per_s: s.mbyte_per_s * 1e6,
                requests_per_s: s.requests_per_s,
                merged_per_s: s.merged_per_s,
                wait_ms: s.wait_ms,
                busy: s.busy,
            })
            .collect(),
        watched: read.watched.clone(),
        ..Snapshot::default()
    };
    if let Some(host) = read.facts.keys().find(|h| *h != EVERY && snapshot.inventory.host(h).is_none()) {
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
    add_entries(&read, &mut snapshot)
        .map_err(|host| wrong(&host, format!("`{host}` is no host"), "add a [[host]] with that name"))?;
    snapshot.samples.extend(downloads(&read.download));
    for (id, sample) in (1..).zip(&mut snapshot.samples) {
        sample.test.id = id;
    }
    Ok(Case { title: read.title, snapshot, before, expect: read.expect })
}

/// The samples of all entries; on error a name that is no host.
fn add_entries(read: &File, snapshot: &mut Snapshot) -> Result<(), String> {
    for entry in &read.sample {
        let (from, to) = (entry.from.of(&snapshot.inventory), entry.to.of(&snapshot.inventory));
        if let Some(host) = from.iter().chain(&to).find(|h| snapshot.inventory.host(h).is_none()) {
            return Err((*host).to_owned());
        }
        let pairs = from.iter().flat_map(|f| to.iter().map(move |t| (*f, *t))).filter(|(f, t)| f != t);
        let made: Vec<Sample> = pairs.flat_map(|(from, to)| samples(entry, from, to)).collect();
        // A later entry speaks of its pairs alone: the general one comes first in the file.
        if entry.instead {
            let replaced: BTreeSet<(&str, &str)> =
                made.iter().map(|s| (s.test.from.as_str(), s.test.to.as_str())).collect();
            snapshot.samples.retain(|s| {
                s.test.layer != entry.layer || !replaced.contains(&(s.test.from.as_str(), s.test.to.as_str()))
            });
        }
        snapshot.samples.extend(made);
    }
    Ok(())
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
                // Addresses of imported evidence are unknown; these are from the block for documentation.
                address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, (number % 250) as u8 + 1)),
                layer: *layer,
                netns: None,
                link_bps: entry.link_mbit.map(|m| m * 1e6),
            })
            .collect(),
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
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

/// Facts of each host: those of all, then its own.
fn facts(read: &File) -> BTreeMap<String, HostFacts> {
    let common = read.facts.get(EVERY);
    let named = read.facts.keys().filter(|h| *h != EVERY).map(String::as_str);
    let all = read.host.iter().filter(|_| common.is_some()).map(|h| h.name.as_str());
    let hosts: BTreeSet<&str> = named.chain(all).collect();
    let of = |host: &str| {
        let mut readings = common.cloned().unwrap_or_default();
        readings.extend(read.facts.get(host).cloned().unwrap_or_default());
        readings.retain(|_, value| *value != FactValue::Text("-".to_owned()));
        // Endpoints of a case have addresses in the order of the hosts; the NIC that carries them is said
        // once for all.
        if let Some(number) = read.host.iter().position(|h| h.name == host) {
            for value in readings.values_mut() {
                if let FactValue::Text(text) = value
                    && text == "192.0.2.*"
                {
                    *text = format!("192.0.2.{}/24", (number % 250) + 1);
                }
            }
        }
        HostFacts { readings: readings.into(), ..HostFacts::default() }
    };
    hosts.into_iter().map(|host| (host.to_owned(), of(host))).collect()
}
