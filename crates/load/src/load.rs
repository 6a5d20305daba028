//! What every load implements.
//!
//! What comes in: a job and its plan. What goes out: a report, filled as far as the load came. The list is
//! [`crate::LOADS`].

use linerate_model::kind::TestPlan;
use linerate_model::load::{LoadReport, Role};

use crate::job::{Job, LoadError};

/// A kind of traffic.
pub trait Load: Sync {
    /// What it is asked for.
    type Plan: TestPlan;

    /// Runs one end and fills the report; what it filled before an error stays.
    fn run(&self, job: &Job<'_>, plan: &Self::Plan, report: &mut LoadReport) -> Result<(), LoadError>;
}

/// A load of any kind.
pub trait AnyLoad: Sync {
    /// Name of its kind.
    fn name(&self) -> &'static str;

    /// Runs one end of a job of its kind whose plan is within its limits.
    fn run_checked(&self, job: &Job<'_>, report: &mut LoadReport) -> Result<(), LoadError>;
}

impl<L: Load> AnyLoad for L {
    fn name(&self) -> &'static str {
        L::Plan::name()
    }

    fn run_checked(&self, job: &Job<'_>, report: &mut LoadReport) -> Result<(), LoadError> {
        let name = self.name();
        let plan = job.spec.kind.get::<L::Plan>().ok_or(LoadError::Unknown { name })?;
        if plan.has_one_end() && job.spec.role == Role::Receiver {
            let source = std::io::Error::other(format!("the load `{name}` has no receiver"));
            return Err(LoadError::Io { what: "receive", source });
        }
        plan.check()?;
        self.run(job, plan, report)
    }
}
