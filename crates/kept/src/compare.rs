//! A kept set beside the facts of a host: what is in force, and what its files give after a boot. Pure.

use linerate_model::drift::{BOOT, BOOT_READ, DriftRow, DriftState, KeptSetting, OwnerLine, PUT_BACK_MS};
use linerate_model::fact::{FactValue, HostFacts, pattern_fits};
use linerate_model::fact_change::FactChange;

/// A setting that was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutBack {
    /// Host.
    pub host: String,
    /// Setting.
    pub key: String,
    /// When, Unix milliseconds.
    pub at_ms: u64,
    /// Whether it stayed: not where the host, or a person, undid it.
    pub has_stayed: bool,
}

/// What is known of a host.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Its facts, with those of its files.
    pub facts: &'a HostFacts,
    /// Changes of its facts, newest first.
    pub changes: &'a [FactChange],
    /// What was put back.
    pub put_back: &'a [PutBack],
    /// Now, Unix milliseconds.
    pub now_ms: u64,
}

/// The kept settings of a host beside what is known of it, in their order.
#[must_use]
pub fn compare(kept: Vec<KeptSetting>, known: Known<'_>) -> Vec<DriftRow> {
    kept.into_iter().map(|one| row(one, known)).collect()
}

/// The kept settings of a host that could not be read at all.
#[must_use]
pub fn unreachable(kept: Vec<KeptSetting>, reason: &str) -> Vec<DriftRow> {
    kept.into_iter().map(|one| unreadable(one, reason.to_owned())).collect()
}

fn unreadable(kept: KeptSetting, reason: String) -> DriftRow {
    DriftRow {
        kept,
        state: DriftState::Unreadable,
        now: None,
        reason: Some(reason),
        boot: None,
        boot_read: false,
        changed: None,
        against: Vec::new(),
        fight: false,
        put_back_ms: None,
    }
}

fn row(kept: KeptSetting, known: Known<'_>) -> DriftRow {
    let facts = known.facts;
    let Some(now) = facts.value_of(&kept.key) else {
        let reason = gap(facts, &kept.key).unwrap_or_else(|| "the host has no such setting".to_owned());
        return unreadable(kept, reason);
    };
    let is_kept = now.is_same(&kept.value);
    let boot_gap = gap(facts, &format!("{BOOT}{}", kept.key));
    let boot_read = facts.readings.contains_key(BOOT_READ) && boot_gap.is_none();
    let lines = lines(facts, &kept.key);
    let boot = lines.iter().rev().find(|line| !line.is_pattern).or(lines.last()).map(|line| line.of.clone());
    // Where not all was read: what sets another value is known to, what sets none is not.
    let survives = boot.as_ref().map_or(!boot_read, |line| line.value.is_same(&kept.value));
    let state = match (is_kept, survives) {
        (false, _) => DriftState::Drifted,
        (true, false) => DriftState::WillNotSurvive,
        (true, true) => DriftState::Same,
    };
    let last = known
        .put_back
        .iter()
        .filter(|put| put.host == kept.host && put.key == kept.key)
        .filter(|put| known.now_ms.saturating_sub(put.at_ms) < PUT_BACK_MS)
        .max_by_key(|put| put.at_ms);
    let lines: Vec<OwnerLine> = lines.into_iter().map(|line| line.of).collect();
    let agrees = |line: &OwnerLine| line.value.is_same(&kept.value);
    // An owner that acts earlier is overridden at every boot; one that acts later is a second one.
    let comes_after = |at: usize, line: &OwnerLine| {
        !agrees(line) && lines[..at].iter().any(|ours| agrees(ours) && ours.owner != line.owner)
    };
    let is_written_again = last.is_some_and(|put| put.has_stayed) && !is_kept;
    let fight = is_written_again || lines.iter().enumerate().any(|(at, line)| comes_after(at, line));
    let against: Vec<OwnerLine> = lines.iter().filter(|line| !agrees(line)).cloned().collect();
    let made = |change: &&FactChange| {
        change.host == kept.host && change.key == kept.key && change.to.as_ref() == Some(&now)
    };
    let changed = known.changes.iter().find(made).filter(|_| !is_kept).cloned();
    DriftRow {
        kept,
        state,
        now: Some(now),
        reason: boot_gap,
        boot,
        boot_read,
        changed,
        against,
        fight,
        put_back_ms: last.map(|put| put.at_ms),
    }
}

/// Why a key could not be read.
fn gap(facts: &HostFacts, key: &str) -> Option<String> {
    facts.gap_of(key).map(|gap| gap.reason.clone())
}

/// A line that sets a key at boot.
struct BootLine {
    of: OwnerLine,
    /// Whether it sets all keys of a pattern: a line that names the key counts before it.
    is_pattern: bool,
}

/// The lines that set a key, in the order of a boot.
fn lines(facts: &HostFacts, key: &str) -> Vec<BootLine> {
    let assignments = facts.readings.beginning_with(BOOT).filter_map(|(name, value)| {
        let (_, set) = name.strip_prefix(BOOT)?.split_once('.')?;
        let is_pattern = set.contains('*');
        let FactValue::List(parts) = value else { return None };
        let [owner, at, value] = &parts[..] else { return None };
        let fits = set == key || is_pattern && pattern_fits(set, key);
        let of = OwnerLine { owner: owner.clone(), at: at.clone(), value: FactValue::Text(value.clone()) };
        fits.then_some(BootLine { of, is_pattern })
    });
    assignments.collect()
}

#[cfg(test)]
mod tests {
    use linerate_model::drift::DriftPolicy;
    use linerate_model::fact::Gap;
    use linerate_model::fact_change::SeenBy;

    use super::*;

    const KEY: &str = "sysctl.net.core.rmem_max";
    const HOUR: u64 = 3_600_000;

    fn kept() -> KeptSetting {
        let (host, key, value) = ("a".to_owned(), KEY.to_owned(), FactValue::Int(7));
        KeptSetting { host, key, value, policy: DriftPolicy::Report, trial: None, profile: None, line: 3 }
    }

    fn facts(now: i64, lines: &[(&str, &str, &str, &str)]) -> HostFacts {
        let mut facts = HostFacts::default();
        facts.readings.insert(KEY.to_owned(), FactValue::Int(now));
        facts.readings.insert(BOOT_READ.to_owned(), FactValue::Flag(true));
        for (at, (owner, file, key, value)) in lines.iter().enumerate() {
            let parts = [owner, file, value].map(|part| (*part).to_owned());
            facts.readings.insert(format!("boot.{at:04}.{key}"), FactValue::List(parts.into()));
        }
        facts
    }

    fn only(facts: &HostFacts, changes: &[FactChange], put_back: &[PutBack]) -> DriftRow {
        let known = Known { facts, changes, put_back, now_ms: 10 * HOUR };
        compare(vec![kept()], known).remove(0)
    }

    #[test]
    fn what_is_in_force_and_what_the_files_give_make_the_state() {
        let ours = ("sysctl.d", "/etc/sysctl.d/90-linerate.conf:2", KEY, "7");
        let vendor = ("sysctl.d", "/etc/sysctl.d/99-vendor.conf:1", KEY, "9");
        let state = |now, lines: &[_]| only(&facts(now, lines), &[], &[]).state;
        assert_eq!(state(7, &[ours]), DriftState::Same);
        assert_eq!(state(7, &[]), DriftState::WillNotSurvive);
        assert_eq!(state(7, &[ours, vendor]), DriftState::WillNotSurvive);
        assert_eq!(state(7, &[vendor, ours]), DriftState::Same);
        assert_eq!(state(9, &[ours]), DriftState::Drifted);
        // One owner that overrides itself does not fight.
        assert!(!only(&facts(7, &[vendor, ours]), &[], &[]).fight);
        // A line that names the key counts before one with a pattern.
        let pattern = ("sysctl.d", "/etc/sysctl.d/95-x.conf:1", "sysctl.net.core.*", "9");
        assert_eq!(state(7, &[ours, pattern]), DriftState::Same);
        assert_eq!(state(7, &[pattern]), DriftState::WillNotSurvive);
    }

    #[test]
    fn what_was_not_read_is_no_drift_and_no_promise() {
        let mut facts = facts(7, &[]);
        facts.gaps.push(Gap { what: "boot.sysctl.*".into(), reason: "permission denied".into() });
        let row = only(&facts, &[], &[]);
        assert_eq!((row.state, row.boot_read), (DriftState::Same, false));
        assert_eq!(row.reason.as_deref(), Some("permission denied"));
        // What was read counts.
        let vendor = ("sysctl.d", "/etc/sysctl.d/99-vendor.conf:1", KEY, "9");
        let mut known = self::facts(7, &[vendor]);
        known.gaps.clone_from(&facts.gaps);
        let row = only(&known, &[], &[]);
        assert_eq!((row.state, row.boot_read), (DriftState::WillNotSurvive, false));
        facts.readings.retain(|key, _| key != KEY);
        facts.gaps.push(Gap { what: "sysctl.net.*".into(), reason: "no right".into() });
        let row = only(&facts, &[], &[]);
        assert_eq!((row.state, row.reason.as_deref()), (DriftState::Unreadable, Some("no right")));
        let row = only(&HostFacts::default(), &[], &[]);
        assert_eq!(row.reason.as_deref(), Some("the host has no such setting"));
    }

    #[test]
    fn two_owners_that_disagree_fight_and_so_does_who_writes_again_within_an_hour() {
        let ours = ("sysctl.d", "/etc/sysctl.d/90-linerate.conf:2", KEY, "7");
        let tuned = ("tuned", "/etc/tuned/x/tuned.conf:4", KEY, "9");
        let row = only(&facts(9, &[ours, tuned]), &[], &[]);
        assert!(row.fight && row.against.len() == 1 && row.against[0].owner == "tuned", "{row:?}");
        assert!(!only(&facts(9, &[tuned]), &[], &[]).fight, "one owner");
        let link = ("link", "/etc/systemd/network/05-x.link:4", KEY, "9");
        assert!(!only(&facts(7, &[link, ours]), &[], &[]).fight, "the first one is overridden");
        let put = |at_ms| PutBack { host: "a".to_owned(), key: KEY.to_owned(), at_ms, has_stayed: true };
        let row = only(&facts(9, &[]), &[], &[put(8 * HOUR), put(10 * HOUR - 60_000)]);
        assert!(row.fight && row.put_back_ms == Some(10 * HOUR - 60_000));
        assert!(!only(&facts(9, &[]), &[], &[put(9 * HOUR)]).fight);
        assert!(!only(&facts(7, &[ours]), &[], &[put(10 * HOUR - 60_000)]).fight, "still in force");
        // What was undone is not put back again within the hour either, and has no second owner.
        let undone = |at_ms| PutBack { has_stayed: false, ..put(at_ms) };
        let row = only(&facts(9, &[]), &[], &[put(10 * HOUR - 60_000), undone(10 * HOUR - 30_000)]);
        assert_eq!((row.fight, row.put_back_ms), (false, Some(10 * HOUR - 30_000)));
        let row = only(&facts(9, &[]), &[], &[undone(9 * HOUR)]);
        assert_eq!((row.fight, row.put_back_ms), (false, None));
    }

    #[test]
    fn the_change_that_made_the_value_is_quoted() {
        let change = |to: i64, seen_ms| FactChange {
            host: "a".to_owned(),
            key: KEY.to_owned(),
            from: Some(FactValue::Int(7)),
            to: Some(FactValue::Int(to)),
            after_ms: 0,
            seen_ms,
            seen_by: SeenBy::Facts,
            who: None,
        };
        let row = only(&facts(9, &[]), &[change(8, 3), change(9, 2), change(9, 1)], &[]);
        assert_eq!(row.changed.map(|change| change.seen_ms), Some(2));
        assert_eq!(only(&facts(7, &[]), &[change(7, 3)], &[]).changed, None);
    }
}
