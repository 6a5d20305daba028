//! Judging a row with `events` and `traffic` by its growth.

use super::super::growth::{Growth, GrowthRule};
use super::super::kind::{Observation, Row};
use super::super::past::Past;
use super::super::rule::Moment;

/// Growth of a row with the observation of it; `Err` where there is nothing before it to compare with.
pub(super) fn judge(
    row: &Row,
    past: &mut Past,
    now: Moment,
    rule: GrowthRule,
    what: &str,
) -> Result<(Growth, Observation), Observation> {
    let (Some(events), Some(traffic)) = (row.get("events"), row.get("traffic")) else {
        return Err(Observation::unknown(row, "no counter"));
    };
    let growth = past
        .series(&row.subject)
        .add(now.up_s, events, traffic, rule)
        .ok_or_else(|| Observation::good(row, "first value"))?;
    let usual = growth.expected.map_or(String::new(), |mean| format!(", usual {mean:.0}"));
    let text = format!("{:.0} {what} in {} s{usual}", growth.events, growth.over_s);
    let seen = if growth.is_bad { Observation::bad(row, text) } else { Observation::good(row, text) };
    Ok((growth, seen))
}
