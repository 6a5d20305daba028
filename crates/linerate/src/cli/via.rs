//! `--via slurm`: the hosts are nodes that Slurm gives.

use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_model::inventory::Inventory;

use super::{open, out};
use crate::fleet::slurm::{self, Allocation, Wish};
use crate::inventory;

/// Time that a job has beyond the survey in it: copying, set-up, the last words.
const AROUND: Duration = Duration::from_secs(300);

/// How the hosts are reached when no inventory says it.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Hosts from Slurm")]
pub(super) struct Via {
    /// Measure nodes of a Slurm cluster: those of the job that this runs in, or of a job of its own that ends with it
    #[arg(long = "via", id = "via", value_name = "WAY", value_enum)]
    pub(super) way: Option<Way>,
    /// Partition
    #[arg(short, long, requires = "via")]
    partition: Option<String>,
    /// Number of nodes
    #[arg(short = 'N', long, value_name = "NUMBER", requires = "via")]
    nodes: Option<u32>,
    /// Nodes, such as n[1-4,7]
    #[arg(long, value_name = "NODES", requires = "via")]
    pub(super) nodelist: Option<String>,
}

/// Ways to get hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Way {
    /// Nodes of a Slurm cluster.
    Slurm,
}

/// Hosts, where they came from, and the job that holds them.
#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) inventory: Inventory,
    pub(super) path: Option<PathBuf>,
    pub(super) job: Option<Allocation>,
}

impl Hosts {
    /// Gives a job of our own back.
    pub(super) async fn end(job: Option<Allocation>) {
        if let Some(job) = job {
            job.end().await;
        }
    }
}

/// The inventory of the file, or of the nodes that Slurm gives; `None` when it was interrupted while it waited for them.
pub(super) async fn hosts(
    file: Option<&Path>,
    via: &Via,
    budget: Option<Duration>,
) -> anyhow::Result<Option<Hosts>> {
    let Some(Way::Slurm) = via.way else {
        let file =
            file.ok_or_else(|| anyhow::anyhow!("no hosts\nhint: name an inventory with -i, or --via slurm"))?;
        let inventory = inventory::load(file)?;
        return Ok(Some(Hosts { inventory, path: Some(open::absolute(file)), job: None }));
    };
    let wish = Wish {
        partition: via.partition.clone(),
        count: via.nodes,
        list: via.nodelist.clone(),
        limit: budget.map_or(slurm::LIMIT, |budget| budget + AROUND),
    };
    out::note("asking Slurm for nodes … (Ctrl-C gives up the place in the queue)");
    let asked = tokio::select! {
        asked = slurm::survey_nodes(&wish) => Some(asked?),
        () = open::interrupted() => None,
    };
    let Some((inventory, job)) = asked else { return Ok(None) };
    for (node, why) in job.refused() {
        out::note(&format!("node {node} {why}; it is left out"));
    }
    out::note(&format!("job {} has {} nodes", job.id(), job.nodes().len()));
    Ok(Some(Hosts { inventory, path: None, job: Some(job) }))
}
