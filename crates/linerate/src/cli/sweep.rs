//! `linerate try --set`: settings through several values beside an untouched control, without a finding, and
//! which value is best.

use std::collections::BTreeMap;

use linerate_model::exit::ExitCode;
use linerate_model::fact::{FactKey, FactValue};
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::HostName;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::{Trial, TrialStatus};

use super::sequence::{MadeTrials, Sequence};
use super::watcher::{self, Watcher, takes_part};
use super::{open, out};
use crate::cli::documents::{SweepTrials, Swept};
use linerate_fleet::Fleet;
use linerate_fleet::progress::Progress;
use linerate_operator::trial::drive::{HostActions, Scene};
use linerate_operator::trial::machine::{Course, KeepWhen};
use linerate_operator::trial::sweep::{SweepOptions, best, plan};
use linerate_operator::trial::{self, FleetActions};
use linerate_report as report;
use linerate_store::Store;

/// What a sweep is made with.
pub(super) struct Sweep<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) diagnosis: &'a Diagnosis,
    pub(super) options: SweepOptions,
    pub(super) course: Course,
    pub(super) transfer_ms: u32,
    pub(super) dry_run: bool,
}

impl Sweep<'_> {
    /// Makes all trials, one after the other, and keeps the best value where that is wanted.
    pub(super) fn run(&self, store: &Store, progress: &dyn Progress, json: bool) -> anyhow::Result<ExitCode> {
        let inventory = &self.snapshot.inventory;
        let takes = |name: &HostName| {
            let ends = self.options.pair.iter().flat_map(|(from, to)| [from, to]);
            self.options.on.contains(name) || ends.into_iter().any(|end| end == name)
        };
        let MadeTrials { trials, saved } = open::runtime()?.block_on(async {
            let reader = Fleet::open(inventory, |h| takes(&h.name)).await;
            let mut hands = FleetActions::new(&reader, inventory);
            let present = self.present(&mut hands).await;
            hands.bye().await;
            reader.bye().await;
            let id = linerate_operator::run_id::new_id();
            let planned = plan(inventory, self.diagnosis, &self.options, &present?, &id)?;
            if self.dry_run {
                return anyhow::Ok(MadeTrials { trials: planned, saved: Ok(()) });
            }
            let fleet = Fleet::open_with_progress(inventory, |h| takes_part(&planned[0], h), progress).await;
            fleet.gaps.iter().for_each(|g| out::note(&format!("{}: {}", g.what, g.reason)));
            let mut hands = FleetActions::new(&fleet, inventory);
            let done = self.measure(&mut hands, planned, store, progress).await;
            hands.bye().await;
            fleet.bye().await;
            Ok(done)
        })?;
        if trials.is_empty() {
            saved?;
            return Ok(code(&trials));
        }
        if json {
            let best = best(&trials).map(|trial| trial.id.as_str());
            let summary = report::verdict::of_trials(&trials, best);
            out::document(summary, Swept { sweep: SweepTrials { trials: &trials, best } })?;
        } else {
            out::print(&report::sweep::text(&trials, best(&trials), report::heat::Style::detect()))?;
        }
        saved?;
        Ok(code(&trials))
    }

    /// The values in force.
    async fn present(
        &self,
        hands: &mut FleetActions<'_>,
    ) -> anyhow::Result<BTreeMap<(HostName, FactKey), FactValue>> {
        let keys: Vec<FactKey> = self.options.set.iter().map(|set| set.key.clone()).collect();
        let mut present = BTreeMap::new();
        for host in &self.options.on {
            let read = hands.read(host, &keys).await.map_err(|e| anyhow::anyhow!(e.error))?;
            present.extend(read.into_iter().map(|(key, value)| ((host.clone(), key), value)));
        }
        Ok(present)
    }

    async fn measure(
        &self,
        hands: &mut FleetActions<'_>,
        planned: Vec<Trial>,
        store: &Store,
        progress: &dyn Progress,
    ) -> MadeTrials {
        let scene = Scene { snapshot: self.snapshot, diagnosis: self.diagnosis };
        let course = Course { keep: KeepWhen::Never, ..self.course };
        let sequence = Sequence { scene, course, transfer_ms: self.transfer_ms, store, progress };
        let mut done = sequence.each(hands, planned).await;
        let chosen = best(&done.trials).filter(|_| self.course.keep == KeepWhen::Better).cloned();
        if let Some(chosen) = chosen {
            let mut watch = Watcher::new(store, progress);
            let mut watcher = |trial: &Trial, step: &str, left: usize| watch.step(trial, step, left);
            let kept = trial::keep(hands, scene, chosen, &mut watcher, open::interrupted()).await;
            let saved = watcher::save(store, &kept);
            done.saved = done.saved.and(saved);
            if let Some(measured) = done.trials.iter_mut().find(|trial| trial.id == kept.id) {
                *measured = kept;
            }
        }
        done
    }
}

/// The code that a sweep deserves.
fn code(trials: &[Trial]) -> ExitCode {
    if trials.iter().any(|t| t.status == TrialStatus::UndoFailed) {
        ExitCode::RollbackFailed
    } else if best(trials).is_some() {
        ExitCode::Ok
    } else if trials.iter().all(|t| t.status == TrialStatus::Undone) {
        ExitCode::RolledBack
    } else {
        ExitCode::Findings
    }
}
