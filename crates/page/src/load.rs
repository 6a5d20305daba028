//! The store in, a view out. Blocking: called from threads that may wait. What did not change since the last
//! view is taken from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use linerate_diagnose::history::{self, RunCells};
use linerate_diagnose::rules::Rules;
use linerate_history::{AlarmRecord, DropsRecord, History, HistoryError, Recorded};
use linerate_model::fact_change::FactChange;
use linerate_model::run_id::RunId;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::{Trial, TrialStatus};
use linerate_store::{RunRow, Store, StoreError};

use super::view::{DOWNLOADS_MAX, DriftView, Minutes, OverTime, RunView, SiteView, WatchedSeries};

/// Changes of facts and surveys are shown up to this age, milliseconds: 30 and 90 days, as the commands
/// `changes` and `history` do.
const CHANGES_MS: u64 = 30 * 86_400_000;
const SURVEYS_MS: u64 = 90 * 86_400_000;
/// Minutes are drawn up to this age, milliseconds: 2 days.
const MINUTES_MS: u64 = 2 * 86_400_000;

/// How a store is opened.
type Open<T, E> = Box<dyn Fn() -> Result<T, E> + Send + Sync>;
/// A run with its inventory as commands have to name it.
type LoadRun = Box<dyn Fn(&Store, &RunRow) -> Result<Snapshot, StoreError> + Send + Sync>;
/// The kept set of a run, by its facts and the log of its cluster.
type ReadDrift = Box<dyn Fn(&RunView, &[FactChange]) -> DriftView + Send + Sync>;

/// Where views come from.
pub struct Source {
    /// Opens the store for reading.
    pub store: Open<Store, StoreError>,
    /// Opens the minutes for reading.
    pub history: Open<History, HistoryError>,
    /// Reads a run.
    pub run: LoadRun,
    /// Compares the kept set.
    pub drift: ReadDrift,
    /// Now, Unix milliseconds.
    pub now_ms: fn() -> u64,
}

/// A finished run; `None` for one without a diagnosis.
///
/// # Errors
/// The store cannot be read, or has no such run.
pub fn read_run(source: &Source, store: &Store, row: RunRow) -> Result<Option<RunView>, StoreError> {
    let Some(diagnosis) = store.load_diagnosis(&row.id)? else { return Ok(None) };
    let snapshot = (source.run)(store, &row)?;
    let run = RunView::new(row, snapshot, diagnosis);
    if let Some((layer, metric)) = run.first_grid() {
        run.grid(layer, metric);
    }
    Ok(Some(run))
}

/// All that pages show; what is in the last view and has not changed is not read again.
///
/// # Errors
/// The store cannot be read.
pub fn read_view(source: &Source, store: &Store, last: Option<&SiteView>) -> Result<SiteView, StoreError> {
    let now_ms = (source.now_ms)();
    let runs = store.list_runs()?;
    let newest = runs.iter().find(|run| run.finished && run.diagnosable);
    let known = last.and_then(|view| view.run.clone());
    let run = match newest {
        None => None,
        Some(row) if known.as_ref().is_some_and(|run| run.row.id == row.id) => known,
        Some(row) => read_run(source, store, row.clone())?.map(Arc::new),
    };
    let changes = store.list_changes(&[], now_ms.saturating_sub(CHANGES_MS), "")?;
    let over_time = match &run {
        Some(run) => over_time(store, &runs, &run.row.cluster, now_ms, last)?,
        None => Arc::new(OverTime::default()),
    };
    let drift = match &run {
        Some(run) => (source.drift)(run, &over_time.log),
        None => DriftView::Absent("no run".to_owned()),
    };
    let ((alarms, drops, is_watched), trouble) = match records(source, last) {
        Ok(records) => (records, None),
        // The runs are shown all the same, and what is older.
        Err(error) => {
            let known = last.map(|view| (view.alarms.clone(), Arc::clone(&view.drops), view.is_watched));
            (known.unwrap_or_default(), Some(error.to_string()))
        }
    };
    Ok(SiteView {
        version: last.map_or(1, |view| view.version + 1),
        trials: trials(store, last.map_or(&[], |view| &view.trials))?,
        runs,
        run,
        changes,
        over_time,
        drift,
        alarms,
        drops,
        is_watched,
        trouble,
    })
}

/// Alarms and counts of drops, newest first, and whether there are minutes.
type Records = (Vec<AlarmRecord>, Arc<Vec<DropsRecord>>, bool);

/// A count does not change: all are read when there is another one.
fn records(source: &Source, last: Option<&SiteView>) -> Result<Records, HistoryError> {
    let history = (source.history)()?;
    let known = last.map(|view| &view.drops);
    let ids = history.record_ids::<DropsRecord>()?;
    let drops = match known.filter(|known| known.iter().map(Recorded::id).eq(ids)) {
        Some(known) => Arc::clone(known),
        None => Arc::new(history.records()?),
    };
    let is_watched = last.is_some_and(|view| view.is_watched) || !history.is_empty()?;
    Ok((history.records()?, drops, is_watched))
}

/// Trials, newest first; one that was undone is read once.
fn trials(store: &Store, known: &[Trial]) -> Result<Vec<Trial>, StoreError> {
    let undone = |id: &str| known.iter().find(|trial| trial.id == id && trial.status == TrialStatus::Undone);
    let one = |id: &str| undone(id).map_or_else(|| store.load_trial(id), |trial| Ok(trial.clone()));
    store.list_trials()?.iter().map(|row| one(&row.id)).collect()
}

/// The surveys of a cluster; series are computed anew where there is another survey.
fn over_time(
    store: &Store,
    runs: &[RunRow],
    cluster: &str,
    now_ms: u64,
    last: Option<&SiteView>,
) -> Result<Arc<OverTime>, StoreError> {
    let since_ms = now_ms.saturating_sub(SURVEYS_MS);
    let all = store.list_changes(&[], since_ms, "")?.changes;
    let log: Vec<FactChange> =
        all.into_iter().filter(|one| one.cluster == cluster).map(|one| one.change).collect();
    let known = last.map(|view| &view.over_time);
    let known = known.filter(|known| known.surveys.last().is_some_and(|one| one.cluster == cluster));
    let old = known.map_or(&[][..], |known| &known.surveys);
    // By their names: of two operators, the one that began first may end last.
    let is_ended = |run: &&RunRow| run.finished && run.cluster == cluster && run.start_ms >= since_ms;
    let ended: BTreeMap<RunId, u64> =
        runs.iter().filter(is_ended).map(|run| (run.id.clone(), run.start_ms)).collect();
    let is_known = |run: &str| known.is_some_and(|known| known.ended.contains_key(run));
    let unread = ended.iter().filter(|(run, _)| !is_known(run)).map(|(_, start_ms)| *start_ms).min();
    let mut new = unread.map_or_else(|| Ok(Vec::new()), |start_ms| store.list_surveys(start_ms))?;
    new.retain(|one| ended.contains_key(&one.run) && !is_known(&one.run));
    if new.is_empty()
        && let Some(known) = known.filter(|known| known.log == log && known.ended == ended)
    {
        return Ok(Arc::clone(known));
    }
    let mut surveys: Vec<_> = old.iter().filter(|one| one.start_ms >= since_ms).cloned().collect();
    surveys.extend(new);
    surveys.sort_by(|a, b| (a.start_ms, &a.run).cmp(&(b.start_ms, &b.run)));
    let runs: Vec<RunCells<'_>> =
        surveys.iter().map(|one| RunCells { at_ms: one.start_ms, cells: &one.cells }).collect();
    let rules = &Rules::DEFAULT.history;
    let series = history::series(&runs, rules);
    let moved = history::moved(&runs, &series, rules);
    Ok(Arc::new(OverTime { surveys, ended, series, moved, log }))
}

/// Minutes in the last days; none where nothing is watched, or the file cannot be read.
pub(crate) fn minutes(source: &Source, cluster: &str, of: &WatchedSeries) -> Vec<Minutes> {
    let now_ms = (source.now_ms)();
    let cluster = of.cluster.as_deref().unwrap_or(cluster);
    let read = || -> Result<Vec<Minutes>, HistoryError> {
        if of.suspect.is_none() && of.downloads.is_none() {
            return Ok(Vec::new());
        }
        let history = (source.history)()?;
        let mut all = match &of.suspect {
            Some(suspect) => history.list_of(cluster, suspect)?,
            None => Vec::new(),
        };
        if let Some(downloads) = &of.downloads {
            all.extend(history.list_downloads(cluster, downloads)?.into_iter().take(DOWNLOADS_MAX));
        }
        let read = |(id, key)| Ok((key, history.read(id, now_ms.saturating_sub(MINUTES_MS), now_ms)?));
        all.into_iter().map(read).collect()
    };
    let mut minutes = read().unwrap_or_default();
    minutes.retain(|(_, points)| points.iter().any(|point| point.measured.is_some()));
    minutes
}
