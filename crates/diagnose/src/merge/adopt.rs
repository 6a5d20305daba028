//! A loss for which nothing was read that causes it, beside a wrong setting of a host that all of it passes:
//! one finding, not two.
//!
//! A mild fault shows only towards some peers, and then the pairs that it shows on look like a suspect of
//! their own ("from this group to that one"). A setting that is known to do just that, on a host through
//! which each of these pairs goes, explains more.

use std::collections::BTreeSet;

use linerate_knowledge::Knowledge;
use linerate_model::finding::{Clue, Direction, Finding, LossLocation, Metric, RankedCause, Suspect};
use linerate_model::remark::Remark;

use crate::context::Context;

/// Joins them.
pub(super) fn adopt(
    context: &Context<'_>,
    knowledge: &Knowledge,
    mut findings: Vec<Finding>,
) -> Vec<Finding> {
    let mut index = 0;
    while index < findings.len() {
        // A loss that shows in a setting alone is no explanation of itself.
        let setting = (0..findings.len())
            .filter(|at| *at != index)
            .find(|at| explains(context, knowledge, &findings[*at], &findings[index]))
            .filter(|_| is_unexplained(&findings[index]));
        if let Some(at) = setting {
            findings[index] = explained(context, &findings[index], &findings[at]);
            findings.remove(at);
            index -= usize::from(at < index);
        }
        index += 1;
    }
    findings
}

/// A loss with the setting that explains it: its suspect first, its causes.
fn explained(context: &Context<'_>, loss: &Finding, setting: &Finding) -> Finding {
    let share = context.facts.rules.merge.setting_share;
    let at = &setting.places[0];
    let weighed =
        |one: &LossLocation, share: f64| LossLocation { probability: one.probability * share, ..one.clone() };
    let others = loss.places.iter().map(|one| weighed(one, 1.0 - share));
    Finding {
        places: std::iter::once(weighed(at, share)).chain(others).collect(),
        causes: setting.causes.clone(),
        affected: pairs_of(context, at, loss).cloned().collect(),
        next: None,
        decide_tests: Vec::new(),
        tested: passing(context, &at.suspect, at.direction),
        ..loss.clone()
    }
}

/// A path and a host of it with the same cause: the host, with all the pairs of both.
pub(super) fn join_same(context: &Context<'_>, mut findings: Vec<Finding>) -> Vec<Finding> {
    let mut index = 0;
    while index < findings.len() {
        let path = &findings[index];
        let is_path = matches!(
            path.places.first().map(|place| &place.suspect),
            Some(Suspect::Pair(..) | Suspect::GroupToGroup(..))
        );
        let host = findings.iter().position(|host| is_path && same(context, path, host));
        let Some(host) = host else {
            index += 1;
            continue;
        };
        findings[host] = with_path(context, &findings[host], path);
        findings.remove(index);
    }
    findings
}

/// A host with the pairs of a path as well.
fn with_path(context: &Context<'_>, host: &Finding, path: &Finding) -> Finding {
    let more = path.affected.iter().filter(|pair| !host.affected.contains(pair));
    Finding {
        affected: host.affected.iter().chain(more).cloned().collect(),
        intermittent: host.intermittent || path.intermittent,
        tested: passing(context, &host.places[0].suspect, host.places[0].direction),
        ..host.clone()
    }
}

/// Parts what another finding brings about from the rest, as remarks.
pub(super) fn consequences(knowledge: &Knowledge, findings: Vec<Finding>) -> (Vec<Finding>, Vec<Remark>) {
    let found: BTreeSet<String> =
        findings.iter().filter_map(|finding| finding.causes.first()).map(|cause| cause.id.clone()).collect();
    let (mut own, mut remarks) = (Vec::new(), Vec::new());
    for finding in findings {
        match consequence(knowledge, &found, &finding) {
            Some(remark) => remarks.push(remark),
            None => own.push(finding),
        }
    }
    (own, remarks)
}

/// The remark that a finding becomes whose cause follows from one that was found.
fn consequence(knowledge: &Knowledge, found: &BTreeSet<String>, finding: &Finding) -> Option<Remark> {
    let (cause, place) = (finding.causes.first()?, finding.places.first()?);
    if finding.responses != [Metric::Setting] {
        return None;
    }
    let source = knowledge.get(&cause.id)?.follows_from.iter().find(|id| found.contains(*id))?;
    let of = knowledge.get(source).map_or(source, |known| &known.title).clone();
    let at = (place.suspect.clone(), place.direction);
    Some(Remark::Consequence { at, title: cause.title.clone(), of })
}

/// Whether a host has the first cause of a path, and all of the path goes through it.
fn same(context: &Context<'_>, path: &Finding, host: &Finding) -> bool {
    let (Some(cause), Some(at)) = (path.causes.first(), host.places.first()) else { return false };
    matches!(at.suspect, Suspect::Host(_))
        && host.causes.first().is_some_and(|c| c.id == cause.id)
        && !path.affected.is_empty()
        && path.affected.iter().all(|(from, to)| context.passes(&at.suspect, at.direction, from, to))
}

/// Whether nothing that was read on a host speaks for any of the causes: they only have the shape of the
/// loss.
fn is_unexplained(finding: &Finding) -> bool {
    let only_shape = |c: &RankedCause| {
        c.is_unknown_setting() || !c.supports.iter().any(|clue| matches!(clue, Clue::Read(_)))
    };
    !finding.affected.is_empty() && finding.causes.iter().all(only_shape)
}

/// Whether a finding about a setting says why pairs lose what they lose.
fn explains(context: &Context<'_>, knowledge: &Knowledge, setting: &Finding, loss: &Finding) -> bool {
    let ([Metric::Setting], Some(at), Some(cause)) =
        (&setting.responses[..], setting.places.first(), setting.causes.first())
    else {
        return false;
    };
    let does = knowledge.get(&cause.id).is_some_and(|known| {
        loss.responses.first().is_some_and(|first| known.symptom.responses.contains(first))
    });
    let least = context.facts.rules.merge.path_share_min;
    let is_path = |other: &LossLocation| match &other.suspect {
        Suspect::Pair(from, to) if other.direction == Direction::Tx && other.probability >= least => {
            context.passes(&at.suspect, at.direction, from, to)
        }
        _ => false,
    };
    // One path is enough where the evidence fits it alone as well: what else is slow may be so by chance.
    does && (pairs_of(context, at, loss).count() == loss.affected.len() || loss.places.iter().any(is_path))
}

/// The pairs of a loss that pass a location.
fn pairs_of<'f>(
    context: &Context<'_>,
    at: &LossLocation,
    loss: &'f Finding,
) -> impl Iterator<Item = &'f (String, String)> {
    loss.affected.iter().filter(|(from, to)| context.passes(&at.suspect, at.direction, from, to))
}

/// Ordered pairs that were measured and pass a suspect.
fn passing(context: &Context<'_>, suspect: &Suspect, direction: Direction) -> usize {
    let mut pairs: Vec<(&str, &str)> = context
        .cells
        .iter()
        .map(|cell| (cell.from, cell.to))
        .filter(|(from, to)| context.passes(suspect, direction, from, to))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use linerate_model::finding::Diagnosis;
    use linerate_model::snapshot::Snapshot;

    use super::*;
    use crate::ceilings::Ports;
    use crate::evidence::Facts;
    use crate::rules::Rules;

    fn finding(host: &str, id: &str, response: Metric) -> Finding {
        let cause = RankedCause {
            id: id.to_owned(),
            title: id.to_owned(),
            probability: 0.99,
            ..RankedCause::default()
        };
        Finding {
            places: vec![LossLocation {
                suspect: Suspect::Host(host.to_owned()),
                direction: Direction::Rx,
                probability: 0.99,
            }],
            responses: vec![response],
            probability: 0.97,
            causes: vec![cause],
            ..Finding::default()
        }
    }

    /// Between `a` and `b`, at times.
    fn path(causes: Vec<RankedCause>) -> Finding {
        let pair = ("a".to_owned(), "b".to_owned());
        let suspect = Suspect::Pair(pair.0.clone(), pair.1.clone());
        Finding {
            places: vec![LossLocation { suspect, direction: Direction::Tx, probability: 0.9 }],
            responses: vec![Metric::Throughput],
            expected: 9e9,
            measured: 5e9,
            causes,
            affected: vec![pair],
            intermittent: true,
            ..Finding::default()
        }
    }

    #[test]
    fn what_is_intermittent_says_so_after_it_was_merged() {
        let (snapshot, knowledge) = (Snapshot::default(), Knowledge::builtin().unwrap());
        let context =
            Context::new(Facts::new(&snapshot, &Rules::DEFAULT), Vec::new(), Vec::new(), Ports::default());
        let setting = finding("b", "tcp-sack-off", Metric::Setting);
        let merged = adopt(&context, &knowledge, vec![path(Vec::new()), setting]);
        let host = finding("b", "tcp-sack-off", Metric::Throughput);
        let joined = join_same(&context, vec![path(host.causes.clone()), host]);
        for findings in [merged, joined] {
            assert_eq!(findings.len(), 1);
            let diagnosis = linerate_report::words::written(Diagnosis { findings, ..Diagnosis::default() });
            let sentence = &diagnosis.findings[0].sentence;
            assert!(sentence.starts_with("host b, what it receives: "), "{sentence}");
            assert!(
                sentence.contains("tcp-sack-off") && sentence.contains("It comes and goes"),
                "{sentence}"
            );
        }
    }

    #[test]
    fn a_setting_explains_one_path_of_a_loss_that_may_be_of_that_path_alone() {
        let (snapshot, knowledge) = (Snapshot::default(), Knowledge::builtin().unwrap());
        let context =
            Context::new(Facts::new(&snapshot, &Rules::DEFAULT), Vec::new(), Vec::new(), Ports::default());
        let left = |probability: f64| {
            let mut loss = path(Vec::new());
            loss.places[0].probability = probability;
            let suspect = Suspect::Host("a".to_owned());
            loss.places.insert(0, LossLocation { suspect, direction: Direction::Both, probability: 0.6 });
            loss.affected.push(("c".to_owned(), "a".to_owned()));
            adopt(&context, &knowledge, vec![loss, finding("b", "tcp-sack-off", Metric::Setting)])
        };
        let merged = left(0.2);
        assert_eq!((merged.len(), merged[0].affected.len()), (1, 1), "{merged:?}");
        assert_eq!(merged[0].places[0].suspect, Suspect::Host("b".to_owned()));
        assert_eq!(left(0.02).len(), 2);
    }

    #[test]
    fn what_another_finding_brings_about_is_a_note_unless_it_was_measured() {
        let knowledge = Knowledge::builtin().unwrap();
        let left = |route: &str, response: Metric| {
            let findings =
                vec![finding("a", route, Metric::Setting), finding("b", "fragments-lost", response)];
            let (own, remarks) = consequences(&knowledge, findings);
            (remarks, own.len())
        };
        let (remarks, count) = left("route-mtu-limit", Metric::Setting);
        assert_eq!(count, 1);
        let [Remark::Consequence { at, title, of }] = &remarks[..] else { panic!("{remarks:?}") };
        assert_eq!((at, title.as_str()), (&(Suspect::Host("b".to_owned()), Direction::Rx), "fragments-lost"));
        assert!(of.starts_with("a route"), "{of}");
        assert_eq!(left("route-mtu-limit", Metric::Loss), (Vec::new(), 2));
        assert_eq!(left("sack-off", Metric::Setting), (Vec::new(), 2));
    }
}
