//! `--via slurm`: the hosts are nodes that Slurm gives.

use std::path::PathBuf;
use std::time::Duration;

use linerate_model::inventory::{Inventory, SlurmSteps};
use linerate_model::units::counted;

use super::{open, out};
use linerate_fleet::slurm::{self, Allocation, NodeRequest};

/// Time that a job has beyond the survey in it: copying, set-up, the last words.
const AROUND: Duration = Duration::from_secs(300);

/// Where the options stand in the help. Each says so, because a heading for all of them would take what
/// follows as well.
const HEADING: &str = "Hosts from Slurm";

/// Transport to the hosts without an inventory.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Via {
    /// Measure nodes of a Slurm cluster: those of the surrounding job, or of a new job that ends with the
    /// command
    #[arg(id = "via", long = "via", value_name = "WAY", value_enum, help_heading = HEADING)]
    way: Option<Way>,
    /// Slurm partition
    #[arg(short, long, requires = "via", help_heading = HEADING)]
    partition: Option<String>,
    /// Number of nodes
    #[arg(short = 'N', long, value_name = "NUMBER", requires = "via", help_heading = HEADING)]
    nodes: Option<u32>,
    /// Node list, e.g. n[1-4,7]
    #[arg(long, value_name = "NODES", requires = "via", help_heading = HEADING, hide_short_help = true)]
    pub(super) nodelist: Option<String>,
    /// Start the node programs with one job step per node (each), or with one step for all (one), whose node
    /// programs connect back to this machine; defaults to `one` from 256 nodes on, else to `each`
    #[arg(long, value_name = "STEPS", value_enum, requires = "via", help_heading = HEADING, hide_short_help = true)]
    slurm_steps: Option<Steps>,
}

impl Via {
    /// Whether a cluster is to give the hosts.
    pub(super) fn is_asked(&self) -> bool {
        self.way.is_some()
    }
}

/// Methods to obtain hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Way {
    // Without a text of its own, which would make the help twice as long.
    Slurm,
}

/// Methods to start node programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Steps {
    Each,
    One,
}

impl From<Steps> for SlurmSteps {
    fn from(steps: Steps) -> Self {
        match steps {
            Steps::Each => Self::Each,
            Steps::One => Self::One,
        }
    }
}

/// Hosts, where they came from, and the job that holds them.
#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) inventory: Inventory,
    pub(super) path: Option<PathBuf>,
    pub(super) job: Option<Allocation>,
}

impl Hosts {
    /// Hosts that nothing holds.
    pub(super) fn free(inventory: Inventory, path: Option<PathBuf>) -> Self {
        Self { inventory, path, job: None }
    }

    /// Gives a job of our own back.
    pub(super) async fn end(job: Option<Allocation>) {
        if let Some(job) = job {
            job.end().await;
        }
    }
}

/// The inventory of the nodes that Slurm gives; `None` when it was interrupted while it waited for them.
pub(super) async fn hosts(via: &Via, budget: Option<Duration>) -> anyhow::Result<Option<Hosts>> {
    let request = NodeRequest {
        partition: via.partition.clone(),
        count: via.nodes,
        list: via.nodelist.clone(),
        steps: via.slurm_steps.map(SlurmSteps::from),
        limit: budget.map_or(slurm::LIMIT, |budget| budget + AROUND),
    };
    out::note("asking Slurm for nodes … (Ctrl-C gives up the place in the queue)");
    let Some(asked) = open::unless_interrupted(slurm::survey_nodes(&request)).await else { return Ok(None) };
    let (inventory, job) = asked?;
    for (node, why) in job.refused() {
        out::note(&format!("node {node} {why}; it is left out"));
    }
    out::note(&format!("job {} has {}", job.id(), counted(job.nodes().len(), "node")));
    Ok(Some(Hosts { inventory, path: None, job: Some(job) }))
}
