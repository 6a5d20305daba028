//! Which command decides what imported evidence leaves open: by the findings, by the symptoms, by the words
//! of the text. One line of the table for each. Each command has a reader in the import, and what stands in
//! the text already is not asked for.
//!
//! In: the account of the import, symptoms, findings. Out: at most three commands, the one that
//! decides first.

use std::collections::BTreeSet;

use linerate_model::fact::{HostFacts, pattern_fits};
use linerate_model::finding::{Direction, Finding, Metric, Suspect};
use linerate_model::imported::{Imported, Missing};
use linerate_model::remark::{DiskRemark, Remark};
use linerate_model::snapshot::Snapshot;
use linerate_model::symptom::Sign;

/// Most commands that are asked for.
const ASKED_MAX: usize = 3;
/// What is asked for where no line of the table applies: what is missing, and the command.
const FIRST: [&str; 2] = [
    "throughput between hosts",
    "`linerate survey HOST HOST`; or `iperf3 -s` on one host and `iperf3 -c HOST -t 20 -J` on another",
];
/// Weight of a sign over that of a word.
const SIGN: usize = 10;

/// When a line of the table applies.
enum When {
    /// A sign of a transfer.
    Sign(fn(&Sign) -> bool),
    /// A finding.
    Finding(fn(&Finding) -> bool),
    /// Another remark.
    Remark(fn(&Remark) -> bool),
    /// A key that was read of the text fits one of these patterns.
    Key(&'static [&'static str]),
    /// So many words of the text: each alone, in the plural or within hyphens; `nfs*` is a beginning.
    Words(usize, &'static [&'static str]),
}
use When::{Finding as F, Key as K, Remark as R, Sign as S, Words as W};

/// Words of texts about disks.
const DISKS: &[&str] = &[
    "disk*",
    "ssd",
    "hdd",
    "osd",
    "raid*",
    "zfs",
    "zpool*",
    "resilver*",
    "sata*",
    "mirror",
    "storage",
    "iowait",
    "drive",
    "nvme*",
    "scsi",
    "uas",
    "smartctl",
    "badblocks",
    "lvm",
    "dm-crypt",
    "luks",
];
/// Words of texts about networks.
const NETWORKS: &[&str] = &[
    "network*",
    "nic",
    "ethernet",
    "eth0",
    "eth1",
    "lan",
    "tcp",
    "udp",
    "iperf*",
    "ping*",
    "nfs*",
    "mbit*",
    "gbit*",
    "gbps",
    "packet",
    "vlan",
    "vxlan",
    "wifi",
    "wlan*",
    "bond*",
    "vpn",
    "tunnel",
    "download",
    "drbd*",
    "ceph*",
    "osd",
    "iscsi*",
    "smb",
    "samba",
    "cifs",
    "http*",
    "curl",
    "wget",
    "router",
    "infiniband",
    "ipoib",
];
/// Beginnings of commands that only show a network.
const OF_NETWORKS: &[&str] =
    &["ethtool", "iperf3", "ping ", "ip ", "iw ", "ss -", "nstat", "tc ", "linerate survey"];

/// A line: when, what, commands, and where they run; `{to}` and `{from}` are the ends, where they are known.
type Line = (When, &'static str, &'static [&'static str], &'static str);

#[rustfmt::skip]
const TABLE: &[Line] = &[
    (S(|s| matches!(s, Sign::Burst { .. })), "what limits it once the burst is over", &["tc -s qdisc show dev NIC", "ethtool -S NIC | grep allowance", "iperf3 -c PEER -t 60 -i 1"], "on {from}"),
    (S(is_one_cpu), "which CPU serves the stream", &["cat /proc/interrupts", "mpstat -P ALL 1"], "on {to}, twice during a transfer"),
    (S(|s| matches!(s, Sign::Window { .. })), "what keeps the window small", &["sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem", "ss -ti"], "at both ends, during a transfer; a larger `-w`"),
    (R(|r| matches!(r, Remark::Shared { .. })), "how flows spread over the links between", &["ethtool -S NIC"], "for each port of the trunk, and its hash; or the counters of the switch"),
    (R(|r| is_outlier(r, "nic.")), "what the NIC and its driver count", &["ethtool -S NIC", "ethtool -g NIC", "ethtool -a NIC"], "on {to} and on a host that is fine"),
    (R(|r| is_outlier(r, "snmp.Tcp.")), "to whom it sends again", &["ss -ti", "nstat -az", "ip -s link"], "on {to}; `linerate drops {to}` with reasons"),
    (R(|r| is_outlier(r, "disk.")), "health and waits of its drives", &["smartctl -a /dev/DRIVE", "iostat -x 1"], "on {to}"),
    (R(|r| is_outlier(r, "")), "what it does beside the others", &["mpstat -P ALL 1", "nstat -az", "iostat -x 1"], "on {to}"),
    (R(|r| matches!(r, Remark::Node { .. })), "why it was taken out", &["findmnt", "cat /etc/fstab", "dmesg"], "on {to}"),
    (F(into_group), "offloads of the NIC behind which it is slow", &["ethtool -k NIC", "ethtool -i NIC"], "on {to} and on a machine that is fine"),
    (R(is_block), "offloads of the NIC of the machine below", &["ethtool -k NIC"], "on the machine under {to} and on one that is fine"),
    (F(is_overlay), "how the NIC splits packets of tunnels", &["ethtool -k NIC | grep udp_tnl"], "on {to} and on a machine that is fine"),
    (S(|s| matches!(s, Sign::OneDirection { .. })), "offloads and errors of the slow direction", &["ethtool -k NIC", "ethtool -S NIC"], "on {to} and on {from}"),
    (S(|s| matches!(s, Sign::Standstill { .. })), "whether large packets arrive", &["ping -M do -c 3 -s 1472 {to}", "ip -d link", "nstat -az", "ethtool -S NIC"], "on {from}, and on each device of the path"),
    (S(|s| matches!(s, Sign::Unanswered { .. })), "where packets are dropped", &["ip -s link", "ethtool -S NIC", "nstat -az"], "on {from} and {to}"),
    (S(|s| matches!(s, Sign::SlowAnswers { .. })), "what holds the packets back", &["iw dev DEV station dump", "tc -s qdisc show dev NIC", "ethtool -S NIC"], "on {from}; `iw` where the link is wifi"),
    (R(|r| matches!(r, Remark::Disk(DiskRemark::SlowWrites { .. }))), "waits of each drive while it writes", &["iostat -x 1", "smartctl -a /dev/DRIVE", "hdparm -W /dev/DRIVE"], "on the machine with the drives, during the writes"),
    (S(|s| matches!(s, Sign::LocalMtu { .. })), "why the route is that small", &["ip -d link"], "on {from}: the MTU of each device, and of the tunnel above"),
    (S(|s| matches!(s, Sign::Conditions(_))), "what limits one stream", &["mpstat -P ALL 1", "ss -ti", "sysctl net.ipv4.tcp_rmem"], "on {to} and {from}, during a transfer"),
    (F(|f| f.responses.first() == Some(&Metric::Retransmits)), "where packets are dropped", &["ethtool -S NIC", "ethtool -g NIC", "nstat -az"], "on {to}, before and after a transfer"),
    (S(|s| matches!(s, Sign::Resent { .. })), "where packets are dropped", &["ethtool -S NIC", "ethtool -g NIC", "nstat -az"], "on {to} and {from}, before and after a transfer"),
    (R(|r| matches!(r, Remark::SentAgain { .. })), "where packets are dropped", &["ethtool -S NIC", "ethtool -g NIC", "nstat -az"], "on {to}, before and after a transfer"),
    (F(|f| f.responses.first() == Some(&Metric::PathMtu)), "the MTU of each device of the path", &["ip -d link"], "on each host and hypervisor of the path"),
    (K(&["ata.*.log.*", "ata.*.link_power"]), "power saving of the link to the drive, and its health", &["grep . /sys/class/scsi_host/host*/link_power_management_policy", "smartctl -a /dev/DRIVE"], "as root"),
    (K(&["usb.*", "disk.*.log.uas_abort"]), "speed and driver of the device on USB", &["lsusb -t", "dmesg", "smartctl -a /dev/DRIVE"], ""),
    (K(&["socket.message_too_long", "socket.packets_cut"]), "the MTU of each device of the path", &["ip -d link", "ping -M do -c 3 -s 1372 HOST"], "on each host of the path, inside and below the tunnel"),
    (W(1, &["wifi", "wi-fi", "wlan*", "wireless", "ath9k", "ath10k", "ath11k", "mt76*", "mt79*", "iwlwifi", "mwlwifi", "hostapd", "ssid"]), "rate, signal and retries of the radio link", &["iw dev DEV station dump", "iw dev DEV get power_save", "ethtool -S NIC"], "at both ends of the radio link"),
    (W(2, &["pod", "cni*", "flannel", "calico", "cilium", "kubernetes", "k8s", "k3s", "forward*", "offload*", "tso", "gso", "gro", "vm", "guest", "hypervisor", "proxmox", "kvm", "bridge", "bridged"]), "offloads of the NIC that forwards", &["ethtool -k NIC", "nstat -az", "ethtool -S NIC"], "on each machine between the two ends"),
    (W(1, &["usb", "usb2", "usb3", "lsusb", "uas", "xhci*"]), "speed and driver of the device on USB", &["lsusb -t", "dmesg"], ""),
    (W(1, &["alpm", "dipm", "comreset"]), "power saving of the link to the drive, and its health", &["grep . /sys/class/scsi_host/host*/link_power_management_policy", "smartctl -a /dev/DRIVE"], "as root"),
    (W(1, &["drbd*"]), "settings and state of the replica", &["drbdadm dump all", "cat /proc/drbd", "drbdsetup show"], "on both hosts"),
    (W(1, &["ipoib", "infiniband", "ib0", "connectx-2"]), "mode of IPoIB", &["cat /sys/class/net/ib0/mode", "ip link show ib0"], "on both hosts"),
    (W(1, &["nfs*"]), "options and waits of the mounts", &["nfsstat -m", "cat /proc/self/mountstats"], "on a client"),
    (W(1, &["megaraid", "perc", "bbu", "battery", "storcli*", "megacli*"]), "cache and battery of the controller", &["storcli /c0 show all", "iostat -x 1"], "on the host; of old ones `megacli -AdpBbuCmd -aALL`"),
    (W(2, &["controller", "raid*", "cache", "writeback"]), "cache and battery of the controller", &["storcli /c0 show all", "iostat -x 1"], "on the host"),
    (W(1, &["nvme*", "pcie"]), "lanes of the device", &["lspci -vv", "nvme smart-log /dev/nvme0", "iostat -x 1"], "as root"),
    (W(1, DISKS), "load, health and write cache of each drive", &["iostat -x 1", "smartctl -a /dev/DRIVE", "hdparm -W /dev/DRIVE", "dmesg"], ""),
    (W(1, &["udp", "statsd", "graphite", "syslog*", "multicast", "datagram"]), "datagrams that the receiver dropped", &["nstat -az | grep Udp", "ss -uamn", "sysctl net.core.rmem_max"], "on the receiver"),
    (W(1, &["bond", "bond0", "bond1", "bonded", "bonding", "balance-rr", "lacp"]), "state of the bond, and reordering", &["cat /proc/net/bonding/bond0", "nstat -az", "ss -ti"], ""),
    (W(1, &["neighbour", "neighbor", "arp", "arping", "gc-thresh", "thresh3"]), "the table of neighbours", &["ip neigh", "sysctl net.ipv4.neigh.default.gc_thresh3"], "on a host that is affected"),
    (W(1, &["mtu", "fragment*", "emsgsize", "large", "bigger", "handshake"]), "the MTU of each device of the path", &["ip -d link", "ping -M do -c 3 -s 1472 HOST"], "on each host of the path"),
    (W(1, &["vxlan", "vpn", "wireguard", "ipsec"]), "whether large packets arrive", &["ip -d link", "ping -M do -c 3 -s 1372 HOST"], "on each host of the path"),
    (W(2, &["timed", "connected", "received", "container", "docker", "tunnel", "vpn", "wireguard", "stall", "hangs"]), "whether large packets arrive", &["ping -M do -c 3 -s 1372 HOST", "ip -d link"], "inside and on the host below"),
    (W(1, &["iptables*", "firewall*", "nftables", "unreachable", "filtered"]), "rules that drop", &["iptables-save -c", "nft list ruleset", "sysctl -a | grep bridge-nf-call"], "on the host between"),
    (W(1, &["dropped", "drops", "dropwatch"]), "where packets are dropped", &["ip -d link", "ethtool -S NIC", "nstat -az"], "on two hosts that differ; `linerate drops HOST` with reasons"),
    (W(1, &["duplex", "collision", "crc", "frame", "errors", "cable", "autonegotiation"]), "errors of the link", &["ethtool NIC", "ethtool -S NIC", "ip -s link"], "at both ends of the cable"),
    (W(1, &["flapping", "carrier", "nic", "driver", "firmware", "hang", "watchdog", "reset", "unresponsive"]), "what the driver reports", &["dmesg | grep NIC", "ethtool -i NIC", "ethtool -k NIC", "ethtool -S NIC", "ethtool --show-eee NIC"], ""),
    (W(1, &["smp", "irq", "irqbalance", "interrupt", "cpu0"]), "which CPUs serve the NIC", &["grep NIC /proc/interrupts", "mpstat -P ALL 1"], "during a transfer"),
    (W(1, &["aspm", "pcieport"]), "power saving of the bus", &["lspci -vv"], "as root"),
    (W(1, &["instance", "cloud", "aws", "ec2", "gce", "azure"]), "limits of the instance", &["ethtool -S NIC | grep allowance", "nstat -az", "iperf3 -c PEER -t 60 -i 1"], ""),
    (W(2, &["ping", "latency", "idle", "frequency", "governor", "ms"]), "power saving of the CPUs", &["cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "cpupower idle-info"], ""),
    (W(1, &["steal", "load"]), "who uses the CPUs", &["mpstat -P ALL 1"], ""),
    (W(2, &["window", "rtt", "buffers", "rmem", "transatlantic", "far", "vpn"]), "what a connection waits for", &["ss -ti", "sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem"], "at both ends, during a transfer"),
    (W(2, &["download", "apt", "mirror", "http*", "curl", "wget", "kb"]), "the path below the download", &["ping -M do -c 3 -s 1472 SERVER", "ss -ti", "iperf3 -c HOST -t 20 -J"], "between the hosts, during a download"),
    (W(1, &["hdfs", "hadoop", "datanode"]), "files that a power cut emptied", &["linerate disk durability --audit DIR"], "on each data node"),
    (W(1, &["mount", "fstab", "drained", "drain"]), "what is mounted", &["findmnt", "cat /etc/fstab"], "on the host"),
    (S(Sign::is_fault), "which CPU serves the stream", &["mpstat -P ALL 1", "ss -ti"], "on {to} and {from}, during a transfer"),
];

/// The beginning of a command, and a key that is read of its output. What already stands in the text is not
/// asked for; commands that show a moment, such as `mpstat`, are.
const ANSWERS: &[(&str, &str)] = &[
    ("cat /etc/fstab", "mount.*"),
    ("cat /proc/drbd", "drbd.*.connection"),
    ("cat /proc/net/bonding/", "nic.*.bond.mode"),
    ("cat /proc/self/mountstats", "nfs.*.calls"),
    ("cat /sys/class/net/ib0/mode", "nic.*.ipoib_mode"),
    ("cat /sys/devices/system/cpu/", "cpu.governor"),
    ("cpupower idle-info", "cpu.idle_latency_us"),
    ("drbdadm dump", "drbd.*.net.*"),
    ("drbdsetup show", "drbd.*.net.*"),
    ("ethtool --show-eee", "nic.*.eee.*"),
    ("ethtool -S NIC | grep allowance", "nic.*.stat.*allowance*"),
    ("ethtool -S", "nic.*.stat.*"),
    ("ethtool -a", "nic.*.pause.*"),
    ("ethtool -g", "nic.*.ring.*"),
    ("ethtool -i", "nic.*.driver"),
    ("ethtool -k", "nic.*.feature.*"),
    ("ethtool NIC", "nic.*.speed_mbit"),
    ("findmnt", "mount.*"),
    ("grep NIC /proc/interrupts", "nic.*.queues.*"),
    ("grep . /sys/class/scsi_host", "ata.*.link_power"),
    ("hdparm -W", "disk.*.drive_cache"),
    ("ip -", "nic.*.mtu"),
    ("ip link", "nic.*.mtu"),
    ("ip neigh", "neighbours.*"),
    ("iptables-save", "firewall.*"),
    ("iw dev DEV get power_save", "nic.*.wifi.power_save"),
    ("iw dev DEV station dump", "nic.*.wifi.*"),
    ("lspci", "pci.*.pcie.*"),
    ("lsusb", "usb.*.speed_mbit"),
    ("nfsstat -m", "nfs.*.rsize"),
    ("nft list ruleset", "firewall.*"),
    ("nvme smart-log", "disk_health.*"),
    ("smartctl", "disk_health.*"),
    ("ss -uamn", "socket.udp.*"),
    ("storcli", "raid.bbu.state"),
    ("sysctl -a | grep bridge-nf-call", "sysctl.net.bridge.*"),
    ("sysctl net.core.rmem_max", "sysctl.net.core.rmem_max"),
    ("sysctl net.ipv4.neigh.", "sysctl.net.ipv4.neigh.*"),
    ("sysctl net.ipv4.tcp_rmem", "sysctl.net.ipv4.tcp_rmem"),
    ("tc -s qdisc", "nic.*.qdisc"),
];

/// Every command of the table, with a key that is read of its output, where it has facts.
pub fn commands() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    TABLE.iter().flat_map(|(_, _, commands, _)| commands.iter().map(|command| (*command, answer(command))))
}

fn answer(command: &str) -> Option<&'static str> {
    ANSWERS.iter().find(|(head, _)| command.starts_with(head)).map(|(_, key)| *key)
}

/// Whether the output of a command stands in the text: of each of the ends, or of the only host there is.
fn is_known(snapshot: &Snapshot, command: &str, ends: &[String; 2], is_of_any: bool) -> bool {
    let Some(pattern) = answer(command) else { return false };
    let has = |facts: &HostFacts| has_key(facts, pattern);
    if is_of_any || snapshot.facts.len() == 1 {
        return snapshot.facts.values().any(has);
    }
    ends.iter().all(|end| snapshot.facts.get(end).is_some_and(has))
}

/// Whether a host has a value whose key fits a pattern.
fn has_key(facts: &HostFacts, pattern: &str) -> bool {
    facts.readings.keys().chain(facts.counters.keys()).any(|key| pattern_fits(pattern, key))
}

fn is_one_cpu(sign: &Sign) -> bool {
    matches!(
        sign,
        Sign::CoreFull { .. }
            | Sign::TwoLevels { .. }
            | Sign::Burst { .. }
            | Sign::OneStream { .. }
            | Sign::BelowLink { .. }
            | Sign::NoPort { .. }
    )
}

fn into_group(finding: &Finding) -> bool {
    let (suspect, direction) = first_suspect(finding);
    matches!(suspect, Some(Suspect::Group(_) | Suspect::GroupToGroup(..))) && direction != Direction::Tx
}

/// The most probable suspect of a finding, with its direction.
fn first_suspect(finding: &Finding) -> (Option<&Suspect>, Direction) {
    finding.places.first().map_or((None, Direction::Both), |at| (Some(&at.suspect), at.direction))
}

fn is_overlay(finding: &Finding) -> bool {
    // One of its MTU is decided by the MTUs.
    finding.causes.iter().any(|cause| cause.id.contains("overlay") && !cause.id.contains("mtu"))
}

/// A host that stands out in a counter of such a key.
fn is_outlier(remark: &Remark, head: &str) -> bool {
    matches!(remark, Remark::Outlier(seen) if seen.key.starts_with(head))
}

fn is_block(remark: &Remark) -> bool {
    matches!(remark, Remark::Blocks { .. })
}

/// The commands, for imported evidence only.
pub(crate) fn asked(snapshot: &Snapshot, remarks: &[Remark], findings: &[Finding]) -> Vec<Missing> {
    let Some(imported) = &snapshot.imported else { return Vec::new() };
    let mut found: Vec<(usize, Missing)> = Vec::new();
    let words = Words::of(imported);
    let of_disks = is_of_disks(snapshot, &words);
    for (when, what, commands, at) in TABLE {
        let Some((weight, ends)) = applies(when, snapshot, &words, remarks, findings) else { continue };
        if of_disks && matches!(when, W(..)) && commands.iter().any(|command| is_of_networks(command)) {
            continue;
        }
        let is_of_any = matches!(when, W(..) | K(..));
        let open = commands.iter().filter(|command| !is_known(snapshot, command, &ends, is_of_any));
        let open: Vec<&str> = open.copied().collect();
        if open.is_empty() {
            continue;
        }
        let [from, to] = ends;
        let command = format!("`{}` {at}", open.join("; "));
        let command = command.trim_end().replace("{from}", &from).replace("{to}", &to);
        found.push((weight, Missing { what: (*what).to_owned(), command }));
    }
    found.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let mut asked: Vec<Missing> = Vec::new();
    let words_alone = imported.missing.is_empty() && !imported.words.is_empty() && !of_disks;
    let first = words_alone.then(|| Missing { what: FIRST[0].to_owned(), command: FIRST[1].to_owned() });
    let missing = imported.missing.iter().filter(|missing| !(of_disks && is_of_networks(&missing.command)));
    for missing in found.into_iter().map(|(_, m)| m).chain(missing.cloned()).chain(first) {
        if asked.len() < ASKED_MAX && asked.iter().all(|a| a.what != missing.what) {
            asked.push(missing);
        }
    }
    asked
}

/// Words of a text, and the parts of those with hyphens.
struct Words<'a>(BTreeSet<&'a str>);

impl<'a> Words<'a> {
    fn of(imported: &'a Imported) -> Self {
        let parts = imported.words.iter().flat_map(|word| word.split('-').chain([word.as_str()]));
        Self(parts.filter(|part| !part.is_empty()).collect())
    }

    /// Whether the text has a word of the table.
    fn has(&self, word: &str) -> bool {
        match word.strip_suffix('*') {
            Some(stem) => self.0.range(stem..).next().is_some_and(|next| next.starts_with(stem)),
            None => self.0.contains(word) || self.0.contains(format!("{word}s").as_str()),
        }
    }

    /// How many of them.
    fn count(&self, words: &[&str]) -> usize {
        words.iter().filter(|word| self.has(word)).count()
    }
}

/// Whether a command only shows a network.
fn is_of_networks(command: &str) -> bool {
    let plain = command.trim_start_matches('`');
    OF_NETWORKS.iter().any(|head| plain.starts_with(head)) || plain.contains("iperf3")
}

/// Whether a text is about the disks of a machine alone.
fn is_of_disks(snapshot: &Snapshot, words: &Words<'_>) -> bool {
    let has = |pattern: &str| snapshot.facts.values().any(|facts| has_key(facts, pattern));
    let speaks = words.count(DISKS) > 0 || has("disk.*") || has("ata.*") || !snapshot.storage.is_empty();
    speaks && words.count(NETWORKS) == 0 && snapshot.samples.is_empty() && !has("nic.*")
}

/// Whether a line applies: how much, and between which ends.
fn applies(
    when: &When,
    snapshot: &Snapshot,
    words: &Words<'_>,
    remarks: &[Remark],
    findings: &[Finding],
) -> Option<(usize, [String; 2])> {
    let unknown = || ["the sender".to_owned(), "the receiver".to_owned()];
    match when {
        S(fits) => remarks.iter().find_map(|remark| match remark {
            Remark::Symptom(s) if fits(&s.sign) => Some((SIGN, [s.from.clone(), s.to.clone()])),
            _ => None,
        }),
        F(fits) => findings.iter().find(|f| fits(f)).map(|f| {
            let name = match first_suspect(f).0 {
                Some(Suspect::Host(name) | Suspect::Group(name) | Suspect::GroupToGroup(_, name)) => {
                    name.clone()
                }
                Some(Suspect::Pair(_, to)) => to.clone(),
                _ => "the receiver".to_owned(),
            };
            (SIGN, ["the others".to_owned(), name])
        }),
        R(fits) => remarks.iter().find(|r| fits(r)).map(|remark| match remark {
            Remark::SentAgain { host, .. } => (SIGN, ["the others".to_owned(), host.clone()]),
            Remark::Node { host, .. } => (SIGN, [host.clone(), host.clone()]),
            Remark::Outlier(seen) => (SIGN, [seen.host.clone(), seen.host.clone()]),
            Remark::Blocks { from, to } => (SIGN, [from.join(", "), to.join(", ")]),
            _ => (SIGN, unknown()),
        }),
        K(patterns) => {
            let has = |pattern: &&str| snapshot.facts.values().any(|facts| has_key(facts, pattern));
            patterns.iter().any(has).then(|| (SIGN - 1, unknown()))
        }
        W(least, known) => {
            let count = words.count(known);
            (count >= *least).then(|| (count.min(SIGN - 1), unknown()))
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::fact::FactValue;
    use linerate_model::inventory::Layer;
    use linerate_model::symptom::Symptom;

    use super::*;

    fn of(words: &[&str], sign: Option<Sign>) -> Vec<String> {
        let words = words.iter().map(|w| (*w).to_owned()).collect();
        let missing = vec![Missing { what: "w".to_owned(), command: "usual".to_owned() }];
        let imported = Imported { words, missing, ..Imported::default() };
        let snapshot = Snapshot { imported: Some(Box::new(imported)), ..Snapshot::default() };
        let symptom = |sign| Symptom { from: "a".into(), to: "b".into(), layer: Layer::Underlay, sign };
        let remarks: Vec<Remark> = sign.map(|s| Remark::Symptom(symptom(s))).into_iter().collect();
        asked(&snapshot, &remarks, &[]).into_iter().map(|m| m.command).collect()
    }

    #[test]
    fn the_symptom_decides_before_a_word_and_a_word_before_the_usual() {
        let two = Sign::TwoLevels { high: 9e9, low: 2e9 };
        let all = of(&["bond", "nfs", "slow"], Some(two));
        assert!(all.len() == 3 && all[0].contains("/proc/interrupts") && all[0].contains("on b"), "{all:?}");
        assert!(all[1..].iter().any(|c| c.contains("nfsstat")), "{all:?}");
        assert_eq!(of(&["slow"], None), ["usual"]);
    }

    #[test]
    fn words_match_alone_in_the_plural_and_within_hyphens() {
        let asks = |words: &[&str], part: &str| of(words, None).iter().any(|command| command.contains(part));
        for word in ["nfs", "nfsvers", "truenas-nfs", "nfsd"] {
            assert!(asks(&[word], "nfsstat"), "{word}");
        }
        assert!(asks(&["drives"], "iostat -x") && asks(&["usb-c"], "lsusb -t") && asks(&["wlan0"], "iw dev"));
        assert!(asks(&["flannel", "pods"], "ethtool -k"));
        // Words that only begin like one of the table.
        for word in ["driver", "percent", "nice", "farm", "confuse", "usbliter8"] {
            assert!(
                !asks(&[word], "storcli") && !asks(&[word], "iostat") && !asks(&[word], "lsusb"),
                "{word}"
            );
        }
    }

    #[test]
    fn a_text_about_disks_alone_asks_for_no_nic() {
        let words = ["disk", "errors", "firmware", "reset", "slow"];
        let of_disks = of(&words, None);
        assert!(of_disks.iter().any(|command| command.contains("iostat")), "{of_disks:?}");
        assert!(!of_disks.iter().any(|command| command.contains("ethtool")), "{of_disks:?}");
        let of_both = of(&["disk", "errors", "ethernet", "firmware", "reset", "slow"], None);
        assert!(of_both.iter().any(|command| command.contains("ethtool")), "{of_both:?}");
    }

    #[test]
    fn a_controller_alone_is_no_raid() {
        let asks_raid = |words: &[&str]| of(words, None).iter().any(|command| command.contains("storcli"));
        assert!(!asks_raid(&["controller", "usb"]) && asks_raid(&["cache", "controller"]));
        assert!(of(&["arp"], None)[0].contains("ip neigh"));
        assert!(of(&["connected", "timed"], None)[0].contains("ping -M do"));
    }

    #[test]
    fn what_stands_in_the_text_is_not_asked_for() {
        let key = "nic.bond0.bond.mode".to_owned();
        let facts = HostFacts {
            readings: [(key, FactValue::Text("802.3ad".to_owned()))].into(),
            ..HostFacts::default()
        };
        let imported = Imported { words: vec!["bonding".to_owned()], ..Imported::default() };
        let snapshot = Snapshot {
            imported: Some(Box::new(imported)),
            facts: [("a".to_owned(), facts)].into(),
            ..Snapshot::default()
        };
        let asked = asked(&snapshot, &[], &[]);
        assert_eq!(asked[0].command, "`nstat -az; ss -ti`", "{asked:?}");
    }
}
