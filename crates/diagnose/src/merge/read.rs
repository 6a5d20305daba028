//! Settings that are wrong where nothing was measured of them, as findings.

use std::collections::BTreeSet;

use linerate_knowledge::keys::device_of;
use linerate_knowledge::{FactTest, Knowledge};
use linerate_model::finding::{
    Direction, FactHit, Finding, LayerScope, LossLocation, Metric, RankedCause, Suspect,
};

use super::gathered::{Wrong, hosts, on_others};
use super::settings::wrong;
use crate::attribute::shape::Shape;
use crate::attribute::{Judged, SuspectContext, ranked, subjects};
use crate::calibrate::Calibration;
use crate::context::Context;

/// The settings that are wrong and explain no loss of `judged` nor of `storage`, a finding each.
pub(crate) fn of_settings(
    context: &Context<'_>,
    judged: &[Judged<'_, '_>],
    storage: &[Finding],
    knowledge: &Knowledge,
    calibration: &Calibration,
) -> Vec<Finding> {
    let rules = &context.facts.rules.merge;
    let mut named: BTreeSet<String> = BTreeSet::new();
    // What a measured loss comes from is reported there.
    let (of_drives, of_storage): (Vec<&Finding>, Vec<&Finding>) =
        storage.iter().partition(|f| drive(f).is_some());
    let of_storage =
        of_storage.into_iter().flat_map(|finding| &finding.causes).map(|cause| cause.id.as_str());
    let mut explained: BTreeSet<&str> = of_storage.collect();
    for j in judged.iter().filter(|j| !j.located.unconfirmed) {
        named.extend(j.subjects.suspects.iter().map(|s| (*s).to_owned()));
        explained.extend(j.causes.iter().take(rules.explained_max).map(|(s, _)| s.cause.id.as_str()));
        for (suspect, _, _) in &j.locations {
            match suspect {
                Suspect::Host(h) => drop(named.insert(h.clone())),
                Suspect::Group(g) => named.extend(context.facts.members(g).iter().map(|h| h.name.clone())),
                _ => {}
            }
        }
    }
    let all_named = judged.iter().any(|j| j.locations[0].0 == Suspect::All);
    let mut findings: Vec<Finding> = Vec::new();
    for wrong in wrong(context, knowledge, &|host| named.contains(host)) {
        // It is reported at the drives, and does not count as the finding of the host.
        if is_of_slow_drives(&wrong, &of_drives) {
            continue;
        }
        let id = wrong.scored.cause.id.as_str();
        let taken = match &wrong.suspect {
            Suspect::Host(_) if wrong.scored.cause.is_independent() => false,
            Suspect::Host(h) => !named.insert(h.clone()),
            Suspect::All => all_named,
            _ => false,
        };
        if !taken && !explained.contains(id) {
            let found = static_finding(context, &wrong, calibration);
            match findings.iter().position(|known| is_same_mismatch(known, &found)) {
                Some(at) => findings[at] = of_both(&findings[at], &found),
                None => findings.push(found),
            }
        }
    }
    findings
}

/// The drive that a finding is about.
fn drive(finding: &Finding) -> Option<(&str, &str)> {
    match &finding.places.first()?.suspect {
        Suspect::Drive(host, device) => Some((host, device)),
        _ => None,
    }
}

/// Whether all drives on which a setting is wrong were measured slow, and have it as a cause there.
fn is_of_slow_drives(wrong: &Wrong<'_>, of_drives: &[&Finding]) -> bool {
    let hits = &wrong.scored.hits;
    let is_explained = |hit: &FactHit| {
        let device = device_of(&hit.key).map(|device| device.replace('/', "."));
        let is_it = |finding: &&&Finding| {
            drive(finding).is_some_and(|(host, own)| host == hit.host && Some(own) == device.as_deref())
        };
        let of_hit = of_drives.iter().find(is_it);
        of_hit.is_some_and(|finding| finding.causes.iter().any(|c| c.id == wrong.scored.cause.id))
    };
    !hits.is_empty() && hits.iter().all(is_explained)
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

/// One finding of what differs between the hosts of both.
fn of_both(one: &Finding, other: &Finding) -> Finding {
    let mut both = one.clone();
    if let (Suspect::Mismatch(_, hosts), Suspect::Mismatch(_, more)) =
        (&mut both.places[0].suspect, &other.places[0].suspect)
    {
        hosts.extend(more.iter().cloned());
    }
    for (cause, of_other) in both.causes.iter_mut().zip(&other.causes) {
        cause.supports.extend(of_other.supports.iter().cloned());
    }
    both
}

fn static_finding(context: &Context<'_>, wrong: &Wrong<'_>, calibration: &Calibration) -> Finding {
    let (shape, subjects) = (Shape::default(), subjects(context, &wrong.suspect, &[]));
    let location = SuspectContext::read(&wrong.suspect, wrong.direction, wrong.layer, &shape, &subjects);
    let rules = &context.facts.rules.merge;
    let sure = if is_lone(context, wrong) { rules.standing_cause } else { rules.read_cause };
    let sure = calibration.cause.chance(sure);
    let mut cause = ranked(&context.facts, &location, &wrong.scored, sure);
    cause.supports.extend(on_others(wrong));
    let mut suspect = wrong.suspect.clone();
    if let Some(pattern) = &wrong.scored.cause.mismatch
        && let Some(hit) =
            wrong.scored.hits.iter().find(|h| linerate_knowledge::keys::pattern_fits(pattern, &h.key))
    {
        suspect = Suspect::Mismatch(hit.key.clone(), vec![hit.host.clone()]);
    }
    let direction = if matches!(suspect, Suspect::Mismatch(..)) { Direction::Both } else { wrong.direction };
    let read_on =
        (suspect == Suspect::All).then(|| (hosts(wrong).len(), context.facts.snapshot.inventory.hosts.len()));
    let at = LossLocation { suspect, direction, probability: calibration.place.chance(1.0) };
    let probability = calibration.finding.chance(rules.read_finding);
    Finding { read_on, ..only_read(at, wrong.layer, probability, vec![cause]) }
}

/// Whether a value that is wrong only where its equals have another one was read alone: of imported evidence
/// without an equal of the host or device, and without any figure of a disk. It may be so on purpose.
fn is_lone(context: &Context<'_>, wrong: &Wrong<'_>) -> bool {
    let snapshot = context.facts.snapshot;
    let compares = |test: &FactTest| test.unlike_peers && test.required;
    let is_alone = wrong.scored.hits.iter().all(|hit| hit.peers.is_none());
    let is_measured = !snapshot.storage.is_empty() || !snapshot.samples.is_empty();
    let indicators = &wrong.scored.cause.indicators;
    snapshot.imported.is_some() && is_alone && !is_measured && indicators.iter().any(compares)
}

/// A finding without a measured loss.
pub(super) fn only_read(
    at: LossLocation,
    layer: LayerScope,
    probability: f64,
    causes: Vec<RankedCause>,
) -> Finding {
    Finding {
        places: vec![at],
        layer,
        responses: vec![Metric::Setting],
        expected: 1.0,
        measured: 1.0,
        unit: Metric::Setting.unit(),
        probability,
        causes,
        ..Finding::default()
    }
}
