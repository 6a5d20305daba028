//! When each finding of a watch began and ended, over the whole watch, in bounded memory.
//!
//! In: one interval of a host after the other. Out: what began and what ended with it, and at any time all
//! findings of the watch. Only the last intervals are kept (`window` of [`crate::rules::DiskRules`]); figures
//! are judged over those. A finding is kept once per device and kind, with the time of all its episodes, at
//! most `history_max` of them. Pure.

use std::collections::VecDeque;

use linerate_model::disk::{DiskEpisodes, DiskFinding, DiskInterval, DiskTrouble};

use super::RULES;
use super::findings::findings_of;
use super::tree::Layout;

/// What changed with an interval.
#[derive(Debug, Clone, PartialEq)]
pub enum IntervalChange {
    /// A finding holds from now on.
    Began(DiskEpisodes),
    /// It does not hold any more.
    Ended(DiskEpisodes),
}

/// What is known of a host since its watch began.
#[derive(Debug, Default)]
pub struct DriveHistory {
    window: VecDeque<DiskInterval>,
    kept: Vec<Kept>,
    overflowed: bool,
}

#[derive(Debug)]
struct Kept {
    all: DiskEpisodes,
    /// Intervals in a row that did not show it.
    unseen: usize,
}

impl Kept {
    fn is(&self, finding: &DiskFinding) -> bool {
        self.all.finding.device == finding.device && self.all.finding.what == finding.what
    }

    fn shown(&mut self, interval: &DiskInterval) {
        self.all.last_ms = interval.at_ms;
        self.all.seconds += interval.seconds;
        self.unseen = 0;
    }
}

/// Whether a finding follows from what devices are, not from what they did.
fn is_state(what: DiskTrouble) -> bool {
    match what {
        DiskTrouble::Degraded | DiskTrouble::Rebuilding => true,
        DiskTrouble::SlowAmongEquals | DiskTrouble::Saturated | DiskTrouble::Uneven | DiskTrouble::Merged => {
            false
        }
    }
}

fn has(findings: &[DiskFinding], wanted: &DiskFinding) -> bool {
    findings.iter().any(|f| f.device == wanted.device && f.what == wanted.what)
}

/// What a single interval shows: the same as if it had lasted twice as long.
fn shown_by(layout: &Layout, interval: &DiskInterval) -> Vec<DiskFinding> {
    findings_of(layout, &[interval, interval])
}

fn begin_ms(interval: &DiskInterval) -> u64 {
    interval.at_ms.saturating_sub((interval.seconds * 1e3) as u64)
}

impl DriveHistory {
    /// Takes the next interval. `turned` says that what came before it is no measure of it: other legs are
    /// being filled now.
    pub fn push(&mut self, layout: &Layout, interval: &DiskInterval, turned: bool) -> Vec<IntervalChange> {
        if turned {
            self.window.clear();
        }
        if self.window.len() == RULES.window {
            self.window.pop_front();
        }
        self.window.push_back(interval.clone());
        let shown = shown_by(layout, interval);
        let judged = if self.window.len() < RULES.judged_min {
            shown.iter().filter(|finding| is_state(finding.what)).cloned().collect()
        } else {
            self.judged(layout)
        };
        let mut changes = Vec::new();
        for kept in self.kept.iter_mut().filter(|kept| kept.all.open) {
            let finding = kept.all.finding.clone();
            if has(&shown, &finding) {
                kept.shown(interval);
                continue;
            }
            kept.unseen += 1;
            let over = is_state(finding.what) || kept.unseen >= RULES.ended_after;
            if over && !has(&judged, &finding) {
                kept.all.open = false;
                changes.push(IntervalChange::Ended(kept.all.clone()));
            }
        }
        changes.extend(self.began(layout, judged));
        changes
    }

    /// What began and is not known yet because the watch, or what is left to judge, is short. For the end of
    /// a watch.
    pub fn finish(&mut self, layout: &Layout) -> Vec<IntervalChange> {
        let judged = if self.window.len() < RULES.judged_min { self.judged(layout) } else { Vec::new() };
        self.began(layout, judged)
    }

    /// The host is gone: what comes later is judged by itself. What was found stays open until it is seen to
    /// have ended.
    pub fn pause(&mut self, layout: &Layout) -> Vec<IntervalChange> {
        let changes = self.finish(layout);
        self.window.clear();
        changes
    }

    /// The last interval; `None` before the first, and after a pause.
    #[must_use]
    pub fn last(&self) -> Option<&DiskInterval> {
        self.window.back()
    }

    /// All findings of the watch, the worst kind first.
    #[must_use]
    pub fn all(&self) -> Vec<DiskEpisodes> {
        let mut all: Vec<DiskEpisodes> = self.kept.iter().map(|kept| kept.all.clone()).collect();
        all.sort_by_key(|episodes| (episodes.finding.what, episodes.since_ms));
        all
    }

    /// Whether there were more findings than are kept.
    #[must_use]
    pub fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    fn judged(&self, layout: &Layout) -> Vec<DiskFinding> {
        findings_of(layout, &self.window.iter().collect::<Vec<_>>())
    }

    /// Takes over the findings that hold now; those that did not hold before are the changes.
    fn began(&mut self, layout: &Layout, judged: Vec<DiskFinding>) -> Vec<IntervalChange> {
        let mut changes = Vec::new();
        for finding in judged {
            let known = self.kept.iter().position(|kept| kept.is(&finding));
            if let Some(kept) = known.map(|at| &mut self.kept[at]).filter(|kept| kept.all.open) {
                kept.all.finding = finding;
                continue;
            }
            let Some(new) = self.episode(layout, &finding) else { continue };
            let all = if let Some(at) = known {
                let kept = &mut self.kept[at];
                kept.unseen = 0;
                let (since_ms, before) = (kept.all.since_ms, kept.all.seconds);
                let times = kept.all.times.saturating_add(1);
                kept.all = DiskEpisodes { since_ms, times, seconds: before + new.seconds, ..new.clone() };
                kept.all.clone()
            } else if self.kept.len() < RULES.history_max {
                self.kept.push(Kept { all: new.clone(), unseen: 0 });
                new
            } else {
                self.overflowed = true;
                continue;
            };
            changes.push(IntervalChange::Began(all));
        }
        changes
    }

    /// The episode that a finding begins with, by the intervals that show it.
    fn episode(&self, layout: &Layout, finding: &DiskFinding) -> Option<DiskEpisodes> {
        let last = self.window.back()?;
        // What a device is was looked at with the last interval alone.
        let shows = |interval: &&DiskInterval| has(&shown_by(layout, interval), finding);
        let mut intervals: Vec<&DiskInterval> =
            if is_state(finding.what) { vec![last] } else { self.window.iter().filter(shows).collect() };
        if intervals.is_empty() {
            intervals = self.window.iter().collect();
        }
        Some(DiskEpisodes {
            finding: finding.clone(),
            since_ms: begin_ms(intervals.first()?),
            last_ms: intervals.last()?.at_ms,
            open: true,
            times: 1,
            seconds: intervals.iter().map(|i| i.seconds).sum(),
        })
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
