//! The fleet: one open session with a node program per host.
//!
//! What comes in: an inventory. What goes out: a [`Link`] per host that answered, and a gap with its reason for each one
//! that did not. A host that dies later is a gap as well; it never ends a run. Nothing here knows what is measured.

mod link;
mod local;
mod netns;
#[cfg(test)]
pub(crate) mod simulated;
pub mod slurm;
pub mod transport;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use linerate_model::fact::Gap;
use linerate_model::inventory::{Host, HostName, Inventory, TransportSpec};
use linerate_wire::message::Request;
use tokio::sync::Semaphore;

pub use link::{Exchange, Link, LinkError};

/// Longest wait for the hello of a node.
const HELLO_WAIT: Duration = Duration::from_secs(10);
/// Sessions that are set up at the same time: each is a process here and a log-in or a job step there.
const SET_UP_AT_ONCE: usize = 32;
/// Longest wait for a small request such as `Setup`.
pub const REQUEST_WAIT: Duration = Duration::from_secs(10);

/// Open sessions by host.
#[derive(Debug, Default)]
pub struct Fleet {
    links: BTreeMap<HostName, Link>,
    /// Hosts that could not be reached, with the reason.
    pub gaps: Vec<Gap>,
    /// A Slurm job that was made for these sessions.
    job: Option<slurm::Allocation>,
}

impl Fleet {
    /// Starts the node program on every host of the inventory for which `wanted` says yes, all at the same time.
    pub async fn open(inventory: &Inventory, wanted: impl Fn(&Host) -> bool) -> Self {
        allow_files(inventory.hosts.len());
        let program = transport::node_program();
        let ready = slurm::prepare(inventory, &wanted).await;
        let mut inventory = inventory.clone();
        for host in &mut inventory.hosts {
            if let (TransportSpec::Slurm(spec), Some(Ok(job))) =
                (&mut host.transport, ready.hosts.get(&host.name))
            {
                spec.job = Some(job.clone());
            }
        }
        let mut fleet = Self::open_with(&inventory, |host| {
            let program = || program.as_ref().map(Clone::clone).map_err(ToString::to_string);
            wanted(host).then(|| match ready.hosts.get(&host.name) {
                Some(Err(reason)) => Err(reason.clone()),
                _ => program(),
            })
        })
        .await;
        fleet.job = ready.own;
        fleet
    }

    /// The same with a program for each host.
    pub(crate) async fn open_with(
        inventory: &Inventory,
        program: impl Fn(&Host) -> Option<Result<PathBuf, String>>,
    ) -> Self {
        let mut tasks = tokio::task::JoinSet::new();
        let turns = Arc::new(Semaphore::new(SET_UP_AT_ONCE));
        for host in &inventory.hosts {
            // There is nothing to start on a device that only has iperf3.
            if matches!(host.transport, TransportSpec::Iperf3 { .. }) {
                continue;
            }
            let Some(program) = program(host) else { continue };
            let host = host.clone();
            let turns = Arc::clone(&turns);
            tasks.spawn(async move {
                // Never closed, so there is always a turn.
                let _turn = turns.acquire().await;
                let link = match program {
                    Ok(program) => open_one(&host, &program).await,
                    Err(reason) => Err(LinkError::Lost { host: host.name.clone(), reason }),
                };
                (host.name, link)
            });
        }
        let mut fleet = Self::default();
        while let Some(joined) = tasks.join_next().await {
            match joined {
                Ok((name, Ok(link))) => {
                    fleet.links.insert(name, link);
                }
                Ok((name, Err(error))) => {
                    // The host is named already; what is left are the words about it.
                    let reason = match error {
                        LinkError::Lost { reason, .. } => reason,
                        other => other.to_string(),
                    };
                    fleet.gaps.push(Gap { what: format!("host {name}"), reason });
                }
                Err(error) => {
                    fleet
                        .gaps
                        .push(Gap { what: "a host".to_owned(), reason: format!("its task ended: {error}") });
                }
            }
        }
        fleet.gaps.sort_by(|a, b| a.what.cmp(&b.what));
        fleet
    }

    /// A fleet of sessions that are open already.
    #[cfg(test)]
    pub(crate) fn of(links: Vec<Link>, gaps: Vec<Gap>) -> Self {
        Self {
            links: links.into_iter().map(|link| (link.host().to_owned(), link)).collect(),
            gaps,
            job: None,
        }
    }

    /// The session with a host, or why there is none.
    pub fn link(&self, host: &str) -> Result<&Link, LinkError> {
        let Some(link) = self.links.get(host) else {
            let what = format!("host {host}");
            let reason = self.gaps.iter().find(|g| g.what == what).map_or("was not asked", |g| &g.reason);
            return Err(LinkError::Lost { host: host.to_owned(), reason: reason.to_owned() });
        };
        match link.lost() {
            Some(reason) => Err(LinkError::Lost { host: host.to_owned(), reason }),
            None => Ok(link),
        }
    }

    /// Names of all hosts that answered at the start, in order.
    pub fn hosts(&self) -> Vec<HostName> {
        self.links.keys().cloned().collect()
    }

    /// Hosts that answered at the start and were lost since, with the reason.
    pub fn lost(&self) -> Vec<Gap> {
        self.links
            .iter()
            .filter_map(|(name, link)| Some(Gap { what: format!("host {name}"), reason: link.lost()? }))
            .collect()
    }

    /// Ends all sessions: every node undoes what is not confirmed and exits. Waits at most about 7 s.
    pub async fn bye(self) {
        let mut tasks = tokio::task::JoinSet::new();
        for link in self.links.into_values() {
            tasks.spawn(link.bye());
        }
        while tasks.join_next().await.is_some() {}
        if let Some(job) = self.job {
            job.end().await;
        }
    }
}

/// Open files that a session needs: three pipes and the handle of its process.
const FILES_PER_SESSION: u64 = 4;
/// What the rest of the program needs.
const FILES_BESIDE: u64 = 100;

/// Allows this process as many open files as so many sessions need, where the hard limit lets it. Most systems start programs
/// with 1024, for the sake of old ones. Where it is refused, hosts beyond it become gaps with the system's reason.
fn allow_files(sessions: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = sessions as u64 * FILES_PER_SESSION + FILES_BESIDE;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let current = Some(limit.maximum.map_or(needed, |most| most.min(needed)));
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
    }
}

async fn open_one(host: &Host, program: &Path) -> Result<Link, LinkError> {
    let argv = transport::argv(host, program);
    let link = Link::open(&host.name, &argv, HELLO_WAIT).await.map_err(|error| match error {
        LinkError::Lost { host: name, reason } => {
            LinkError::Lost { reason: format!("over {}: {reason}", transport::name(host)), host: name }
        }
        other => other,
    })?;
    let setup = Request::Setup {
        state_dir: host.state_dir.clone().unwrap_or_else(|| PathBuf::from("/var/lib/linerate")),
        etc_dir: host.etc_dir.clone().unwrap_or_else(|| PathBuf::from("/etc")),
        host: host.name.clone(),
    };
    match link.request(setup, REQUEST_WAIT).await {
        Ok(_) => Ok(link),
        Err(error) => {
            link.bye().await;
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests;
