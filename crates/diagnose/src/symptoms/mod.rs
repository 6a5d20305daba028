//! What imported transfers show by themselves, where no ceiling and no peers are known to compare them with:
//! two levels, a full CPU, one slow direction, a rate that no port has. The stages cover surveys.
//!
//! In: cells with their ceilings, tests of earlier states. Out: symptoms, the clearest first.

mod conditions;
mod course;
mod hosts;
mod patterns;
mod signs;

use linerate_model::finding::Cell;
use linerate_model::remark::Remark;
use linerate_model::symptom::Symptom;

use self::signs::{signs, symptom};
use crate::context::Context;

/// All symptoms as remarks.
pub(crate) fn remarks(context: &Context<'_>, report: &[Cell]) -> Vec<Remark> {
    let Some(imported) = &context.facts.snapshot.imported else { return Vec::new() };
    let rules = &context.facts.rules.symptoms;
    let mut all: Vec<Symptom> = Vec::new();
    for (cell, reported) in context.cells.iter().zip(report) {
        let of_cell = signs(cell, reported, &context.cells, rules, &context.facts.rules.ceilings);
        all.extend(of_cell.into_iter().map(|sign| symptom(cell.from, cell.to, cell.layer, sign)));
    }
    all.extend(hosts::local_mtus(context));
    all.extend(conditions::conditions(&imported.earlier, &context.cells));
    all.extend(conditions::windows(&imported.earlier, &context.cells, rules));
    all.sort_by_key(|symptom| symptom.sign.rank());
    // A matrix shows its own pattern.
    let most = if context.cells.len() > rules.cells_max { 0 } else { rules.named_max };
    let mut remarks: Vec<Remark> = all.into_iter().take(most).map(Remark::Symptom).collect();
    remarks.extend(patterns::blocks(context, rules));
    remarks.extend(patterns::shared(context, rules));
    remarks.extend(hosts::replicas(context));
    remarks.extend(hosts::nodes(context));
    remarks
}
