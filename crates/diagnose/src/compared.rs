//! What changed since an earlier state, beside a diagnosis: two snapshots come in, remarks and the proof of a
//! fix go into the diagnosis.

use linerate_model::difference::Difference;
use linerate_model::finding::Diagnosis;
use linerate_model::remark::Remark;
use linerate_model::snapshot::Snapshot;

use crate::diff;

/// Cells that are named beside the effect.
const CELLS_MAX: usize = 4;

/// Puts what changed in front of the remarks, and its proof into the summary.
pub fn add(before: &Snapshot, after: &Snapshot, diagnosis: &mut Diagnosis) {
    let mut changes = diff::runs(before, after);
    changes.retain(|difference| !matches!(difference, Difference::Fact { .. }));
    diagnosis.summary.fix = changes.first().and_then(|first| match first {
        Difference::Effect { proof, .. } => Some(*proof),
        _ => None,
    });
    // Of a few pairs each one is named.
    changes.truncate(usize::from(diagnosis.summary.fix.is_some()) + CELLS_MAX);
    diagnosis.remarks.splice(0..0, changes.into_iter().map(Remark::Compared));
}
