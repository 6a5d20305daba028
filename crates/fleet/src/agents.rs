//! The hosts whose agents dial in, for as long as a watch runs.
//!
//! What comes in: the table `[agents]` of an inventory and the operator's folder of keys. What goes out: a
//! session for each host whose agent is there, and notes about those that were kept out. Each host has a key
//! of its own, and the name of the host belongs to the key, so that no host can be taken for another. Of a
//! host the last session counts, because its agent opens a new one only when it has lost the one before (a
//! reboot, another path): the older one ends with that reason.

mod cut;
mod keys;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linerate_model::agents::AgentsSpec;
use linerate_model::inventory::{Host, HostName, Inventory};
use linerate_wire::sealed::Key;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use super::clock;
use super::link::{ConnectInfo, HELLO_WAIT, LinkError, NodeLink};
use super::listener::{Guest, HandshakeError, Keys, Listener};
use super::sealed;

pub use keys::{AgentKeysError, MadeKeys, make_keys};

/// How long a host is waited for before it is a gap. One whose agent has waited long dials again within five
/// minutes.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// From one note about a host, or about connections that were cut off, to the next.
const NOTED_EVERY: Duration = Duration::from_secs(60);

/// Why nothing listens for agents.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the texts name the fields")]
pub enum AgentsError {
    #[error(
        "cannot listen for agents at {address}: {source}\nhint: one watch at a time listens there; `ss -ltnp 'sport = :{}'` shows which program does",
        address.port()
    )]
    Listen { address: SocketAddr, source: io::Error },
    #[error("no random numbers: {0}")]
    Random(#[from] io::Error),
    #[error(transparent)]
    Keys(#[from] AgentKeysError),
}

/// The agents of a watch. Nothing listens when it is dropped.
#[derive(Debug)]
pub struct Agents {
    slots: BTreeMap<HostName, Arc<Slot>>,
    listen: Vec<SocketAddr>,
    notes: Mutex<Option<mpsc::UnboundedReceiver<String>>>,
    _arrivals: JoinSet<()>,
}

/// Where the session of a host is put.
#[derive(Debug, Default)]
struct Slot {
    ready: Mutex<Option<NodeLink>>,
    arrived: Notify,
}

impl Slot {
    fn put(&self, link: NodeLink) {
        // One before that was not taken ends as it is dropped.
        drop(self.ready.lock().unwrap_or_else(PoisonError::into_inner).replace(link));
        self.arrived.notify_one();
    }

    async fn take(&self) -> NodeLink {
        loop {
            let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(link) = ready.filter(|link| link.lost().is_none()) {
                return link;
            }
            self.arrived.notified().await;
        }
    }
}

impl Agents {
    /// Listens for the agents of an inventory; `None` where no host has one.
    ///
    /// # Errors
    /// A key that is missing or not private, an address where another program listens.
    pub async fn open(inventory: &Inventory) -> Result<Option<Self>, AgentsError> {
        let hosts: Vec<&Host> = inventory.hosts.iter().filter(|host| inventory.has_agent(host)).collect();
        let Some(AgentsSpec { listen, keys, .. }) = inventory.agents.as_ref().filter(|_| !hosts.is_empty())
        else {
            return Ok(None);
        };
        let known = keys::read(keys, hosts.iter().map(|host| host.name.as_str()))?;
        let mut listeners = Vec::new();
        for address in listen {
            let listener = TcpListener::bind(address).await;
            listeners.push(listener.map_err(|source| AgentsError::Listen { address: *address, source })?);
        }
        let listener = Listener::new(listeners, Keys::Agents { known, none: Key::new(clock::random()?) });
        let slots: BTreeMap<HostName, Arc<Slot>> =
            hosts.iter().map(|host| (host.name.clone(), Arc::default())).collect();
        let hosts = hosts.into_iter().map(|host| (host.name.clone(), host.clone())).collect();
        let (to_us, notes) = mpsc::unbounded_channel();
        let arrivals = Arrivals {
            slots: slots.clone(),
            hosts,
            sessions: BTreeMap::new(),
            opening: JoinSet::new(),
            begun: 0,
            notes: to_us,
        };
        let mut task = JoinSet::new();
        task.spawn(arrivals.take_in(listener));
        Ok(Some(Self { slots, listen: listen.clone(), notes: Mutex::new(Some(notes)), _arrivals: task }))
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.listen
    }

    /// How many hosts have one.
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Whether the agent of a host is awaited.
    pub(super) fn has(&self, host: &str) -> bool {
        self.slots.contains_key(host)
    }

    /// The next session of a host, whenever it comes.
    pub(super) fn next(&self, host: &str) -> impl Future<Output = NodeLink> + Send + use<> {
        let slot = self.slots.get(host).map(Arc::clone).unwrap_or_default();
        async move { slot.take().await }
    }

    /// The first session of a host, which is not waited for longer than agents need to return.
    pub(super) async fn first(&self, host: &str) -> Result<NodeLink, LinkError> {
        timeout(FIRST_WAIT, self.next(host)).await.map_err(|_| {
            let listen = self.listen.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
            let reason = format!(
                "its agent has not dialled {listen} yet; on the host: `journalctl -u linerate-agent`"
            );
            LinkError::Lost { host: host.to_owned(), reason }
        })
    }

    /// What a person should know, as it happens; once.
    pub(super) fn notes(&self) -> Option<mpsc::UnboundedReceiver<String>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A session that is being opened, and the one that is open.
#[derive(Default)]
struct OfHost {
    opening: Option<AbortHandle>,
    open: Option<oneshot::Sender<String>>,
    /// Number of the last that was opened: later ones count.
    number: u64,
    /// Another build than ours that was noted.
    build: Option<String>,
    /// When the next note about it may come.
    quiet_until: Option<Instant>,
}

/// Takes in who dials.
struct Arrivals {
    slots: BTreeMap<HostName, Arc<Slot>>,
    hosts: BTreeMap<HostName, Host>,
    sessions: BTreeMap<HostName, OfHost>,
    opening: JoinSet<Opened>,
    /// Sessions that agents have begun.
    begun: u64,
    notes: mpsc::UnboundedSender<String>,
}

struct Opened {
    host: HostName,
    number: u64,
    from: SocketAddr,
    link: Result<NodeLink, LinkError>,
    /// Ends it, with these words.
    end: oneshot::Sender<String>,
}

impl Arrivals {
    async fn take_in(mut self, mut listener: Listener) {
        let mut noted = (Instant::now(), 0);
        let next_cut_off = Arc::clone(&listener.cut_off);
        loop {
            let has_cut_off = listener.turned_away.count > noted.1;
            tokio::select! {
                guest = listener.next() => self.open(guest),
                Some(opened) = self.opening.join_next() => {
                    if let Ok(opened) = opened {
                        self.opened(opened);
                    }
                }
                () = next_cut_off.notified(), if !has_cut_off => {}
                () = sleep_until(noted.0), if has_cut_off => {
                    let count = listener.turned_away.count;
                    self.note_cut_off(count - noted.1, listener.turned_away.last.as_ref());
                    noted = (Instant::now() + NOTED_EVERY, count);
                }
            }
        }
    }

    /// Begins the session of an agent that has shown its key. Of a host one at a time is opened: the last.
    fn open(&mut self, guest: Guest) {
        let Guest { caller, from, connection, sealed } = guest;
        let Some(host) = self.hosts.get(&caller.node).cloned() else { return };
        self.begun += 1;
        let number = self.begun;
        let (end, ended) = oneshot::channel();
        let words = Arc::default();
        let pipes = sealed::pipes(connection, sealed, Arc::clone(&words));
        let pipes = cut::until(pipes, ended, words);
        let reached = ConnectInfo { pid: caller.pid, ..ConnectInfo::default() };
        let task = self.opening.spawn(async move {
            let link = match NodeLink::over(&host.name, pipes, Vec::new(), HELLO_WAIT).await {
                Ok(link) => link.with(reached).set_up(&host).await,
                Err(error) => Err(error),
            };
            Opened { host: host.name, number, from, link, end }
        });
        if let Some(before) = self.sessions.entry(caller.node).or_default().opening.replace(task) {
            before.abort();
        }
    }

    fn opened(&mut self, opened: Opened) {
        let Opened { host, number, from, link, end } = opened;
        let of_host = self.sessions.entry(host.clone()).or_default();
        let link = match link {
            Ok(link) if number > of_host.number => link,
            // One that came after it was faster.
            Ok(_) => return,
            Err(error) => {
                let reason = error.reason();
                let words = format!("the session of its agent at {from} did not begin: {reason}");
                self.note_of(&host, &words);
                return;
            }
        };
        of_host.number = number;
        // The reason first: who waits for the next session may have it at once.
        if let Some(before) = of_host.open.replace(end) {
            // It may have ended by itself.
            let _ = before.send(format!("its agent opened another session, from {from}"));
        }
        let build = &link.hello().build;
        if build != linerate_wire::BUILD && of_host.build.as_ref() != Some(build) {
            of_host.build = Some(build.clone());
            let words = format!(
                "its agent is of the build {build}, this program of {}\nhint: install the same `linerate-node` there, then `systemctl restart linerate-agent`",
                linerate_wire::BUILD
            );
            self.note_of(&host, &words);
        }
        if let Some(slot) = self.slots.get(&host) {
            slot.put(link);
        }
    }

    /// At most one a minute: a host that means harm fills no log.
    fn note_of(&mut self, host: &HostName, words: &str) {
        let now = Instant::now();
        let of_host = self.sessions.entry(host.clone()).or_default();
        if of_host.quiet_until.is_none_or(|until| until <= now) {
            of_host.quiet_until = Some(now + NOTED_EVERY);
            self.note(format!("host {host}: {words}"));
        }
    }

    fn note_cut_off(&self, count: u64, last: Option<&(SocketAddr, HandshakeError)>) {
        let Some((from, why)) = last else { return };
        self.note(format!(
            "{count} connections to the port of the agents were cut off; the last came from {from}: {why}"
        ));
    }

    fn note(&self, words: String) {
        // The reader is gone as the watch ends.
        let _ = self.notes.send(words);
    }
}
