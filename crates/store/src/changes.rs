//! The log of changes of facts: each reading of a host is compared with what is known of it, and what changed
//! is written with the two moments between which it did.
//!
//! What comes in: facts with the moment and the extent of their reading. What goes out: changes, newest
//! first.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use linerate_model::fact::{FactKey, FactValue, HostFacts};
use linerate_model::fact_change::{FactChange, QUOTED_MS, SeenBy};
use linerate_model::inventory::HostName;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::{Trial, TrialStatus};
use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Store;
use super::database::{Database, Row, Rows};
use super::error::{StoreError, from_json, to_json};
use super::facts::KeysToWrite;
use super::known::{Changed, Known, ReadScope, ReadSpan};

/// Changes of one host that a reading writes at most; the rest is counted. A NIC has about 100 facts: one
/// that is replaced by another is recorded whole (100 gone, 100 new), a kernel or a routing table that is
/// replaced is no list that a person reads.
const CHANGES_MAX: usize = 200;
/// Changes that a run is loaded with at most, the newest.
const LOADED_MAX: usize = 10_000;

/// A reading of facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactReading<'a> {
    /// Name of the cluster: a host is known by it and its own name.
    pub cluster: &'a str,
    /// When it began, Unix milliseconds.
    pub started_ms: u64,
    /// When it was over, Unix milliseconds.
    pub ended_ms: u64,
    /// What read.
    pub seen_by: SeenBy,
    /// What it was asked for.
    pub scope: ReadScope<'a>,
    /// Who changed what it finds changed, where the host saw that: `tuned.service`, `sysctl (4711)`.
    pub who: Option<&'a str>,
}

/// A change with the cluster of its host.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LoggedChange {
    /// Name of the cluster.
    pub cluster: String,
    /// The change.
    #[serde(flatten)]
    pub change: FactChange,
}

/// Changes of a reading beyond the bound: only counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnlistedChanges {
    /// Name of the cluster.
    pub cluster: String,
    /// Host.
    pub host: HostName,
    /// When they were seen, Unix milliseconds.
    pub seen_ms: u64,
    /// How many.
    pub count: u64,
}

/// A part of the log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ChangeLog {
    /// Newest first; those of one reading of a host in the order of their keys.
    pub changes: Vec<LoggedChange>,
    /// What the readings saw beyond them.
    pub unlisted: Vec<UnlistedChanges>,
}

/// What a row has of a host beside its keys.
#[derive(Serialize, Deserialize)]
struct KnownRow {
    values: Vec<FactValue>,
    /// How many values in a row were read last at which moment.
    seen: Vec<(usize, u64)>,
    covered: Vec<(String, u64)>,
    unseen: BTreeSet<String>,
}

impl Store {
    /// Compares the facts of hosts with what is known of them, writes what changed, and remembers the new
    /// values. A host that was never read changes nothing. Gives what was written: up to the bound of a
    /// reading, changed values before what came and went.
    pub fn log_facts<'a>(
        &mut self,
        reading: &FactReading<'_>,
        facts: impl IntoIterator<Item = (&'a HostName, &'a HostFacts)>,
    ) -> Result<Vec<FactChange>, StoreError> {
        let change = self.database.begin(WRITE)?;
        let when = ReadSpan { started_ms: reading.started_ms, ended_ms: reading.ended_ms };
        let facts: Vec<(&HostName, &HostFacts)> = facts.into_iter().collect();
        let mut all = load_known(&change, reading.cluster, facts.iter().map(|(host, _)| *host))?;
        let (mut found, mut after) = (Vec::new(), BTreeMap::new());
        for (host, facts) in facts {
            // A host that comes twice was read twice.
            let old = after.remove(host).or_else(|| all.remove(host));
            let is_known = old.is_some();
            let mut known = old.unwrap_or_default();
            let changed = known.learn(facts, reading.scope, when);
            if is_known && !changed.is_empty() {
                found.push((host, changed));
            }
            after.insert(host, known);
        }
        let trials = if found.is_empty() { Vec::new() } else { load_trials(&change, reading.cluster)? };
        let written = write(&change, reading, found, &trials)?;
        save_known(&change, reading.cluster, &after)?;
        change.commit()?;
        Ok(written)
    }

    /// Changes seen from a moment on, of these hosts (all without names), of keys with this prefix.
    pub fn list_changes(
        &self,
        hosts: &[HostName],
        since_ms: u64,
        prefix: &str,
    ) -> Result<ChangeLog, StoreError> {
        let wanted = |host: &HostName| hosts.is_empty() || hosts.contains(host);
        let query =
            "select host, key, old, new, after_ms, seen_ms, run, who, seen_by, cluster from fact_change
                     where seen_ms >= ?1 and substr(key, 1, length(?2)) = ?2
                     order by seen_ms desc, cluster, host, after_ms desc, key";
        let mut log = ChangeLog::default();
        self.database.each(READ, query, params![since_ms as i64, prefix], |row| {
            let change = change_of(row)?;
            if wanted(&change.host) {
                log.changes.push(LoggedChange { cluster: row.get(9)?, change });
            }
            Ok::<_, StoreError>(())
        })?;
        let query = "select cluster, host, seen_ms, count from fact_change_beyond
                     where seen_ms >= ?1 order by seen_ms desc, cluster, host";
        log.unlisted = self.database.list(READ, query, params![since_ms as i64], |row| {
            let (seen_ms, count) = (unsigned(row.get(2)?), unsigned(row.get(3)?));
            Ok::<_, StoreError>(UnlistedChanges { cluster: row.get(0)?, host: row.get(1)?, seen_ms, count })
        })?;
        log.unlisted.retain(|beyond| wanted(&beyond.host));
        Ok(log)
    }

    /// The newest change of each fact that may be quoted beside the findings of a run: seen by it, or in the
    /// 14 days before.
    pub fn changes_before(&self, run: &Snapshot) -> Result<Vec<FactChange>, StoreError> {
        let query = "select host, key, old, new, after_ms, seen_ms, run, who, seen_by from fact_change
                     where cluster = ?1 and seen_ms >= ?2 and (seen_ms <= ?3 or run = ?4)
                     order by seen_ms desc, seq desc limit ?5";
        let from_ms = run.start_ms.saturating_sub(QUOTED_MS);
        let bounds =
            params![run.inventory.name, from_ms as i64, run.start_ms as i64, run.id, LOADED_MAX as i64];
        let (mut newest, mut known) = (Vec::new(), BTreeSet::new());
        self.database.each(READ, query, bounds, |row| {
            let change = change_of(row)?;
            if known.insert((change.host.clone(), change.key.clone())) {
                newest.push(change);
            }
            Ok::<_, StoreError>(())
        })?;
        Ok(newest)
    }
}

const WRITE: &str = "write changes of facts";
const READ: &str = "read changes of facts";

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn change_of(row: &Row<'_>) -> Result<FactChange, StoreError> {
    let text = |column: usize| row.get::<Option<String>>(column);
    let value = |column| -> Result<Option<FactValue>, StoreError> {
        text(column)?.map(|json| from_json("a changed value", &json)).transpose()
    };
    let seen_by = match (text(6)?, text(8)?) {
        (Some(run), _) => SeenBy::Run(run),
        (None, Some(json)) => from_json("what saw a change", &json)?,
        (None, None) => SeenBy::Facts,
    };
    let moment = |column: usize| row.get::<i64>(column).map(unsigned);
    Ok(FactChange {
        host: row.get(0)?,
        key: row.get(1)?,
        from: value(2)?,
        to: value(3)?,
        after_ms: moment(4)?,
        seen_ms: moment(5)?,
        seen_by,
        who: text(7)?,
    })
}

/// Writes what a reading changed of hosts, up to the bound of each: changed values before what came and went.
fn write(
    database: &Database,
    reading: &FactReading<'_>,
    found: Vec<(&HostName, Vec<Changed>)>,
    trials: &[(Trial, u64)],
) -> Result<Vec<FactChange>, StoreError> {
    let (run, seen_by) = match &reading.seen_by {
        SeenBy::Run(run) => (Some(run), None),
        other => (None, Some(to_json(other))),
    };
    let (mut changes, mut rows, mut beyond) = (Vec::new(), Rows::new(WRITE), Rows::new(WRITE));
    for (host, mut changed) in found {
        changed.sort_by_key(|one| one.from.is_none() || one.to.is_none());
        let more = changed.len().saturating_sub(CHANGES_MAX);
        changed.truncate(CHANGES_MAX);
        for one in changed {
            let one = change_by(reading, host, one, trials);
            let (old, new) = (one.from.as_ref().map(to_json), one.to.as_ref().map(to_json));
            let (after, seen) = (one.after_ms as i64, one.seen_ms as i64);
            rows.add(params![reading.cluster, host, one.key, old, new, after, seen, run, one.who, seen_by])?;
            changes.push(one);
        }
        if more > 0 {
            beyond.add(params![reading.cluster, host, reading.ended_ms as i64, more as i64])?;
        }
    }
    let put = "insert into fact_change (cluster, host, key, old, new, after_ms, seen_ms, run, who, seen_by)
               values (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)";
    database.execute_each(put, rows)?;
    let put = "insert into fact_change_beyond (cluster, host, seen_ms, count) values (?1,?2,?3,?4)";
    database.execute_each(put, beyond)?;
    Ok(changes)
}

fn change_by(
    reading: &FactReading<'_>,
    host: &HostName,
    one: Changed,
    trials: &[(Trial, u64)],
) -> FactChange {
    FactChange {
        host: host.clone(),
        who: who(host, &one, trials).or_else(|| reading.who.map(str::to_owned)),
        key: one.key,
        from: one.from,
        to: one.to,
        after_ms: one.after_ms,
        seen_ms: reading.ended_ms.max(one.after_ms),
        seen_by: reading.seen_by.clone(),
    }
}

/// The trial that made a change: saved after the old value was read, and in force or undone as the values
/// show.
fn who(host: &str, changed: &Changed, trials: &[(Trial, u64)]) -> Option<String> {
    let (from, to) = (changed.from.as_ref()?, changed.to.as_ref()?);
    let made = |trial: &Trial| {
        let is_in_force = match trial.status {
            TrialStatus::Running | TrialStatus::Kept | TrialStatus::UndoFailed => true,
            TrialStatus::Measured | TrialStatus::Undone => false,
        };
        trial.remedy.changes.iter().any(|change| {
            let (old, new) =
                if is_in_force { (&change.from, &change.to) } else { (&change.to, &change.from) };
            change.host == host && change.key == changed.key && same(old, from) && same(new, to)
        })
    };
    let mut fits = trials.iter().filter(|(trial, saved_ms)| *saved_ms >= changed.after_ms && made(trial));
    // Of two trials of the same change it is not known which.
    let (only, more) = (fits.next(), fits.next());
    only.filter(|_| more.is_none()).map(|(trial, _)| format!("trial {}", trial.id))
}

/// Whether two values are written the same: what a person typed as text may be a number where it is read.
fn same(a: &FactValue, b: &FactValue) -> bool {
    a == b || a.to_string().split_whitespace().eq(b.to_string().split_whitespace())
}

/// The trials of runs of a cluster, with the moment in which each was saved last.
fn load_trials(database: &Database, cluster: &str) -> Result<Vec<(Trial, u64)>, StoreError> {
    let query = "select trial.json, trial.saved_ms from trial join run on run.id = trial.run
                 where run.cluster = ?1";
    database.list(READ, query, params![cluster], |row| {
        Ok((from_json("a trial", &row.get::<String>(0)?)?, unsigned(row.get(1)?)))
    })
}

/// What is known of these hosts. Each list of keys, which most of them share, is read once.
fn load_known<'a>(
    database: &Database,
    cluster: &str,
    hosts: impl Iterator<Item = &'a HostName>,
) -> Result<HashMap<HostName, Known>, StoreError> {
    let what = |host: &HostName| format!("what is known of {host}");
    let mut wanted = Rows::new(READ);
    for host in hosts {
        wanted.add(params![cluster, host])?;
    }
    let mut found: Vec<(HostName, String, KnownRow)> = Vec::new();
    let query = "select host, keys, json from known_facts where cluster = ?1 and host = ?2";
    database.each_of(query, wanted, |row| {
        let host: HostName = row.get(0)?;
        let known = from_json(what(&host), &row.get::<String>(2)?)?;
        found.push((host, row.get(1)?, known));
        Ok::<_, StoreError>(())
    })?;
    let mut wanted = Rows::new(READ);
    for digest in found.iter().map(|(_, digest, _)| digest).collect::<BTreeSet<_>>() {
        wanted.add(params![digest])?;
    }
    let mut lists: HashMap<String, Vec<FactKey>> = HashMap::new();
    database.each_of("select digest, json from fact_keys where digest = ?1", wanted, |row| {
        lists.insert(row.get(0)?, from_json("keys of known facts", &row.get::<String>(1)?)?);
        Ok::<_, StoreError>(())
    })?;
    let of = |(host, digest, row): (HostName, String, KnownRow)| {
        let KnownRow { values, seen, covered, unseen } = row;
        let keys = lists.get(&digest).into_iter().flatten().cloned();
        let seen = seen.into_iter().flat_map(|(count, ms)| std::iter::repeat_n(ms, count));
        let facts = keys.zip(values.into_iter().zip(seen)).collect();
        (host, Known { facts, covered: covered.into_iter().collect(), unseen })
    };
    Ok(found.into_iter().map(of).collect())
}

fn save_known(
    database: &Database,
    cluster: &str,
    all: &BTreeMap<&HostName, Known>,
) -> Result<(), StoreError> {
    let (mut lists, mut rows) = (KeysToWrite::default(), Rows::new(WRITE));
    for (host, known) in all {
        let mut seen: Vec<(usize, u64)> = Vec::new();
        for (_, ms) in known.facts.values() {
            match seen.last_mut() {
                Some((count, last)) if last == ms => *count += 1,
                _ => seen.push((1, *ms)),
            }
        }
        let row = KnownRow {
            values: known.facts.values().map(|(value, _)| value.clone()).collect(),
            seen,
            covered: known.covered.iter().map(|(prefix, ms)| (prefix.clone(), *ms)).collect(),
            unseen: known.unseen.clone(),
        };
        let digest = lists.add(known.facts.keys());
        rows.add(params![cluster, host, digest, to_json(&row)])?;
    }
    lists.write(database)?;
    let put = "insert into known_facts (cluster, host, keys, json) values (?1,?2,?3,?4)
               on conflict (cluster, host) do update set keys = excluded.keys, json = excluded.json";
    database.execute_each(put, rows)
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
