//! Facts `firewall.*`: how many rules packets meet on this host, and how many of them drop. Never a rule
//! itself: those name addresses and people. Rules that drop by chance or above a rate are settings: each can
//! be switched off where it stands.

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::netlink::NetlinkError;
use linerate_sys::nft_switch;
use linerate_sys::nftables::{self, RULES_MAX, Ruleset};
use linerate_sys::root::{ReadError, Root};

use super::boot::unit;
use super::fact::Fact;
use super::firewall_legacy;
use super::readings::{Readings, fact, flag_of, setting};
use super::view::View;
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Firewall;

/// Kinds of rules that can be switched, with a word that each has in the list of nft(8).
const SWITCHES: [(&str, &str); 2] =
    [("firewall.random_rule.", "numgen|statistic|random"), ("firewall.limit_rule.", "limit")];

pub(super) fn is_setting(key: &str) -> bool {
    SWITCHES.iter().any(|(head, _)| key.strip_prefix(head).is_some_and(|rest| !rest.is_empty()))
}

/// Name of a rule in a key: `random_rule.3-1-2`.
fn name_of(key: &str) -> Result<&str, SettingError> {
    let name = key.strip_prefix("firewall.").filter(|_| is_setting(key));
    name.ok_or(SettingError::NotAKey("not a key of a rule"))
}

fn lacks(name: &str) -> SettingError {
    SettingError::Lacks { device: "the firewall".to_owned(), what: format!("rule {name}") }
}

impl Fact for Firewall {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact("firewall.rules", "count", "Rules of nftables, in all chains."),
            fact(
                "firewall.*.rules",
                "count",
                "Rules that a packet may have to pass at a point (input, forward, output, prerouting, postrouting, ingress; bridge-… in \
                 bridges; legacy-… of the old iptables; …6 for IPv6), without address translation.",
            ),
            fact("firewall.*.drops", "count", "Rules there that drop or reject."),
            fact("firewall.*.rejects", "count", "Rules there that reject: the sender gets an error."),
            fact("firewall.*.random", "count", "Rules there that drop by chance."),
            fact("firewall.*.limits", "count", "Rules there that hold up to or above a rate."),
            setting(
                "firewall.random_rule.*",
                "flag",
                "Whether a rule that drops by chance is in force; named by the numbers of its table, its chain and its position there (from 0).",
            ),
            setting("firewall.limit_rule.*", "flag", "The same of a rule that drops above a rate."),
            firewall_legacy::declaration(),
            fact("firewall.*.policy", "text", "drop, where what no rule accepts is dropped; else accept."),
        ]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        match view.root.answer("firewall", || Ok(ask(view.root)?)) {
            Ok(set) => put(&set, out),
            Err(reason) => out.gap("firewall.*", &reason),
        }
        firewall_legacy::read(view.root, out);
    }
}

/// Asking a kernel whose module is not loaded would load it.
fn ask(root: &Root) -> Result<Ruleset, NetlinkError> {
    let loaded = match root.read("/proc/modules") {
        Ok(modules) => modules.lines().any(|line| line.starts_with("nf_tables ")),
        // A kernel without modules has it or has not.
        Err(_) => true,
    };
    if loaded || root.list("/sys/module/nf_tables").is_ok() {
        let mut set = nftables::ruleset()?;
        if set.has_switches() {
            set.switches = nft_switch::names()?;
        }
        Ok(set)
    } else {
        Ok(Ruleset::default())
    }
}

fn put(set: &Ruleset, out: &mut Readings) {
    out.int("firewall.rules", set.rules);
    for (name, hook) in &set.hooks {
        let head = format!("firewall.{name}");
        out.int(format!("{head}.rules"), hook.rules);
        out.text(format!("{head}.policy"), if hook.drops_the_rest { "drop" } else { "accept" });
        if !set.only_counted {
            out.int(format!("{head}.drops"), hook.drops);
            out.int(format!("{head}.rejects"), hook.rejects);
            out.int(format!("{head}.random"), hook.random);
            out.int(format!("{head}.limits"), hook.limits);
        }
    }
    for (name, on) in &set.switches {
        out.flag(format!("firewall.{name}"), *on);
    }
    if set.only_counted {
        out.gap("firewall.*.drops", &format!("more than {RULES_MAX} rules: only counted"));
    }
}

impl Setting for Firewall {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let name = name_of(key)?;
        let set = root.answer("firewall", || Ok(ask(root)?))?;
        set.switches.get(name).map(|on| FactValue::Flag(*on)).ok_or_else(|| lacks(name))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let (name, on) = (name_of(key)?, flag_of(value)?);
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        if nft_switch::set(name, on)? { Ok(()) } else { Err(lacks(name)) }
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let impossible = |reason: &str| Persist::Impossible { reason: reason.to_owned() };
        if value != &FactValue::Flag(false) {
            return impossible("the configuration that makes the rule decides");
        }
        let Ok(Some((family, table, chain, position))) = name_of(key).map(nft_switch::position_of) else {
            return impossible("the rule is gone, or its table has a name that cannot stand in a command");
        };
        let word = SWITCHES.iter().find(|(head, _)| key.starts_with(head)).map_or("", |(_, word)| word);
        // Numbers of rules change with every boot, positions do not; what is there must still be such a rule.
        let chain = format!("{family} {table} {chain}");
        let pick = format!(
            "grep \"# handle\" | grep -v \"{{ # handle\" | sed -n \"{}p\" | grep -E \"{word}\" | sed \"s/.*# handle //\"",
            position + 1
        );
        let command = format!(
            "/bin/sh -c 'h=$$(/usr/sbin/nft -a list chain {chain} | {pick}); [ -z \"$$h\" ] || /usr/sbin/nft delete rule {chain} handle $$h'"
        );
        unit(key, "a rule of the firewall is left out", command)
    }
}

#[cfg(test)]
mod tests {
    use linerate_sys::nftables::Hook;

    use super::*;

    #[test]
    fn too_many_rules_are_counted_and_the_rest_is_a_gap() {
        let mut set = Ruleset { rules: 90_000, only_counted: true, ..Ruleset::default() };
        set.hooks.insert("input".into(), Hook { rules: 90_000, ..Hook::default() });
        let mut out = Readings::default();
        put(&set, &mut out);
        let facts = out.finish();
        let keys: Vec<&str> = facts.readings.keys().map(String::as_str).collect();
        assert_eq!(keys, ["firewall.input.policy", "firewall.input.rules", "firewall.rules"]);
        assert!(facts.gaps.iter().any(|g| g.what == "firewall.*.drops".into()));
    }
}
