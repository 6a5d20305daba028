//! Which paths are in question, and what turns decide.

use linerate_model::inventory::{Endpoint, Host, Inventory, Layer, TransportSpec};
use linerate_model::kind::RttPlan;
use linerate_model::sample::Measurement;
use linerate_model::snapshot::Snapshot;

use super::*;

/// Hosts `h0`… with links of these speeds.
fn cluster(links: &[Option<f64>]) -> Snapshot {
    let host = |(i, link_bps): (usize, &Option<f64>)| Host {
        name: format!("h{i}"),
        transport: TransportSpec::Local,
        groups: vec![],
        endpoints: vec![Endpoint {
            address: [10, 0, 0, i as u8 + 1].into(),
            layer: Layer::Underlay,
            netns: None,
            link_bps: *link_bps,
        }],
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    };
    let hosts = links.iter().enumerate().map(host).collect();
    Snapshot { inventory: Inventory { hosts, ..Inventory::default() }, ..Snapshot::default() }
}

fn plan(hosts: usize) -> Vec<Round> {
    let pairs = (0..hosts).flat_map(|a| (0..hosts).filter(move |b| a != *b).map(move |b| (a, b)));
    let test = |(a, b): (usize, usize)| {
        let new = |kind| Test::new(format!("h{a}"), format!("h{b}"), Layer::Underlay, kind);
        vec![new(RttPlan { count: 6 }.into()), new(TcpPlan::single(1000).into())]
    };
    pairs.map(|pair| Round { tests: test(pair) }).collect()
}

const GBIT: f64 = 1e9;

fn fast(link_bps: Option<u64>) -> PathClass {
    PathClass { layer: Layer::Underlay, link_bps }
}

#[test]
fn only_fast_paths_are_in_question_once_and_within_the_budget() {
    let snapshot = cluster(&[Some(25.0 * GBIT), Some(25.0 * GBIT), Some(GBIT), None, None]);
    let limits = Limits::new(&snapshot, &snapshot.inventory, None);
    let found = questions(&limits, &plan(5), &[], None);
    let classes: Vec<PathClass> = found.iter().map(|question| question.class).collect();
    assert_eq!(classes, [fast(Some(25_000_000_000)), fast(None)], "no path of h2 is fast");
    let of_unknown: Vec<&str> = found[1].pairs.iter().map(|pair| pair.0.as_str()).collect();
    assert_eq!(of_unknown, ["h0", "h1"], "pairs of different hosts");
    assert_eq!(rounds(&found).len(), 3 * ROUNDS * SURVEY_METHODS.len());
    let known =
        PathMethods { class: fast(None), methods: MethodPair::plain(), compared_ms: 1, turns: Vec::new() };
    assert_eq!(questions(&limits, &plan(5), &[known], None).len(), 1);
    assert_eq!(questions(&limits, &plan(5), &[], Some(30.0)).len(), 1);
    assert_eq!(questions(&limits, &plan(5), &[], Some(20.0)), []);
    let gentle = Limits::new(&snapshot, &snapshot.inventory, Some(0.1));
    assert_eq!(questions(&gentle, &plan(5), &[], None), []);
}

fn of(index: usize, bps: f64, cost: f64) -> Turn {
    let MethodPair { send, receive } = MethodPair::named(SURVEY_METHODS[index]);
    Turn { send, receive, bps, tx_s_per_gb: cost, ..Turn::default() }
}

#[test]
fn other_methods_must_win_each_turn_and_the_cheaper_of_two_equal_ones_is_used() {
    let chosen = |turns: &[Turn]| chosen(turns).to_string();
    assert_eq!(chosen(&[]), "write > truncate");
    let plain = [of(0, 10e9, 0.5), of(0, 8e9, 0.5)];
    let with = |more: &[Turn]| [&plain[..], more].concat();
    assert_eq!(
        chosen(&with(&[of(3, 12e9, 0.3), of(3, 10.5e9, 0.3)])),
        "write > truncate",
        "one turn is no gain"
    );
    assert_eq!(chosen(&with(&[of(3, 12e9, 0.3)])), "write > truncate", "one turn is too few");
    let won = with(&[of(3, 12e9, 0.3), of(3, 12e9, 0.3), of(1, 11.9e9, 0.2), of(1, 11.9e9, 0.2)]);
    assert_eq!(chosen(&won), "write > truncate-beside");
    let faster = with(&[of(3, 14e9, 0.3), of(3, 14e9, 0.3), of(1, 11.9e9, 0.2), of(1, 11.9e9, 0.2)]);
    assert_eq!(chosen(&faster), "zerocopy > truncate-beside");
    assert_eq!(chosen(&[of(3, 14e9, 0.3), of(3, 14e9, 0.3)]), "write > truncate", "nothing to beat");
}

#[test]
fn a_full_path_a_slow_one_and_idle_ends_are_not_bound_by_the_methods() {
    let sample = |bps: f64, busy: f64| {
        let end = || Some(Box::new(LoadReport { core_busy_max: Some(busy), ..LoadReport::default() }));
        let measured =
            Measurement { throughput_bps: Some(bps), tx: end(), rx: end(), ..Measurement::default() };
        let test = Test::new("a".into(), "b".into(), Layer::Underlay, TcpPlan::single(250).into());
        Sample::new(test, 0, Outcome::Measured(Box::new(measured)))
    };
    let class = fast(Some(25_000_000_000));
    assert!(is_bound(&sample(12e9, 1.0), class));
    assert!(!is_bound(&sample(22e9, 1.0), class), "full");
    assert!(!is_bound(&sample(12e9, 0.5), class), "something else binds");
    assert!(!is_bound(&sample(1e9, 1.0), class), "slow");
    assert!(is_bound(&sample(12e9, 1.0), fast(None)));
}
