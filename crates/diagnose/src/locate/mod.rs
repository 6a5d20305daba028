//! Stage 4, `locate`. Where the losses sit: the smallest set of suspects that explains the rows of all
//! responses.
//!
//! Rows come in, located faults with their alternatives go out. It knows no facts and no causes. The decision
//! is made in `search.rs`; what is intermittent is searched for beside it.

mod at_times;
mod column;
mod columns;
mod contended;
mod intermittent;
mod join;
mod located;
mod queue;
mod search;

pub(crate) use column::Column;
pub(crate) use columns::columns;
pub(crate) use located::Located;

use linerate_model::inventory::Inventory;

use crate::evidence::CellEvidence;
use crate::metrics::Row;
use crate::rules::Rules;

/// The suspects that explain the rows, strongest first: three searches, each of which may put one suspect in
/// the place of what those before it found. One path may be left then beside an intermittent one.
pub(crate) fn locate(
    inventory: &Inventory,
    cells: &[CellEvidence<'_>],
    columns: &[Column],
    rows: &[Row],
    rules: &Rules,
) -> Vec<Located> {
    let (found, accept) = search::search(inventory, cells, columns, rows, rules);
    let rates: Vec<&[f64]> = cells.iter().map(|c| c.rates.as_slice()).collect();
    let found = intermittent::instead(found, columns, rows, &rates, &rules.locate);
    let found = at_times::instead(found, columns, rows, cells, accept, rules);
    join::join(found, columns, rows, rules)
}
