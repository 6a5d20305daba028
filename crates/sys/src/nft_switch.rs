//! Rules of nftables that are switched off and on again where they stand.
//!
//! In: the name of a rule: what it does, a number of its chain, its position there. Out:
//! whether it is in force. A rule that is off stays where it is with all its parts, behind a condition that
//! no packet meets (a length of 0), and goes back on by losing it: nothing has to be remembered. The kernel
//! takes each exchange as a whole or not at all. It never decides which rule is wrong.

use std::collections::BTreeMap;

use crate::netlink::{NLM_F_REPLACE, NetlinkError, Payload, Socket, attribute, attributes};
use crate::nftables::{
    ChainId, EQUAL, GET_RULE, META_LENGTH, NETFILTER, REGISTER, RULES_MAX, SUBSYSTEM, chain_ids, is_off,
    meaning, parse_rule,
};

const NEW_RULE: u16 = SUBSYSTEM | 6;
/// Messages around a change, with the subsystem in their header.
const BATCH: (u16, u16) = (16, 17);
const BATCH_HEADER: [u8; 4] = [0, 0, 0, 10];

/// Attributes of a rule: table, chain, number, parts, comment.
const TABLE: u16 = 1;
const CHAIN: u16 = 2;
const HANDLE: u16 = 3;
const PARTS: u16 = 4;
const COMMENT: u16 = 7;
/// Most rules that are offered; of one that is not among so many, nothing is known.
pub const SWITCHES_MAX: usize = 64;

/// A rule that can be switched.
struct Switch {
    name: String,
    is_on: bool,
    message: Vec<u8>,
}

/// Family, table, chain and position of a rule in the words of nft(8), whether or not it is there; `None`
/// when its chain is gone, or a name is not made of letters, digits, `-` and `_`.
pub fn position_of(name: &str) -> Option<(&'static str, String, String, usize)> {
    const FAMILIES: [(u8, &str); 5] = [(1, "inet"), (2, "ip"), (5, "netdev"), (7, "bridge"), (10, "ip6")];
    let ((family, table, chain), position) = chain_of(name).ok()??;
    let (_, family) = FAMILIES.iter().find(|(number, _)| *number == family)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_plain = table.chars().all(plain) && chain.chars().all(plain);
    is_plain.then_some((*family, table, chain, position))
}

/// Chain and position of a rule by its name.
fn chain_of(name: &str) -> Result<Option<(ChainId, usize)>, NetlinkError> {
    let parts = name.split_once('.').and_then(|(_, rest)| rest.split_once('-'));
    let Some((number, Ok(position))) = parts.map(|(number, position)| (number, position.parse())) else {
        return Ok(None);
    };
    let chains = chain_ids(&mut Socket::open(NETFILTER)?)?;
    Ok(chains.into_iter().find(|id| number_of(id) == number).map(|id| (id, position)))
}

/// A number that a chain keeps over a reload and a boot, made of the names, which stay on the host: those of
/// the kernel count on (FNV-1a).
fn number_of((family, table, chain): &ChainId) -> String {
    let bytes = [*family].into_iter().chain(table.bytes()).chain([0]).chain(chain.bytes());
    let number =
        bytes.fold(0x811c_9dc5_u32, |number, byte| (number ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{number:08x}")
}

/// Rules that can be switched, with whether they are in force.
pub fn names() -> Result<BTreeMap<String, bool>, NetlinkError> {
    let mut socket = Socket::open(NETFILTER)?;
    Ok(switches(&mut socket)?.into_iter().map(|s| (s.name, s.is_on)).collect())
}

/// Switches a rule; `false` when there is none of this name.
pub fn set(name: &str, on: bool) -> Result<bool, NetlinkError> {
    let mut socket = Socket::open(NETFILTER)?;
    let Some(switch) = switches(&mut socket)?.into_iter().find(|s| s.name == name) else { return Ok(false) };
    if switch.is_on != on
        && let Some(rule) = switched(&switch.message, on)
    {
        let frame = (BATCH.0, BATCH.1, &Payload::new(&BATCH_HEADER));
        socket.transaction(NEW_RULE, NLM_F_REPLACE, &rule, frame)?;
    }
    Ok(true)
}

fn switches(socket: &mut Socket) -> Result<Vec<Switch>, NetlinkError> {
    let mut positions: BTreeMap<ChainId, Vec<u64>> = BTreeMap::new();
    let mut found: Vec<Switch> = Vec::new();
    let mut seen = 0;
    socket.dump(GET_RULE, &Payload::new(&[0; 4]), |message| {
        seen += 1;
        let Some((id, handle, _, _)) = parse_rule(message.payload).filter(|_| seen <= RULES_MAX) else {
            return;
        };
        let above = positions.entry(id.clone()).or_default();
        // A dump that was contended comes again from its beginning.
        if above.contains(&handle) {
            return;
        }
        let position = above.len();
        above.push(handle);
        if let Some(kind) = kind_of(&message.payload[4..])
            && found.len() < SWITCHES_MAX
        {
            let name = format!("{kind}.{}-{position}", number_of(&id));
            let (is_on, message) = (!is_off(&message.payload[4..]), message.payload.to_vec());
            found.push(Switch { name, is_on, message });
        }
    })?;
    Ok(found)
}

/// What a rule does, whether or not it is in force; `None` for rules that are not offered.
fn kind_of(body: &[u8]) -> Option<&'static str> {
    let (rule, _) = meaning(body);
    match (rule.random > 0, rule.drops > 0 && rule.limits > 0) {
        (true, _) => Some("random_rule"),
        (_, true) => Some("limit_rule"),
        _ => None,
    }
}

/// The condition that no packet meets.
fn never() -> [Payload; 2] {
    let number = |p: Payload, kind: u16, value: u32| p.bytes(kind, &value.to_be_bytes());
    let load = number(number(Payload::default(), 1, REGISTER), 2, META_LENGTH);
    let value = Payload::default().bytes(1, &0_u32.to_ne_bytes());
    let compare = number(number(Payload::default(), 1, REGISTER), 2, EQUAL).nest(3, &value);
    [("meta", load), ("cmp", compare)].map(|(name, data)| Payload::default().text(1, name).nest(2, &data))
}

/// The message that exchanges a rule for itself, off or on.
fn switched(message: &[u8], on: bool) -> Option<Payload> {
    let body = message.get(4..)?;
    let mut parts = Payload::default();
    for part in if on { Vec::new() } else { never().to_vec() } {
        parts = parts.nest(1, &part);
    }
    let skipped = if on { 2 } else { 0 };
    for part in attribute(body, PARTS)?.nested().skip(skipped) {
        parts = parts.bytes(1 | 0x8000, part.data);
    }
    let header = [*message.first()?, 0, 0, 10];
    let mut rule = Payload::new(&header);
    for a in attributes(body).filter(|a| [TABLE, CHAIN, HANDLE, COMMENT].contains(&a.kind)) {
        rule = rule.bytes(a.kind, a.data);
    }
    Some(rule.nest(PARTS, &parts))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (is_off(&bytes), kind_of(&bytes), switched(&bytes, true), switched(&bytes, false));
        }
    }

    const RULES: &str = "table inet t {
        set peers { type ipv4_addr; }
        chain in { type filter hook input priority 0;
            ip saddr @peers accept
            numgen random mod 100 < 3 counter drop comment \"a test\"
            tcp dport 99 drop
            limit rate over 10 mbytes/second burst 1000 kbytes drop
        }
    }";

    fn nft(arguments: &[&str], text: &str) -> Result<String, String> {
        let missing = |error: std::io::Error| format!("nft: {error} (install the package nftables)");
        let mut nft = Command::new("nft")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(missing)?;
        std::io::Write::write_all(&mut nft.stdin.take().expect("it is piped"), text.as_bytes()).unwrap();
        let output = nft.wait_with_output().map_err(missing)?;
        assert!(output.status.success(), "nft {arguments:?}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    #[test]
    fn a_rule_is_off_where_it_stands_and_comes_back_as_it_was() {
        let test = "a_rule_is_off_where_it_stands_and_comes_back_as_it_was";
        let namespace = match crate::netns::create() {
            Ok(namespace) => namespace,
            Err(error) => return println!("SKIPPED {test}: no network namespace can be made: {error}"),
        };
        let done = crate::netns::run_in(&namespace, || {
            nft(&["-f", "-"], RULES)?;
            let before = nft(&["list", "ruleset"], "")?;
            let all = names().unwrap();
            let keys: Vec<&String> = all.keys().collect();
            assert!(keys[0].starts_with("limit_rule.") && keys[0].ends_with("-3"), "{all:?}");
            assert!(keys[1].starts_with("random_rule.") && keys[1].ends_with("-1"), "{all:?}");
            for name in all.keys() {
                assert!(set(name, false).unwrap());
                assert_eq!(names().unwrap().get(name), Some(&false));
            }
            let off = nft(&["list", "ruleset"], "")?;
            assert_eq!(off.matches("meta length 0 ").count(), 2, "{off}");
            let counted = crate::nftables::ruleset().unwrap();
            assert_eq!((counted.hooks["input"].random, counted.hooks["input"].limits), (0, 0));
            assert_eq!((counted.hooks["input"].off, counted.hooks["input"].rules), (2, 4));
            for name in all.keys() {
                assert!(set(name, true).unwrap());
            }
            assert_eq!(nft(&["list", "ruleset"], "")?, before, "exactly as it was");
            assert!(!set("random_rule.9-9", true).unwrap());
            // Where a rule stood is known as long as its chain is there.
            let (family, table, chain, at) = position_of(keys[1]).unwrap();
            assert_eq!((family, &*table, &*chain, at), ("inet", "t", "in", 1));
            nft(&["flush", "chain", "inet", "t", "in"], "")?;
            assert_eq!((names().unwrap().len(), position_of(keys[1]).is_some()), (0, true));
            // Made anew, all have the same names.
            nft(&["flush", "ruleset"], "")?;
            assert_eq!(position_of(keys[1]), None);
            nft(&["-f", "-"], RULES)?;
            assert_eq!(names().unwrap(), all);
            assert_eq!((position_of("random_rule.9-9"), position_of("random_rule.x")), (None, None));
            Ok(())
        });
        match done {
            Ok(Ok(())) => {}
            Ok(Err::<(), String>(reason)) => println!("SKIPPED {test}: {reason}"),
            Err(error) => println!("SKIPPED {test}: {error}"),
        }
    }
}
