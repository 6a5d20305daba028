//! Windows, strikes and passes: what stands for a subject after one more observation. A pure function, so
//! that one sample never decides and nothing flaps.

use linerate_model::check::CheckState;
use serde::{Deserialize, Serialize};

use super::rule::{Moment, Rule, Verdict};

/// What is remembered of one subject of one check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Standing {
    /// When bad observations were made, seconds since boot, oldest first.
    #[serde(default)]
    pub(super) hits: Vec<u64>,
    /// Good observations in a row since it fails.
    #[serde(default)]
    pub(super) passes: u32,
    /// When the last pass was counted, seconds since boot.
    #[serde(default)]
    passed_at: Option<u64>,
    /// Since when it fails, seconds since 1970.
    #[serde(default)]
    pub(super) since_unix_s: Option<i64>,
    /// What was bad when it was last seen bad.
    #[serde(default)]
    pub(super) text: String,
    /// Whether that was of a kind that only warns.
    #[serde(default)]
    pub(super) only_warns: bool,
}

impl Standing {
    /// Whether nothing has to be remembered.
    pub(super) fn is_blank(&self) -> bool {
        self.hits.is_empty() && self.since_unix_s.is_none()
    }

    /// After a reboot: times of the last boot mean nothing, what failed still does until it was seen good.
    pub(super) fn after_reboot(&mut self) {
        self.hits.clear();
        self.passes = 0;
        self.passed_at = None;
    }
}

/// What stands after one more observation.
pub(super) fn step(before: &Standing, rule: Rule, verdict: Verdict, now: Moment) -> Standing {
    let mut after = before.clone();
    // Times ahead of now are of another clock.
    after.hits.retain(|hit| *hit <= now.up_s && now.up_s - hit <= rule.window_s);
    let is_apart =
        |last: Option<u64>| last.is_none_or(|last| last > now.up_s || now.up_s - last >= rule.spacing_s);
    match verdict {
        Verdict::Bad => {
            (after.passes, after.passed_at) = (0, None);
            if is_apart(after.hits.last().copied()) {
                after.hits.push(now.up_s);
            }
            // No more are needed than decide.
            let surplus = after.hits.len().saturating_sub(rule.strikes.max(1) as usize);
            after.hits.drain(..surplus);
            if after.hits.len() >= rule.strikes.max(1) as usize && after.since_unix_s.is_none() {
                after.since_unix_s = Some(now.unix_s);
            }
        }
        Verdict::Good if after.since_unix_s.is_some() => {
            if is_apart(after.passed_at) {
                after.passes += 1;
                after.passed_at = Some(now.up_s);
            }
            if after.passes >= rule.passes.max(1) {
                after = Standing::default();
            }
        }
        Verdict::Good | Verdict::Unknown => {}
    }
    after
}

/// The word for what stands.
pub(super) fn state(standing: &Standing, verdict: Verdict) -> CheckState {
    match (standing.since_unix_s, verdict) {
        (Some(_), _) if standing.only_warns => CheckState::Warning,
        (Some(_), _) => CheckState::Failing,
        (None, Verdict::Good) => CheckState::Ok,
        (None, Verdict::Bad) => CheckState::Suspect,
        (None, Verdict::Unknown) => CheckState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: Rule = Rule { strikes: 2, passes: 3, window_s: 600, spacing_s: 10 };

    fn at(up_s: u64) -> Moment {
        Moment { up_s, unix_s: 1_000_000 + up_s as i64 }
    }

    fn run(rule: Rule, seen: &[(u64, Verdict)]) -> Standing {
        seen.iter()
            .fold(Standing::default(), |before, (up_s, verdict)| step(&before, rule, *verdict, at(*up_s)))
    }

    #[test]
    fn one_sample_never_fails_and_one_never_clears() {
        use Verdict::{Bad, Good, Unknown};
        assert!(run(RULE, &[(0, Bad)]).since_unix_s.is_none());
        // The same moment, asked twice.
        assert!(run(RULE, &[(0, Bad), (1, Bad), (2, Bad)]).since_unix_s.is_none());
        assert_eq!(run(RULE, &[(0, Bad), (300, Bad)]).since_unix_s, Some(1_000_300));
        // Too far apart to be one thing.
        assert!(run(RULE, &[(0, Bad), (601, Bad)]).since_unix_s.is_none());
        // Bad, good, bad: intermittent, within the window.
        assert!(run(RULE, &[(0, Bad), (100, Good), (200, Bad)]).since_unix_s.is_some());
        let failing = [(0, Bad), (300, Bad), (600, Good), (900, Good)];
        assert!(run(RULE, &failing).since_unix_s.is_some(), "two passes are not three");
        let mut cleared = failing.to_vec();
        cleared.push((905, Good));
        assert!(run(RULE, &cleared).since_unix_s.is_some(), "too soon to be another one");
        cleared.push((1200, Good));
        assert_eq!(run(RULE, &cleared), Standing::default());
        let not_seen =
            [(0, Bad), (300, Bad), (600, Good), (700, Good), (800, Unknown), (900, Bad), (1000, Good)];
        assert_eq!(run(RULE, &not_seen).passes, 1, "a bad one begins anew");
    }

    #[test]
    fn what_failed_before_a_reboot_fails_until_it_was_seen_good() {
        let mut standing = run(RULE, &[(1000, Verdict::Bad), (2000, Verdict::Bad), (2100, Verdict::Bad)]);
        assert!(standing.since_unix_s.is_some());
        standing.after_reboot();
        for (n, up_s) in [30_u64, 60, 90].into_iter().enumerate() {
            assert_eq!(state(&standing, Verdict::Good), CheckState::Failing, "{n}");
            standing = step(&standing, RULE, Verdict::Good, at(up_s));
        }
        assert_eq!(state(&standing, Verdict::Good), CheckState::Ok);
    }

    fn verdicts() -> impl Strategy<Value = Vec<(u64, Verdict)>> {
        let verdict = prop_oneof![Just(Verdict::Good), Just(Verdict::Bad), Just(Verdict::Unknown)];
        proptest::collection::vec((0_u64..400, verdict), 0..60).prop_map(|steps| {
            let mut up_s = 0;
            let add = |(gap, verdict)| {
                up_s += gap;
                (up_s, verdict)
            };
            steps.into_iter().map(add).collect()
        })
    }

    proptest! {
        /// It begins only with `strikes` bad ones that are apart and within the window, and ends only after
        /// `passes` good ones that are apart with no bad one between, whatever else was seen.
        #[test]
        fn it_neither_begins_nor_ends_early(seen in verdicts(), strikes in 1_u32..4, passes in 1_u32..5) {
            let rule = Rule { strikes, passes, ..RULE };
            let mut standing = Standing::default();
            for (n, (up_s, verdict)) in seen.iter().enumerate() {
                let after = step(&standing, rule, *verdict, at(*up_s));
                let is_recent = |at: u64| up_s - at <= rule.window_s;
                let bad = seen[..=n].iter().filter(|(at, v)| *v == Verdict::Bad && is_recent(*at)).count();
                match (standing.since_unix_s, after.since_unix_s) {
                    (None, Some(_)) => {
                        prop_assert_eq!(*verdict, Verdict::Bad);
                        prop_assert!(bad >= strikes as usize);
                    }
                    (Some(_), None) => {
                        prop_assert_eq!(*verdict, Verdict::Good);
                        let since_bad = seen[..=n].iter().rev().take_while(|(_, v)| *v != Verdict::Bad);
                        let good = since_bad.filter(|(_, v)| *v == Verdict::Good).count();
                        prop_assert!(good >= passes as usize);
                    }
                    (Some(before), Some(now)) => prop_assert_eq!(before, now, "since when is not moved"),
                    (None, None) => {}
                }
                prop_assert!(after.hits.len() <= strikes as usize && after.hits.is_sorted());
                standing = after;
            }
        }

        /// A boot clock that goes back (a restored container, a file of another host) neither panics nor
        /// fails.
        #[test]
        fn a_clock_that_jumps_makes_no_failure_of_one_sample(
            times in proptest::collection::vec(any::<u64>(), 1..20),
        ) {
            let rule = Rule { strikes: 2, ..RULE };
            let mut standing = Standing::default();
            for up_s in times {
                let moment = Moment { up_s, unix_s: 0 };
                let after = step(&standing, rule, Verdict::Bad, moment);
                if standing.hits.iter().all(|hit| *hit > up_s || up_s - hit > rule.window_s) {
                    prop_assert_eq!(after.since_unix_s, standing.since_unix_s);
                }
                standing = after;
            }
        }
    }
}
