//! Small robust statistics: medians, Student-t likelihood, seeded bootstrap, two-level clustering, change
//! points.
//! Numbers in, numbers out; it knows nothing of networks.

mod bootstrap;
mod change_points;
mod levels;
mod robust;

pub use bootstrap::{Rng, median_ratio_interval};
pub use change_points::{ChangePoint, Steps, change_points};
pub use levels::{TwoLevels, floored, two_levels};
pub use robust::{mad, mean, median, quantile, student_t_log_density};
