//! Runs: begun, filled as they are measured, finished once, read again, and listed. Each write is one
//! transaction; a finished run never changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_model::fact::{Gap, HostFacts};
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::{HostName, Inventory};
use linerate_model::path_methods::PathMethods;
use linerate_model::run_id::RunId;
use linerate_model::sample::{Outcome, Sample};
use linerate_model::snapshot::Snapshot;
use rusqlite::params;
use schemars::JsonSchema;
use serde::Serialize;

use super::database::{Row, Rows};
use super::error::{StoreError, from_json, to_json};
use super::{Store, facts};

/// A run without what has tables of its own.
fn shell(snapshot: &Snapshot) -> Snapshot {
    Snapshot {
        samples: Vec::new(),
        gaps: Vec::new(),
        facts: BTreeMap::new(),
        changes: Vec::new(),
        stored: Vec::new(),
        ..snapshot.clone()
    }
}

fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Measured(_) => "measured",
        Outcome::NothingThrough { .. } => "nothing-through",
        Outcome::Invalid { .. } => "invalid",
        Outcome::Gap { .. } => "gap",
    }
}

/// One line of the list of runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunRow {
    /// Run.
    pub id: RunId,
    /// The run it follows.
    pub parent: Option<RunId>,
    /// Start, Unix milliseconds.
    pub start_ms: u64,
    /// Name of the cluster.
    pub cluster: String,
    /// Inventory file, for runs that came from one.
    pub inventory_path: Option<PathBuf>,
    /// Number of samples.
    pub samples: u64,
    /// Whether it came to its end.
    pub finished: bool,
    /// Headline of its diagnosis.
    pub headline: String,
    /// Whether it has what a diagnosis is made of: facts of hosts or imported evidence, and is more than a
    /// measurement by itself.
    pub diagnosable: bool,
}

impl Store {
    /// Starts a run: everything of the snapshot but what comes later.
    pub fn begin_run(&self, snapshot: &Snapshot, inventory_path: Option<&Path>) -> Result<(), StoreError> {
        const BEGIN: &str = "begin a run";
        let mut stored = Rows::new(BEGIN);
        for series in &snapshot.stored {
            stored.add(params![snapshot.id, to_json(series)])?;
        }
        let change = self.database.begin(BEGIN)?;
        change.execute(
            BEGIN,
            "insert into run (id, parent, start_ms, cluster, inventory_path, json) values (?1,?2,?3,?4,?5,?6)",
            params![
                snapshot.id,
                snapshot.parent,
                snapshot.start_ms as i64,
                snapshot.inventory.name,
                inventory_path.map(|p| p.to_string_lossy().into_owned()),
                to_json(&shell(snapshot)),
            ],
        )?;
        change.execute_each("insert into stored_series (run, json) values (?1,?2)", stored)?;
        change.commit()
    }

    /// Marks a run as a measurement by itself: it is never the last one that can be diagnosed.
    pub fn set_measurement(&self, run: &str) -> Result<(), StoreError> {
        let mark = "update run set measurement = 1 where id = ?1";
        self.database.execute("mark a measurement", mark, params![run])?;
        Ok(())
    }

    /// What a run has beside facts, samples and gaps: figures of storage, the announced load.
    pub fn set_shell(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let row = params![snapshot.id, to_json(&shell(snapshot))];
        self.database.execute("write a run", "update run set json = ?2 where id = ?1", row)?;
        Ok(())
    }

    /// Facts of hosts, all or none of them.
    pub fn add_facts<'a>(
        &mut self,
        run: &str,
        facts: impl IntoIterator<Item = (&'a HostName, &'a HostFacts)>,
    ) -> Result<(), StoreError> {
        let change = self.database.begin("write facts")?;
        facts::add(&change, run, facts)?;
        change.commit()
    }

    /// The samples of a round, as soon as they are there; all or none of them.
    pub fn add_samples(&mut self, run: &str, samples: &[Sample]) -> Result<(), StoreError> {
        let mut rows = Rows::new("write samples");
        for sample in samples {
            let throughput = match &sample.outcome {
                Outcome::Measured(m) => m.throughput_bps,
                Outcome::NothingThrough { .. } => Some(0.0),
                Outcome::Invalid { .. } | Outcome::Gap { .. } => None,
            };
            let test = &sample.test;
            rows.add(params![
                run,
                test.id,
                test.from,
                test.to,
                test.layer.to_string(),
                test.kind.name(),
                sample.start_ms as i64,
                outcome_name(&sample.outcome),
                throughput,
                to_json(sample),
            ])?;
        }
        let change = self.database.begin("write samples")?;
        let put = "insert into sample (run, test, from_host, to_host, layer, kind, start_ms, outcome,
                                       throughput_bps, json)
                   values (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)";
        change.execute_each(put, rows)?;
        change.commit()
    }

    /// A sample again, after something was learned about it (a disturbance that was reported late).
    pub fn replace_sample(&self, run: &str, sample: &Sample) -> Result<(), StoreError> {
        self.database.execute(
            "write a sample",
            "update sample set outcome = ?3, throughput_bps = null, json = ?4 where run = ?1 and test = ?2",
            params![run, sample.test.id, outcome_name(&sample.outcome), to_json(sample)],
        )?;
        Ok(())
    }

    /// Something that could not be seen.
    pub fn add_gap(&self, run: &str, gap: &Gap) -> Result<(), StoreError> {
        let add = "insert into gap (run, what, reason) values (?1,?2,?3)";
        self.database.execute("write a gap", add, params![run, gap.what.to_string(), gap.reason])?;
        Ok(())
    }

    /// The end of a run with its diagnosis.
    pub fn finish(&mut self, snapshot: &Snapshot, diagnosis: &Diagnosis) -> Result<(), StoreError> {
        let change = self.database.begin("finish a run")?;
        change.execute(
            "finish a run",
            "update run set finished = 1, headline = ?2, diagnosis = ?3, left_out = ?4 where id = ?1",
            params![snapshot.id, diagnosis.headline, to_json(diagnosis), to_json(&snapshot.left_out)],
        )?;
        let old = "delete from finding where run = ?1";
        change.execute("write findings", old, params![snapshot.id])?;
        let mut rows = Rows::new("write findings");
        for (rank, finding) in diagnosis.findings.iter().enumerate() {
            let cause = finding.causes.first().map(|c| c.id.as_str());
            rows.add(params![snapshot.id, rank as i64, cause, finding.sentence, to_json(finding)])?;
        }
        let put = "insert into finding (run, rank, cause, sentence, json) values (?1,?2,?3,?4,?5)";
        change.execute_each(put, rows)?;
        change.commit()
    }

    /// Removes a run that ended before it measured anything; the changes that it saw stay in the log. A
    /// finished run stays.
    pub fn discard(&mut self, run: &str) -> Result<(), StoreError> {
        const DISCARD: &str = "discard a run";
        let change = self.database.begin(DISCARD)?;
        let found = "select finished = 0 from run where id = ?1";
        let unfinished: Option<bool> = change.first(DISCARD, found, params![run], |row| row.get(0))?;
        if unfinished == Some(true) {
            for table in ["sample", "facts", "gap", "finding", "stored_series"] {
                change.execute(DISCARD, &format!("delete from {table} where run = ?1"), params![run])?;
            }
            let log = "update fact_change set run = null where run = ?1";
            change.execute(DISCARD, log, params![run])?;
            change.execute(DISCARD, "delete from run where id = ?1", params![run])?;
        }
        change.commit()
    }

    /// All of a run that was written, also of one that was killed.
    pub fn load_snapshot(&self, run: &str) -> Result<Snapshot, StoreError> {
        let query = "select json, left_out from run where id = ?1";
        let texts = |row: &Row<'_>| -> Result<(String, Option<String>), StoreError> {
            Ok((row.get(0)?, row.get(1)?))
        };
        let found = self.database.first("read a run", query, params![run], texts)?;
        let (json, left_out) =
            found.ok_or_else(|| StoreError::Missing { kind: "run", id: run.to_owned() })?;
        let mut snapshot: Snapshot = from_json(format!("run {run}"), &json)?;
        if let Some(left_out) = left_out {
            snapshot.left_out = from_json(format!("what run {run} left out"), &left_out)?;
        }
        snapshot.facts = facts::load(&self.database, run)?;
        if snapshot.imported.is_none() {
            snapshot.changes = self.changes_before(&snapshot)?;
        }
        for (number, json) in
            self.pairs("select cast(seq as text), json from sample where run = ?1 order by seq", run)?
        {
            snapshot.samples.push(from_json(format!("sample {number} of run {run}"), &json)?);
        }
        let query = "select cast(seq as text), json from stored_series where run = ?1 order by seq";
        for (number, json) in self.pairs(query, run)? {
            snapshot.stored.push(from_json(format!("stored series {number} of run {run}"), &json)?);
        }
        snapshot.gaps = self
            .pairs("select what, reason from gap where run = ?1 order by rowid", run)?
            .into_iter()
            .map(|(what, reason)| Gap { what: what.into(), reason })
            .collect();
        Ok(snapshot)
    }

    /// The diagnosis that was stored with a run, if it came to its end.
    pub fn load_diagnosis(&self, run: &str) -> Result<Option<Diagnosis>, StoreError> {
        let query = "select diagnosis from run where id = ?1";
        let json = |row: &Row<'_>| row.get::<Option<String>>(0);
        match self.database.first("read a diagnosis", query, params![run], json)? {
            None => Err(StoreError::Missing { kind: "run", id: run.to_owned() }),
            Some(None) => Ok(None),
            Some(Some(json)) => from_json(format!("diagnosis of run {run}"), &json).map(Some),
        }
    }

    /// The methods of fast paths that finished runs of this cluster compared since then, Unix milliseconds:
    /// of each class those of the newest run.
    pub fn methods_of(&self, inventory: &Inventory, since_ms: u64) -> Result<Vec<PathMethods>, StoreError> {
        // Lists of hosts without a name of their own share one.
        let Some(host) = inventory.hosts.first() else { return Ok(Vec::new()) };
        let query = "select json ->> 'methods' from run
                     where cluster = ?1 and start_ms >= ?2 and finished = 1
                           and json ->> 'methods' is not null
                           and exists (select 1 from facts where facts.run = run.id and facts.host = ?3)
                     order by start_ms desc, id desc";
        let values = params![inventory.name, since_ms as i64, host.name];
        let of_runs: Vec<String> = self.database.list("read methods", query, values, |row| row.get(0))?;
        let mut known: Vec<PathMethods> = Vec::new();
        for json in of_runs {
            let of_run: Vec<PathMethods> = from_json("methods of a run", &json)?;
            for methods in of_run.into_iter().filter(|methods| methods.compared_ms >= since_ms) {
                if known.iter().all(|other| other.class != methods.class) {
                    known.push(methods);
                }
            }
        }
        Ok(known)
    }

    /// All runs, newest first.
    pub fn list_runs(&self) -> Result<Vec<RunRow>, StoreError> {
        let query = "select id, parent, start_ms, cluster, inventory_path, finished, coalesce(headline, ''),
                            (select count(*) from sample where sample.run = run.id),
                            measurement = 0 and (json ->> 'imported' is not null
                                                 or exists (select 1 from facts where facts.run = run.id))
                     from run order by start_ms desc, id desc";
        self.database.list("list runs", query, &[], |row| {
            Ok(RunRow {
                id: row.get(0)?,
                parent: row.get(1)?,
                start_ms: row.get::<i64>(2)?.max(0) as u64,
                cluster: row.get(3)?,
                inventory_path: row.get::<Option<String>>(4)?.map(PathBuf::from),
                finished: row.get(5)?,
                headline: row.get(6)?,
                samples: row.get::<i64>(7)?.max(0) as u64,
                diagnosable: row.get(8)?,
            })
        })
    }

    /// The newest run, or the one whose id begins with the text.
    pub fn find_run(&self, wanted: Option<&str>) -> Result<RunRow, StoreError> {
        self.find(wanted, |_| true)
    }

    /// The newest run that can be diagnosed, or the one whose id begins with the text.
    pub fn find_diagnosable(&self, wanted: Option<&str>) -> Result<RunRow, StoreError> {
        self.find(wanted, |run| run.diagnosable)
    }

    fn find(&self, wanted: Option<&str>, fits: impl Fn(&RunRow) -> bool) -> Result<RunRow, StoreError> {
        let missing =
            || wanted.map_or(StoreError::NoRun, |id| StoreError::Missing { kind: "run", id: id.to_owned() });
        self.list_runs()?
            .into_iter()
            .find(|run| wanted.map_or_else(|| fits(run), |id| !id.is_empty() && run.id.starts_with(id)))
            .ok_or_else(missing)
    }

    fn pairs(&self, query: &str, run: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.database.list("read a run", query, params![run], |row| Ok((row.get(0)?, row.get(1)?)))
    }
}
