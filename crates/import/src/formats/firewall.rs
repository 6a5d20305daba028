//! Rules of a firewall: `iptables-save`, `iptables -L -v`, `iptables -S`, `nft list ruleset`. Lines come in,
//! numbers of rules by the point that packets pass go out, as our own reader counts them; and how many
//! packets the rules that drop have met.

use std::collections::BTreeMap;

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::number;

/// The format.
pub(crate) struct Firewall;

/// Points that packets pass.
const POINTS: [&str; 6] = ["prerouting", "input", "forward", "output", "postrouting", "ingress"];

/// What stands at one point.
#[derive(Default)]
struct Point {
    rules: i64,
    drops: i64,
    random: i64,
    limits: i64,
    dropped: i64,
    is_drop: Option<bool>,
}

/// One chain: the point that it is called at, or the chains that jump to it.
#[derive(Default)]
struct Rules {
    chains: BTreeMap<String, Point>,
    jumps: Vec<(String, String)>,
    hooks: BTreeMap<String, String>,
    now: String,
    is_nat: bool,
    /// Packets that the table of addresses changes are no rules that drop.
    any: bool,
}

/// Words of a rule that drop.
fn drops(words: &[&str]) -> bool {
    words.iter().any(|word| ["DROP", "REJECT", "drop", "reject", "TARPIT"].contains(word))
}

impl Rules {
    /// Takes a line; `false` when it is none of a listing of rules.
    fn line(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] | ["#" | "pkts" | "num" | "target" | "-N", ..] | ["COMMIT" | "}"] => true,
            [table] if table.starts_with('*') => {
                self.is_nat = table == "*nat";
                true
            }
            // `:INPUT DROP [0:0]`, `-P INPUT DROP`
            [chain, policy, ..] if chain.starts_with(':') => self.chain(&chain[1..], policy),
            ["-P", chain, policy] => self.chain(chain, policy),
            ["-A" | "-I", chain, ..] => self.rule(chain, &words, None),
            // With `-c`, packets and bytes stand in front.
            [counts, "-A", chain, ..] if counts.starts_with('[') => {
                let packets = counts.trim_start_matches('[').split(':').next().and_then(number);
                self.rule(chain, &words, packets)
            }
            ["Chain", chain, ..] => {
                chain.clone_into(&mut self.now);
                let policy = words.iter().position(|w| w.trim_start_matches('(') == "policy");
                let policy = policy.and_then(|at| words.get(at + 1)).map_or("", |p| p.trim_end_matches(')'));
                self.chain(chain, policy)
            }
            ["table", ..] => {
                self.any = true;
                true
            }
            ["chain", chain, "{"] => {
                chain.clone_into(&mut self.now);
                self.any = true;
                true
            }
            ["type", kind, "hook", hook, ..] => self.hook(kind, hook, &words),
            _ => self.listed(&words),
        }
    }

    fn chain(&mut self, chain: &str, policy: &str) -> bool {
        self.any = true;
        if self.is_nat {
            return true;
        }
        let known = ["ACCEPT", "DROP"].contains(&policy).then_some(policy == "DROP");
        let point = self.chains.entry(chain.to_owned()).or_default();
        point.is_drop = known.or(point.is_drop);
        if POINTS.contains(&chain.to_lowercase().as_str()) {
            self.hooks.insert(chain.to_owned(), chain.to_lowercase());
        }
        true
    }

    /// `type filter hook input priority 0; policy drop;`
    fn hook(&mut self, kind: &str, hook: &str, words: &[&str]) -> bool {
        self.is_nat = kind == "nat";
        if !self.is_nat && POINTS.contains(&hook) {
            self.hooks.insert(self.now.clone(), hook.to_owned());
            let policy = words.iter().position(|w| *w == "policy").and_then(|at| words.get(at + 1));
            let is_drop = policy.map(|policy| policy.starts_with("drop"));
            self.chains.entry(self.now.clone()).or_default().is_drop = is_drop;
        }
        true
    }

    fn rule(&mut self, chain: &str, words: &[&str], packets: Option<f64>) -> bool {
        self.any = true;
        if self.is_nat {
            return true;
        }
        let point = self.chains.entry(chain.to_owned()).or_default();
        point.rules += 1;
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
        let is_random = has(&["statistic", "random", "numgen", "nth"]);
        if drops(words) {
            point.drops += 1;
            point.random += i64::from(is_random);
            point.dropped += packets.unwrap_or(0.0) as i64;
        }
        point.limits += i64::from(has(&["limit", "hashlimit", "limit:"]));
        let jump = words.iter().position(|w| ["-j", "-g", "jump", "goto"].contains(w));
        if let Some(target) = jump.and_then(|at| words.get(at + 1)) {
            self.jumps.push((chain.to_owned(), (*target).to_owned()));
        }
        true
    }

    /// A rule of `iptables -L -v`, with its packets in front, of `iptables -L`, or of nft.
    fn listed(&mut self, words: &[&str]) -> bool {
        if self.now.is_empty() {
            return false;
        }
        let chain = self.now.clone();
        let counted = words.iter().position(|w| *w == "packets").and_then(|at| words.get(at + 1));
        let scaled = |text: &str| {
            let plain = text.trim_end_matches(['K', 'M', 'G']);
            let factor = match text.as_bytes().last() {
                Some(b'K') => 1e3,
                Some(b'M') => 1e6,
                Some(b'G') => 1e9,
                _ => 1.0,
            };
            Some(number(plain)? * factor)
        };
        let first = words.first().and_then(|word| scaled(word));
        let target = if first.is_some() { words.get(2) } else { words.first() };
        let known =
            |target: &&&str| self.chains.contains_key(**target) || target.chars().all(char::is_uppercase);
        let is_iptables = target.as_ref().is_some_and(known);
        let begins = [
            "ip", "ip6", "tcp", "udp", "icmp", "meta", "ct", "iifname", "oifname", "counter", "limit",
            "drop", "reject", "accept", "jump", "ether", "vlan", "numgen", "iif", "oif", "fib", "goto",
            "return", "log",
        ];
        let is_nft = words.first().is_some_and(|word| begins.contains(word));
        if !is_iptables && !is_nft {
            return false;
        }
        if let Some(target) = target.filter(|_| is_iptables && !self.is_nat) {
            self.jumps.push((chain.clone(), (*target).to_owned()));
        }
        let packets = counted.and_then(|word| number(word)).or(first);
        let words: Vec<&str> = words.iter().map(|word| word.trim_end_matches(';')).collect();
        self.rule(&chain, &words, packets)
    }

    /// The points at which a chain is met: its own hook, or those of the chains that jump to it.
    fn point(&self, chain: &str, depth: usize) -> Vec<String> {
        if let Some(hook) = self.hooks.get(chain) {
            return vec![hook.clone()];
        }
        if depth == 0 {
            return Vec::new();
        }
        let from = self.jumps.iter().filter(|(from, to)| to == chain && from != chain);
        let mut points: Vec<String> = from.flat_map(|(from, _)| self.point(from, depth - 1)).collect();
        points.sort();
        points.dedup();
        points
    }

    fn put(&self, out: &mut Sink) {
        let mut points: BTreeMap<String, Point> = BTreeMap::new();
        for (chain, found) in self.chains.iter().take(CHAINS_MAX) {
            for name in self.point(chain, DEPTH_MAX) {
                let point = points.entry(name).or_default();
                point.rules += found.rules;
                point.drops += found.drops;
                point.random += found.random;
                point.limits += found.limits;
                point.dropped += found.dropped;
                point.is_drop = if self.hooks.contains_key(chain) {
                    Some(point.is_drop.unwrap_or(false) || found.is_drop.unwrap_or(false))
                } else {
                    point.is_drop
                };
            }
        }
        for (name, point) in points {
            let head = format!("firewall.{name}");
            for (field, value) in [
                ("rules", point.rules),
                ("drops", point.drops),
                ("random", point.random),
                ("limits", point.limits),
            ] {
                out.fact(format!("{head}.{field}"), FactValue::Int(value));
            }
            if point.dropped > 0 {
                out.counter(format!("{head}.dropped_packets"), point.dropped);
            }
            if let Some(is_drop) = point.is_drop {
                out.text(format!("{head}.policy"), if is_drop { "drop" } else { "accept" });
            }
        }
    }
}

/// Longest chain of jumps that is followed.
const DEPTH_MAX: usize = 4;
/// Most chains whose points are searched.
const CHAINS_MAX: usize = 1024;

impl Reader for Firewall {
    fn name(&self) -> &'static str {
        "firewall"
    }

    fn describes(&self) -> &'static str {
        "iptables-save, iptables -L -v, iptables -S, nft list ruleset"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first().trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["*filter" | "*mangle" | "*nat" | "*raw" | "*security"] => true,
            ["Chain", _, rest, ..] => rest.starts_with("(policy") || line.contains("references)"),
            ["table", family, _, "{"] => ["ip", "ip6", "inet", "bridge", "netdev", "arp"].contains(&family),
            ["-P", chain, "ACCEPT" | "DROP"] => POINTS.contains(&chain.to_lowercase().as_str()),
            ["-A", _, ..] => words.contains(&"-j"),
            ["#", "Generated", "by", by, ..] => by.starts_with("ip"),
            _ => false,
        }
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut rules = Rules::default();
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if !rules.line(line) {
                break;
            }
            if !line.trim().is_empty() {
                taken = at + 1;
            }
        }
        rules.put(out);
        if !rules.any {
            out.unread(0, "no rule of a firewall");
        }
        taken.max(1)
    }
}
