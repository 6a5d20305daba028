//! Counters `drop.*` and `retransmit.*`: packets that the kernel dropped, by its reason, EtherType and
//! device, and segments that it sent again, by kind and peer. Counted only when asked for, because it means
//! programs of ours at tracepoints of the kernel: they begin with the first request of a session and are
//! gone with the session, however that ends.
//!
//! In: the first request and those after it. Out: counters, with the cost of the program, or a gap with the
//! reason; beside them what queueing disciplines drop, which needs no program. It never asks twice where the
//! kernel has refused.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use linerate_model::drops::{
    COST_NS, COST_RUNS, DROPS, INSIDE, OTHERS, PacketKind, RETRANSMITS, ResentKind, SENT,
};
use linerate_model::fact::{FactDecl, FactKey, Gap, HostFacts};
use linerate_sys::bpf::BpfUnavailable;
use linerate_sys::packet_drops::{DropCount, DropKind, PacketDrops};
use linerate_sys::retransmits::{Retransmit, RetransmitKind, Retransmits};
use linerate_sys::{qdisc, rtnetlink};

use crate::notices::own_namespace;

/// The name of the counter of a queueing discipline.
const QUEUE_DROPS: &str = "qdisc_drops";

/// A program, once it is asked for; else why there is none.
type Begun<T> = Mutex<Option<Result<T, String>>>;

/// The counts of a session.
#[derive(Debug, Default)]
pub(crate) struct DropCounts {
    drops: Begun<PacketDrops>,
    resent: Begun<Retransmits>,
}

/// What a program counted; the first call begins it.
fn read<T>(
    begun: &Begun<T>,
    begin: impl FnOnce() -> Result<T, BpfUnavailable>,
    read: impl FnOnce(&T) -> io::Result<BTreeMap<FactKey, i64>>,
) -> Result<BTreeMap<FactKey, i64>, String> {
    let mut begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
    match begun.get_or_insert_with(|| begin().map_err(|refused| refused.to_string())) {
        Ok(program) => read(program).map_err(|error| error.to_string()),
        Err(reason) => Err(reason.clone()),
    }
}

pub(crate) fn declarations() -> Vec<FactDecl> {
    let counter = |pattern: &str, unit: &str, meaning: &str| FactDecl {
        pattern: format!("{DROPS}{pattern}"),
        unit: unit.to_owned(),
        meaning: meaning.to_owned(),
        setting: false,
    };
    vec![
        counter(
            "*.*.*",
            "packets",
            "Packets that the kernel dropped since the session asked first, by its name of the reason, EtherType and the device they came in by; `(sent)`: by none, `(netns)`: in other network namespaces. Only by `linerate drops`, with a program at a tracepoint of the kernel; drops in cards and drivers are in their own counters.",
        ),
        counter(
            "others",
            "packets",
            "Packets that were dropped for more combinations than have a count of their own.",
        ),
        counter("cost.runs", "count", "How often the program that counts drops ran."),
        counter("cost.ns", "ns", "How long it ran, on all CPUs together."),
        FactDecl {
            pattern: format!("{RETRANSMITS}*.*"),
            unit: "segments".to_owned(),
            meaning: "Segments of TCP that were sent again since the session asked first, by kind (timeout, recovery, tail-probe, handshake) and address of the peer. Only by `linerate drops`, with a program at a tracepoint of the kernel.".to_owned(),
            setting: false,
        },
        FactDecl {
            pattern: format!("nic.*.stat.{QUEUE_DROPS}"),
            unit: "packets".to_owned(),
            meaning: "Packets that the root queueing discipline dropped. Only by `linerate drops`.".to_owned(),
            setting: false,
        },
    ]
}

impl DropCounts {
    /// Adds the counts to what is read. The first call begins to count.
    pub(crate) fn add(&self, facts: &mut HostFacts) {
        let drops = read(&self.drops, PacketDrops::begin, |drops| Ok(counters(&drops.read()?, drops)));
        let resent = read(&self.resent, Retransmits::begin, |resent| Ok(resent_by_peer(&resent.read()?)));
        for (family, read) in [(DROPS, drops), (RETRANSMITS, resent)] {
            match read {
                Ok(read) => facts.counters.extend(read),
                Err(reason) => facts.gaps.push(Gap { what: format!("{family}*").into(), reason }),
            }
        }
        match (rtnetlink::links(), qdisc::root_drops()) {
            (Ok(links), Ok(drops)) => {
                let name =
                    |index| links.iter().find(|link| link.index == index).map(|link| link.name.as_str());
                facts.counters.extend(drops.into_iter().filter_map(|(link, drops)| {
                    let key = format!("nic.{}.stat.{QUEUE_DROPS}", name(link)?.replace('.', "/"));
                    Some((key, i64::from(drops)))
                }));
            }
            (Err(error), _) | (_, Err(error)) => {
                let what = format!("nic.*.stat.{QUEUE_DROPS}").into();
                facts.gaps.push(Gap { what, reason: error.to_string() });
            }
        }
    }
}

/// Segments that this host sent again; not those of namespaces inside of it.
fn resent_by_peer(read: &BTreeMap<Retransmit, u64>) -> BTreeMap<FactKey, i64> {
    let (own, _) = own_namespace();
    let mut sums = BTreeMap::new();
    for (one, segments) in read.iter().filter(|(one, _)| own == Some(one.netns.into())) {
        let kind = match one.kind {
            RetransmitKind::Timeout => ResentKind::Timeout,
            RetransmitKind::Recovery => ResentKind::Recovery,
            RetransmitKind::TailProbe => ResentKind::TailProbe,
            RetransmitKind::Handshake => ResentKind::Handshake,
        };
        *sums.entry(kind.key(one.peer)).or_insert(0) += whole(*segments);
    }
    sums
}

fn counters(read: &BTreeMap<DropKind, DropCount>, drops: &PacketDrops) -> BTreeMap<FactKey, i64> {
    let links = rtnetlink::links().into_iter().flatten();
    let names: BTreeMap<u32, String> = links.map(|link| (link.index, link.name.replace('.', "/"))).collect();
    let (own, is_first) = own_namespace();
    let mut sums = BTreeMap::new();
    for (kind, count) in read {
        if let Some(key) = key(kind, &names, own, is_first) {
            *sums.entry(key).or_insert(0) += whole(count.packets);
        }
    }
    if let Some(cost) = drops.cost() {
        sums.insert(COST_RUNS.to_owned(), whole(cost.runs));
        sums.insert(COST_NS.to_owned(), whole(cost.ns));
    }
    sums
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The key of a kind of drop. A host that is a network namespace counts what is known to be its own; that of
/// the machine counts all, those of other namespaces together.
fn key(kind: &DropKind, names: &BTreeMap<u32, String>, own: Option<u64>, is_first: bool) -> Option<String> {
    let Some(reason) = &kind.reason else { return is_first.then(|| OTHERS.to_owned()) };
    let is_own = own == Some(kind.netns.into()) || kind.netns == 0 && is_first;
    let device = match kind.device {
        _ if !is_own => INSIDE.to_owned(),
        0 => SENT.to_owned(),
        device => names.get(&device).cloned().unwrap_or_else(|| format!("#{device}")),
    };
    let kind = PacketKind { reason: reason.clone(), ether_type: kind.protocol, device };
    (is_own || is_first).then(|| kind.key())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_counts_its_own_and_a_machine_those_inside_together() {
        let names = BTreeMap::from([(3, "eth0/5".to_owned())]);
        let of = |device, netns, is_first| {
            let reason = Some("NO_SOCKET".to_owned());
            key(&DropKind { reason, protocol: 0x0800, device, netns }, &names, Some(7), is_first)
        };
        let words = |text: &str| Some(format!("drop.NO_SOCKET.0800.{text}"));
        assert_eq!((of(3, 7, false), of(0, 7, false)), (words("eth0/5"), words("(sent)")));
        assert_eq!((of(3, 8, false), of(3, 0, false), of(9, 7, true)), (None, None, words("#9")));
        assert_eq!((of(3, 8, true), of(3, 0, true)), (words("(netns)"), words("eth0/5")));
    }
}
