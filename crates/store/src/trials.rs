//! Trials in the database: saved again at every step, so that a killed operator finds them.

use linerate_model::run_id::RunId;
use linerate_model::trial::Trial;
use rusqlite::params;
use schemars::JsonSchema;
use serde::Serialize;

use super::Store;
use super::error::{StoreError, from_json, to_json};

/// One line of the list of trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TrialRow {
    /// Trial.
    pub id: RunId,
    /// Run whose finding it treats.
    pub run: RunId,
    /// Remedy.
    pub remedy: String,
    /// `running`, `measured`, `kept`, `undone`, `undo-failed`.
    pub status: String,
}

impl Store {
    /// Writes a trial, new or again; `now_ms` is the Unix time in milliseconds.
    pub fn save_trial(&self, trial: &Trial, now_ms: u64) -> Result<(), StoreError> {
        let status = serde_json::to_value(trial.status).ok().and_then(|v| v.as_str().map(str::to_owned));
        self.database.execute(
            "write a trial",
            "insert into trial (id, run, remedy, status, saved_ms, json) values (?1,?2,?3,?4,?5,?6)
             on conflict (id) do update set run = excluded.run, remedy = excluded.remedy,
                status = excluded.status, saved_ms = excluded.saved_ms, json = excluded.json",
            params![
                trial.id,
                trial.run,
                trial.remedy.id,
                status.unwrap_or_default(),
                now_ms as i64,
                to_json(trial)
            ],
        )?;
        Ok(())
    }

    /// One trial; the beginning of its id is enough.
    pub fn load_trial(&self, id: &str) -> Result<Trial, StoreError> {
        let query = "select json from trial where substr(id, 1, length(?1)) = ?1 and ?1 <> ''
                     order by id desc limit 1";
        let json: Option<String> =
            self.database.first("read a trial", query, params![id], |row| row.get(0))?;
        let json = json.ok_or_else(|| StoreError::Missing { kind: "trial", id: id.to_owned() })?;
        from_json(format!("trial {id}"), &json)
    }

    /// Trials of a remedy in a cluster that were saved from a moment on, each with that moment, Unix
    /// milliseconds. One of no run counts for every cluster.
    pub fn trials_of(
        &self,
        remedy: &str,
        cluster: &str,
        since_ms: u64,
    ) -> Result<Vec<(Trial, u64)>, StoreError> {
        let query = "select trial.json, trial.saved_ms from trial left join run on run.id = trial.run
                     where remedy = ?1 and coalesce(run.cluster, ?2) = ?2 and saved_ms >= ?3 order by saved_ms";
        let values = params![remedy, cluster, since_ms as i64];
        self.database.list("list trials", query, values, |row| {
            let saved: i64 = row.get(1)?;
            Ok((from_json("a trial", &row.get::<String>(0)?)?, u64::try_from(saved).unwrap_or(0)))
        })
    }

    /// All trials, newest first.
    pub fn list_trials(&self) -> Result<Vec<TrialRow>, StoreError> {
        let query = "select id, run, remedy, status from trial order by saved_ms desc, id desc";
        self.database.list("list trials", query, &[], |row| {
            Ok(TrialRow { id: row.get(0)?, run: row.get(1)?, remedy: row.get(2)?, status: row.get(3)? })
        })
    }
}
