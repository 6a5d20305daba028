//! The sessions of nodes that dial back.
//!
//! What comes in: a job, hosts in it, the node program. What goes out: a session for each host whose node
//! program came, and a gap with its reason for each other one. The key of the run is made here, goes to the
//! nodes on the stdin of their step, and is forgotten when this returns; nothing listens after that. What the
//! key proves is that a program was started by this run: on which of its nodes it says itself, so that
//! somebody with rights on one of the nodes could give himself out as another. That is refused where it
//! shows: two that have the same name, or an address that belongs to another node.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use linerate_model::inventory::{Host, HostName, SlurmJob, TransportSpec};
use linerate_wire::sealed::{DialOrder, Key, ORDER_BYTES_MAX};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::error::NodeError;
use super::one_step::{self, OneStep, Words};
use crate::clock;
use crate::link::HELLO_WAIT;
use crate::link::{ConnectInfo, LinkError, NodeLink};
use crate::listener::{Guest, Keys, Listener};
use crate::programs::ProgramSource;
use crate::sealed;

/// Longest wait for the first node, and for the next one after one came.
const FIRST_WAIT: Duration = Duration::from_secs(60);
const NEXT_WAIT: Duration = Duration::from_secs(20);
/// Longest wait for all, however many come.
const ALL_WAIT: Duration = Duration::from_secs(180);
/// Connections that are on their way when the step has ended.
const LAST_WAIT: Duration = Duration::from_secs(1);
/// Own addresses that nodes try.
const ADDRESSES_MAX: usize = 8;

/// What came of one job.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// By host.
    pub hosts: BTreeMap<HostName, Result<NodeLink, NodeError>>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// The steps that run until the sessions end.
    pub steps: Vec<OneStep>,
    /// Where the copy of the node program was.
    pub jobs: BTreeMap<HostName, SlurmJob>,
}

/// A host and what is known of it before it comes.
struct Expected {
    host: Host,
    node: String,
}

/// Starts the node program on all these hosts of one job by one step, and waits for those that dial back.
pub(super) async fn gather(id: u32, program: &ProgramSource, hosts: &[&Host]) -> Gathered {
    let expected: BTreeMap<String, Expected> = hosts
        .iter()
        .filter_map(|host| match &host.transport {
            TransportSpec::Slurm(spec) => {
                Some((spec.node.clone(), Expected { host: (*host).clone(), node: spec.node.clone() }))
            }
            _ => None,
        })
        .collect();
    let mut gathered = Gathered::default();
    let refuse = |gathered: &mut Gathered, error: &NodeError| {
        let rest = expected.values().filter(|e| !gathered.hosts.contains_key(&e.host.name));
        let rest: Vec<_> = rest.map(|e| (e.host.name.clone(), Err(error.clone()))).collect();
        gathered.hosts.extend(rest);
    };
    for host in hosts {
        if let TransportSpec::Slurm(spec) = &host.transport
            && let Some(other) = expected.get(&spec.node).filter(|e| e.host.name != host.name)
        {
            let error = NodeError::Twice { node: spec.node.clone(), other: other.host.name.clone() };
            gathered.hosts.insert(host.name.clone(), Err(error));
        }
    }
    let (step, missing) = one_step::start(id, program, expected.keys().cloned().collect()).await;
    for (node, error) in missing {
        gathered.hosts.extend(expected.get(&node).map(|e| (e.host.name.clone(), Err(error))));
    }
    let Some(mut step) = step else { return gathered };
    // The listener opens when all are ready to come, and not before.
    let opened = match listener_and_order(&expected).await {
        Ok((listener, order)) => step.order(&order).await.map(|()| listener),
        Err(error) => Err(error),
    };
    let mut listener = match opened {
        Ok(listener) => listener,
        Err(error) => {
            refuse(&mut gathered, &error);
            step.end().await;
            return gathered;
        }
    };
    let mut waiting = Waiting::of(&expected, &step);
    waiting.arrivals(&mut listener, &mut step).await;
    let (addresses, turned_away) = (listener.addresses(), std::mem::take(&mut listener.turned_away));
    // Nothing listens any more.
    drop(listener);
    let why = |node: &str| late(&addresses, step.words.quoted(node));
    gathered.hosts.extend(waiting.settle(why).await);
    gathered.notes.append(&mut waiting.notes);
    if let Some((from, why)) = turned_away.last {
        let count = turned_away.count;
        gathered.notes.push(format!(
            "{count} connections to the port on which node programs were awaited were cut off; the last came from {from}: {why}"
        ));
    }
    for node in &step.nodes {
        let job = SlurmJob { id, program: step.place.clone(), hash: program.hash.clone() };
        gathered.jobs.extend(expected.get(node).map(|e| (e.host.name.clone(), job)));
    }
    gathered.steps.push(step);
    gathered
}

/// A node that did not come.
fn late(addresses: &[SocketAddr], shown: String) -> NodeError {
    let addresses = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    if shown.is_empty() {
        NodeError::Silent { addresses }
    } else {
        NodeError::NotDialled { addresses, shown }
    }
}

/// A listener with a fresh key, and the order that tells the nodes of it.
async fn listener_and_order(expected: &BTreeMap<String, Expected>) -> Result<(Listener, String), NodeError> {
    let key = clock::random::<32>().map(Key::new).map_err(NodeError::random("key"))?;
    let of_nodes: BTreeSet<IpAddr> = expected.values().flat_map(|e| addresses_of(&e.host)).collect();
    let sockets = bound(&own_addresses(&of_nodes)?).await?;
    let listener = Listener::new(sockets, Keys::Run(key.clone()));
    let order = DialOrder {
        key,
        addresses: listener.addresses(),
        build: linerate_wire::BUILD.to_owned(),
        wait_s: FIRST_WAIT.as_secs() as u32,
    };
    let order = serde_json::to_string(&order).map_err(|e| NodeError::Order(Arc::new(e)))?;
    if order.len() >= ORDER_BYTES_MAX {
        return Err(NodeError::LongOrder(order.len()));
    }
    Ok((listener, order))
}

/// Sockets at each of these addresses, on ports that the system chooses; one is enough.
async fn bound(addresses: &[IpAddr]) -> Result<Vec<TcpListener>, NodeError> {
    let mut listeners = Vec::new();
    let mut words = Vec::new();
    for address in addresses {
        match TcpListener::bind((*address, 0)).await {
            Ok(listener) => listeners.push(listener),
            Err(error) => words.push(format!("{address}: {error}")),
        }
    }
    if listeners.is_empty() {
        return Err(NodeError::Listen(words.join(", ")));
    }
    Ok(listeners)
}

/// Addresses that belong to the host itself, not to a namespace in it.
fn addresses_of(host: &Host) -> impl Iterator<Item = IpAddr> {
    host.endpoints.iter().filter(|e| e.netns.is_none()).map(|e| e.address)
}

/// Addresses of this machine that nodes can reach: those named in `LINERATE_DIAL_TO`, or those from which the
/// kernel would send to the nodes; the one that is right for most nodes first.
fn own_addresses(nodes: &BTreeSet<IpAddr>) -> Result<Vec<IpAddr>, NodeError> {
    if let Some(named) = std::env::var("LINERATE_DIAL_TO").ok().filter(|text| !text.trim().is_empty()) {
        let parse =
            |text: &str| text.trim().parse().map_err(|_| NodeError::BadAddress(text.trim().to_owned()));
        return named.split(',').take(ADDRESSES_MAX).map(parse).collect();
    }
    let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for node in nodes {
        if let Some(address) = towards(*node) {
            *counts.entry(address).or_default() += 1;
        }
    }
    let mut addresses: Vec<(usize, IpAddr)> = counts.into_iter().map(|(a, count)| (count, a)).collect();
    addresses.sort_by_key(|(count, address)| (std::cmp::Reverse(*count), *address));
    if addresses.is_empty() {
        return Err(NodeError::NoAddress);
    }
    Ok(addresses.into_iter().map(|(_, address)| address).take(ADDRESSES_MAX).collect())
}

/// The address from which this machine would send to a node. Nothing is sent.
fn towards(node: IpAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if node.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Any port: a datagram socket that is connected only looks up the route.
    socket.connect((node, 9)).ok()?;
    socket.local_addr().ok().map(|a| a.ip()).filter(|ip| !ip.is_unspecified())
}

/// Nodes that are awaited, and those that came.
struct Waiting<'a> {
    expected: &'a BTreeMap<String, Expected>,
    words: Arc<Words>,
    missing: BTreeSet<String>,
    /// Two came with the same name.
    disputed: BTreeSet<String>,
    sessions: JoinSet<(String, Result<NodeLink, LinkError>)>,
    notes: Vec<String>,
}

impl<'a> Waiting<'a> {
    fn of(expected: &'a BTreeMap<String, Expected>, step: &OneStep) -> Self {
        Self {
            expected,
            words: Arc::clone(&step.words),
            missing: step.nodes.iter().cloned().collect(),
            disputed: BTreeSet::new(),
            sessions: JoinSet::new(),
            notes: Vec::new(),
        }
    }

    /// Takes in who comes, until all are there, nobody comes any more, or the step has ended.
    async fn arrivals(&mut self, listener: &mut Listener, step: &mut OneStep) {
        let begun = Instant::now();
        let mut until = begun + FIRST_WAIT;
        let mut running = true;
        while !self.missing.is_empty() {
            tokio::select! {
                guest = listener.next() => {
                    if self.admit(guest) {
                        until = (begun + ALL_WAIT).min(Instant::now() + NEXT_WAIT);
                    }
                }
                () = sleep_until(until) => return,
                () = step.ended(), if running => {
                    running = false;
                    until = until.min(Instant::now() + LAST_WAIT);
                }
            }
        }
    }

    /// Begins the session of a guest whose name is expected.
    fn admit(&mut self, guest: Guest) -> bool {
        let Guest { caller, from, connection, sealed } = guest;
        let Some(expected) = self.expected.get(&caller.node) else {
            self.notes
                .push(format!("a node program from {from} said that it is of another node; it was cut off"));
            return false;
        };
        if let Some(other) = self.owner(from.ip(), expected) {
            let node = &expected.node;
            self.notes.push(format!(
                "a node program from {from}, an address of {other}, said that it is {node}; it was cut off"
            ));
            return false;
        }
        if !self.missing.remove(&caller.node) {
            self.disputed.insert(caller.node);
            return false;
        }
        let pipes = sealed::pipes(connection, sealed, self.words.of(&caller.node));
        let host = expected.host.clone();
        let reached = ConnectInfo { address: None, pid: caller.pid, ..ConnectInfo::default() };
        self.sessions.spawn(async move {
            let link = match NodeLink::over(&host.name, pipes, Vec::new(), HELLO_WAIT).await {
                Ok(link) => link.with(reached).set_up(&host).await,
                Err(error) => Err(error),
            };
            (caller.node, link)
        });
        true
    }

    /// Another host to which an address belongs, and to it alone.
    fn owner(&self, from: IpAddr, expected: &Expected) -> Option<&HostName> {
        if addresses_of(&expected.host).any(|address| address == from) {
            return None;
        }
        self.expected.values().find(|e| addresses_of(&e.host).any(|a| a == from)).map(|e| &e.host.name)
    }

    /// The session of each node, or why there is none.
    async fn settle(
        &mut self,
        why: impl Fn(&str) -> NodeError,
    ) -> Vec<(HostName, Result<NodeLink, NodeError>)> {
        let mut settled = Vec::new();
        while let Some(joined) = self.sessions.join_next().await {
            let Ok((node, link)) = joined else { continue };
            let Some(expected) = self.expected.get(&node) else { continue };
            let link = match link {
                Ok(link) if self.disputed.contains(&node) => {
                    link.bye().await;
                    Err(NodeError::Disputed)
                }
                other => other.map_err(NodeError::Session),
            };
            settled.push((expected.host.name.clone(), link));
        }
        for node in &self.missing {
            settled.extend(self.expected.get(node).map(|e| (e.host.name.clone(), Err(why(node)))));
        }
        settled
    }
}
