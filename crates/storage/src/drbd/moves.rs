//! Moves: which steps on which host hand the primary over, begin the first synchronisation, or end a split
//! brain; and why not now.

use linerate_model::drbd::Replica;
use linerate_model::step::{DrbdStep, Step};

use super::setup::On;

/// Why a move is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MoveError {
    /// Not there.
    #[error(
        "{host} does not have the resource {resource} in use\nhint: `linerate drbd status HOSTS` shows which host has it"
    )]
    NoReplica {
        /// Host.
        host: String,
        /// Resource.
        resource: String,
    },
    /// It is there already.
    #[error("{host} is the primary of {resource} already\nhint: name the other host")]
    Already {
        /// Host.
        host: String,
        /// Resource.
        resource: String,
    },
    /// Not everything is as it has to be.
    #[error("{host}: {resource} is {seen}, which is not {needed}\nhint: {hint}")]
    NotReady {
        /// Host.
        host: String,
        /// Resource.
        resource: String,
        /// What it is.
        seen: String,
        /// What it has to be.
        needed: &'static str,
        /// What to do.
        hint: &'static str,
    },
}

fn of<'a>(replicas: &'a [Replica], resource: &str, host: &str) -> Result<&'a Replica, MoveError> {
    let found = replicas.iter().find(|r| r.host == host && r.resource == resource);
    found.ok_or_else(|| MoveError::NoReplica { host: host.to_owned(), resource: resource.to_owned() })
}

fn on(host: &str, step: DrbdStep) -> On {
    On { host: host.to_owned(), step: Step::Drbd(step) }
}

/// The states of a replica's disks and peers in a few words.
fn seen(replica: &Replica) -> String {
    let disks: Vec<&str> = replica.volumes.iter().map(|v| v.disk.as_str()).collect();
    let peers: Vec<&str> = replica.peers.iter().map(|p| p.connection.as_str()).collect();
    let peers = if peers.is_empty() { "without a peer".to_owned() } else { peers.join(", ") };
    format!("{} ({peers}, {} KiB out of sync)", disks.join(", "), replica.out_of_sync_kib())
}

fn not_ready(replica: &Replica, needed: &'static str, hint: &'static str) -> MoveError {
    MoveError::NotReady {
        host: replica.host.clone(),
        resource: replica.resource.clone(),
        seen: seen(replica),
        needed,
        hint,
    }
}

/// The first synchronisation, from a host whose data are the good ones.
///
/// # Errors
/// A side has good data already, is a primary, or is not connected.
pub fn first_sync(replicas: &[Replica], resource: &str, from: &str) -> Result<On, MoveError> {
    let good = of(replicas, resource, from)?;
    for replica in replicas.iter().filter(|r| r.resource == resource) {
        let new = replica.volumes.iter().all(|v| v.disk == "Inconsistent") && replica.role == "Secondary";
        if !replica.is_connected() || !new {
            let hint = "a first synchronisation begins when both sides are connected and neither has data";
            return Err(not_ready(replica, "new and connected", hint));
        }
    }
    Ok(on(&good.host, DrbdStep::Primary { resource: resource.to_owned(), force: true }))
}

/// The primary goes to a host while all are alive.
///
/// # Errors
/// The host is the primary already, is not connected, or lacks a block.
pub fn failover(replicas: &[Replica], resource: &str, to: &str) -> Result<Vec<On>, MoveError> {
    let target = of(replicas, resource, to)?;
    if target.role == "Primary" {
        return Err(MoveError::Already { host: to.to_owned(), resource: resource.to_owned() });
    }
    let whole = target.is_connected() && target.is_up_to_date() && target.out_of_sync_kib() == 0;
    if !whole || target.peer_volumes().any(linerate_model::drbd::PeerVolume::is_syncing) {
        let hint = "wait for the synchronisation; if the primary is dead, add --primary-is-dead";
        return Err(not_ready(target, "connected, up to date and in sync", hint));
    }
    let name = || resource.to_owned();
    let old = replicas.iter().filter(|r| r.resource == resource && r.role == "Primary");
    let mut steps: Vec<On> = old.map(|r| on(&r.host, DrbdStep::Secondary { resource: name() })).collect();
    steps.push(on(to, DrbdStep::Primary { resource: name(), force: false }));
    Ok(steps)
}

/// The primary goes to a host because the old one is dead. The operator vouches for that: a dead host and a
/// cut cable cannot be distinguished.
///
/// # Errors
/// The peer still answers, to this host or to the operator, or the host's data are not good.
pub fn failover_of_the_dead(replicas: &[Replica], resource: &str, to: &str) -> Result<Vec<On>, MoveError> {
    let target = of(replicas, resource, to)?;
    if target.role == "Primary" {
        return Err(MoveError::Already { host: to.to_owned(), resource: resource.to_owned() });
    }
    if target.peers.iter().any(|peer| peer.connection == "Connected") {
        let hint = "the peer answers: hand over in order, without --primary-is-dead";
        return Err(not_ready(target, "without its peer", hint));
    }
    // It just answered over a path other than that of the replication: then it is a cable that is cut.
    let alive = replicas.iter().find(|r| r.resource == resource && r.host != to && r.role == "Primary");
    if let Some(alive) = alive {
        let hint = "this host answers and is the primary, so two primaries would part the data; make it a secondary there (`drbdadm secondary`) or switch it off first";
        return Err(not_ready(alive, "dead", hint));
    }
    if !target.is_up_to_date() {
        let hint = "its data are not the newest; bring the old primary back, or restore";
        return Err(not_ready(target, "up to date", hint));
    }
    Ok(vec![on(to, DrbdStep::Primary { resource: resource.to_owned(), force: false })])
}

/// What a side would lose as the victim, KiB: what it has marked since it lost its peer. `marked_kib` is from
/// `/proc/drbd`, for a side that stands alone has no peer in its state.
#[must_use]
pub fn lost_by(victim: &Replica, marked_kib: u64) -> u64 {
    victim.out_of_sync_kib().max(marked_kib)
}

/// The end of a split brain: the victim discards what it wrote alone.
///
/// # Errors
/// The victim or its peer does not have the resource, or they are connected.
pub fn repair(replicas: &[Replica], resource: &str, victim: &str) -> Result<Vec<On>, MoveError> {
    let side = of(replicas, resource, victim)?;
    if side.is_connected() {
        return Err(not_ready(side, "without its peer", "there is nothing to repair"));
    }
    let name = || resource.to_owned();
    let mut steps = Vec::new();
    if side.role == "Primary" {
        steps.push(on(victim, DrbdStep::Secondary { resource: name() }));
    }
    // A side that stands alone has left its peer already; leaving again is an error there.
    if side.peers.iter().any(|peer| peer.connection != "StandAlone") {
        steps.push(on(victim, DrbdStep::Disconnect { resource: name() }));
    }
    steps.push(on(victim, DrbdStep::Connect { resource: name(), discard: true }));
    let mut survivors = 0;
    for survivor in replicas.iter().filter(|r| r.resource == resource && r.host != victim) {
        survivors += 1;
        // One that waits must not connect again: its address would be in use.
        if survivor.peers.iter().all(|peer| peer.connection == "StandAlone") {
            steps.push(on(&survivor.host, DrbdStep::Connect { resource: name(), discard: false }));
        }
    }
    if survivors == 0 {
        return Err(MoveError::NoReplica { host: "the peer".to_owned(), resource: resource.to_owned() });
    }
    Ok(steps)
}
