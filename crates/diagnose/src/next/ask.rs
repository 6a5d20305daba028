//! Which command decides what imported evidence leaves open: by the findings and the symptoms, one line of a
//! table for each, and by what was read and the words of the text (`knowledge/topics.toml`). What stands in
//! the text already is not asked for.
//!
//! In: the account of the import, symptoms, findings. Out: at most three lines, the one that decides first.

use std::collections::BTreeSet;

use linerate_knowledge::{Topic, Topics, is_read, typed};
use linerate_model::fact::{HostFacts, pattern_fits};
use linerate_model::finding::{Direction, Finding, Metric, Suspect};
use linerate_model::imported::{Imported, Missing};
use linerate_model::remark::{DiskRemark, Remark};
use linerate_model::snapshot::Snapshot;
use linerate_model::symptom::Sign;

/// Most lines that are asked for, of at most three commands each.
const ASKED_MAX: usize = 3;
/// What is asked for where no line of the table applies: what is missing, and the command.
const FIRST: [&str; 2] = [
    "throughput between hosts",
    "`linerate survey HOST HOST`; or `iperf3 -s` on one host and `iperf3 -c HOST -t 20 -J` on another",
];
/// What is asked where no word names the network of a table.
const LAYER: [&str; 2] = [
    "which network the table is of: the hosts' own, or one inside a tunnel; it is taken for the hosts' own",
    "`linerate diagnose --layer overlay FILE`, if it was measured inside containers or a tunnel",
];
/// Weight of a sign over that of every topic.
const SIGN: usize = 1000;

/// When a line of the table applies.
enum When {
    /// A sign of a transfer.
    Sign(fn(&Sign) -> bool),
    /// A finding.
    Finding(fn(&Finding) -> bool),
    /// Another remark.
    Remark(fn(&Remark) -> bool),
    /// A sign of a transfer in a text about the topic of this name, which has what is asked for.
    SignOf(fn(&Sign) -> bool, &'static str),
}
use When::{Finding as F, Remark as R, Sign as S, SignOf as O};

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

/// A line: when, what, at most three commands, and where they run; `{to}` and `{from}` are the ends, where
/// they are known.
type Line = (When, &'static str, &'static [&'static str], &'static str);

#[rustfmt::skip]
const TABLE: &[Line] = &[
    (O(is_of_a_link, "phy"), "", &[], ""),
    (S(|s| matches!(s, Sign::Burst { .. })), "what limits it once the burst is over", &["tc -s qdisc show dev NIC", "ethtool -S NIC | grep allowance", "iperf3 -c PEER -t 60 -i 1"], "on {from}"),
    (S(is_one_cpu), "which CPU serves the stream", &["cat /proc/interrupts", "mpstat -P ALL 1"], "on {to}, twice during a transfer"),
    (S(|s| matches!(s, Sign::Window { .. })), "what keeps the window small", &["sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem", "ss -ti"], "at both ends, during a transfer; a larger `-w`"),
    (R(|r| matches!(r, Remark::Shared { .. })), "how flows spread over the links between", &["ethtool -S NIC"], "for each port of the trunk, and its hash; or the counters of the switch"),
    (R(|r| is_outlier(r, "nic.")), "what the NIC and its driver count", &["ethtool -S NIC", "ethtool -g NIC", "ethtool -a NIC"], "on {to} and on a host that is fine"),
    (R(|r| is_outlier(r, "snmp.Tcp.")), "to whom it sends again", &["ss -ti", "nstat -az", "ip -s link"], "on {to}; `linerate drops {to}` with reasons"),
    (R(|r| is_outlier(r, "disk.")), "health and waits of its drives", &["smartctl -a /dev/DRIVE", "iostat -x 1"], "on {to}"),
    (R(|r| is_outlier(r, "")), "what it does beside the others", &["mpstat -P ALL 1", "nstat -az", "iostat -x 1"], "on {to}"),
    (R(|r| matches!(r, Remark::Node { reason, .. } if reason.is_empty())), "why it was taken out", &["scontrol show node {to}"], "its reason; `slurmd -C` on {to} prints what slurm.conf may claim of it"),
    (R(|r| matches!(r, Remark::Node { .. })), "why it was taken out", &["by eye: journalctl -u slurmd", "findmnt", "dmesg"], "on {to}"),
    (F(into_group), "offloads of the NIC behind which it is slow", &["ethtool -k NIC", "ethtool -i NIC"], "on {to} and on a machine that is fine"),
    (R(is_block), "offloads of the NIC of the machine below", &["ethtool -k NIC"], "on the machine under {to} and on one that is fine"),
    (F(is_overlay), "how the NIC splits packets of tunnels", &["ethtool -k NIC | grep udp_tnl"], "on {to} and on a machine that is fine"),
    (S(|s| matches!(s, Sign::OneDirection { .. })), "offloads and errors of the slow direction", &["ethtool -k NIC", "ethtool -S NIC"], "on {to} and on {from}"),
    (S(|s| matches!(s, Sign::Standstill { .. })), "whether large packets arrive", &["ping -M do -c 3 -s 1472 {to}", "ip -d link", "ethtool -S NIC"], "on {from}, and on each device of the path"),
    (S(|s| matches!(s, Sign::Unanswered { .. })), "where packets are dropped", &["ip -s link", "ethtool -S NIC", "nstat -az"], "on {from} and {to}"),
    (S(|s| matches!(s, Sign::SlowAnswers { .. })), "what holds the packets back", &["iw dev DEV station dump", "tc -s qdisc show dev NIC", "ethtool -S NIC"], "on {from}; `iw` where the link is wifi"),
    (R(|r| matches!(r, Remark::Disk(DiskRemark::SlowWrites { .. }))), "waits of each drive while it writes", &["iostat -x 1", "smartctl -a /dev/DRIVE", "hdparm -W /dev/DRIVE"], "on the machine with the drives, during the writes"),
    (S(|s| matches!(s, Sign::LocalMtu { .. })), "why the route is that small", &["ip -d link"], "on {from}: the MTU of each device, and of the tunnel above"),
    (S(|s| matches!(s, Sign::Conditions(_))), "what limits one stream", &["mpstat -P ALL 1", "ss -ti", "sysctl net.ipv4.tcp_rmem"], "on {to} and {from}, during a transfer"),
    (F(|f| f.responses.first() == Some(&Metric::Loss)), "where packets are dropped", &["ip -s link", "ethtool -S NIC", "nstat -az"], "on {to} and on the sender, before and after a transfer"),
    (F(|f| f.responses.first() == Some(&Metric::Retransmits)), "where packets are dropped", &["ethtool -S NIC", "ethtool -g NIC", "nstat -az"], "on {to}, before and after a transfer"),
    (S(|s| matches!(s, Sign::Resent { .. })), "where packets are dropped", &["ethtool -S NIC", "ethtool -g NIC", "nstat -az"], "on {to} and {from}, before and after a transfer"),
    (R(|r| matches!(r, Remark::SentAgain { .. })), "where packets are dropped", &["ethtool -S NIC", "ethtool -g NIC", "nstat -az"], "on {to}, before and after a transfer"),
    (F(|f| f.responses.first() == Some(&Metric::PathMtu)), "the MTU of each device of the path", &["ip -d link"], "on each host and hypervisor of the path"),
    (S(Sign::is_fault), "which CPU serves the stream", &["mpstat -P ALL 1", "ss -ti"], "on {to} and {from}, during a transfer"),
];

/// Keys of the table of a drive, which is more than that it calls itself healthy.
const HEALTH: &[&str] = &[
    "disk_health.*.*_sectors",
    "disk_health.*.*_errors",
    "disk_health.*.*_hours",
    "disk_health.*.*_percent",
    "disk_health.*.warnings",
];

/// The beginning of a command, the format that it must have been read as, where others have the same keys,
/// and keys, one of them read of its whole output: the head of a report is no answer. What already stands
/// in the text is not asked for; commands that show a moment, such as `mpstat`, are.
const ANSWERS: &[(&str, &str, &[&str])] = &[
    ("btrfs qgroup", "", &["btrfs.*"]),
    ("cat /etc/fstab", "", &["mount.*"]),
    ("cat /proc/drbd", "", &["drbd.*.connection"]),
    ("cat /proc/net/bonding/", "", &["nic.*.bond.mode"]),
    ("cat /proc/mdstat", "", &["disk.*.md_level"]),
    ("cat /proc/net/softnet_stat", "", &["softnet.*"]),
    ("cat /proc/self/mountstats", "", &["nfs.*.calls"]),
    ("cat /sys/class/net/ib0/mode", "", &["nic.*.ipoib_mode"]),
    ("cat /sys/devices/system/cpu/", "", &["cpu.governor"]),
    ("conntrack -S", "", &["conntrack.*"]),
    ("cpupower idle-info", "", &["cpu.idle_latency_us"]),
    ("drbdadm dump", "", &["drbd.*.net.*"]),
    ("drbdsetup show", "", &["drbd.*.net.*"]),
    ("ethtool --show-eee", "", &["nic.*.eee.*"]),
    ("ethtool -S NIC | grep allowance", "", &["nic.*.stat.*allowance*"]),
    ("ethtool -S", "ethtool-S", &["nic.*.stat.*"]),
    ("ethtool -a", "", &["nic.*.pause.*"]),
    ("ethtool -g", "", &["nic.*.ring.*"]),
    ("ethtool -i", "", &["nic.*.driver"]),
    ("ethtool -l", "", &["nic.*.channels.*"]),
    ("ethtool -k", "", &["nic.*.feature.*"]),
    ("ethtool NIC", "", &["nic.*.speed_mbit"]),
    ("findmnt", "", &["mount.*"]),
    ("grep NIC /proc/interrupts", "", &["nic.*.queues.*"]),
    ("grep . /sys/class/scsi_host", "", &["ata.*.link_power"]),
    ("hdparm -W", "", &["disk.*.drive_cache"]),
    ("ip -s", "", &["nic.*.stat.*"]),
    ("ip -", "", &["nic.*.mtu"]),
    ("ip link", "", &["nic.*.mtu"]),
    ("ip neigh", "", &["neighbours.*"]),
    ("iptables-save", "", &["firewall.*"]),
    ("iw dev DEV get power_save", "", &["nic.*.wifi.power_save"]),
    ("iw dev DEV station dump", "", &["nic.*.wifi.*"]),
    ("lvs", "", &["lvm.*"]),
    ("lspci", "", &["pci.*.pcie.*"]),
    ("lsusb", "", &["usb.*.speed_mbit"]),
    ("nfsstat -m", "", &["nfs.*.rsize"]),
    ("nft list ruleset", "", &["firewall.*"]),
    ("numactl", "", &["cpu.numa_nodes"]),
    ("nvme smart-log", "", HEALTH),
    ("smartctl", "", HEALTH),
    ("ss -uamn", "", &["socket.udp.*"]),
    ("storcli", "", &["raid.bbu.state"]),
    ("sysctl -a | grep rp_filter", "", &["sysctl.net.ipv4.conf.*.rp_filter"]),
    ("sysctl -a | grep bridge-nf-call", "", &["sysctl.net.bridge.*"]),
    ("sysctl net.core.rmem_max", "", &["sysctl.net.core.rmem_max"]),
    ("sysctl net.ipv4.neigh.", "", &["sysctl.net.ipv4.neigh.*"]),
    ("sysctl net.ipv4.tcp_rmem", "", &["sysctl.net.ipv4.tcp_rmem"]),
    ("tc -s qdisc", "", &["nic.*.qdisc"]),
];

/// Every command of the tables, with keys, one of them read of its output, where it has facts.
pub fn commands(topics: &Topics) -> impl Iterator<Item = (&str, &'static [&'static str])> {
    let of_topics = topics.iter().flat_map(Topic::commands_read);
    let of_table = TABLE.iter().flat_map(|(_, _, commands, _)| *commands).copied();
    let all = of_table.filter(|command| is_read(command)).chain(of_topics);
    all.map(|command| (command, answer(command).map_or(&[][..], |(_, keys)| keys)))
}

/// Format and keys of the answer of a command.
fn answer(command: &str) -> Option<(&'static str, &'static [&'static str])> {
    let known = ANSWERS.iter().find(|(head, ..)| command.starts_with(head));
    known.map(|(_, format, keys)| (*format, *keys))
}

/// Whether the output of a command stands in the text: of each of the ends, or of the only host there is.
fn is_known(snapshot: &Snapshot, command: &str, ends: &[String; 2], is_of_any: bool) -> bool {
    let Some((format, keys)) = answer(command) else { return is_of_settings(snapshot, command) };
    let mut pieces = snapshot.imported.iter().flat_map(|imported| &imported.pieces);
    if !format.is_empty() && !pieces.any(|piece| piece.format == format) {
        return false;
    }
    let has = |facts: &HostFacts| keys.iter().any(|pattern| has_key(facts, pattern));
    if is_of_any || snapshot.facts.len() == 1 {
        return snapshot.facts.values().any(has);
    }
    ends.iter().all(|end| snapshot.facts.get(end).is_some_and(has))
}

/// Whether one of the settings that `sysctl NAME…` shows was read.
fn is_of_settings(snapshot: &Snapshot, command: &str) -> bool {
    let names = command.strip_prefix("sysctl ").into_iter().flat_map(str::split_whitespace);
    let keys: Vec<String> = names.map(|name| format!("sysctl.{name}")).collect();
    snapshot.facts.values().any(|facts| keys.iter().any(|key| facts.readings.contains_key(key.as_str())))
}

/// Whether a host has a value whose key fits a pattern.
fn has_key(facts: &HostFacts, pattern: &str) -> bool {
    facts.readings.keys().chain(facts.counters.keys()).any(|key| pattern_fits(pattern, key))
}

/// What a link that negotiated badly, or a NIC that is overrun, shows.
fn is_of_a_link(sign: &Sign) -> bool {
    matches!(
        sign,
        Sign::Unanswered { .. } | Sign::Resent { .. } | Sign::BelowLink { .. } | Sign::NoPort { .. }
    )
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
pub(crate) fn asked(
    snapshot: &Snapshot,
    topics: &Topics,
    remarks: &[Remark],
    findings: &[Finding],
) -> Vec<Missing> {
    let Some(imported) = &snapshot.imported else { return Vec::new() };
    let mut found: Vec<(usize, Asked<'_>)> = Vec::new();
    let words = Words::of(&imported.words);
    let of_disks = is_of_disks(snapshot, topics, &words);
    let topics = weighed(topics, imported, snapshot, &words);
    for (when, what, commands, at) in TABLE {
        let Some((weight, ends)) = applies(when, &topics, remarks, findings) else { continue };
        let asked = if let O(_, id) = when {
            topics.iter().find(|(topic, _)| topic.id == *id).map(|(topic, _)| Asked::of(topic, ends))
        } else {
            let commands = commands.iter().map(|command| typed(command)).collect();
            Some(Asked { what, commands, at, ends, is_of_any: false })
        };
        found.extend(asked.map(|asked| (weight, asked)));
    }
    for (topic, weight) in topics {
        if of_disks && topic.commands().any(is_of_networks) {
            continue;
        }
        found.push((weight, Asked::of(topic, unknown_ends())));
    }
    found.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let mut asked = open(snapshot, found.into_iter().map(|(_, asked)| asked));
    if imported.layer_unknown && !findings.is_empty() {
        let layer = Missing { what: LAYER[0].to_owned(), command: LAYER[1].to_owned() };
        asked.insert(asked.len().min(1), layer);
    }
    let words_alone = imported.missing.is_empty() && !imported.words.is_empty() && !of_disks;
    let first = words_alone.then(|| Missing { what: FIRST[0].to_owned(), command: FIRST[1].to_owned() });
    let missing = imported.missing.iter().filter(|missing| !(of_disks && is_of_networks(&missing.command)));
    asked.extend(missing.cloned().chain(first));
    asked.truncate(ASKED_MAX);
    asked
}

/// A line of a table that applies.
struct Asked<'a> {
    what: &'a str,
    commands: Vec<&'a str>,
    at: &'a str,
    ends: [String; 2],
    /// A host of the text that has the answer is enough.
    is_of_any: bool,
}

impl<'a> Asked<'a> {
    /// What a topic asks for.
    fn of(topic: &'a Topic, ends: [String; 2]) -> Self {
        let commands = topic.commands().collect();
        Self { what: &topic.what, commands, at: &topic.at, ends, is_of_any: true }
    }

    /// In words.
    fn missing(&self) -> Missing {
        let [from, to] = &self.ends;
        let command = format!("`{}` {}", self.commands.join("; "), self.at);
        let command = command.trim_end().replace("{from}", from).replace("{to}", to);
        Missing { what: self.what.to_owned(), command }
    }
}

/// What of each question does not stand in the text, and is not asked for before it.
fn open<'a>(snapshot: &Snapshot, all: impl Iterator<Item = Asked<'a>>) -> Vec<Missing> {
    let mut before = BTreeSet::new();
    let mut open: Vec<Missing> = Vec::new();
    for mut asked in all {
        if open.len() == ASKED_MAX || open.iter().any(|missing| missing.what == asked.what) {
            continue;
        }
        let is_known = |command: &str| is_known(snapshot, command, &asked.ends, asked.is_of_any);
        let commands = asked.commands.iter().copied();
        asked.commands = commands.filter(|c| !before.contains(c) && !is_known(c)).collect();
        if !asked.commands.is_empty() {
            before.extend(asked.commands.iter().copied());
            open.push(asked.missing());
        }
    }
    open
}

fn unknown_ends() -> [String; 2] {
    ["the sender".to_owned(), "the receiver".to_owned()]
}

/// The topics that a text is about, and how much. One with a subject that the text rules out needs a key.
fn weighed<'a>(
    topics: &'a Topics,
    imported: &Imported,
    snapshot: &Snapshot,
    words: &Words<'_>,
) -> Vec<(&'a Topic, usize)> {
    let out = Words::of(&imported.ruled_out);
    let known = |word: &str| topics.iter().any(|t| is_word_of(word, t.rare.iter().chain(&t.plain)));
    let is_out = |topic: &Topic| {
        let subject = topic.what.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
        subject.into_iter().any(|word| out.has(&word) && !words.has(&word) && known(&word))
    };
    let count = |known: &[String]| known.iter().filter(|word| words.has(word)).count();
    let has = |key: &String| snapshot.facts.values().any(|facts| has_key(facts, key));
    let was_read = |topic: &Topic| topic.keys.iter().any(has);
    topics.weighed(count, was_read).filter(|(topic, _)| !is_out(topic) || was_read(topic)).collect()
}

/// Whether a word stands in a list of a topic.
fn is_word_of<'a>(word: &str, mut list: impl Iterator<Item = &'a String>) -> bool {
    list.any(|known| known.strip_suffix('*').map_or(known == word, |stem| word.starts_with(stem)))
}

/// Words of a text, and the parts of those with hyphens.
struct Words<'a>(BTreeSet<&'a str>);

impl<'a> Words<'a> {
    fn of(words: &'a [String]) -> Self {
        let parts = words.iter().flat_map(|word| word.split('-').chain([word.as_str()]));
        Self(parts.filter(|part| !part.is_empty()).collect())
    }

    /// Whether the text has a word of a table.
    fn has(&self, word: &str) -> bool {
        match word.strip_suffix('*') {
            Some(stem) => self.0.range(stem..).next().is_some_and(|next| next.starts_with(stem)),
            None => self.0.contains(word) || self.0.contains(format!("{word}s").as_str()),
        }
    }
}

/// Whether a command only shows a network.
fn is_of_networks(command: &str) -> bool {
    let plain = command.trim_start_matches('`');
    OF_NETWORKS.iter().any(|head| plain.starts_with(head)) || plain.contains("iperf3")
}

/// Whether a text is about the disks of a machine alone.
fn is_of_disks(snapshot: &Snapshot, topics: &Topics, words: &Words<'_>) -> bool {
    let has = |pattern: &str| snapshot.facts.values().any(|facts| has_key(facts, pattern));
    let of_disks = topics.iter().filter(|topic| topic.of_disks);
    let speaks = of_disks.flat_map(|topic| topic.rare.iter().chain(&topic.plain)).any(|word| words.has(word))
        || has("disk.*")
        || has("ata.*")
        || has("raid.*")
        || !snapshot.storage.is_empty();
    let of_networks = NETWORKS.iter().any(|word| words.has(word));
    speaks && !of_networks && snapshot.samples.is_empty() && !has("nic.*")
}

/// Whether a line applies: how much, and between which ends.
fn applies(
    when: &When,
    topics: &[(&Topic, usize)],
    remarks: &[Remark],
    findings: &[Finding],
) -> Option<(usize, [String; 2])> {
    let signed = |fits: &fn(&Sign) -> bool| {
        remarks.iter().find_map(|remark| match remark {
            Remark::Symptom(s) if fits(&s.sign) => Some((SIGN, [s.from.clone(), s.to.clone()])),
            _ => None,
        })
    };
    match when {
        S(fits) => signed(fits),
        O(fits, id) => {
            let (_, weight) = topics.iter().find(|(topic, _)| topic.id == *id)?;
            signed(fits).map(|(sign, ends)| (sign + weight, ends))
        }
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
            _ => (SIGN, unknown_ends()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::fact::FactValue;
    use linerate_model::inventory::Layer;
    use linerate_model::symptom::Symptom;

    use super::*;

    fn knowledge() -> linerate_knowledge::Knowledge {
        linerate_knowledge::Knowledge::builtin().expect("it is sound")
    }

    fn of(words: &[&str], sign: Option<Sign>) -> Vec<String> {
        let words = words.iter().map(|w| (*w).to_owned()).collect();
        let missing = vec![Missing { what: "w".to_owned(), command: "usual".to_owned() }];
        let imported = Imported { words, missing, ..Imported::default() };
        let snapshot = Snapshot { imported: Some(Box::new(imported)), ..Snapshot::default() };
        let symptom = |sign| Symptom { from: "a".into(), to: "b".into(), layer: Layer::Underlay, sign };
        let remarks: Vec<Remark> = sign.map(|s| Remark::Symptom(symptom(s))).into_iter().collect();
        asked(&snapshot, knowledge().topics(), &remarks, &[]).into_iter().map(|m| m.command).collect()
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
    fn what_a_text_rules_out_is_not_asked_for() {
        let list = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let of = |words: &[&str], ruled_out: &[&str]| {
            let (words, ruled_out) = (list(words), list(ruled_out));
            let imported = Imported { words, ruled_out, ..Imported::default() };
            let snapshot = Snapshot { imported: Some(Box::new(imported)), ..Snapshot::default() };
            asked(&snapshot, knowledge().topics(), &[], &[]).remove(0).command
        };
        let words = ["bridge", "container", "containerd", "ixgbe"];
        assert!(of(&words, &[]).contains("ip -d link"));
        assert!(of(&words, &["mtu", "packets"]).contains("ethtool -k"));
        // A word that no topic has rules nothing out.
        assert!(of(&words, &["packets"]).contains("ip -d link"));
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
        let asked = asked(&snapshot, knowledge().topics(), &[], &[]);
        assert_eq!(asked[0].command, "`nstat -az; ss -ti`", "{asked:?}");
    }
}
