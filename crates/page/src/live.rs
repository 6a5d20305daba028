//! Views that follow the database: a thread reads it again when another process has written, at most once in
//! as long as ten readings take. In: a source. Out: the newest view.

use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_store::{Store, StoreError};
use tokio::sync::watch;

use super::load::{Source, read_view};
use super::view::View;

/// How often the database is asked whether it has changed.
const EVERY: Duration = Duration::from_secs(1);
/// Share of its time that the thread reads at most: one tenth.
const REST: u32 = 10;

/// Reads the first view, then follows in a thread that ends with the last receiver.
///
/// # Errors
/// The store cannot be read.
pub fn follow(source: Arc<Source>) -> Result<watch::Receiver<Arc<View>>, StoreError> {
    let store = (source.store)()?;
    let version = store.data_version()?;
    let (to, views) = watch::channel(Arc::new(read_view(&source, &store, None)?));
    let follower = Follower { source, store, version, to };
    // Without the thread the pages are those of the start.
    let _ = std::thread::Builder::new().name("store".to_owned()).spawn(move || follower.run());
    Ok(views)
}

struct Follower {
    source: Arc<Source>,
    store: Store,
    version: i64,
    to: watch::Sender<Arc<View>>,
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
    fn newer(&mut self, last: &View) -> Result<Option<View>, StoreError> {
        // Where there was no database, there may be one now.
        if last.runs.is_empty() || last.trouble.is_some() {
            self.store = (self.source.store)()?;
            let view = read_view(&self.source, &self.store, Some(last))?;
            self.version = self.store.data_version()?;
            let is_new = !view.runs.is_empty() || last.trouble.is_some();
            return Ok(is_new.then_some(view));
        }
        let version = self.store.data_version()?;
        if version == self.version {
            return Ok(None);
        }
        self.version = version;
        read_view(&self.source, &self.store, Some(last)).map(Some)
    }
}

/// The last view, with why there is no newer one.
fn troubled(last: &View, error: &StoreError) -> View {
    View {
        version: last.version + 1,
        runs: last.runs.clone(),
        run: last.run.clone(),
        trials: last.trials.clone(),
        changes: last.changes.clone(),
        over_time: Arc::clone(&last.over_time),
        drift: last.drift.clone(),
        trouble: Some(error.to_string()),
    }
}
