//! Views that follow the databases: a thread reads them again when another process has written, at most once
//! in as long as ten readings take. In: a source. Out: the newest view.

use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_history::History;
use linerate_store::{Store, StoreError};
use tokio::sync::watch;

use super::load::{Source, read_view};
use super::view::SiteView;

/// How often the database is asked whether it has changed.
const EVERY: Duration = Duration::from_secs(1);
/// Share of its time that the thread reads at most: one tenth.
const REST: u32 = 10;

/// Reads the first view, then follows in a thread that ends with the last receiver.
///
/// # Errors
/// The store cannot be read.
pub fn follow(source: Arc<Source>) -> Result<watch::Receiver<Arc<SiteView>>, StoreError> {
    let store = (source.store)()?;
    let version = store.data_version()?;
    let mut history = FollowedHistory::default();
    history.has_changed(&source);
    let (to, views) = watch::channel(Arc::new(read_view(&source, &store, None)?));
    let follower = Follower { source, store, version, history, to };
    // Without the thread the pages are those of the start.
    let _ = std::thread::Builder::new().name("store".to_owned()).spawn(move || follower.run());
    Ok(views)
}

struct Follower {
    source: Arc<Source>,
    store: Store,
    version: i64,
    history: FollowedHistory,
    to: watch::Sender<Arc<SiteView>>,
}

impl Follower {
    fn run(mut self) {
        let mut rest = EVERY;
        while !self.to.is_closed() {
            std::thread::park_timeout(rest);
            let started = Instant::now();
            let last = Arc::clone(&self.to.borrow());
            match self.newer(&last) {
                Ok(Some(view)) => {
                    self.to.send_replace(Arc::new(view));
                }
                Err(error) if last.trouble.is_none() => {
                    self.to.send_replace(Arc::new(troubled(&last, &error)));
                }
                // Nothing new, or the same trouble.
                Ok(None) | Err(_) => {}
            }
            rest = EVERY.max(started.elapsed() * REST);
        }
    }

    /// Another view, where something was written.
    fn newer(&mut self, last: &SiteView) -> Result<Option<SiteView>, StoreError> {
        // Where there was no database, there may be one now.
        if last.runs.is_empty() || last.trouble.is_some() {
            self.store = (self.source.store)()?;
            let view = read_view(&self.source, &self.store, Some(last))?;
            self.version = self.store.data_version()?;
            return Ok((!is_same(&view, last)).then_some(view));
        }
        let version = self.store.data_version()?;
        if !self.history.has_changed(&self.source) && version == self.version {
            return Ok(None);
        }
        self.version = version;
        read_view(&self.source, &self.store, Some(last)).map(Some)
    }
}

/// The file of minutes, alarms and drops with its version; none as long as nothing has written it.
#[derive(Default)]
struct FollowedHistory(Option<(History, i64)>);

impl FollowedHistory {
    /// Whether it was written since this was asked last. One that cannot be read has not changed.
    fn has_changed(&mut self, source: &Source) -> bool {
        if let Some((history, known)) = &mut self.0 {
            // A connection that is lost is opened again.
            if let Ok(version) = history.data_version() {
                let version = version.unwrap_or(*known);
                return std::mem::replace(known, version) != version;
            }
        }
        self.0 = opened(source);
        self.0.is_some()
    }
}

/// The file of the history with its version, where there is one.
fn opened(source: &Source) -> Option<(History, i64)> {
    let history = (source.history)().ok()?;
    let version = history.data_version().ok()??;
    Some((history, version))
}

/// Whether a view that was read again shows the same.
fn is_same(view: &SiteView, last: &SiteView) -> bool {
    view.runs == last.runs
        && view.trials == last.trials
        && view.changes == last.changes
        && (&view.alarms, &view.drops) == (&last.alarms, &last.drops)
        && view.is_watched == last.is_watched
        && view.trouble == last.trouble
}

/// The last view, with why there is no newer one.
fn troubled(last: &SiteView, error: &StoreError) -> SiteView {
    SiteView {
        version: last.version + 1,
        runs: last.runs.clone(),
        run: last.run.clone(),
        trials: last.trials.clone(),
        changes: last.changes.clone(),
        over_time: Arc::clone(&last.over_time),
        drift: last.drift.clone(),
        alarms: last.alarms.clone(),
        drops: Arc::clone(&last.drops),
        is_watched: last.is_watched,
        trouble: Some(error.to_string()),
    }
}
