//! Rules of the old iptables (`iptables-legacy`), which nftables does not list. The kernel names its tables
//! in a file of `/proc`; the rules are known to its own program alone.
//!
//! In: the names, and what `iptables-legacy-save` prints, where it is installed and may run. Out: counts by
//! hook, as of the other rules. Never a rule itself, and nothing is started where the kernel has no such
//! table: that would load a module.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_model::step::legacy_rules;
use linerate_sys::nftables::Hook;
use linerate_sys::root::{ReadError, Root};

use super::readings::{Readings, fact};
use crate::run;

/// How long the program may take: it asks the kernel and ends.
const LIMIT: Duration = Duration::from_secs(10);
/// Versions of the protocol: the file with the names of tables, what a hook is called, whether it is IPv6.
const VERSIONS: [(&str, &str, bool); 2] =
    [("/proc/net/ip_tables_names", "", false), ("/proc/net/ip6_tables_names", "6", true)];
/// Chains that packets meet by themselves, with their hook.
const BUILT_IN: [(&str, &str); 5] = [
    ("INPUT", "input"),
    ("FORWARD", "forward"),
    ("OUTPUT", "output"),
    ("PREROUTING", "prerouting"),
    ("POSTROUTING", "postrouting"),
];
/// Table without rules that a packet has to pass.
const TRANSLATION: &str = "nat";

pub(super) fn declaration() -> FactDecl {
    fact(
        "firewall.legacy_tables*",
        "list",
        "Tables of the old iptables (iptables-legacy; 6 for IPv6); its rules are those of the points legacy-input, legacy-forward, …",
    )
}

/// Reads what there is.
pub(super) fn read(root: &Root, out: &mut Readings) {
    for (file, suffix, is_ipv6) in VERSIONS {
        let tables: Vec<String> = match root.read(file) {
            Ok(names) => names.split_whitespace().map(str::to_owned).collect(),
            Err(ReadError::Denied) => {
                out.gap("firewall.legacy-*", &format!("{file}: permission denied, not seen"));
                continue;
            }
            Err(_) => continue,
        };
        if tables.is_empty() {
            continue;
        }
        out.put(format!("firewall.legacy_tables{suffix}"), FactValue::List(tables.clone()));
        let asked = root.answer(&format!("iptables_legacy{suffix}"), || {
            // A recorded tree keeps the counts, and no rule.
            printed(is_ipv6).map(|text| hooks(&text)).map_err(ReadError::Other)
        });
        match asked {
            Ok(hooks) => put(&hooks, suffix, out),
            Err(reason) => {
                let tables = tables.join(", ");
                out.gap(
                    "firewall.legacy-*",
                    &format!("rules of the old iptables ({tables}) not seen: {reason}"),
                );
            }
        }
    }
}

/// What the program prints, by the first of its paths that is there.
fn printed(is_ipv6: bool) -> Result<String, String> {
    let commands = legacy_rules(is_ipv6);
    let installed = commands.iter().find(|argv| argv.first().is_some_and(|path| Path::new(path).exists()));
    let Some(argv) = installed else {
        let name = commands.first().and_then(|argv| argv.first()?.rsplit('/').next()).unwrap_or_default();
        return Err(format!("{name} is not installed"));
    };
    match run::run(argv, LIMIT, run::Until::Limit) {
        Ok(Some(seen)) if seen.is_good() => Ok(seen.out),
        Ok(Some(seen)) => Err(format!("{}: {}", argv.join(" "), seen.err.trim().replace('\n', "; "))),
        Ok(None) => Err(format!("{} did not end within {} s", argv.join(" "), LIMIT.as_secs())),
        Err(error) => Err(format!("{}: {error}", argv.join(" "))),
    }
}

fn put(hooks: &BTreeMap<String, Hook>, suffix: &str, out: &mut Readings) {
    for (name, hook) in hooks {
        let head = format!("firewall.legacy-{name}{suffix}");
        out.int(format!("{head}.rules"), hook.rules);
        out.int(format!("{head}.drops"), hook.drops);
        out.int(format!("{head}.rejects"), hook.rejects);
        out.int(format!("{head}.random"), hook.random);
        out.int(format!("{head}.limits"), hook.limits);
        out.text(format!("{head}.policy"), if hook.drops_the_rest { "drop" } else { "accept" });
    }
}

/// A chain of one table.
#[derive(Default)]
struct Chain {
    rules: Hook,
    jumps: BTreeSet<String>,
}

/// Counts by hook: rules of the chains there, and of those that they lead to.
fn hooks(text: &str) -> BTreeMap<String, Hook> {
    let mut found: BTreeMap<String, Hook> = BTreeMap::new();
    for table in text.split("\n*").map(|part| part.trim_start_matches('*')) {
        let mut lines = table.lines().skip_while(|line| line.starts_with('#') || line.is_empty());
        let name = lines.next().unwrap_or_default().trim_start_matches('*').trim();
        if name == TRANSLATION {
            continue;
        }
        let mut chains: BTreeMap<&str, Chain> = BTreeMap::new();
        for line in lines {
            if let Some((chain, policy)) = line.strip_prefix(':').and_then(|rest| rest.split_once(' ')) {
                chains.entry(chain).or_default().rules.drops_the_rest = policy.starts_with("DROP");
            } else {
                add_rule(line, &mut chains);
            }
        }
        for (chain, hook) in BUILT_IN {
            if chains.contains_key(chain) {
                found.entry(hook.to_owned()).or_default().add(&reached(chain, &chains));
            }
        }
    }
    found
}

/// A line `[12:720] -A INPUT -p tcp -m limit … -j DROP`; the count in front is there with `-c`.
fn add_rule<'a>(line: &'a str, chains: &mut BTreeMap<&'a str, Chain>) {
    let mut words = line.split_ascii_whitespace().skip_while(|word| word.starts_with('['));
    if words.next() != Some("-A") {
        return;
    }
    let Some(name) = words.next() else { return };
    let words: Vec<&str> = words.collect();
    let after = |option: &str| words.windows(2).find(|pair| pair[0] == option).map(|pair| pair[1]);
    let matches = |module: &str| words.windows(2).any(|pair| pair == ["-m", module]);
    let target = after("-j").or_else(|| after("-g")).unwrap_or_default();
    let drops = matches!(target, "DROP" | "REJECT");
    let chain = chains.entry(name).or_default();
    chain.rules.add(&Hook {
        rules: 1,
        drops: u64::from(drops),
        rejects: u64::from(target == "REJECT"),
        random: u64::from(drops && matches("statistic")),
        limits: u64::from(matches("limit") || matches("hashlimit")),
        ..Hook::default()
    });
    chain.jumps.insert(target.to_owned());
}

fn reached(first: &str, chains: &BTreeMap<&str, Chain>) -> Hook {
    let mut sum = Hook::default();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut open = vec![first];
    while let Some(name) = open.pop() {
        // Targets that are no chain are verdicts.
        let Some(chain) = chains.get(name).filter(|_| seen.insert(name)) else { continue };
        sum.add(&chain.rules);
        open.extend(chain.jumps.iter().map(String::as_str));
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PRINTED: &str = "# Generated by iptables-save v1.8.9 on Mon Nov 23 10:00:00 2026
*nat
:PREROUTING ACCEPT [5:300]
[0:0] -A PREROUTING -p tcp -j DROP
COMMIT
# Completed on Mon Nov 23 10:00:00 2026
*filter
:INPUT DROP [7:420]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [9:540]
:guard - [0:0]
[12:720] -A INPUT -i lo -j ACCEPT
[3:180] -A INPUT -p tcp -j guard
[1:60] -A guard -m statistic --mode random --probability 0.01000000000 -j DROP
[2:120] -A guard -m limit --limit 10/sec -j ACCEPT
[0:0] -A guard -j REJECT --reject-with icmp-port-unreachable
[0:0] -A guard -j INPUT
COMMIT
# Completed on Mon Nov 23 10:00:00 2026
";

    #[test]
    fn rules_are_counted_by_the_hook_from_which_packets_reach_them() {
        let found = hooks(PRINTED);
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["forward", "input", "output"], "address translation is left out");
        let input = &found["input"];
        assert_eq!((input.rules, input.drops, input.rejects), (6, 2, 1));
        assert_eq!((input.random, input.limits, input.drops_the_rest), (1, 1, true));
        assert_eq!(found["output"], Hook::default());
        let mut out = Readings::default();
        put(&found, "6", &mut out);
        let facts = out.finish();
        assert_eq!(
            facts.readings.get("firewall.legacy-input6.policy"),
            Some(&FactValue::Text("drop".into()))
        );
        assert_eq!(facts.readings.get("firewall.legacy-forward6.drops"), Some(&FactValue::Int(0)));
    }

    #[test]
    fn tables_without_their_program_are_a_gap_and_no_table_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let net = folder.path().join("proc/net");
        std::fs::create_dir_all(&net).unwrap();
        let read_here = || {
            let mut out = Readings::default();
            read(&Root::recorded(folder.path()), &mut out);
            out.finish()
        };
        std::fs::write(net.join("ip_tables_names"), "").unwrap();
        assert!(read_here().gaps.is_empty());
        std::fs::write(net.join("ip_tables_names"), "mangle\nfilter\n").unwrap();
        let facts = read_here();
        let tables = FactValue::List(vec!["mangle".into(), "filter".into()]);
        assert_eq!(facts.readings.get("firewall.legacy_tables"), Some(&tables));
        assert!(
            facts.gaps.iter().any(|g| g.reason.contains("(mangle, filter) not seen")),
            "{:?}",
            facts.gaps
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "[*:A-Z \\[\\]0-9\\-jgA\n]{0,300}") {
            let _ = hooks(&text);
        }
    }
}
