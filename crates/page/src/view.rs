//! What pages show, read from the store at one moment. Values only: nothing here reads, and nothing changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_diagnose::history::{LevelChange, SeriesHistory, settings_between};
use linerate_history::{AlarmRecord, DropsRecord, HistoryPoint, SeriesKey};
use linerate_model::drift::DriftRow;
use linerate_model::fact_change::FactChange;
use linerate_model::finding::{Cell, Diagnosis, Direction, Suspect};
use linerate_model::inventory::Layer;
use linerate_model::run_id::RunId;
use linerate_model::slow::DownloadSuspect;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::Trial;
use linerate_model::verdict::Verdict;
use linerate_report::grid::{self, Grid, GridMetric};
use linerate_report::html::map;
use linerate_store::{ChangeLog, RunRow, StoredSurvey};

/// A run with its diagnosis.
#[derive(Debug)]
pub struct RunView {
    /// Its line in the list of runs.
    pub row: RunRow,
    /// What was observed.
    pub snapshot: Snapshot,
    /// What it means.
    pub diagnosis: Diagnosis,
    /// The same as the lines of a verdict.
    pub verdict: Verdict,
    /// The matrix in which the first finding shows.
    first: Option<(Layer, GridMetric)>,
    /// Matrices that were asked for, by group: to make one takes longer than to draw it.
    grids: Mutex<Vec<Arc<Grid>>>,
}

impl RunView {
    /// A finished run.
    #[must_use]
    pub fn new(row: RunRow, snapshot: Snapshot, diagnosis: Diagnosis) -> Self {
        let verdict = linerate_report::verdict::of(&snapshot, &diagnosis);
        let grids = grid::grids(&diagnosis, &snapshot.inventory);
        let first = grids.get(map::guilty(&grids, &verdict)).map(|grid| (grid.layer, grid.metric));
        Self { row, snapshot, diagnosis, verdict, first, grids: Mutex::default() }
    }

    /// Whether it is a host of the run.
    #[must_use]
    pub fn has_host(&self, name: &str) -> bool {
        let has = |cell: &Cell| cell.from == name || cell.to == name;
        self.snapshot.inventory.host(name).is_some() || self.diagnosis.cells.iter().any(has)
    }

    /// Layer and metric of the matrix in which the first finding shows; `None` where nothing was measured.
    #[must_use]
    pub fn first_grid(&self) -> Option<(Layer, GridMetric)> {
        self.first
    }

    /// A matrix by group; `None` where nothing of it was measured.
    pub fn grid(&self, layer: Layer, metric: GridMetric) -> Option<Arc<Grid>> {
        let mut known = self.grids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(grid) = known.iter().find(|grid| grid.layer == layer && grid.metric == metric) {
            return Some(Arc::clone(grid));
        }
        let inventory = &self.snapshot.inventory;
        let grid = Arc::new(grid::grid(&self.diagnosis, inventory, layer, metric)?.by_group(inventory));
        known.push(Arc::clone(&grid));
        Some(grid)
    }
}

/// The surveys of a cluster, and what moved over them.
#[derive(Debug, Default)]
pub struct OverTime {
    /// In time order.
    pub surveys: Vec<StoredSurvey>,
    /// Finished runs of the cluster with their starts, Unix milliseconds: those that are surveys were read.
    pub ended: BTreeMap<RunId, u64>,
    /// Of hosts and pairs.
    pub series: Vec<SeriesHistory>,
    /// Newest first.
    pub moved: Vec<LevelChange>,
    /// Changes of settings of the cluster, newest first.
    pub log: Vec<FactChange>,
}

impl OverTime {
    /// Start of a survey, Unix milliseconds.
    #[must_use]
    pub fn at_ms(&self, survey: usize) -> u64 {
        self.surveys.get(survey).map_or(0, |one| one.start_ms)
    }

    /// The newest change of a suspect for the worse.
    #[must_use]
    pub fn worse(&self, suspect: &Suspect, direction: Direction) -> Option<&LevelChange> {
        self.moved.iter().find(|change| {
            let series = &self.series[change.series];
            let is_direction = direction == Direction::Both || series.direction == direction;
            change.is_worse && series.suspect == *suspect && is_direction
        })
    }

    /// Settings that changed when a level did.
    #[must_use]
    pub fn settings(&self, change: &LevelChange) -> Vec<&FactChange> {
        let run = |index: usize| (self.surveys[index].run.as_str(), self.surveys[index].start_ms);
        let suspect = &self.series[change.series].suspect;
        settings_between(suspect, run(change.last), run(change.first), &self.log)
    }
}

/// The kept set beside the facts of the last run.
#[derive(Debug, Clone, PartialEq)]
pub enum DriftView {
    /// There is none, or it cannot be read: why.
    Absent(String),
    /// Its settings.
    Rows {
        /// The file of the kept set.
        file: String,
        /// One for each host and setting.
        rows: Vec<DriftRow>,
    },
}

/// Everything of one moment.
#[derive(Debug)]
pub struct SiteView {
    /// Grows whenever the database has changed.
    pub version: u64,
    /// Newest first.
    pub runs: Vec<RunRow>,
    /// The newest finished run that can be diagnosed.
    pub run: Option<Arc<RunView>>,
    /// Newest first.
    pub trials: Vec<Trial>,
    /// Changes of facts of all clusters.
    pub changes: ChangeLog,
    /// Surveys of the cluster of that run.
    pub over_time: Arc<OverTime>,
    /// The kept set.
    pub drift: DriftView,
    /// Alarms of watches of all clusters, newest first.
    pub alarms: Vec<AlarmRecord>,
    /// Counts of drops of all clusters, newest first.
    pub drops: Arc<Vec<DropsRecord>>,
    /// Whether a watch has measured.
    pub is_watched: bool,
    /// Why the last reading failed, where it did: the rest is older.
    pub trouble: Option<String>,
}

/// Downloads that are drawn; a host may have hundreds.
pub(crate) const DOWNLOADS_MAX: usize = 8;

/// Which series of minutes a page shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WatchedSeries {
    /// Those of a host or a pair.
    pub suspect: Option<Suspect>,
    /// Those of downloads.
    pub downloads: Option<DownloadSuspect>,
    /// The cluster; `None`: that of the run.
    pub cluster: Option<String>,
}

/// A series of minutes with what is known of it.
pub type Minutes = (SeriesKey, Vec<HistoryPoint>);
