//! Rules in the firewall of one host: some that drop by chance, one that lets only a rate through, far too
//! many of them, and too few: what no rule accepts is dropped or refused.

use std::fmt::Write as _;

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::Damage;
use crate::error::Result;

pub(super) struct HostFirewall {
    about: FaultInfo,
    /// What becomes of packets that no rule fits.
    policy: &'static str,
    /// The rules, for the rate of the uplinks in Mbit/s and a strength.
    rules: fn(u32, f64) -> String,
}

/// Rules that a test of failures left behind.
pub(super) static DROPS: HostFirewall = HostFirewall {
    about: FaultInfo::host(
        "firewall-drops",
        "firewall-random-drop",
        "a rule in a host's own firewall drops 1-2 % of what it receives",
        &[Direction::Rx],
    ),
    policy: "accept",
    rules: |_, strength| format!("numgen random mod 100000 < {} drop\n", 1000 + (1000.0 * strength) as u32),
};

/// A rule against floods.
pub(super) static RATE_LIMIT: HostFirewall = HostFirewall {
    about: FaultInfo::host(
        "firewall-rate-limit",
        "firewall-rate-limit",
        "a rule in a host's own firewall drops what exceeds 20-24 % of the rate of the uplink",
        &[Direction::Rx],
    ),
    policy: "accept",
    // The kernel lets a second's worth through at once before it limits, so that a higher rate hardly shows
    // in a short test.
    rules: |rate_mbit, strength| {
        let kbytes = f64::from(rate_mbit) * 125.0 * (0.2 + 0.04 * strength);
        format!("limit rate over {kbytes:.0} kbytes/second burst 256 kbytes drop\n")
    },
};

/// Rules that differ in an address and fit nothing that the lab sends.
pub(super) fn long_list() -> String {
    let mut rules = String::new();
    for number in 0..12_000_u32 {
        // The network for benchmarks of network devices (RFC 2544).
        let _ = writeln!(rules, "ip saddr 198.18.{}.{} drop", number / 256, number % 256);
    }
    rules
}

/// So many that each small packet costs as much as a large one should.
pub(super) static LONG_LIST: HostFirewall = HostFirewall {
    about: FaultInfo::host(
        "firewall-long-list",
        "firewall-long-list",
        "the firewall of one host compares every packet with 12 000 addresses, one after the other",
        &[],
    ),
    policy: "accept",
    rules: |_, _| long_list(),
};

/// A firewall that was switched on with the rules of a server for the web.
pub(super) static POLICY: HostFirewall = HostFirewall {
    about: FaultInfo::host(
        "firewall-policy",
        "firewall-policy-drop",
        "the firewall of one host drops everything from outside but ping, ssh and web",
        &[Direction::Rx, Direction::Both],
    ),
    policy: "drop",
    rules: |_, _| {
        "iif lo accept\nct state established,related accept\nip protocol icmp accept\ntcp dport { 22, 80, 443 } accept\n\
         udp dport 4789 ip saddr 10.77.0.0/24 accept\n"
            .into()
    },
};

/// The same with an answer.
pub(super) static REFUSES: HostFirewall = HostFirewall {
    about: FaultInfo::host(
        "firewall-refuses",
        "firewall-refuses",
        "the firewall of one host answers to everything but ping, ssh and web that it is prohibited",
        &[Direction::Rx, Direction::Both],
    ),
    policy: "accept",
    rules: |_, _| {
        "iif lo accept\nct state established,related accept\nip protocol icmp accept\ntcp dport { 22, 80, 443 } accept\n\
         udp dport 4789 ip saddr 10.77.0.0/24 accept\nreject with icmpx admin-prohibited\n"
            .into()
    },
};

impl Fault for HostFirewall {
    fn about(&self) -> &FaultInfo {
        &self.about
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()> {
        let (_, machine) = damage.host(target.host()?)?;
        let rules = (self.rules)(damage.cluster.topology.uplink.rate_mbit, strength);
        damage.host_rules(
            machine,
            &format!(
                "chain input {{\ntype filter hook input priority 0; policy {};\n{rules}\n}}",
                self.policy
            ),
        )
    }
}
