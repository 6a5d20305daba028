//! `drbdsetup status --verbose --statistics`: a resource at the margin, its devices and peers below it,
//! devices of a peer below that.

use linerate_model::drbd::{DrbdVolume, Peer, PeerVolume, Replica};

use super::reader::{StateReader, word, words};

/// The reader.
pub(super) struct Status;

fn depth(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// `NAME role:…` at the margin.
fn resource(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(' ')?;
    let is_head = depth(line) == 0 && !name.contains(':') && rest.starts_with("role:");
    is_head.then(|| Some((name, word(rest, "role")?))).flatten()
}

impl StateReader for Status {
    fn is_mine(&self, text: &str) -> bool {
        text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| resource(line).is_some())
    }

    fn read(&self, text: &str) -> Vec<Replica> {
        let mut replicas: Vec<Replica> = Vec::new();
        for line in text.lines() {
            if let Some((name, role)) = resource(line) {
                replicas.push(Replica {
                    resource: name.to_owned(),
                    role: role.to_owned(),
                    ..Replica::default()
                });
            } else if let Some(replica) = replicas.last_mut() {
                below(replica, line);
            }
        }
        replicas
    }
}

/// A line below a resource. Lines that go on from the one before have no word of their own that begins a
/// thing.
fn below(replica: &mut Replica, line: &str) {
    let text = line.trim();
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    if text.contains("replication:") || first.starts_with("peer-disk:") {
        if let Some(peer) = replica.peers.last_mut() {
            peer.volumes.push(PeerVolume::default());
        }
    } else if text.contains("disk:") && !text.contains("peer-disk:") {
        replica.volumes.push(DrbdVolume::default());
    } else if !first.contains(':') && !first.is_empty() {
        replica.peers.push(Peer {
            name: first.to_owned(),
            connection: "Connected".to_owned(),
            ..Peer::default()
        });
    }
    // In one peer's part the words are its; before the first peer they are the own devices'.
    let in_peer = !replica.peers.is_empty();
    for (name, value) in words(text) {
        if let Some(peer) = replica.peers.last_mut() {
            match name {
                "connection" => value.clone_into(&mut peer.connection),
                "role" => value.clone_into(&mut peer.role),
                "congested" => peer.congested = value == "yes",
                _ => {}
            }
            let Some(volume) = peer.volumes.last_mut() else { continue };
            match name {
                "volume" => volume.number = value.parse().unwrap_or_default(),
                "replication" => value.clone_into(&mut volume.replication),
                "peer-disk" => value.clone_into(&mut volume.disk),
                "out-of-sync" => volume.out_of_sync_kib = value.parse().unwrap_or_default(),
                "sent" => volume.sent_kib = value.parse().unwrap_or_default(),
                _ => {}
            }
        }
        if let Some(volume) = replica.volumes.last_mut().filter(|_| !in_peer) {
            match name {
                "volume" => volume.number = value.parse().unwrap_or_default(),
                "minor" => volume.minor = value.parse().unwrap_or_default(),
                "disk" => value.clone_into(&mut volume.disk),
                "size" => volume.size_kib = value.parse().unwrap_or_default(),
                _ => {}
            }
        }
    }
}
