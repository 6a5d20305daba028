//! Benign differences on the host of a fault: a verdict must ignore them.
//!
//! In: a running lab, hosts, a seed. Out: what was made different, in words; undone with the faults. Each of
//! them changes what `linerate` reads and nothing that its loads could feel.

use std::collections::BTreeSet;

use linerate_lab::damage::{ClusterMachine, Damage};
use linerate_lab::error::Result;
use linerate_model::random::Random;

/// sysctls of a network namespace with a value that is not the default and touches no transfer of a test:
/// times of idle or dead connections, counts of retries, what is answered to pings, groups of multicast,
/// ports to choose from.
const SYSCTLS: [(&str, &str); 9] = [
    ("net.ipv4.tcp_fin_timeout", "31"),
    ("net.ipv4.tcp_keepalive_time", "640"),
    ("net.ipv4.tcp_keepalive_probes", "5"),
    ("net.ipv4.tcp_syn_retries", "5"),
    ("net.ipv4.tcp_retries2", "12"),
    ("net.ipv4.tcp_max_syn_backlog", "2048"),
    ("net.ipv4.ip_local_port_range", "20000 60999"),
    ("net.ipv4.icmp_ratelimit", "500"),
    ("net.ipv4.igmp_max_memberships", "30"),
];

/// Settings of a device that nothing waits for: `eth0` of a lab has no queue of its own.
const DEVICE: [(&str, &str, &str); 2] = [
    ("txqueuelen 2000 of eth0", "link set eth0 txqueuelen 2000\n", "link set eth0 txqueuelen 1000\n"),
    ("an alias of eth0", "link set eth0 alias to-the-rack\n", "link set eth0 alias \"\"\n"),
];

/// Differences per host.
const PER_HOST: usize = 3;

/// Makes the hosts different from the others; returns how, a line each.
pub(crate) fn differ(damage: &mut Damage<'_>, hosts: &BTreeSet<String>, seed: u64) -> Result<Vec<String>> {
    let mut random = Random(seed ^ 0x0d1f_f350);
    let mut descriptions = Vec::new();
    for host in hosts {
        let (_, machine) = damage.host(host)?;
        let mut all: Vec<usize> = (0..SYSCTLS.len() + DEVICE.len()).collect();
        random.shuffle(&mut all);
        for choice in all.into_iter().take(PER_HOST) {
            descriptions.push(format!("{host}: {}", apply(damage, machine, choice)?));
        }
    }
    Ok(descriptions)
}

fn apply(damage: &mut Damage<'_>, machine: ClusterMachine, choice: usize) -> Result<String> {
    if let Some((key, value)) = SYSCTLS.get(choice) {
        damage.sysctl(machine, key, value)?;
        return Ok(format!("{key} = {value}"));
    }
    let (name, forth, back) = DEVICE[choice - SYSCTLS.len()];
    damage.ip(machine, forth, back.into())?;
    Ok(name.to_owned())
}
