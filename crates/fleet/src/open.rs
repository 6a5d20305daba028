//! How sessions are opened: with all hosts of an inventory, many at a time, and again with one that was lost.
//!
//! In: hosts and the programs to start on them. Out: a session for each host that answered, and a gap with
//! the reason for each other one.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use linerate_model::fact::{Gap, GapSubject};
use linerate_model::inventory::{Host, HostName, Inventory, SlurmJob, TransportSpec};
use tokio::sync::Semaphore;

use crate::link::{HELLO_WAIT, LinkError, NodeLink};
use crate::pipes::Pipes;
use crate::programs::NodePrograms;
use crate::progress::{Progress, ProgressPhase};
use crate::{slurm, ssh, transports};

/// Sessions that are opened at the same time: each is a process here and a log-in or a job step there. An
/// sshd refuses at random beyond ten unfinished log-ins (`MaxStartups`), but each host has its own; a jump
/// host has them all.
pub(crate) const OPENING_MAX: usize = 16;

/// What came of it.
#[derive(Default)]
pub(crate) struct Opened {
    /// Sessions by host.
    pub(crate) links: BTreeMap<HostName, Arc<NodeLink>>,
    /// Programs of a host that answered.
    pub(crate) programs: Option<Arc<NodePrograms>>,
    /// Hosts without a session.
    pub(crate) gaps: Vec<Gap>,
}

/// Starts the node program on every wanted host of an inventory.
pub(crate) async fn all(
    inventory: &Inventory,
    programs: impl Fn(&Host) -> Arc<NodePrograms>,
    wanted: impl Fn(&Host) -> bool,
    progress: &dyn Progress,
) -> Opened {
    let mut tasks = tokio::task::JoinSet::new();
    let places = Arc::new(Semaphore::new(OPENING_MAX));
    for host in &inventory.hosts {
        // There is nothing to start on a device that only has iperf3.
        if matches!(host.transport, TransportSpec::Iperf3 { .. }) || !wanted(host) {
            continue;
        }
        let (host, programs, places) = (host.clone(), programs(host), Arc::clone(&places));
        tasks.spawn(async move {
            // Never closed.
            let _place = places.acquire().await;
            let link = one(&host, &programs, 0).await;
            (host.name, programs, link)
        });
    }
    let mut opened = Opened::default();
    progress.begin(&ProgressPhase {
        name: "connecting",
        unit: "hosts",
        total: tasks.len(),
        expected_s: None,
    });
    while let Some(joined) = tasks.join_next().await {
        match joined {
            Ok((name, programs, Ok(link))) => {
                opened.programs = Some(programs);
                opened.links.insert(name, Arc::new(link));
                progress.step(opened.links.len(), "", None);
            }
            Ok((name, _, Err(error))) => {
                opened.gaps.push(Gap { what: GapSubject::Host(name), reason: error.reason() });
            }
            Err(error) => {
                opened.gaps.push(Gap { what: "a host".into(), reason: format!("its task ended: {error}") });
            }
        }
    }
    progress.end();
    opened
}

/// Open files that a session needs: three pipes and the handle of its process.
const FILES_PER_SESSION: u64 = 4;
/// What the rest of the program needs.
const FILES_BESIDE: u64 = 100;

/// Allows this process as many open files as so many sessions need, where the hard limit lets it. Most
/// systems start programs with 1024, for the sake of old ones. Where it is refused, hosts beyond it become
/// gaps with the system's reason.
pub(crate) fn allow_files(sessions: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = sessions as u64 * FILES_PER_SESSION + FILES_BESIDE;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let current = Some(limit.maximum.map_or(needed, |most| most.min(needed)));
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
    }
}

/// Starts the node program on a host.
pub(crate) async fn start(host: &Host, programs: &NodePrograms, old: u32) -> Result<NodeLink, LinkError> {
    let lost = |error: &dyn Display| LinkError::Lost { host: host.name.clone(), reason: error.to_string() };
    let TransportSpec::Ssh(spec) = &host.transport else {
        let program = programs.own().map_err(|e| lost(&e))?;
        let mut argv = transports::argv(host, &program.path);
        program.complete(&mut argv);
        let pipes = Pipes::start(&argv).map_err(|e| lost(&e))?;
        return NodeLink::over(&host.name, pipes, Vec::new(), HELLO_WAIT).await;
    };
    spec.check().map_err(|e| lost(&e))?;
    let mut pipes = Pipes::start(&transports::argv(host, &PathBuf::new())).map_err(|e| lost(&e))?;
    let greeted = ssh::handshake(&mut pipes, (host, spec), programs, old).await;
    let (heard, reached) = greeted.map_err(|e| lost(&e))?;
    Ok(NodeLink::over(&host.name, pipes, heard, HELLO_WAIT).await?.with(reached))
}

async fn one(host: &Host, programs: &NodePrograms, old: u32) -> Result<NodeLink, LinkError> {
    let link = start(host, programs, old).await.map_err(|error| match error {
        LinkError::Lost { host: name, reason } => {
            LinkError::Lost { reason: format!("over {}: {reason}", host.transport.kind()), host: name }
        }
        other => other,
    })?;
    link.set_up(host).await
}

pub(crate) async fn again(
    mut host: Host,
    job: Option<SlurmJob>,
    programs: &NodePrograms,
    old: u32,
) -> Result<NodeLink, LinkError> {
    if let (TransportSpec::Slurm(spec), Some(job)) = (&mut host.transport, job) {
        let lost =
            |error: slurm::NodeError| LinkError::Lost { host: host.name.clone(), reason: error.to_string() };
        spec.job = Some(slurm::again(spec, &job).await.map_err(lost)?);
    }
    one(&host, programs, old).await
}
