//! The most important of a diagnosis in one line.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use linerate_model::fact::{Gap, GapSubject};
use linerate_model::finding::{Diagnosis, Finding};
use linerate_model::remark::{DiskRemark, Overall, Remark};
use linerate_model::units::percent;
use linerate_model::verdict::Certainty;

use super::finding::location;
use super::remark;

/// How the headline of a fault begins whose cause no finding names.
const UNKNOWN: &str = "the cause is not known";
/// Figures that nothing is known to compare with.
const NO_LIMIT: &str = "no limit is known to compare with";
/// Lost hosts that are named.
const LOST_MAX: usize = 4;

/// The line.
pub(super) fn of(diagnosis: &Diagnosis) -> String {
    let words = match diagnosis.findings.split_first() {
        Some((first, others)) => format!("{}{}", location_and_cause(first), also(others)),
        None => whole(diagnosis) + &unseen(diagnosis),
    };
    let words = format!("{words}{}", lost(diagnosis));
    match &diagnosis.summary.fix {
        Some(fix) => format!("{}; {words}", super::diff::verdict(*fix)),
        None => words,
    }
}

/// The first symptom that is a fault, for a headline.
fn symptom(remarks: &[Remark]) -> Option<String> {
    let is_fault = |r: &&Remark| match r {
        Remark::Symptom(s) => s.sign.is_fault(),
        Remark::Blocks { .. } | Remark::Shared { .. } => true,
        _ => false,
    };
    let of = |is: &dyn Fn(&&Remark) -> bool| remarks.iter().find(|r| is(r)).map(remark::note);
    of(&is_fault)
        .map(|fault| format!("{UNKNOWN}; {fault}"))
        .or_else(|| of(&|r| matches!(r, Remark::Symptom(_))))
        .or_else(|| of(&|r| matches!(r, Remark::Replica { .. } | Remark::Node { .. })))
}

/// Hosts that were lost during the run.
fn lost(diagnosis: &Diagnosis) -> String {
    let host = |gap: &Gap| match &gap.what {
        GapSubject::Host(name) => Some(name.clone()),
        _ => None,
    };
    let lost: BTreeSet<String> = diagnosis.blind.iter().filter_map(host).collect();
    let named: Vec<&str> = lost.iter().take(LOST_MAX).map(String::as_str).collect();
    match lost.len() {
        0 => String::new(),
        all if all > LOST_MAX => format!("; not seen: {} and {} more", named.join(", "), all - LOST_MAX),
        _ => format!("; not seen: {}", named.join(", ")),
    }
}

/// Where nothing was found.
pub fn whole(diagnosis: &Diagnosis) -> String {
    // A full port is the headline only where no ceiling is known.
    let is_known = matches!(diagnosis.summary.overall, Overall::AtCeiling(_) | Overall::OfCeiling(_));
    let symptom = symptom(&diagnosis.remarks);
    if let Some(symptom) = symptom.filter(|text| !is_known || text.starts_with(UNKNOWN)) {
        return symptom;
    }
    let first = |is: fn(&Remark) -> bool| diagnosis.remarks.iter().find(|r| is(r)).map(remark::note);
    let drive =
        |r: &Remark| matches!(r, Remark::Disk(DiskRemark::Slow { .. } | DiskRemark::Saturated { .. }));
    let writes = diagnosis.remarks.iter().find(|r| matches!(r, Remark::Disk(DiskRemark::SlowWrites { .. })));
    let writes = writes.map(|slow| format!("{UNKNOWN}; {}", remark::note(slow)));
    match diagnosis.summary.overall {
        Overall::AtCeiling(_) if diagnosis.remarks.iter().any(|r| r.pace().is_some()) => {
            "no loss at the pace of the tests".to_owned()
        }
        Overall::AtCeiling(share) => format!("at ceiling: {} % of it", (share * 100.0).min(100.0).floor()),
        Overall::OfCeiling(share) => format!("nothing stands out: {} of the ceiling", percent(share)),
        Overall::NoCeiling => {
            let ports = diagnosis.remarks.iter().find_map(|r| match r {
                Remark::Ports(classes) => Some(format!("; {}", remark::ports(classes))),
                _ => None,
            });
            let is_silent = diagnosis.cells.iter().all(|cell| cell.throughput_bps.is_none());
            if is_silent && !diagnosis.cells.is_empty() {
                return format!("{UNKNOWN}: no throughput was read");
            }
            let pairs: BTreeSet<(&str, &str)> =
                diagnosis.cells.iter().map(|c| (c.from.as_str(), c.to.as_str())).collect();
            let first = match pairs.len() {
                1 => "the cause is not known: one pair has no peer to compare it with",
                _ => "nothing stands out among the peers",
            };
            format!("{first}; no ceiling is known{}", ports.unwrap_or_default())
        }
        Overall::Counters => first(|r| matches!(r, Remark::Together(_) | Remark::Outlier(_)))
            .or_else(|| first(drive))
            .unwrap_or_else(|| "no pair was measured, and no counters stand out".to_owned()),
        Overall::Figures(1) => {
            first(drive).unwrap_or_else(|| "one figure of disks, not at its limit".to_owned())
        }
        Overall::Figures(count) => {
            first(drive).unwrap_or_else(|| format!("{count} figures of disks, none of them at its limit"))
        }
        Overall::Rate(bytes_per_s) => first(drive).or(writes).unwrap_or_else(|| {
            format!("one figure of disks, {}; {NO_LIMIT}", remark::bytes_rate(bytes_per_s))
        }),
        Overall::Rates(count) => {
            first(drive).or(writes).unwrap_or_else(|| format!("{count} figures of disks; {NO_LIMIT}"))
        }
        Overall::Nothing if !diagnosis.asked.is_empty() => {
            let is_read = diagnosis.remarks.iter().any(|r| matches!(r, Remark::Read { .. }));
            let read = if is_read { "what was read decides nothing" } else { "no measurement was read" };
            format!("{UNKNOWN}: {read}; what to measure next is listed below")
        }
        Overall::Nothing => first(|r| matches!(r, Remark::FrontEnds { .. } | Remark::Crossing(_)))
            .unwrap_or_else(|| "nothing was measured".to_owned()),
    }
}

/// What limits that.
fn unseen(diagnosis: &Diagnosis) -> String {
    let summary = &diagnosis.summary;
    let unmeasured: Vec<String> = summary
        .unmeasured
        .iter()
        .map(|(layer, pairs, of)| format!("{pairs} of {of} pairs ({layer})"))
        .collect();
    let mut words = if unmeasured.is_empty() {
        String::new()
    } else {
        format!(", as far as it was seen; contended in every transfer: {}", unmeasured.join(", "))
    };
    if let Some(((suspect, direction), rest)) = summary.untested.split_first() {
        let _ = write!(words, "; suspected and not tested again: {}", suspect.label(*direction));
        if !rest.is_empty() {
            let _ = write!(words, " (and {} more)", rest.len());
        }
    }
    words
}

fn location_and_cause(finding: &Finding) -> String {
    let what = match finding.causes.first() {
        None => "no known cause fits".to_owned(),
        Some(cause) => match Certainty::of(cause.probability.min(finding.probability)) {
            Certainty::Unknown => format!("{UNKNOWN}; first suspect: {}", cause.title),
            Certainty::Possible => format!("{UNKNOWN}; possible: {}", cause.title),
            Certainty::Likely | Certainty::Certain => cause.title.clone(),
        },
    };
    format!("{}: {what}", location(finding))
}

/// Findings after the first: one in full, for who reads only the headline must not repair the half; of more
/// the number.
fn also(others: &[Finding]) -> String {
    match others {
        [] => String::new(),
        [one] => format!("; and {}", location_and_cause(one)),
        [one, rest @ ..] => format!("; and {} (and {} more)", location_and_cause(one), rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::finding::{Direction, Suspect};
    use linerate_model::inventory::Layer;
    use linerate_model::remark::Summary;

    use super::*;

    fn headline(summary: Summary, remarks: Vec<Remark>) -> String {
        of(&Diagnosis { summary, remarks, ..Diagnosis::default() })
    }

    #[test]
    fn what_was_not_seen_is_not_called_healthy() {
        let summary = Summary {
            overall: Overall::NoCeiling,
            unmeasured: vec![(Layer::Overlay, 7, 12)],
            untested: vec![(Suspect::Pair("a".to_owned(), "b".to_owned()), Direction::Tx)],
            fix: None,
        };
        assert_eq!(
            headline(summary, Vec::new()),
            "nothing stands out among the peers; no ceiling is known, as far as it was seen; contended in every \
             transfer: 7 of 12 pairs (overlay); suspected and not tested again: traffic from a to b"
        );
        assert_eq!(headline(Summary::default(), Vec::new()), "nothing was measured");
    }

    /// Casebook D1 and D2.
    #[test]
    fn a_drive_without_time_left_is_the_headline() {
        let drive = Remark::Disk(DiskRemark::Saturated {
            host: "home".to_owned(),
            device: "sdx".to_owned(),
            busy: 0.94,
            per_s: 1110.0,
            merged_per_s: 0.0,
        });
        let figures = |count| Summary { overall: Overall::Figures(count), ..Summary::default() };
        let busy =
            "home sdx: busy for 94 % of the time with 1110 requests a second: if it is a rotating disk";
        assert!(headline(figures(4), vec![drive]).starts_with(busy));
        assert_eq!(headline(figures(3), Vec::new()), "3 figures of disks, none of them at its limit");
        // A rate without a limit is not called fine.
        let rates = |remarks| headline(Summary { overall: Overall::Rates(2), ..Summary::default() }, remarks);
        assert_eq!(rates(Vec::new()), "2 figures of disks; no limit is known to compare with");
        let slow = DiskRemark::SlowWrites { host: String::new(), wait_ms: Some(900.0), bytes_per_s: 570.0 };
        let slow = rates(vec![Remark::Disk(slow)]);
        assert!(slow.starts_with("the cause is not known; a synchronous write takes 900 ms"), "{slow}");
    }

    #[test]
    fn a_fault_is_the_headline_before_a_full_port() {
        let remark = |sign| {
            Remark::Symptom(linerate_model::symptom::Symptom {
                from: "a".into(),
                to: "b".into(),
                layer: Layer::Underlay,
                sign,
            })
        };
        let full = remark(linerate_model::symptom::Sign::FullPort { bps: 9.4e9, link_bps: 1e10 });
        assert!(symptom(std::slice::from_ref(&full)).unwrap().contains("94 % of a port of 10 Gbit/s"));
        let both = [full, remark(linerate_model::symptom::Sign::Standstill { share: 0.9 })];
        assert!(symptom(&both).unwrap().starts_with("the cause is not known; a to b"));
        assert_eq!(symptom(&[]), None);
    }
}
