//! Facts `firewall.*`: how many rules packets meet on this host, and how many of them drop. Never a rule
//! itself: those name addresses and people.

use linerate_model::fact::FactDecl;
use linerate_sys::netlink::NetlinkError;
use linerate_sys::nftables::{self, RULES_MAX, Ruleset};
use linerate_sys::root::Root;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::View;

/// The topic.
pub(super) struct Firewall;

impl Fact for Firewall {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact("firewall.rules", "count", "Rules of nftables, in all chains."),
            fact(
                "firewall.*.rules",
                "count",
                "Rules that a packet may have to pass at a point (input, forward, output, prerouting, postrouting, ingress; bridge-… in \
                 bridges; …6 for IPv6), without address translation.",
            ),
            fact("firewall.*.drops", "count", "Rules there that drop or reject."),
            fact("firewall.*.rejects", "count", "Rules there that reject: the sender gets an error."),
            fact("firewall.*.random", "count", "Rules there that drop by chance."),
            fact("firewall.*.limits", "count", "Rules there that hold up to or above a rate."),
            fact("firewall.*.policy", "text", "drop, where what no rule accepts is dropped; else accept."),
        ]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        match view.root.answer("firewall", || Ok(ask(view.root)?)) {
            Ok(set) => put(&set, out),
            Err(reason) => out.gap("firewall.*", &reason),
        }
        if let Ok(tables) = view.root.read("/proc/net/ip_tables_names")
            && !tables.trim().is_empty()
        {
            out.gap("firewall.*", "rules of the old iptables (iptables-legacy) are not counted");
        }
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
        nftables::ruleset()
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
    if set.only_counted {
        out.gap("firewall.*.drops", &format!("more than {RULES_MAX} rules: only counted"));
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
