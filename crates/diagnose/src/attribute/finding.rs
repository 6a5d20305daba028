//! A located loss with its ranked causes becomes a finding: what was lost where, what explains it and how
//! surely, what else differs there.

use std::collections::BTreeSet;

use linerate_knowledge::Knowledge;
use linerate_model::finding::{BenignDifference, Clue, FactHit, Finding, LossLocation, Metric, RankedCause};
use linerate_model::inventory::HostName;

use super::{Judged, Place, Scored, alias, remedy, unexplained};
use crate::calibrate::Calibration;
use crate::context::Context;
use crate::evidence::Facts;
use crate::metrics::Row;
use crate::next;

/// The finding of one loss.
pub(crate) fn finding(
    context: &Context<'_>,
    judged: &Judged<'_, '_>,
    knowledge: &Knowledge,
    calibration: &Calibration,
) -> Finding {
    let rules = &context.facts.rules.merge;
    let primary = judged.responses.first().copied().unwrap_or_default();
    let (suspect, direction, _) = &judged.places[0];
    let place = Place {
        suspect,
        direction: *direction,
        layer: judged.layer,
        responses: &judged.responses,
        shape: &judged.shape,
        subjects: &judged.subjects,
        has_alias: alias(&context.facts, suspect).is_some(),
    };
    let mut causes = known_causes(context, judged, &place, calibration);
    let explained = judged.causes.iter().filter(|(_, p)| *p >= rules.explained_min);
    let explained: Vec<_> = explained.flat_map(|(s, _)| s.hits.clone()).collect();
    let benign = unexplained(&context.facts, &place, knowledge, &explained);
    let left = (1.0 - causes.iter().map(|c| c.probability).sum::<f64>()).max(0.0);
    causes.extend(unknown_causes(&benign, left * rules.unknown_share, rules.unknown_max));
    let [expected, measured] = values(context, judged, primary);
    let mut affected: Vec<(HostName, HostName)> = Vec::new();
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    for row in &judged.located.rows {
        let cell = &context.cells[context.rows[*row].cell];
        if seen.insert((cell.from, cell.to)) {
            affected.push((cell.from.to_owned(), cell.to.to_owned()));
        }
    }
    let mut finding = Finding {
        places: judged
            .places
            .iter()
            .zip(calibration.place.shares(&judged.places.iter().map(|(_, _, p)| *p).collect::<Vec<_>>()))
            .filter(|((_, _, raw), _)| *raw >= rules.listed_min)
            .map(|((suspect, direction, _), probability)| LossLocation {
                suspect: suspect.clone(),
                direction: *direction,
                probability,
            })
            .collect(),
        layer: judged.layer,
        responses: judged.responses.clone(),
        expected,
        measured,
        unit: primary.unit(),
        probability: calibration.finding.chance(1.0 / (1.0 + (-judged.located.score).exp())),
        next: next::next(context, judged),
        decide_tests: next::tests(context, judged),
        causes,
        benign,
        affected,
        intermittent: judged.located.values.is_some() && primary != Metric::TwoState,
        ..Finding::default()
    };
    let passing: BTreeSet<(&str, &str)> = judged
        .located
        .column
        .cells()
        .iter()
        .map(|i| (context.cells[*i].from, context.cells[*i].to))
        .collect();
    finding.tested = passing.len();
    finding.at_rest = crate::together::at_rest(&context.facts, &finding);
    finding
}

/// The known causes, most probable first; none where even the first is too improbable to be named.
fn known_causes(
    context: &Context<'_>,
    judged: &Judged<'_, '_>,
    place: &Place<'_>,
    calibration: &Calibration,
) -> Vec<RankedCause> {
    let rules = &context.facts.rules.merge;
    let mut causes: Vec<RankedCause> = judged
        .causes
        .iter()
        .zip(calibration.cause.shares(&judged.causes.iter().map(|(_, p)| *p).collect::<Vec<_>>()))
        .filter(|(_, p)| *p >= rules.listed_min)
        .take(rules.causes_max)
        .map(|((scored, _), p)| ranked(&context.facts, place, scored, p))
        .collect();
    if causes.first().is_some_and(|first| first.probability < rules.named_min) {
        causes.clear();
    }
    causes
}

/// What is expected at a place and what was measured there.
fn values(context: &Context<'_>, judged: &Judged<'_, '_>, primary: Metric) -> [f64; 2] {
    let rows: Vec<_> =
        judged.located.rows.iter().map(|r| &context.rows[*r]).filter(|r| r.response == primary).collect();
    let median = |pick: fn(&Row) -> f64| {
        crate::stats::median(&rows.iter().map(|r| pick(r)).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    judged.located.values.unwrap_or_else(|| [median(|r| r.expected), median(|r| r.measured)])
}

/// A cause as it stands in a finding.
pub(crate) fn ranked(
    facts: &Facts<'_>,
    place: &Place<'_>,
    scored: &Scored<'_>,
    probability: f64,
) -> RankedCause {
    RankedCause {
        id: scored.cause.id.clone(),
        title: scored.cause.title.clone(),
        probability,
        mechanism: scored.cause.mechanism.clone(),
        supports: scored.supports.clone(),
        contradicts: scored.contradicts.clone(),
        remedy: remedy(facts, place, scored),
        sources: scored.cause.sources.clone(),
        ..RankedCause::default()
    }
}

/// Differences that no file knows, as candidates with what little probability is left.
fn unknown_causes(benign: &[BenignDifference], left: f64, most: usize) -> Vec<RankedCause> {
    let unknown: Vec<_> = benign.iter().filter(|i| !i.is_known).take(most).collect();
    let hit = |i: &BenignDifference| FactHit {
        host: i.host.clone(),
        key: i.key.clone(),
        value: i.value.clone(),
        peers: i.peers.clone(),
    };
    unknown
        .iter()
        .map(|i| RankedCause {
            id: RankedCause::id_of_unknown(&i.key),
            probability: left / unknown.len() as f64,
            supports: vec![Clue::Read(hit(i))],
            ..RankedCause::default()
        })
        .collect()
}
