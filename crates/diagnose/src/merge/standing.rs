//! Findings of hosts with nothing but counts since boot and logs, one for each host.
//!
//! In: the causes that left something behind there, the findings so far. Out: findings that are possible,
//! not certain: no test measured that the harm is done now.

use linerate_knowledge::{Cause, Knowledge, SuspectKind};
use linerate_model::finding::{Direction, Finding, LayerScope, LossLocation, Suspect};

use super::read::only_read;
use crate::attribute::shape::Shape;
use crate::attribute::{Scored, SuspectContext, is_excluded, prior, ranked, standing, subjects};
use crate::calibrate::Calibration;
use crate::context::Context;

/// A finding for each host that no other finding names.
pub(crate) fn of_standing(
    context: &Context<'_>,
    findings: &[Finding],
    knowledge: &Knowledge,
    calibration: &Calibration,
) -> Vec<Finding> {
    if context.facts.snapshot.imported.is_none() {
        return Vec::new();
    }
    let is_named = |host: &str| {
        let at = |at: &LossLocation| match &at.suspect {
            Suspect::Host(name) => name == host,
            Suspect::Pair(a, b) => a == host || b == host,
            Suspect::All => true,
            _ => false,
        };
        findings.iter().any(|finding| finding.places.iter().any(at))
    };
    let hosts = context.facts.snapshot.facts.keys().filter(|host| !is_named(host));
    hosts.filter_map(|host| of_host(context, host, knowledge, calibration)).collect()
}

fn of_host(
    context: &Context<'_>,
    host: &str,
    knowledge: &Knowledge,
    calibration: &Calibration,
) -> Option<Finding> {
    let suspect = Suspect::Host(host.to_owned());
    let (shape, subjects) = (Shape::default(), subjects(context, &suspect, &[]));
    let (direction, layer) = (Direction::Both, LayerScope::Any);
    let location = SuspectContext::read(&suspect, direction, layer, &shape, &subjects);
    let possible = knowledge.causes().filter(|cause| !is_excluded(&context.facts, &location, cause));
    let mut all: Vec<Scored<'_>> = possible.filter_map(|cause| scored(context, host, cause)).collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.cause.id.cmp(&b.cause.id)));
    all.truncate(context.facts.rules.merge.causes_max);
    let most: f64 = all.iter().map(|s| s.score.exp()).sum();
    let rules = &context.facts.rules.merge;
    let share = |s: &Scored<'_>| calibration.cause.chance(rules.standing_cause) * s.score.exp() / most;
    let causes: Vec<_> = all.iter().map(|s| ranked(&context.facts, &location, s, share(s))).collect();
    let at = LossLocation { suspect: suspect.clone(), direction, probability: calibration.place.chance(1.0) };
    let probability = calibration.finding.chance(rules.standing_finding);
    (!causes.is_empty()).then(|| only_read(at, layer, probability, causes))
}

/// A cause that left something behind at a host.
fn scored<'k>(context: &Context<'_>, host: &str, cause: &'k Cause) -> Option<Scored<'k>> {
    let supports = standing::clues(&context.facts, host, cause);
    let rules = &context.facts.rules.attribute;
    // Two traces of one cause are stronger than one.
    let score = prior(cause.prior, rules) + supports.len() as f64;
    (!supports.is_empty()).then(|| Scored {
        cause,
        score,
        supports,
        contradicts: Vec::new(),
        hits: Vec::new(),
        is_read: true,
        native: SuspectKind::HostBoth,
    })
}
