//! Rounds of throughput over the sessions of a watch, in the windows of the inventory, between hosts whose
//! links are idle.
//!
//! In: the hosts of the watch, `[throughput]` of the inventory. Out: rounds. Each is one of the four rings of
//! partners, a pair at a time and each direction by itself for a second; the daily survey stays the truth.

use std::sync::Arc;
use std::time::Duration;

use linerate_fleet::{Fleet, clock};
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::inventory::{GroupName, HostName, Inventory, Layer};
use linerate_model::kind::{TcpPlan, TestKind};
use linerate_model::plan::Test;
use linerate_model::rounds::ThroughputRounds;
use linerate_model::sample::Outcome;
use linerate_model::throughput::{BusyHost, PairThroughput, ThroughputRound};
use linerate_watch::{LinkCounts, Member, busiest, partners_of_round};
use linerate_wire::message::{Event, ObserveRequest};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::observe::measure::{self, Patience};

/// Time of a transfer, milliseconds.
const TRANSFER_MS: u32 = 1000;
/// Between the two readings that show whether links are idle.
const IDLE_TIME: Duration = Duration::from_secs(1);
/// Reading the devices of a host may take this long.
const READ_WAIT: Duration = Duration::from_secs(20);
/// How often it is asked whether a window is open.
const WINDOW_TICK: Duration = Duration::from_secs(20);
/// Rounds that wait for the watch.
const WAITING_MAX: usize = 1;
/// Reasons that a round names.
const REASONS_MAX: usize = 8;

/// A host of the watch.
pub(super) struct Placed {
    pub(super) name: HostName,
    pub(super) group: Option<GroupName>,
    /// Of the address that is measured.
    pub(super) layer: Layer,
}

/// The task that measures.
struct Measurer {
    fleet: Arc<Fleet>,
    inventory: Inventory,
    rounds: ThroughputRounds,
    hosts: Vec<Placed>,
}

/// Begins to measure in the windows of the inventory; without them nothing comes.
pub(super) fn begin(
    fleet: &Arc<Fleet>,
    inventory: &Inventory,
    hosts: Vec<Placed>,
) -> mpsc::Receiver<ThroughputRound> {
    let (to_watch, rounds) = mpsc::channel(WAITING_MAX);
    if let Some(spec) = inventory.throughput.clone() {
        let (fleet, inventory) = (Arc::clone(fleet), inventory.clone());
        let measurer = Measurer { fleet, inventory, rounds: spec, hosts };
        tokio::spawn(measurer.measure(to_watch));
    }
    rounds
}

impl Measurer {
    /// Until the watch ends.
    async fn measure(self, to_watch: mpsc::Sender<ThroughputRound>) {
        let mut last: Option<Instant> = None;
        for number in 0.. {
            while !self.is_allowed() || !self.is_watched() || last.is_some_and(|last| self.is_early(last)) {
                tokio::select! {
                    () = sleep(WINDOW_TICK) => {}
                    () = to_watch.closed() => return,
                }
            }
            last = Some(Instant::now());
            let round = self.round(number).await;
            if to_watch.send(round).await.is_err() {
                return;
            }
        }
    }

    fn is_allowed(&self) -> bool {
        self.rounds.allow(clock::now_ms())
    }

    fn is_early(&self, last: Instant) -> bool {
        last.elapsed() < Duration::from_secs(self.rounds.every_s.into())
    }

    /// Whether there is a pair to measure.
    fn is_watched(&self) -> bool {
        self.hosts.iter().filter(|host| self.fleet.link(&host.name).is_ok()).count() >= 2
    }

    /// One ring; what is left of it when the window closes is left out.
    async fn round(&self, number: usize) -> ThroughputRound {
        let members: Vec<Member<'_>> =
            self.hosts.iter().map(|host| Member { name: &host.name, group: host.group.as_deref() }).collect();
        let mut round = ThroughputRound::default();
        for (one, other) in partners_of_round(&members, number) {
            if !self.is_allowed() {
                break;
            }
            let (one, other) = (&self.hosts[one], &self.hosts[other]);
            // What is not watched is a gap of the watch already.
            if [one, other].iter().any(|host| self.fleet.link(&host.name).is_err()) {
                continue;
            }
            match self.busy(one, other).await {
                Ok(busy) if busy.is_empty() => {
                    self.transfer(one, other, &mut round).await;
                    self.transfer(other, one, &mut round).await;
                }
                Ok(busy) => {
                    for host in busy {
                        round.busy.retain(|known| known.host != host.host);
                        round.busy.push(host);
                    }
                }
                Err(reason) => missed(&mut round, reason),
            }
        }
        round
    }

    async fn transfer(&self, from: &Placed, to: &Placed, round: &mut ThroughputRound) {
        let kind = TestKind::from(TcpPlan::single(TRANSFER_MS));
        let test = Test::new(from.name.clone(), to.name.clone(), from.layer, kind);
        match measure::measure(&self.fleet, &self.inventory, &test, Patience::Usual).await.outcome {
            Outcome::Measured(measured) => round.seen.extend(measured.throughput_bps.map(|throughput_bps| {
                PairThroughput { from: test.from, to: test.to, layer: test.layer, throughput_bps }
            })),
            Outcome::NothingThrough { .. } => {
                let (from, to, layer) = (test.from, test.to, test.layer);
                round.seen.push(PairThroughput { from, to, layer, throughput_bps: 0.0 });
            }
            Outcome::Invalid { reason } | Outcome::Gap { reason } => {
                missed(round, format!("{} to {}: {reason}", test.from, test.to));
            }
        }
    }

    /// Those of two hosts whose links are in use.
    async fn busy(&self, one: &Placed, other: &Placed) -> Result<Vec<BusyHost>, String> {
        let before = tokio::try_join!(self.links(one), self.links(other))?;
        sleep(IDLE_TIME).await;
        let after = tokio::try_join!(self.links(one), self.links(other))?;
        let of = |host: &Placed, before, after| busiest(&host.name, before, after);
        Ok([of(one, &before.0, &after.0), of(other, &before.1, &after.1)].into_iter().flatten().collect())
    }

    async fn links(&self, host: &Placed) -> Result<LinkCounts, String> {
        let link = self.fleet.link(&host.name).map_err(|error| error.to_string())?;
        let request = ObserveRequest::Facts { prefixes: vec!["nic.".to_owned()], netns: Vec::new() };
        let at_ms = clock::now_ms();
        let events = link.request(request, READ_WAIT).await.map_err(|error| error.to_string())?;
        let facts = events.into_iter().find_map(|event| match event {
            Event::Facts(facts) => Some(facts),
            _ => None,
        });
        let facts = facts.ok_or_else(|| format!("{}: its devices cannot be read", host.name))?;
        Ok(LinkCounts { at_ms, ..links_of(&facts) })
    }
}

fn missed(round: &mut ThroughputRound, reason: String) {
    if round.missing.len() < REASONS_MAX && !round.missing.contains(&reason) {
        round.missing.push(reason);
    }
}

/// What facts have of links; a host does not send to itself over a network.
fn links_of(facts: &HostFacts) -> LinkCounts {
    let mut counts = LinkCounts::default();
    for (key, count) in &facts.counters {
        let Some((device, stat)) = key.strip_prefix("nic.").and_then(|rest| rest.split_once(".stat.")) else {
            continue;
        };
        if device == "lo" {
            continue;
        }
        match stat {
            "rx_bytes" => counts.bytes.entry(device.to_owned()).or_default().0 = *count,
            "tx_bytes" => counts.bytes.entry(device.to_owned()).or_default().1 = *count,
            _ => {}
        }
    }
    for device in counts.bytes.keys() {
        if let Some(FactValue::Int(mbit)) = facts.readings.get(&format!("nic.{device}.speed_mbit")) {
            counts.speed_bps.insert(device.clone(), *mbit as f64 * 1e6);
        }
    }
    counts
}
