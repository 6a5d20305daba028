//! A located loss with its ranked causes becomes a finding: what was lost where, what explains it and how
//! surely, what else differs there.

use std::collections::BTreeSet;

use linerate_model::finding::{BenignDifference, Clue, FactHit, Finding, LossLocation, Metric, RankedCause};
use linerate_model::inventory::HostName;

use super::{Judged, Scored, SuspectContext, alias, remedy};
use crate::calibrate::Calibration;
use crate::context::Context;
use crate::evidence::Facts;
use crate::metrics::{Row, effect, singles};
use crate::next;

/// The finding of one loss.
pub(crate) fn finding(context: &Context<'_>, judged: &Judged<'_, '_>, calibration: &Calibration) -> Finding {
    let rules = &context.facts.rules.merge;
    let primary = judged.responses.first().copied().unwrap_or_default();
    let (suspect, direction, _) = &judged.locations[0];
    let location = SuspectContext {
        suspect,
        direction: *direction,
        layer: judged.layer,
        responses: &judged.responses,
        shape: &judged.shape,
        subjects: &judged.subjects,
        has_alias: alias(&context.facts, suspect).is_some(),
    };
    let (mut causes, unknown) = all_causes(context, judged, &location, calibration);
    causes.extend(unknown);
    causes.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    let [expected, measured] = values(context, judged, primary);
    let mut affected: Vec<(HostName, HostName)> = Vec::new();
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    for row in &judged.located.rows {
        let cell = &context.cells[context.rows[*row].cell];
        if seen.insert((cell.from, cell.to)) {
            affected.push((cell.from.to_owned(), cell.to.to_owned()));
        }
    }
    let rests_on = tests(context, judged, primary);
    let mut finding = Finding {
        places: judged
            .locations
            .iter()
            .zip(calibration.place.shares(&judged.locations.iter().map(|(_, _, p)| *p).collect::<Vec<_>>()))
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
        probability: calibration.finding.chance(1.0 / (1.0 + (-certainty(context, judged, rests_on)).exp())),
        rests_on: Some(rests_on),
        next: next::next(context, judged),
        decide_tests: next::tests(context, judged),
        causes,
        benign: judged.differences.iter().map(|(difference, _)| difference.clone()).collect(),
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

/// The known causes, and the differences that no file knows.
fn all_causes(
    context: &Context<'_>,
    judged: &Judged<'_, '_>,
    location: &SuspectContext<'_>,
    calibration: &Calibration,
) -> (Vec<RankedCause>, Vec<RankedCause>) {
    let rules = &context.facts.rules.merge;
    let known = judged.causes.iter().map(|(_, p)| *p);
    let raw: Vec<f64> = known.chain(judged.differences.iter().map(|(_, p)| *p)).collect();
    let shares = calibration.cause.shares(&raw);
    let (of_causes, of_differences) = shares.split_at(judged.causes.len());
    let is_listed = |p: &f64| *p >= rules.listed_min;
    let causes = (judged.causes.iter().zip(of_causes))
        .filter(|(_, p)| is_listed(p))
        .take(rules.causes_max)
        .map(|((scored, _), p)| ranked(&context.facts, location, scored, *p))
        .collect();
    let unknown = (judged.differences.iter().zip(of_differences))
        .filter(|(_, p)| is_listed(p))
        .take(rules.unknown_max)
        .map(|((difference, _), p)| unknown_cause(difference, *p))
        .collect();
    (causes, unknown)
}

/// Valid tests of a location: how many are bad, and how many there are.
fn tests(context: &Context<'_>, judged: &Judged<'_, '_>, response: Metric) -> (usize, usize) {
    let covered = judged.located.column.cells();
    let (mut bad, mut valid) = (0, 0);
    for row in context.rows.iter().filter(|r| r.response == response && covered.contains(&r.cell)) {
        let cell = &context.cells[row.cell];
        for single in singles(response, cell) {
            let off = effect(response, single.value, row.expected, &cell.rules.metrics);
            valid += 1;
            bad += usize::from(off >= row.effect_min);
        }
    }
    // A value that no single test shows rests on its paths.
    if bad == 0 { (judged.located.rows.len(), covered.len()) } else { (bad, valid) }
}

/// Log odds of a finding: no more than its bad tests can show, and less where most valid tests there are
/// good.
fn certainty(context: &Context<'_>, judged: &Judged<'_, '_>, (bad, valid): (usize, usize)) -> f64 {
    let (bad, valid) = (bad as f64, valid as f64);
    let most = context.facts.rules.merge.test_odds * bad;
    judged.located.score.min(most) + (bad / valid.max(bad).max(1.0)).max(f64::MIN_POSITIVE).ln()
}

/// What is expected at a location and what was measured there.
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
    location: &SuspectContext<'_>,
    scored: &Scored<'_>,
    probability: f64,
) -> RankedCause {
    RankedCause {
        id: scored.cause.id.clone(),
        title: scored.cause.title.clone(),
        short: scored.cause.short.clone(),
        probability,
        mechanism: scored.cause.mechanism.clone(),
        supports: scored.supports.clone(),
        contradicts: scored.contradicts.clone(),
        remedy: remedy(facts, location, scored),
        sources: scored.cause.sources.clone(),
        ..RankedCause::default()
    }
}

/// A difference that no file knows, as a cause.
fn unknown_cause(difference: &BenignDifference, probability: f64) -> RankedCause {
    let hit = FactHit {
        host: difference.host.clone(),
        key: difference.key.clone(),
        value: difference.value.clone(),
        peers: difference.peers.clone(),
    };
    RankedCause {
        id: RankedCause::id_of_unknown(&difference.key),
        probability,
        supports: vec![Clue::Read(hit)],
        ..RankedCause::default()
    }
}
