//! Watching the block devices of many hosts for as long as one wants: intervals, findings as they begin and
//! end, hosts that are lost and come back.
//!
//! In: open sessions and the hosts of an inventory. Out: events, and at any time what is known of each host.
//! A host that is lost is asked again, later each time, while the others go on. Memory is bounded:
//! [`super::thinned`] for intervals, [`linerate_diagnose::disks::DriveHistory`] for findings.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use linerate_diagnose::disks::{DriveHistory, IntervalChange};
use linerate_model::disk::DiskInterval;
use linerate_model::disk_user::DiskUserKind;
use linerate_model::fact::{Gap, GapSubject};
use linerate_model::inventory::{Host, HostName, Inventory, TransportSpec};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::disks::WatchedDevices;
use super::join;
use super::thinned::Thinned;
use linerate_fleet::clock;
use linerate_fleet::{Fleet, LinkError, NodeLink};

/// First and longest pause before a lost host is asked again; it doubles in between.
const AGAIN_MIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// Device intervals of all hosts together that are kept for the store: about 60 MB.
const STORED_MAX: usize = 100_000;
/// The same of one of many hosts.
const STORED_MIN: usize = 2_000;

/// What happened.
#[derive(Debug, Clone)]
pub enum DiskWatchEvent {
    /// A host is watched from now on.
    Begun {
        /// Its place in the list of hosts.
        host: usize,
        /// How long it was away before, seconds; `None` at the begin of the watch.
        away_s: Option<f64>,
    },
    /// What the devices of a host did.
    Interval(DiskInterval),
    /// A finding began or ended.
    Finding(IntervalChange),
    /// A host is not reached any more.
    Lost {
        /// Its place in the list of hosts.
        host: usize,
    },
}

/// Why a host is not seen now, and since when.
#[derive(Debug, Clone)]
pub struct Away {
    /// End of a sentence about it.
    pub reason: String,
    /// Milliseconds since 1970.
    pub since_ms: u64,
    /// When it is asked again; `None` while it is being asked, and for a host that cannot be.
    next: Option<Instant>,
    pause: Duration,
}

/// A host of the watch.
#[derive(Debug)]
pub struct WatchedHost {
    /// Name.
    pub name: HostName,
    /// Its devices, as they were seen last; `None` where it was never seen.
    pub watched: Option<WatchedDevices>,
    /// Why it is not seen now.
    pub away: Option<Away>,
    /// Its findings.
    pub history: DriveHistory,
    /// Its intervals, for the store.
    pub stored: Thinned,
    /// How long its intervals were, seconds.
    pub seen_s: f64,
    /// How often it was lost and came back, how long it was away in all, seconds, and the reason of the last
    /// time.
    absences: (u32, f64, String),
}

impl WatchedHost {
    fn new(name: HostName, rows_max: usize) -> Self {
        Self {
            name,
            watched: None,
            away: None,
            history: DriveHistory::default(),
            stored: Thinned::new(rows_max),
            seen_s: 0.0,
            absences: (0, 0.0, String::new()),
        }
    }

    /// Whether it was seen at any time.
    #[must_use]
    pub fn was_seen(&self) -> bool {
        self.watched.is_some()
    }

    /// What of the watch is missing of it.
    #[must_use]
    pub fn gap(&self) -> Option<String> {
        let (times, seconds, last) = &self.absences;
        match (&self.away, times) {
            (Some(away), _) if self.was_seen() => {
                let seconds = clock::now_ms().saturating_sub(away.since_ms) / 1000;
                Some(format!("lost, and not seen for the last {seconds} s of the watch: {}", away.reason))
            }
            (Some(away), _) => Some(away.reason.clone()),
            (None, 0) => None,
            (None, 1) => Some(format!("not seen for {seconds:.0} s of the watch: {last}")),
            (None, _) => Some(format!(
                "not seen for {seconds:.0} s of the watch, in {times} periods; the last one: {last}"
            )),
        }
    }

    fn lose(&mut self, reason: String) -> Vec<IntervalChange> {
        let next = Some(Instant::now() + AGAIN_MIN);
        self.away = Some(Away { reason, since_ms: clock::now_ms(), next, pause: AGAIN_MIN });
        self.watched.as_ref().map_or_else(Vec::new, |w| self.history.pause(&w.layout))
    }

    /// Back, or there for the first time.
    fn found(&mut self, watched: WatchedDevices, is_first: bool) -> Option<f64> {
        let away_s = self.away.take().filter(|_| !is_first).map(|away| {
            let seconds = clock::now_ms().saturating_sub(away.since_ms) as f64 / 1e3;
            self.absences = (self.absences.0 + 1, self.absences.1 + seconds, away.reason);
            seconds
        });
        self.watched = Some(watched);
        away_s
    }

    fn again_later(&mut self, reason: String) {
        if let Some(away) = &mut self.away {
            away.reason = reason;
            away.next = Some(Instant::now() + away.pause);
            away.pause = (away.pause * 2).min(AGAIN_MAX);
        }
    }
}

/// A session with a host, and its devices at the begin of it.
type Found = Result<(Arc<NodeLink>, WatchedDevices), String>;
/// A question to a host under way.
type Asked<'a> = Pin<Box<dyn Future<Output = Result<Option<DiskInterval>, String>> + 'a>>;

/// Hosts that are watched.
#[derive(Debug)]
pub struct DiskWatch<'a> {
    fleet: &'a Fleet,
    inventory: &'a Inventory,
    percentiles: bool,
    by: Option<DiskUserKind>,
    /// The hosts, in the order of the inventory.
    pub hosts: Vec<WatchedHost>,
    /// What is not to be seen, besides hosts.
    pub gaps: Vec<Gap>,
    attempts: JoinSet<(usize, Found)>,
}

/// Reads what a host has; with a new session where there is none.
async fn find(
    link: Result<Arc<NodeLink>, impl Future<Output = Result<NodeLink, LinkError>>>,
    percentiles: bool,
    by: Option<DiskUserKind>,
) -> Found {
    let link = match link {
        Ok(link) => link,
        Err(open) => Arc::new(open.await.map_err(LinkError::reason)?),
    };
    let watched =
        WatchedDevices::begin(&link, percentiles, by).await.map_err(|reason| bare(link.host(), &reason))?;
    Ok((link, watched))
}

/// A reason without the name of the host, which stands before it.
fn bare(host: &str, reason: &str) -> String {
    let named = format!("host {host} ");
    let rest = reason.strip_prefix(&named).unwrap_or(reason);
    rest.strip_prefix("is lost: ").unwrap_or(rest).to_owned()
}

impl<'a> DiskWatch<'a> {
    /// Begins with all hosts at the same time.
    pub async fn begin(
        fleet: &'a Fleet,
        inventory: &'a Inventory,
        percentiles: bool,
        by: Option<DiskUserKind>,
    ) -> (Self, Vec<DiskWatchEvent>) {
        let rows = (STORED_MAX / inventory.hosts.len().max(1)).max(STORED_MIN);
        let hosts: Vec<WatchedHost> =
            inventory.hosts.iter().map(|host| WatchedHost::new(host.name.clone(), rows)).collect();
        let of_hosts = |gap: &&Gap| hosts.iter().all(|h| gap.what != GapSubject::Host(h.name.clone()));
        let gaps = fleet.gaps.iter().filter(of_hosts).cloned().collect();
        let mut watch = Self { fleet, inventory, percentiles, by, hosts, gaps, attempts: JoinSet::new() };
        for (at, host) in inventory.hosts.iter().enumerate() {
            watch.hosts[at].lose(String::new());
            match (&host.transport, fleet.link(&host.name)) {
                (TransportSpec::Iperf3 { .. }, _) => {
                    if let Some(away) = watch.hosts[at].away.as_mut() {
                        away.next = None;
                        "it is reached by iperf3 alone, which reports no disks".clone_into(&mut away.reason);
                    }
                }
                (_, Err(error)) => watch.hosts[at].again_later(bare(&host.name, &error.to_string())),
                (_, Ok(_)) => watch.attempt(at, host),
            }
        }
        let mut events = Vec::new();
        while let Some(joined) = watch.attempts.join_next().await {
            watch.joined(joined, true, &mut events);
        }
        (watch, events)
    }

    /// Whether any host was seen at any time.
    #[must_use]
    pub fn has_seen_any(&self) -> bool {
        self.hosts.iter().any(WatchedHost::was_seen)
    }

    /// All that is missing.
    #[must_use]
    pub fn all_gaps(&self) -> Vec<Gap> {
        let of =
            |host: &WatchedHost| Some(Gap { what: GapSubject::Host(host.name.clone()), reason: host.gap()? });
        self.gaps.iter().cloned().chain(self.hosts.iter().filter_map(of)).collect()
    }

    /// One interval of every host that is seen, and attempts at those that are not. Lost hosts do not hold up
    /// the others.
    pub async fn interval(&mut self) -> Vec<DiskWatchEvent> {
        let mut events = Vec::new();
        self.ask_again();
        let fleet = self.fleet;
        let mut asked: Vec<(usize, Asked<'_>)> = Vec::new();
        for (at, host) in self.hosts.iter_mut().enumerate().filter(|(_, host)| host.away.is_none()) {
            let Some(watched) = &mut host.watched else { continue };
            let ask = async move {
                let link = fleet.link(&watched.host).map_err(|e| e.to_string())?;
                watched.interval(&link).await
            };
            asked.push((at, Box::pin(ask)));
        }
        let (numbers, futures): (Vec<usize>, Vec<Asked<'_>>) = asked.into_iter().unzip();
        for (at, answer) in numbers.into_iter().zip(join::all(futures).await) {
            let host = &mut self.hosts[at];
            match answer {
                Ok(Some(interval)) => {
                    let Some(watched) = &host.watched else { continue };
                    let changes = host.history.push(&watched.layout, &interval, watched.turned);
                    host.seen_s += interval.seconds;
                    host.stored.push(&interval);
                    events.push(DiskWatchEvent::Interval(interval));
                    events.extend(changes.into_iter().map(DiskWatchEvent::Finding));
                }
                Ok(None) => {}
                Err(reason) => {
                    let changes = host.lose(bare(&host.name, &reason));
                    events.extend(changes.into_iter().map(DiskWatchEvent::Finding));
                    events.push(DiskWatchEvent::Lost { host: at });
                }
            }
        }
        // Hosts that are back begin with the next interval.
        while let Some(joined) = self.attempts.try_join_next() {
            self.joined(joined, false, &mut events);
        }
        events
    }

    /// The end: what a short watch leaves to be judged.
    pub fn finish(&mut self) -> Vec<DiskWatchEvent> {
        self.attempts.abort_all();
        let of = |host: &mut WatchedHost| match &host.watched {
            Some(watched) if host.away.is_none() => host.history.finish(&watched.layout),
            _ => Vec::new(),
        };
        self.hosts.iter_mut().flat_map(of).map(DiskWatchEvent::Finding).collect()
    }

    fn ask_again(&mut self) {
        let (inventory, now) = (self.inventory, Instant::now());
        for (at, host) in inventory.hosts.iter().enumerate() {
            let due = |away: &Away| away.next.is_some_and(|next| next <= now);
            if self.hosts[at].away.as_ref().is_some_and(due) {
                self.attempt(at, host);
            }
        }
    }

    /// Asks a host in a task of its own.
    fn attempt(&mut self, at: usize, host: &Host) {
        if let Some(away) = &mut self.hosts[at].away {
            away.next = None;
        }
        let link = self.fleet.link(&host.name).map_err(|_| self.fleet.reopen(host));
        let (percentiles, by) = (self.percentiles, self.by);
        self.attempts.spawn(async move { (at, find(link, percentiles, by).await) });
    }

    fn joined(
        &mut self,
        joined: Result<(usize, Found), tokio::task::JoinError>,
        is_first: bool,
        events: &mut Vec<DiskWatchEvent>,
    ) {
        // A task that was aborted or panicked has no host to name; its host stays away.
        let Ok((at, found)) = joined else { return };
        match found {
            Ok((link, watched)) => {
                self.fleet.attach(link);
                let away_s = self.hosts[at].found(watched, is_first);
                events.push(DiskWatchEvent::Begun { host: at, away_s });
            }
            Err(reason) => self.hosts[at].again_later(reason),
        }
    }
}
