//! Differences between the suspects and their peers that no cause explains: candidates of low probability, or
//! benign.

use linerate_knowledge::Knowledge;
use linerate_model::finding::{BenignDifference, FactHit};

use super::place::Place;
use super::population;
use crate::evidence::Facts;

/// Keys that differ between any two hosts, or that are state rather than settings.
const IDENTITY: [&str; 29] = [
    "nic.*.addresses",
    "nic.*.address",
    "nic.*.mac",
    "nic.*.neighbour.*",
    "nic.*.carrier_changes",
    "nic.*.irq.*",
    "nic.*.master",
    "nic.*.lower",
    "nic.*.ifindex",
    "nic.*.speed_mbit",
    "nic.*.bridge.*",
    "route.*",
    "mount.*",
    "disk.*",
    "sysctl.kernel.random.*",
    "sysctl.kernel.hostname",
    "sysctl.kernel.domainname",
    "sysctl.kernel.ns_last_pid",
    "sysctl.kernel.pty.nr",
    "sysctl.fs.*",
    "sysctl.net.netfilter.nf_conntrack_count",
    "sysctl.net.ipv*.conf.*",
    "sysctl.net.ipv*.neigh.*",
    "sysctl.net.mptcp.*",
    "cgroup.*",
    "cpu.mhz*",
    "kernel.uptime*",
    "kernel.boot*",
    "machine.*",
];

/// Differences of the suspects that no indicator explains.
pub(crate) fn unexplained(
    facts: &Facts<'_>,
    place: &Place<'_>,
    knowledge: &Knowledge,
    explained: &[FactHit],
) -> Vec<BenignDifference> {
    let rules = &facts.rules.attribute;
    let mut found = Vec::new();
    let mut hosts = place.subjects.suspects.clone();
    hosts.extend(place.subjects.machines.iter().filter(|m| !place.subjects.suspects.contains(m)));
    for host in hosts {
        let peers = place.subjects.peers_of(host);
        if peers.hosts().len() < rules.peers_min {
            continue;
        }
        let Some(host_facts) = facts.of(host) else { continue };
        for (key, value) in &host_facts.readings {
            if IDENTITY.iter().any(|p| linerate_knowledge::keys::pattern_fits(p, key))
                || explained.iter().any(|h| h.host == host && h.key == *key)
                || found.len() >= rules.differences_max
            {
                continue;
            }
            let population = peers.population(facts, host, key);
            let absent_elsewhere =
                population.values.is_empty() && linerate_knowledge::keys::nic_of(key).is_none();
            if population.differs(value, rules) || absent_elsewhere {
                let is_known = knowledge.causes().any(|c| {
                    c.indicators.iter().any(|t| population::any_fits(&t.keys, key))
                        || population::any_fits(&c.accompanies, key)
                });
                found.push(BenignDifference {
                    host: host.to_owned(),
                    key: key.clone(),
                    value: value.clone(),
                    peers: population.usual().cloned(),
                    is_known,
                    why: String::new(),
                });
            }
        }
    }
    found
}
