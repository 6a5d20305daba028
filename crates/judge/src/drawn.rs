//! Verdicts about faults that were drawn from the lab's grammar, which no knowledge file was written for.
//!
//! In: records. Out: how often the location was right, the mechanism named rightly or the difference that
//! reveals it with no cause claimed, and a wrong cause claimed as sure; alarms about what is harmless.

use std::fmt::Write as _;

use linerate_model::finding::RankedCause;
use serde::Serialize;

use crate::record::{Broken, ClaimedFinding, JudgedRun, RunCategory};
use crate::reliability::wilson;

/// From here on a cause is claimed.
const CLAIMED: f64 = 0.7;

/// How the cause of a drawn fault is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedAs {
    /// The first cause is of the right kind.
    Kind,
    /// No cause is claimed, and what differs at the suspect is named.
    Difference,
    /// A cause of another kind is claimed as sure.
    AnotherCause,
    /// None of these.
    Unknown,
}

impl NamedAs {
    fn of(finding: &ClaimedFinding, broken: &Broken) -> Self {
        let cause = finding.causes.first();
        if cause.is_some_and(|cause| broken.is_cause(&cause.id)) {
            Self::Kind
        } else if cause.is_some_and(|cause| is_sign(&cause.id, &broken.signs)) {
            Self::Difference
        } else if cause.is_some_and(|cause| cause.probability >= CLAIMED) {
            Self::AnotherCause
        } else if names(finding, &broken.signs) {
            Self::Difference
        } else {
            Self::Unknown
        }
    }
}

/// Whether a cause is that an unknown setting differs, and the setting is a sign of what is broken.
fn is_sign(cause: &str, signs: &[String]) -> bool {
    RankedCause::unknown_setting(cause)
        .is_some_and(|key| signs.iter().any(|sign| key.starts_with(sign.as_str())))
}

/// Whether a finding names a fact with one of these beginnings.
fn names(finding: &ClaimedFinding, signs: &[String]) -> bool {
    finding.differs.iter().any(|key| signs.iter().any(|sign| key.starts_with(sign.as_str())))
}

/// Counts over all drawn faults.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DrawnRow {
    /// Runs with a fault.
    pub runs: usize,
    /// With something found.
    pub found: usize,
    /// The location is right.
    pub exact: usize,
    /// The kind of mechanism is right, or no cause is claimed and the difference named.
    pub understood: usize,
    /// Of these: by the difference alone.
    pub by_difference: usize,
    /// A wrong cause is claimed as sure.
    pub wrong: usize,
    /// Runs with something harmless.
    pub harmless: usize,
    /// Of these: with an alarm, or without a verdict.
    pub alarms: usize,
    /// Of these: every finding names what was drawn, with its location. It takes no throughput, and yet is no
    /// healthy network: one packet in 40 twice, a route that cuts all into small packets.
    pub named: usize,
}

/// Whether an alarm about something harmless names nothing but that.
fn is_named(record: &JudgedRun) -> bool {
    let is_it = |drawn: &Broken| {
        let named = |one: &ClaimedFinding| {
            one.at(&drawn.truth) && matches!(NamedAs::of(one, drawn), NamedAs::Kind | NamedAs::Difference)
        };
        !record.findings.is_empty() && record.findings.iter().all(named)
    };
    record.run.harmless.as_ref().is_some_and(is_it)
}

/// Counts; `None` without such a run.
pub fn row(records: &[JudgedRun]) -> Option<DrawnRow> {
    let mut row = DrawnRow::default();
    for record in records {
        match (record.run.case, record.run.broken.first()) {
            (RunCategory::Drawn, broken) => {
                let first = record.findings.first();
                let named =
                    broken.zip(first).map_or(NamedAs::Unknown, |(broken, first)| NamedAs::of(first, broken));
                row.runs += 1;
                row.found += usize::from(!record.findings.is_empty());
                row.exact += usize::from(record.exact);
                row.understood += usize::from(matches!(named, NamedAs::Kind | NamedAs::Difference));
                row.by_difference += usize::from(named == NamedAs::Difference);
                row.wrong += usize::from(named == NamedAs::AnotherCause);
            }
            (RunCategory::DrawnHarmless, _) => {
                row.harmless += 1;
                row.alarms += usize::from(!record.right());
                row.named += usize::from(is_named(record));
            }
            _ => {}
        }
    }
    (row.runs + row.harmless > 0).then_some(row)
}

/// The counts as text.
pub fn table(records: &[JudgedRun]) -> String {
    let Some(row) = row(records) else { return String::new() };
    let share = |count: usize, of: usize| {
        let (low, high) = wilson(count, of);
        let percent = 100.0 * count as f64 / of.max(1) as f64;
        format!("{count} of {of} ({percent:.0} %, {:.0} to {:.0})", 100.0 * low, 100.0 * high)
    };
    let mut text = String::from("| faults drawn from the grammar | runs (95 % interval) |\n| --- | --- |\n");
    for (what, count, of) in [
        ("something found", row.found, row.runs),
        ("exact suspect", row.exact, row.runs),
        ("right kind of mechanism, or no cause claimed and the difference named", row.understood, row.runs),
        ("of these by the difference alone", row.by_difference, row.runs),
        ("a wrong cause claimed with 70 % or more", row.wrong, row.runs),
        ("harmless: an alarm", row.alarms, row.harmless),
        ("of these every finding names what was drawn", row.named, row.harmless),
    ] {
        // Writing into a `String` cannot fail.
        let _ = writeln!(text, "| {what} | {} |", share(count, of));
    }
    text
}

#[cfg(test)]
mod tests {
    use linerate_model::finding::LossLocation;
    use linerate_model::suspect::{Direction, Suspect};

    use super::*;
    use crate::record::ClaimedCause;
    use crate::record::tests::record;

    fn drawn(cause: &str, probability: f64, differs: &str) -> JudgedRun {
        let mut run = record(Some("a rule drops"), true, false, 0);
        run.run.case = RunCategory::Drawn;
        run.run.broken[0].also = vec!["packet-loss".into()];
        run.run.broken[0].signs = vec!["firewall.".into()];
        run.findings = vec![ClaimedFinding {
            probability: 0.9,
            locations: Vec::new(),
            causes: vec![ClaimedCause { id: cause.into(), probability }],
            sentence: String::new(),
            differs: vec![differs.into()],
        }];
        run
    }

    #[test]
    fn a_kind_or_a_named_difference_is_understood_and_a_sure_other_cause_is_wrong() {
        let mut harmless = record(None, true, true, 0);
        harmless.run.case = RunCategory::DrawnHarmless;
        let mut alarm = harmless.clone();
        alarm.findings = drawn("tso-off", 0.9, "").findings;
        let mut named = drawn("packet-loss", 0.9, "");
        named.run.case = RunCategory::DrawnHarmless;
        named.run.harmless = named.run.broken.pop();
        let host = Suspect::Host("node-1".into());
        let location = LossLocation { suspect: host.clone(), direction: Direction::Tx, probability: 1.0 };
        named.run.harmless.as_mut().unwrap().truth.accepted = vec![(host, Vec::new())];
        named.findings[0].locations = vec![location];
        let records = [
            drawn("packet-loss", 0.4, ""),
            drawn("tso-off", 0.9, "firewall.rules"),
            drawn("tso-off", 0.5, "firewall.rules"),
            drawn("tso-off", 0.5, "sysctl.net.ipv4.tcp_sack"),
            drawn(&RankedCause::id_of_unknown("firewall.input.drops"), 0.8, ""),
            drawn(&RankedCause::id_of_unknown("sysctl.net.ipv4.tcp_sack"), 0.8, ""),
            harmless,
            alarm,
            named,
        ];
        let row = row(&records).unwrap();
        assert_eq!((row.runs, row.understood, row.by_difference, row.wrong), (6, 3, 2, 2));
        assert_eq!((row.harmless, row.alarms, row.named), (3, 2, 1));
        assert!(table(&records).contains("| exact suspect | 6 of 6 (100 %"));
        assert_eq!(super::row(&[record(Some("f"), true, true, 0)]), None);
    }
}
