//! Differences between the suspects and their peers that no cause explains: those that may do this harm
//! compete with the known causes, by how rare they are and by whether their kind can do it.

use linerate_knowledge::keys::{bare, nic_of, pattern_fits};
use linerate_knowledge::{Knowledge, LayerFit};
use linerate_model::fact::{FactValue, changes_by_itself};
use linerate_model::finding::{BenignDifference, FactHit, LayerScope};

use super::Subjects;
use super::best_fit;
use super::ends;
use super::population::{self, Peers, Population};
use super::shape::Shape;
use crate::evidence::Facts;

/// Kinds of settings that can hold traffic back by themselves: patterns of keys, and words of which the value
/// needs one, where there are some.
const HARMFUL: [(&str, &[&str]); 19] = [
    ("nic.*.addresses", &[]),
    ("nic.*.qdisc", &["tbf", "htb", "netem", "hfsc", "cbq", "cake", "police", "ingress", "clsact"]),
    ("nic.*.filter*", &[]),
    ("nic.*.xdp*", &[]),
    ("nic.ifb*.kind", &[]),
    ("nic.*.mtu", &[]),
    ("nic.*.speed_mbit", &[]),
    ("nic.*.duplex", &["half"]),
    ("nic.*.neighbour.*", &[]),
    ("nic.*.fdb.*", &[]),
    ("firewall.*.drops", &[]),
    ("firewall.*.rejects", &[]),
    ("firewall.*.random", &[]),
    ("firewall.*.limits", &[]),
    ("firewall.*.policy", &["drop"]),
    ("route.*", &[]),
    ("rule.*", &[]),
    ("table.*", &[]),
    ("bpf.*", &[]),
];

/// Facts that are numbered in the order in which they were read, or stand at a device whose name means
/// nothing: what counts is whether another host has the same words under any number. A host that has one
/// where no other has any differs.
const NUMBERED: [&str; 5] = ["route.*", "rule.*", "table.*", "nic.*.filter.*", "nic.*.xdp"];

/// Counts that are the same when absent and when zero: hosts without a firewall report no hook.
const COUNTS: [&str; 6] = [
    "firewall.rules",
    "firewall.*.rules",
    "firewall.*.drops",
    "firewall.*.rejects",
    "firewall.*.random",
    "firewall.*.limits",
];

/// Keys that differ between any two hosts, or that are state rather than settings; those that change by
/// themselves are known by [`changes_by_itself`].
pub(crate) const IDENTITY: [&str; 19] = [
    "nic.*.address",
    "nic.*.mac",
    "nic.*.irq.*",
    "nic.*.master",
    "nic.*.lower",
    "nic.*.ifindex",
    "nic.*.bridge.*",
    "mount.*",
    "disk.*",
    "sysctl.kernel.random.*",
    "sysctl.kernel.hostname",
    "sysctl.kernel.domainname",
    "sysctl.kernel.pty.nr",
    "sysctl.fs.*",
    "sysctl.net.ipv*.neigh.*",
    "sysctl.net.mptcp.*",
    "cgroup.*",
    "kernel.boot*",
    "machine.*",
];

/// A difference that no cause explains.
pub(crate) struct Unexplained {
    /// What differs.
    pub difference: BenignDifference,
    /// Log odds that it is the cause; none where a cause knows it and does not fit, and its kind does no harm
    /// by itself.
    pub score: Option<f64>,
}

/// Differences of the suspects that no indicator explains, those that can do harm first.
pub(crate) fn unexplained(
    facts: &Facts<'_>,
    subjects: &Subjects<'_>,
    shape: &Shape,
    layer: LayerScope,
    knowledge: &Knowledge,
    explained: &[&FactHit],
    accompanying: &[String],
) -> Vec<Unexplained> {
    let rules = &facts.rules.attribute;
    // What was taken for the underlay may have been an overlay.
    let is_layer_open = facts.is_layer_open();
    let mut found: Vec<Unexplained> = Vec::new();
    let mut hosts = subjects.suspects.clone();
    hosts.extend(subjects.machines.iter().filter(|m| !subjects.suspects.contains(m)));
    for host in &hosts {
        // Of two hosts each is all that the other can be compared with.
        let other = hosts.iter().copied().filter(|other| shape.two_hosts && other != host);
        let alone = Peers::new(other.collect());
        let usual = subjects.peers_of(host);
        let peers = if alone.hosts().is_empty() { usual } else { &alone };
        let enough = peers.hosts().len() >= rules.peers_min || shape.two_hosts;
        let Some(host_facts) = facts.of(host).filter(|_| enough && !peers.hosts().is_empty()) else {
            continue;
        };
        for (key, value) in &host_facts.readings {
            if changes_by_itself(key)
                || IDENTITY.iter().any(|p| pattern_fits(p, key))
                || explained.iter().any(|h| h.host == *host && h.key == *key)
                || population::any_fits(accompanying, key)
            {
                continue;
            }
            let population = peers.population(facts, host, key);
            if !is_unlike(facts, &population, peers, host, key, value) {
                continue;
            }
            let is_known = knowledge.causes().any(|c| {
                c.indicators.iter().any(|t| population::any_fits(&t.keys, key))
                    || population::any_fits(&c.accompanies, key)
            });
            let is_of_layer = is_layer_open
                && knowledge.causes().any(|c| {
                    c.symptom.layers == LayerFit::OverlayOnly
                        && c.indicators.iter().any(|t| population::any_fits(&t.keys, key))
                });
            let is_harmful = can_harm(key, value);
            let strength = rules.difference
                + population.contrast(value, rules)
                + if is_harmful { rules.difference_harmful } else { 0.0 };
            let difference = BenignDifference {
                host: (*host).to_owned(),
                key: key.clone(),
                value: value.clone(),
                peers: population.usual().cloned(),
                is_known,
                is_of_layer,
                why: String::new(),
            };
            let score = (is_harmful || !is_known).then(|| strength + best_fit(layer, rules));
            found.push(Unexplained { difference, score });
        }
    }
    found.sort_by(|a, b| b.score.unwrap_or(f64::MIN).total_cmp(&a.score.unwrap_or(f64::MIN)));
    found.truncate(rules.differences_max);
    found
}

/// Whether a setting of this kind, with this value, can hold traffic back by itself.
fn can_harm(key: &str, value: &FactValue) -> bool {
    let text = value.to_string();
    let has_word = |words: &[&str]| words.is_empty() || words.iter().any(|w| text.contains(w));
    HARMFUL.iter().any(|(pattern, words)| pattern_fits(pattern, bare(key)) && has_word(words))
}

/// Whether a reading is not what the peers have.
fn is_unlike(
    facts: &Facts<'_>,
    population: &Population,
    peers: &Peers<'_>,
    host: &str,
    key: &str,
    value: &FactValue,
) -> bool {
    let plain = bare(key);
    if let Some(pattern) = NUMBERED.iter().find(|p| pattern_fits(p, plain)) {
        // They have numbers, not names.
        let same = |(_, other): &(&str, &FactValue)| words_of(other) == words_of(value);
        return !peers.hosts().iter().any(|peer| facts.matching(peer, pattern).iter().any(same));
    }
    if is_nothing(plain, value) {
        // It differs from hosts that have some, not from hosts without the count.
        let some = population.values.iter().filter(|there| !is_nothing(plain, there)).count();
        return 2 * some > population.asked;
    }
    if plain.ends_with(".addresses") {
        return ends::shared(facts, host, key, value);
    }
    if population.has_its_like(value) {
        return false;
    }
    // Each host has devices of its own.
    let is_of_device =
        nic_of(key).is_some() || plain.starts_with("sysctl.net.ipv") && plain.contains(".conf.");
    population.differs(value, &facts.rules.attribute) || (population.values.is_empty() && !is_of_device)
}

/// Whether a count is zero that other hosts do not report when it is.
fn is_nothing(plain: &str, value: &FactValue) -> bool {
    *value == FactValue::Int(0) && COUNTS.iter().any(|pattern| pattern_fits(pattern, plain))
}

/// The words of a route or rule but for its source, which is an address of the host, and the priority of the
/// rule.
fn words_of(value: &FactValue) -> Vec<String> {
    let text = value.to_string();
    let mut words = text.split_ascii_whitespace();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if ["src", "from"].contains(&word) {
            words.next();
        } else if !word.ends_with(':') {
            kept.push(word.to_owned());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> FactValue {
        FactValue::Text(text.to_owned())
    }

    #[test]
    fn a_kind_that_can_hold_traffic_back_is_known_by_key_and_value() {
        assert!(can_harm("nic.eth0.qdisc", &text("tbf rate 1Gbit")));
        assert!(!can_harm("nic.eth0.qdisc", &text("fq_codel")));
        assert!(can_harm("netns./run/netns/a|nic.eth0.mtu", &FactValue::Int(1300)));
        assert!(!can_harm("sysctl.net.ipv4.tcp_retries2", &FactValue::Int(12)));
        assert!(can_harm("nic.eth0.filter.ingress.0", &text("u32, police 10000000 bit/s drop")));
        assert!(can_harm("nic.eth0.xdp", &text("driver")));
    }

    #[test]
    fn zero_is_nothing_only_where_it_is_counted() {
        assert!(is_nothing("firewall.input.drops", &FactValue::Int(0)));
        assert!(!is_nothing("firewall.input.drops", &FactValue::Int(1)));
        assert!(!is_nothing("sysctl.net.ipv4.tcp_sack", &FactValue::Int(0)));
    }

    #[test]
    fn routes_differ_by_their_words_and_not_by_their_source() {
        let [a, b, c] = [
            "10.0.0.0/24 dev eth0 src 10.0.0.1",
            "10.0.0.0/24 dev eth0 src 10.0.0.2",
            "10.0.0.0/24 dev eth0 src 10.0.0.3 mtu lock 400",
        ]
        .map(|words| words_of(&text(words)));
        assert_eq!(a, b);
        assert_ne!(a, c);
    }
}
