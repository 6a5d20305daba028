//! Which nodes are requested from Slurm, and for how long.

use std::time::Duration;

use linerate_model::inventory::SlurmSteps;

/// Longest job of a command that says nothing about its time.
pub const LIMIT: Duration = Duration::from_secs(30 * 60);

/// What is requested from Slurm.
#[derive(Debug, Clone)]
pub struct NodeRequest {
    /// Partition; Slurm's default when `None`.
    pub partition: Option<String>,
    /// Number of nodes.
    pub count: Option<u32>,
    /// Names of nodes as Slurm writes them, such as `n[1-4,7]`.
    pub list: Option<String>,
    /// How the node programs are started; by the number of nodes when `None`.
    pub steps: Option<SlurmSteps>,
    /// The job ends then, whatever happens.
    pub limit: Duration,
}
