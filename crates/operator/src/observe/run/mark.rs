//! Samples that count for nothing: a disturbance spoiled them, or the session with a host was cut.

use std::collections::BTreeSet;

use linerate_model::inventory::HostName;
use linerate_model::kind::TcpPlan;
use linerate_model::plan::Test;
use linerate_model::sample::{Outcome, Sample};

use crate::observe::disturb;

/// Marks a sample that a disturbance spoiled; says whether it did. `path_bps`: the rate of its path, where
/// that is known.
pub(super) fn mark(
    sample: &mut Sample,
    ended_ms: u64,
    spans: &[disturb::Span],
    path_bps: impl FnOnce(&Test) -> Option<f64>,
) -> bool {
    let reached = match &sample.outcome {
        Outcome::Measured(m) => m.throughput_bps,
        Outcome::NothingThrough { .. } => None,
        _ => return false,
    };
    let Some(span) = disturb::harm(spans, sample.start_ms, ended_ms, &sample.test.kind) else {
        return false;
    };
    let is_transfer = sample.test.kind.is::<TcpPlan>();
    let shown = reached.filter(|_| is_transfer).zip(path_bps(&sample.test));
    if shown.is_some_and(|(reached, path)| disturb::leaves(reached, path)) {
        return false;
    }
    sample.outcome = Outcome::Invalid { reason: format!("contended: {}", span.reason) };
    true
}

/// Marks a sample without a result as worthless when the session with one of its hosts was cut and is there
/// again; says whether it did.
pub(super) fn mark_cut(sample: &mut Sample, back: &BTreeSet<HostName>) -> bool {
    let cut = back.contains(&sample.test.from) || back.contains(&sample.test.to);
    let Outcome::Gap { reason } = &sample.outcome else { return false };
    if cut {
        sample.outcome = Outcome::Invalid { reason: reason.clone() };
    }
    cut
}
