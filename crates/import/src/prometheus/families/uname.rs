//! `node_uname_info`: the name of a host, and its kernel.

use super::super::answer::Series;
use super::super::family::Family;
use super::super::metric::{Row, Use};
use super::super::taken::Taken;

/// The family.
pub(super) struct Uname;

impl Family for Uname {
    fn name(&self) -> &'static str {
        "uname"
    }

    fn rows(&self) -> &'static [Row] {
        &[("node_uname_info", "kernel.release", Use::Own, 1.0)]
    }

    fn take(&self, _: &str, series: &Series, taken: &mut Taken<'_>) {
        taken.text("kernel.release", series.label("release"));
        taken.text("kernel.version", series.label("version"));
    }
}
