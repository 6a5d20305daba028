//! What tests are run with, and how progress is reported while one runs.

use std::time::Duration;

use linerate_model::tuning::Tuning;
use tokio::time::{Instant, MissedTickBehavior};

use linerate_fleet::progress::Progress;
use linerate_store::Store;

/// How often progress is told.
const TICK: Duration = Duration::from_millis(500);

/// What tests are run with.
pub struct Context<'a> {
    /// Keeps the run.
    pub store: &'a mut Store,
    /// Receives the progress while a test runs.
    pub progress: &'a dyn Progress,
    /// Options of bulk transfers.
    pub tuning: &'a Tuning,
}

/// Waits for a test and reports meanwhile how many seconds are left.
pub(super) async fn with_progress<T>(
    running: impl Future<Output = T>,
    until: Instant,
    tell: impl Fn(f64),
) -> T {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    tokio::pin!(running);
    loop {
        tokio::select! {
            done = &mut running => return done,
            _ = tick.tick() => tell(until.saturating_duration_since(Instant::now()).as_secs_f64()),
        }
    }
}
