//! What is wrong with resources, or will be, from the reports of all hosts. "UpToDate" is no proof of
//! anything here.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::drbd::{DrbdAlarm, DrbdTrouble, Replica};

use super::generation::{Forecast, Generation};
use super::moves::lost_by;

/// Generations and marked KiB by host and resource.
pub type KnownGenerations = BTreeMap<(String, String), (Option<Generation>, u64)>;

/// All alarms, the worst first. `not_up` are hosts with resources that are in their files and not in use.
#[must_use]
pub fn alarms(replicas: &[Replica], known: &KnownGenerations, not_up: &[(String, String)]) -> Vec<DrbdAlarm> {
    let resources: BTreeSet<&str> = replicas.iter().map(|r| r.resource.as_str()).collect();
    let mut found: Vec<DrbdAlarm> = resources
        .into_iter()
        .flat_map(|resource| {
            let sides: Vec<&Replica> = replicas.iter().filter(|r| r.resource == resource).collect();
            Seen { resource, sides, known }.all()
        })
        .collect();
    found.extend(not_up.iter().map(|(host, resource)| DrbdAlarm {
        resource: resource.clone(),
        what: DrbdTrouble::NotUp,
        evidence: None,
        sentence: format!("{host} has {resource} in its files and not in use"),
        advice: format!("`drbdadm up {resource}` there; without metadata it prints an error"),
    }));
    found.sort_by_key(|alarm| alarm.what);
    found
}

/// The generation since which both sides went on alone.
fn since(common: u64) -> String {
    match common {
        0 => "a generation that neither knows any more (or they never had one in common)".to_owned(),
        common => format!("generation {common:016X}"),
    }
}

struct Seen<'a> {
    resource: &'a str,
    sides: Vec<&'a Replica>,
    known: &'a KnownGenerations,
}

impl Seen<'_> {
    fn alarm(&self, what: DrbdTrouble, sentence: String, advice: &str) -> DrbdAlarm {
        DrbdAlarm {
            resource: self.resource.to_owned(),
            what,
            evidence: None,
            sentence,
            advice: advice.replace("RESOURCE", self.resource).replace("HOSTS", &self.hosts()),
        }
    }

    /// Hosts of the resource, as the commands about it take them.
    fn hosts(&self) -> String {
        self.sides.iter().map(|side| side.host.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn all(&self) -> Vec<DrbdAlarm> {
        let mut found = self.apart();
        found.extend(self.differs());
        found.extend(self.of_sides());
        found
    }

    fn known(&self, side: &Replica) -> (Option<Generation>, u64) {
        self.known.get(&(side.host.clone(), self.resource.to_owned())).copied().unwrap_or_default()
    }

    /// Sides that are not connected: whether they may be again.
    fn apart(&self) -> Vec<DrbdAlarm> {
        let mut found = Vec::new();
        for (at, left) in self.sides.iter().enumerate() {
            for right in &self.sides[at + 1..] {
                if left.is_connected() && right.is_connected() {
                    continue;
                }
                let ((Some(own), own_kib), (Some(theirs), their_kib)) = (self.known(left), self.known(right))
                else {
                    continue;
                };
                let wrote = |side: &Replica, marked| {
                    format!("{} ({}) has {} KiB of its own", side.host, side.role, lost_by(side, marked))
                };
                match own.forecast(&theirs) {
                    Forecast::SplitBrain { common } => found.push(self.alarm(
                        DrbdTrouble::SplitBrain,
                        format!(
                            "split brain of {}: both sides were written to without each other since {}; {}, {}. They will refuse to connect",
                            self.resource,
                            since(common),
                            wrote(left, own_kib),
                            wrote(right, their_kib)
                        ),
                        &format!(
                            "stop writing on both; `linerate drbd repair RESOURCE --victim {} HOSTS` or \
                             `linerate drbd repair RESOURCE --victim {} HOSTS` prints what that victim would \
                             lose before it changes anything",
                            left.host, right.host
                        ),
                    )),
                    Forecast::Unrelated => found.push(self.alarm(
                        DrbdTrouble::Unrelated,
                        format!("{}: the data of {} and {} have no common origin", self.resource, left.host, right.host),
                        "find out which device was exchanged; the metadata of the wrong side have to be made anew, and all of it is copied",
                    )),
                    _ => {}
                }
            }
        }
        found
    }

    /// Blocks that differ though every state is good.
    fn differs(&self) -> Option<DrbdAlarm> {
        let kib = |side: &Replica| -> u64 {
            let volumes = side.peers.iter().filter(|p| p.connection == "Connected").flat_map(|p| &p.volumes);
            let quiet = volumes.filter(|v| v.replication == "Established" && v.disk == "UpToDate");
            quiet.map(|v| v.out_of_sync_kib).sum()
        };
        let worst = self.sides.iter().filter(|side| side.is_up_to_date()).map(|side| kib(side)).max()?;
        (worst > 0).then(|| {
            self.alarm(
                DrbdTrouble::OutOfSync,
                format!(
                    "{} differs in {worst} KiB between its sides, though both are connected and UpToDate: a \
                     comparison found it, and nothing has been copied since",
                    self.resource
                ),
                "find out which side is right. The primary: on the other `drbdadm disconnect RESOURCE` and `drbdadm connect RESOURCE`, which copies the marked blocks (only while the right side is the primary). The secondary: give it the primary's part first; or `drbdadm invalidate RESOURCE` on the wrong side, which copies all of the other",
            )
        })
    }

    fn of_sides(&self) -> Vec<DrbdAlarm> {
        let mut found = Vec::new();
        let split = self.apart().iter().any(|alarm| alarm.what == DrbdTrouble::SplitBrain);
        let good = self
            .sides
            .iter()
            .any(|side| side.is_up_to_date() || side.peer_volumes().any(|volume| volume.disk == "UpToDate"));
        if !good && !self.sides.is_empty() {
            found.push(self.alarm(
                DrbdTrouble::NoGoodData,
                format!("no side of {} has good data: it cannot be written", self.resource),
                "a new resource; `linerate drbd up --help`: --from names the good side",
            ));
        }
        for side in &self.sides {
            found.extend(self.of_side(side, split));
        }
        found
    }

    fn of_side(&self, side: &Replica, split: bool) -> Vec<DrbdAlarm> {
        let (host, name) = (&side.host, self.resource);
        let mut found = Vec::new();
        let disk = |state: &str| side.volumes.iter().any(|volume| volume.disk == state);
        if disk("Diskless") || disk("Failed") {
            found.push(self.alarm(
                DrbdTrouble::Diskless,
                format!("{host} works on {name} without a disk of its own: every block comes from the peer"),
                "check the kernel's log for errors of the disk, replace it, `drbdadm create-md RESOURCE`, \
                 `drbdadm attach RESOURCE`",
            ));
        }
        let syncing = side.peer_volumes().any(linerate_model::drbd::PeerVolume::is_syncing);
        if !syncing
            && (disk("Outdated")
                || disk("Inconsistent")
                    && side.is_connected()
                    && side.peer_volumes().any(|v| v.disk == "UpToDate"))
        {
            found.push(self.alarm(
                DrbdTrouble::Behind,
                format!("the data of {name} on {host} are not the newest, and nothing is being copied"),
                "`drbdadm connect RESOURCE` on both sides; `linerate drbd status HOSTS` then shows the synchronisation",
            ));
        }
        if side.peers.is_empty() || side.peers.iter().any(|peer| peer.connection == "StandAlone") {
            if !split {
                found.push(self.alarm(
                    DrbdTrouble::StandAlone,
                    format!("{host} does not connect to its peer of {name}: its writes stay local"),
                    "`drbdadm connect RESOURCE` there, after `linerate drbd status HOSTS`, with both of its hosts, has foreseen no split brain",
                ));
            }
        } else if let Some(peer) = side.peers.iter().find(|peer| peer.connection != "Connected") {
            found.push(self.alarm(
                DrbdTrouble::PeerMissing,
                format!("{host} cannot connect to its peer of {name} ({})", peer.connection),
                "check the peer and the path between the addresses of the resource; do not make the other \
                 side a primary meanwhile",
            ));
        }
        if side.peers.iter().any(|peer| peer.congested) {
            found.push(self.alarm(
                DrbdTrouble::Congested,
                format!("{host} has more to send for {name} than the network takes"),
                "`linerate measure tcp HOSTS` shows what the path carries",
            ));
        }
        found
    }
}
