//! Amount of packet filtering in the network namespace of the calling thread: nftables rules (those of
//! today's `iptables` too), counted by hook.
//!
//! In: nothing. Out: numbers, never a rule: addresses and comments stay on the host. Bounded in number; it
//! loads no module and never interprets a number.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::netlink::{Attribute, NetlinkError, Payload, Socket, attribute};

/// `NETLINK_NETFILTER`.
pub(crate) const NETFILTER: libc::c_int = 12;
pub(crate) const SUBSYSTEM: u16 = 10 << 8;
const GET_CHAIN: u16 = SUBSYSTEM | 4;
pub(crate) const GET_RULE: u16 = SUBSYSTEM | 7;
/// Rule sets with more rules are counted but not parsed.
pub const RULES_MAX: u64 = 50_000;
const CHAINS_MAX: usize = 20_000;

/// Families of nftables.
const INET: u8 = 1;
const IPV4: u8 = 2;
const NETDEV: u8 = 5;
const BRIDGE: u8 = 7;
const IPV6: u8 = 10;

/// What packets meet at one point of the network stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// Rules that a packet may have to pass, of the chains there and of those that they jump to.
    pub rules: u64,
    /// Those that drop or reject.
    pub drops: u64,
    /// Those that reject, so that the sender gets an error at once.
    #[serde(default)]
    pub rejects: u64,
    /// Those that drop or reject by chance.
    pub random: u64,
    /// Those that hold only up to or above a rate.
    pub limits: u64,
    /// Those that were switched off and match nothing.
    #[serde(default)]
    pub off: u64,
    /// Whether what no rule accepts is dropped.
    pub drops_the_rest: bool,
}

/// All rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruleset {
    /// Rules of all chains.
    pub rules: u64,
    /// By point: `input`, `forward`, `output`, `prerouting`, `postrouting`, `ingress`, `bridge-forward`,
    /// `input6` …
    pub hooks: BTreeMap<String, Hook>,
    /// Rules that drop by chance or above a rate, by their name in [`crate::nft_switch`], with whether they
    /// are in force. Filled in by who asks for them too.
    #[serde(default)]
    pub switches: BTreeMap<String, bool>,
    /// Whether there were too many rules to look into each: then only their number is known.
    pub only_counted: bool,
}

/// Family, table, name.
pub(crate) type ChainId = (u8, String, String);

#[derive(Debug, Default, Clone)]
struct Chain {
    hook: Option<String>,
    drops_the_rest: bool,
    /// References to it, nearly always its rules: known without a dump of each.
    uses: u64,
    rules: Hook,
    jumps: BTreeSet<String>,
}

/// Reads the rule set.
pub fn ruleset() -> Result<Ruleset, NetlinkError> {
    let mut socket = Socket::open(NETFILTER)?;
    let mut chains = chains(&mut socket)?;
    let counted: u64 = chains.values().map(|c| c.uses).sum();
    let only_counted = counted > RULES_MAX;
    if only_counted {
        for chain in chains.values_mut() {
            chain.rules.rules = chain.uses;
        }
    } else if counted > 0 {
        // A dump that was contended comes again from its beginning.
        let mut seen = BTreeSet::new();
        socket.dump(GET_RULE, &Payload::new(&[0; 4]), |message| {
            if let Some((id, handle, rule, jump)) = parse_rule(message.payload)
                && let Some(chain) = chains.get_mut(&id)
                && seen.insert((id, handle))
            {
                chain.rules.add(&rule);
                chain.jumps.extend(jump);
            }
        })?;
    }
    Ok(by_hook(&chains, only_counted))
}

/// All chains, without their rules.
fn chains(socket: &mut Socket) -> Result<BTreeMap<ChainId, Chain>, NetlinkError> {
    let mut chains: BTreeMap<ChainId, Chain> = BTreeMap::new();
    socket.dump(GET_CHAIN, &Payload::new(&[0; 4]), |message| {
        if let Some((id, chain)) = parse_chain(message.payload)
            && chains.len() < CHAINS_MAX
        {
            chains.insert(id, chain);
        }
    })?;
    Ok(chains)
}

/// All chains.
pub(crate) fn chain_ids(socket: &mut Socket) -> Result<BTreeSet<ChainId>, NetlinkError> {
    Ok(chains(socket)?.into_keys().collect())
}

impl Ruleset {
    /// Whether a rule drops by chance or above a rate, or is switched off.
    pub fn has_switches(&self) -> bool {
        self.hooks.values().any(|hook| hook.random + hook.limits + hook.off > 0)
    }
}

impl Hook {
    /// Adds what another chain or table has at the same hook.
    pub fn add(&mut self, other: &Self) {
        self.rules += other.rules;
        self.drops += other.drops;
        self.rejects += other.rejects;
        self.random += other.random;
        self.limits += other.limits;
        self.off += other.off;
        self.drops_the_rest |= other.drops_the_rest;
    }
}

fn by_hook(chains: &BTreeMap<ChainId, Chain>, only_counted: bool) -> Ruleset {
    let mut set = Ruleset { only_counted, ..Ruleset::default() };
    set.rules = chains.values().map(|c| c.rules.rules).sum();
    for (id, chain) in chains {
        let Some(name) = &chain.hook else { continue };
        let hook = set.hooks.entry(name.clone()).or_default();
        hook.drops_the_rest |= chain.drops_the_rest;
        let mut open = vec![id.clone()];
        let mut passed = BTreeSet::new();
        while let Some(id) = open.pop() {
            if let Some(chain) = chains.get(&id)
                && passed.insert(id.clone())
            {
                hook.add(&chain.rules);
                open.extend(chain.jumps.iter().map(|to| (id.0, id.1.clone(), to.clone())));
            }
        }
    }
    set
}

pub(crate) fn be32(attribute: &Attribute<'_>) -> Option<u32> {
    Some(u32::from_be_bytes(attribute.data.get(..4)?.try_into().ok()?))
}

fn be64(attribute: &Attribute<'_>) -> Option<u64> {
    Some(u64::from_be_bytes(attribute.data.get(..8)?.try_into().ok()?))
}

fn parse_chain(payload: &[u8]) -> Option<(ChainId, Chain)> {
    let family = *payload.first()?;
    let body = payload.get(4..)?;
    let id = (family, attribute(body, 1)?.text(), attribute(body, 3)?.text());
    // Rules of address translation see only the first packet of a connection.
    let translates = attribute(body, 7).is_some_and(|kind| kind.text() == "nat");
    let number = attribute(body, 4).and_then(|hook| be32(&attribute(hook.data, 1)?));
    Some((
        id,
        Chain {
            hook: number.filter(|_| !translates).and_then(|n| hook_name(family, n)),
            drops_the_rest: attribute(body, 5).and_then(|policy| be32(&policy)) == Some(0),
            uses: attribute(body, 6).and_then(|uses| be32(&uses)).map_or(0, u64::from),
            ..Chain::default()
        },
    ))
}

fn hook_name(family: u8, number: u32) -> Option<String> {
    const POINTS: [&str; 6] = ["prerouting", "input", "forward", "output", "postrouting", "ingress"];
    let point = POINTS.get(usize::try_from(number).ok()?)?;
    match family {
        INET | IPV4 => Some((*point).to_string()),
        IPV6 => Some(format!("{point}6")),
        BRIDGE => Some(format!("bridge-{point}")),
        NETDEV => Some(if number == 0 { "ingress" } else { "egress" }.to_string()),
        _ => None,
    }
}

/// Whether a rule begins with the condition that no packet meets.
pub(crate) fn is_off(body: &[u8]) -> bool {
    let Some(parts) = attribute(body, 4) else { return false };
    let mut parts = parts.nested();
    let loads = parts.next().is_some_and(|part| {
        let key = field(&part, "meta", 2).and_then(|key| be32(&key));
        key == Some(META_LENGTH)
    });
    loads
        && parts.next().is_some_and(|part| {
            let is_equal = field(&part, "cmp", 2).and_then(|op| be32(&op)) == Some(EQUAL);
            let value = field(&part, "cmp", 3).and_then(|data| attribute(data.data, 1));
            is_equal && value.is_some_and(|value| value.data.iter().all(|byte| *byte == 0))
        })
}

/// Key of the length of a packet in `meta`, and the operation of `cmp` that wants two values alike.
pub(crate) const META_LENGTH: u32 = 0;
pub(crate) const EQUAL: u32 = 0;
pub(crate) const REGISTER: u32 = 1;

/// An attribute of a part of a rule of this name.
fn field<'a>(part: &Attribute<'a>, name: &str, kind: u16) -> Option<Attribute<'a>> {
    attribute(part.data, 1).filter(|a| a.text() == name)?;
    attribute(attribute(part.data, 2)?.data, kind)
}

/// Chain of a rule, its number, what it is, and the chain that it jumps to. A rule that is switched off only
/// counts as one.
pub(crate) fn parse_rule(payload: &[u8]) -> Option<(ChainId, u64, Hook, Option<String>)> {
    let body = payload.get(4..)?;
    let id = (*payload.first()?, attribute(body, 1)?.text(), attribute(body, 2)?.text());
    let handle = attribute(body, 3).and_then(|h| be64(&h)).unwrap_or(0);
    if is_off(body) {
        return Some((id, handle, Hook { rules: 1, off: 1, ..Hook::default() }, None));
    }
    let (rule, jump) = meaning(body);
    Some((id, handle, rule, jump))
}

/// What a rule does, were it in force, and the chain that it jumps to.
pub(crate) fn meaning(body: &[u8]) -> (Hook, Option<String>) {
    let (mut drops, mut rejects, mut by_chance, mut limited, mut jump) = (false, false, false, false, None);
    for expression in attribute(body, 4).iter().flat_map(Attribute::nested).take(256) {
        let Some(name) = attribute(expression.data, 1).map(|a| a.text()) else { continue };
        let data = attribute(expression.data, 2).map(|a| a.data).unwrap_or_default();
        let inner = || attribute(data, 1).map(|a| a.text()).unwrap_or_default();
        match name.as_str() {
            "immediate" => match verdict(data) {
                Some((0, _)) => drops = true,
                Some((_, to)) => jump = jump.or(to),
                None => {}
            },
            "reject" => rejects = true,
            "numgen" => by_chance = true,
            "limit" => limited = true,
            // What iptables could do before nftables.
            "match" => match inner().as_str() {
                "statistic" => by_chance = true,
                "limit" | "hashlimit" => limited = true,
                _ => {}
            },
            "target" => match inner().as_str() {
                "DROP" => drops = true,
                "REJECT" => rejects = true,
                _ => {}
            },
            _ => {}
        }
    }
    let count = u64::from;
    drops |= rejects;
    let rule = Hook {
        rules: 1,
        drops: count(drops),
        rejects: count(rejects),
        random: count(drops && by_chance),
        limits: count(limited),
        ..Hook::default()
    };
    (rule, jump)
}

/// Verdict of an immediate expression (0 drops) and the chain that it names.
fn verdict(data: &[u8]) -> Option<(u32, Option<String>)> {
    let verdict = attribute(attribute(data, 2)?.data, 2)?;
    let code = be32(&attribute(verdict.data, 1)?)?;
    Some((code, attribute(verdict.data, 2).map(|chain| chain.text())))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400), family in any::<u8>(), hook in any::<u32>()) {
            let _ = parse_chain(&bytes);
            let _ = parse_rule(&bytes);
            let _ = verdict(&bytes);
            let _ = hook_name(family, hook);
        }
    }

    #[test]
    fn chains_that_jump_in_circles_are_counted_once() {
        let chain = |hook: Option<&str>, jumps: &[&str]| Chain {
            hook: hook.map(ToString::to_string),
            rules: Hook { rules: 2, drops: 1, ..Hook::default() },
            jumps: jumps.iter().map(ToString::to_string).collect(),
            ..Chain::default()
        };
        let id = |name: &str| (INET, "t".to_string(), name.to_string());
        let chains = [
            (id("base"), chain(Some("input"), &["a", "gone"])),
            (id("a"), chain(None, &["b"])),
            (id("b"), chain(None, &["a"])),
            (id("unused"), chain(None, &[])),
        ];
        let set = by_hook(&chains.into(), false);
        assert_eq!(set.rules, 8);
        assert_eq!((set.hooks["input"].rules, set.hooks["input"].drops), (6, 3));
    }

    #[test]
    fn real_rules_are_counted_where_packets_meet_them() {
        let test = "real_rules_are_counted_where_packets_meet_them";
        let namespace = match crate::netns::create() {
            Ok(namespace) => namespace,
            Err(error) => return println!("SKIPPED {test}: no network namespace can be made: {error}"),
        };
        let rules = "table inet t {
            chain in { type filter hook input priority 0; policy drop;
                numgen random mod 100 < 1 drop
                limit rate over 10 mbytes/second drop
                tcp dport 99 jump more
            }
            chain more { ip saddr 10.9.9.9 reject; accept; }
            chain nat { type nat hook output priority 0; accept; }
        }
        table bridge b {
            chain f { type filter hook forward priority 0; accept; }
        }";
        let fill = || {
            let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn()?;
            std::io::Write::write_all(&mut nft.stdin.take().expect("it is piped"), rules.as_bytes())?;
            nft.wait()
        };
        let set = crate::netns::run_in(&namespace, || {
            match fill() {
                Ok(status) => assert!(status.success(), "nft takes the rules"),
                Err(error) => return Err(format!("nft: {error} (install the package nftables)")),
            }
            Ok(ruleset().unwrap())
        });
        let set = match set {
            Ok(Ok(set)) => set,
            Ok(Err(reason)) => return println!("SKIPPED {test}: {reason}"),
            Err(error) => return println!("SKIPPED {test}: {error}"),
        };
        let input =
            Hook { rules: 5, drops: 3, rejects: 1, random: 1, limits: 1, off: 0, drops_the_rest: true };
        assert_eq!(set.hooks["input"], input);
        assert_eq!(set.hooks["bridge-forward"].rules, 1);
        assert!(!set.hooks.contains_key("output"), "address translation: {set:?}");
        assert_eq!((set.rules, set.only_counted), (7, false));
    }
}
