//! Counters: numbers of which only the change around a test means something. Kept apart from facts, and
//! cheap, because they are read before and after every test.

use std::collections::BTreeMap;

use linerate_model::fact::{FactDecl, FactKey, Gap};
use linerate_sys::ethtool_ioctl::EthtoolSocket;
use linerate_sys::procfs::{self, ControlGroup, Mount};
use linerate_sys::root::{ReadError, Root};
use linerate_sys::rtnetlink::{self, Address, NetDevice};

use super::readings::fact;
use super::view::key_name;

type Counters = BTreeMap<FactKey, i64>;

/// Times in `/proc/stat` are in ticks of 10 ms on every architecture that Linux shows to programs.
const TICK_US: i64 = 10_000;
/// What a counter of a driver must be about, by a part of its name, to be kept: drivers have thousands.
const TELLING: [&str; 12] = [
    "drop", "discard", "err", "miss", "pause", "no_buf", "nobuf", "out_of", "timeout", "overrun", "fifo",
    "congest",
];
/// Most counters of one driver that are kept.
const DRIVER_COUNTERS_MAX: usize = 256;

pub(super) fn declarations() -> Vec<FactDecl> {
    let counter = |pattern, unit, meaning| fact(pattern, unit, meaning);
    vec![
        counter("snmp.*.*", "count", "Counter of /proc/net/snmp by protocol and name."),
        counter("netstat.*.*", "count", "Counter of /proc/net/netstat by group and name."),
        counter("softnet.processed", "frames", "Frames processed by all CPUs."),
        counter("softnet.dropped", "frames", "Frames dropped because the backlog of a CPU was full."),
        counter("softnet.time_squeeze", "count", "Times that a CPU ended its work on frames early."),
        counter(
            "softnet.received_rps",
            "count",
            "Times that a CPU was asked by another one to process frames.",
        ),
        counter("nic.*.stat.*", "count", "Counter of a device; of its driver only what tells about losses."),
        counter(
            "cgroup.nr_throttled",
            "count",
            "Times that the control groups of the node were stopped by a CPU quota.",
        ),
        counter("cgroup.throttled_us", "us", "Time for which they were stopped."),
        counter("cpu.*.busy_us", "us", "Time for which a CPU was busy."),
        counter("cpu.*.softirq_us", "us", "Time for which a CPU worked on software interrupts."),
        counter("cpu.*.steal_us", "us", "Time that the hypervisor took."),
        counter("irq.*", "count", "Interrupts by number."),
        counter(
            "conntrack.drop",
            "packets",
            "Packets dropped because the table of connections had no room; also early_drop and insert_failed.",
        ),
        counter("conntrack.*", "count", "Other misfortunes of the table of connections."),
    ]
}

/// Reads all counters.
pub(super) fn read(root: &Root) -> (Counters, Vec<Gap>) {
    let mut counters = Counters::new();
    let mut gaps = Vec::new();
    let mut gap = |what: &str, reason: ReadError| {
        gaps.push(Gap { what: what.into(), reason: reason.to_string() });
    };
    for (file, head) in [("snmp", "snmp"), ("netstat", "netstat")] {
        match root.read(&format!("/proc/net/{file}")) {
            Ok(text) => {
                let rows = procfs::paired_table(&text);
                counters.extend(rows.map(|(group, name, value)| (format!("{head}.{group}.{name}"), value)));
            }
            Err(error) => gap(&format!("{head}.*"), error),
        }
    }
    if let Err(reason) = read_softnet(root, &mut counters) {
        gap("softnet.*", reason);
    }
    if let Err(reason) = read_nics(root, &mut counters) {
        gap("nic.*.stat.*", reason);
    }
    if let Err(reason) = read_stat(root, &mut counters) {
        gap("cpu.*.busy_us", reason);
    }
    if let Err(reason) = read_throttling(root, &mut counters) {
        gap("cgroup.*", reason);
    }
    // Only where connections are tracked is there such a file.
    if let Ok(text) = root.read("/proc/net/stat/nf_conntrack") {
        counters.extend(conntrack(&text));
    }
    counters.retain(|key, _| linerate_model::fact::check_key(key));
    (counters, gaps)
}

fn read_softnet(root: &Root, counters: &mut Counters) -> Result<(), ReadError> {
    let text = root.read("/proc/net/softnet_stat")?;
    let sum =
        procfs::softnet(&text).ok_or_else(|| ReadError::Other("the table has another form".to_owned()))?;
    for (name, value) in [
        ("processed", sum.processed),
        ("dropped", sum.dropped),
        ("time_squeeze", sum.time_squeeze),
        ("received_rps", sum.received_rps),
    ] {
        counters.insert(format!("softnet.{name}"), value);
    }
    Ok(())
}

/// Columns of `/proc/net/stat/nf_conntrack` that tell of packets that were not let in; hexadecimal, one row
/// per CPU.
fn conntrack(text: &str) -> Counters {
    const KEPT: [&str; 3] = ["drop", "early_drop", "insert_failed"];
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
    let mut counters = Counters::new();
    for line in lines {
        for (name, value) in names.iter().zip(line.split_ascii_whitespace()) {
            if let Some(value) = i64::from_str_radix(value, 16).ok().filter(|_| KEPT.contains(name)) {
                let sum = counters.entry(format!("conntrack.{name}")).or_insert(0);
                *sum = sum.saturating_add(value);
            }
        }
    }
    counters
}

fn read_stat(root: &Root, counters: &mut Counters) -> Result<(), ReadError> {
    let text = root.read("/proc/stat")?;
    let stat = procfs::stat(&text);
    for ticks in stat.cpus {
        for (name, value) in
            [("busy_us", ticks.busy), ("softirq_us", ticks.softirq), ("steal_us", ticks.steal)]
        {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            counters.insert(format!("cpu.{}.{name}", ticks.cpu), value.saturating_mul(TICK_US));
        }
    }
    counters.extend(stat.interrupts.into_iter().map(|(number, count)| (format!("irq.{number}"), count)));
    Ok(())
}

fn read_nics(root: &Root, counters: &mut Counters) -> Result<(), ReadError> {
    let links: Vec<NetDevice> = root.answer("links", || Ok(rtnetlink::links()?))?;
    let addresses: Vec<Address> =
        root.answer("addresses", || Ok(rtnetlink::addresses()?)).unwrap_or_default();
    // The ends of containers come and go by the hundred, and mean nothing when they do.
    let lasting = |link: &NetDevice| link.kind.is_none() || addresses.iter().any(|a| a.link == link.index);
    for link in &links {
        let head = format!("nic.{}.stat", key_name(&link.name));
        if let Some(changes) = link.carrier_changes.filter(|_| lasting(link)) {
            counters.insert(format!("{head}.carrier_changes"), i64::from(changes));
        }
        counters.extend(
            link.stats
                .iter()
                .map(|(name, value)| (format!("{head}.{name}"), i64::try_from(*value).unwrap_or(i64::MAX))),
        );
    }
    let asked: BTreeMap<String, BTreeMap<String, u64>> =
        root.answer("driver_stats", || Ok(driver_stats(&links)))?;
    for (nic, stats) in asked {
        let head = format!("nic.{}.stat", key_name(&nic));
        for (name, value) in stats {
            let key = format!("{head}.{}", name.replace(' ', "-"));
            // The kernel's own counter of the same name wins: it means the same for every driver.
            counters.entry(key).or_insert_with(|| i64::try_from(value).unwrap_or(i64::MAX));
        }
    }
    Ok(())
}

/// What drivers of real devices that are up count about losses.
fn driver_stats(links: &[NetDevice]) -> BTreeMap<String, BTreeMap<String, u64>> {
    let Ok(control) = EthtoolSocket::open() else { return BTreeMap::new() };
    let telling = |name: &str| {
        let name = name.to_ascii_lowercase();
        TELLING.iter().any(|t| name.contains(t))
    };
    let real = links.iter().filter(|l| l.up && !l.loopback && l.kind.is_none());
    real.filter_map(|link| {
        let stats = control.stats(&link.name).ok()?;
        let kept = stats.into_iter().filter(|(name, _)| telling(name)).take(DRIVER_COUNTERS_MAX);
        Some((link.name.clone(), kept.collect()))
    })
    .collect()
}

/// Sums over the own control group and all above it, because a quota anywhere on the way stops the node.
fn read_throttling(root: &Root, counters: &mut Counters) -> Result<(), ReadError> {
    let groups = procfs::control_groups(&root.read("/proc/self/cgroup")?);
    let mounts = procfs::mounts(&root.read("/proc/self/mountinfo")?);
    let mut seen = false;
    let (mut times, mut stopped_us) = (0_i64, 0_i64);
    for folder in groups.iter().flat_map(|group| folders_of(group, &mounts)) {
        let Ok(text) = root.read(&format!("{folder}/cpu.stat")) else { continue };
        let numbers = procfs::named_numbers(&text);
        let Some(n) = numbers.get("nr_throttled") else { continue };
        seen = true;
        times = times.saturating_add(*n);
        // Version 1 counts nanoseconds under another name.
        let us = numbers.get("throttled_usec").copied();
        let us = us.or_else(|| numbers.get("throttled_time").map(|ns| ns / 1000)).unwrap_or(0);
        stopped_us = stopped_us.saturating_add(us);
    }
    if !seen {
        return Err(ReadError::Other("no control group of the node counts quotas".to_owned()));
    }
    counters.insert("cgroup.nr_throttled".to_string(), times);
    counters.insert("cgroup.throttled_us".to_string(), stopped_us);
    Ok(())
}

/// Folders of a control group and of all above it that can be seen from here.
fn folders_of(group: &ControlGroup, mounts: &[Mount]) -> Vec<String> {
    let version_2 = group.controllers.is_empty();
    if !version_2 && !group.controllers.iter().any(|c| c == "cpu") {
        return Vec::new();
    }
    let fits = |m: &&Mount| {
        if version_2 {
            m.kind == "cgroup2"
        } else {
            m.kind == "cgroup" && m.super_options.split(',').any(|o| o == "cpu")
        }
    };
    let Some(mount) = mounts.iter().rev().find(fits) else { return Vec::new() };
    // A mount can show only a part of the hierarchy, and a path can lead out of the part that is shown.
    let below = group.path.strip_prefix(mount.root.trim_end_matches('/')).unwrap_or(&group.path);
    let mut folders = vec![mount.point.clone()];
    for part in below.split('/').filter(|p| !p.is_empty() && *p != "..").take(32) {
        folders.push(format!("{}/{part}", folders.last().map_or("", String::as_str)));
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_above_the_own_group_count_too() {
        let group = ControlGroup { controllers: vec![], path: "/a/b".into() };
        let mounts = procfs::mounts("1 1 0:1 / /sys/fs/cgroup rw - cgroup2 x rw\n");
        assert_eq!(folders_of(&group, &mounts), ["/sys/fs/cgroup", "/sys/fs/cgroup/a", "/sys/fs/cgroup/a/b"]);
        let group = ControlGroup { controllers: vec!["cpu".into(), "cpuacct".into()], path: "/x".into() };
        let mounts = procfs::mounts("1 1 0:1 /x /sys/fs/cgroup/cpu rw - cgroup c rw,cpu,cpuacct\n");
        assert_eq!(folders_of(&group, &mounts), ["/sys/fs/cgroup/cpu"]);
    }

    #[test]
    fn the_table_of_connections_is_summed_over_cpus() {
        let text = "entries  clashres found new invalid ignore delete delete_list insert insert_failed drop early_drop\n\
            00000010  0 0 0 0 0 0 0 0 0000000a 0000000f 00000001\n\
            00000010  0 0 0 0 0 0 0 0 00000001 00000001 x\n";
        let counters = conntrack(text);
        let seen: Vec<(&str, i64)> = counters.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        assert_eq!(
            seen,
            [("conntrack.drop", 16), ("conntrack.early_drop", 1), ("conntrack.insert_failed", 11)]
        );
        assert!(conntrack("").is_empty() && conntrack("drop\n\u{fffd}").is_empty());
    }

    #[test]
    fn counters_of_this_machine_are_read() {
        let root = Root::live();
        let start = std::time::Instant::now();
        let (counters, gaps) = read(&root);
        println!("{} counters in {:?}", counters.len(), start.elapsed());
        let bytes = "nic.lo.stat.rx_bytes";
        for key in ["snmp.Tcp.OutSegs", "netstat.TcpExt.TCPTimeouts", "softnet.processed", bytes] {
            assert!(counters.contains_key(key), "{key}: {gaps:?}");
        }
        // What is counted never goes back.
        assert!(read(&root).0[bytes] >= counters[bytes]);
    }
}
