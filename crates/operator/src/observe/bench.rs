//! Loads on disks of many hosts at the same time, stored as a run.
//!
//! What comes in: open sessions and a plan. What goes out: a snapshot with the facts of all block devices and
//! one sample per host, and a diagnosis of one sentence. A host that does not answer is a gap.

use std::pin::Pin;

use linerate_model::fact::Gap;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::{Inventory, Layer};
use linerate_model::kind::{DiskPlan, TestKind, TestPlan};
use linerate_model::plan::Test;
use linerate_model::sample::Outcome;
use linerate_model::sample::Sample;
use linerate_model::snapshot::Snapshot;
use tokio::time::Instant;

use super::begin::{begin, end};
use super::context::{Context, with_progress};
use super::run::read_facts;
use super::{join, measure};
use linerate_fleet::Fleet;
use linerate_store::StoreError;

type Running<'a> = Pin<Box<dyn Future<Output = Sample> + 'a>>;

/// Runs a plan on every host that answers; `headline` makes the sentence of the diagnosis.
///
/// # Errors
/// The store cannot be written.
pub async fn run(
    fleet: &Fleet,
    inventory: &Inventory,
    plan: &DiskPlan,
    headline: fn(&Snapshot) -> String,
    context: &mut Context<'_>,
) -> Result<(Snapshot, Diagnosis), StoreError> {
    let mut snapshot = begin(fleet, inventory, context.store)?;
    for host in fleet.hosts() {
        let wanted = ["disk.".to_owned(), "mount.".to_owned()];
        match read_facts(fleet, inventory, &host, &wanted).await {
            Ok(mut facts) => {
                facts.counters.clear();
                snapshot.facts.insert(host, facts);
            }
            Err(reason) => {
                let gap = Gap { what: format!("facts of {host}").into(), reason };
                context.store.add_gap(&snapshot.id, &gap)?;
                snapshot.gaps.push(gap);
            }
        }
    }
    context.store.add_facts(&snapshot.id, &snapshot.facts)?;
    let tests: Vec<Test> =
        fleet.hosts().into_iter().zip(1..).map(|(host, id)| test(id, host, plan)).collect();
    let (until, total) = (Instant::now() + plan.expected(), tests.len());
    let expected_s = Some(plan.expected().as_secs_f64());
    context.progress.begin(&linerate_fleet::progress::ProgressPhase {
        name: "measuring",
        unit: "hosts",
        total,
        expected_s,
    });
    let running = tests.iter().map(|t| Box::pin(measure::alone(fleet, inventory, t)) as Running<'_>);
    let all = with_progress(join::all(running.collect()), until, |left_s| {
        context.progress.step(0, "disks", Some(left_s));
    });
    snapshot.samples = all.await;
    context.progress.step(total, "", None);
    context.progress.end();
    context.store.add_samples(&snapshot.id, &snapshot.samples)?;
    context.store.set_measurement(&snapshot.id)?;
    let mut diagnosis = Diagnosis {
        schema: linerate_model::SCHEMA,
        run: snapshot.id.clone(),
        headline: headline(&snapshot),
        blind: snapshot.gaps.clone(),
        ..Diagnosis::default()
    };
    // A load on disks that ended no request shows nothing.
    let is_measured =
        |sample: &Sample| matches!(sample.outcome, Outcome::Measured(_) | Outcome::Invalid { .. });
    let has_failed = !snapshot.samples.iter().any(is_measured);
    end(context.store, &mut snapshot, &mut diagnosis, has_failed)?;
    Ok((snapshot, diagnosis))
}

fn test(id: u32, host: String, plan: &DiskPlan) -> Test {
    Test { id, ..Test::new(host.clone(), host, Layer::Underlay, TestKind::from(plan.clone())) }
}
