//! What hosts drop, and which of them drop the same packets. Counters of a watch and the classes of the
//! knowledge come in, a report goes out; facts of the hosts are added where there are groups.
//!
//! Two hosts drop the same packets when their counts of a reason and an EtherType rise and fall together: the
//! order of the intervals of one is unrelated to that of another unless both count the same events.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use linerate_knowledge::drops::{DropClass, DropClasses};
use linerate_model::drops::{
    BYTES_SENT, COST_NS, COST_RUNS, DropCost, DropGroup, DropReport, DropRow, HostDrops, HostResent, OTHERS,
    PacketKind, ResentKind, ResentRow, ResentTo, SEGMENTS_AGAIN, SEGMENTS_SENT, SEGMENTS_TWICE, SENT,
};
use linerate_model::fact::{FactKey, HostFacts, changes_by_itself, pattern_fits};
use linerate_model::inventory::HostName;

use crate::alike::{self, correlation};
use crate::attribute::IDENTITY;
use crate::rules::{DropRules, Rules};

const RULES: &DropRules = &Rules::DEFAULT.drops;

/// Facts that differ between any two hosts, beside those of [`IDENTITY`].
const OWN: [&str; 4] = ["nic.*.addresses", "route.*", "table.*", "sysctl.net.ipv4.conf.*.tag"];

/// The counters of a host during a watch.
#[derive(Debug, Clone, Default)]
pub struct WatchedDrops {
    /// Host.
    pub host: HostName,
    /// Growth of each counter in each interval; not a number where the host was not seen.
    pub growth: BTreeMap<FactKey, Vec<f64>>,
    /// Why the kernel's reasons are not known there.
    pub counters_alone: Option<String>,
}

impl WatchedDrops {
    fn total(&self, key: &str) -> f64 {
        self.growth.get(key).map_or(0.0, |growth| sum(growth))
    }
}

fn sum(growth: &[f64]) -> f64 {
    growth.iter().filter(|g| g.is_finite()).sum()
}

/// What was dropped, and sent again to hosts of these addresses, in intervals of this length, seconds.
#[must_use]
pub fn report(
    hosts: &[WatchedDrops],
    classes: &DropClasses,
    addresses: &BTreeMap<IpAddr, HostName>,
    every_s: f64,
) -> DropReport {
    let intervals = hosts.iter().flat_map(|host| host.growth.values()).map(Vec::len).max().unwrap_or(0);
    let seconds = every_s * intervals as f64;
    let of_hosts: Vec<HostDrops> =
        hosts.iter().map(|host| of_host(host, classes, addresses, seconds)).collect();
    DropReport {
        seconds,
        every_s,
        resent_to: resent_to(&of_hosts),
        hosts: of_hosts,
        groups: groups(hosts, classes),
        gaps: Vec::new(),
    }
}

/// What a host sent again, by peer and kind.
fn resent(watched: &WatchedDrops, addresses: &BTreeMap<IpAddr, HostName>) -> HostResent {
    let row = |key: &FactKey| {
        let (kind, peer) = ResentKind::of(key)?;
        let segments = watched.total(key) as u64;
        let host = addresses.get(&peer).cloned();
        (segments > 0).then_some(ResentRow { peer, host, kind, segments })
    };
    let mut rows: Vec<ResentRow> = watched.growth.keys().filter_map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.segments));
    rows.truncate(RULES.peers_max);
    let (again, bytes) = (watched.total(SEGMENTS_AGAIN), watched.total(BYTES_SENT));
    HostResent {
        sent: watched.total(SEGMENTS_SENT) as u64,
        again: again as u64,
        per_gigabyte: (bytes >= RULES.bytes_min).then(|| again / bytes * 1e9),
        needless: watched.total(SEGMENTS_TWICE) as u64,
        rows,
    }
}

/// The host to which most of what the others send again goes: its receive side, or the path to it.
fn resent_to(hosts: &[HostDrops]) -> Option<ResentTo> {
    let mut by_peer: BTreeMap<&HostName, (u64, BTreeSet<&HostName>)> = BTreeMap::new();
    let mut all = 0;
    for (from, row) in hosts.iter().flat_map(|from| from.resent.rows.iter().map(move |row| (&from.host, row)))
    {
        let Some(peer) = row.host.as_ref().filter(|peer| *peer != from) else { continue };
        let sum = by_peer.entry(peer).or_default();
        sum.0 += row.segments;
        sum.1.insert(from);
        all += row.segments;
    }
    let (host, (segments, from)) = by_peer.into_iter().max_by_key(|(_, (segments, _))| *segments)?;
    let share = segments as f64 / all.max(1) as f64;
    let is_clear = segments as f64 >= RULES.resent_min && from.len() >= 2 && share >= RULES.resent_share;
    is_clear.then(|| ResentTo { host: host.clone(), from: from.len(), share })
}

fn of_host(
    watched: &WatchedDrops,
    classes: &DropClasses,
    addresses: &BTreeMap<IpAddr, HostName>,
    seconds: f64,
) -> HostDrops {
    let mut rows: Vec<DropRow> = watched
        .growth
        .keys()
        .filter_map(|key| by_reason(watched, key, classes).or_else(|| by_counter(watched, key, classes)))
        .filter(|row| row.packets > 0)
        .collect();
    rows.sort_by_key(|row| (row.is_harmless(), std::cmp::Reverse(row.packets)));
    let cost = watched.growth.contains_key(COST_NS).then(|| {
        let ns = watched.total(COST_NS);
        let share = if seconds > 0.0 { ns / 1e9 / seconds } else { 0.0 };
        DropCost { runs: watched.total(COST_RUNS) as u64, ns: ns as u64, share }
    });
    HostDrops {
        host: watched.host.clone(),
        rows,
        counters_alone: watched.counters_alone.clone(),
        resent: resent(watched, addresses),
        cost,
    }
}

fn by_reason(watched: &WatchedDrops, key: &str, classes: &DropClasses) -> Option<DropRow> {
    let packets = watched.total(key) as u64;
    if key == OTHERS {
        return Some(DropRow {
            reason: "others".into(),
            ether_type: None,
            device: None,
            packets,
            class: None,
        });
    }
    let kind = PacketKind::of(key)?;
    let class = classes.of_reason(&kind.reason, kind.ether_type).map(DropClass::meaning);
    let PacketKind { reason, ether_type, device } = kind;
    Some(DropRow { reason, ether_type: Some(ether_type), device: Some(device), packets, class })
}

/// Of a counter that the knowledge names: what it has beyond those packets that the kernel gave reasons for.
fn by_counter(watched: &WatchedDrops, key: &str, classes: &DropClasses) -> Option<DropRow> {
    let class = classes.of_counter(key)?;
    let device = key.strip_prefix("nic.").and_then(|rest| rest.split('.').next()).map(str::to_owned);
    let all = watched.total(key);
    let is_same = |kind: &PacketKind| {
        let is_of = classes.of_reason(&kind.reason, kind.ether_type).is_some_and(|of| of.id == class.id);
        is_of && device.as_ref().is_none_or(|device| kind.device == *device || kind.device == SENT)
    };
    let counted: f64 = watched
        .growth
        .iter()
        .filter(|(key, _)| PacketKind::of(key).is_some_and(|kind| is_same(&kind)))
        .map(|(_, growth)| sum(growth))
        .sum();
    let beyond = all - counted;
    (beyond > RULES.beyond_min * all).then(|| DropRow {
        reason: key.to_owned(),
        ether_type: None,
        device,
        packets: beyond as u64,
        class: Some(class.meaning()),
    })
}

/// Packets that may be the same on several hosts: a reason and an EtherType, or a counter of all devices.
type Stratum = (String, Option<u16>);

/// The counts of one host.
struct Series<'a> {
    host: &'a HostName,
    growth: Vec<f64>,
}

/// Two series of one stratum by their numbers, how they correlate, and how likely that is by chance.
struct Agreement {
    pair: (usize, usize),
    correlation: f64,
    chance: f64,
}

fn strata<'a>(hosts: &'a [WatchedDrops], classes: &DropClasses) -> BTreeMap<Stratum, Vec<Series<'a>>> {
    let mut strata: BTreeMap<Stratum, Vec<Series<'a>>> = BTreeMap::new();
    for watched in hosts {
        let mut of_host: BTreeMap<Stratum, Vec<f64>> = BTreeMap::new();
        for (key, growth) in &watched.growth {
            let Some(stratum) = stratum(key, watched, classes) else { continue };
            let sums = of_host.entry(stratum).or_insert_with(|| vec![0.0; growth.len()]);
            sums.iter_mut().zip(growth).for_each(|(sum, one)| *sum += one);
        }
        for (stratum, growth) in of_host.into_iter().filter(|(_, growth)| sum(growth) >= RULES.packets_min) {
            strata.entry(stratum).or_default().push(Series { host: &watched.host, growth });
        }
    }
    for series in strata.values_mut() {
        series.sort_by(|a, b| sum(&b.growth).total_cmp(&sum(&a.growth)));
        series.truncate(RULES.hosts_max);
    }
    strata
}

/// Of what no other host can have a part there is none: no packets of the network, and a device by name.
fn stratum(key: &str, watched: &WatchedDrops, classes: &DropClasses) -> Option<Stratum> {
    if let Some(kind) = PacketKind::of(key) {
        return (kind.ether_type != 0).then_some((kind.reason, Some(kind.ether_type)));
    }
    let class = classes.of_counter(key)?;
    // Where the kernel gives reasons they are more precise.
    let is_by_reason = watched.counters_alone.is_none() && !class.reasons.is_empty();
    let name = match key.strip_prefix("nic.").and_then(|rest| rest.split_once('.')) {
        Some((_, name)) => format!("nic.*.{name}"),
        None => key.to_owned(),
    };
    (!is_by_reason).then_some((name, None))
}

fn groups(hosts: &[WatchedDrops], classes: &DropClasses) -> Vec<DropGroup> {
    let strata = strata(hosts, classes);
    let mut found: Vec<(&Stratum, &[Series<'_>], Vec<Agreement>)> = Vec::new();
    for (stratum, series) in &strata {
        found.push((stratum, series, agreements(series)));
    }
    // What any of all comparisons shows by chance.
    let tests: usize = strata.values().map(|series| series.len() * series.len().saturating_sub(1) / 2).sum();
    let mut groups = Vec::new();
    for (stratum, series, mut agreements) in found {
        for one in &mut agreements {
            one.chance = (one.chance * tests as f64).min(1.0);
        }
        agreements.retain(|one| one.chance <= RULES.chance_max && one.correlation >= RULES.correlated);
        let members = cliques(series.len(), &agreements);
        groups.extend(
            members.iter().map(|members| group(stratum, series, members, &agreements, hosts, classes)),
        );
    }
    groups.sort_by(|a, b| {
        let is_harmless = |group: &DropGroup| group.class.as_ref().is_some_and(|class| class.harmless);
        (is_harmless(a), b.packets).cmp(&(is_harmless(b), a.packets))
    });
    groups.truncate(RULES.groups_max);
    groups
}

fn agreements(series: &[Series<'_>]) -> Vec<Agreement> {
    let mut found = Vec::new();
    for a in 0..series.len() {
        for b in a + 1..series.len() {
            let (x, y) = (&series[a].growth, &series[b].growth);
            let Some(correlation) = correlation(x, y, RULES.intervals_min).filter(|r| *r > 0.0) else {
                continue;
            };
            found.push(Agreement { pair: (a, b), correlation, chance: chance(x, y) });
        }
    }
    found
}

/// Groups in which each two agree, from the busiest host on.
fn cliques(count: usize, agreements: &[Agreement]) -> Vec<Vec<usize>> {
    let agree = |a: usize, b: usize| agreements.iter().any(|one| one.pair == (a.min(b), a.max(b)));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for one in 0..count {
        match groups.iter_mut().find(|group| group.iter().all(|other| agree(*other, one))) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

fn group(
    (reason, ether_type): &Stratum,
    series: &[Series<'_>],
    members: &[usize],
    agreements: &[Agreement],
    hosts: &[WatchedDrops],
    classes: &DropClasses,
) -> DropGroup {
    let inside = |one: &&Agreement| members.contains(&one.pair.0) && members.contains(&one.pair.1);
    let of = |f: fn(&Agreement) -> f64| agreements.iter().filter(inside).map(f);
    let class = match ether_type {
        Some(ether_type) => classes.of_reason(reason, *ether_type),
        None => classes.of_counter(reason),
    };
    let is_member = |host: &HostName| members.iter().any(|one| series[*one].host == host);
    DropGroup {
        reason: reason.clone(),
        ether_type: *ether_type,
        hosts: hosts.iter().map(|watched| &watched.host).filter(|host| is_member(host)).cloned().collect(),
        packets: members.iter().map(|one| sum(&series[*one].growth) as u64).sum(),
        correlation: of(|one| one.correlation).fold(1.0, f64::min),
        probability: 1.0 - of(|one| one.chance).fold(0.0, f64::max),
        shared: Vec::new(),
        shared_by_chance: 1.0,
        class: class.map(DropClass::meaning),
    }
}

/// How likely the second series has its values in as good an order by chance as it has, 0 to 1: a permutation
/// test. Of few intervals all orders are tried; of many the correlation of ranks is compared with its
/// distribution, never below what one order among all that differ is likely.
fn chance(a: &[f64], b: &[f64]) -> f64 {
    let seen = a.iter().zip(b).filter(|(x, y)| x.is_finite() && y.is_finite());
    let (a, b): (Vec<f64>, Vec<f64>) = seen.map(|(x, y)| (*x, *y)).unzip();
    if a.len() <= RULES.exact_max {
        return chance_of_orders(&a, b);
    }
    let Some(of_ranks) = correlation(&ranks(&a), &ranks(&b), RULES.intervals_min) else { return 1.0 };
    // Fisher's transformation, with the variance of ranks (Fieller, Hartley and Pearson 1957).
    let error = (1.06 / (a.len() as f64 - 3.0)).sqrt();
    let deviations = of_ranks.clamp(-1.0, 1.0 - 1e-12).atanh() / error;
    above_normal(deviations).max((-orders_ln(&a).min(orders_ln(&b))).exp())
}

/// The share of the orders of the second series whose products with the first sum to no less.
fn chance_of_orders(a: &[f64], mut b: Vec<f64>) -> f64 {
    let product = |b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let seen = product(&b);
    let (mut all, mut as_good) = (0_u32, 0_u32);
    each_order(&mut b, 0, &mut |order| {
        all += 1;
        as_good += u32::from(product(order) >= seen * (1.0 - 1e-12));
    });
    f64::from(as_good) / f64::from(all.max(1))
}

fn each_order(values: &mut [f64], from: usize, see: &mut dyn FnMut(&[f64])) {
    if from + 1 >= values.len() {
        see(values);
        return;
    }
    for other in from..values.len() {
        values.swap(from, other);
        each_order(values, from + 1, see);
        values.swap(from, other);
    }
}

/// The rank of each value; equal ones share theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| other.total_cmp(value).is_lt()).count();
        let equal = values.iter().filter(|other| other.total_cmp(value).is_eq()).count();
        below as f64 + f64::midpoint(equal as f64, 1.0)
    };
    values.iter().map(rank).collect()
}

/// Logarithm of the number of orders of the values that differ.
fn orders_ln(values: &[f64]) -> f64 {
    let factorial_ln = |n: usize| (2..=n).map(|k| (k as f64).ln()).sum::<f64>();
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let same: f64 = sorted.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|same| factorial_ln(same.len())).sum();
    factorial_ln(values.len()) - same
}

/// How likely a normal value is above this many standard deviations (Abramowitz and Stegun 26.2.17 below
/// four, its asymptote above).
fn above_normal(z: f64) -> f64 {
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z < 0.0 {
        return 1.0 - above_normal(-z);
    }
    if z > 4.0 {
        return density / z;
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let terms = [0.319_381_53, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    density * terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t)
}

/// Adds to each group the facts that its hosts have and no other host has.
pub fn add_shared(report: &mut DropReport, facts: &BTreeMap<HostName, HostFacts>, classes: &DropClasses) {
    for group in &mut report.groups {
        let (mine, others): (Vec<_>, Vec<_>) = facts.iter().partition(|(host, _)| group.hosts.contains(host));
        if mine.len() < group.hosts.len() {
            continue;
        }
        let mine: Vec<&HostFacts> = mine.into_iter().map(|(_, facts)| facts).collect();
        let others: Vec<&HostFacts> = others.into_iter().map(|(_, facts)| facts).collect();
        let class = group.class.as_ref().and_then(|class| classes.iter().find(|one| one.id == class.id));
        group.shared = shared(&mine, &others, class);
        group.shared_by_chance = 1.0 / choices(mine.len() + others.len(), mine.len());
    }
}

fn shared(mine: &[&HostFacts], others: &[&HostFacts], class: Option<&DropClass>) -> Vec<String> {
    let bears = |key: &str| class.is_some_and(|class| class.facts.iter().any(|one| pattern_fits(one, key)));
    let is_own = |key: &str| {
        changes_by_itself(key) || IDENTITY.iter().chain(&OWN).any(|pattern| pattern_fits(pattern, key))
    };
    let found = alike::shared(mine, others);
    let alike = found.facts.into_iter().map(|(key, value)| (bears(&key), format!("{key} is {value}"), key));
    // A device has many facts: it is one.
    let thing = |key: String| match key.strip_prefix("nic.").and_then(|rest| rest.split_once('.')) {
        Some((device, _))
            if mine
                .iter()
                .all(|host| !host.readings.keys().any(|k| k.starts_with(&format!("nic.{device}.")))) =>
        {
            (bears(&key), format!("no device {device}"), key)
        }
        _ => (bears(&key), format!("no {key}"), key),
    };
    let mut all: Vec<(bool, String)> = alike
        .chain(found.lacking.into_iter().map(thing))
        .filter(|(bears, _, key)| *bears || !is_own(key))
        .map(|(bears, text, _)| (bears, text))
        .collect();
    all.sort_by_key(|(bears, _)| !bears);
    let mut texts: Vec<String> = Vec::new();
    for (_, text) in all {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.truncate(RULES.shared_max);
    texts
}

/// In how many combinations some can be chosen of all.
fn choices(all: usize, some: usize) -> f64 {
    (0..some.min(all)).map(|k| (all - k) as f64 / (k + 1) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_and_its_tail_are_right() {
        let mut burst = [0.0; 30];
        burst[7] = 500.0;
        // One of thirty intervals: 3 % for a single comparison.
        assert!((chance(&burst, &burst) - 1.0 / 30.0).abs() < 1e-9);
        for (z, tail) in [(0.0, 0.5), (1.0, 0.158_655), (2.0, 0.022_750), (3.0, 0.001_350)] {
            assert!((above_normal(z) - tail).abs() < 1e-6, "{z}");
        }
        assert!((above_normal(5.0) / 2.87e-7 - 1.0).abs() < 0.06);
        assert!((choices(6, 2) - 15.0).abs() < 1e-9);
    }
}
