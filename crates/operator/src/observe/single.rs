//! One test that somebody asked for, stored as a run of its own.
//!
//! What comes in: open sessions and tests. What goes out: a snapshot with their samples and a diagnosis that
//! holds one sentence and the worst of what they show; both are in the store, but for a call that
//! measured nothing: it has no name and is not stored. It reads no facts and judges no
//! setting: a survey does.

use std::time::Duration;

use linerate_model::finding::Diagnosis;
use linerate_model::inventory::Inventory;
use linerate_model::plan::Test;
use linerate_model::sample::{Outcome, Sample};
use linerate_model::snapshot::Snapshot;
use linerate_model::tuning::{CALIBRATION_MS_MAX, Tuning};
use tokio::time::Instant;

use super::begin::{begin, end};
use super::context::{Context, with_progress};
use super::measure;
use linerate_fleet::Fleet;
use linerate_fleet::progress::ProgressPhase;
use linerate_store::StoreError;

/// Time that tests are expected to take, all together.
pub fn expected(tests: &[Test], tuning: &Tuning) -> Duration {
    // Most calibrations end well before they have to.
    let calibration = Duration::from_millis(u64::from(CALIBRATION_MS_MAX) / 2);
    let calibration = if tuning.calibrate { calibration } else { Duration::ZERO };
    tests.iter().map(|test| test.kind.plan().expected() + calibration).sum()
}

/// Runs the tests one after the other; `headline` makes the sentence of the diagnosis.
pub async fn run(
    fleet: &Fleet,
    inventory: &Inventory,
    tests: &[Test],
    headline: fn(&[Sample]) -> String,
    context: &mut Context<'_>,
) -> Result<(Snapshot, Diagnosis), StoreError> {
    let mut snapshot = begin(fleet, inventory, context.store)?;
    let until = Instant::now() + expected(tests, context.tuning);
    let expected_s = Some(expected(tests, context.tuning).as_secs_f64());
    context.progress.begin(&ProgressPhase {
        name: "measuring",
        unit: "tests",
        total: tests.len(),
        expected_s,
    });
    for (done, test) in tests.iter().enumerate() {
        let running = measure::measure_tuned(fleet, inventory, test, context.tuning);
        let sample = with_progress(running, until, |left_s| {
            context.progress.step(done, &format!("{} to {}", test.from, test.to), Some(left_s));
        })
        .await;
        context.store.add_samples(&snapshot.id, std::slice::from_ref(&sample))?;
        snapshot.samples.push(sample);
        context.progress.step(done + 1, "", None);
    }
    context.progress.end();
    context.store.set_measurement(&snapshot.id)?;
    let mut diagnosis = Diagnosis {
        schema: linerate_model::SCHEMA,
        run: snapshot.id.clone(),
        headline: headline(&snapshot.samples),
        blind: snapshot.gaps.clone(),
        ..Diagnosis::default()
    };
    let has_failed = snapshot.samples.iter().all(|sample| matches!(sample.outcome, Outcome::Gap { .. }));
    end(context.store, &mut snapshot, &mut diagnosis, has_failed)?;
    Ok((snapshot, diagnosis))
}
