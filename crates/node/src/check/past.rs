//! What a check remembers between calls, in one file for all of them: standings, counters, best values, how
//! far logs were read, children that hang, and the last report.
//!
//! In: the text of the file, the boot and the clocks of now. Out: what of it still holds, and notes about
//! what does not. A file that is damaged or of another version begins anew with a note; times of another
//! boot are dropped, so that a reboot makes no growth out of nothing.

use std::collections::BTreeMap;

use linerate_model::check::CheckReport;
use serde::{Deserialize, Serialize};

use super::growth::Series;
use super::policy::Standing;
use super::rule::Moment;

/// Version of the file.
const VERSION: u32 = 1;
/// Most names of one kind that a check remembers: 256 drives with six counters each, and some.
const SUBJECTS_MAX: usize = 4096;
const DAY_S: i64 = 86_400;

/// A best value with the last day on which it was reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Best {
    value: f64,
    seen_unix_s: i64,
}

/// What one check remembers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Past {
    #[serde(default)]
    pub(super) standings: BTreeMap<String, Standing>,
    #[serde(default)]
    pub(super) series: BTreeMap<String, Series>,
    #[serde(default)]
    bests: BTreeMap<String, Best>,
    /// How far logs were read, by item.
    #[serde(default)]
    pub(super) cursors: BTreeMap<String, String>,
    /// Events of logs so far, by name.
    #[serde(default)]
    tallies: BTreeMap<String, f64>,
}

impl Past {
    /// The history of a counter.
    pub(super) fn series(&mut self, name: &str) -> &mut Series {
        self.series.entry(name.to_owned()).or_default()
    }

    /// All events of this name so far, with the new ones.
    pub(super) fn tally(&mut self, name: &str, more: f64) -> f64 {
        let sum = self.tallies.entry(name.to_owned()).or_default();
        *sum += more.max(0.0);
        *sum
    }

    /// The best value of the last days, this one included; it outlives a reboot, because links that come up
    /// slow do so at boot.
    pub(super) fn best(&mut self, name: &str, value: f64, now: Moment, days: f64) -> f64 {
        let fresh = Best { value, seen_unix_s: now.unix_s };
        let best = self.bests.entry(name.to_owned()).or_insert(fresh);
        let age_days = (now.unix_s - best.seen_unix_s) as f64 / DAY_S as f64;
        if value >= best.value || age_days > days {
            *best = fresh;
        }
        best.value
    }

    fn after_reboot(&mut self) {
        self.standings.values_mut().for_each(Standing::after_reboot);
        self.series.values_mut().for_each(Series::after_reboot);
        self.cursors.clear();
        self.tallies.clear();
    }

    fn is_sound(&self) -> bool {
        self.series.values().all(Series::is_sound)
            && self.bests.values().all(|best| best.value.is_finite())
            && self.tallies.values().all(|sum| sum.is_finite())
    }

    /// Drops what is over, and what is beyond any host.
    fn tidy(&mut self) {
        self.standings.retain(|_, standing| !standing.is_blank());
        let sizes = [self.standings.len(), self.series.len(), self.bests.len(), self.cursors.len()];
        if sizes.into_iter().any(|size| size > SUBJECTS_MAX) {
            *self = Self::default();
        }
    }
}

/// A child that was left, because it does not end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stuck {
    pub(super) check: String,
    pub(super) item: String,
    pub(super) pid: u32,
    /// When the process began, ticks since boot: a number may be given again.
    pub(super) began: u64,
    pub(super) since_unix_s: i64,
}

/// All that is remembered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Memory {
    version: u32,
    boot_id: String,
    up_s: u64,
    #[serde(default)]
    checks: BTreeMap<String, Past>,
    #[serde(default)]
    pub(super) stuck: Vec<Stuck>,
    #[serde(default)]
    pub(super) last: Option<CheckReport>,
}

impl Memory {
    /// What of a file holds now; notes name what does not.
    pub(super) fn restore(text: Option<&str>, boot_id: &str, now: Moment) -> (Self, Vec<String>) {
        let blank = Self { version: VERSION, boot_id: boot_id.to_owned(), up_s: now.up_s, ..Self::default() };
        let Some(text) = text else { return (blank, Vec::new()) };
        let anew = |why: &str| (blank.clone(), vec![format!("state file {why}: history begins anew")]);
        let Ok(mut memory) = serde_json::from_str::<Self>(text) else { return anew("is damaged") };
        if memory.version != VERSION {
            return anew("is of another version");
        }
        if !memory.checks.values().all(Past::is_sound) {
            return anew("has values that cannot be");
        }
        let mut notes = Vec::new();
        if memory.boot_id != boot_id {
            memory.checks.values_mut().for_each(Past::after_reboot);
            memory.stuck.clear();
        } else if memory.up_s > now.up_s {
            // The same boot, and its clock went back: a restored checkpoint, or a file of another host.
            memory.checks.values_mut().for_each(Past::after_reboot);
            memory.stuck.clear();
            notes.push("the clock since boot went back: counters begin anew".to_owned());
        }
        boot_id.clone_into(&mut memory.boot_id);
        memory.up_s = now.up_s;
        (memory, notes)
    }

    /// The past of one check.
    pub(super) fn of(&mut self, check: &str) -> &mut Past {
        self.checks.entry(check.to_owned()).or_default()
    }

    /// How far a log was read.
    pub(super) fn cursor(&self, check: &str, item: &str) -> Option<String> {
        self.checks.get(check)?.cursors.get(item).cloned()
    }

    /// The text of the file.
    pub(super) fn text(&mut self) -> serde_json::Result<String> {
        self.checks.values_mut().for_each(Past::tidy);
        serde_json::to_string(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::growth::GrowthRule;
    use super::super::policy;
    use super::super::rule::{TWICE, Verdict};
    use super::*;

    const RULE: GrowthRule = GrowthRule { window_s: 1800, events_min: 10.0, share_min: 1e-5 };

    fn at(up_s: u64) -> Moment {
        Moment { up_s, unix_s: 1_000_000 + up_s as i64 }
    }

    #[test]
    fn damaged_and_impossible_files_begin_anew_with_a_note() {
        let good = Memory::restore(None, "boot", at(5)).0.text().unwrap();
        assert_eq!(Memory::restore(Some(&good), "boot", at(9)).1, Vec::<String>::new());
        let newer = good.replacen("\"version\":1", "\"version\":2", 1);
        let odd =
            good.replacen("\"checks\":{}", r#""checks":{"x":{"series":{"s":{"past_events":-1.0}}}}"#, 1);
        assert_ne!(odd, good);
        for (text, word) in [
            ("", "damaged"),
            ("{}", "damaged"),
            (&good[..good.len() / 2], "damaged"),
            (&newer, "version"),
            (&odd, "cannot be"),
        ] {
            let (memory, notes) = Memory::restore(Some(text), "boot", at(9));
            assert!(notes.len() == 1 && notes[0].contains(word), "{text}: {notes:?}");
            assert!(memory.checks.is_empty());
        }
    }

    #[test]
    fn a_reboot_or_a_clock_that_goes_back_makes_no_growth() {
        for (boot, up_s) in [("other", 4000), ("boot", 50)] {
            let mut memory = Memory::restore(None, "boot", at(100)).0;
            memory.of("c").series("eth0").add(100, 0.0, 0.0, RULE);
            let standing = policy::step(&Standing::default(), TWICE, Verdict::Bad, at(100));
            memory.of("c").standings.insert("eth0".into(), standing);
            let text = memory.text().unwrap();
            let (mut memory, notes) = Memory::restore(Some(&text), boot, at(up_s));
            assert_eq!(notes.is_empty(), boot == "other");
            assert_eq!(memory.of("c").series("eth0").add(up_s, 1e6, 1e6, RULE), None, "{boot}");
            assert!(memory.of("c").standings["eth0"].hits.is_empty());
        }
    }

    #[test]
    fn a_best_value_outlives_a_boot_and_not_a_month() {
        let mut past = Past::default();
        let on = |day: i64| Moment { up_s: 1, unix_s: day * DAY_S };
        assert!((past.best("eth0", 1e4, on(0), 30.0) - 1e4).abs() < 1.0);
        past.after_reboot();
        assert!((past.best("eth0", 1e3, on(29), 30.0) - 1e4).abs() < 1.0);
        assert!((past.best("eth0", 1e3, on(31), 30.0) - 1e3).abs() < 1.0);
        // A clock that was set back years keeps the best.
        assert!((past.best("eth0", 100.0, on(-4000), 30.0) - 1e3).abs() < 1.0);
    }
}
