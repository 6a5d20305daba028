//! Transport `slurm`: a node of a Slurm cluster, where the node program is a step of a job.
//!
//! What comes in: a spec (partition, number or list of nodes), or an inventory with Slurm hosts. What goes
//! out: a job that holds the nodes (the one that this program runs in, or one of its own that ends with it),
//! the node program on them, and one command line per node: `srun` with its output unbuffered, for without
//! that it keeps back what no line end follows, and never for several nodes, for then it cuts their frames
//! into each other. For many nodes it is one step for all, whose node programs dial back (`dialled.rs`).
//! Slurm does the rest; nothing here schedules.

mod dialled;
mod error;
mod inventory;
mod job;
mod nodes;
mod one_step;
mod request;
mod scontrol;
#[cfg(test)]
mod script_tests;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use linerate_model::fact::{Gap, GapSubject};
use linerate_model::inventory::{Host, HostName, Inventory, SlurmJob, SlurmSpec, SlurmSteps, TransportSpec};

use super::programs::ProgramSource;
use super::transport::Transport;
pub(super) use dialled::Gathered;
pub(super) use job::remove;
pub(super) use one_step::OneStep;

pub(super) use error::NodeError;
pub use error::SlurmError;
pub use job::Allocation;
pub use request::{LIMIT, NodeRequest};
pub use scontrol::Scontrol;
use step::{place_on_node, step};

/// From so many nodes on one step for all is made, unless something else is asked for. A step of its own
/// costs the controller and this machine about 0.1 s and a process per node; one for all costs one process
/// and an open port while nodes are awaited.
pub const ONE_STEP_FROM: usize = 256;

/// The nodes that a request gives, as an inventory: their addresses and the switches between them from
/// Slurm's own configuration. Nodes that are named but cannot take a job are in it too, so that they become
/// gaps with their reason.
pub async fn survey_nodes(request: &NodeRequest) -> Result<(Inventory, Allocation), SlurmError> {
    let allocation = Allocation::get(request).await?;
    match inventory::inventory(&allocation, request).await {
        Ok(inventory) => Ok((inventory, allocation)),
        Err(error) => {
            allocation.end().await;
            Err(error)
        }
    }
}

/// See the file's head.
pub(super) struct Slurm;

impl Transport for Slurm {
    fn argv(&self, host: &Host, _: &Path) -> Option<Vec<OsString>> {
        match &host.transport {
            TransportSpec::Slurm(spec) => Some(step(spec)),
            _ => None,
        }
    }
}

/// What a fleet needs before it starts steps: for each host its job, or why there is none.
#[derive(Debug, Default)]
pub(super) struct Ready {
    /// By host.
    pub hosts: BTreeMap<HostName, Result<SlurmJob, NodeError>>,
    /// A job that was made for this fleet and ends with it.
    pub own: Option<Allocation>,
    /// Jobs whose nodes are reached by one step for all.
    one: Vec<(u32, BTreeSet<HostName>)>,
    program: ProgramSource,
}

impl Ready {
    /// The inventory with the job of each Slurm host that has one.
    pub(super) fn applied(&self, inventory: &Inventory) -> Inventory {
        let mut inventory = inventory.clone();
        for host in &mut inventory.hosts {
            if let (TransportSpec::Slurm(spec), Some(Ok(job))) =
                (&mut host.transport, self.hosts.get(&host.name))
            {
                spec.job = Some(job.clone());
            }
        }
        inventory
    }

    /// The job of each host that has one.
    pub(super) fn jobs(&self) -> BTreeMap<HostName, SlurmJob> {
        self.hosts.iter().filter_map(|(host, job)| Some((host.clone(), job.clone().ok()?))).collect()
    }

    /// The node of each host.
    pub(super) fn nodes(inventory: &Inventory) -> BTreeMap<HostName, String> {
        let node = |host: &Host| match &host.transport {
            TransportSpec::Slurm(spec) => Some((host.name.clone(), spec.node.clone())),
            _ => None,
        };
        inventory.hosts.iter().filter_map(node).collect()
    }

    /// Whether a host is reached by one step for all.
    pub(super) fn in_one_step(&self, host: &str) -> bool {
        self.one.iter().any(|(_, hosts)| hosts.contains(host))
    }

    /// How many hosts are to dial back.
    pub(super) fn awaited(&self) -> usize {
        self.one.iter().map(|(_, hosts)| hosts.len()).sum()
    }

    /// Makes the steps for all and gives the sessions of the nodes that dial back.
    pub(super) async fn gather(&self, inventory: &Inventory) -> Gathered {
        let mut all = Gathered::default();
        for (id, names) in &self.one {
            let hosts: Vec<&Host> = inventory.hosts.iter().filter(|h| names.contains(&h.name)).collect();
            let gathered = dialled::gather(*id, &self.program, &hosts).await;
            all.hosts.extend(gathered.hosts);
            all.notes.extend(gathered.notes);
            all.steps.extend(gathered.steps);
            all.jobs.extend(gathered.jobs);
        }
        all
    }

    /// Whether a host has no job.
    pub(super) fn is_refused(&self, host: &str) -> bool {
        self.hosts.get(host).is_some_and(Result::is_err)
    }

    /// The hosts without a job.
    pub(super) fn gaps(&self) -> impl Iterator<Item = Gap> {
        let gap = |host: &HostName, why: &NodeError| Gap {
            what: GapSubject::Host(host.clone()),
            reason: why.to_string(),
        };
        self.hosts.iter().filter_map(move |(host, job)| Some(gap(host, job.as_ref().err()?)))
    }
}

/// Jobs by host, or why there is none.
type Jobs = BTreeMap<HostName, Result<u32, NodeError>>;

/// Gets a job for the Slurm hosts among those wanted, unless they have one, and spreads the node program on
/// its nodes.
pub(super) async fn prepare(inventory: &Inventory, wanted: impl Fn(&Host) -> bool) -> Ready {
    let hosts: Vec<(&HostName, &SlurmSpec)> = inventory
        .hosts
        .iter()
        .filter(|h| wanted(h))
        .filter_map(|h| match &h.transport {
            TransportSpec::Slurm(spec) => Some((&h.name, spec)),
            _ => None,
        })
        .collect();
    if hosts.is_empty() {
        return Ready::default();
    }
    let program = match ProgramSource::own() {
        Ok(program) => program,
        Err(error) => {
            let error = NodeError::Program(Arc::new(error));
            let hosts = hosts.iter().map(|(host, _)| ((*host).clone(), Err(error.clone()))).collect();
            return Ready { hosts, ..Ready::default() };
        }
    };
    let (jobs, own) = jobs(&hosts).await;
    let mut ready = Ready { own, program, ..Ready::default() };
    let ids: BTreeSet<u32> = jobs.values().flatten().copied().collect();
    let is_in = |host: &HostName, id| matches!(jobs.get(host), Some(Ok(job)) if *job == id);
    for id in ids {
        let members: Vec<(&HostName, &SlurmSpec)> =
            hosts.iter().filter(|(host, _)| is_in(host, id)).copied().collect();
        if is_one_step(&members) {
            let job = SlurmJob { id, ..SlurmJob::default() };
            ready.hosts.extend(members.iter().map(|(host, _)| ((*host).clone(), Ok(job.clone()))));
            ready.one.push((id, members.iter().map(|(host, _)| (*host).clone()).collect()));
            continue;
        }
        let members: Vec<(&HostName, &str)> =
            members.iter().map(|(host, spec)| (*host, spec.node.as_str())).collect();
        ready.hosts.extend(spread(id, &ready.program, &members).await);
    }
    let refused = jobs.into_iter().filter_map(|(host, job)| Some((host, Err(job.err()?))));
    ready.hosts.extend(refused);
    ready
}

/// Whether the nodes of a job are reached by one step for all: as asked for, or by their number.
fn is_one_step(members: &[(&HostName, &SlurmSpec)]) -> bool {
    let asked = members.iter().find_map(|(_, spec)| spec.steps);
    asked.map_or(members.len() >= ONE_STEP_FROM, |steps| steps == SlurmSteps::One)
}

/// Brings a fresh copy of the node program to the node of a host whose session was lost, after what is left
/// of the old program there has ended (its guardians stay and undo). Gives the job with the place of the
/// copy, for a step of its own.
pub(super) async fn again(spec: &SlurmSpec, job: &SlurmJob) -> Result<SlurmJob, NodeError> {
    let ProgramSource { path, hash } = ProgramSource::own().map_err(Arc::new)?;
    let place = place_on_node(job.id).map_err(NodeError::random("name for its copy"))?;
    job::copy_again(job.id, &spec.node, &path, &place, &job.program).await?;
    Ok(SlurmJob { id: job.id, program: place, hash })
}

/// The jobs that hosts have already, and one for all others.
async fn jobs(hosts: &[(&HostName, &SlurmSpec)]) -> (Jobs, Option<Allocation>) {
    let mut jobs = Jobs::new();
    let (with, without): (Vec<_>, Vec<_>) = hosts.iter().partition(|(_, spec)| spec.job.is_some());
    for (host, spec) in with {
        jobs.extend(spec.job.iter().map(|job| ((*host).clone(), Ok(job.id))));
    }
    if without.is_empty() {
        return (jobs, None);
    }
    let names: Vec<&str> = without.iter().map(|(_, spec)| spec.node.as_str()).collect();
    let request = NodeRequest {
        partition: without.iter().find_map(|(_, spec)| spec.partition.clone()),
        count: None,
        list: Some(names.join(",")),
        steps: None,
        limit: LIMIT,
    };
    match Allocation::get(&request).await {
        Ok(allocation) => {
            for (host, spec) in without {
                jobs.insert((*host).clone(), allocation.holds(&spec.node).map(|()| allocation.id()));
            }
            (jobs, Some(allocation))
        }
        Err(error) => {
            let error = Arc::new(error);
            let known: BTreeMap<&str, &str> = match &*error {
                SlurmError::NoNode { refused } => {
                    refused.iter().map(|(node, why)| (node.as_str(), why.as_str())).collect()
                }
                _ => BTreeMap::new(),
            };
            for (host, spec) in without {
                let why = known.get(spec.node.as_str());
                let why = why.map_or_else(
                    || NodeError::Job(Arc::clone(&error)),
                    |why| NodeError::Unfit((*why).to_owned()),
                );
                jobs.insert((*host).clone(), Err(why));
            }
            (jobs, None)
        }
    }
}

/// The node program on the nodes of one job: for each host where it lies, or why it did not get there.
async fn spread(
    id: u32,
    program: &ProgramSource,
    hosts: &[(&HostName, &str)],
) -> Vec<(HostName, Result<SlurmJob, NodeError>)> {
    let nodes: Vec<&str> = hosts.iter().map(|(_, node)| *node).collect();
    let spread = job::spread(id, &program.path, &nodes).await;
    let of = |node: &str| match &spread {
        Ok((_, missing)) if missing.contains_key(node) => Err(missing[node].clone()),
        Ok((place, _)) => Ok(SlurmJob { id, program: place.clone(), hash: program.hash.clone() }),
        Err(error) => Err(error.clone()),
    };
    hosts.iter().map(|(host, node)| ((*host).clone(), of(node))).collect()
}

#[cfg(test)]
mod step_tests {
    use super::*;

    #[test]
    fn many_nodes_or_a_spec_make_one_step() {
        let (host, spec) = ("a".to_owned(), SlurmSpec::default());
        let many = |count| vec![(&host, &spec); count];
        assert!(!is_one_step(&many(ONE_STEP_FROM - 1)) && is_one_step(&many(ONE_STEP_FROM)));
        let (each, one) = (Some(SlurmSteps::Each), Some(SlurmSteps::One));
        let (each, one) =
            (SlurmSpec { steps: each, ..spec.clone() }, SlurmSpec { steps: one, ..spec.clone() });
        assert!(!is_one_step(&vec![(&host, &each); ONE_STEP_FROM]) && is_one_step(&[(&host, &one)]));
    }
}
