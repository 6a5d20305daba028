//! Facts of hosts in the database: keys, which most hosts have in common, once by their digest; for each host
//! its values.
//!
//! What comes in: facts. What goes out: rows, and the same facts again, also from rows of older versions.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use linerate_model::fact::{FactKey, FactValue, Gap, HostFacts};
use linerate_model::fact_map::{FactMap, KeyLists};
use linerate_model::inventory::HostName;
use rusqlite::{Connection, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::{StoreError, at, from_json, to_json};

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
    connection: &Connection,
    run: &str,
    facts: impl IntoIterator<Item = (&'a HostName, &'a HostFacts)>,
) -> Result<(), StoreError> {
    let write = at("write facts");
    let put = || -> rusqlite::Result<()> {
        let mut row = connection
            .prepare_cached("insert or replace into facts (run, host, json, keys) values (?1,?2,?3,?4)")?;
        // Hosts that share their keys: digested once.
        let mut digests: HashMap<usize, String> = HashMap::new();
        for (host, facts) in facts {
            let HostFacts { readings, counters, gaps, tool_bps } = facts;
            let digest = match digests.entry(readings.key_list()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(add_keys(connection, readings.keys())?),
            };
            let written =
                Written { values: readings.values().collect(), counters, gaps, tool_bps: *tool_bps };
            row.execute(params![run, host, to_json(&written), &*digest])?;
        }
        Ok(())
    };
    put().map_err(write)
}

/// Writes a list of keys, unless it is there; gives its digest.
pub(super) fn add_keys<'a>(
    connection: &Connection,
    keys: impl Iterator<Item = &'a FactKey>,
) -> rusqlite::Result<String> {
    let json = to_json(&keys.collect::<Vec<_>>());
    let digest = digest(&json);
    connection
        .prepare_cached("insert or ignore into fact_keys (digest, json) values (?1,?2)")?
        .execute(params![digest, json])?;
    Ok(digest)
}

fn digest(json: &str) -> String {
    Sha256::digest(json).iter().fold(String::new(), |mut text, byte| {
        // Writing into a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads the facts of all hosts of a run.
pub(super) fn load(connection: &Connection, run: &str) -> Result<BTreeMap<HostName, HostFacts>, StoreError> {
    let (mut known, mut lists) = (HashMap::new(), KeyLists::default());
    let mut statement = connection
        .prepare(
            "select distinct fact_keys.digest, fact_keys.json from facts join fact_keys on facts.keys = digest
             where run = ?1",
        )
        .map_err(at("read facts"))?;
    let rows = statement
        .query_map([run], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))
        .map_err(at("read facts"))?;
    for row in rows {
        let (digest, json) = row.map_err(at("read facts"))?;
        let keys: Vec<FactKey> = from_json(format!("keys of facts in run {run}"), &json)?;
        known.insert(digest, Arc::new(keys));
    }
    let mut all = BTreeMap::new();
    let mut statement =
        connection.prepare("select host, json, keys from facts where run = ?1").map_err(at("read facts"))?;
    let mut rows = statement.query([run]).map_err(at("read facts"))?;
    while let Some(row) = rows.next().map_err(at("read facts"))? {
        let texts =
            || Ok((row.get::<_, HostName>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?));
        let (host, json, digest) = texts().map_err(at("read facts"))?;
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
    }
    Ok(all)
}
