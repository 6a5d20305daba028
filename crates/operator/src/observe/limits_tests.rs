//! Limits of a survey: pace, bytes, what is left out, and that the ledger never pays more than was announced.

use std::path::PathBuf;

use linerate_model::inventory::{Endpoint, Group, Host, Layer, TransportSpec};

use super::*;

/// Hosts `h0`… with links of these speeds, each in a group of its own; `machines` share one machine.
fn snapshot(links: &[Option<f64>], uplink_bps: Option<f64>, machine: Option<&str>) -> Snapshot {
    let group = |name: String| Group {
        name,
        kind: "rack".into(),
        parent: None,
        uplink_bps,
        machine: machine.map(str::to_owned),
    };
    let host = |(i, link): (usize, &Option<f64>)| Host {
        name: format!("h{i}"),
        transport: TransportSpec::Local,
        groups: vec![if machine.is_some() { "g0".to_owned() } else { format!("g{i}") }],
        endpoints: vec![Endpoint {
            address: [10, 0, 0, i as u8 + 1].into(),
            layer: Layer::Underlay,
            netns: None::<PathBuf>,
            link_bps: *link,
        }],
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    };
    let inventory = Inventory {
        hosts: links.iter().enumerate().map(host).collect(),
        groups: (0..links.len()).map(|i| group(format!("g{i}"))).collect(),
        ..Inventory::default()
    };
    Snapshot { inventory, ..Snapshot::default() }
}

fn test(from: usize, to: usize, kind: TestKind) -> Test {
    Test::new(format!("h{from}"), format!("h{to}"), Layer::Underlay, kind)
}

fn tcp() -> TestKind {
    TcpPlan::single(1000).into()
}

#[test]
fn a_transfer_ends_at_what_its_slowest_link_carries_in_its_time() {
    let snapshot = snapshot(&[Some(1e9), Some(1e10), None], Some(4e8), None);
    let limits = Limits::new(&snapshot, &snapshot.inventory, None);
    assert_eq!(limits.tuning(&test(0, 1, tcp())).bytes_max, Some(50_000_000));
    assert_eq!(limits.tuning(&test(0, 1, tcp())).pacing_bps, None);
    assert_eq!(limits.tuning(&test(0, 1, RttPlan { count: 6 }.into())), Tuning::default());
    // Few bytes are written in small pieces, or one write would be more than all of them.
    let short = limits.tuning(&test(0, 1, TcpPlan::single(10).into()));
    assert_eq!((short.bytes_max, short.write_bytes), (Some(500_000), Some(7812)));
}

#[test]
fn pairs_inside_one_machine_pass_no_link() {
    let snapshot = snapshot(&[None, None], Some(4e8), Some("vs-1"));
    let limits = Limits::new(&snapshot, &snapshot.inventory, None);
    assert_eq!(limits.tuning(&test(0, 1, tcp())), Tuning::default());
    let (announced, mut ledger) = limits.announced(&[Round { tests: vec![test(0, 1, tcp())] }]);
    assert_eq!(announced.links, []);
    assert!(ledger.pays(&limits, &test(0, 1, tcp())));
    // The link of a host without one of its own is that of its machine.
    let gentle = Limits::new(&snapshot, &snapshot.inventory, Some(0.1));
    assert_eq!(gentle.pace_bps(&test(0, 1, tcp())), Some(0.1 * TCP_SHARE * 4e8));
}

#[test]
fn gently_every_test_keeps_to_its_share_and_floods_are_left_out() {
    let snapshot = snapshot(&[Some(1e9), Some(1e9), None], None, None);
    let limits = Limits::new(&snapshot, &snapshot.inventory, Some(0.1));
    assert_eq!(limits.pace_bps(&test(0, 1, tcp())).map(f64::round), Some(80e6));
    assert_eq!(limits.pace_bps(&test(0, 2, tcp())).map(f64::round), Some(8e6), "unknown: 100 Mbit/s");
    let tuning = limits.tuning(&test(0, 1, tcp()));
    assert_eq!((tuning.pacing_bps.map(f64::round), tuning.bytes_max), (Some(80e6), Some(10_000_000)));
    let probe = |rate_bps: f64, payload: u16| test(0, 1, UdpPlan::paced(rate_bps, payload, 500).into());
    let rate = |test: &Test| limits.paced(test.clone()).kind.get::<UdpPlan>().map(|udp| udp.rate_bps);
    assert_eq!(rate(&probe(5e6, 1200)), Some(5e6), "slow enough as it is");
    assert!(rate(&probe(200e6, 1200)).is_some_and(|bps| bps * UDP_AT_ONCE <= 0.1 * 1e9));
    let eight = test(0, 1, TcpPlan { streams: 8, duration_ms: 1000 }.into());
    let round = Round { tests: vec![test(0, 1, tcp()), eight.clone(), probe(1e6, 200), probe(1e6, 1200)] };
    let kept = limits.rounds(vec![round, Round { tests: vec![eight] }]);
    assert_eq!(kept.len(), 1, "a round without tests goes");
    assert_eq!(kept[0].tests, [test(0, 1, tcp()), probe(1e6, 1200)]);
}

#[test]
fn nothing_is_paid_for_above_what_was_announced() {
    for share in [None, Some(0.1)] {
        let snapshot = snapshot(&[Some(1e9), Some(1e9), None], Some(1e10), None);
        let limits = Limits::new(&snapshot, &snapshot.inventory, share);
        let udp = |from, to| limits.paced(test(from, to, UdpPlan::paced(100e6, 1200, 500).into()));
        let pairs = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)];
        let planned: Vec<Test> = pairs.iter().flat_map(|(a, b)| [test(*a, *b, tcp()), udp(*a, *b)]).collect();
        let (announced, mut ledger) = limits.announced(&[Round { tests: planned.clone() }]);
        let mut sent: BTreeMap<Link, (f64, u64)> = BTreeMap::new();
        // Planned and repeated tests, then those that decide: the former leave something to the latter.
        let mut ran = [0; 2];
        let deciding = planned.iter().map(|test| Test { second_stage: true, ..test.clone() });
        let often = |tests: Vec<Test>| tests.into_iter().cycle().take(20 * planned.len());
        for test in often(planned.clone()).chain(often(deciding.collect())) {
            if ledger.affords(&limits, &test) {
                assert!(ledger.pays(&limits, &test));
                ran[usize::from(test.second_stage)] += 1;
                let cost = limits.cost(&test);
                for link in limits.links(&test) {
                    let of_link = sent.entry(link).or_default();
                    *of_link = (of_link.0 + cost.seconds, of_link.1 + cost.bytes);
                }
            }
        }
        assert!((3 * planned.len() / 2..2 * planned.len()).contains(&ran[0]), "{ran:?}");
        assert!((1..planned.len()).contains(&ran[1]), "{ran:?}");
        assert!(!ledger.pays(&limits, &planned[0]) && ledger.left_out().is_some());
        for link in &announced.links {
            let (seconds, bytes) = sent[&(link.is_uplink, link.of.clone())];
            assert!(seconds <= link.most_s && bytes <= link.most_bytes, "{link:?} {seconds} {bytes}");
            assert!(link.planned_bytes < link.most_bytes && link.planned_s < link.most_s);
        }
        assert_eq!(announced.unknown().collect::<Vec<_>>(), ["h2"]);
    }
}

#[test]
fn transfers_of_a_class_are_made_by_its_methods_and_no_others() {
    let snapshot = snapshot(&[Some(1e9), Some(1e10), Some(1e10)], None, None);
    let mut limits = Limits::new(&snapshot, &snapshot.inventory, None);
    let fast = test(1, 2, tcp());
    let plain = limits.tuning(&fast);
    assert_eq!((plain.send.clone(), plain.bytes_max), (None, Some(1_250_000_000)));
    let class = limits.fast_class(&fast).unwrap();
    assert_eq!((class.link_bps, limits.fast_class(&test(0, 1, tcp()))), (Some(10_000_000_000), None));
    let methods = MethodPair::named(("zerocopy", "truncate-beside"));
    limits.set_methods(&PathMethods { class, methods, compared_ms: 1, turns: Vec::new() });
    let tuned = limits.tuning(&fast);
    assert_eq!(
        (tuned.send.as_deref(), tuned.receive.as_deref()),
        (Some("zerocopy"), Some("truncate-beside"))
    );
    assert_eq!((tuned.bytes_max, limits.plain_tuning(&fast)), (plain.bytes_max, plain));
    assert_eq!(limits.tuning(&test(0, 1, tcp())).send, None);
    assert_eq!(limits.tuning(&test(1, 2, RttPlan { count: 6 }.into())), Tuning::default());
}
