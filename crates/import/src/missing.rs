//! Missing evidence: what would raise the confidence of a verdict, with the command that supplies it. An
//! imported snapshot comes in, a short list goes out, the most informative first. To add a need: a function
//! and one line in [`NEEDS`].

use std::collections::BTreeSet;

use linerate_model::imported::Missing;
use linerate_model::inventory::Layer;
use linerate_model::kind::TcpPlan;
use linerate_model::load::LoadReport;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::{Snapshot, StorageSubject};

use crate::sink::NAMELESS;

/// Names that are listed; the rest is counted.
const NAMES_MAX: usize = 4;
/// Names that a command is given.
const TYPED_MAX: usize = 12;
/// Fewer hosts than this need no groups.
const GROUPS_FROM: usize = 3;
/// Fewer intervals than this do not show how a transfer goes on.
const SERIES_MIN: usize = 8;

/// Whether a test has something.
type Has = fn(&Measurement) -> bool;

/// All needs.
const NEEDS: [fn(&Evidence<'_>) -> Option<Missing>; 10] = [
    any_transfer,
    other_direction,
    link_speed,
    device_settings,
    sysctls,
    addresses,
    rtt,
    within_transfers,
    path_mtu,
    memberships,
];

/// What is missing in this evidence.
pub(crate) fn of(snapshot: &Snapshot) -> Vec<Missing> {
    if snapshot.samples.is_empty() && snapshot.facts.is_empty() && snapshot.storage.is_empty() {
        return Vec::new();
    }
    let evidence = Evidence::new(snapshot);
    let mut missing: Vec<Missing> = NEEDS.iter().filter_map(|need| need(&evidence)).collect();
    missing.extend(storage(snapshot));
    missing
}

/// Index over the snapshot.
struct Evidence<'a> {
    snapshot: &'a Snapshot,
    /// Hosts between which was measured, in order.
    ends: Vec<&'a str>,
    /// Ordered pairs with a TCP transfer, by layer.
    transfers: BTreeSet<(Layer, &'a str, &'a str)>,
}

impl<'a> Evidence<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        let measured = |s: &&Sample| s.test.kind.is::<TcpPlan>() && rate(s).is_some();
        let transfers = snapshot.samples.iter().filter(measured);
        let transfers = transfers.map(|s| (s.test.layer, s.test.from.as_str(), s.test.to.as_str())).collect();
        let named: BTreeSet<&str> =
            snapshot.samples.iter().flat_map(|s| [s.test.from.as_str(), s.test.to.as_str()]).collect();
        let ends =
            snapshot.inventory.hosts.iter().map(|h| h.name.as_str()).filter(|n| named.contains(n)).collect();
        Self { snapshot, ends, transfers }
    }

    fn has(&self, host: &str, fits: impl Fn(&str) -> bool) -> bool {
        self.snapshot.facts.get(host).is_some_and(|facts| facts.readings.keys().any(|key| fits(key)))
    }

    /// Hosts without a match.
    fn without(&self, fits: impl Fn(&str) -> bool) -> Vec<&'a str> {
        self.ends.iter().filter(|host| !self.has(host, &fits)).copied().collect()
    }

    /// The one device that is known of a host, for commands that can be copied.
    fn nic(&self, hosts: &[&str]) -> String {
        let names: BTreeSet<&str> = hosts
            .iter()
            .filter_map(|h| self.snapshot.facts.get(*h))
            .flat_map(|f| f.readings.keys())
            .filter_map(|key| key.strip_prefix("nic.")?.split('.').next())
            .filter(|nic| *nic != "lo")
            .collect();
        if names.len() == 1 { names.into_iter().collect() } else { "NIC".to_owned() }
    }

    /// Pairs of hosts with a test that has something, in whichever direction.
    fn pairs_with(&self, has: impl Fn(&Measurement) -> bool) -> BTreeSet<(&'a str, &'a str)> {
        let fits = |s: &&Sample| matches!(&s.outcome, Outcome::Measured(m) if has(m));
        self.snapshot.samples.iter().filter(fits).map(pair).collect()
    }

    /// The first pair of hosts without such a test.
    fn pair_without(&self, has: impl Fn(&Measurement) -> bool) -> Option<(&'a str, &'a str)> {
        let all: BTreeSet<(&str, &str)> = self.snapshot.samples.iter().map(pair).collect();
        all.difference(&self.pairs_with(has)).next().copied()
    }
}

/// Both ends of a test, the same for both directions.
fn pair(sample: &Sample) -> (&str, &str) {
    let (a, b) = (sample.test.from.as_str(), sample.test.to.as_str());
    if a < b { (a, b) } else { (b, a) }
}

fn rate(sample: &Sample) -> Option<f64> {
    match &sample.outcome {
        Outcome::Measured(m) => m.throughput_bps,
        Outcome::NothingThrough { .. } => Some(0.0),
        _ => None,
    }
}

fn listed(names: &[&str]) -> String {
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    if names.len() > NAMES_MAX { format!("{shown} and {} more", names.len() - NAMES_MAX) } else { shown }
}

fn missing(what: String, command: String) -> Missing {
    Missing { what, command }
}

fn any_transfer(evidence: &Evidence<'_>) -> Option<Missing> {
    let mut hosts: Vec<&str> = evidence.snapshot.inventory.hosts.iter().map(|h| h.name.as_str()).collect();
    // No command runs on a host without a name.
    hosts.retain(|host| *host != NAMELESS);
    let storage_only = !evidence.snapshot.storage.is_empty() && evidence.snapshot.facts.is_empty();
    if !evidence.transfers.is_empty() || storage_only {
        return None;
    }
    Some(missing(
        "throughput between hosts".to_owned(),
        match hosts[..] {
            // A command with a thousand names is none to type.
            [a, b, ..] if hosts.len() > TYPED_MAX => format!(
                "`iperf3 -s` on {a}, then `iperf3 -c {a} -t 20 -J` on {b}; or `linerate survey -i FILE` for all"
            ),
            [a, b, ..] => format!("`iperf3 -s` on {a}, then `iperf3 -c {a} -t 20 -J` on {b}; or `linerate survey {}` for all", hosts.join(" ")),
            _ => "`iperf3 -s` on one host, then `iperf3 -c HOST -t 20 -J` on another; or `linerate survey HOST HOST` for all".to_owned(),
        },
    ))
}

fn other_direction(evidence: &Evidence<'_>) -> Option<Missing> {
    let one_direction: Vec<(&str, &str)> = evidence
        .transfers
        .iter()
        .filter(|(layer, a, b)| !evidence.transfers.contains(&(*layer, *b, *a)))
        .map(|(_, a, b)| (*b, *a))
        .collect();
    let (from, to) = one_direction.first()?;
    let more = if one_direction.len() > 1 {
        let rest = one_direction.len() - 1;
        format!(" and {rest} more {}", if rest == 1 { "pair" } else { "pairs" })
    } else {
        String::new()
    };
    Some(missing(
        format!("throughput from {from} to {to}{more}: the other direction"),
        format!("`iperf3 -s` on {to}, then `iperf3 -c {to} -t 20 -J` on {from}"),
    ))
}

fn link_speed(evidence: &Evidence<'_>) -> Option<Missing> {
    let inventory = &evidence.snapshot.inventory;
    let declared = |host: &&str| {
        inventory.host(host).is_some_and(|h| h.endpoints.iter().any(|e| e.link_bps.is_some()))
            || inventory.groups_of(host).iter().any(|g| {
                g.uplink_bps.is_some()
                    || g.machine.as_ref().is_some_and(|m| evidence.has(m, |key| key.ends_with(".speed_mbit")))
            })
    };
    let hosts: Vec<&str> =
        evidence.without(|key| key.ends_with(".speed_mbit")).into_iter().filter(|h| !declared(h)).collect();
    if hosts.is_empty() {
        return None;
    }
    Some(missing(
        format!("speed of the links of {}: without it there is no ceiling", listed(&hosts)),
        format!("`ethtool {} | grep Speed` on each", evidence.nic(&hosts)),
    ))
}

fn device_settings(evidence: &Evidence<'_>) -> Option<Missing> {
    let parts =
        [("k", ".feature."), ("i", ".driver"), ("g", ".ring."), ("c", ".coalesce."), ("l", ".channels.")];
    let mut hosts: Vec<&str> = Vec::new();
    let mut options = Vec::new();
    for (option, part) in parts {
        let without = evidence.without(|key| key.starts_with("nic.") && key.contains(part));
        if !without.is_empty() {
            options.push(option);
            hosts.extend(without);
        }
    }
    let mut known = BTreeSet::new();
    hosts.retain(|h| known.insert(*h));
    if hosts.is_empty() {
        return None;
    }
    let nic = evidence.nic(&hosts);
    let command = match options[..] {
        [one] => format!("`ethtool -{one} {nic}` on each"),
        _ => format!("`for o in {}; do ethtool -$o {nic}; done` on each", options.join(" ")),
    };
    Some(missing(format!("settings of the devices of {}", listed(&hosts)), command))
}

fn sysctls(evidence: &Evidence<'_>) -> Option<Missing> {
    let hosts = evidence.without(|key| key == "sysctl.net.ipv4.tcp_rmem");
    if hosts.is_empty() {
        return None;
    }
    Some(missing(format!("sysctls of {}", listed(&hosts)), "`sysctl -a` on each, as root".to_owned()))
}

fn addresses(evidence: &Evidence<'_>) -> Option<Missing> {
    let several = |host: &&str| {
        let nics = evidence.snapshot.facts.get(*host).map(|f| {
            f.readings
                .keys()
                .filter_map(|k| k.strip_prefix("nic.")?.split('.').next())
                .filter(|n| *n != "lo")
                .collect::<BTreeSet<_>>()
        });
        nics.is_some_and(|nics| nics.len() > 1)
    };
    let hosts: Vec<&str> =
        evidence.without(|key| key.ends_with(".addresses")).into_iter().filter(|h| several(h)).collect();
    if hosts.is_empty() {
        return None;
    }
    Some(missing(
        format!("which device of {} was measured", listed(&hosts)),
        "`ip -j addr` on each".to_owned(),
    ))
}

fn rtt(evidence: &Evidence<'_>) -> Option<Missing> {
    let (a, b) = evidence.pair_without(|m| m.rtt_idle_us.is_some() || m.rtt_loaded_us.is_some())?;
    Some(missing(
        "RTT times".to_owned(),
        format!("`ping -c 10 {b}` on {a}, and so on for the pairs that matter"),
    ))
}

fn within_transfers(evidence: &Evidence<'_>) -> Option<Missing> {
    fn ends(m: &Measurement) -> impl Iterator<Item = &LoadReport> {
        [&m.tx, &m.rx].into_iter().flatten().map(Box::as_ref)
    }
    let parts: [(&str, Has); 3] = [
        ("throughput from second to second", |m| ends(m).any(|end| end.series.len() >= SERIES_MIN)),
        ("retransmissions", |m| m.retransmits_per_s.is_some()),
        ("CPU of both ends", |m| ends(m).any(|end| end.core_busy_max.is_some())),
    ];
    let lacking = |has: Has| {
        let known = evidence.pairs_with(has);
        let is_known = |a: &'_ str, b: &'_ str| known.contains(&if a < b { (a, b) } else { (b, a) });
        evidence.transfers.iter().find(|(_, a, b)| !is_known(a, b)).map(|(_, a, b)| (*a, *b))
    };
    let lacking: Vec<(&str, (&str, &str))> =
        parts.iter().filter_map(|(what, has)| Some((*what, lacking(*has)?))).collect();
    let (_, (a, b)) = lacking.first()?;
    let what = lacking.iter().map(|(what, _)| *what).collect::<Vec<_>>().join(", ");
    Some(missing(format!("within a transfer: {what}"), format!("`iperf3 -c {b} -t 20 -J` on {a}")))
}

fn is_mtu(key: &str) -> bool {
    key.rsplit('.').next() == Some("mtu") && !key.starts_with("nic.lo.")
}

fn path_mtu(evidence: &Evidence<'_>) -> Option<Missing> {
    let (a, b) = evidence.pair_without(|m| !m.mtu.is_empty())?;
    let mtus: Vec<f64> = [a, b]
        .iter()
        .filter_map(|h| evidence.snapshot.facts.get(*h))
        .flat_map(|f| f.readings.iter().filter(|(k, _)| is_mtu(k)))
        .filter_map(|(_, v)| v.number(0))
        .collect();
    let known = !mtus.is_empty();
    let mtu = mtus.into_iter().fold(f64::INFINITY, f64::min);
    // 28 bytes of IPv4 and ICMP.
    let size = if mtu.is_finite() && mtu > 576.0 { mtu as u64 - 28 } else { 1472 };
    let read = if known { "" } else { "`ip -s -j link` on both, and " };
    Some(missing(
        "whether packets of full size arrive".to_owned(),
        format!("{read}`ping -M do -c 3 -s {size} {b}` on {a}"),
    ))
}

fn memberships(evidence: &Evidence<'_>) -> Option<Missing> {
    if evidence.ends.len() < GROUPS_FROM || !evidence.snapshot.inventory.groups.is_empty() {
        return None;
    }
    Some(missing(
        "which hosts share a hypervisor, a switch or a rack".to_owned(),
        "a table `| node | hypervisor |` among the files, or an inventory with -i; `linerate inventory FILE --probe --toml` makes one".to_owned(),
    ))
}

/// Replication is judged against the disk and the transport below it.
fn storage(snapshot: &Snapshot) -> Option<Missing> {
    let has = |what| snapshot.storage.iter().any(|f| f.what == what);
    if !has(StorageSubject::Replicated) || has(StorageSubject::LocalDisk) && has(StorageSubject::Transport) {
        return None;
    }
    let disk = "the disk alone: `fio --name=w --rw=write --bs=1M --size=4G --direct=1 --output-format=json` on a volume that is not replicated";
    let wire = "the transport alone: `iperf3 -c PEER -J`, titled with its name (ipoib, sdp, rdma)";
    let parts: Vec<&str> = [(has(StorageSubject::LocalDisk), disk), (has(StorageSubject::Transport), wire)]
        .iter()
        .filter(|(there, _)| !there)
        .map(|(_, p)| *p)
        .collect();
    Some(missing("what the replication stands on".to_owned(), parts.join("; ")))
}
