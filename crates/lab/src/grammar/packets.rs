//! Which packets a rule is about, in the words of nftables.
//!
//! In: a drawn number. Out: a condition, in words and as a rule matches it. Where it narrows the traffic to
//! one other host, the truth is that pair.

use linerate_model::random::Random;

use crate::topology::HostPlan;

/// A condition on packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packets {
    /// For people.
    pub(super) words: String,
    /// For a rule; empty for all packets.
    pub(super) rule: String,
    /// Only those of one other host.
    pub(super) is_one_peer: bool,
}

/// Draws a condition; `peer` is the one of the other end, and `peer_side` says whether it sends (`saddr`) or
/// receives (`daddr`) what the rule sees.
pub(super) fn draw(random: &mut Random, peer: &HostPlan, peer_side: &str) -> Packets {
    let plain =
        |words: &str, rule: &str| Packets { words: words.into(), rule: rule.into(), is_one_peer: false };
    match random.below(10) {
        0 | 1 => plain("all packets", ""),
        2 => plain("TCP of the underlay", "ip protocol tcp ip saddr 10.77.0.0/24"),
        3 => plain("UDP that is no tunnel", "ip saddr 10.77.0.0/24 udp dport != 4789"),
        4 => plain("the tunnel", "udp dport 4789"),
        5 => plain("packets above 1000 bytes", "meta length > 1000"),
        6 => plain("packets below 200 bytes", "meta length < 200"),
        7 => plain("the upper half of the ports", "tcp dport 45000-65535"),
        8 => plain("one flow in four", "jhash ip saddr . ip daddr . tcp sport . tcp dport mod 4 0"),
        _ => Packets {
            words: format!("packets of {}", peer.name),
            rule: format!("ip {peer_side} {{ {}, {} }}", peer.underlay(), peer.overlay()),
            is_one_peer: true,
        },
    }
}
