//! `node_timex_*`: whether the clock of a host is synchronised.

use linerate_model::fact::FactValue;

use super::super::answer::Series;
use super::super::family::Family;
use super::super::metric::{Row, Use};
use super::super::taken::Taken;

/// The family.
pub(super) struct Timex;

impl Family for Timex {
    fn name(&self) -> &'static str {
        "timex"
    }

    fn rows(&self) -> &'static [Row] {
        &[("node_timex_sync_status", "clock.synchronised", Use::Own, 1.0)]
    }

    fn take(&self, _: &str, series: &Series, taken: &mut Taken<'_>) {
        if let Some(status) = series.last() {
            taken.fact("clock.synchronised", FactValue::Flag(status > 0.0));
        }
    }
}
