//! Waiting for what DRBD does by itself: synchronisations and comparisons, with a remaining time that is
//! true.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linerate_storage::drbd::{SyncMeter, SyncProgress};

use crate::cli::documents::UnderWay;
use linerate_fleet::Fleet;
use linerate_fleet::progress::{Progress, ProgressPhase};
use linerate_operator::observe::drbd::{self as seen, Replicas};
use linerate_report::drbd as shown;

/// What DRBD does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Synchronises,
    Compares,
}

impl std::fmt::Display for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Synchronises => "synchronises",
            Self::Compares => "compares",
        })
    }
}

/// Follows everything that is under way on some hosts.
#[derive(Debug, Default)]
pub(super) struct Follow {
    begun: Option<Instant>,
    /// By host that sends, resource and device.
    paces: BTreeMap<(String, String, u32), (SyncMeter, Work)>,
    /// Something is under way of which nothing that is read here says how much is left: 8.4 says it in a file
    /// of its own, DRBD 9 in debugfs.
    unmeasured: bool,
    /// Looks in a row that did not show a host on which something was under way.
    unseen: usize,
}

impl Follow {
    /// Takes a look.
    pub(super) fn take(&mut self, now: &Replicas) {
        let at_s = self.begun.get_or_insert_with(Instant::now).elapsed().as_secs_f64();
        let mut running = Vec::new();
        self.unmeasured = false;
        for replica in &now.all {
            for peer in replica.peers.iter().flat_map(|peer| &peer.volumes) {
                // One side of each is enough.
                let Some(volume) = replica.volumes.iter().find(|volume| volume.number == peer.number) else {
                    continue;
                };
                let (work, left_of) = match peer.replication.as_str() {
                    "SyncSource" | "PausedSyncS" => {
                        (Work::Synchronises, Some((peer.out_of_sync_kib, peer.out_of_sync_kib)))
                    }
                    "VerifyS" => (Work::Compares, compared(now, &replica.host, volume.minor)),
                    _ => continue,
                };
                let key = (replica.host.clone(), replica.resource.clone(), volume.number);
                if let Some((left, all)) = left_of {
                    let (pace, _) =
                        self.paces.entry(key.clone()).or_insert_with(|| (SyncMeter::new(all), work));
                    pace.add(at_s, left);
                } else {
                    self.unmeasured = true;
                }
                running.push(key);
            }
        }
        // A host that did not answer once has not ended what it was doing.
        let shows = |key: &(String, String, u32)| now.of(&key.0, &key.1).is_some();
        self.unseen = if self.paces.keys().all(shows) { 0 } else { self.unseen + 1 };
        let patient = self.unseen < BLIND_MAX;
        self.paces.retain(|key, _| running.contains(key) || (patient && !shows(key)));
    }

    /// Whether anything is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.unmeasured || !self.paces.is_empty()
    }

    fn all(&self) -> impl Iterator<Item = (String, SyncProgress)> {
        self.paces.iter().filter_map(|((host, resource, number), (pace, work))| {
            let volume = if *number == 0 { String::new() } else { format!("/{number}") };
            Some((format!("{resource}{volume} {work} from {host}"), pace.now()?))
        })
    }

    /// Rates of what is synchronised, KiB/s, by resource.
    pub(super) fn rates(&self) -> Vec<(String, f64)> {
        let syncing = self.paces.iter().filter(|(_, (_, work))| *work == Work::Synchronises);
        syncing
            .filter_map(|((_, resource, _), (pace, _))| Some((resource.clone(), pace.now()?.kib_per_s?)))
            .collect()
    }

    /// A line for each.
    pub(super) fn lines(&self) -> Vec<String> {
        self.all().map(|(what, now)| shown::progress(&what, &now)).collect()
    }

    /// For programs.
    pub(super) fn document(&self) -> Vec<UnderWay> {
        self.all().map(|(what, progress)| UnderWay { what, progress }).collect()
    }

    /// The one that takes longest.
    fn slowest(&self) -> Option<SyncProgress> {
        let all: Vec<SyncProgress> = self.all().map(|(_, now)| now).collect();
        all.into_iter().max_by_key(|now| now.left_kib)
    }
}

/// What is left of a comparison: 8.4 says it in `/proc/drbd` alone.
fn compared(now: &Replicas, host: &str, minor: u32) -> Option<(u64, u64)> {
    let (_, devices) = now.proc.iter().find(|(h, _)| h == host)?;
    devices.iter().find(|device| device.minor == minor)?.left_of_kib
}

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A synchronisation begins so long after it was asked for, in looks.
const BEGIN_LOOKS: usize = 5;
/// Steps of the live line.
const STEPS: usize = 1000;
/// Looks that may fail in a row.
const BLIND_MAX: usize = 10;

/// How what was waited for ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// The last poll.
    pub now: Replicas,
    /// Whether anything was ever seen under way.
    pub was_busy: bool,
    /// How far it was when it was last seen under way, if that can be read.
    pub last: Option<SyncProgress>,
}

/// A comparison that had so much to do still, and is not seen any more at the next look, did not come to its
/// end.
const LEFT_S_MAX: f64 = 10.0;
/// The same where no rate was seen: the share that has to be done.
const DONE_MIN: f64 = 0.5;

impl Ended {
    /// How far it was when it was broken off, 0 to 1; `None` when it came to its end. `goes_on` is whether
    /// both sides are still connected.
    pub(super) fn broken_off_at(&self, goes_on: bool) -> Option<f64> {
        let Some(last) = &self.last else { return (!goes_on).then_some(0.0) };
        let was_near = last.left_s.map_or(last.share >= DONE_MIN, |left| left <= LEFT_S_MAX);
        (!goes_on || !was_near).then_some(last.share)
    }
}

/// Waits until nothing is under way any more.
pub(super) async fn until_done(fleet: &Fleet, what: &str, progress: &dyn Progress) -> anyhow::Result<Ended> {
    let mut follow = Follow::default();
    let (mut looks, mut blind, mut was_busy, mut last) = (0, 0, false, None);
    progress.begin(&ProgressPhase { name: what, unit: "per mille", total: STEPS, expected_s: None });
    loop {
        let now = seen::look(fleet).await;
        follow.take(&now);
        blind = if now.all.is_empty() || follow.unseen > 0 { blind + 1 } else { 0 };
        anyhow::ensure!(
            blind < BLIND_MAX,
            "a host does not show its replicas any more, so that the end of this cannot be seen; it goes on by itself\nhint: `linerate drbd status {}`",
            fleet.all_arguments()
        );
        was_busy |= follow.is_busy();
        looks += 1;
        if !follow.is_busy() && (was_busy || looks > BEGIN_LOOKS) {
            progress.step(STEPS, "", None);
            progress.end();
            return Ok(Ended { now, was_busy, last });
        }
        if let Some(slowest) = follow.slowest() {
            let done = (slowest.share * STEPS as f64) as usize;
            let line = follow.lines().into_iter().next().unwrap_or_default();
            progress.step(done.min(STEPS), &line, slowest.left_s);
            last = Some(slowest);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Waits until a condition holds; `false` when it did not in time.
pub(super) async fn until(
    fleet: &Fleet,
    limit: Duration,
    is_so: impl Fn(&Replicas) -> bool,
) -> (bool, Replicas) {
    let begun = Instant::now();
    loop {
        let now = seen::look(fleet).await;
        let so = is_so(&now);
        if so || begun.elapsed() >= limit {
            return (so, now);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::drbd::{DrbdVolume, Peer, PeerVolume, Replica};
    use linerate_storage::drbd::ProcDevice;

    use super::*;

    fn replica(host: &str, replication: &str) -> Replica {
        let volumes = vec![PeerVolume { replication: replication.into(), ..PeerVolume::default() }];
        Replica {
            host: host.into(),
            resource: "r0".into(),
            volumes: vec![DrbdVolume::default()],
            peers: vec![Peer { volumes, ..Peer::default() }],
            ..Replica::default()
        }
    }

    /// A look at two hosts; `left` as `/proc/drbd` of the first one tells it.
    fn look(first: Option<&str>, left: Option<(u64, u64)>) -> Replicas {
        let device = ProcDevice { left_of_kib: left, ..ProcDevice::default() };
        let all = first.map(|state| replica("one", state)).into_iter().chain([replica("two", "VerifyT")]);
        Replicas { all: all.collect(), proc: vec![("one".into(), vec![device])], ..Replicas::default() }
    }

    #[test]
    fn a_comparison_ends_when_its_host_says_so_and_not_when_a_look_shows_less() {
        let mut follow = Follow::default();
        let mut after = |first, left| {
            follow.take(&look(first, left));
            follow.is_busy()
        };
        // DRBD 9, and 8.4 before its file tells anything.
        assert!(after(Some("VerifyS"), None));
        assert!(after(Some("VerifyS"), Some((80, 100))));
        // A look that fails at one host, and one at its file.
        assert!(after(None, None));
        assert!(after(Some("VerifyS"), None));
        assert!(!after(Some("Established"), None));
    }

    #[test]
    fn a_comparison_that_was_cut_off_is_not_taken_for_a_whole_one() {
        let at = |share: f64, left_s| {
            let last = SyncProgress { share, left_s, ..SyncProgress::default() };
            Ended { now: Replicas::default(), was_busy: true, last: Some(last) }
        };
        assert_eq!(at(0.1, Some(300.0)).broken_off_at(false), Some(0.1));
        // The link came back between two looks.
        assert_eq!(at(0.1, Some(300.0)).broken_off_at(true), Some(0.1));
        assert_eq!(at(0.97, Some(2.0)).broken_off_at(true), None);
        assert_eq!(at(0.7, None).broken_off_at(true), None);
        assert_eq!(at(0.97, Some(2.0)).broken_off_at(false), Some(0.97));
        // DRBD 9 does not say how far it is.
        let unmeasured = Ended { now: Replicas::default(), was_busy: true, last: None };
        assert_eq!((unmeasured.broken_off_at(true), unmeasured.broken_off_at(false)), (None, Some(0.0)));
    }

    #[test]
    fn a_host_that_is_gone_is_waited_for_some_looks_only() {
        let mut follow = Follow::default();
        follow.take(&look(Some("VerifyS"), Some((80, 100))));
        let patient = (0..100).take_while(|_| {
            follow.take(&look(None, None));
            follow.is_busy()
        });
        assert_eq!(patient.count(), BLIND_MAX - 1);
    }
}
