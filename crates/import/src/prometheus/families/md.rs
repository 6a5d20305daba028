//! `node_md_*`: arrays of md, and how many of their drives failed.

use linerate_model::fact::FactValue;

use super::super::answer::Series;
use super::super::family::Family;
use super::super::metric::{Row, Use};
use super::super::taken::Taken;

/// The family.
pub(super) struct Md;

impl Family for Md {
    fn name(&self) -> &'static str {
        "mdadm"
    }

    fn rows(&self) -> &'static [Row] {
        &[("node_md_disks", "disk.{device}.md_degraded", Use::Own, 1.0)]
    }

    fn query(&self, name: &str) -> String {
        format!("{name}{{state=\"failed\"}}")
    }

    fn take(&self, _: &str, series: &Series, taken: &mut Taken<'_>) {
        if let Some(failed) = series.last() {
            let key = format!("disk.{}.md_degraded", series.label("device").replace('.', "/"));
            taken.fact(&key, FactValue::Int(failed as i64));
        }
    }
}
