//! Trials in the database: saved again at every step, so that a killed operator finds them.

use linerate_model::run_id::RunId;
use linerate_model::trial::Trial;
use rusqlite::{OptionalExtension, params};
use schemars::JsonSchema;
use serde::Serialize;

use super::Store;
use super::error::{StoreError, at, from_json, to_json};

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
        self.connection
            .execute(
                "insert or replace into trial (id, run, remedy, status, saved_ms, json) values (?1,?2,?3,?4,?5,?6)",
                params![
                    trial.id,
                    trial.run,
                    trial.remedy.id,
                    status.unwrap_or_default(),
                    now_ms as i64,
                    to_json(trial)
                ],
            )
            .map_err(at("write a trial"))?;
        Ok(())
    }

    /// One trial; the beginning of its id is enough.
    pub fn load_trial(&self, id: &str) -> Result<Trial, StoreError> {
        let json: Option<String> = self
            .connection
            .query_row(
                "select json from trial where substr(id, 1, length(?1)) = ?1 and ?1 <> '' order by id desc limit 1",
                [id],
                |row| row.get(0),
            )
            .optional()
            .map_err(at("read a trial"))?;
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
        let mut statement = self.connection.prepare(query).map_err(at("list trials"))?;
        let rows = statement.query_map(params![remedy, cluster, since_ms as i64], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        });
        let rows: Vec<(String, i64)> = rows.and_then(Iterator::collect).map_err(at("list trials"))?;
        let trial = |(json, saved): (String, i64)| {
            Ok((from_json("a trial", &json)?, u64::try_from(saved).unwrap_or(0)))
        };
        rows.into_iter().map(trial).collect()
    }

    /// All trials, newest first.
    pub fn list_trials(&self) -> Result<Vec<TrialRow>, StoreError> {
        let mut statement = self
            .connection
            .prepare("select id, run, remedy, status from trial order by saved_ms desc, id desc")
            .map_err(at("list trials"))?;
        let rows = statement
            .query_map([], |row| {
                Ok(TrialRow { id: row.get(0)?, run: row.get(1)?, remedy: row.get(2)?, status: row.get(3)? })
            })
            .map_err(at("list trials"))?;
        rows.collect::<Result<_, _>>().map_err(at("list trials"))
    }
}
