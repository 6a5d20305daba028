//! From answers to results: each row is judged by its check, each observation goes through windows, strikes
//! and passes. Pure but for the past that it carries on.

use std::collections::BTreeSet;

use linerate_model::check::{CheckResult, CheckState};

use super::kind::{Check, Observation, Row};
use super::past::Past;
use super::policy;
use super::rule::{Moment, Severity, Verdict};
use super::settings::Settings;
use super::worker::Answer;

/// Most subjects of one check in a report.
const SUBJECTS_MAX: usize = 512;

/// Results of one check from the answers to its jobs, `(item, answer)`.
pub(super) fn results(
    check: &dyn Check,
    answers: &[(&str, &Answer)],
    past: &mut Past,
    now: Moment,
    settings: &Settings,
) -> Vec<CheckResult> {
    let mut seen = Vec::new();
    let mut is_whole = true;
    for (item, answer) in answers {
        let unseen = |reason: &str| Observation::unknown(&Row::new(*item), reason);
        match answer {
            Answer::Seen(evidence) => {
                if let Some(cursor) = &evidence.cursor {
                    past.cursors.insert((*item).to_owned(), cursor.clone());
                }
                let rows = evidence.rows.iter().filter(|row| !settings.leaves(&row.subject));
                seen.extend(rows.take(SUBJECTS_MAX).map(|row| check.judge(row, past, now, settings)));
                continue;
            }
            Answer::Failed(reason) => seen.push(unseen(reason)),
            Answer::Silent => seen.push(check.silent(item)),
            Answer::NotAsked => seen.push(unseen("not asked: other readings hang")),
        }
        is_whole = false;
    }
    if is_whole {
        // A device that is gone, or has another name, leaves no failure behind.
        let subjects: BTreeSet<&str> = seen.iter().map(|one| one.subject.as_str()).collect();
        past.standings.retain(|subject, _| subjects.contains(subject.as_str()));
    }
    seen.into_iter().map(|one| result(check, one, past, now, settings)).collect()
}

fn result(
    check: &dyn Check,
    seen: Observation,
    past: &mut Past,
    now: Moment,
    settings: &Settings,
) -> CheckResult {
    let about = check.about();
    let rule = settings.rule(about.rule);
    let before = past.standings.get(&seen.subject).cloned().unwrap_or_default();
    let mut after = policy::step(&before, rule, seen.verdict, now);
    if seen.verdict == Verdict::Bad {
        after.text.clone_from(&seen.text);
        let severity = settings.severity(seen.severity.unwrap_or(about.severity));
        after.only_warns = severity == Severity::Warn;
    }
    let state = policy::state(&after, seen.verdict);
    let text = if matches!(state, CheckState::Failing | CheckState::Warning) && seen.verdict != Verdict::Bad {
        let passes = format!("{} of {} passes", after.passes, rule.passes);
        format!("{} (now: {}; {passes})", after.text, seen.text)
    } else {
        seen.text
    };
    let result = CheckResult {
        check: about.id.to_owned(),
        subject: seen.subject.clone(),
        state,
        text,
        cause: seen.cause.map(str::to_owned),
        since_unix_s: after.since_unix_s,
        strikes: u32::try_from(after.hits.len()).unwrap_or(u32::MAX),
        passes: after.passes,
    };
    if after.is_blank() {
        past.standings.remove(&seen.subject);
    } else {
        past.standings.insert(seen.subject, after);
    }
    result
}

/// The one result of a check that is switched off.
pub(super) fn off(check: &dyn Check) -> CheckResult {
    CheckResult {
        check: check.about().id.to_owned(),
        subject: String::new(),
        state: CheckState::Off,
        text: String::new(),
        cause: None,
        since_unix_s: None,
        strikes: 0,
        passes: 0,
    }
}
