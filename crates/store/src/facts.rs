//! Facts of hosts in the database: keys, which most hosts have in common, once by their digest; for each host
//! its values.
//!
//! What comes in: facts. What goes out: rows, and the same facts again, also from rows of older versions.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use linerate_model::fact::{FactKey, FactValue, Gap, HostFacts};
use linerate_model::fact_map::{FactMap, KeyLists};
use linerate_model::inventory::HostName;
use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::database::{Database, Rows};
use super::error::{StoreError, from_json, to_json};

/// What a row has of a host beside its keys.
#[derive(Serialize, JsonSchema)]
struct Written<'a> {
    values: Vec<&'a FactValue>,
    counters: &'a BTreeMap<FactKey, i64>,
    gaps: &'a [Gap],
    tool_bps: Option<f64>,
}

/// The same, read.
#[derive(Deserialize)]
struct Read {
    values: Vec<FactValue>,
    counters: BTreeMap<FactKey, i64>,
    gaps: Vec<Gap>,
    tool_bps: Option<f64>,
}

/// Writes the facts of hosts.
pub(super) fn add<'a>(
    database: &Database,
    run: &str,
    facts: impl IntoIterator<Item = (&'a HostName, &'a HostFacts)>,
) -> Result<(), StoreError> {
    let put = "insert into facts (run, host, json, keys) values (?1,?2,?3,?4)
               on conflict (run, host) do update set json = excluded.json, keys = excluded.keys";
    let (mut lists, mut rows) = (KeysToWrite::default(), Rows::new("write facts"));
    // Hosts that share their keys: digested once.
    let mut digests: HashMap<usize, String> = HashMap::new();
    for (host, facts) in facts {
        let HostFacts { readings, counters, gaps, tool_bps } = facts;
        let digest = digests.entry(readings.key_list()).or_insert_with(|| lists.add(readings.keys()));
        let written = Written { values: readings.values().collect(), counters, gaps, tool_bps: *tool_bps };
        rows.add(params![run, host, to_json(&written), &*digest])?;
    }
    lists.write(database)?;
    database.execute_each(put, rows)
}

/// Lists of keys by their digests.
#[derive(Default)]
pub(super) struct KeysToWrite(BTreeMap<String, String>);

impl KeysToWrite {
    /// Adds a list of keys; gives its digest.
    pub(super) fn add<'a>(&mut self, keys: impl Iterator<Item = &'a FactKey>) -> String {
        let json = to_json(&keys.collect::<Vec<_>>());
        let digest = digest(&json);
        self.0.entry(digest.clone()).or_insert(json);
        digest
    }

    /// Writes those that are not there.
    pub(super) fn write(self, database: &Database) -> Result<(), StoreError> {
        let mut rows = Rows::new("write keys of facts");
        for (digest, json) in self.0 {
            rows.add(params![digest, json])?;
        }
        let put = "insert into fact_keys (digest, json) values (?1,?2) on conflict do nothing";
        database.execute_each(put, rows)
    }
}

fn digest(json: &str) -> String {
    Sha256::digest(json).iter().fold(String::new(), |mut text, byte| {
        // Writing into a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads the facts of all hosts of a run.
pub(super) fn load(database: &Database, run: &str) -> Result<BTreeMap<HostName, HostFacts>, StoreError> {
    const READ: &str = "read facts";
    let (mut known, mut lists) = (HashMap::new(), KeyLists::default());
    let query = "select digest, json from fact_keys
                 where digest in (select keys from facts where run = ?1)";
    database.each(READ, query, params![run], |row| {
        let keys: Vec<FactKey> = from_json(format!("keys of facts in run {run}"), &row.get::<String>(1)?)?;
        known.insert(row.get::<String>(0)?, Arc::new(keys));
        Ok::<_, StoreError>(())
    })?;
    let mut all = BTreeMap::new();
    let query = "select host, json, keys from facts where run = ?1";
    database.each(READ, query, params![run], |row| {
        let host: HostName = row.get(0)?;
        let (json, digest): (String, Option<String>) = (row.get(1)?, row.get(2)?);
        let what = format!("facts of {host} in run {run}");
        let mut facts: HostFacts = match digest {
            None => from_json(&*what, &json)?,
            Some(digest) => {
                let Read { values, counters, gaps, tool_bps } = from_json(&*what, &json)?;
                let keys = known.get(&digest).cloned().unwrap_or_default();
                let odd = || serde::de::Error::custom("not as many values as keys");
                let readings = FactMap::of_lists(keys, values)
                    .ok_or_else(|| StoreError::Shape { what, source: odd() })?;
                HostFacts { readings, counters, gaps, tool_bps }
            }
        };
        lists.share(&mut facts.readings);
        all.insert(host, facts);
        Ok::<_, StoreError>(())
    })?;
    Ok(all)
}
