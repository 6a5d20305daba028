//! The load beside the requests of a phase: the load `tcp`, from the same sender to the same receiver.
//!
//! What comes in: the plan of the test. What goes out: the report of one end of that load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use linerate_model::kind::{LatencyPlan, TcpPlan};
use linerate_model::load::{LoadReport, LoadSpec, Role};

use crate::endpoint;
use crate::job::{Job, LoadControl, LoadError};
use crate::tcp::Tcp;

/// The load goes on for so long after a phase, so that the last requests are loaded too.
const LOAD_TAIL: Duration = Duration::from_millis(100);
/// The load may take so much longer than planned to drain a bloated queue.
const LOAD_SLACK: Duration = Duration::from_secs(5);

/// A `tcp` load beside the requests.
pub(super) struct Background<'scope> {
    stop: Arc<AtomicBool>,
    thread: ScopedJoinHandle<'scope, LoadReport>,
}

impl<'scope> Background<'scope> {
    /// Starts one end. `listening` receives the port of a receiver.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        job: &Job<'_>,
        plan: &LatencyPlan,
        role: Role,
        listening: impl Fn(u16) + Send + Sync + 'static,
    ) -> Result<Self, LoadError> {
        let duration_ms = plan.settle_ms + plan.phase_ms + LOAD_TAIL.as_millis() as u32;
        let spec = LoadSpec {
            kind: TcpPlan { streams: plan.load_streams, duration_ms }.into(),
            role,
            deadline_ms: duration_ms + LOAD_SLACK.as_millis() as u32,
            // As a survey makes it: a calibration would begin with pauses.
            tuning: Box::default(),
            ..job.spec.clone()
        };
        let stop = Arc::new(AtomicBool::new(false));
        let control = LoadControl { stop: stop.clone(), listening: Box::new(listening) };
        let work = move || endpoint::run(&[&Tcp], &spec, &control);
        let thread = Builder::new()
            .name("load beside".into())
            .spawn_scoped(scope, work)
            .map_err(LoadError::io("start a thread"))?;
        Ok(Self { stop, thread })
    }

    /// Its report. It ends by itself soon after the phase; with `now` it is stopped.
    pub(super) fn end(self, now: bool) -> LoadReport {
        if now {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.thread.join().unwrap_or_default()
    }
}
