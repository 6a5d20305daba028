//! Surveys of a cluster over time, by the cells of their diagnoses alone: samples are not read.

use linerate_model::finding::Cell;
use linerate_model::run_id::RunId;
use rusqlite::params;

use super::Store;
use super::error::{StoreError, at, from_json};

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
        const READ: &str = "read surveys";
        let query = "select id, start_ms, cluster, json_extract(diagnosis, '$.cells') from run
                     where start_ms >= ?1 and finished = 1 and measurement = 0
                           and json_extract(json, '$.imported') is null
                           and json_array_length(diagnosis, '$.cells') > 0
                     order by start_ms, id";
        let mut statement = self.connection.prepare(query).map_err(at(READ))?;
        let mut rows = statement.query(params![since_ms as i64]).map_err(at(READ))?;
        let mut surveys = Vec::new();
        while let Some(row) = rows.next().map_err(at(READ))? {
            let (run, start): (RunId, i64) = (row.get(0).map_err(at(READ))?, row.get(1).map_err(at(READ))?);
            let cells: String = row.get(3).map_err(at(READ))?;
            surveys.push(StoredSurvey {
                cells: from_json(format!("the cells of run {run}"), &cells)?,
                run,
                start_ms: start.max(0) as u64,
                cluster: row.get(2).map_err(at(READ))?,
            });
        }
        Ok(surveys)
    }
}
