//! What the stored runs of a cluster show about its nodes. In: the store, an inventory file. Out: evidence by
//! the name of the node in Slurm.

use std::path::{Path, PathBuf};

use linerate_drain::{Evidence, rules, sightings};
use linerate_model::change::Change;
use linerate_model::inventory::{Host, TransportSpec};
use linerate_model::trial::TrialStatus;
use linerate_model::units::counted;
use linerate_store::{RunRow, Store, StoreError};

use crate::cli::{open, out};

/// Whose runs count.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ClusterOf {
    /// Inventory whose runs count; defaults to the cluster that was measured last
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
}

impl ClusterOf {
    /// The file that was given.
    pub(in crate::cli) fn given(&self) -> Option<&Path> {
        self.inventory.as_deref()
    }

    /// A command with this inventory, which acts.
    pub(in crate::cli) fn command(&self, command: &str) -> String {
        let file = self.inventory.iter().map(|path| format!(" -i {}", out::word(&path.to_string_lossy())));
        file.fold(command.to_owned(), |command, file| command + &file) + " --yes"
    }
}

/// The runs that count for the cluster of the inventory, else for the one that was measured last.
pub(in crate::cli) fn evidence(inventory: Option<&Path>, now_ms: u64) -> anyhow::Result<Evidence> {
    let store = Store::open_to_read()?;
    let runs = store.list_runs()?;
    let cluster = match inventory {
        Some(path) => open::inventory(path, &[])?.name,
        None => store.find_diagnosable(None)?.cluster,
    };
    let oldest = now_ms.saturating_sub(rules::APART_MS_MAX + rules::NEWEST_AGE_MS_MAX);
    let counts =
        |run: &&RunRow| run.finished && run.diagnosable && run.cluster == cluster && run.start_ms >= oldest;
    let kept = kept(&store)?;
    let mut evidence = Evidence::new();
    let mut count = 0;
    for run in runs.iter().filter(counts) {
        let snapshot = store.load_snapshot(&run.id)?;
        let Some(diagnosis) = store.load_diagnosis(&run.id)? else { continue };
        // What others measured names hosts of any cluster.
        if snapshot.imported.is_some() {
            continue;
        }
        count += 1;
        for (host, sighting) in sightings(&snapshot, &diagnosis, &kept) {
            let node = snapshot.inventory.host(&host).map_or(host.as_str(), node_of);
            evidence.entry(node.to_owned()).or_default().push(sighting);
        }
    }
    out::note(&format!("{} of {cluster} within 25 h", counted(count, "run")));
    Ok(evidence)
}

/// A host's name in Slurm.
fn node_of(host: &Host) -> &str {
    match &host.transport {
        TransportSpec::Slurm(spec) => &spec.node,
        _ => &host.name,
    }
}

/// Changes that were made to stay, the newest of each setting last.
fn kept(store: &Store) -> Result<Vec<Change>, StoreError> {
    let mut kept: Vec<Change> = Vec::new();
    for row in store.list_trials()?.iter().rev() {
        let trial = store.load_trial(&row.id)?;
        if trial.status == TrialStatus::Kept {
            for change in trial.remedy.changes {
                kept.retain(|known| (&known.host, &known.key) != (&change.host, &change.key));
                kept.push(change);
            }
        }
    }
    Ok(kept)
}
