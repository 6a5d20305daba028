//! Puts a diagnosis together: cells, located losses, causes, wrong settings, storage. A snapshot and the
//! knowledge come in, the diagnosis goes out, without texts of its own.

use std::collections::BTreeSet;

use linerate_knowledge::Knowledge;
use linerate_model::finding::{
    Cell, Diagnosis, Direction, Finding, LossLocation, Metric, RankedCause, Suspect,
};
use linerate_model::inventory::HostName;
use linerate_model::plan::Test;
use linerate_model::remark::Remark;
use linerate_model::snapshot::Snapshot;

use crate::attribute::{Judged, Place, Scored, UNEXPLAINED, judge, remedy, subjects, unexplained};
use crate::calibrate::Calibration;
use crate::ceilings::Ports;
use crate::context::Context;
use crate::evidence::Facts;
use crate::locate::{columns, locate};
use crate::merge::Wrong;
use crate::merge::{adopt, consequences, join_same};
use crate::rules::Rules;
use crate::{ceilings, evidence, merge, metrics, next, remarks, storage};

/// The whole diagnosis.
pub(crate) fn diagnose(snapshot: &Snapshot, knowledge: &Knowledge, rules: &Rules) -> Diagnosis {
    let calibration = &Calibration::of(&rules.calibration, snapshot.imported.is_some());
    let (context, report) = context(snapshot, rules);
    let judged = located(&context, knowledge);
    let mut findings: Vec<Finding> = judged
        .iter()
        .filter(|j| !j.located.unconfirmed)
        .map(|j| finding(&context, j, knowledge, calibration))
        .collect();
    let storage = storage_findings(&context, knowledge, calibration);
    findings.extend(static_findings(&context, &judged, &storage, knowledge, calibration));
    adopt(&context, knowledge, &mut findings);
    join_same(&context, &mut findings);
    let consequences = consequences(knowledge, &mut findings);
    findings.extend(storage);
    findings.sort_by_key(rank_of);
    let remarks = consequences.into_iter().chain(remarks(&context, &report, &judged, &findings)).collect();
    Diagnosis {
        schema: linerate_model::SCHEMA,
        run: snapshot.id.clone(),
        summary: remarks::summary(&context, &report, &judged),
        remarks,
        advice: crate::advice::of(&context.facts, &context.cells, &report, &findings),
        findings,
        not_used: remarks::not_used(snapshot, &report, rules),
        blind: remarks::blind(snapshot, &context.cells, rules),
        cells: report,
        ..Diagnosis::default()
    }
}

/// Where nothing gets through first, then the other measured losses, then what made tests worthless, then
/// what was only read; among equals as they were found.
fn rank_of(finding: &Finding) -> u8 {
    if finding.nothing_gets_through() {
        0
    } else if finding.was_only_read() {
        3
    } else if finding.responses == [Metric::Setting] {
        2
    } else {
        1
    }
}

/// What is worth knowing and is no finding, from everywhere.
fn remarks(
    context: &Context<'_>,
    report: &[Cell],
    judged: &[Judged<'_, '_>],
    findings: &[Finding],
) -> Vec<Remark> {
    let mut remarks = remarks::of_tests(context, report, judged);
    let disks = storage::remarks(context.facts.snapshot, &context.facts.rules.disks);
    remarks.extend(disks.into_iter().map(Remark::Disk));
    remarks.extend(crate::together::remarks(&context.facts));
    remarks.extend(crate::together::sent_again(&context.facts, report, findings));
    remarks.extend(remarks::front_ends(&context.facts));
    remarks
}

/// Tests of the second stage, numbered.
pub(crate) fn second_stage(
    snapshot: &Snapshot,
    knowledge: &Knowledge,
    first_id: u32,
    rules: &Rules,
) -> Vec<Test> {
    let (context, _) = context(snapshot, rules);
    let mut tests: Vec<Test> = Vec::new();
    for judged in located(&context, knowledge) {
        next::add_new(&mut tests, next::tests(&context, &judged));
    }
    for (id, test) in (first_id..).zip(&mut tests) {
        test.id = id;
    }
    tests
}

fn context<'a>(snapshot: &'a Snapshot, rules: &'a Rules) -> (Context<'a>, Vec<Cell>) {
    let facts = Facts::new(snapshot, rules);
    let cells = evidence::collect(snapshot, rules);
    let ports = Ports::seen(&cells, &rules.ceilings);
    let (cells, ceilings) = ceilings::with_ceilings(&facts, cells, &ports);
    let report = ceilings::report(&cells, ceilings);
    let rows = metrics::rows(&facts, &cells, &report, &ports);
    (Context::new(facts, cells, rows, ports), report)
}

fn located<'a, 'k>(context: &Context<'a>, knowledge: &'k Knowledge) -> Vec<Judged<'a, 'k>> {
    let inventory = &context.facts.snapshot.inventory;
    let hypotheses = columns(inventory, &context.cells, &context.rows, context.facts.rules);
    locate(inventory, &context.cells, &hypotheses, &context.rows, context.facts.rules)
        .into_iter()
        .map(|l| judge(context, l, knowledge))
        .collect()
}

fn finding(
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
        has_alias: crate::attribute::alias(&context.facts, suspect).is_some(),
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
    let median = |pick: fn(&metrics::Row) -> f64| {
        crate::stats::median(&rows.iter().map(|r| pick(r)).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    judged.located.values.unwrap_or_else(|| [median(|r| r.expected), median(|r| r.measured)])
}

fn ranked(facts: &Facts<'_>, place: &Place<'_>, scored: &Scored<'_>, probability: f64) -> RankedCause {
    RankedCause {
        id: scored.cause.id.clone(),
        title: scored.cause.title.clone(),
        probability,
        mechanism: scored.cause.mechanism.clone(),
        evidence: scored.evidence.clone(),
        against: scored.against.clone(),
        remedy: remedy(facts, place, scored),
        sources: scored.cause.sources.clone(),
    }
}

/// Differences that no file knows, as candidates with what little probability is left.
fn unknown_causes(
    benign: &[linerate_model::finding::BenignDifference],
    left: f64,
    most: usize,
) -> Vec<RankedCause> {
    let unknown: Vec<_> = benign.iter().filter(|i| i.why == UNEXPLAINED).take(most).collect();
    unknown
        .iter()
        .map(|i| RankedCause {
            id: RankedCause::id_of_unknown(&i.key),
            title: format!("{} differs on {}", i.key, i.host),
            probability: left / unknown.len() as f64,
            mechanism: "No cause is known for this setting. It is listed because it differs from the peers."
                .to_owned(),
            evidence: vec![match &i.peers {
                Some(peers) => format!("{}: {} is {}, the others have {peers}", i.host, i.key, i.value),
                None => format!("{}: {} is {}, the others lack it", i.host, i.key, i.value),
            }],
            against: Vec::new(),
            remedy: None,
            sources: Vec::new(),
        })
        .collect()
}

fn static_findings(
    context: &Context<'_>,
    judged: &[Judged<'_, '_>],
    storage: &[Finding],
    knowledge: &Knowledge,
    calibration: &Calibration,
) -> Vec<Finding> {
    let rules = &context.facts.rules.merge;
    let mut named: BTreeSet<String> = BTreeSet::new();
    // What a measured loss comes from is told there.
    let of_storage = storage.iter().flat_map(|finding| &finding.causes).map(|cause| cause.id.as_str());
    let mut explained: BTreeSet<&str> = of_storage.collect();
    for j in judged.iter().filter(|j| !j.located.unconfirmed) {
        named.extend(j.subjects.suspects.iter().map(|s| (*s).to_owned()));
        explained.extend(j.causes.iter().take(rules.explained_max).map(|(s, _)| s.cause.id.as_str()));
        for (suspect, _, _) in &j.places {
            match suspect {
                Suspect::Host(h) => drop(named.insert(h.clone())),
                Suspect::Group(g) => named.extend(context.facts.members(g).iter().map(|h| h.name.clone())),
                _ => {}
            }
        }
    }
    let all_named = judged.iter().any(|j| j.places[0].0 == Suspect::All);
    let mut findings: Vec<Finding> = Vec::new();
    for wrong in merge::wrong(context, knowledge, &|host| named.contains(host)) {
        let id = wrong.scored.cause.id.as_str();
        let taken = match &wrong.suspect {
            Suspect::Host(_) if wrong.scored.cause.is_independent() => false,
            Suspect::Host(h) => !named.insert(h.clone()),
            Suspect::All => all_named,
            _ => false,
        };
        if !taken && !explained.contains(id) {
            let found = static_finding(context, &wrong, calibration);
            match findings.iter_mut().find(|known| is_same_mismatch(known, &found)) {
                Some(known) => join_mismatch(known, found),
                None => findings.push(found),
            }
        }
    }
    findings
}

/// Whether both say that the same thing differs between hosts: it takes two to differ.
fn is_same_mismatch(one: &Finding, other: &Finding) -> bool {
    let what = |finding: &Finding| match &finding.places.first()?.suspect {
        Suspect::Mismatch(key, _) => {
            Some((finding.causes.first()?.id.clone(), key.rsplit('.').next().map(str::to_owned)))
        }
        _ => None,
    };
    what(one).is_some_and(|what_one| what(other) == Some(what_one))
}

fn join_mismatch(known: &mut Finding, other: Finding) {
    let hosts_of = |finding: &Finding| match &finding.places[0].suspect {
        Suspect::Mismatch(_, hosts) => hosts.clone(),
        _ => Vec::new(),
    };
    let more = hosts_of(&other);
    if let Suspect::Mismatch(_, hosts) = &mut known.places[0].suspect {
        hosts.extend(more);
    }
    for (cause, of_other) in known.causes.iter_mut().zip(other.causes) {
        cause.evidence.extend(of_other.evidence);
    }
}

fn static_finding(context: &Context<'_>, wrong: &Wrong<'_>, calibration: &Calibration) -> Finding {
    let place = Place {
        suspect: &wrong.suspect,
        direction: wrong.direction,
        layer: wrong.layer,
        responses: &[Metric::Setting],
        shape: &crate::attribute::shape::Shape::default(),
        subjects: &subjects(context, &wrong.suspect, &[]),
        has_alias: false,
    };
    let rules = &context.facts.rules.merge;
    let sure = calibration.cause.chance(rules.read_cause);
    let mut cause = ranked(&context.facts, &place, &wrong.scored, sure);
    cause.evidence.extend(merge::on_others(wrong));
    let mut suspect = wrong.suspect.clone();
    if let Some(pattern) = &wrong.scored.cause.mismatch
        && let Some(hit) =
            wrong.scored.hits.iter().find(|h| linerate_knowledge::keys::pattern_fits(pattern, &h.key))
    {
        suspect = Suspect::Mismatch(hit.key.clone(), vec![hit.host.clone()]);
    }
    let direction = if matches!(suspect, Suspect::Mismatch(..)) { Direction::Both } else { wrong.direction };
    let read_on = (suspect == Suspect::All)
        .then(|| (merge::hosts(wrong).len(), context.facts.snapshot.inventory.hosts.len()));
    Finding {
        places: vec![LossLocation { suspect, direction, probability: calibration.place.chance(1.0) }],
        layer: wrong.layer,
        responses: vec![Metric::Setting],
        expected: 1.0,
        measured: 1.0,
        unit: Metric::Setting.unit(),
        probability: calibration.finding.chance(rules.read_finding),
        causes: vec![cause],
        read_on,
        ..Finding::default()
    }
}

fn storage_findings(context: &Context<'_>, knowledge: &Knowledge, calibration: &Calibration) -> Vec<Finding> {
    let rules = &context.facts.rules.merge;
    let (suspect, direction, layer, response) = storage::PLACE;
    storage::losses(context.facts.snapshot, &context.facts.rules.disks)
        .into_iter()
        .map(|loss| {
            let place = Place {
                suspect: &suspect,
                direction,
                layer,
                responses: &[response],
                shape: &loss.shape,
                subjects: &crate::attribute::Subjects {
                    suspects: context.facts.snapshot.facts.keys().map(String::as_str).collect(),
                    ..crate::attribute::Subjects::default()
                },
                has_alias: false,
            };
            let scored = crate::attribute::rank(&context.facts, &place, knowledge);
            let scores: Vec<f64> = scored.iter().map(|s| s.score).collect();
            let shares = crate::attribute::probabilities(&scores, &context.facts.rules.attribute);
            let shares = calibration.cause.shares(&shares);
            let causes = scored
                .iter()
                .zip(shares)
                .take(rules.causes_max)
                .map(|(s, p)| {
                    let mut cause = ranked(&context.facts, &place, s, p);
                    cause.evidence.extend(loss.evidence.iter().cloned());
                    cause
                })
                .collect();
            Finding {
                places: vec![LossLocation { suspect: suspect.clone(), direction, probability: 1.0 }],
                layer,
                responses: vec![response],
                expected: loss.expected,
                measured: loss.measured,
                unit: response.unit(),
                probability: rules.storage_finding,
                causes,
                replica: Some(loss.of),
                ..Finding::default()
            }
        })
        .collect()
}
