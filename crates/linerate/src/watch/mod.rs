//! `linerate watch`: one long process that holds sessions with all hosts, has them probe each other, and
//! reports what changes and what is lost.
//!
//! In: an inventory and open sessions. Out: events. What is worth an alarm is decided in
//! `crates/watch`; a session that ends is a gap, and is opened again.

mod session;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use linerate_fleet::{Fleet, NodeLink, clock};
use linerate_model::fact::HostFacts;
use linerate_model::inventory::{Endpoint, Host, HostName, Inventory, TransportSpec};
use linerate_model::notice::FactNotice;
use linerate_model::probe::{PARTNERS_MAX, PartnerCounts, ProbePartner, ProbeReport, ProbeRequest};
use linerate_model::watch::{ChangeBefore, WatchEvent, WatchTotals};
use linerate_watch::rules::{FASTER, FASTER_MS, PROBES_PER_S};
use linerate_watch::{LossWatch, Member, PairLoss, Step, partners};
use linerate_wire::message::ObserveRequest;
use tokio::sync::mpsc;

pub(crate) use session::{FromHost, Session};
use session::{ORDER_WAIT, Probing};

/// FromHost of hosts that wait; more wait on the hosts.
const WAITING_MAX: usize = 1024;
/// Changes that are quoted with an alarm: so many, and no older, milliseconds.
const QUOTED_MAX: usize = 3;
const QUOTED_MS: u64 = 30 * 60 * 1000;

/// What comes out of a watch.
pub(crate) enum Output {
    /// Something happened.
    Event(WatchEvent),
    /// A host was read from where on its changes are reported.
    Read {
        /// Which.
        host: HostName,
        /// All of it.
        facts: Box<HostFacts>,
        /// It has booted since its session before this one.
        has_booted: bool,
    },
}

/// A host of the watch.
struct Watched {
    name: HostName,
    address: IpAddr,
    link: Option<Arc<NodeLink>>,
    /// Where it answers; empty while it is not watched.
    ports: Vec<u16>,
    /// Whom it is to probe; its session passes the newest list on.
    wanted: tokio::sync::watch::Sender<Vec<ProbePartner>>,
    /// Since when it is not watched, Unix milliseconds.
    gap_since_ms: Option<u64>,
    faster_until_ms: u64,
}

/// All that a watch knows.
pub(crate) struct Watch {
    hosts: Vec<Watched>,
    /// Whom each host probes, by number.
    partners: Vec<Vec<usize>>,
    loss: LossWatch,
    /// What was reported of each direction: datagrams that arrived, and the most that were lost.
    counted: BTreeMap<(usize, usize), (u64, u64)>,
    changes: VecDeque<ChangeBefore>,
    totals: WatchTotals,
    from_hosts: mpsc::Receiver<(usize, FromHost)>,
}

/// Hosts that can be probed: they have a node and an address.
fn probed(inventory: &Inventory) -> Vec<(&Host, &Endpoint)> {
    let has_node = |host: &&Host| !matches!(host.transport, TransportSpec::Iperf3 { .. });
    inventory.hosts.iter().filter(has_node).filter_map(|host| Some((host, host.endpoints.first()?))).collect()
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
    pub(crate) fn begin(fleet: &Arc<Fleet>, inventory: &Inventory) -> anyhow::Result<Self> {
        let probed = probed(inventory);
        anyhow::ensure!(
            probed.len() >= 2,
            "{} host of the inventory can be probed; a watch needs 2\nhint: `linerate inventory FILE` shows the addresses",
            probed.len()
        );
        let token = clock::random::<16>()?;
        let (to_us, from_hosts) = mpsc::channel(WAITING_MAX);
        let mut hosts = Vec::new();
        for (number, (host, endpoint)) in probed.iter().enumerate() {
            let (wanted, whom) = tokio::sync::watch::channel(Vec::new());
            hosts.push(Watched {
                name: host.name.clone(),
                address: endpoint.address,
                link: None,
                ports: Vec::new(),
                wanted,
                gap_since_ms: None,
                faster_until_ms: 0,
            });
            let session = Session {
                number,
                host: (*host).clone(),
                fleet: Arc::clone(fleet),
                from_hosts: to_us.clone(),
                follow: ObserveRequest::Follow { prefixes: Vec::new(), writers: false },
                probing: Some(Probing { endpoint: (*endpoint).clone(), token, whom }),
            };
            tokio::spawn(session.hold());
        }
        let members: Vec<Member<'_>> = probed
            .iter()
            .map(|(host, _)| Member { name: &host.name, group: host.groups.first().map(String::as_str) })
            .collect();
        Ok(Self {
            partners: of_each(&partners(&members), members.len()),
            loss: LossWatch::new(&members),
            counted: BTreeMap::new(),
            changes: VecDeque::new(),
            totals: WatchTotals { hosts: hosts.len(), ..WatchTotals::default() },
            hosts,
            from_hosts,
        })
    }

    /// What comes next; waits for it.
    pub(crate) async fn next(&mut self) -> Vec<Output> {
        let Some((number, from_hosts)) = self.from_hosts.recv().await else {
            return std::future::pending().await;
        };
        let host = self.hosts[number].name.clone();
        if let FromHost::Read { facts, has_booted } = from_hosts {
            return vec![Output::Read { host, facts, has_booted }];
        }
        self.events(number, host, from_hosts).into_iter().map(Output::Event).collect()
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
                self.totals.gaps += 1;
                self.begin_anew(number);
                vec![WatchEvent::Gap { host, reason }]
            }
        }
    }

    /// A change, reported by its host or found after a gap: alarms quote it.
    pub(crate) fn changed(&mut self, host: HostName, notice: FactNotice) -> WatchEvent {
        self.totals.changes += notice.changes.len() as u64;
        self.remember(&host, &notice);
        WatchEvent::Changed { host, notice }
    }

    /// What was done so far.
    pub(crate) fn totals(&self) -> &WatchTotals {
        &self.totals
    }

    /// A host came or went: who probes it changes, and what was suspected of it is not known.
    fn begin_anew(&mut self, number: usize) {
        self.loss.forget_host(number);
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
            for step in self.loss.learn(PairLoss { at_ms, from, to, sent, lost }) {
                match step {
                    Step::Faster(host) => self.faster(host, at_ms),
                    Step::Opened(alarm) => {
                        self.totals.alarms += 1;
                        let since = at_ms.saturating_sub(QUOTED_MS);
                        let recent = self.changes.iter().rev().filter(|one| one.notice.at_ms >= since);
                        events.push(WatchEvent::Opened {
                            alarm,
                            changes: recent.take(QUOTED_MAX).cloned().collect(),
                        });
                    }
                    Step::Widened(alarm) => events.push(WatchEvent::Widened { alarm }),
                    Step::Closed(alarm) => events.push(WatchEvent::Closed { alarm }),
                }
            }
        }
        events
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

    fn remember(&mut self, host: &HostName, notice: &FactNotice) {
        if notice.changes.is_empty() {
            return;
        }
        self.changes.push_back(ChangeBefore { host: host.clone(), notice: notice.clone() });
        if self.changes.len() > QUOTED_MAX * 16 {
            self.changes.pop_front();
        }
    }
}
