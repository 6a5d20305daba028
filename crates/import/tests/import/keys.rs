//! What is read is used: each key that a reader makes of the fixtures is asked for by a cause, or stands in
//! the list below with what it is for.

use std::collections::BTreeSet;

use linerate_import::{Document, ImportOptions};
use linerate_model::fact::pattern_fits;

use super::{asked, bytes, files};

/// Patterns of keys that no cause asks for, and what they are for.
const BESIDE: &[(&str, &str)] = &[
    ("ata.*.link_power", "the policy behind ata.*.power_saving"),
    ("cpu.*.*_percent", "shown as measured; symptoms judge the busiest CPU of a transfer"),
    ("cpu.busiest*", "shown as measured; symptoms judge the busiest CPU of a transfer"),
    ("cpu.idle_deepest", "names the state of cpu.idle_latency_us"),
    ("cpu.idle_driver", "shown beside cpu.idle_latency_us"),
    ("cpu.numa.*", "the nodes that other keys name"),
    ("disk.*.log.*", "the reason behind counts of the same drive"),
    ("disk.*.md_degraded", "shown; the legs that failed have a key of their own"),
    ("disk.*.md_level", "shown"),
    ("disk.*.rotational", "chooses which drives are compared"),
    ("disk.*.stat.*", "becomes rates and waits of drives"),
    ("docker.network.*", "shown; the MTU of a network is that of its devices"),
    ("drbd.*", "states are remarks of their own; options are compared between both hosts"),
    ("firewall.*", "what it does in sum; causes ask for what grows"),
    ("irq.*", "counters of devices, which only their change shows"),
    ("local_mtu.*", "a symptom of its own"),
    ("lvm.*", "shown"),
    ("module.*", "compared between hosts"),
    ("nccl.*", "shown"),
    ("neighbours.*", "shown beside the thresholds of the table"),
    ("netstat.*", "counters that are compared between hosts"),
    ("nfs.*", "means and options, which are compared between hosts"),
    ("nic.*.bus", "joins a device with its PCIe link"),
    ("nic.*.channels.*", "compared between hosts"),
    ("nic.*.coalesce.*", "compared between hosts"),
    ("nic.*.driver_version", "compared between hosts"),
    ("nic.*.feature.*", "compared between hosts"),
    ("nic.*.firmware", "compared between hosts"),
    ("nic.*.ipoib_mode", "ruled out in another key"),
    ("nic.*.irq.*.name", "the queue behind the number of an interrupt"),
    ("nic.*.log.*", "counts of events beside those that causes ask for"),
    ("nic.*.pause.*", "compared between hosts"),
    ("nic.*.qdisc_rate_bit", "the rate of nic.*.qdisc"),
    ("nic.*.rate.*", "rates of other tools, shown"),
    ("nic.*.ring.*", "compared between hosts"),
    ("nic.*.stat.*", "counters that are compared between hosts"),
    ("nic.*.state", "shown"),
    ("nic.*.wifi.bitrate_mbit", "shown; a low one has a key of its own"),
    ("nic.*.wifi.signal_dbm", "shown; a weak one has a key of its own"),
    ("nic.*.txqueuelen", "compared between hosts"),
    ("pci.*", "handed to the NIC or the drive of that address"),
    ("slurm.*", "a remark of its own"),
    ("snmp.*", "counters that are compared between hosts"),
    ("socket.udp.*", "shown beside the drops of the socket"),
    ("sockets.*", "shown"),
    ("softnet.*", "counters that are compared between hosts"),
    ("sysctl.*", "compared between hosts and with profiles"),
    ("tcp.rate.*", "rates of other tools, shown"),
    ("tcpretrans.*", "shown"),
    ("usb.*.driver", "shown beside the speed"),
    ("usb.*.speed_mbit", "shown; what is too little for a drive or a NIC has a key of its own"),
];

/// Keys of all fixtures, each under a prompt whose command is in its name as far as one is needed.
fn keys() -> BTreeSet<String> {
    let mut documents: Vec<Document> = asked::sessions().collect();
    for entry in std::fs::read_dir(files()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_file() {
            documents.push(Document::new(name.clone(), bytes(&name)));
        }
    }
    let all = documents.into_iter().map(|d| linerate_import::read(&[d], &ImportOptions::default()));
    all.flat_map(|read| {
        let of_host = |f: linerate_model::fact::HostFacts| {
            let counters: Vec<String> = f.counters.into_keys().collect();
            f.readings.into_iter().map(|(key, _)| key).chain(counters).collect::<Vec<_>>()
        };
        read.facts.into_values().flat_map(of_host).collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn each_key_is_asked_for_or_has_a_reason() {
    let knowledge = crate::knowledge();
    let is_used = |key: &str| knowledge.causes().any(|cause| cause.asks_for(key));
    let is_listed = |key: &str| BESIDE.iter().any(|(pattern, _)| pattern_fits(pattern, key));
    let keys = keys();
    assert!(keys.len() > 300, "{}", keys.len());
    let lost: Vec<&String> = keys.iter().filter(|key| !is_used(key) && !is_listed(key)).collect();
    assert!(lost.is_empty(), "no cause asks for them: {lost:#?}");
    // A reason that is no longer needed goes.
    let idle = BESIDE
        .iter()
        .filter(|(pattern, _)| !keys.iter().any(|key| !is_used(key) && pattern_fits(pattern, key)));
    assert_eq!(idle.map(|(pattern, _)| *pattern).collect::<Vec<_>>(), Vec::<&str>::new());
}
