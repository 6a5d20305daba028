//! Replicated storage below its ceiling becomes a finding with ranked causes, like a loss between hosts.

use linerate_knowledge::Knowledge;
use linerate_model::finding::{Finding, LossLocation};

use super::finding::ranked;
use super::{Subjects, SuspectContext, none_of_these, probabilities, rank};
use crate::calibrate::Calibration;
use crate::context::Context;
use crate::storage;

/// A finding for each replicated figure below its ceiling.
pub(crate) fn of_storage(
    context: &Context<'_>,
    knowledge: &Knowledge,
    calibration: &Calibration,
) -> Vec<Finding> {
    let rules = &context.facts.rules.merge;
    let (suspect, direction, layer, response) = storage::PLACE;
    storage::losses(context.facts.snapshot, &context.facts.rules.disks)
        .into_iter()
        .map(|loss| {
            let location = SuspectContext {
                suspect: &suspect,
                direction,
                layer,
                responses: &[response],
                shape: &loss.shape,
                subjects: &Subjects {
                    suspects: context.facts.snapshot.facts.keys().map(String::as_str).collect(),
                    ..Subjects::default()
                },
                has_alias: false,
            };
            let scored = rank(&context.facts, &location, knowledge);
            let scores: Vec<f64> = scored.iter().map(|s| s.score).collect();
            let each = scored.iter().map(|s| (s, s.score));
            let none = none_of_these(layer, each, &context.facts.rules.attribute);
            let shares = probabilities(&scores, none);
            let shares = calibration.cause.shares(&shares);
            let causes = scored
                .iter()
                .zip(shares)
                .take(rules.causes_max)
                .map(|(s, p)| ranked(&context.facts, &location, s, p))
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
