//! Lines of `drbdsetup events2`, which 8.4 and 9 both print: what exists, what was created, changed,
//! destroyed.

use linerate_model::drbd::{DrbdVolume, Peer, PeerVolume, Replica};

use super::reader::{StateReader, word, words};

/// The reader.
pub(super) struct Events2;

const ACTIONS: [&str; 5] = ["exists", "create", "change", "rename", "destroy"];
const THINGS: [&str; 4] = ["resource", "device", "connection", "peer-device"];

/// Action, thing and the rest, with or without the time in front.
fn line_of(line: &str) -> Option<(&str, &str, &str)> {
    let mut rest = line.trim();
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        rest = rest.split_once(' ')?.1;
    }
    let (action, rest) = rest.split_once(' ')?;
    let (thing, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    (ACTIONS.contains(&action) && THINGS.contains(&thing)).then_some((action, thing, rest))
}

impl StateReader for Events2 {
    fn is_mine(&self, text: &str) -> bool {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.next().is_some_and(|line| line_of(line).is_some() || line.trim_end().ends_with("exists -"))
    }

    fn read(&self, text: &str) -> Vec<Replica> {
        let mut replicas: Vec<Replica> = Vec::new();
        for (action, thing, rest) in text.lines().filter_map(line_of) {
            let Some(name) = word(rest, "name") else { continue };
            if action == "destroy" {
                destroy(&mut replicas, thing, name, rest);
            } else {
                take(entry(&mut replicas, |r| r.resource == name, || named(name)), thing, rest);
            }
        }
        replicas
    }
}

fn named(name: &str) -> Replica {
    Replica { resource: name.to_owned(), ..Replica::default() }
}

/// The entry that is meant, made when it is not there.
fn entry<T>(all: &mut Vec<T>, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let at = all.iter().position(is_it).unwrap_or_else(|| {
        all.push(new());
        all.len() - 1
    });
    &mut all[at]
}

fn number<T: std::str::FromStr + Default>(line: &str, name: &str) -> T {
    word(line, name).and_then(|value| value.parse().ok()).unwrap_or_default()
}

fn peer_of<'a>(replica: &'a mut Replica, rest: &str) -> &'a mut Peer {
    let name = word(rest, "conn-name").unwrap_or("peer");
    entry(&mut replica.peers, |p| p.name == name, || Peer { name: name.to_owned(), ..Peer::default() })
}

fn take(replica: &mut Replica, thing: &str, rest: &str) {
    match thing {
        "resource" => {
            if let Some(role) = word(rest, "role") {
                role.clone_into(&mut replica.role);
            }
        }
        "device" => {
            let at = number(rest, "volume");
            let volume = entry(
                &mut replica.volumes,
                |v| v.number == at,
                || DrbdVolume { number: at, ..DrbdVolume::default() },
            );
            for (name, value) in words(rest) {
                match name {
                    "minor" => volume.minor = value.parse().unwrap_or_default(),
                    "disk" => value.clone_into(&mut volume.disk),
                    "size" => volume.size_kib = value.parse().unwrap_or_default(),
                    _ => {}
                }
            }
        }
        "connection" => {
            let peer = peer_of(replica, rest);
            for (name, value) in words(rest) {
                match name {
                    "connection" => value.clone_into(&mut peer.connection),
                    "role" => value.clone_into(&mut peer.role),
                    "congested" => peer.congested = value == "yes",
                    _ => {}
                }
            }
        }
        _ => {
            let at = number(rest, "volume");
            let peer = peer_of(replica, rest);
            let volume = entry(
                &mut peer.volumes,
                |v| v.number == at,
                || PeerVolume { number: at, ..PeerVolume::default() },
            );
            for (name, value) in words(rest) {
                match name {
                    "replication" => value.clone_into(&mut volume.replication),
                    "peer-disk" => value.clone_into(&mut volume.disk),
                    "out-of-sync" => volume.out_of_sync_kib = value.parse().unwrap_or_default(),
                    "sent" => volume.sent_kib = value.parse().unwrap_or_default(),
                    _ => {}
                }
            }
        }
    }
}

fn destroy(replicas: &mut Vec<Replica>, thing: &str, name: &str, rest: &str) {
    if thing == "resource" {
        replicas.retain(|r| r.resource != name);
        return;
    }
    let Some(replica) = replicas.iter_mut().find(|r| r.resource == name) else { return };
    let (peer, volume) = (word(rest, "conn-name").unwrap_or("peer"), number::<u32>(rest, "volume"));
    match thing {
        "device" => replica.volumes.retain(|v| v.number != volume),
        "connection" => replica.peers.retain(|p| p.name != peer),
        _ => {
            for p in replica.peers.iter_mut().filter(|p| p.name == peer) {
                p.volumes.retain(|v| v.number != volume);
            }
        }
    }
}
