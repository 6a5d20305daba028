//! Which command decides what imported evidence leaves open: by the findings, by the symptoms, by the words
//! of the text. One line of the table for each.
//!
//! In: the account of the import, symptoms, findings. Out: at most three commands, the one that
//! decides first.

use linerate_model::finding::{Direction, Finding, Metric, Suspect};
use linerate_model::imported::{Imported, Missing};
use linerate_model::remark::Remark;
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
    /// So many words of the text, each a beginning.
    Words(usize, &'static [&'static str]),
}
use When::{Finding as F, Remark as R, Sign as S, Words as W};

/// `(when, what, command)`; `{to}` and `{from}` are the ends, where they are known.
type Line = (When, &'static str, &'static str);

#[rustfmt::skip]
const TABLE: &[Line] = &[
    (S(is_one_cpu), "which CPU serves the stream", "`grep NIC /proc/interrupts` twice and `mpstat -P ALL 1` on {to}, during a transfer"),
    (S(|s| matches!(s, Sign::Window { .. })), "what keeps the window small", "`sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem` at both ends; `ss -ti` on {from} during a transfer; a larger `-w`"),
    (R(|r| matches!(r, Remark::Shared { .. })), "how flows spread over the links between", "counters of each port of the trunk, and its hash: `ethtool -S NIC` or the switch's `show interfaces counters`"),
    (R(|r| is_outlier(r, "nic.")), "what the NIC and its driver count", "`ethtool -S NIC; ethtool -g NIC; ethtool -a NIC` on {to} and on a host that is fine"),
    (R(|r| is_outlier(r, "snmp.Tcp.")), "to whom it sends again", "`ss -ti; nstat -az; ip -s link` on {to}; `linerate drops {to}` with reasons"),
    (R(|r| is_outlier(r, "disk.")), "health and waits of its drives", "`smartctl -a /dev/DRIVE; iostat -x 1` on {to}"),
    (R(|r| is_outlier(r, "")), "what it does beside the others", "`top; mpstat -P ALL 1; nstat -az` on {to}"),
    (R(|r| matches!(r, Remark::Node { .. })), "why it was taken out", "`findmnt --verify; cat /etc/fstab; dmesg` on {to}; `scontrol show config | grep HealthCheck`"),
    (F(into_group), "offloads of the NIC behind which it is slow", "`ethtool -k NIC` on {to} and on a machine that is fine; `ethtool -i NIC` on both"),
    (R(is_block), "offloads of the NIC of the machine below", "`ethtool -k NIC` on the machine under {to} and on one that is fine"),
    (F(is_overlay), "how the NIC spreads and splits packets of tunnels", "`ethtool -k NIC | grep udp_tnl` and `ethtool -n NIC rx-flow-hash udp4` on {to}"),
    (S(|s| matches!(s, Sign::OneDirection { .. })), "offloads and errors of the slow direction", "`ethtool -k NIC` and `ethtool -S NIC` on {to} and on {from}"),
    (S(|s| matches!(s, Sign::Standstill { .. })), "whether large packets arrive", "`ping -M do -c 3 -s 1472 {to}` on {from}; `ip -d link` on each device of the path"),
    (S(|s| matches!(s, Sign::Conditions(_))), "what limits one stream", "`mpstat -P ALL 1` on {to} and `ss -ti` on {from}, during a transfer; `sysctl net.ipv4.tcp_rmem`"),
    (F(|f| f.responses.first() == Some(&Metric::Retransmits)), "where packets are dropped", "`ethtool -S NIC`, `ethtool -g NIC` and `nstat -az` on {to}, before and after a transfer"),
    (R(|r| matches!(r, Remark::SentAgain { .. })), "where packets are dropped", "`ethtool -S NIC`, `ethtool -g NIC` and `nstat -az` on {to}, before and after a transfer"),
    (F(|f| f.responses.first() == Some(&Metric::PathMtu)), "the MTU of each device of the path", "`ip -d link` on each host and hypervisor of the path"),
    (W(1, &["drbd"]), "settings and state of the replica", "`drbdadm dump all; cat /proc/drbd; drbdsetup show` on both hosts"),
    (W(1, &["ipoib", "infiniband", "ib0", "connectx-2"]), "mode of IPoIB", "`cat /sys/class/net/ib0/mode; ip link show ib0` on both hosts"),
    (W(1, &["nfs", "nfsd", "nfsv"]), "options and waits of the mounts", "`nfsstat -m; cat /proc/self/mountstats` on a client"),
    (W(1, &["megaraid", "perc", "bbu", "controller", "battery"]), "cache and battery of the controller", "`storcli /c0 show all` (or `megacli -AdpBbuCmd -aALL`), and `iostat -x 1`"),
    (W(1, &["nvme", "pcie"]), "lanes of the device", "`lspci -vv | grep -E 'LnkCap|LnkSta'; nvme list; iostat -x 1`"),
    (W(1, &["disk", "ssd", "hdd", "osd", "raid", "zfs", "resilver", "sata", "mirror", "storage", "iowait", "drive"]), "load, health and write cache of each drive", "`iostat -x 1; smartctl -a /dev/DRIVE; hdparm -W /dev/DRIVE` and `dmesg`"),
    (W(1, &["udp", "statsd", "graphite", "syslog", "multicast", "datagram"]), "datagrams that the receiver dropped", "`nstat -az | grep Udp; ss -uamn; sysctl net.core.rmem_max` on the receiver"),
    (W(1, &["bond", "bond0", "bonding", "balance-rr", "lacp"]), "state of the bond, and reordering", "`cat /proc/net/bonding/bond0; nstat -az; ss -ti`"),
    (W(1, &["mtu", "fragment", "fragmentation", "large", "bigger", "handshake"]), "the MTU of each device of the path", "`ip -d link` on each host of the path; `ping -M do -c 3 -s 1472 HOST`"),
    (W(1, &["vxlan", "vpn", "wireguard", "ipsec"]), "whether large packets arrive", "`ip -d link` on each host of the path; `ping -M do -c 3 -s 1372 HOST`"),
    (W(1, &["iptables", "firewall", "nftables", "arp", "unreachable", "filtered"]), "rules that drop", "`iptables-save -c; nft list ruleset; sysctl -a | grep bridge-nf-call` on the host between"),
    (W(1, &["dropped", "drops", "rx_dropped", "dropwatch"]), "where packets are dropped", "`dropwatch -l kas`, `tcpdump -eni NIC` and `ip -d -s link` on two hosts that differ"),
    (W(1, &["duplex", "collisions", "crc", "frame", "errors", "cable", "autonegotiation"]), "errors of the link", "`ethtool NIC; ethtool -S NIC; ip -s link` at both ends of the cable"),
    (W(1, &["flapping", "carrier", "nic", "driver", "firmware", "hang", "watchdog", "reset", "unresponsive"]), "what the driver reports", "`dmesg | grep NIC; ethtool -i NIC; ethtool -k NIC; ethtool -S NIC; ethtool --show-eee NIC`"),
    (W(1, &["aspm", "pcieport"]), "power saving of the bus", "`lspci -vv; cat /sys/module/pcie_aspm/parameters/policy`"),
    (W(1, &["instance", "cloud", "aws", "ec2", "gce", "azure"]), "limits of the instance", "`ethtool -S NIC | grep allowance; nstat -az; iperf3 -c PEER -t 60 -i 1`"),
    (W(2, &["ping", "latency", "idle", "frequency", "governor", "ms"]), "power saving of the CPUs", "`cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor; cpupower idle-info`"),
    (W(1, &["steal", "load"]), "who uses the CPUs", "`mpstat -P ALL 1; pidstat -u 1`"),
    (W(2, &["window", "rtt", "buffers", "tcp_rmem", "transatlantic", "far", "vpn"]), "what a connection waits for", "`ss -ti` during a transfer; `sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem` at both ends"),
    (W(2, &["download", "downloads", "apt", "mirror", "http", "curl", "wget", "kb"]), "the path below the download", "`iperf3 -c HOST -t 20 -J` between the hosts; `tcpdump -ni NIC host SERVER`; `ss -ti`"),
    (W(1, &["hdfs", "hadoop", "datanode"]), "files that a power cut emptied", "`linerate disk durability --audit DIR` on each data node; `hdfs fsck /`"),
    (W(1, &["mount", "fstab", "drained", "drain"]), "what is mounted", "`findmnt; cat /etc/fstab; df` on the host"),
    (S(Sign::is_fault), "which CPU serves the stream", "`mpstat -P ALL 1` on {to} and `ss -ti` on {from}, during a transfer"),
];

fn is_one_cpu(sign: &Sign) -> bool {
    matches!(
        sign,
        Sign::CoreFull { .. }
            | Sign::TwoLevels { .. }
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
    finding.causes.iter().any(|cause| cause.id.contains("overlay"))
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
    for (when, what, command) in TABLE {
        let Some((weight, ends)) = applies(when, imported, remarks, findings) else { continue };
        let [from, to] = ends;
        let command = command.replace("{from}", &from).replace("{to}", &to);
        found.push((weight, Missing { what: (*what).to_owned(), command }));
    }
    found.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let mut asked: Vec<Missing> = Vec::new();
    let words_alone = imported.missing.is_empty() && !imported.words.is_empty();
    let first = words_alone.then(|| Missing { what: FIRST[0].to_owned(), command: FIRST[1].to_owned() });
    for missing in found.into_iter().map(|(_, m)| m).chain(imported.missing.iter().cloned()).chain(first) {
        if asked.len() < ASKED_MAX && asked.iter().all(|a| a.what != missing.what) {
            asked.push(missing);
        }
    }
    asked
}

/// Whether a line applies: how much, and between which ends.
fn applies(
    when: &When,
    imported: &Imported,
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
        W(least, known) => {
            let has = |word: &&&str| imported.words.binary_search_by(|w| w.as_str().cmp(word)).is_ok();
            let count = known.iter().filter(has).count();
            (count >= *least).then(|| (count.min(SIGN - 1), unknown()))
        }
    }
}

#[cfg(test)]
mod tests {
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
}
