//! One test that somebody asked for, stored as a run of its own.
//!
//! What comes in: open sessions and tests. What goes out: a snapshot with their samples and a diagnosis that holds one
//! sentence and the worst of what they show; both are in the store. It reads no facts and judges no setting: a survey does.

use std::time::Duration;

use linerate_model::finding::Diagnosis;
use linerate_model::inventory::Inventory;
use linerate_model::load::TestKind;
use linerate_model::plan::Test;
use linerate_model::sample::Sample;
use linerate_model::snapshot::Snapshot;
use linerate_model::tuning::{CALIBRATION_MS_MAX, Tuning};
use tokio::time::{Instant, MissedTickBehavior};

use super::begin::begin;
use super::measure;
use crate::fleet::Fleet;
use crate::progress::{Phase, Progress};
use crate::store::{Store, StoreError};

/// How often progress is told.
const TICK: Duration = Duration::from_millis(500);

/// What tests are run with.
pub struct Way<'a> {
    /// Keeps the run.
    pub store: &'a mut Store,
    /// Told while a test runs.
    pub progress: &'a dyn Progress,
    /// Options of bulk transfers.
    pub tuning: &'a Tuning,
}

/// Time that tests are expected to take, all together.
pub fn expected(tests: &[Test], tuning: &Tuning) -> Duration {
    tests.iter().map(|test| expected_of(test, tuning)).sum()
}

fn expected_of(test: &Test, tuning: &Tuning) -> Duration {
    let ms = match &test.kind {
        TestKind::Tcp { duration_ms, .. } => {
            // Most calibrations end well before they have to.
            u64::from(*duration_ms) + if tuning.calibrate { u64::from(CALIBRATION_MS_MAX) / 2 } else { 0 }
        }
        TestKind::Latency(plan) => {
            let settle_ms = |loaded| if loaded { u64::from(plan.settle_ms) } else { 0 };
            plan.phases.iter().map(|p| u64::from(plan.phase_ms) + settle_ms(p.loaded)).sum()
        }
        // Nobody knows before: a second for each download, and sizes that arrive take no time.
        TestKind::Http(plan) => 1000 * u64::from(plan.repeat) * plan.via.len().max(1) as u64,
        TestKind::PathMtu(_) => 1000,
        TestKind::Disk(plan) => super::bench::expected(plan).as_millis() as u64,
        kind => measure::transfer_time(kind).as_millis() as u64,
    };
    Duration::from_millis(ms)
}

/// Runs the tests one after the other; `headline` makes the sentence of the diagnosis. Those of kind `http` and `disk` have one end.
pub async fn run(
    fleet: &Fleet,
    inventory: &Inventory,
    tests: &[Test],
    headline: fn(&[Sample]) -> String,
    way: &mut Way<'_>,
) -> Result<(Snapshot, Diagnosis), StoreError> {
    let mut snapshot = begin(fleet, inventory, way.store)?;
    let until = Instant::now() + expected(tests, way.tuning);
    let expected_s = Some(expected(tests, way.tuning).as_secs_f64());
    way.progress.begin(&Phase { name: "measuring", unit: "tests", total: tests.len(), expected_s });
    for (done, test) in tests.iter().enumerate() {
        let running = one(fleet, inventory, test, way.tuning);
        let sample = told(running, until, |left_s| {
            way.progress.step(done, &format!("{} to {}", test.from, test.to), Some(left_s));
        })
        .await;
        way.store.add_samples(&snapshot.id, std::slice::from_ref(&sample))?;
        snapshot.samples.push(sample);
        way.progress.step(done + 1, "", None);
    }
    way.progress.end();
    let diagnosis = Diagnosis {
        schema: linerate_model::SCHEMA,
        run: snapshot.id.clone(),
        headline: headline(&snapshot.samples),
        cells: Vec::new(),
        advice: Vec::new(),
        findings: Vec::new(),
        refused: Vec::new(),
        notes: Vec::new(),
        blind: snapshot.gaps.clone(),
    };
    way.store.finish(&snapshot, &diagnosis)?;
    Ok((snapshot, diagnosis))
}

async fn one(fleet: &Fleet, inventory: &Inventory, test: &Test, tuning: &Tuning) -> Sample {
    match test.kind {
        TestKind::Http(_) | TestKind::Disk(_) => measure::alone(fleet, inventory, test).await,
        _ => measure::measure_tuned(fleet, inventory, test, tuning).await,
    }
}

/// Waits for a test and says in the meantime how many seconds are left.
pub(super) async fn told<T>(running: impl Future<Output = T>, until: Instant, tell: impl Fn(f64)) -> T {
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
