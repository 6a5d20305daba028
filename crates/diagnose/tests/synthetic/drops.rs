//! Series of drops that are the same, seem the same, and are not.

use linerate_diagnose::drops::{WatchedDrops, add_shared, report};
use linerate_knowledge::drops::DropClasses;
use linerate_model::drops::{
    BYTES_SENT, COST_NS, COST_RUNS, DropReport, ResentKind, SEGMENTS_AGAIN, SEGMENTS_SENT, SEGMENTS_TWICE,
};
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::random::Random;

fn watched(host: &str, counters: &[(&str, &[f64])]) -> WatchedDrops {
    let growth = counters.iter().map(|(key, growth)| ((*key).to_owned(), growth.to_vec())).collect();
    WatchedDrops { host: host.to_owned(), growth, counters_alone: None }
}

fn of(hosts: &[WatchedDrops]) -> DropReport {
    let addresses = [("192.0.2.1", "a"), ("192.0.2.2", "b"), ("192.0.2.3", "c")]
        .map(|(address, host)| (address.parse().expect("an address"), host.to_owned()));
    report(hosts, &DropClasses::builtin().expect("the built-in ones"), &addresses.into(), 10.0)
}

/// Four hypervisors, sampled at the same time.
fn casebook() -> Vec<WatchedDrops> {
    let series: [(&str, [f64; 6]); 4] = [
        ("vs-2", [30.0, 22.0, 13.0, 9.0, 8.0, 12.0]),
        ("vs-3", [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]),
        ("vs-4", [30.0, 24.0, 11.0, 9.0, 8.0, 12.0]),
        ("vs-5", [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]),
    ];
    let alone = |mut host: WatchedDrops| {
        host.counters_alone = Some("no rights".to_owned());
        host
    };
    series.iter().map(|(host, growth)| alone(watched(host, &[("nic.em1.stat.rx_dropped", growth)]))).collect()
}

#[test]
fn six_rows_of_four_hosts_give_the_two_that_drop_the_same() {
    let mut report = of(&casebook());
    assert_eq!(report.groups.len(), 1, "{:?}", report.groups);
    let group = &report.groups[0];
    assert_eq!(
        (group.hosts.as_slice(), group.packets),
        (["vs-2".to_owned(), "vs-4".to_owned()].as_slice(), 188)
    );
    assert!(group.probability > 0.99 && group.correlation > 0.98, "{group:?}");
    // What the two lack, the others have: the VLAN; and IPv6.
    let facts = |has_vlan: bool| {
        let mut facts = HostFacts::default();
        let mut put =
            |key: &str, value: i64| drop(facts.readings.insert(key.to_owned(), FactValue::Int(value)));
        put("nic.em1.mtu", 1500);
        put("sysctl.net.ipv6.conf.all.disable_ipv6", i64::from(!has_vlan));
        put("sysctl.vm.swappiness", if has_vlan { 60 } else { 10 });
        if has_vlan {
            put("nic.em1/96.vlan.id", 96);
            put("nic.em1/96.mtu", 1500);
        }
        facts
    };
    let hosts = ["vs-2", "vs-3", "vs-4", "vs-5"]
        .map(|host| (host.to_owned(), facts(host == "vs-3" || host == "vs-5")));
    add_shared(&mut report, &hosts.into(), &DropClasses::builtin().unwrap());
    let group = &report.groups[0];
    assert_eq!(
        group.shared,
        ["sysctl.net.ipv6.conf.all.disable_ipv6 is 1", "no device em1/96", "sysctl.vm.swappiness is 10"]
    );
    assert!((group.shared_by_chance - 1.0 / 6.0).abs() < 1e-9);
    assert!(group.class.as_ref().unwrap().harmless);
}

#[test]
fn rows_have_reasons_counters_beyond_them_and_the_cost() {
    let host = watched(
        "a",
        &[
            ("drop.NETFILTER_DROP.0800.eth0", &[3.0, 4.0]),
            ("drop.NO_SOCKET.0800.lo", &[20.0, f64::NAN]),
            ("drop.BRAND_NEW.86dd.eth0", &[1.0, 0.0]),
            ("drop.QDISC_DROP.0800.(sent)", &[50.0, 50.0]),
            ("nic.eth0.stat.qdisc_drops", &[50.0, 52.0]),
            ("nic.eth0.stat.rx_missed_errors", &[0.0, 6.0]),
            ("nic.eth0.stat.rx_packets", &[1000.0, 1000.0]),
            ("snmp.Udp.NoPorts", &[40.0, 0.0]),
            (COST_NS, &[1e6, 1e6]),
            (COST_RUNS, &[1000.0, 1000.0]),
        ],
    );
    let report = of(&[host]);
    let rows: Vec<_> = report.hosts[0]
        .rows
        .iter()
        .map(|row| (row.reason.as_str(), row.packets, row.is_harmless()))
        .collect();
    assert_eq!(
        rows,
        [
            ("QDISC_DROP", 100, false),
            ("NETFILTER_DROP", 7, false),
            ("nic.eth0.stat.rx_missed_errors", 6, false),
            ("BRAND_NEW", 1, false),
            // In any order where as many.
            ("NO_SOCKET", 20, true),
            ("snmp.Udp.NoPorts", 20, true),
        ]
    );
    let cost = report.hosts[0].cost.unwrap();
    assert_eq!((cost.runs, cost.ns), (2000, 2_000_000));
    assert!((cost.share - 1e-4).abs() < 1e-9);
    assert_eq!(report.groups, []);
}

#[test]
fn what_is_sent_again_has_peer_kind_and_the_host_that_most_of_it_goes_to() {
    let counters = |to_b: f64, to_c: f64| {
        [
            ("retransmit.timeout.192.0.2.2", to_b),
            ("retransmit.handshake.192.0.2.2", 1.0),
            ("retransmit.tail-probe.192.0.2.3", to_c),
            ("retransmit.recovery.198.51.100.7", 500.0),
            (SEGMENTS_SENT, 10_000.0),
            (SEGMENTS_AGAIN, to_b + to_c + 501.0),
            (SEGMENTS_TWICE, 2.0),
            (BYTES_SENT, 5e8),
        ]
    };
    let host = |name: &str, to_b: f64, to_c: f64| {
        let growth = counters(to_b, to_c).map(|(key, value)| (key.to_owned(), vec![value, 0.0]));
        WatchedDrops { host: name.to_owned(), growth: growth.into(), counters_alone: None }
    };
    let report = of(&[host("a", 100.0, 5.0), host("c", 60.0, 0.0)]);
    let first = &report.hosts[0].resent;
    assert_eq!((first.sent, first.again, first.needless), (10_000, 606, 2));
    assert!((first.per_gigabyte.unwrap() - 1212.0).abs() < 1e-6);
    let rows: Vec<_> = first.rows.iter().map(|row| (row.host.as_deref(), row.kind, row.segments)).collect();
    assert_eq!(
        rows,
        [
            (None, ResentKind::Recovery, 500),
            (Some("b"), ResentKind::Timeout, 100),
            (Some("c"), ResentKind::TailProbe, 5),
            (Some("b"), ResentKind::Handshake, 1),
        ]
    );
    let most = report.resent_to.unwrap();
    assert_eq!((most.host.as_str(), most.from), ("b", 2));
    // One sender may have a fault of its own.
    assert_eq!(of(&[host("a", 100.0, 5.0)]).resent_to, None);
}

/// Packets of one source that reach some hosts, or of a source of each.
fn fleet(seed: u64, hosts: usize, same: usize, intervals: usize) -> Vec<WatchedDrops> {
    let mut random = Random(seed);
    // Bursts with heavy tails.
    let mut draw = || (1.0 / (1.0 - random.fraction()).max(1e-3)).powf(1.2).floor();
    let common: Vec<f64> = (0..intervals).map(|_| draw()).collect();
    (0..hosts)
        .map(|number| {
            let growth: Vec<f64> =
                if number < same { common.clone() } else { (0..intervals).map(|_| draw()).collect() };
            watched(&format!("n{number}"), &[("drop.UNHANDLED_PROTO.88b5.eth0", &growth)])
        })
        .collect()
}

#[test]
fn two_of_six_are_grouped_and_independent_bursts_are_not() {
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..200 {
        let same = of(&fleet(seed, 6, 2, 30));
        right += usize::from(same.groups.len() == 1 && same.groups[0].hosts == ["n0", "n1"]);
        wrong += usize::from(!of(&fleet(seed + 1000, 6, 0, 30)).groups.is_empty());
    }
    assert!(right >= 190, "{right} of 200");
    assert!(wrong <= 10, "{wrong} of 200");
}

#[test]
fn many_hosts_of_one_source_are_one_group() {
    let report = of(&fleet(7, 200, 120, 60));
    assert_eq!(report.groups[0].hosts.len(), 120);
    assert_eq!(report.groups.len(), 1);
}

#[test]
fn one_burst_at_the_same_time_is_chance() {
    let mut burst = [0.0; 30];
    burst[7] = 500.0;
    let hosts = ["a", "b"].map(|host| watched(host, &[("drop.NO_SOCKET.0800.eth0", &burst)]));
    let report = of(&hosts);
    assert!(report.groups.iter().all(|group| group.probability < 0.97), "{report:?}");
}
