//! What a family of metrics gives: its name, its table, its queries.

use std::borrow::Cow;

use super::answer::Series;
use super::metric::{Metric, Row};
use super::range::StoredRange;
use super::taken::{Kept, Taken};

/// A family.
pub(super) trait Family: Sync {
    /// As node_exporter calls the collector.
    fn name(&self) -> &'static str;

    /// The metrics of a fixed name.
    fn rows(&self) -> &'static [Row] {
        &[]
    }

    /// What a metric of this name is; `None` where it is of no use.
    fn metric(&self, name: &str) -> Option<Metric> {
        let (_, key, what, factor) = self.rows().iter().find(|(known, ..)| *known == name)?;
        Some(Metric { key: Cow::Borrowed(*key), what: *what, factor: *factor })
    }

    /// The query for a metric.
    fn query(&self, name: &str) -> String {
        name.to_owned()
    }

    /// Takes a series of a metric that is [`super::metric::Use::Own`].
    fn take(&self, _name: &str, _series: &Series, _taken: &mut Taken<'_>) {}

    /// Facts that several metrics give together, once all are read.
    fn finish(&self, _kept: &mut Kept, _range: &StoredRange) {}
}
