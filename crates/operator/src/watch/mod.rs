//! `linerate watch`: one long process that holds sessions with all hosts, has them probe each other, and
//! reports what changes, what is lost, and what of the downloads of the inventory is slow.
//!
//! In: an inventory and open sessions. Out: events, and a minute at a time the history. What is worth an
//! alarm, and what is measured then, is decided in `crates/watch`; a session that ends is a gap, and is
//! opened again.

pub mod alarms;
mod changes;
mod decide;
mod downloads;
pub mod metrics;
pub mod notify;
mod record;
mod rounds;
#[cfg(test)]
mod scale_tests;
mod session;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use linerate_fleet::{Fleet, NodeLink, clock};
use linerate_model::fact::HostFacts;
use linerate_model::inventory::{Endpoint, GroupName, Host, HostName, Inventory, TransportSpec};
use linerate_model::notice::FactNotice;
use linerate_model::probe::{PARTNERS_MAX, PartnerCounts, ProbePartner, ProbeReport, ProbeRequest, RTTS_MAX};
use linerate_model::slow::{SlowAlarm, SlowOf};
use linerate_model::suspect::Suspect;
use linerate_model::throughput::ThroughputRound;
use linerate_model::watch::{ChangeBefore, LossAlarm, WatchAlarm, WatchEvent, WatchTotals};
use linerate_watch::metrics::{HostCounts, HostFigures, WatchFigures};
use linerate_watch::rules::{FASTER, FASTER_MS, PROBES_PER_S};
use linerate_watch::{
    AlarmIds, AlarmStep, DownloadRound, LossWatch, Member, MinuteCounts, PairLoss, RttWatch, SeenMinute,
    SlowStep, deciding_datagrams, deciding_pairs, deciding_requests, partners,
};
use linerate_wire::message::ObserveRequest;
use tokio::sync::{Semaphore, mpsc};

use alarms::AlarmBook;
use changes::RecentChanges;
use decide::{Decided, Decider, DecidingJob};
use downloads::Downloads;
use notify::DeliveryCounts;
use record::{Recorder, SeenRate};
use rounds::Placed;
pub use session::{FromHost, READ_AT_ONCE, Session};
use session::{HostProbing, ORDER_WAIT};

/// FromHost of hosts that wait; more wait on the hosts.
const WAITING_MAX: usize = 1024;

/// What comes out of a watch.
pub enum Output {
    /// Something happened.
    Event(Box<WatchEvent>),
    /// A host was read from where on its changes are reported.
    Read {
        /// Which.
        host: HostName,
        /// All of it.
        facts: Box<HostFacts>,
        /// It has booted since its session before this one.
        has_booted: bool,
    },
    /// Something beside the watch does not work.
    Note(String),
}

/// A host of the watch.
struct Watched {
    name: HostName,
    group: Option<GroupName>,
    address: IpAddr,
    link: Option<Arc<NodeLink>>,
    /// Where it answers; empty while it is not watched.
    ports: Vec<u16>,
    /// Whom it is to probe; its session passes the newest list on.
    wanted: tokio::sync::watch::Sender<Vec<ProbePartner>>,
    /// Since when it is not watched, Unix milliseconds.
    gap_since_ms: Option<u64>,
    faster_until_ms: u64,
    counts: HostCounts,
    /// Segments that its TCP had sent again, and when, Unix milliseconds.
    retransmitted: Option<(i64, u64)>,
}

impl Watched {
    fn figures(&self) -> HostFigures<'_> {
        HostFigures { name: &self.name, is_watched: !self.ports.is_empty(), counts: &self.counts }
    }
}

/// All that a watch knows.
pub struct Watch {
    hosts: Vec<Watched>,
    /// Their numbers follow those of `hosts`.
    followed: Vec<Followed>,
    /// Whom each host probes, by number.
    partners: Vec<Vec<usize>>,
    loss: LossWatch,
    rtt: RttWatch,
    /// What was reported of each direction: datagrams that arrived, and the most that were lost.
    counted: BTreeMap<(usize, usize), (u64, u64)>,
    changes: RecentChanges,
    totals: WatchTotals,
    start_ms: u64,
    from_hosts: mpsc::Receiver<(usize, FromHost)>,
    minute: MinuteCounts,
    recorder: Recorder,
    downloads: Downloads,
    rounds: mpsc::Receiver<ThroughputRound>,
    /// Rates of rounds and downloads that are not in the history yet.
    unwritten: Vec<SeenRate>,
    notes: mpsc::UnboundedReceiver<String>,
    decider: Decider,
    /// Changes before each alarm that is being measured.
    deciding: BTreeMap<u64, Vec<ChangeBefore>>,
}

/// Hosts with a node.
fn with_node(inventory: &Inventory) -> impl Iterator<Item = &Host> {
    inventory.hosts.iter().filter(|host| !matches!(host.transport, TransportSpec::Iperf3 { .. }))
}

/// Those that can be probed: they have an address.
fn probed(inventory: &Inventory) -> Vec<(&Host, &Endpoint)> {
    with_node(inventory).filter_map(|host| Some((host, host.endpoints.first()?))).collect()
}

/// A host without an address, such as a hypervisor: its changes alone are followed.
struct Followed {
    name: HostName,
    gap_since_ms: Option<u64>,
}

fn members(hosts: &[Watched]) -> Vec<Member<'_>> {
    hosts.iter().map(|host| Member { name: &host.name, group: host.group.as_deref() }).collect()
}

/// Holds the session with a host until the watch ends.
fn hold(
    fleet: &Arc<Fleet>,
    (from_hosts, reading): (&mpsc::Sender<(usize, FromHost)>, &Arc<Semaphore>),
    (number, host): (usize, &Host),
    probing: Option<HostProbing>,
) {
    let session = Session {
        number,
        host: host.clone(),
        fleet: Arc::clone(fleet),
        from_hosts: from_hosts.clone(),
        follow: ObserveRequest::Follow { prefixes: Vec::new(), writers: false },
        reading: Arc::clone(reading),
        probing,
    };
    tokio::spawn(session.hold());
}

/// Pairs as a list for each host.
fn of_each(pairs: &[(usize, usize)], hosts: usize) -> Vec<Vec<usize>> {
    let mut partners = vec![Vec::new(); hosts];
    for (a, b) in pairs {
        partners[*a].push(*b);
        partners[*b].push(*a);
    }
    partners
}

impl Watch {
    /// Begins; sessions that are not open yet are opened by and by.
    pub fn begin(fleet: &Arc<Fleet>, inventory: &Inventory) -> anyhow::Result<Self> {
        let probed = probed(inventory);
        anyhow::ensure!(
            probed.len() >= 2,
            "{} host of the inventory can be probed; a watch needs 2\nhint: `linerate inventory FILE` shows the addresses",
            probed.len()
        );
        let token = clock::random::<16>()?;
        let (to_us, from_hosts) = mpsc::channel(WAITING_MAX);
        let reading = Arc::new(Semaphore::new(READ_AT_ONCE));
        let mut hosts = Vec::new();
        for (number, (host, endpoint)) in probed.iter().enumerate() {
            let (wanted, whom) = tokio::sync::watch::channel(Vec::new());
            hosts.push(Watched {
                name: host.name.clone(),
                group: host.groups.first().cloned(),
                address: endpoint.address,
                link: None,
                ports: Vec::new(),
                wanted,
                gap_since_ms: None,
                faster_until_ms: 0,
                counts: HostCounts::default(),
                retransmitted: None,
            });
            let probing = HostProbing { endpoint: (*endpoint).clone(), token, whom };
            hold(fleet, (&to_us, &reading), (number, host), Some(probing));
        }
        let mut followed = Vec::new();
        for host in with_node(inventory).filter(|host| host.endpoints.is_empty()) {
            hold(fleet, (&to_us, &reading), (hosts.len() + followed.len(), host), None);
            followed.push(Followed { name: host.name.clone(), gap_since_ms: None });
        }
        let members = members(&hosts);
        let ends: Vec<_> =
            probed.iter().map(|(host, endpoint)| (host.name.clone(), endpoint.layer)).collect();
        let placed = probed.iter().map(|(host, endpoint)| Placed {
            name: host.name.clone(),
            group: host.groups.first().cloned(),
            layer: endpoint.layer,
        });
        let (to_notes, notes) = mpsc::unbounded_channel();
        if let Some(mut agent_notes) = fleet.agent_notes() {
            let to_notes = to_notes.clone();
            tokio::spawn(async move {
                while let Some(note) = agent_notes.recv().await {
                    // The watch has ended where it fails.
                    let _ = to_notes.send(note);
                }
            });
        }
        let ids = AlarmIds::default();
        Ok(Self {
            minute: MinuteCounts::default(),
            downloads: Downloads::begin(fleet, inventory, ids.clone(), &to_notes),
            rounds: rounds::begin(fleet, inventory, placed.collect()),
            unwritten: Vec::new(),
            recorder: Recorder::begin(inventory.name.clone(), ends.clone(), to_notes)?,
            decider: Decider::begin(Arc::clone(fleet), inventory.clone(), ends),
            deciding: BTreeMap::new(),
            start_ms: clock::now_ms(),
            notes,
            partners: of_each(&partners(&members), members.len()),
            rtt: RttWatch::new(&members, ids.clone()),
            loss: LossWatch::new(&members, ids),
            counted: BTreeMap::new(),
            changes: RecentChanges::new(inventory),
            totals: WatchTotals { hosts: hosts.len(), ..WatchTotals::default() },
            hosts,
            followed,
            from_hosts,
        })
    }

    /// What comes next; waits for it.
    pub async fn next(&mut self) -> Vec<Output> {
        let (number, from_hosts) = tokio::select! {
            Some(from_hosts) = self.from_hosts.recv() => from_hosts,
            Some(note) = self.notes.recv() => return vec![Output::Note(note)],
            Some((alarm, decided)) = self.decider.decided.recv() => {
                return self.decided(alarm, decided).into_iter().map(Box::new).map(Output::Event).collect();
            }
            (round, steps) = self.downloads.next() => {
                return self.downloaded(round, steps).into_iter().map(Box::new).map(Output::Event).collect();
            }
            Some(round) = self.rounds.recv() => {
                self.unwritten.extend(round.seen.iter().map(SeenRate::of_pair));
                return vec![Output::Event(Box::new(WatchEvent::Throughput { round }))];
            }
            else => return std::future::pending().await,
        };
        let Some(watched) = self.hosts.get(number) else {
            return self.of_followed(number - self.hosts.len(), from_hosts);
        };
        let host = watched.name.clone();
        if let FromHost::Read { facts, has_booted } = from_hosts {
            return vec![Output::Read { host, facts, has_booted }];
        }
        self.events(number, host, from_hosts).into_iter().map(Box::new).map(Output::Event).collect()
    }

    /// From a host that is not probed.
    fn of_followed(&mut self, number: usize, from_host: FromHost) -> Vec<Output> {
        let followed = &mut self.followed[number];
        let host = followed.name.clone();
        let now_ms = clock::now_ms();
        match from_host {
            FromHost::Read { facts, has_booted } => {
                let gap_ms = followed.gap_since_ms.take().map(|since| now_ms.saturating_sub(since));
                let read = Output::Read { host: host.clone(), facts, has_booted };
                let again = gap_ms.map(|_| Output::Event(Box::new(WatchEvent::Watched { host, gap_ms })));
                std::iter::once(read).chain(again).collect()
            }
            FromHost::Changed(notice) => vec![Output::Event(Box::new(self.changed(host, notice)))],
            // Tries that fail are one gap.
            FromHost::Ended(reason) if followed.gap_since_ms.is_none() => {
                followed.gap_since_ms = Some(now_ms);
                self.totals.gaps += 1;
                vec![Output::Event(Box::new(WatchEvent::Gap { host, reason }))]
            }
            FromHost::Begun { .. }
            | FromHost::Counted(_)
            | FromHost::Retransmitted(_)
            | FromHost::Ended(_) => Vec::new(),
        }
    }

    fn events(&mut self, number: usize, host: HostName, from_hosts: FromHost) -> Vec<WatchEvent> {
        match from_hosts {
            FromHost::Read { .. } => Vec::new(),
            FromHost::Begun { ports, link } => {
                let watched = &mut self.hosts[number];
                (watched.ports, watched.link) = (ports, Some(link));
                let gap_ms = watched.gap_since_ms.take().map(|since| clock::now_ms().saturating_sub(since));
                self.begin_anew(number);
                vec![WatchEvent::Watched { host, gap_ms }]
            }
            FromHost::Counted(report) => self.counted(number, &report),
            FromHost::Retransmitted(count) => self.retransmitted(number, count),
            FromHost::Changed(notice) => vec![self.changed(host, notice)],
            FromHost::Ended(reason) => {
                let watched = &mut self.hosts[number];
                watched.ports.clear();
                watched.link = None;
                // Tries that fail are one gap.
                if watched.gap_since_ms.is_some() {
                    return Vec::new();
                }
                watched.gap_since_ms = Some(clock::now_ms());
                watched.counts.gaps += 1;
                self.totals.gaps += 1;
                self.begin_anew(number);
                vec![WatchEvent::Gap { host, reason }]
            }
        }
    }

    /// A change, reported by its host or found after a gap: alarms quote it.
    pub fn changed(&mut self, host: HostName, notice: FactNotice) -> WatchEvent {
        self.totals.changes += notice.changes.len() as u64;
        if let Some(watched) = self.hosts.iter_mut().find(|watched| watched.name == host) {
            watched.counts.changes += notice.changes.len() as u64;
        }
        self.changes.remember(&host, &notice);
        WatchEvent::Changed { host, notice }
    }

    /// A round of downloads, and what is slow in it.
    fn downloaded(&mut self, round: DownloadRound, steps: Vec<SlowStep>) -> Vec<WatchEvent> {
        self.unwritten.extend(round.seen.iter().map(SeenRate::of_download));
        let events = std::iter::once(WatchEvent::Downloaded { seen: round.seen });
        let slow: Vec<WatchEvent> = steps.into_iter().map(|step| self.slow(round.at_ms, step)).collect();
        events.chain(slow).collect()
    }

    fn slow(&mut self, at_ms: u64, step: SlowStep) -> WatchEvent {
        match step {
            SlowStep::Opened(alarm) => {
                self.totals.alarms += 1;
                let suspect = if let SlowOf::Rtt(suspect) = &alarm.of { Some(suspect) } else { None };
                let changes = self.changes.before(suspect, at_ms);
                WatchEvent::Slowed { alarm, changes }
            }
            SlowStep::Widened(alarm) => WatchEvent::Slowed { alarm, changes: Vec::new() },
            SlowStep::Closed(alarm) => WatchEvent::Recovered { alarm },
        }
    }

    /// A minute is over: what is slow in it.
    fn record(&mut self, minute: SeenMinute) -> Vec<WatchEvent> {
        let steps = self.rtt.learn(&minute);
        self.recorder.write(minute, std::mem::take(&mut self.unwritten));
        let at_ms = clock::now_ms();
        let mut events = Vec::new();
        for step in steps {
            let opened = if let SlowStep::Opened(alarm) = &step { Some(alarm.clone()) } else { None };
            events.push(self.slow(at_ms, step));
            events.extend(opened.and_then(|alarm| self.measure_rtt(&alarm, at_ms)));
        }
        events
    }

    /// What Prometheus is shown.
    pub fn figures(&self, notifications: DeliveryCounts) -> WatchFigures<'_> {
        WatchFigures {
            version: env!("CARGO_PKG_VERSION"),
            start_ms: self.start_ms,
            hosts: self.hosts.iter().map(Watched::figures).collect(),
            open: self.loss.open().collect(),
            slow: self.slow_alarms().collect(),
            downloads: self.downloads.figures(),
            alarms: self.totals.alarms,
            notifications: (notifications.delivered, notifications.failed),
            missing_minutes: self.recorder.missing(),
        }
    }

    /// Alarms that are open.
    pub fn open(&self) -> impl Iterator<Item = WatchAlarm> {
        let slow = self.slow_alarms().cloned().map(WatchAlarm::Slow);
        self.loss.open().cloned().map(WatchAlarm::Loss).chain(slow)
    }

    fn slow_alarms(&self) -> impl Iterator<Item = &SlowAlarm> {
        self.downloads.watch().open().chain(self.rtt.open())
    }

    /// What is new of alarms goes into the history.
    pub fn keep(&self, alarms: &mut AlarmBook) {
        alarms.hand_on(|records| self.recorder.alarms(records));
    }

    /// The minute that is not over goes into the history.
    pub fn end(mut self) {
        let rates = std::mem::take(&mut self.unwritten);
        // Also where nothing was probed in it.
        let unseen = || SeenMinute { start_ms: clock::now_ms(), values: Vec::new() };
        let minute = self.minute.end().or_else(|| (!rates.is_empty()).then(unseen));
        if let Some(minute) = minute {
            self.recorder.write(minute, rates);
        }
        self.recorder.end();
    }

    /// How many a second since the last time.
    fn retransmitted(&mut self, number: usize, count: i64) -> Vec<WatchEvent> {
        let at_ms = clock::now_ms();
        let Some((before, since_ms)) = self.hosts[number].retransmitted.replace((count, at_ms)) else {
            return Vec::new();
        };
        // A host that was started anew counts from zero, a clock may go back.
        let (Ok(more), true) = (u64::try_from(count.saturating_sub(before)), at_ms > since_ms) else {
            return Vec::new();
        };
        let per_s = more as f64 * 1e3 / (at_ms - since_ms) as f64;
        let minute = self.minute.learn_retransmits(at_ms, number, per_s);
        minute.map(|minute| self.record(minute)).unwrap_or_default()
    }

    /// What was done so far.
    pub fn totals(&self) -> &WatchTotals {
        &self.totals
    }

    /// A host came or went: who probes it changes, and what was suspected of it is not known.
    fn begin_anew(&mut self, number: usize) {
        self.loss.forget_host(number);
        self.rtt.forget_host(number);
        for other in &self.partners[number] {
            self.counted.remove(&(number, *other));
            self.counted.remove(&(*other, number));
        }
        for other in self.with_partners(number) {
            let partners = self.partners[other].iter().take(PARTNERS_MAX);
            let list = partners.filter_map(|one| self.partner(*one)).collect();
            // No session reads it while there is none; the next one begins with this list.
            self.hosts[other].wanted.send_replace(list);
        }
    }

    /// A host and those that it probes.
    fn with_partners(&self, number: usize) -> Vec<usize> {
        std::iter::once(number).chain(self.partners[number].iter().copied()).collect()
    }

    fn partner(&self, number: usize) -> Option<ProbePartner> {
        let host = &self.hosts[number];
        let at: Vec<SocketAddr> =
            host.ports.iter().map(|port| SocketAddr::new(host.address, *port)).collect();
        (!at.is_empty()).then_some(ProbePartner { number: number as u32, at })
    }

    fn counted(&mut self, to: usize, report: &ProbeReport) -> Vec<WatchEvent> {
        let at_ms = clock::now_ms();
        let mut events = Vec::new();
        // Once each, and of its partners alone: a node cannot blame others.
        let counts: BTreeMap<usize, &PartnerCounts> =
            report.partners.iter().map(|counts| (counts.number as usize, counts)).collect();
        for from in self.partners[to].clone() {
            let Some(counts) = counts.get(&from) else { continue };
            // The silence of a host that is not watched means nothing.
            if self.hosts[from].ports.is_empty() || self.hosts[to].ports.is_empty() {
                continue;
            }
            let key = (from, to);
            let before = self.counted.get(&key).copied();
            let most = before.map_or(counts.lost, |before| before.1.max(counts.lost));
            self.counted.insert(key, (counts.arrived, most));
            // The first counts of a session are where it begins; those of one before may still be on their
            // path.
            let Some((arrived, lost)) = before.filter(|before| counts.arrived >= before.0) else {
                self.counted.insert(key, (counts.arrived, counts.lost));
                continue;
            };
            let arrived = counts.arrived - arrived;
            let lost = counts.lost.saturating_sub(lost);
            let sent = arrived.saturating_add(lost);
            self.totals.probes = self.totals.probes.saturating_add(sent);
            self.totals.lost = self.totals.lost.saturating_add(lost);
            let rtts_us = &counts.rtts_us[..counts.rtts_us.len().min(RTTS_MAX)];
            self.hosts[from].counts.send(sent, lost);
            self.hosts[to].counts.receive(sent, lost, rtts_us);
            if let Some(minute) = self.minute.learn(at_ms, (from, to), (sent, lost), rtts_us) {
                events.extend(self.record(minute));
            }
            for step in self.loss.learn(PairLoss { at_ms, from, to, sent, lost }) {
                match step {
                    AlarmStep::Faster(host) => self.faster(host, at_ms),
                    AlarmStep::Opened(alarm) => {
                        self.totals.alarms += 1;
                        let changes = self.changes.before(Some(&alarm.suspect), at_ms);
                        events.push(WatchEvent::Opened { alarm: alarm.clone(), changes: changes.clone() });
                        events.extend(self.measure(&alarm, changes));
                    }
                    AlarmStep::Widened(alarm) => events.push(WatchEvent::Widened { alarm }),
                    AlarmStep::Closed(alarm) => events.push(WatchEvent::Closed { alarm }),
                }
            }
        }
        events
    }

    /// Has an alarm measured; reported at once where it cannot be.
    fn measure(&mut self, alarm: &LossAlarm, changes: Vec<ChangeBefore>) -> Option<WatchEvent> {
        let pairs = deciding_pairs(
            &alarm.suspect,
            alarm.direction,
            &members(&self.hosts),
            &self.usable(&alarm.suspect),
        );
        let job = DecidingJob::Loss(pairs, deciding_datagrams(alarm.share()));
        self.ask(alarm.id, changes, job)
    }

    /// The same of one of RTTs.
    fn measure_rtt(&mut self, alarm: &SlowAlarm, at_ms: u64) -> Option<WatchEvent> {
        let SlowOf::Rtt(suspect) = &alarm.of else { return None };
        let pairs = self.rtt.deciding(suspect, &self.usable(suspect));
        let changes = self.changes.before(Some(suspect), at_ms);
        self.ask(alarm.id, changes, DecidingJob::Rtt(pairs, deciding_requests(alarm.now)))
    }

    fn ask(&mut self, alarm: u64, changes: Vec<ChangeBefore>, job: DecidingJob) -> Option<WatchEvent> {
        self.deciding.insert(alarm, changes);
        let decided = self.decider.ask(alarm, job)?;
        self.decided(alarm, decided)
    }

    /// An alarm was measured; one that is over meanwhile is of no interest.
    fn decided(&mut self, alarm: u64, decided: Decided) -> Option<WatchEvent> {
        let changes = self.deciding.remove(&alarm)?;
        match decided {
            Decided::Loss(decided) => {
                let alarm = self.loss.open().find(|open| open.id == alarm)?.clone();
                Some(WatchEvent::Measured { alarm, changes, decided })
            }
            Decided::Rtt(decided) => {
                let alarm = self.rtt.decided(alarm, decided)?;
                Some(WatchEvent::Remeasured { alarm, changes })
            }
        }
    }

    /// Hosts to measure with: watched, without an alarm of their own, partners of the suspect first.
    fn usable(&self, suspect: &Suspect) -> Vec<usize> {
        let named = |name: &HostName| self.hosts.iter().position(|host| host.name == *name);
        let (Suspect::Host(name) | Suspect::Pair(name, _)) = suspect else {
            return self.healthy(0..self.hosts.len());
        };
        let partners = named(name).map_or(&[][..], |host| &self.partners[host]);
        let rest = (0..self.hosts.len()).filter(|host| !partners.contains(host));
        self.healthy(partners.iter().copied().chain(rest))
    }

    fn healthy(&self, hosts: impl Iterator<Item = usize>) -> Vec<usize> {
        let alarms: Vec<Suspect> = self.open().filter_map(|alarm| alarm.suspect().cloned()).collect();
        let is_ill = |name: &HostName| {
            alarms.iter().any(|suspect| match suspect {
                Suspect::Host(host) => host == name,
                Suspect::Pair(from, to) => from == name || to == name,
                _ => false,
            })
        };
        hosts.filter(|host| !self.hosts[*host].ports.is_empty() && !is_ill(&self.hosts[*host].name)).collect()
    }

    /// A host and its partners send more for some time.
    fn faster(&mut self, number: usize, at_ms: u64) {
        if at_ms + FASTER_MS / 2 < self.hosts[number].faster_until_ms {
            return;
        }
        self.hosts[number].faster_until_ms = at_ms + FASTER_MS;
        let request = ProbeRequest::Faster { per_s: PROBES_PER_S * FASTER, for_ms: FASTER_MS as u32 };
        for other in self.with_partners(number) {
            if let Some(link) = self.hosts[other].link.clone() {
                let request = ObserveRequest::Probe(request.clone());
                // A session that is lost meanwhile is reported by its own task.
                tokio::spawn(async move { drop(link.request(request, ORDER_WAIT).await) });
            }
        }
    }
}
