//! Facts of a real node that are followed: every family that can be changed in a network namespace is changed
//! by the programs of people, and each change comes with its old and new value and who wrote.
//!
//! In: root, `ip`, `tc`, `ethtool`, `nft`, `sysctl`. What is missing is printed as a skip.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

// Other tests use the rest of it.
#[allow(dead_code)]
mod operator;

use std::process::Command;

use linerate_model::fact::FactValue;
use linerate_model::notice::{FactNotice, LINK_WRITERS, NoticeSource, WRITERS};
use linerate_testkit::{self as testkit, TestEnvironment};
use linerate_wire::message::{Event, ObserveRequest};
use operator::Operator;

/// Command, beginning of a key that it changes, what reports it.
const CHANGES: [(&str, &str, NoticeSource); 13] = [
    ("sysctl -qw net.ipv4.tcp_rmem='4096 65536 212992'", "sysctl.net.ipv4.tcp_rmem", NoticeSource::Written),
    ("echo 0 > /proc/sys/net/ipv4/tcp_sack", "sysctl.net.ipv4.tcp_sack", NoticeSource::Written),
    ("sysctl -qw net.core.somaxconn=77", "sysctl.net.core.somaxconn", NoticeSource::Written),
    ("echo 1 > /sys/class/net/d0/queues/rx-0/rps_cpus", "nic.d0.", NoticeSource::Written),
    ("ip link set d0 mtu 1400", "nic.d0.mtu", NoticeSource::Link),
    ("ip link set d0 txqueuelen 77", "nic.d0.txqueuelen", NoticeSource::Link),
    ("ip address add 192.0.2.1/24 dev d0", "nic.d0.addresses", NoticeSource::Link),
    (
        "tc qdisc replace dev d0 root tbf rate 50mbit burst 32k latency 30ms",
        "nic.d0.qdisc",
        NoticeSource::Link,
    ),
    ("ip route add 198.51.100.0/24 dev d0", "route.", NoticeSource::Link),
    ("ip rule add from 192.0.2.1 table 99", "rule.", NoticeSource::Link),
    ("ethtool -K d0 tso off", "nic.d0.feature.tx-tcp-segmentation", NoticeSource::Driver),
    (
        "nft add table inet x; nft 'add chain inet x c { type filter hook input priority 0; }'; \
         nft add rule inet x c tcp dport 9 drop",
        "firewall.",
        NoticeSource::Firewall,
    ),
    ("ip link set d0 mtu 1500", "nic.d0.mtu", NoticeSource::Link),
];

fn sh(line: &str) {
    let output = Command::new("sh").args(["-ec", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", testkit::text(&output.stderr));
}

/// Asks until a notice is as wanted.
fn notice(operator: &mut Operator, what: &str, is_it: impl Fn(&FactNotice) -> bool) -> FactNotice {
    loop {
        let events = operator.ask(ObserveRequest::Notices);
        let [Event::Noticed(notices), Event::Done] = events.as_slice() else { panic!("{events:?}") };
        assert!(!notices.is_empty(), "nothing was noticed of {what}");
        if let Some(found) = notices.iter().find(|notice| is_it(notice)) {
            return found.clone();
        }
    }
}

#[test]
fn what_is_changed_by_hand_is_reported_with_both_values_and_who() {
    const NAME: &str = "what_is_changed_by_hand_is_reported_with_both_values_and_who";
    if !testkit::is_root() {
        testkit::skip(NAME, "the writes below /proc are reported to root only");
        return;
    }
    let programs = [("tc", "iproute2"), ("ethtool", "ethtool"), ("nft", "nftables"), ("sysctl", "procps")];
    if !programs.iter().all(|(program, package)| testkit::has(NAME, program, package)) {
        return;
    }
    if !testkit::inside(NAME, TestEnvironment::Mounts) {
        return;
    }
    let files = tempfile::tempdir().unwrap();
    sh(
        "mount -t sysfs sysfs /sys; ip link add d0 type veth peer name d1; ip link set d0 up; ip link set d1 up",
    );
    sh(&format!("mkdir -p /etc/sysctl.d; mount --bind '{}' /etc/sysctl.d", files.path().display()));
    let mut operator = Operator::start(None);
    let events = operator.ask(ObserveRequest::Follow { prefixes: Vec::new(), writers: false });
    let [Event::Facts(facts), Event::Done] = events.as_slice() else { panic!("{events:?}") };
    let gaps: Vec<_> = facts.gaps.iter().filter(|g| g.what.to_string().starts_with("notices")).collect();
    assert!(gaps.is_empty(), "{gaps:?}");
    for (line, key, source) in CHANGES {
        sh(line);
        let found = notice(&mut operator, line, |notice| {
            notice.source == source && notice.changes.iter().any(|change| change.key.starts_with(key))
        });
        let change = found.changes.iter().find(|change| change.key.starts_with(key)).unwrap();
        assert_ne!(change.from, change.to, "{line}");
        let names_writer = matches!(source, NoticeSource::Written | NoticeSource::Firewall);
        assert!(found.writer.is_some() || !names_writer, "{line}: {found:?}");
        if key == "sysctl.net.core.somaxconn" {
            assert_eq!(change.to, Some(FactValue::Int(77)));
        }
    }
    // A file is no change yet, and is reported all the same.
    sh("echo net.ipv4.tcp_sack=1 > /etc/sysctl.d/50-x.conf");
    let file = notice(&mut operator, "a file", |notice| notice.source == NoticeSource::File);
    assert_eq!((file.about.as_str(), file.changes.len()), ("/etc/sysctl.d/50-x.conf", 0));
    // The same value again is no change: what comes next is the one after it.
    sh("echo 0 > /proc/sys/net/ipv4/tcp_sack; sysctl -qw net.core.somaxconn=78");
    let next = notice(&mut operator, "another value", |notice| notice.source != NoticeSource::File);
    assert_eq!(next.changes.len(), 1, "{next:?}");
    assert_eq!(next.changes[0].key, "sysctl.net.core.somaxconn");
}

/// Writes of others in a row, from another mount namespace, and one in another network namespace.
const ELSEWHERE: &str =
    "unshare -m sh -c 'sysctl -qw net.core.somaxconn=81; sysctl -qw net.core.somaxconn=82'
    unshare -n sysctl -qw net.core.somaxconn=99
    unshare -m sysctl -qw net.core.somaxconn=83";

#[test]
fn each_write_from_other_namespaces_has_its_process_and_both_values() {
    const NAME: &str = "each_write_from_other_namespaces_has_its_process_and_both_values";
    if !testkit::is_root() {
        testkit::skip(NAME, "programs in the kernel are for root only");
        return;
    }
    if !testkit::has(NAME, "sysctl", "procps") || !testkit::inside(NAME, TestEnvironment::Mounts) {
        return;
    }
    sh("sysctl -qw net.core.somaxconn=80");
    let mut operator = Operator::start(None);
    let prefixes = vec!["sysctl.net.core.".to_owned()];
    let events = operator.ask(ObserveRequest::Follow { prefixes, writers: true });
    let [Event::Facts(facts), Event::Done] = events.as_slice() else { panic!("{events:?}") };
    if let Some(gap) = facts.gaps.iter().find(|gap| gap.what.to_string() == WRITERS) {
        testkit::skip(NAME, &gap.reason);
        return;
    }
    sh(ELSEWHERE);
    let mut writes = Vec::new();
    while writes.len() < 3 {
        let events = operator.ask(ObserveRequest::Notices);
        let [Event::Noticed(notices), Event::Done] = events.as_slice() else { panic!("{events:?}") };
        assert!(!notices.is_empty(), "only {writes:?} were noticed");
        for found in notices {
            let writer = found.writer.clone().unwrap();
            assert_eq!((found.about.as_str(), found.changes.len()), ("/proc/sys/net/core/somaxconn", 1));
            writes.push((writer.name.unwrap(), found.changes[0].from.clone(), found.changes[0].to.clone()));
        }
    }
    let value = |number| Some(FactValue::Int(number));
    let by_sysctl = |from, to| ("sysctl".to_owned(), value(from), value(to));
    assert_eq!(writes, [by_sysctl(80, 81), by_sysctl(81, 82), by_sysctl(82, 83)]);
}

/// Command, beginning of a key that it changes, the program that it runs.
const LINK_CHANGES: [(&str, &str, &str); 4] = [
    ("ip link set d0 mtu 1400", "nic.d0.mtu", "ip"),
    ("ethtool -K d0 tso off", "nic.d0.feature.tx-tcp-segmentation", "ethtool"),
    ("ip link set d0 txqueuelen 77", "nic.d0.txqueuelen", "ip"),
    ("ip link set d0 mtu 1500; ethtool -K d0 tso on", "nic.d0.feature.tx-tcp-segmentation", "ethtool"),
];

#[test]
fn changes_of_links_and_drivers_name_their_process() {
    const NAME: &str = "changes_of_links_and_drivers_name_their_process";
    if !testkit::is_root() {
        testkit::skip(NAME, "programs in the kernel are for root only");
        return;
    }
    let has_programs =
        [("ip", "iproute2"), ("ethtool", "ethtool")].iter().all(|(p, of)| testkit::has(NAME, p, of));
    if !has_programs || !testkit::inside(NAME, TestEnvironment::Network) {
        return;
    }
    sh("ip link add d0 type veth peer name d1; ip link set d0 up; ip link set d1 up");
    let mut operator = Operator::start(None);
    let events = operator.ask(ObserveRequest::Follow { prefixes: vec!["nic.d0.".to_owned()], writers: true });
    let [Event::Facts(facts), Event::Done] = events.as_slice() else { panic!("{events:?}") };
    if let Some(gap) = facts.gaps.iter().find(|gap| gap.what.to_string() == LINK_WRITERS) {
        testkit::skip(NAME, &gap.reason);
        return;
    }
    for (command, key, program) in LINK_CHANGES {
        sh(command);
        let has_key = |notice: &FactNotice| notice.changes.iter().any(|change| change.key.starts_with(key));
        let found = notice(&mut operator, command, has_key);
        let writer = found.writer.as_ref().and_then(|writer| writer.name.as_deref());
        assert_eq!(writer, Some(program), "{command}: {found:?}");
    }
}
