//! Surveys of a cluster over time, by the cells of their diagnoses alone: samples are not read.

use linerate_model::finding::Cell;
use linerate_model::run_id::RunId;
use rusqlite::params;

use super::Store;
use super::error::{StoreError, from_json};

/// A finished survey.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSurvey {
    /// Run.
    pub run: RunId,
    /// Start, Unix milliseconds.
    pub start_ms: u64,
    /// Name of the cluster.
    pub cluster: String,
    /// What it measured.
    pub cells: Vec<Cell>,
}

impl Store {
    /// The finished surveys from a moment on, the oldest first. Imported evidence and measurements by
    /// themselves are none.
    pub fn list_surveys(&self, since_ms: u64) -> Result<Vec<StoredSurvey>, StoreError> {
        let query = "select id, start_ms, cluster, diagnosis ->> 'cells' from run
                     where start_ms >= ?1 and finished = 1 and measurement = 0
                           and json ->> 'imported' is null
                           and json_array_length(diagnosis -> 'cells') > 0
                     order by start_ms, id";
        self.database.list("read surveys", query, params![since_ms as i64], |row| {
            let run: RunId = row.get(0)?;
            Ok(StoredSurvey {
                cells: from_json(format!("the cells of run {run}"), &row.get::<String>(3)?)?,
                run,
                start_ms: row.get::<i64>(1)?.max(0) as u64,
                cluster: row.get(2)?,
            })
        })
    }
}
