//! What Prometheus stored of hosts: answers of its HTTP API come in, a snapshot goes out. Which metric is
//! what stands in `families`, one file each. Pure: the queries are made and sent by others.

mod answer;
mod families;
mod family;
mod hosts;
mod metric;
mod missing;
mod range;
mod taken;

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fact::Gap;
use linerate_model::imported::{Imported, Piece};
use linerate_model::inventory::Inventory;
use linerate_model::snapshot::Snapshot;
use linerate_model::units::date_minute;

use self::answer::Series;
use self::families::FAMILIES;
use self::family::Family;
use self::hosts::{Hosts, UNAME};
use self::metric::{Metric, Use};
use self::taken::{Kept, Taken};
use crate::assemble;
use crate::options::ImportOptions;
use crate::sink::Membership;

pub use range::StoredRange;

/// Matcher of the metrics that may be of use.
pub const METRICS: &str = "{__name__=~\"node_.+|linerate_host_.+\"}";

/// Most metrics that are asked for.
const QUERIES_MAX: usize = 500;

/// Labels that make hosts equals.
const EQUALS: [&str; 2] = ["job", "role"];

/// The query for one metric.
pub struct MetricQuery {
    /// Name of the metric.
    pub name: String,
    /// PromQL.
    pub query: String,
    family: &'static dyn Family,
    metric: Metric,
}

/// The names in an answer of `/api/v1/label/__name__/values`; an error is a sentence.
pub fn metric_names(body: &[u8]) -> Result<Vec<String>, String> {
    answer::names(body)
}

/// The sum of an instant query in its answer; an error is a sentence.
pub fn series_count(body: &[u8]) -> Result<f64, String> {
    answer::count(body)
}

/// What an answer reports that is an error; `None` where it reports nothing.
pub fn failure(body: &[u8]) -> Option<String> {
    answer::failure(body)
}

/// The queries for those of these metrics that are of use, in the order in which they are to be read.
pub fn queries(names: &[String]) -> Vec<MetricQuery> {
    let of_family = |family: &'static dyn Family| {
        let query = move |name: &String| {
            let metric = family.metric(name)?;
            Some(MetricQuery { name: name.clone(), query: family.query(name), family, metric })
        };
        names.iter().filter_map(query)
    };
    // A name becomes part of a query.
    let plain = |query: &MetricQuery| query.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    FAMILIES.iter().flat_map(|family| of_family(*family)).filter(plain).take(QUERIES_MAX).collect()
}

/// Series of a source as they come in.
pub struct StoredMetrics {
    source: String,
    range: StoredRange,
    hosts: Hosts,
    inventory: Option<Inventory>,
    names: Vec<String>,
    kept: Kept,
    /// Hosts whose group is known.
    grouped: BTreeSet<String>,
    account: Imported,
    gaps: Vec<Gap>,
    /// Time of the last sample of each host, Unix seconds.
    last_s: BTreeMap<String, f64>,
    /// Series that name no host, or have labels that are none.
    unusable: usize,
}

impl StoredMetrics {
    /// Of a source with these metrics; the names of an inventory have priority.
    pub fn new(source: &str, range: StoredRange, names: Vec<String>, inventory: Option<Inventory>) -> Self {
        Self {
            source: source.to_owned(),
            range,
            hosts: Hosts::new(inventory.as_ref()),
            inventory,
            names,
            kept: Kept::default(),
            grouped: BTreeSet::new(),
            account: Imported::default(),
            gaps: Vec::new(),
            last_s: BTreeMap::new(),
            unusable: 0,
        }
    }

    /// Takes the answer of a query over the range; an error is a sentence.
    pub fn add(&mut self, query: &MetricQuery, body: &[u8]) -> Result<(), String> {
        let series = answer::series(body)?;
        if query.name == UNAME {
            self.hosts.learn(&series);
        }
        let before = self.kept.readings;
        for one in &series {
            let host = self.hosts.of(one).filter(|_| one.is_plain());
            let Some(host) = host else {
                self.unusable += 1;
                continue;
            };
            let mut taken = Taken { kept: &mut self.kept, host: &host, range: &self.range };
            if !taken.series(&query.metric, one) {
                self.unusable += 1;
            } else if query.metric.what == Use::Own {
                query.family.take(&query.name, one, &mut taken);
            }
            self.group(&host, one);
            if query.name == UNAME
                && let Some((at_s, _)) = one.points().next_back()
            {
                let last_s = self.last_s.entry(host).or_insert(at_s);
                *last_s = last_s.max(at_s);
            }
        }
        let readings = self.kept.readings - before;
        let format = query.family.name();
        match self.account.pieces.iter_mut().find(|piece| piece.format == format) {
            Some(piece) => {
                piece.lines += series.len();
                piece.readings += readings;
            }
            None if readings > 0 => self.account.pieces.push(Piece {
                file: self.source.clone(),
                line: 1,
                lines: series.len(),
                format: format.to_owned(),
                host: String::new(),
                readings,
            }),
            None => {}
        }
        Ok(())
    }

    /// A metric that could not be read, and why.
    pub fn left_out(&mut self, name: &str, why: String) {
        self.gaps.push(Gap { what: format!("metric {name}").into(), reason: why });
    }

    /// Hosts of one job and role are equals; of several sources of a host the first one counts.
    fn group(&mut self, host: &str, series: &Series) {
        let has_group = EQUALS.iter().any(|kind| !series.label(kind).is_empty());
        if !has_group || !self.grouped.insert(host.to_owned()) {
            return;
        }
        for kind in EQUALS {
            let group = series.label(kind);
            if !group.is_empty() {
                let (host, group, kind) = (host.to_owned(), group.to_owned(), kind.to_owned());
                self.kept.sink.member(Membership { host, group, kind });
            }
        }
    }

    /// Hosts that were no longer scraped at the end of the range.
    fn silence(&mut self) {
        let is_over = |last_s: f64| last_s + 1.5 * (self.range.step_s as f64) < self.range.end_s() as f64;
        for (host, last_s) in self.last_s.iter().filter(|(_, last_s)| is_over(**last_s)) {
            let last = date_minute((last_s * 1e3) as u64);
            self.gaps.push(Gap {
                what: format!("host {host}").into(),
                reason: format!("Prometheus has no samples of it since {last} UTC"),
            });
        }
    }

    /// The snapshot. Its field `imported` accounts for every family; its gaps are what is missing.
    #[must_use]
    pub fn into_snapshot(mut self) -> Snapshot {
        self.kept.join_parts();
        for family in FAMILIES {
            family.finish(&mut self.kept, &self.range);
        }
        self.figures();
        self.silence();
        let mut sink = std::mem::take(&mut self.kept.sink);
        sink.stored = self.kept.series.into_values().collect();
        if self.unusable > 0 {
            sink.note(format!("{} series name no host or device that is one: left out", self.unusable));
        }
        let mut account = self.account;
        let options = ImportOptions { inventory: self.inventory, ..ImportOptions::default() };
        let mut snapshot = assemble::snapshot(sink, &[], &options, &mut account);
        account.missing = missing::of(&self.names, &snapshot);
        snapshot.gaps = self.gaps;
        snapshot.gaps.extend(crate::as_gaps(&account.missing));
        snapshot.imported = Some(Box::new(account));
        snapshot
    }

    /// Figures of drives, from the series of their counters.
    fn figures(&mut self) {
        let drives: BTreeSet<(String, String)> = self
            .kept
            .series
            .keys()
            .filter_map(|(host, key)| {
                let device = key.strip_prefix("disk.")?.split_once(".stat.")?.0;
                Some((host.clone(), device.to_owned()))
            })
            .collect();
        for (host, device) in drives {
            let series = &self.kept.series;
            let counter = |name: &str| series.get(&(host.clone(), format!("disk.{device}.stat.{name}")));
            for figure in families::figures(&device.replace('/', "."), counter) {
                self.kept.sink.of_host(&host);
                self.kept.sink.figure(figure);
            }
        }
    }
}

#[cfg(test)]
mod tests;
