//! What has to be run again: tests that something contended, and that at once for those of the second stage.
//!
//! What comes in: the samples so far. What goes out: rounds of the same tests. Never more than a few
//! repetitions.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::inventory::{HostName, Layer};
use linerate_model::kind::TestKind;
use linerate_model::plan::{Round, Test};
use linerate_model::sample::Outcome;

use super::mark::{mark, mark_cut};
use super::{Survey, round_s};
pub(super) use crate::observe::limits::REPEATS_MAX;
use crate::observe::{disturb, nic, pack};
use linerate_store::StoreError;

/// From this repetition on a load that waited for a CPU counts: a host that is always so busy is what there
/// is to see.
const STRICT_MAX: usize = 2;

impl Survey<'_> {
    /// Repeats what was worthless: contended, or the two ends disagreed.
    pub(super) async fn again(&mut self) -> Result<(), StoreError> {
        let mut from = 0;
        for repetition in 1..=REPEATS_MAX {
            self.mark_late()?;
            let until = self.snapshot.samples.len();
            let worthless: Vec<Test> = self.snapshot.samples[from..until]
                .iter()
                .filter(|s| matches!(s.outcome, Outcome::Invalid { .. }))
                .map(|s| s.test.clone())
                .collect();
            from = until;
            if worthless.is_empty() {
                return Ok(());
            }
            let rounds = self.packed(worthless);
            let expected_s = rounds.iter().map(round_s).sum();
            self.strict = repetition < STRICT_MAX;
            self.rounds("repeating what was contended", &rounds, expected_s).await?;
            self.strict = true;
        }
        self.mark_late()
    }

    /// A disturbance may be written after the round that it spoiled.
    fn mark_late(&mut self) -> Result<(), StoreError> {
        let spans = disturb::read(self.order.inventory.disturbances.as_deref());
        let (facts, inventory) = (&self.snapshot.facts, self.order.inventory);
        let path_bps = |test: &Test| nic::path_bps(facts, inventory, &test.from, &test.to, test.layer);
        for (sample, ended_ms) in self.snapshot.samples.iter_mut().zip(&self.ended_ms) {
            if mark(sample, *ended_ms, &spans, path_bps) {
                self.store.replace_sample(&self.snapshot.id, sample)?;
            }
        }
        Ok(())
    }

    /// What a host left unanswered before its session was found to be lost is worth repeating once it is
    /// there again.
    pub(super) fn mark_unanswered(&mut self, back: &BTreeSet<HostName>) -> Result<(), StoreError> {
        for sample in self.snapshot.samples.iter_mut().filter(|_| !back.is_empty()) {
            if mark_cut(sample, back) {
                self.store.replace_sample(&self.snapshot.id, sample)?;
            }
        }
        Ok(())
    }

    /// Rounds for tests of any kind: only tests of the same layer and kind run together.
    pub(super) fn packed(&self, tests: Vec<Test>) -> Vec<Round> {
        let mut kinds: BTreeMap<(Layer, &'static str, u16, bool), Vec<Test>> = BTreeMap::new();
        let mut id = self.snapshot.samples.iter().map(|s| s.test.id).max().unwrap_or(0);
        for mut test in tests {
            id += 1;
            test.id = id;
            let inner = self.order.inventory.same_machine(&test.from, &test.to);
            kinds.entry((test.layer, test.kind.name(), test.repeat, inner)).or_default().push(test);
        }
        let inventory = self.order.inventory;
        let hosts: Vec<HostName> = inventory.hosts.iter().map(|h| h.name.clone()).collect();
        let numbers: BTreeMap<&str, usize> =
            hosts.iter().enumerate().map(|(number, name)| (name.as_str(), number)).collect();
        let index = |name: &str| numbers.get(name).copied().unwrap_or(0);
        let mut rounds = Vec::new();
        for ((layer, ..), tests) in kinds {
            let facts = &self.snapshot.facts;
            let uplinks =
                pack::Uplinks::new(inventory, &hosts, |h, l| nic::link_bps(facts, inventory, h, l), layer);
            let sharing = match tests.first().map(|test| &test.kind) {
                Some(TestKind::Tcp(_)) => pack::Sharing::Bulk,
                Some(TestKind::Udp(_)) => pack::Sharing::Fifth,
                _ => pack::Sharing::Nothing,
            };
            let mut by_pair: BTreeMap<(usize, usize), Vec<Test>> = BTreeMap::new();
            for test in tests {
                by_pair.entry((index(&test.from), index(&test.to))).or_default().push(test);
            }
            let pairs: Vec<(usize, usize)> = by_pair.keys().copied().collect();
            for round in pack::pack(&pairs, &uplinks, sharing, self.order.seed) {
                let mut tests: Vec<Test> = round.iter().filter_map(|p| by_pair.get_mut(p)?.pop()).collect();
                let serial = tests.len() == 1;
                for test in &mut tests {
                    test.serial = serial;
                }
                rounds.push(Round { tests });
            }
            // Several tests of one pair and kind (repeats of many-stream tests): one by one.
            let rest = by_pair.into_values().flatten();
            rounds.extend(rest.map(|test| Round { tests: vec![Test { serial: true, ..test }] }));
        }
        rounds
    }

    pub(super) async fn again_of_second_stage(&mut self) -> Result<(), StoreError> {
        self.mark_late()?;
        let samples = &self.snapshot.samples;
        let valid = |t: &Test| {
            samples.iter().any(|s| {
                s.test.second_stage
                    && (&s.test.from, &s.test.to, s.test.layer, &s.test.kind)
                        == (&t.from, &t.to, t.layer, &t.kind)
                    && !matches!(s.outcome, Outcome::Invalid { .. })
            })
        };
        let worthless: Vec<Test> = samples
            .iter()
            .filter(|s| {
                s.test.second_stage && matches!(s.outcome, Outcome::Invalid { .. }) && !valid(&s.test)
            })
            .map(|s| s.test.clone())
            .collect();
        let next_id = samples.iter().map(|s| s.test.id).max().unwrap_or(0) + 1;
        let rounds: Vec<Round> = worthless
            .into_iter()
            .zip(next_id..)
            .map(|(test, id)| Round { tests: vec![Test { id, ..test }] })
            .collect();
        if rounds.is_empty() {
            return Ok(());
        }
        let expected_s = rounds.iter().map(round_s).sum();
        self.strict = false;
        let repeated = self.rounds("repeating what was contended", &rounds, expected_s).await;
        self.strict = true;
        repeated
    }
}
