//! Plans for the clusters that people have, with and without a budget.

use super::*;
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::inventory::{Endpoint, Group, Host, TransportSpec};
use linerate_model::kind::{MtuPlan, RttPlan, TcpPlan, TestKind, UdpPlan};
use std::net::IpAddr;

/// Hosts `arc-1`… with both layers, host `i` in group `vs-<groups[i]>` behind 200 Mbit/s.
fn cluster(groups: &[usize]) -> Inventory {
    let names: BTreeSet<usize> = groups.iter().copied().collect();
    let endpoint = |layer, net: u8, i: usize| Endpoint {
        address: IpAddr::from([10, net, 0, i as u8 + 1]),
        layer,
        netns: None,
        link_bps: None,
    };
    Inventory {
        name: "lab".into(),
        groups: names
            .iter()
            .map(|g| Group {
                name: format!("vs-{g}"),
                kind: "hypervisor".into(),
                parent: None,
                uplink_bps: Some(200e6),
                machine: Some(format!("vs-{g}-host")),
            })
            .collect(),
        hosts: groups
            .iter()
            .enumerate()
            .map(|(i, g)| Host {
                name: format!("arc-{}", i + 1),
                transport: TransportSpec::Local,
                groups: vec![format!("vs-{g}")],
                endpoints: vec![endpoint(Layer::Underlay, 0, i), endpoint(Layer::Overlay, 1, i)],
                state_dir: None,
                etc_dir: None,
                cache_dir: None,
            })
            .collect(),
        disturbances: None,
        ..Inventory::default()
    }
}

fn planned(inventory: &Inventory, facts: &Facts, budget_s: Option<u64>) -> Plan {
    let absent = BTreeSet::new();
    plan(&SurveySpec {
        inventory,
        facts,
        absent: &absent,
        budget: budget_s.map(Duration::from_secs),
        seed: 3,
    })
}

fn count(plan: &Plan, layer: Layer, name: &str, repeat: u16) -> usize {
    let tests = plan.rounds.iter().flat_map(|r| &r.tests);
    let single = |t: &&Test| !t.kind.get().is_some_and(TcpPlan::is_parallel);
    tests.filter(single).filter(|t| t.layer == layer && t.kind.name() == name && t.repeat == repeat).count()
}

#[test]
fn the_lab_in_25_seconds_keeps_what_matters() {
    let lab = cluster(&[4, 4, 3, 4, 5, 2]);
    // Facts have taken about a second of the 25.
    let plan = planned(&lab, &Facts::new(), Some(24));
    for layer in [Layer::Underlay, Layer::Overlay] {
        assert_eq!(count(&plan, layer, "tcp", 0), 30);
        assert_eq!(count(&plan, layer, "mtu", 0), 30);
    }
    assert_eq!(count(&plan, Layer::Underlay, "udp", 0), 30);
    assert_eq!(count(&plan, Layer::Overlay, "udp", 0), 30);
    assert!(plan.expected_s <= 25.0, "{}", plan.expected_s);
    assert!(plan.left_out.iter().any(|l| l.contains("second time")), "{:?}", plan.left_out);
    for test in plan.rounds.iter().flat_map(|r| &r.tests) {
        if let Some(TcpPlan { duration_ms, .. }) = test.kind.get() {
            let inside = lab.same_machine(&test.from, &test.to);
            assert!(if inside {
                (125..=200).contains(duration_ms)
            } else {
                (250..=400).contains(duration_ms)
            });
        }
    }
}

#[test]
fn with_a_minute_the_matrix_is_measured_twice_and_nothing_is_left_out() {
    let lab = cluster(&[4, 4, 3, 4, 5, 2]);
    let plan = planned(&lab, &Facts::new(), Some(60));
    assert_eq!(plan.left_out, Vec::<String>::new());
    for layer in [Layer::Underlay, Layer::Overlay] {
        assert_eq!((count(&plan, layer, "tcp", 0), count(&plan, layer, "tcp", 1)), (30, 30));
        assert_eq!(count(&plan, layer, "udp", 0), 30);
    }
    assert!(plan.expected_s <= 60.0);
    let default = planned(&lab, &Facts::new(), None);
    assert!(
        default.rounds.iter().flat_map(|r| &r.tests).any(|t| t.kind == TestKind::from(TcpPlan::single(1000)))
    );
}

#[test]
fn numbers_are_unique_and_the_important_comes_first() {
    let plan = planned(&cluster(&[0, 0, 1, 1]), &Facts::new(), None);
    let tests: Vec<&Test> = plan.rounds.iter().flat_map(|r| &r.tests).collect();
    let ids: BTreeSet<u32> = tests.iter().map(|t| t.id).collect();
    assert_eq!(ids.len(), tests.len());
    let first = |f: &dyn Fn(&Test) -> bool| tests.iter().position(|t| f(t)).unwrap();
    let overlay_first = first(&|t| t.layer == Layer::Overlay && t.kind.name() == "tcp");
    let second_time = first(&|t| t.repeat == 1);
    let udp = first(&|t| t.kind.name() == "udp");
    assert!(overlay_first < udp && udp < second_time);
}

#[test]
fn many_hosts_get_matchings_and_a_small_budget_fewer_of_them() {
    let groups: Vec<usize> = (0..12).map(|i| i / 3).collect();
    let big = cluster(&groups);
    let generous = planned(&big, &Facts::new(), None);
    assert_eq!(count(&generous, Layer::Underlay, "tcp", 0), 12 * 8);
    let tight = planned(&big, &Facts::new(), Some(25));
    assert!(tight.expected_s <= 25.0, "{}", tight.expected_s);
    assert!(!tight.left_out.is_empty());
    assert!(count(&tight, Layer::Underlay, "tcp", 0) >= 12 * 4);
}

#[test]
fn hosts_that_are_absent_and_odd_clusters_are_no_trouble() {
    let facts = Facts::new();
    let lab = cluster(&[0, 0, 1]);
    let absent = BTreeSet::from(["arc-2".to_owned()]);
    let plan = plan(&SurveySpec { inventory: &lab, facts: &facts, absent: &absent, budget: None, seed: 1 });
    assert!(plan.rounds.iter().flat_map(|r| &r.tests).all(|t| t.from != "arc-2" && t.to != "arc-2"));
    assert_eq!(planned(&Inventory::default(), &facts, Some(1)).rounds, vec![]);
    assert_eq!(planned(&cluster(&[0]), &facts, Some(1)).rounds, vec![]);
}

#[test]
fn probes_have_the_sizes_of_both_ends() {
    let lab = cluster(&[0, 1, 2]);
    let mut facts = Facts::new();
    for (host, address, mtu) in [("arc-1", "10.0.0.1/24", 1500), ("arc-2", "10.0.0.2/24", 9000)] {
        let readings = [
            ("nic.eth0.addresses".to_owned(), FactValue::List(vec![address.to_owned()])),
            ("nic.eth0.mtu".to_owned(), FactValue::Int(mtu)),
        ];
        facts.insert(host.to_owned(), HostFacts { readings: readings.into(), ..HostFacts::default() });
    }
    let plan = planned(&lab, &facts, None);
    let sizes = |from: &str, to: &str| {
        plan.rounds.iter().flat_map(|r| &r.tests).find_map(|t| {
            let wanted = t.from == from && t.to == to && t.layer == Layer::Underlay;
            t.kind.get::<MtuPlan>().filter(|_| wanted).map(|plan| plan.sizes.clone())
        })
    };
    assert_eq!(sizes("arc-1", "arc-2").unwrap(), [576, 1500, 9000]);
    assert_eq!(sizes("arc-3", "arc-1").unwrap(), [576, 1500, 9000]);
}

#[test]
fn transfers_inside_a_machine_run_alone() {
    let lab = cluster(&[4, 4, 3, 4, 5, 2]);
    let plan = planned(&lab, &Facts::new(), Some(60));
    for round in plan.rounds.iter().filter(|r| r.tests[0].kind.is::<TcpPlan>()) {
        let inside = round.tests.iter().any(|t| lab.same_machine(&t.from, &t.to));
        assert!(!inside || round.tests.len() == 1, "{round:?}");
    }
}

#[test]
fn beyond_the_full_matrix_every_pair_is_still_asked_for_its_rtt() {
    let groups: Vec<usize> = (0..12).map(|i| i / 3).collect();
    let plan = planned(&cluster(&groups), &Facts::new(), Some(60));
    for layer in [Layer::Underlay, Layer::Overlay] {
        assert_eq!(count(&plan, layer, "rtt", 0), 12 * 11);
        assert!(count(&plan, layer, "tcp", 0) < 12 * 11);
    }
    let hurried = planned(&cluster(&groups), &Facts::new(), Some(20));
    assert!(count(&hurried, Layer::Underlay, "rtt", 0) < 12 * 11, "where it costs too much it is left out");
}

#[test]
fn a_probe_of_loss_takes_half_a_second_where_there_is_time() {
    let lab = cluster(&[4, 4, 3, 4, 5, 2]);
    let times = |budget_s: u64| {
        let plan = planned(&lab, &Facts::new(), Some(budget_s));
        let of = |t: &Test| t.kind.get::<UdpPlan>().map(|udp| udp.duration_ms);
        let times: BTreeSet<u32> = plan.rounds.iter().flat_map(|r| &r.tests).filter_map(of).collect();
        (times, plan.left_out)
    };
    assert_eq!(times(30).0, BTreeSet::from([500]));
    let (short, left_out) = times(22);
    assert_eq!(short, BTreeSet::from([250]));
    assert!(left_out.iter().any(|l| l.contains("half of the time of each UDP")), "{left_out:?}");
}

#[test]
fn a_loss_probe_has_enough_datagrams_for_one_in_a_thousand() {
    for path_bps in [200e6, 1e9, 25e9] {
        let rate_bps = udp_rate(Some(path_bps), false);
        let payload = udp_payload(rate_bps, 500);
        let datagrams = rate_bps * 0.5 / 8.0 / f64::from(payload);
        assert!(
            datagrams >= 3999.0 && (512..=1200).contains(&payload),
            "{path_bps}: {datagrams} of {payload}"
        );
    }
    assert_eq!(udp_payload(2e6, 250), 512);
}

#[test]
fn the_second_stage_has_seconds_of_its_own_and_more_where_a_limiter_was_read() {
    let kept = |longer: u64| {
        let longer = Duration::from_secs(longer);
        [10, 20, 40, 100].map(|seconds| reserve(Duration::from_secs(seconds), longer).as_millis())
    };
    assert_eq!(kept(0), [2000, 4000, 4000, 6000]);
    assert_eq!(kept(6), [4500, 9000, 10_000, 12_000], "at most a quarter");
    let (inventory, mut facts) = (cluster(&[4, 4, 3]), Facts::new());
    let longer = |facts: &Facts| linerate_diagnose::longer_transfers(&inventory, facts).as_secs();
    assert_eq!(longer(&facts), 0);
    let limited = |key: &str, value: FactValue| {
        let mut facts = HostFacts::default();
        facts.readings.insert(key.into(), value);
        facts
    };
    facts.insert("arc-1".into(), limited("nic.eth0.qdisc", FactValue::Text("tbf".into())));
    assert_eq!(longer(&facts), 0, "a bucket that is empty at once");
    facts.insert("arc-1".into(), limited("firewall.output.limits", FactValue::Int(1)));
    assert_eq!(longer(&facts), 2, "of what it sends");
    facts.insert("vs-3-host".into(), limited("firewall.forward.limits", FactValue::Int(2)));
    assert_eq!(longer(&facts), 7, "and both directions of arc-3");
    facts.insert("vs-3-host".into(), limited("firewall.forward.limits", FactValue::Int(0)));
    assert_eq!(longer(&facts), 2);
}

#[test]
fn a_probe_takes_its_share_of_the_path_unless_it_asks_for_packets() {
    let usual = TestKind::from(UdpPlan::paced(4e7, 625, 500));
    assert_eq!(
        probe_of(&usual, 7e7, false),
        TestKind::from(UdpPlan::paced(udp_rate(Some(7e7), false), 512, 500))
    );
    // Twice as many packets a second as TCP had, and as small as that: what tells a limit of packets from one
    // of bytes.
    let small = TestKind::from(UdpPlan::paced(1.9e7, 200, 500));
    assert_eq!(probe_of(&small, 7e7, false), small);
    assert_eq!(
        probe_of(&TestKind::from(RttPlan { count: 6 }), 7e7, false),
        TestKind::from(RttPlan { count: 6 })
    );
}

#[test]
fn what_comes_and_goes_is_looked_for_several_times_where_there_is_time() {
    let looks = |groups: &[usize], budget_s: u64| {
        let plan = planned(&cluster(groups), &Facts::new(), Some(budget_s));
        let rounds = plan.rounds.iter().enumerate();
        let places: Vec<usize> = rounds
            .filter(|(_, r)| {
                let udp = |t: &Test| t.kind.is::<UdpPlan>();
                r.tests.iter().any(|t| udp(t) && (t.from.as_str(), t.to.as_str()) == ("arc-1", "arc-2"))
            })
            .map(|(number, _)| number)
            .collect();
        let tcp_ms = plan
            .rounds
            .iter()
            .flat_map(|r| &r.tests)
            .find_map(|t| t.kind.get::<TcpPlan>())
            .map(|t| t.duration_ms);
        (places, tcp_ms.unwrap(), plan.expected_s)
    };
    let (two, tcp_ms, expected_s) = looks(&[0, 1], 30);
    // Two layers, three looks each; transfers in between.
    assert_eq!(two.len(), 6, "{two:?}");
    assert!(two.windows(3).any(|w| w[2] - w[0] > 4), "{two:?} lie apart");
    assert!(tcp_ms >= 1000 && expected_s <= 26.0, "{tcp_ms} ms, {expected_s} s");
    let (six, ..) = looks(&[4, 4, 3, 4, 5, 2], 30);
    assert_eq!(six.len(), 2, "one look in each layer where there is no time for more: {six:?}");
}
