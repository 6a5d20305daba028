//! What hosts drop, counted at the same moments on all of them, so that their intervals can be compared.
//!
//! In: open sessions, the length of the watch, the classes of the knowledge. Out: the growth of each counter
//! in each interval. A host that is lost is a gap from then on; the others go on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use linerate_diagnose::drops::WatchedDrops;
use linerate_fleet::{Fleet, LinkError, NodeLink};
use linerate_knowledge::drops::DropClasses;
use linerate_model::drops::{BYTES_SENT, DROPS, RETRANSMITS, SEGMENTS_AGAIN, SEGMENTS_SENT, SEGMENTS_TWICE};
use linerate_model::fact::{FactKey, Gap, GapSubject, HostFacts};
use linerate_model::inventory::{HostName, Inventory};
use linerate_wire::message::{Event, ObserveRequest};
use tokio::time::{Instant, sleep_until};

use super::join;

/// Intervals of a watch: as many as show a series, and no more than are kept for thousands of hosts.
const INTERVALS: u32 = 60;
/// The shortest: a reading takes some milliseconds, and reaches hosts some apart.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
/// Loading the program into the kernel may take this long on a busy host, and reading all facts.
const BEGIN_WAIT: Duration = Duration::from_secs(60);
/// Reading the counters.
const READ_WAIT: Duration = Duration::from_secs(20);

/// Counters that show how much of what TCP sent was sent again.
const OF_TCP: [&str; 4] = [SEGMENTS_SENT, SEGMENTS_AGAIN, SEGMENTS_TWICE, BYTES_SENT];

/// A host of the watch.
struct Counted {
    link: Option<Arc<NodeLink>>,
    last: BTreeMap<FactKey, i64>,
    seen: WatchedDrops,
}

/// A watch of what hosts drop.
pub struct DropWatch {
    hosts: Vec<Counted>,
    intervals: usize,
    begun: Instant,
    /// When the last interval ended.
    ended: Instant,
    every: Duration,
    classes: DropClasses,
    /// Hosts that are not seen, or not to the end.
    pub gaps: Vec<Gap>,
}

/// Counters of a host, and why the kernel's reasons are missing.
type Reading = Result<HostFacts, LinkError>;

async fn read(link: &NodeLink, request: ObserveRequest, wait: Duration) -> Reading {
    let events = link.request(request, wait).await?;
    let facts = events.into_iter().find_map(|event| match event {
        Event::Facts(facts) => Some(*facts),
        _ => None,
    });
    Ok(facts.unwrap_or_default())
}

impl DropWatch {
    /// Begins to count on all hosts.
    pub async fn begin(fleet: &Fleet, inventory: &Inventory, time: Duration, classes: DropClasses) -> Self {
        let hosts = inventory.hosts.iter().filter_map(|host| {
            let link = fleet.link(&host.name).ok()?;
            let seen = WatchedDrops { host: host.name.clone(), ..WatchedDrops::default() };
            Some(Counted { link: Some(link), last: BTreeMap::new(), seen })
        });
        let mut watch = Self {
            hosts: hosts.collect(),
            intervals: 0,
            begun: Instant::now(),
            ended: Instant::now(),
            every: (time / INTERVALS).max(INTERVAL_MIN),
            classes,
            gaps: fleet.gaps.clone(),
        };
        let read = watch.read(BEGIN_WAIT).await;
        for (number, facts) in read {
            let host = &mut watch.hosts[number];
            host.seen.counters_alone =
                facts.gaps.iter().find(|gap| gap.what.is_below(DROPS)).map(|gap| gap.reason.clone());
            host.last = facts.counters;
        }
        watch.begun = Instant::now();
        watch
    }

    /// Hosts that are counted now.
    pub fn hosts(&self) -> usize {
        self.hosts.iter().filter(|host| host.link.is_some()).count()
    }

    /// Length of an interval.
    pub fn every(&self) -> Duration {
        self.every
    }

    /// Reads all hosts; those that fail are lost.
    async fn read(&mut self, wait: Duration) -> Vec<(usize, HostFacts)> {
        let links: Vec<(usize, Arc<NodeLink>)> = self
            .hosts
            .iter()
            .enumerate()
            .filter_map(|(number, host)| Some((number, host.link.clone()?)))
            .collect();
        let asked = links.iter().map(|(_, link)| {
            let read: std::pin::Pin<Box<dyn Future<Output = Reading> + '_>> =
                Box::pin(read(link, ObserveRequest::Drops, wait));
            read
        });
        let answers = join::all(asked.collect()).await;
        let mut read = Vec::new();
        for ((number, _), answer) in links.iter().zip(answers) {
            match answer {
                Ok(facts) => read.push((*number, facts)),
                Err(error) => {
                    let host = &mut self.hosts[*number];
                    host.link = None;
                    let what = GapSubject::Host(host.seen.host.clone());
                    self.gaps.push(Gap { what, reason: error.reason() });
                }
            }
        }
        read
    }

    /// Counts one interval; returns when it is over.
    pub async fn interval(&mut self) {
        // A moment of all hosts, however long the reading before took.
        let due = self.begun + self.every * (self.intervals as u32 + 1);
        sleep_until(due).await;
        let mut read: BTreeMap<usize, HostFacts> = self.read(READ_WAIT).await.into_iter().collect();
        for (number, host) in self.hosts.iter_mut().enumerate() {
            match read.remove(&number) {
                Some(facts) => host.learn(facts.counters, self.intervals, &self.classes),
                None => host.miss(),
            }
        }
        self.intervals += 1;
        self.ended = Instant::now();
    }

    /// What was counted so far.
    pub fn seen(&self) -> Vec<WatchedDrops> {
        self.hosts.iter().map(|host| host.seen.clone()).collect()
    }

    /// How long an interval was, seconds.
    pub fn every_s(&self) -> f64 {
        self.ended.duration_since(self.begun).as_secs_f64() / self.intervals.max(1) as f64
    }

    /// All facts of the hosts that are counted now.
    pub async fn facts(&self) -> BTreeMap<HostName, HostFacts> {
        let links: Vec<Arc<NodeLink>> = self.hosts.iter().filter_map(|host| host.link.clone()).collect();
        let all = || ObserveRequest::Facts { prefixes: Vec::new(), netns: Vec::new() };
        let asked = links.iter().map(|link| {
            let read: std::pin::Pin<Box<dyn Future<Output = Reading> + '_>> =
                Box::pin(read(link, all(), BEGIN_WAIT));
            read
        });
        let answers = join::all(asked.collect()).await;
        links
            .iter()
            .zip(answers)
            .filter_map(|(link, facts)| Some((link.host().to_owned(), facts.ok()?)))
            .collect()
    }
}

impl Counted {
    /// Takes a reading over: the growth since the last one.
    fn learn(&mut self, counters: BTreeMap<FactKey, i64>, intervals: usize, classes: &DropClasses) {
        for (key, value) in &counters {
            let is_by_reason = key.starts_with(DROPS) || key.starts_with(RETRANSMITS);
            if !is_by_reason && !OF_TCP.contains(&key.as_str()) && classes.of_counter(key).is_none() {
                continue;
            }
            // A reason is counted from its first packet on; of any other counter that comes nothing is known.
            let before = self.last.get(key).copied().or(is_by_reason.then_some(0));
            let grown = before.map_or(0, |before| value.saturating_sub(before).max(0));
            let growth = self.seen.growth.entry(key.clone()).or_insert_with(|| vec![0.0; intervals]);
            growth.push(grown as f64);
        }
        for growth in self.seen.growth.values_mut() {
            growth.resize(intervals + 1, 0.0);
        }
        self.last = counters;
    }

    /// Nothing is known of an interval.
    fn miss(&mut self) {
        self.seen.growth.values_mut().for_each(|growth| growth.push(f64::NAN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_begins_where_a_reason_is_seen_first() {
        let classes = DropClasses::builtin().unwrap();
        let mut host = Counted { link: None, last: BTreeMap::new(), seen: WatchedDrops::default() };
        let reading =
            |list: &[(&str, i64)]| list.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        let (firewall, queue, other) =
            ("drop.NETFILTER_DROP.0800.eth0", "nic.eth0.stat.qdisc_drops", "nic.eth0.stat.rx_packets");
        host.learn(reading(&[(queue, 100), (other, 5)]), 0, &classes);
        host.learn(reading(&[(queue, 107), (firewall, 3), (other, 9)]), 1, &classes);
        host.miss();
        // It began anew with its device.
        host.learn(reading(&[(queue, 2), (firewall, 8)]), 3, &classes);
        let growth = &host.seen.growth;
        assert_eq!(growth.len(), 2);
        assert!(growth[firewall][2].is_nan() && growth[queue][2].is_nan());
        // What is not a number becomes zero.
        let whole = |key: &str| growth[key].iter().map(|grown| *grown as i64).collect::<Vec<_>>();
        assert_eq!((whole(firewall), whole(queue)), (vec![0, 3, 0, 5], vec![0, 7, 0, 0]));
    }
}
