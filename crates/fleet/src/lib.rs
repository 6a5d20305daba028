//! The fleet: one open session with a node program per host.
//!
//! What comes in: an inventory. What goes out: a [`NodeLink`] per host that answered, and a gap with its
//! reason for each one that did not. A host that dies later is a gap as well; it never ends a run. Nothing
//! here knows what is measured.
#![deny(missing_docs)]

pub mod agents;
pub mod changes;
pub mod clock;
#[cfg(test)]
mod fake_node;
mod given;
mod link;
mod listener;
#[cfg(test)]
mod listener_tests;
mod local;
mod netns;
mod open;
mod pipes;
pub mod programs;
pub mod progress;
mod remarks;
mod sealed;
#[cfg(any(test, feature = "testing"))]
pub mod simulated;
pub mod slurm;
pub mod ssh;
mod transport;
mod transports;
mod words;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_model::fact::{Gap, GapSubject};
use linerate_model::inventory::{Host, HostName, Inventory, SlurmJob, TransportSpec};

pub use link::{LinkError, NodeLink, PendingRequest, REQUEST_WAIT};
use programs::NodePrograms;

use progress::{Progress, ProgressPhase, Silent};

/// A host is taken up again at most so often in a run.
const TAKEN_UP_MAX: u32 = 3;

/// Open sessions by host.
#[derive(Debug, Default)]
pub struct Fleet {
    links: Mutex<BTreeMap<HostName, Arc<NodeLink>>>,
    programs: Arc<NodePrograms>,
    /// How often each host was taken up again.
    taken_up: Mutex<BTreeMap<HostName, u32>>,
    /// Hosts that could not be reached, with the reason, and what is not to be seen on those that were.
    pub gaps: Vec<Gap>,
    /// What a person should know about how the hosts were reached.
    pub notes: Vec<String>,
    /// A Slurm job that was made for these sessions.
    job: Option<slurm::Allocation>,
    /// Steps of it that run node programs which dialled back.
    steps: Vec<slurm::OneStep>,
    /// The job of each Slurm host, to take it up again.
    slurm_jobs: BTreeMap<HostName, SlurmJob>,
    /// Nodes that have a copy of the node program of which nobody heard.
    never_ran: Vec<(String, SlurmJob)>,
    /// The agents that dial in.
    agents: Option<agents::Agents>,
    /// How the hosts were named to this command.
    given: given::Given,
    /// How sessions are opened again, in a test.
    #[cfg(any(test, feature = "testing"))]
    reopening: Option<Reopening>,
}

impl Fleet {
    /// Starts the node program on every host of the inventory for which `wanted` says yes, many at the same
    /// time.
    pub async fn open(inventory: &Inventory, wanted: impl Fn(&Host) -> bool) -> Self {
        Self::open_with_progress(inventory, wanted, &Silent).await
    }

    /// The same, and tells how far it is.
    pub async fn open_with_progress(
        inventory: &Inventory,
        wanted: impl Fn(&Host) -> bool,
        progress: &dyn Progress,
    ) -> Self {
        open::allow_files(inventory.hosts.len());
        let programs = Arc::<NodePrograms>::default();
        // Jobs and copies first: the steps are started in them.
        let ready = slurm::prepare(inventory, &wanted).await;
        let mut fleet = Self::open_with(
            &ready.applied(inventory),
            |_| Arc::clone(&programs),
            |host| wanted(host) && !ready.is_refused(&host.name) && !ready.in_one_step(&host.name),
            progress,
        )
        .await;
        fleet.slurm_jobs = ready.jobs();
        let awaited = ready.awaited();
        if awaited > 0 {
            let name = "waiting for nodes to dial back";
            progress.begin(&ProgressPhase { name, unit: "hosts", total: awaited, expected_s: None });
            let before = fleet.links().len();
            fleet.adopt(ready.gather(inventory).await);
            progress.step(fleet.links().len() - before, "", None);
            progress.end();
        }
        fleet.never_ran = fleet.copies_that_never_ran(inventory);
        fleet.gaps.extend(ready.gaps());
        fleet.gaps.sort_by(|a, b| a.what.cmp(&b.what));
        fleet.job = ready.own;
        fleet
    }

    /// The same with the programs to start on each host.
    pub async fn open_with(
        inventory: &Inventory,
        programs: impl Fn(&Host) -> Arc<NodePrograms>,
        wanted: impl Fn(&Host) -> bool,
        progress: &dyn Progress,
    ) -> Self {
        let opened = open::all(inventory, programs, wanted, progress).await;
        let mut fleet =
            Self { programs: opened.programs.unwrap_or_default(), gaps: opened.gaps, ..Self::default() };
        fleet.tell(&opened.links);
        fleet.links = Mutex::new(opened.links);
        fleet.gaps.sort_by(|a, b| a.what.cmp(&b.what));
        fleet
    }

    /// Takes over the sessions of nodes that dialled back.
    fn adopt(&mut self, gathered: slurm::Gathered) {
        let mut links = BTreeMap::new();
        for (name, link) in gathered.hosts {
            match link {
                Ok(link) => drop(links.insert(name, Arc::new(link))),
                Err(error) => {
                    let reason = format!("over slurm: {error}");
                    self.gaps.push(Gap { what: GapSubject::Host(name), reason });
                }
            }
        }
        self.tell(&links);
        self.links().extend(links);
        self.notes.extend(gathered.notes);
        self.steps.extend(gathered.steps);
        self.slurm_jobs.extend(gathered.jobs);
    }

    fn copies_that_never_ran(&self, inventory: &Inventory) -> Vec<(String, SlurmJob)> {
        let (links, nodes) = (self.links(), slurm::Ready::nodes(inventory));
        let jobs = self
            .slurm_jobs
            .iter()
            .filter(|(host, job)| !links.contains_key(*host) && !job.program.as_os_str().is_empty());
        jobs.filter_map(|(host, job)| Some((nodes.get(host)?.clone(), job.clone()))).collect()
    }

    /// What was learned on the way: hosts without root, programs that were copied, warnings of ssh.
    fn tell(&mut self, links: &BTreeMap<HostName, Arc<NodeLink>>) {
        let mut copied: Vec<(&str, usize)> = Vec::new();
        for (name, link) in links {
            let reached = link.reached();
            copied.extend(reached.copied_bytes.map(|bytes| (name.as_str(), bytes)));
            self.notes.extend(reached.warning.as_ref().map(|w| format!("host {name}: ssh says: {w}")));
            self.notes.extend(reached.elsewhere.as_ref().map(|words| format!("host {name}: {words}")));
            if let Some(reason) = &reached.plain {
                let reason = format!("{reason}: what only root may read or set is missing");
                self.gaps.push(Gap { what: format!("root on host {name}").into(), reason });
            }
        }
        self.notes
            .extend(remarks::clocks(links.iter().map(|(name, link)| (name.as_str(), link.clock_ahead_ms()))));
        self.notes.extend(remarks::builds(
            links.iter().map(|(name, link)| (name.as_str(), link.hello().build.as_str())),
        ));
        if let Some((_, bytes)) = copied.first() {
            let hosts: Vec<&str> = copied.iter().map(|(name, _)| *name).collect();
            let megabytes = *bytes as f64 / f64::from(1 << 20);
            self.notes.push(format!(
                "copied the node program ({megabytes:.1} MiB) to {}; `linerate clean` removes it",
                remarks::few(&hosts)
            ));
        }
    }

    fn links(&self) -> MutexGuard<'_, BTreeMap<HostName, Arc<NodeLink>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fleet of sessions that are open already.
    #[cfg(any(test, feature = "testing"))]
    pub fn of(links: Vec<NodeLink>, gaps: Vec<Gap>) -> Self {
        let links = links.into_iter().map(|link| (link.host().to_owned(), Arc::new(link))).collect();
        Self { links: Mutex::new(links), gaps, ..Self::default() }
    }

    /// The same fleet, whose sessions are opened again so.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn reopened_by(self, open: impl Fn(HostName) -> OpeningLink + Send + Sync + 'static) -> Self {
        Self { reopening: Some(Reopening(Arc::new(open))), ..self }
    }

    /// Why a host could not be reached at the start; `None` for one that was.
    pub fn unreachable(&self, host: &str) -> Option<&str> {
        if self.links().contains_key(host) {
            return None;
        }
        let is_it = |g: &&Gap| matches!(&g.what, GapSubject::Host(name) if name == host);
        self.gaps.iter().find(is_it).map(|g| g.reason.as_str())
    }

    /// Notes how the hosts were named to this command: by an inventory file, or by names for ssh.
    pub fn named_by(&mut self, file: Option<&std::path::Path>, inventory: &Inventory) {
        self.given = given::Given::new(file, inventory);
    }

    /// Arguments that name all open hosts to another command, quoted for a shell.
    #[must_use]
    pub fn all_arguments(&self) -> String {
        self.arguments(&self.hosts().iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Arguments that name these hosts to another command, quoted for a shell.
    #[must_use]
    pub fn arguments(&self, hosts: &[&str]) -> String {
        self.given.arguments(hosts)
    }

    /// The session with a host, or why there is none.
    pub fn link(&self, host: &str) -> Result<Arc<NodeLink>, LinkError> {
        let Some(link) = self.links().get(host).map(Arc::clone) else {
            let reason = self.unreachable(host).unwrap_or("was not asked");
            return Err(LinkError::Lost { host: host.to_owned(), reason: reason.to_owned() });
        };
        match link.lost() {
            Some(reason) => Err(LinkError::Lost { host: host.to_owned(), reason }),
            None => Ok(link),
        }
    }

    /// Names of all hosts that answered at the start, in order.
    pub fn hosts(&self) -> Vec<HostName> {
        self.links().keys().cloned().collect()
    }

    /// Hosts that answered at the start and were lost since, with the reason.
    pub fn lost(&self) -> Vec<(HostName, String)> {
        self.links().iter().filter_map(|(name, link)| Some((name.clone(), link.lost()?))).collect()
    }

    /// Whether a job holds a host, so that only this fleet can reach it.
    pub fn is_held(&self, host: &str) -> bool {
        self.slurm_jobs.contains_key(host)
    }

    /// Opens a new session with a host whose connection was lost. `None` for a host that is not reached over
    /// a connection, and for one that was taken up often enough.
    pub async fn take_up(&self, host: &Host) -> Option<Result<(), LinkError>> {
        let job = self.slurm_jobs.get(&host.name);
        match &host.transport {
            TransportSpec::Ssh(_) => {}
            TransportSpec::Slurm(_) if job.is_some() => {}
            _ => return None,
        }
        {
            let mut taken_up = self.taken_up.lock().unwrap_or_else(PoisonError::into_inner);
            let count = taken_up.entry(host.name.clone()).or_default();
            if *count >= TAKEN_UP_MAX {
                return None;
            }
            *count += 1;
        }
        Some(match self.reopen(host).await {
            Ok(link) => {
                self.attach(Arc::new(link));
                Ok(())
            }
            Err(error) => {
                self.taken_up
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(host.name.clone(), TAKEN_UP_MAX);
                Err(error)
            }
        })
    }

    /// Waits for the sessions of these agents beside the open ones.
    pub fn await_agents(&mut self, agents: agents::Agents) {
        self.agents = Some(agents);
    }

    /// What a person should know of the agents, as it happens; once.
    pub fn agent_notes(&self) -> Option<tokio::sync::mpsc::UnboundedReceiver<String>> {
        self.agents.as_ref()?.notes()
    }

    /// The session with a host at the start of a watch; that of an agent is waited for.
    pub async fn first(&self, host: &Host) -> Result<Arc<NodeLink>, LinkError> {
        let Some(agents) = self.agents.as_ref().filter(|agents| agents.has(&host.name)) else {
            return self.link(&host.name);
        };
        let link = Arc::new(agents.first(&host.name).await?);
        self.attach(Arc::clone(&link));
        Ok(link)
    }

    /// Opens a new session with a host, however often; [`Self::attach`] makes it the session of the host. It
    /// can run in a task of its own. That of an agent is waited for.
    pub fn reopen(&self, host: &Host) -> impl Future<Output = Result<NodeLink, LinkError>> + Send + use<> {
        let agents = self.agents.as_ref().filter(|agents| agents.has(&host.name));
        let agent = agents.map(|agents| agents.next(&host.name));
        let (host, programs) = (host.clone(), Arc::clone(&self.programs));
        let job = self.slurm_jobs.get(&host.name).cloned();
        let old = self.links().get(&host.name).map_or(0, |link| link.reached().pid);
        #[cfg(any(test, feature = "testing"))]
        let reopening = self.reopening.clone();
        async move {
            #[cfg(any(test, feature = "testing"))]
            if let Some(Reopening(open)) = reopening {
                return open(host.name).await;
            }
            match agent {
                Some(agent) => Ok(agent.await),
                None => open::again(host, job, &programs, old).await,
            }
        }
    }

    /// Makes this the session of its host; one before it ends.
    pub fn attach(&self, link: Arc<NodeLink>) {
        self.links().insert(link.host().to_owned(), link);
    }

    /// Ends the session with a host, which takes no part any more.
    pub async fn leave(&self, host: &str) {
        let link = self.links().remove(host);
        if let Some(link) = link {
            link.bye().await;
        }
    }

    /// Ends all sessions: every node undoes what is not confirmed and exits. Waits at most about 7 s.
    pub async fn bye(self) {
        let mut tasks = tokio::task::JoinSet::new();
        let links = std::mem::take(&mut *self.links());
        for link in links.into_values() {
            tasks.spawn(async move { link.bye().await });
        }
        while tasks.join_next().await.is_some() {}
        let steps = async {
            for step in self.steps {
                step.end().await;
            }
        };
        tokio::join!(steps, slurm::remove(self.never_ran));
        if let Some(job) = self.job {
            job.end().await;
        }
    }
}

/// A session that is being opened.
#[cfg(any(test, feature = "testing"))]
pub type OpeningLink = std::pin::Pin<Box<dyn Future<Output = Result<NodeLink, LinkError>> + Send>>;

/// Opens a session again.
#[cfg(any(test, feature = "testing"))]
#[derive(Clone)]
struct Reopening(Arc<dyn Fn(HostName) -> OpeningLink + Send + Sync>);

#[cfg(any(test, feature = "testing"))]
impl std::fmt::Debug for Reopening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reopening").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
