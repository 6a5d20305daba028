//! Stage 5, `judge`: from a suspect with its features to a ranked list of causes, and the fix of each.
//!
//! Prior, response, suspect, layer, measured shape and facts each add log odds; a softmax makes them
//! comparable. A cause of which required evidence is missing does not appear. Differences that no file knows
//! compete with the causes. "None of these" has a share of its own: it explains where the loss is as well as
//! the best cause does, and no cause without a reading of its own is more probable.

mod differences;
mod drives;
mod ends;
mod facts;
mod finding;
mod judged;
mod policy;
mod population;
mod remedies;
mod scored;
pub(crate) mod shape;
pub(crate) mod standing;
mod storage;
mod suspect_context;

pub(crate) use differences::{IDENTITY, unexplained};
pub(crate) use drives::of_drives;
pub(crate) use facts::{fits, is_excluded, possible};
pub(crate) use finding::{finding, ranked};
pub(crate) use judged::{Judged, alias, judge, subjects};
pub(crate) use population::Peers;
use remedies::remedy;
pub(crate) use scored::{Scored, of_hook};
pub(crate) use storage::of_storage;
pub(crate) use suspect_context::{Subjects, SuspectContext};

use linerate_knowledge::{Cause, Knowledge, LayerFit, Prior, SuspectKind};
use linerate_model::finding::LayerScope;

use crate::evidence::Facts;
use crate::rules::AttributeRules;

/// Log odds of the three grades of suspicion.
pub(crate) fn prior(prior: Prior, rules: &AttributeRules) -> f64 {
    match prior {
        Prior::High => 0.0,
        Prior::Medium => rules.prior_medium,
        Prior::Low => rules.prior_low,
    }
}

/// Log odds that a cause loses because nobody looked.
fn unseen(facts: &Facts<'_>, location: &SuspectContext<'_>, scored: &Scored<'_>) -> f64 {
    let cause = scored.cause;
    let rules = &facts.rules.attribute;
    let is_unread = || {
        let mut keys = cause.indicators.iter().flat_map(|test| &test.keys);
        let hosts = facts.snapshot.facts.keys();
        !keys.any(|key| hosts.clone().any(|host| !facts.matching(host, key).is_empty()))
    };
    match (facts.snapshot.imported.is_some(), scored.supports.is_empty()) {
        (true, true) => rules.unseen,
        (true, false) if !cause.indicators.is_empty() && scored.hits.is_empty() && is_unread() => {
            rules.unread
        }
        // A survey looks at all that it can; of a recorded case somebody wrote down what he had.
        (false, true) if cause.indicators.is_empty() => {
            let mut telling = cause.shape.iter().filter(|test| test.weight > 0.0).peekable();
            let any = telling.peek().is_some();
            let none = telling.all(|test| location.shape.get(&test.value).is_none());
            if any && none { rules.unseen } else { 0.0 }
        }
        _ => 0.0,
    }
}

/// All causes that are possible at a location, best first.
pub(crate) fn rank<'k>(
    facts: &Facts<'_>,
    location: &SuspectContext<'_>,
    knowledge: &'k Knowledge,
) -> Vec<Scored<'k>> {
    let mut scored: Vec<Scored<'k>> =
        knowledge.causes().filter_map(|cause| score(facts, location, cause)).collect();
    scored.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.cause.id.cmp(&b.cause.id)));
    scored
}

/// Score of one cause at a location; `None` when it is impossible there.
pub(crate) fn score<'k>(
    facts: &Facts<'_>,
    location: &SuspectContext<'_>,
    cause: &'k Cause,
) -> Option<Scored<'k>> {
    let rules = &facts.rules.attribute;
    let direct = suspect_fit(location, cause, rules);
    let (suspect_score, native) = direct.or_else(|| half_fit(location, cause, rules))?;
    let mut scored = Scored {
        cause,
        score: prior(cause.prior, rules)
            + suspect_score
            + response_fit(location, cause, rules)?
            + layer_fit(location, cause, rules)?,
        supports: Vec::new(),
        contradicts: Vec::new(),
        hits: Vec::new(),
        is_read: false,
        native,
    };
    let stands = standing::judge(facts, location, cause, &mut scored);
    shape::judge(location.shape, cause, stands, &mut scored)?;
    facts::judge(facts, location, cause, &mut scored)?;
    // What sits in one direction harms both only by what it was read to do, to acknowledgements among others.
    if direct.is_none() && scored.hits.is_empty() {
        return None;
    }
    scored.score -= unseen(facts, location, &scored);
    Some(scored)
}

fn suspect_fit(
    location: &SuspectContext<'_>,
    cause: &Cause,
    rules: &AttributeRules,
) -> Option<(f64, SuspectKind)> {
    let kind = SuspectKind::of(location.suspect, location.direction);
    let kinds = &cause.symptom.suspects;
    let has = |k: SuspectKind| kinds.contains(&k);
    if has(kind) {
        return Some((0.0, kind));
    }
    if location.has_alias && has(kind.alias()) {
        return Some((rules.alias, kind.alias()));
    }
    // One direction may be too weak to be seen, or seen although only the other is at fault.
    if has(kind.widened()) {
        return Some((rules.widened, kind.widened()));
    }
    if location.has_alias && has(kind.alias().widened()) {
        return Some((rules.alias_widened, kind.alias().widened()));
    }
    // With two hosts nothing tells the sender, the receiver and the path apart.
    (kind == SuspectKind::Pair && location.shape.two_hosts)
        .then(|| {
            kinds
                .iter()
                .find(|k| matches!(k, SuspectKind::HostRx | SuspectKind::HostTx | SuspectKind::HostBoth))
        })
        .flatten()
        .map(|k| (rules.two_hosts_end, *k))
}

/// A cause of one direction where both suffer.
fn half_fit(
    location: &SuspectContext<'_>,
    cause: &Cause,
    rules: &AttributeRules,
) -> Option<(f64, SuspectKind)> {
    let kind = SuspectKind::of(location.suspect, location.direction);
    let halves = [
        (SuspectKind::HostBoth, [SuspectKind::HostTx, SuspectKind::HostRx]),
        (SuspectKind::GroupBoth, [SuspectKind::GroupTx, SuspectKind::GroupRx]),
    ];
    let fits = |whole: SuspectKind| whole == kind || (location.has_alias && whole.alias() == kind);
    let mut parts = halves.into_iter().filter(|(whole, _)| fits(*whole)).flat_map(|(_, parts)| parts);
    parts.find(|part| cause.symptom.suspects.contains(part)).map(|part| (rules.half, part))
}

fn response_fit(location: &SuspectContext<'_>, cause: &Cause, rules: &AttributeRules) -> Option<f64> {
    let at = location.responses.iter().position(|r| cause.symptom.responses.contains(r))?;
    Some(if at == 0 { rules.first_metric } else { 0.0 })
}

fn layer_fit(location: &SuspectContext<'_>, cause: &Cause, rules: &AttributeRules) -> Option<f64> {
    use linerate_model::inventory::Layer::{Overlay, Underlay};
    match (cause.symptom.layers, location.layer) {
        (LayerFit::Either, _) | (LayerFit::Any, LayerScope::Any) => Some(0.0),
        (LayerFit::OverlayOnly, LayerScope::Only(Overlay))
        | (LayerFit::UnderlayOnly, LayerScope::Only(Underlay)) => Some(rules.layer_match),
        // The other layer may have been tested while all was fine.
        (LayerFit::Any, LayerScope::Only(_)) if location.shape.intermittent => Some(0.0),
        // What sits in a cable, a port or an uplink harms every layer that goes over it.
        (LayerFit::OverlayOnly, LayerScope::Only(Underlay))
        | (LayerFit::UnderlayOnly, LayerScope::Only(Overlay))
        | (LayerFit::Any, LayerScope::Only(_)) => None,
        // Where only the overlay was measured, nothing speaks against "only the overlay".
        (LayerFit::OverlayOnly, LayerScope::Any) => {
            location.shape.only_layer_may_be(Overlay).then_some(rules.layer_alone)
        }
        (LayerFit::UnderlayOnly, LayerScope::Any) => {
            location.shape.only_layer_may_be(Underlay).then_some(rules.layer_alone)
        }
    }
}

/// Log odds of the best fit of a cause to the metrics and layers of a loss.
fn best_fit(layer: LayerScope, rules: &AttributeRules) -> f64 {
    rules.first_metric + if layer == LayerScope::Any { 0.0 } else { rules.layer_match }
}

/// Log odds of "none of these": a cause that no file knows fits the loss as well as the best one, and a cause
/// without a reading of its own is no more probable.
pub(crate) fn none_of_these<'s, 'k: 's>(
    layer: LayerScope,
    scored: impl Iterator<Item = (&'s Scored<'k>, f64)>,
    rules: &AttributeRules,
) -> f64 {
    let unread = scored.filter(|(s, _)| !s.is_read).map(|(_, score)| score);
    unread.fold(rules.unknown + best_fit(layer, rules), f64::max)
}

/// Probabilities of scores: a softmax in which none of them also has a share.
pub(crate) fn probabilities(scores: &[f64], none: f64) -> Vec<f64> {
    let top = scores.iter().copied().fold(none, f64::max);
    let total: f64 = scores.iter().map(|s| (s - top).exp()).sum::<f64>() + (none - top).exp();
    scores.iter().map(|s| (s - top).exp() / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    #[test]
    fn without_a_reading_no_cause_is_more_probable_than_none_of_these() {
        let (knowledge, rules) = (Knowledge::builtin().unwrap(), &Rules::DEFAULT.attribute);
        let cause = knowledge.get("packet-loss").unwrap();
        let scored = |is_read| Scored {
            cause,
            score: 9.0,
            supports: Vec::new(),
            contradicts: Vec::new(),
            hits: Vec::new(),
            is_read,
            native: SuspectKind::HostRx,
        };
        let share = |is_read| {
            let scored = scored(is_read);
            let none = none_of_these(LayerScope::Any, [(&scored, scored.score)].into_iter(), rules);
            probabilities(&[scored.score], none)[0]
        };
        assert!((share(false) - 0.5).abs() < 1e-9);
        assert!(share(true) > 0.99);
    }
}
