//! Stage 6: what is one finding. Wrong settings join the losses that they explain, a path joins its host,
//! what follows from another finding becomes a remark, and what is wrong on most hosts is one finding.

mod adopt;
mod gathered;
mod read;
mod settings;
mod standing;

pub(crate) use read::of_settings;
pub(crate) use standing::of_standing;

use linerate_knowledge::Knowledge;
use linerate_model::finding::{Finding, Metric};
use linerate_model::remark::Remark;

use crate::context::Context;

/// Losses, wrong settings and storage as the findings that remain, in the order of their weight, and the
/// remarks that others became.
pub(crate) fn merge(
    context: &Context<'_>,
    knowledge: &Knowledge,
    losses: Vec<Finding>,
    settings: Vec<Finding>,
    storage: Vec<Finding>,
) -> (Vec<Finding>, Vec<Remark>) {
    let adopted = adopt::adopt(context, knowledge, losses.into_iter().chain(settings).collect());
    let joined = adopt::join_same(context, adopted);
    let (mut findings, remarks) = adopt::consequences(knowledge, joined);
    findings.extend(storage);
    findings.sort_by_key(rank_of);
    (findings, remarks)
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
