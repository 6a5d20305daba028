//! Policy rules and forwarding entries are written, undone and read again in a network namespace of their
//! own, with all that their words leave out.

use std::collections::BTreeSet;

use linerate_model::fact::FactValue;

use super::conformance_tests::{conforms, in_fresh_namespace, ip, run, there_and_back};
use super::setting_for;

#[test]
fn policy_rules_are_removed_changed_and_put_back_in_their_order() {
    let test = "policy_rules_are_removed_changed_and_put_back_in_their_order";
    in_fresh_namespace(test, |root| {
        for arguments in [
            "rule add from 10.9.0.1 lookup 77 priority 100 protocol 99",
            "rule add from 10.9.0.0/24 to 10.8.0.0/16 fwmark 0x10/0xff iif left lookup 77 priority 100",
            "rule add ipproto tcp dport 80 lookup 78 priority 100",
            "rule add from all lookup 76 priority 100",
            "rule add not from 10.9.0.2 goto 32766 priority 90",
            "rule add from 10.9.0.9 prohibit priority 90",
            "-6 rule add from fd09::/64 lookup 77 suppress_prefixlength 0 priority 100",
            "-6 rule add from all lookup 79 priority 100",
        ] {
            ip(arguments).unwrap();
        }
        let (v4, v6) = ("ip -details rule show", "ip -6 -details rule show");
        let marked = "rule.100.from-10/9/0/0-24-to-10/8/0/0-16-fwmark-0x10-0xff-iif-left";
        for (key, to, shown) in [
            ("rule.100.from-10/9/0/1-32", "none", v4),
            ("rule.100.from-10/9/0/1-32", "100: from 10.9.0.1/32 lookup main suppress_prefixlength 0", v4),
            ("rule.100.from-10/9/0/1-32", "100: from 10.9.0.1/32 unreachable", v4),
            (marked, "none", v4),
            ("rule.100.from-all-dport-ipproto", "none", v4),
            ("rule.100.from-all-dport-ipproto", "100: from all dport ipproto lookup main", v4),
            // What a program without the order of the rules would ask for fits the first of them, too.
            ("rule.100.from-all", "none", v4),
            ("rule.90.not-from-10/9/0/2-32", "none", v4),
            ("rule.90.from-10/9/0/9-32", "90: from 10.9.0.9/32 lookup 4000000", v4),
            ("rule.90.from-10/9/0/7-32", "90: from 10.9.0.7/32 lookup 77", v4),
            ("rule.100.from-fd09::-64", "none", v6),
            ("rule.100.from-all6", "100: from all6 lookup main", v6),
        ] {
            let (before, changed, after) = there_and_back(key, to, shown);
            assert_ne!(before, changed, "{key} {to}");
            assert_eq!(before, after, "{key} {to}");
            let lines = before.lines().filter(|line| !changed.contains(line)).count();
            assert!(lines <= 1, "only the one rule is touched: {before} {changed}");
        }
        conforms(root, marked, &FactValue::Text("none".into()));
        let refuses = |key: &str, value: &str| {
            let (setting, value) = (setting_for(key).unwrap(), FactValue::Text(value.into()));
            setting.check(root, key, &value).and_then(|()| setting.write(root, key, &value)).unwrap_err()
        };
        for (key, value) in [
            ("rule.0.from-all", "none"),
            ("rule.32766.from-all", "32766: from all lookup 77"),
            (marked, "100: from all lookup 77"),
            ("rule.100.from-all", "101: from all lookup 77"),
            ("rule.100.from-all", "100: from all lookup 77; reboot"),
            ("rule.100.from-all-sport", "100: from all sport lookup 77"),
            ("rule_exact.100", "0123"),
            ("rule_exact.0", "none"),
        ] {
            refuses(key, value);
        }
        ip("rule add from all lookup main suppress_prefixlength 0 priority 100").unwrap();
        assert!(refuses("rule.100.from-all", "none").to_string().contains("one of several rules"));
    });
}

/// Runs `bridge`, or prints why not.
fn bridge(test: &str, arguments: &str) -> Option<()> {
    run("bridge", arguments).map_err(|reason| println!("SKIPPED {test}: {reason}")).ok()
}

#[test]
fn an_entry_of_a_tunnel_is_removed_moved_and_put_back() {
    let test = "an_entry_of_a_tunnel_is_removed_moved_and_put_back";
    in_fresh_namespace(test, |root| {
        ip("address add 10.9.0.1/24 dev left").unwrap();
        if let Err(reason) = ip("link add vx0 type vxlan id 7 dev left dstport 4789 nolearning") {
            return println!("SKIPPED {test}: {reason}");
        }
        for entry in [
            "fdb add 02:00:00:00:00:07 dev vx0 dst 10.9.0.7 port 4790 vni 9 self permanent",
            "fdb add 02:00:00:00:00:08 dev vx0 dst 10.9.0.8 self static",
            "fdb append 00:00:00:00:00:00 dev vx0 dst 10.9.0.7 self permanent",
            "fdb append 00:00:00:00:00:00 dev vx0 dst 10.9.0.8 self permanent",
        ] {
            if bridge(test, entry).is_none() {
                return;
            }
        }
        let shown = "bridge -details fdb show dev vx0";
        let sorted = |text: String| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        for (key, to) in [
            ("nic.vx0.fdb.02:00:00:00:00:07", "none"),
            ("nic.vx0.fdb.02:00:00:00:00:07", "10.9.0.9"),
            ("nic.vx0.fdb.02:00:00:00:00:08", "none"),
            ("nic.vx0.fdb.02:00:00:00:00:08", "10.9.0.9"),
            ("nic.vx0.fdb.02:00:00:00:00:09", "10.9.0.9"),
            ("nic.vx0.fdb.00:00:00:00:00:00", "10.9.0.7"),
            ("nic.vx0.fdb.00:00:00:00:00:00", "10.9.0.7 10.9.0.8 10.9.0.9"),
            ("nic.vx0.fdb.00:00:00:00:00:00", "none"),
        ] {
            let (before, changed, after) = there_and_back(key, to, shown);
            let (before, changed, after) = (sorted(before), sorted(changed), sorted(after));
            assert_ne!(before, changed, "{key} {to}");
            assert_eq!(before, after, "{key} {to}");
        }
        let (before, changed, _) = there_and_back("nic.vx0.fdb.02:00:00:00:00:07", "10.9.0.9", shown);
        assert!(before.contains("dst 10.9.0.7 port 4790 vni 9"), "{before}");
        assert!(changed.contains("dst 10.9.0.9 port 4790 vni 9"), "only the end is another one: {changed}");
        let key = "nic.vx0.fdb.02:00:00:00:00:07";
        conforms(root, key, &FactValue::Text("none".into()));
        for wrong in ["10.9.0.7 10.9.0.8", "port x", "x", "0.0.0.0", ""] {
            let value = FactValue::Text(wrong.into());
            assert!(setting_for(key).unwrap().write(root, key, &value).is_err(), "{wrong}");
        }
    });
}

#[test]
fn an_entry_of_a_bridge_is_removed_moved_and_put_back_in_all_vlans() {
    let test = "an_entry_of_a_bridge_is_removed_moved_and_put_back_in_all_vlans";
    in_fresh_namespace(test, |root| {
        if let Err(reason) = ip("link add br0 type bridge") {
            return println!("SKIPPED {test}: {reason}");
        }
        for arguments in ["link set left master br0", "link set right master br0"] {
            ip(arguments).unwrap();
        }
        if bridge(test, "fdb add 02:00:00:00:00:07 dev left master static").is_none() {
            return;
        }
        let mut changes =
            vec![("nic.left.fdb.02:00:00:00:00:07", "none"), ("nic.right.fdb.02:00:00:00:00:09", "port")];
        match run("bridge", "fdb add 02:00:00:00:00:08 dev left vlan 1 master static sticky") {
            Ok(()) => changes.push(("nic.left.fdb.02:00:00:00:00:08@1", "none")),
            Err(reason) => println!("SKIPPED {test}: hardware: no VLANs in bridges of this kernel: {reason}"),
        }
        let sorted = |text: String| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        for (key, to) in changes {
            let (before, changed, after) = there_and_back(key, to, "bridge fdb show br br0");
            let (before, changed, after) = (sorted(before), sorted(changed), sorted(after));
            assert_ne!(before, changed, "{key} {to}");
            assert_eq!(before, after, "{key} {to}");
        }
        conforms(root, "nic.left.fdb.02:00:00:00:00:07", &FactValue::Text("none".into()));
        // A wrong port is corrected in two steps, and an undo goes them back.
        let (wrong, right) = ("nic.left.fdb.02:00:00:00:00:07", "nic.right.fdb.02:00:00:00:00:07");
        let (none, port) = (FactValue::Text("none".into()), FactValue::Text("port".into()));
        let refused = setting_for(right).unwrap().write(root, right, &port).unwrap_err();
        assert!(refused.to_string().contains("another port"), "{refused}");
        setting_for(wrong).unwrap().write(root, wrong, &none).unwrap();
        setting_for(right).unwrap().write(root, right, &port).unwrap();
        assert_eq!(setting_for(right).unwrap().read(root, right), Ok(port));
    });
}
