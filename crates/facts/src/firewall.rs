//! Facts `firewall.*`: how many rules packets meet on this host, and how many of them drop. Never a rule
//! itself: those name addresses and people. Rules that drop by chance or above a rate are settings: each can
//! be switched off where it stands.

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::netlink::NetlinkError;
use linerate_sys::nft_switch::{self, SWITCHES_MAX};
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

/// Name of a rule in a key: `random_rule.0a1b2c3d-2`.
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
                "Whether a rule that drops by chance is in force; named by a number of its chain, made of the names of table and chain, and its position there (from 0).",
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
    let only_counted = format!("more than {RULES_MAX} rules: only counted");
    if set.only_counted {
        out.gap("firewall.*.drops", &only_counted);
    }
    if !names_all_switches(set) {
        let only_named = format!("only {SWITCHES_MAX} rules can be switched");
        let reason = if set.only_counted { &only_counted } else { &only_named };
        for (head, _) in SWITCHES {
            out.gap(format!("{head}*"), reason);
        }
    }
}

/// Whether every rule that can be switched has a name: then one without is not there.
fn names_all_switches(set: &Ruleset) -> bool {
    !set.only_counted && set.switches.len() < SWITCHES_MAX
}

impl Setting for Firewall {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let name = name_of(key)?;
        let set = root.answer("firewall", || Ok(ask(root)?))?;
        // What is not there drops nothing.
        let absent = names_all_switches(&set).then_some(false);
        set.switches.get(name).copied().or(absent).map(FactValue::Flag).ok_or_else(|| lacks(name))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let (name, on) = (name_of(key)?, flag_of(value)?);
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        if nft_switch::set(name, on)? || !on { Ok(()) } else { Err(lacks(name)) }
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let impossible = |reason: &str| Persist::Impossible { reason: reason.to_owned() };
        if value != &FactValue::Flag(false) {
            return impossible("the configuration that makes the rule decides");
        }
        let Ok(Some((family, table, chain, position))) = name_of(key).map(nft_switch::position_of) else {
            return impossible("its chain is gone, or its table has a name that cannot stand in a command");
        };
        let word = SWITCHES.iter().find(|(head, _)| key.starts_with(head)).map_or("", |(_, word)| word);
        // Handles of rules change with every boot, positions do not; what is there must still be such a rule.
        let chain = format!("{family} {table} {chain}");
        let pick = format!(
            "grep \"# handle\" | grep -v \"{{ # handle\" | sed -n \"{}p\" | grep -E \"{word}\" | grep -v \"meta length 0 \"",
            position + 1
        );
        // As it is switched off at once: where it stands, so that those behind it keep their positions. What
        // nft cannot read back, a rule of iptables, is deleted.
        let off = format!(
            "/usr/sbin/nft \"replace rule {chain} handle $$h meta length 0 $${{r%% # handle *}}\" || /usr/sbin/nft delete rule {chain} handle $$h"
        );
        let command = format!(
            "/bin/sh -c 'r=$$(/usr/sbin/nft -a list chain {chain} | {pick}); h=$${{r##*# handle }}; [ -z \"$$r\" ] || {off}'"
        );
        unit(key, "a rule of the firewall is switched off", command)
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
        assert_eq!(facts.value_of(RULE), None, "it may be one of them");
    }

    const RULE: &str = "firewall.random_rule.0a1b2c3d-0";

    #[test]
    fn a_rule_that_is_not_there_is_off_where_all_were_named() {
        let value = |count: usize| {
            let switches = (0..count).map(|at| (format!("limit_rule.0a1b2c3d-{at}"), true)).collect();
            let mut out = Readings::default();
            put(&Ruleset { switches, ..Ruleset::default() }, &mut out);
            out.finish().value_of(RULE)
        };
        assert_eq!(value(0), Some(FactValue::Flag(false)));
        assert_eq!(value(SWITCHES_MAX - 1), Some(FactValue::Flag(false)));
        assert_eq!(value(SWITCHES_MAX), None, "there may be more than those");
    }

    #[test]
    fn rules_that_may_not_be_read_have_no_state() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::recorded(folder.path());
        let mut out = Readings::default();
        Fact::read(&Firewall, &View::new(&root, None, &[]), &mut out);
        assert_eq!(out.finish().value_of(RULE), None);
        assert!(Setting::read(&Firewall, &root, RULE).is_err());
    }
}
