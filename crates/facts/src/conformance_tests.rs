//! Every setting is written, read, undone and read again in a network namespace of its own, on devices made
//! for it. Where this machine lacks the right or the device, the reason is printed and counted.

use std::process::Command;

use linerate_model::fact::FactValue;
use linerate_sys::netns;
use linerate_sys::root::Root;

use super::{qdisc, setting_for};
use crate::change::host::{ChangingHost as _, RealHost};
use crate::change::journal::Old;
use crate::change::setting::conformance::check;
use crate::change::setting::{Persist, Setting as _, SettingError};
use crate::change::undo::restore;

pub(super) fn ip(arguments: &str) -> Result<(), String> {
    run("ip", arguments)
}

pub(super) fn run(program: &str, arguments: &str) -> Result<(), String> {
    let output =
        Command::new(program).args(arguments.split(' ')).output().map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Runs a test on a thread in a fresh namespace with the veth pair `left`, `right`; otherwise prints why not.
pub(super) fn in_fresh_namespace(test: &str, work: impl FnOnce(&Root) + Send) {
    let namespace = match netns::create() {
        Ok(namespace) => namespace,
        Err(error) => return println!("SKIPPED {test}: no network namespace can be made: {error}"),
    };
    let result = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let gap = netns::enter_file_with_sysfs(&namespace).map_err(|e| e.to_string())?;
                if let Some(gap) = gap {
                    return Err(gap);
                }
                ip("link add left type veth peer name right")?;
                ip("link set left up")?;
                ip("link set right up")?;
                work(&Root::live());
                Ok(())
            })
            .join()
    });
    match result {
        Ok(Ok(())) => {}
        Ok(Err(reason)) => println!("SKIPPED {test}: {reason}"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

pub(super) fn conforms(root: &Root, key: &str, other: &FactValue) {
    check(setting_for(key).unwrap_or_else(|| panic!("{key} is no setting")), root, key, other);
}

#[test]
fn every_setting_is_written_and_undone() {
    in_fresh_namespace("every_setting_is_written_and_undone", |root| {
        let text = |t: &str| FactValue::Text(t.to_string());
        if let Err(reason) = ip("tuntap add dev tap0 mode tap") {
            println!("SKIPPED a device with coalescing: {reason}");
        }
        let mut checked = 0;
        let mut skipped = 0;
        let cases = [
            ("sysctl.net.ipv4.tcp_rmem", text("4096 65536 123456")),
            ("sysctl.net.ipv4.tcp_window_scaling", FactValue::Int(0)),
            ("sysctl.net.ipv4.conf.left.rp_filter", FactValue::Int(1)),
            ("nic.left.mtu", FactValue::Int(1400)),
            ("nic.left.txqueuelen", FactValue::Int(500)),
            ("nic.left.gso_max_segs", FactValue::Int(1)),
            ("nic.left.feature.tx-checksumming", FactValue::Flag(false)),
            ("nic.left.feature.scatter-gather", FactValue::Flag(false)),
            ("nic.left.feature.tcp-segmentation-offload", FactValue::Flag(false)),
            ("nic.left.feature.generic-segmentation-offload", FactValue::Flag(false)),
            ("nic.left.feature.generic-receive-offload", FactValue::Flag(true)),
            ("nic.left.channels.rx", FactValue::Int(2)),
            ("nic.left.channels.tx", FactValue::Int(2)),
            ("nic.left.qdisc", text("pfifo_fast")),
            ("nic.left.qdisc", text("tbf")),
            ("nic.left.queue.rx-0.rps_cpus", text("1")),
            ("nic.left.queue.rx-0.rps_flow_cnt", FactValue::Int(4096)),
            ("nic.left.ring.rx", FactValue::Int(128)),
            ("nic.tap0.coalesce.rx-frames", FactValue::Int(7)),
            ("nic.tap0.autoneg", FactValue::Flag(true)),
            ("cpu.governor", text("performance")),
        ];
        for (key, mut other) in cases {
            let setting = setting_for(key).unwrap_or_else(|| panic!("{key} is no setting"));
            match setting.read(root, key) {
                // Virtual devices have no rings, virtual machines no governor: the recorded trees stand in
                // for them.
                Err(reason) => {
                    println!("SKIPPED {key}: hardware: {reason}");
                    skipped += 1;
                }
                // In a user namespace some files of `/sys` want the rights of the real root.
                Ok(now)
                    if setting
                        .write(root, key, &now)
                        .is_err_and(|e| e.to_string().contains("permission denied")) =>
                {
                    println!("SKIPPED {key}: permission denied, needs the real root");
                    skipped += 1;
                }
                Ok(now) => {
                    if let (FactValue::Flag(on), true) = (&now, now == other) {
                        other = FactValue::Flag(!on);
                    }
                    if let (FactValue::Int(n), true) = (&now, now == other) {
                        other = FactValue::Int(i64::from(*n == 0));
                    }
                    conforms(root, key, &other);
                    checked += 1;
                }
            }
        }
        println!("{checked} settings checked, {skipped} skipped");
        assert!(checked >= 10, "only {checked}");
    });
}

#[test]
fn an_interrupt_goes_to_another_cpu_and_back() {
    let root = Root::live();
    let test = "an_interrupt_goes_to_another_cpu_and_back";
    let facts = super::read(&root, &["nic.".to_string()], &[]);
    // A timer or configuration interrupt that never comes would also do; the first of a device is enough.
    let found = facts.readings.iter().find(|(k, _)| k.ends_with(".affinity"));
    let Some((key, old)) = found else {
        return println!("SKIPPED {test}: hardware: no device with interrupts");
    };
    let other = FactValue::Text(if old.to_string() == "0" { "1" } else { "0" }.to_string());
    let setting = setting_for(key).unwrap();
    // Managed interrupts and missing rights refuse even their own value.
    if let Err(reason) = setting.write(&root, key, old) {
        return println!("SKIPPED {test}: hardware: {key}: {reason}");
    }
    if let Err(reason) = setting.write(&root, key, &other) {
        return println!("SKIPPED {test}: hardware: {key}: {reason}");
    }
    setting.write(&root, key, old).unwrap();
    conforms(&root, key, &other);
}

#[test]
fn a_token_bucket_comes_back_with_its_rate() {
    in_fresh_namespace("a_token_bucket_comes_back_with_its_rate", |root| {
        let shaper = "qdisc add dev left root handle 7: tbf rate 123mbit burst 128kb latency 20ms";
        if let Err(reason) = run("tc", shaper) {
            return println!("SKIPPED a_token_bucket_comes_back_with_its_rate: {reason}");
        }
        let prefixes = ["nic.left.".to_string()];
        let rate =
            |root: &Root| super::read(root, &prefixes, &[]).readings.get("nic.left.qdisc_rate_bit").cloned();
        assert_eq!(rate(root), Some(FactValue::Int(123_000_000)));
        let exact = qdisc::Qdiscs.read(root, "nic.left.qdisc_exact").unwrap();
        conforms(root, "nic.left.qdisc", &FactValue::Text("noqueue".into()));
        assert_eq!(qdisc::Qdiscs.read(root, "nic.left.qdisc_exact").unwrap(), exact);
        assert_eq!(rate(root), Some(FactValue::Int(123_000_000)));
    });
}

#[test]
fn a_token_bucket_gets_another_rate_and_its_own_parameters_back() {
    let test = "a_token_bucket_gets_another_rate_and_its_own_parameters_back";
    in_fresh_namespace(test, |root| {
        let shaper = "qdisc add dev left root handle 7: tbf rate 80mbit burst 64kb latency 20ms";
        if let Err(reason) = run("tc", shaper) {
            return println!("SKIPPED {test}: {reason}");
        }
        let host = RealHost::new(Root::live());
        let (key, exact) = ("nic.left.qdisc_rate_bit", "nic.left.qdisc_exact");
        assert_eq!(host.related(key), [exact]);
        let before = host.read(exact).unwrap();
        for rate in [800_000_000, 40_000_000_000, 8_000_000] {
            host.write(key, &FactValue::Int(rate)).unwrap();
            assert_eq!(host.read(key), Ok(FactValue::Int(rate)));
        }
        let old = |key: &str, value, related| Old { key: key.to_owned(), value, after: None, related };
        let olds = [old(key, FactValue::Int(80_000_000), false), old(exact, before.clone(), true)];
        assert_eq!(restore(&host, &olds), Vec::<String>::new());
        assert_eq!(host.read(exact), Ok(before));
        assert!(host.write(key, &FactValue::Int(7)).is_err(), "less than a byte a second");
        conforms(root, key, &FactValue::Int(160_000_000));
    });
}

/// Writes a setting, undoes it as a trial does, and gives what a command shows before and after.
pub(super) fn there_and_back(key: &str, to: &str, shown: &str) -> (String, String, String) {
    let host = RealHost::new(Root::live());
    let show = || {
        let words: Vec<&str> = shown.split(' ').collect();
        let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let old = |key: String, related| Some(Old { value: host.read(&key).ok()?, key, after: None, related });
    let related = host.related(key);
    let olds: Vec<Old> = std::iter::once(old(key.to_owned(), false))
        .chain(related.into_iter().map(|key| old(key, true)))
        .flatten()
        .collect();
    let before = show();
    let to = FactValue::Text(to.to_owned());
    host.write(key, &to).unwrap_or_else(|e| panic!("{key} refuses {to}: {e}"));
    assert_eq!(host.read(key), Ok(to), "{key}");
    let changed = show();
    assert_eq!(restore(&host, &olds), Vec::<String>::new(), "{key}");
    (before, changed, show())
}

#[test]
fn routes_are_removed_changed_and_put_back_as_they_were() {
    let test = "routes_are_removed_changed_and_put_back_as_they_were";
    in_fresh_namespace(test, |root| {
        for arguments in [
            "address add 10.9.0.1/24 dev left",
            "-6 address add fd09::1/64 dev left nodad",
            "route add blackhole 10.9.7.0/24",
            "route add 10.9.0.128/25 dev left proto 77 scope link src 10.9.0.1 mtu lock 400 window 4096",
            "route add default via 10.9.0.254 dev left proto dhcp metric 50",
            "-6 route add fd10::/64 via fd09::2 dev left proto 78 metric 99 mtu 1300",
        ] {
            ip(arguments).unwrap();
        }
        let v4 = "ip -details route show";
        for (key, to, shown) in [
            ("route.10/9/7/0-24", "none", v4),
            ("route.10/9/0/0-24", "none", v4),
            ("route.10/9/0/128-25", "10.9.0.128/25 dev left src 10.9.0.1 window 4096", v4),
            ("route.10/9/0/128-25", "none", v4),
            ("route.default.50", "none", v4),
            ("route.default.50", "default via 10.9.0.253 dev left metric 50", v4),
            (
                "route.fd10::-64.99.left",
                "fd10::/64 via fd09::2 dev left metric 99",
                "ip -6 -details route show fd10::/64",
            ),
            ("route.fd10::-64.99.left", "none", "ip -6 -details route show fd10::/64"),
        ] {
            let (before, changed, after) = there_and_back(key, to, shown);
            assert_ne!(before, changed, "{key} {to}");
            assert_eq!(before, after, "{key} {to}");
        }
        let key = "route.10/9/0/128-25";
        let kept = "10.9.0.128/25 dev left src 10.9.0.1 window 4096";
        setting_for(key).unwrap().write(root, key, &FactValue::Text(kept.into())).unwrap();
        let output =
            Command::new("ip").args(["-details", "route", "show", "10.9.0.128/25"]).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(shown.contains("proto 77") && !shown.contains("mtu"), "only the limit goes: {shown}");
        for wrong in ["10.9.1.0/24 dev left", "10.9.0.128/25 dev gone", "a b c", "blackhole"] {
            let value = FactValue::Text(wrong.into());
            assert!(setting_for(key).unwrap().write(root, key, &value).is_err(), "{wrong}");
        }
    });
}

#[test]
fn a_written_neighbour_is_removed_and_put_back() {
    let test = "a_written_neighbour_is_removed_and_put_back";
    in_fresh_namespace(test, |root| {
        for arguments in [
            "address add 10.9.0.1/24 dev left",
            "neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev left nud permanent",
            "neigh add fd09::2 lladdr 02:00:00:00:00:02 dev left nud permanent",
            "neigh add 10.9.0.3 lladdr 02:00:00:00:00:03 dev left nud stale",
        ] {
            ip(arguments).unwrap();
        }
        for key in ["nic.left.neighbour.10/9/0/2", "nic.left.neighbour.fd09::2"] {
            let (before, changed, after) = there_and_back(key, "none", "ip neigh show nud permanent");
            assert!(before.len() > changed.len() && before == after, "{key}: {before} {changed} {after}");
            there_and_back(key, "02:00:00:00:00:07", "ip neigh show nud permanent");
            conforms(root, key, &FactValue::Text("none".into()));
        }
        let learned = "nic.left.neighbour.10/9/0/3";
        let host = RealHost::new(Root::live());
        assert_eq!(host.read(learned), Ok(FactValue::Text("none".into())));
        host.write(learned, &FactValue::Text("none".into())).unwrap();
        assert!(ip("neigh get 10.9.0.3 dev left").is_ok(), "what the kernel learned stays");
    });
}

#[test]
fn a_rule_that_drops_is_switched_off_and_on_again() {
    let test = "a_rule_that_drops_is_switched_off_and_on_again";
    in_fresh_namespace(test, |root| {
        for rule in [
            "add table ip t",
            "add chain ip t in { type filter hook input priority 0 ; }",
            "add rule ip t in tcp dport 99 accept",
            "add rule ip t in numgen random mod 100 < 3 drop",
            "add rule ip t in numgen random mod 100 < 4 drop",
        ] {
            if let Err(reason) = run("nft", rule) {
                return println!("SKIPPED {test}: {reason}");
            }
        }
        let facts = super::read(root, &["firewall.".to_owned()], &[]);
        let key = facts.readings.keys().find(|key| key.starts_with("firewall.random_rule.")).unwrap();
        assert!(key.ends_with("-1"), "{key}");
        conforms(root, key, &FactValue::Flag(false));
        let list = || Command::new("nft").args(["list", "ruleset"]).output().unwrap().stdout;
        let before = list();
        let setting = setting_for(key).unwrap();
        setting.write(root, key, &FactValue::Flag(false)).unwrap();
        assert_ne!(list(), before);
        let Persist::Unit { exec, .. } = setting.persist(key, &FactValue::Flag(false)) else {
            panic!("it stays by a unit")
        };
        setting.write(root, key, &FactValue::Flag(true)).unwrap();
        assert_eq!(list(), before);
        // What the unit does after a boot that made the rule anew.
        let script = exec[0].strip_prefix("/bin/sh -c '").and_then(|s| s.strip_suffix('\'')).unwrap();
        let script = script.replace("$$", "$").replace("%%", "%");
        let done = Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let left = String::from_utf8_lossy(&list()).into_owned();
        for line in [
            "\ttcp dport 99 accept",
            "\tmeta length 0 numgen random mod 100 < 3 ",
            "\tnumgen random mod 100 < 4 ",
        ] {
            assert!(left.contains(line), "{left}");
        }
        assert_eq!(setting.read(root, key), Ok(FactValue::Flag(false)));
        // A second time it is off already, and nothing else is.
        Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&list()), left);
        setting.write(root, key, &FactValue::Flag(true)).unwrap();
        assert_eq!(list(), before);
        // A rule that is gone is off, and what keeps it so after a boot is known.
        run("nft", "flush chain ip t in").unwrap();
        assert_eq!(setting.read(root, key), Ok(FactValue::Flag(false)));
        setting.write(root, key, &FactValue::Flag(false)).unwrap();
        assert!(setting.write(root, key, &FactValue::Flag(true)).is_err());
        let Persist::Unit { exec: again, .. } = setting.persist(key, &FactValue::Flag(false)) else {
            panic!("its unit is the same")
        };
        assert_eq!(again, exec);
        let value = || super::read(root, std::slice::from_ref(key), &[]).value_of(key);
        assert_eq!(value(), Some(FactValue::Flag(false)));
        run("nft", "delete table ip t").unwrap();
        assert_eq!(value(), Some(FactValue::Flag(false)));
    });
}

#[test]
fn a_program_that_balances_interrupts_is_paused_and_goes_on() {
    let test = "a_program_that_balances_interrupts_is_paused_and_goes_on";
    let root = Root::live();
    let key = "cpu.irqbalance";
    let setting = setting_for(key).unwrap();
    if setting.read(&root, key).is_ok() {
        return println!("SKIPPED {test}: irqbalance runs here");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("irqbalance");
    std::fs::copy("/bin/sleep", &program).unwrap();
    let mut child = Command::new(&program).arg("600").spawn().unwrap();
    let text = |state: &str| FactValue::Text(state.to_owned());
    linerate_testkit::wait_until("the program runs", || setting.read(&root, key) == Ok(text("running")));
    conforms(&root, key, &text("paused"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn modes_of_devices_that_this_machine_lacks_are_written_in_a_tree() {
    let tree = tempfile::tempdir().unwrap();
    let file = |path: &str, text: &str| {
        let path = tree.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    file("sys/class/net/bond0/bonding/xmit_hash_policy", "layer2 0\n");
    file("sys/class/net/ib0/mode", "datagram\n");
    file("proc/irq/38/smp_affinity_list", "0-15\n");
    let root = Root::fixture(tree.path());
    for (key, other, wrong) in [
        ("nic.bond0.bond.xmit_hash_policy", "layer3+4", "layer9"),
        ("nic.ib0.ipoib_mode", "connected", "fast"),
        ("nic.em1.irq.38.affinity", "8", "none"),
    ] {
        conforms(&root, key, &FactValue::Text(other.into()));
        let setting = setting_for(key).unwrap();
        assert!(setting.write(&root, key, &FactValue::Text(wrong.into())).is_err(), "{key} {wrong}");
    }
    let absent = setting_for("nic.bond1.bond.xmit_hash_policy").unwrap();
    assert!(
        absent.write(&root, "nic.bond1.bond.xmit_hash_policy", &FactValue::Text("layer2".into())).is_err()
    );
}

#[test]
fn a_discipline_with_classes_is_left_alone() {
    in_fresh_namespace("a_discipline_with_classes_is_left_alone", |root| {
        if let Err(reason) = run("tc", "qdisc add dev left root handle 1: htb default 10") {
            return println!("SKIPPED a_discipline_with_classes_is_left_alone: {reason}");
        }
        let refused = qdisc::Qdiscs.write(root, "nic.left.qdisc", &FactValue::Text("noqueue".into()));
        assert!(matches!(refused, Err(SettingError::NotRestorable(_))), "{refused:?}");
        assert_eq!(qdisc::Qdiscs.read(root, "nic.left.qdisc"), Ok(FactValue::Text("htb".into())));
        let unknown = qdisc::Qdiscs.write(root, "nic.right.qdisc", &FactValue::Text("fq_pie".into()));
        if unknown.is_err() {
            assert_eq!(qdisc::Qdiscs.read(root, "nic.right.qdisc"), Ok(FactValue::Text("noqueue".into())));
        }
    });
}

#[test]
fn known_traps_are_related() {
    in_fresh_namespace("known_traps_are_related", |root| {
        let related = setting_for("nic.left.feature.tx-checksumming")
            .unwrap()
            .related("nic.left.feature.tx-checksumming");
        assert!(related.iter().any(|k| k == "nic.left.feature.tx-tcp-segmentation"), "{related:?}");
        let vxlan = "link add vx0 type vxlan id 42 dstport 4789 dev left local 10.9.0.1";
        if let Err(reason) = ip(vxlan) {
            return println!("SKIPPED known_traps_are_related: {reason}");
        }
        let mtu = setting_for("nic.left.mtu").unwrap();
        assert_eq!(mtu.related("nic.left.mtu"), ["nic.vx0.mtu"]);
        assert_eq!(mtu.read(root, "nic.vx0.mtu"), Ok(FactValue::Int(1450)));
        conforms(root, "nic.left.mtu", &FactValue::Int(1300));
        assert_eq!(mtu.read(root, "nic.vx0.mtu"), Ok(FactValue::Int(1450)), "it was put back");
        let facts = super::read(root, &["nic.vx0.".to_string()], &[]);
        assert_eq!(facts.readings["nic.vx0.vxlan.lower"], FactValue::Text("left".into()));
        assert_eq!(facts.readings["nic.vx0.vxlan.port"], FactValue::Int(4789));
    });
}

#[test]
fn an_undo_of_fewer_queues_gives_them_their_cpus_back() {
    let test = "an_undo_of_fewer_queues_gives_them_their_cpus_back";
    in_fresh_namespace(test, |root| {
        if let Err(reason) = ip("link add many numrxqueues 2 numtxqueues 2 type veth peer name end") {
            return println!("SKIPPED {test}: {reason}");
        }
        let host = RealHost::new(Root::live());
        let (channels, queue) = ("nic.many.channels.rx", "nic.many.queue.rx-1.rps_cpus");
        if let Err(reason) = host.write(channels, &FactValue::Int(2)) {
            return println!("SKIPPED {test}: {reason}");
        }
        if let Err(reason) = host.write(queue, &FactValue::Text("1".to_owned())) {
            return println!("SKIPPED {test}: {reason}");
        }
        let related = host.related(channels);
        assert!(related.iter().any(|key| key == queue), "{related:?}");
        assert!(related.iter().any(|key| key == "nic.many.queue.rx-1.rps_flow_cnt"), "{related:?}");
        let old = |key: &str, related| {
            Some(Old { key: key.to_owned(), value: host.read(key).ok()?, after: None, related })
        };
        let changed = old(channels, false).into_iter();
        let olds: Vec<Old> = changed.chain(related.iter().filter_map(|key| old(key, true))).collect();
        host.write(channels, &FactValue::Int(1)).unwrap();
        assert!(setting_for(queue).unwrap().read(root, queue).is_err(), "the queue is gone");
        assert_eq!(restore(&host, &olds), Vec::<String>::new());
        assert_eq!(host.read(queue), Ok(FactValue::Text("1".to_owned())));
    });
}

#[test]
fn an_mtu_that_loses_addresses_of_ipv6_is_refused() {
    let test = "an_mtu_that_loses_addresses_of_ipv6_is_refused";
    in_fresh_namespace(test, |root| {
        let mtu = setting_for("nic.left.mtu").unwrap();
        for made in ["link add link left name above type macvlan", "link set above up"] {
            if let Err(reason) = ip(made) {
                return println!("SKIPPED {test}: {reason}");
            }
        }
        let allowed = |value: i64| mtu.check(root, "nic.left.mtu", &FactValue::Int(value));
        for (device, others) in [("left", "above"), ("above", "left")] {
            let _ = ip(&format!("-6 address flush dev {others}"));
            if let Err(reason) = ip(&format!("address replace fd09::1/64 dev {device} nodad")) {
                return println!("SKIPPED {test}: {reason}");
            }
            assert_eq!(allowed(1280), Ok(()), "{device}");
            let refused = allowed(1279).unwrap_err();
            assert_eq!(refused.to_string(), format!("{device} would lose its IPv6 addresses below 1280"));
            ip(&format!("-6 address flush dev {device}")).unwrap();
        }
        for device in ["left", "above"] {
            let _ = ip(&format!("-6 address flush dev {device}"));
        }
        assert_eq!(allowed(1000), Ok(()), "without IPv6");
        // The kernel does what the check says.
        ip("address replace fd09::1/64 dev above nodad").unwrap();
        mtu.write(root, "nic.left.mtu", &FactValue::Int(1279)).unwrap();
        let facts = super::read(root, &["nic.above.addresses".to_string()], &[]);
        assert_eq!(facts.readings.get("nic.above.addresses"), None, "they are lost");
    });
}

#[test]
fn a_namespace_inside_the_host_is_seen_and_changed() {
    let test = "a_namespace_inside_the_host_is_seen_and_changed";
    in_fresh_namespace(test, |root| {
        let inner = match netns::create() {
            Ok(inner) => inner,
            Err(error) => return println!("SKIPPED {test}: {error}"),
        };
        let number = std::os::fd::AsRawFd::as_raw_fd(&inner);
        let path = std::path::PathBuf::from(format!("/proc/{}/fd/{number}", std::process::id()));
        let made = netns::run_in(&inner, || ip("link add inside type veth peer name other")).unwrap();
        if let Err(reason) = made {
            return println!("SKIPPED {test}: {reason}");
        }
        let facts = super::read(root, &[], std::slice::from_ref(&path));
        let key = format!("netns.{}|nic.inside.mtu", path.display());
        assert_eq!(facts.readings[&key], FactValue::Int(1500));
        assert!(facts.readings.contains_key("nic.left.mtu"));
        assert!(!facts.readings.contains_key("nic.inside.mtu"));
        let queue = format!("netns.{}|nic.inside.queue.rx-0.rps_cpus", path.display());
        assert_eq!(facts.readings.get(&queue), Some(&FactValue::Text("0".into())), "{:?}", facts.gaps);
        conforms(root, &key, &FactValue::Int(1234));
    });
}

#[test]
fn refusing_routes_limits_and_written_neighbours_are_read() {
    in_fresh_namespace("refusing_routes_limits_and_written_neighbours_are_read", |root| {
        for arguments in [
            "address add 10.9.0.1/24 dev left",
            "route add blackhole 10.9.7.0/24",
            "route add prohibit 10.9.8.1/32",
            "route add 10.9.0.128/25 dev left mtu lock 400 window 4096",
            "neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev left nud permanent",
            "neigh add 10.9.0.3 lladdr 02:00:00:00:00:03 dev left nud stale",
        ] {
            ip(arguments).unwrap();
        }
        let facts = super::read(root, &["route.".into(), "nic.left.neighbour".into()], &[]);
        let values: Vec<String> = facts.readings.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        for wanted in [
            "blackhole 10.9.7.0/24",
            "prohibit 10.9.8.1/32",
            "10.9.0.128/25 dev left mtu lock 400 window 4096",
            "nic.left.neighbour.10/9/0/2 = 02:00:00:00:00:02",
        ] {
            assert!(values.iter().any(|v| v.ends_with(wanted)), "{wanted} in {values:#?}");
        }
        assert_eq!(facts.readings.keys().filter(|k| k.contains("neighbour")).count(), 1, "{values:#?}");
    });
}

#[test]
fn what_is_declared_as_a_setting_may_be_written_and_the_other_way_round() {
    use linerate_model::writable::{WRITABLE, writable};
    for declared in super::declarations().iter().filter(|fact| fact.setting) {
        assert!(writable(&declared.pattern).is_some(), "{}", declared.pattern);
    }
    for key in WRITABLE.iter().flat_map(|family| family.keys) {
        // An address stands in the key of a neighbour, and of a forwarding entry.
        let one = key.replace("neighbour.*", "neighbour.10/9/0/2").replace("fdb.*", "fdb.02:00:00:00:00:07");
        let one = one.replace("fdb_exact.*", "fdb_exact.02:00:00:00:00:07").replace('*', "0");
        assert!(setting_for(&one).is_some(), "nothing writes {key}");
    }
    for key in ["sysctl.kernel.core_pattern", "sysctl.kernel.modules_disabled", "nic.eth0.feature.loopback"] {
        for key in [key.to_owned(), format!("netns.pid:1|{key}")] {
            assert!(setting_for(&key).is_none(), "{key}");
        }
    }
}

#[test]
fn wrong_values_are_refused() {
    let root = Root::live();
    for (key, value) in [
        ("nic.lo.mtu", FactValue::Text("large".into())),
        ("nic.lo.feature.tx-checksumming", FactValue::Int(3)),
        ("nic.no-such-nic.mtu", FactValue::Int(1500)),
        ("nic.lo.ring.rx", FactValue::Int(10)),
        ("nic.lo.qdisc", FactValue::Flag(true)),
        ("sysctl.net.ipv4.conf.no-such-nic.rp_filter", FactValue::Int(1)),
        ("sysctl.net.ipv4.tcp_rmem", FactValue::Text("1\n2".into())),
    ] {
        assert!(setting_for(key).unwrap().write(&root, key, &value).is_err(), "{key} {value}");
    }
    assert!(
        setting_for("sysctl.net.../../etc/passwd")
            .is_none_or(|s| s.read(&root, "sysctl.net.../../etc/passwd").is_err())
    );
    assert!(setting_for("nic.eth0.ring.rx_max").is_none());
    assert!(setting_for("nic.eth0.eee.active").is_none());
    assert!(setting_for("nic.eth0.private.link-down-on-close").is_none());
}

#[test]
fn what_stays_is_written_in_the_usual_places() {
    let persist = |key: &str, value: FactValue| setting_for(key).unwrap().persist(key, &value);
    let line = |p: Persist| match p {
        Persist::File { path, line, .. } => format!("{}: {line}", path.display()),
        Persist::Unit { name, exec, .. } => format!("{name}: {}", exec.join("; ")),
        Persist::Impossible { reason } => reason,
    };
    assert_eq!(
        line(persist("sysctl.net.ipv4.tcp_rmem", FactValue::Text("1 2 3".into()))),
        "sysctl.d/90-linerate.conf: net.ipv4.tcp_rmem = 1 2 3"
    );
    assert_eq!(
        line(persist("nic.em1.feature.rx-gro-hw", FactValue::Flag(false))),
        "systemd/network/10-linerate-em1.link: GenericReceiveOffloadHardware=no"
    );
    assert_eq!(
        line(persist("nic.em1.coalesce.rx-usecs", FactValue::Int(8))),
        "systemd/network/10-linerate-em1.link: RxCoalesceSec=8us"
    );
    assert_eq!(
        line(persist("nic.em1.feature.tx-udp_tnl-segmentation", FactValue::Flag(false))),
        "linerate-em1-tx-udp_tnl-segmentation: /usr/sbin/ethtool -K em1 tx-udp_tnl-segmentation off"
    );
    assert_eq!(
        line(persist("nic.em1.qdisc", FactValue::Text("fq".into()))),
        "linerate-em1-qdisc: /usr/sbin/tc qdisc replace dev em1 root fq"
    );
    assert_eq!(
        line(persist("nic.em1.queue.rx-0.rps_cpus", FactValue::Text("ff".into()))),
        "linerate-em1-queue.rx-0.rps_cpus: /bin/sh -c 'echo ff > /sys/class/net/em1/queues/rx-0/rps_cpus'"
    );
    let flows = "nic.em1.queue.rx-0.rps_flow_cnt";
    assert!(line(persist(flows, FactValue::Int(4096))).ends_with("queues/rx-0/rps_flow_cnt'"));
    assert!(matches!(persist(flows, FactValue::Int(5000)), Persist::Impossible { .. }), "rounded up");
}
