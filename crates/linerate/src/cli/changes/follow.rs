//! `linerate changes --follow`: what hosts report of changes as they happen, printed and logged. A host whose
//! session is lost is read again when it returns.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use linerate_fleet::{Fleet, clock};
use linerate_model::exit::ExitCode;
use linerate_model::fact::{FactKey, GapSubject, HostFacts};
use linerate_model::fact_change::{FactChange, SeenBy};
use linerate_model::inventory::{Host, HostName, Inventory};
use linerate_model::notice::{self, BY_REBOOT, FactNotice, NoticeSource, ValueChange};
use linerate_model::printable::{lines_of_error, one_line};
use linerate_model::units::counted;
use linerate_report::changes;
use linerate_report::heat::Style;
use linerate_store::{FactReading, ReadScope, Store, StoreError};
use linerate_wire::message::ObserveRequest;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use crate::cli::documents::NoticeOfHost;
use crate::cli::{open, out};
use linerate_operator::watch::{FromHost, READ_AT_ONCE, Session};

/// Notices that wait to be printed; a host that reports more waits.
const WAITING_MAX: usize = 256;

/// Changes that wait for a store that is gone; those of more are lost.
const UNWRITTEN_MAX: usize = 10_000;
/// After it failed it is tried again. What waits for it waits no shorter.
const RETRY: Duration = Duration::from_secs(50);

/// What is followed.
pub(super) struct Wanted {
    /// Keys with one of these prefixes; all without prefixes.
    pub(super) keys: Vec<FactKey>,
    /// With the process of each write to a sysctl.
    pub(super) writers: bool,
}

/// Follows hosts until Ctrl-C, or for a time.
pub(super) async fn run(
    inventory: &Inventory,
    wanted: Wanted,
    time: Option<Duration>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let Some(fleet) = open::unless_interrupted(Fleet::open(inventory, |_| true)).await else {
        return Ok(open::after_interrupt());
    };
    fleet.notes.iter().for_each(|note| out::note(note));
    if fleet.hosts().is_empty() {
        fleet.gaps.iter().for_each(|gap| out::note(&format!("{}: {}", gap.what, gap.reason)));
        anyhow::bail!("no host can be followed\nhint: the lines above name the reasons");
    }
    // A host that cannot be reached is named by its session.
    fleet.gaps.iter().filter(|gap| !matches!(gap.what, GapSubject::Host(_))).for_each(|gap| {
        out::note(&format!("{}: {}", gap.what, gap.reason));
    });
    let fleet = Arc::new(fleet);
    let has_node = |host: &&Host| inventory.iperf3_port(&host.name).is_none();
    let hosts: Vec<&Host> = inventory.hosts.iter().filter(has_node).collect();
    let mut follower = Follower {
        names: hosts.iter().map(|host| host.name.clone()).collect(),
        from_hosts: start(&fleet, &hosts, &wanted),
        log: Log::new(&inventory.name, wanted.keys, SeenBy::Follow),
        lost: BTreeSet::new(),
        has_gap: !fleet.gaps.is_empty(),
        json,
    };
    let until = time.map(|time| Instant::now() + time);
    // The usual end is Ctrl-C.
    let ended = tokio::select! {
        ended = follower.all() => ended,
        () = open::interrupted() => Ok(()),
        () = open::passed(until) => Ok(()),
    };
    // Sessions that are just being opened end with the runtime.
    for host in fleet.hosts() {
        fleet.leave(&host).await;
    }
    ended?;
    let log = &mut follower.log;
    log.end();
    out::note(&format!(
        "{} seen on {}; `linerate changes` lists them",
        counted(log.seen, "change"),
        counted(log.hosts.len(), "host")
    ));
    Ok(if follower.has_gap { ExitCode::PartlyBlind } else { ExitCode::Ok })
}

/// A session with each host; what they report comes out, each with the number of its host.
fn start(fleet: &Arc<Fleet>, hosts: &[&Host], wanted: &Wanted) -> mpsc::Receiver<(usize, FromHost)> {
    let (to_us, from_hosts) = mpsc::channel(WAITING_MAX);
    let reading = Arc::new(Semaphore::new(READ_AT_ONCE));
    for (number, host) in hosts.iter().enumerate() {
        let session = Session {
            number,
            host: (*host).clone(),
            fleet: Arc::clone(fleet),
            from_hosts: to_us.clone(),
            follow: ObserveRequest::Follow { prefixes: wanted.keys.clone(), writers: wanted.writers },
            reading: Arc::clone(&reading),
            probing: None,
        };
        tokio::spawn(session.hold());
    }
    from_hosts
}

/// What is followed, and printed.
struct Follower {
    names: Vec<HostName>,
    from_hosts: mpsc::Receiver<(usize, FromHost)>,
    log: Log,
    /// Hosts without a session.
    lost: BTreeSet<HostName>,
    /// Whether a host was not followed at some time.
    has_gap: bool,
    json: bool,
}

impl Follower {
    /// Prints and logs until it is dropped.
    async fn all(&mut self) -> anyhow::Result<()> {
        let mut is_begun = false;
        while let Some((number, from_host)) = self.from_hosts.recv().await {
            let host = self.names[number].clone();
            match from_host {
                FromHost::Read { facts, has_booted } => {
                    if self.lost.remove(&host) {
                        out::note(&format!("{host}: followed again"));
                    }
                    if let Some(notice) = self.log.begin(&host, &facts, has_booted) {
                        self.print(&host, &notice)?;
                    }
                }
                FromHost::Changed(notice) => {
                    self.print(&host, &notice)?;
                    self.log.notice(&host, notice);
                }
                // Tries that fail are one gap.
                FromHost::Ended(reason) => {
                    if self.lost.insert(host.clone()) {
                        self.has_gap = true;
                        out::note(&format!("{host}: not followed: {}", lines_of_error(&reason)));
                    }
                }
                FromHost::Begun { .. } | FromHost::Counted(_) | FromHost::Retransmitted(_) => {}
            }
            let followed = self.log.hosts.len();
            if !is_begun && followed + self.lost.difference(&self.log.hosts).count() == self.names.len() {
                is_begun = true;
                out::note(&format!(
                    "following {followed} of {}; Ctrl-C ends it",
                    counted(self.names.len(), "host")
                ));
            }
        }
        Ok(())
    }

    fn print(&self, host: &HostName, notice: &FactNotice) -> anyhow::Result<()> {
        if self.json {
            return out::listing_line(NoticeOfHost { host, notice });
        }
        out::print(&changes::notice(host, notice, Style::detect().width))
    }
}

/// What changed on a host and waits for the store.
struct Unwritten {
    host: HostName,
    facts: HostFacts,
    /// `None`: a part that has no rule.
    keys: Option<Vec<FactKey>>,
    who: Option<String>,
    at_ms: u64,
}

/// What was seen, and where it is logged.
pub(in crate::cli) struct Log {
    cluster: String,
    keys: Vec<FactKey>,
    seen_by: SeenBy,
    seen: usize,
    /// Hosts that were read.
    hosts: BTreeSet<HostName>,
    /// The oldest first.
    unwritten: VecDeque<Unwritten>,
    /// When the store failed last.
    failed: Option<Instant>,
}

impl Log {
    /// Of a cluster, keys with one of these prefixes; all without prefixes.
    pub(in crate::cli) fn new(cluster: &str, keys: Vec<FactKey>, seen_by: SeenBy) -> Self {
        Self {
            cluster: cluster.to_owned(),
            keys,
            seen_by,
            seen: 0,
            hosts: BTreeSet::new(),
            unwritten: VecDeque::new(),
            failed: None,
        }
    }

    /// A host is followed from now on, or again. What changed since it was read last is logged; after a gap
    /// it is a notice too.
    pub(in crate::cli) fn begin(
        &mut self,
        host: &HostName,
        facts: &HostFacts,
        has_booted: bool,
    ) -> Option<FactNotice> {
        let is_again = !self.hosts.insert(host.clone());
        let gaps = facts.gaps.iter().filter(|gap| gap.what.to_string().starts_with("notices of "));
        for gap in gaps.filter(|_| !is_again) {
            let (what, reason) = (one_line(&gap.what.to_string()), lines_of_error(&gap.reason));
            let then = if [notice::WRITERS, notice::LINK_WRITERS].contains(&what.as_str()) {
                "changes are reported as without --writers"
            } else {
                "such changes are seen every 15 minutes"
            };
            out::note(&format!("{host}: no {what}: {reason}; {then}"));
        }
        self.retry(RETRY);
        // What waits is older: written after this reading it would undo it.
        let may_write = self.unwritten.is_empty();
        let scope = if self.keys.is_empty() { ReadScope::All } else { ReadScope::Below(&self.keys) };
        let changed = if may_write {
            let (at, who) = ((scope, clock::now_ms()), has_booted.then_some(BY_REBOOT));
            let read =
                Store::open_default().and_then(|mut store| self.write(&mut store, host, facts, at, who));
            read.unwrap_or_else(|error| {
                out::note(&format!("changes are not recorded: {error}"));
                Vec::new()
            })
        } else {
            Vec::new()
        };
        if !is_again || changed.is_empty() {
            return None;
        }
        self.seen += changed.len();
        let of = |one: FactChange| ValueChange { key: one.key, from: one.from, to: one.to };
        Some(FactNotice {
            at_ms: clock::now_ms(),
            read_after_ms: 0,
            source: if has_booted { NoticeSource::Reboot } else { NoticeSource::Reading },
            about: String::new(),
            writer: None,
            changes: changed.into_iter().map(of).collect(),
        })
    }

    /// A change that a host has reported.
    pub(in crate::cli) fn notice(&mut self, host: &HostName, notice: FactNotice) {
        self.seen += notice.changes.len();
        let keys: Vec<FactKey> = notice.changes.iter().map(|change| change.key.clone()).collect();
        let who = notice.who();
        if keys.is_empty() {
            return;
        }
        let mut facts = HostFacts::default();
        // What they were until now: the host is followed, so this is the moment in which they changed. Of
        // namespaces inside a host it is also the first time that they are read.
        let before = notice.changes.iter();
        facts.readings.extend(before.filter_map(|one| Some((one.key.clone(), one.from.clone()?))));
        let is_inside = |key: &FactKey| key.starts_with("netns.");
        let before = if keys.iter().any(is_inside) { None } else { Some(keys.clone()) };
        let at_ms = clock::now_ms();
        self.keep(Unwritten { host: host.clone(), facts, keys: before, who: None, at_ms });
        facts = HostFacts::default();
        facts.readings.extend(notice.changes.into_iter().filter_map(|one| Some((one.key, one.to?))));
        self.keep(Unwritten { host: host.clone(), facts, keys: Some(keys), who, at_ms });
        self.retry(RETRY);
    }

    /// One more that waits; where there are too many the oldest is lost.
    fn keep(&mut self, one: Unwritten) {
        if self.unwritten.len() == UNWRITTEN_MAX {
            self.unwritten.pop_front();
        }
        self.unwritten.push_back(one);
    }

    /// Writes what waits, the oldest first; not within a time after the store failed.
    pub(in crate::cli) fn retry(&mut self, after: Duration) {
        if self.failed.is_some_and(|failed| failed.elapsed() < after) {
            return;
        }
        if self.unwritten.is_empty() {
            return;
        }
        let mut store = match Store::open_default() {
            Ok(store) => store,
            Err(error) => return self.failed_now(&error),
        };
        while let Some(one) = self.unwritten.front() {
            let scope = one.keys.as_deref().map_or(ReadScope::Part, ReadScope::Below);
            let at = (scope, one.at_ms);
            if let Err(error) = self.write(&mut store, &one.host, &one.facts, at, one.who.as_deref()) {
                if self.failed.is_some() {
                    // The store is there: perhaps it is this one that cannot be written.
                    out::note(&format!("a change of {} is not recorded: {error}", one.host));
                    self.unwritten.pop_front();
                }
                return self.failed_now(&error);
            }
            self.unwritten.pop_front();
        }
        if self.failed.take().is_some() {
            out::note("changes are recorded again");
        }
    }

    /// What waits goes on waiting, which is reported once.
    fn failed_now(&mut self, error: &StoreError) {
        if self.failed.replace(Instant::now()).is_none() {
            out::note(&format!("changes wait to be recorded: {error}"));
        }
    }

    /// The last attempt.
    pub(in crate::cli) fn end(&mut self) {
        self.retry(Duration::ZERO);
        if !self.unwritten.is_empty() {
            out::note(&format!("{} not recorded", counted(self.unwritten.len(), "change")));
        }
    }

    fn write(
        &self,
        store: &mut Store,
        host: &HostName,
        facts: &HostFacts,
        (scope, at_ms): (ReadScope<'_>, u64),
        who: Option<&str>,
    ) -> Result<Vec<FactChange>, StoreError> {
        let reading = FactReading {
            cluster: &self.cluster,
            started_ms: at_ms,
            ended_ms: at_ms,
            seen_by: self.seen_by.clone(),
            scope,
            who,
        };
        store.log_facts(&reading, [(host, facts)])
    }
}
