//! The comparison of methods before a survey measures, where a path may be faster than the plain ones.
//!
//! What comes in: classes of paths and pairs to ask. What goes out: the methods of each class, in the
//! snapshot and in the limits. Each of its transfers is paid for like any other; none is a sample, because
//! samples are compared and these were made differently.

use std::collections::BTreeSet;

use linerate_model::inventory::HostName;
use linerate_model::load::Turn;
use linerate_model::path_methods::{MethodPair, PathClass, PathMethods, SURVEY_METHODS};
use linerate_model::plan::{Round, Test};
use linerate_model::sample::Sample;
use linerate_model::tuning::Tuning;

use super::Survey;
use crate::observe::gather;
use crate::observe::limits::Limits;
use crate::observe::measure::{self, Patience};
use crate::observe::methods::{self, Question, ROUNDS};
use linerate_fleet::clock;
use linerate_fleet::progress::ProgressPhase;
use linerate_store::StoreError;

impl Survey<'_> {
    /// What earlier runs of this cluster chose for paths of this plan, and still holds.
    pub(super) fn known_methods(
        &self,
        limits: &Limits<'_>,
        rounds: &[Round],
    ) -> Result<Vec<PathMethods>, StoreError> {
        let since_ms = self.snapshot.start_ms.saturating_sub(methods::HOLDS_MS);
        let tests = || rounds.iter().flat_map(|round| &round.tests);
        let classes: BTreeSet<PathClass> = tests().filter_map(|test| limits.fast_class(test)).collect();
        if classes.is_empty() {
            return Ok(Vec::new());
        }
        let mut known = self.store.methods_of(self.order.inventory, since_ms)?;
        known.retain(|methods| classes.contains(&methods.class));
        Ok(known)
    }

    /// Uses and records the methods of a class.
    pub(super) fn use_methods(&mut self, chosen: PathMethods) {
        if let Some(limits) = &mut self.limits {
            limits.set_methods(&chosen);
        }
        self.snapshot.methods.push(chosen);
    }

    /// Chooses the methods of each class.
    pub(super) async fn compare_methods(&mut self, questions: &[Question]) -> Result<(), StoreError> {
        let (total, expected_s) = (questions.len(), Some(methods::most_s(questions)));
        if total > 0 {
            let name = "comparing methods on fast paths";
            self.progress.begin(&ProgressPhase { name, unit: "link speeds", total, expected_s });
        }
        for (done, question) in questions.iter().enumerate() {
            // What was contended, or measured nothing, decides nothing: the next run asks again.
            if let Some(turns) = self.turns(question).await.filter(|turns| !turns.is_empty()) {
                let (class, methods) = (question.class, methods::chosen(&turns));
                self.use_methods(PathMethods { class, methods, compared_ms: clock::now_ms(), turns });
            }
            self.progress.step(done + 1, "", None);
        }
        if total > 0 {
            self.progress.end();
        }
        self.store.set_shell(&self.snapshot)
    }

    /// The turns of the first pair that is bound by an end of the plain methods; else those of the pairs that
    /// were asked. `None` where an end waited for a CPU: its host had other work.
    async fn turns(&mut self, question: &Question) -> Option<Vec<Turn>> {
        let plain = MethodPair::plain();
        let path_bps = || question.class.link_bps.map(|bps| bps as f64);
        let mut turns = Vec::new();
        for pair in &question.pairs {
            let test = question.turn(pair);
            let Some(sample) = self.one_turn(&test, &plain).await else { continue };
            if gather::starved(&sample, path_bps).is_some() {
                return None;
            }
            let is_bound = methods::is_bound(&sample, question.class);
            turns.extend(methods::turn(&sample, &plain));
            if !is_bound {
                continue;
            }
            turns = turns.pop().into_iter().collect();
            // The first turn was that of the plain methods.
            for number in 1..ROUNDS * SURVEY_METHODS.len() {
                let (round, index) = (number / SURVEY_METHODS.len(), number % SURVEY_METHODS.len());
                let index = if round % 2 == 1 { SURVEY_METHODS.len() - 1 - index } else { index };
                let pair = MethodPair::named(SURVEY_METHODS[index]);
                // A method that an end refuses has no turn.
                let Some(sample) = self.one_turn(&test, &pair).await else { continue };
                if gather::starved(&sample, path_bps).is_some() {
                    return None;
                }
                turns.extend(methods::turn(&sample, &pair));
            }
            break;
        }
        Some(turns)
    }

    /// How a transfer over the loopback of a host is made: as those over its fast paths, whose ceiling it is.
    pub(super) fn own_tuning(&self, host: &HostName) -> Tuning {
        let Some(limits) = &self.limits else { return Tuning::default() };
        let plain = MethodPair::plain();
        if self.snapshot.methods.iter().all(|chosen| chosen.methods == plain) {
            return Tuning::default();
        }
        let tests = self.snapshot.samples.iter().map(|sample| &sample.test);
        let mut own = tests.filter(|test| test.from == *host || test.to == *host);
        let methods = own.find_map(|test| limits.methods_of(test).filter(|methods| **methods != plain));
        methods.map_or_else(Tuning::default, |methods| methods.tuned(Tuning::default()))
    }

    /// One turn, if both hosts are there, it is covered and there is time.
    async fn one_turn(&mut self, test: &Test, by: &MethodPair) -> Option<Sample> {
        let has_time = self.left().is_none_or(|left| left >= test.kind.plan().expected());
        let limits = self.limits.as_ref()?;
        if !has_time || !self.alive(test) || !self.ledger.pays(limits, test) {
            return None;
        }
        let tuning = by.tuned(limits.plain_tuning(test));
        Some(measure::with(self.fleet, self.order.inventory, test, Patience::Usual, &tuning).await)
    }
}
