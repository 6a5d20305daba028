//! What every load implements.
//!
//! What comes in: a job. What goes out: a report, filled as far as the load came. The list of all loads is
//! [`crate::LOADS`].

use linerate_model::load::LoadReport;

use crate::job::{Job, LoadError};

/// A kind of traffic.
pub trait Load: Sync {
    /// Name of the kind in [`linerate_model::load::TestKind::name`].
    fn name(&self) -> &'static str;

    /// Runs one end and fills the report; what it filled before an error stays.
    fn run(&self, job: &Job<'_>, report: &mut LoadReport) -> Result<(), LoadError>;
}
