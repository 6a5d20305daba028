//! Whole surveys on fake nodes: the order of things, gaps, repetitions, the store.

use super::*;
use crate::fake_node;
use linerate_fleet::programs::NodePrograms;
use linerate_fleet::progress::Silent;
use linerate_model::inventory::{Endpoint, Host, TransportSpec};
use linerate_model::kind::{RttPlan, UdpPlan};
use linerate_model::path_methods::MethodPair;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

fn cluster(hosts: u8) -> Inventory {
    let host = |i: u8| Host {
        name: format!("h{i}"),
        transport: TransportSpec::Local,
        groups: vec![],
        endpoints: vec![Endpoint {
            address: IpAddr::from([10, 0, 0, i]),
            layer: Layer::Underlay,
            netns: None,
            link_bps: Some(1e9),
        }],
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    };
    Inventory { name: "fake".into(), hosts: (1..=hosts).map(host).collect(), ..Inventory::default() }
}

/// A survey in which host `h<n>` behaves as `behaviour(n)` says.
fn surveyed(inventory: &Inventory, behaviour: impl Fn(&str) -> &'static str) -> (Snapshot, Snapshot) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("s.sqlite")).unwrap();
    let snapshot = survey_into(&mut store, folder.path(), inventory, behaviour);
    let stored = store.load_snapshot(&snapshot.id).unwrap();
    (snapshot, stored)
}

fn survey_into(
    store: &mut Store,
    folder: &Path,
    inventory: &Inventory,
    behaviour: impl Fn(&str) -> &'static str,
) -> Snapshot {
    let knowledge = Knowledge::builtin().unwrap();
    let order = SurveyRequest {
        inventory,
        inventory_path: None,
        parent: None,
        budget: Some(Duration::from_secs(60)),
        seed: 1,
        share: None,
        drives: false,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let program = |h: &Host| Arc::new(NodePrograms::only(fake_node::program(folder, behaviour(&h.name))));
        let fleet = Fleet::open_with(inventory, program, |_| true, &Silent).await;
        let (snapshot, _) = survey(&order, &fleet, store, &knowledge, &Silent).await.unwrap();
        fleet.bye().await;
        snapshot
    })
}

fn measured(snapshot: &Snapshot, kind: &str) -> usize {
    let samples = snapshot.samples.iter().filter(|s| s.test.kind.name() == kind);
    samples.filter(|s| matches!(s.outcome, Outcome::Measured(_))).count()
}

#[test]
fn a_healthy_cluster_is_measured_twice_and_stored() {
    let (snapshot, stored) = surveyed(&cluster(3), |_| "healthy");
    assert_eq!(snapshot, stored);
    assert_eq!(snapshot.gaps, vec![]);
    assert!(measured(&snapshot, "tcp") >= 12, "{}", measured(&snapshot, "tcp"));
    assert_eq!(measured(&snapshot, "udp"), 18, "three looks at each pair");
    assert_eq!(snapshot.facts.len(), 3);
    let udp = snapshot.samples.iter().find(|s| s.test.kind.name() == "udp").unwrap();
    let Some(UdpPlan { rate_bps, .. }) = udp.test.kind.get() else { panic!() };
    assert!((rate_bps - 40e6).abs() < 1e6, "a fifth of what TCP reached, not of the link: {rate_bps}");
}

#[test]
fn methods_of_fast_paths_are_compared_once_and_later_runs_use_the_same() {
    let mut inventory = cluster(4);
    let endpoints = inventory.hosts.iter_mut().flat_map(|host| &mut host.endpoints);
    endpoints.for_each(|endpoint| endpoint.link_bps = Some(25e9));
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("s.sqlite")).unwrap();
    let first = survey_into(&mut store, folder.path(), &inventory, |_| "healthy");
    let [chosen] = &first.methods[..] else { panic!("{:?}", first.methods) };
    assert_eq!(chosen.methods, MethodPair::plain());
    assert_eq!(chosen.turns.len(), 2, "what is slow for another reason is tried on one more pair");
    let second = survey_into(&mut store, folder.path(), &inventory, |_| "healthy");
    assert_eq!(second.methods, first.methods);
}

#[test]
fn a_host_that_dies_in_mid_survey_makes_gaps_and_nothing_else() {
    let (snapshot, stored) =
        surveyed(&cluster(3), |name| if name == "h2" { "dies-early" } else { "healthy" });
    assert_eq!(snapshot, stored);
    let lost: Vec<&Gap> = snapshot.gaps.iter().filter(|g| g.what == "host h2".into()).collect();
    assert_eq!(lost.len(), 1, "{:?}", snapshot.gaps);
    assert!(lost[0].reason.contains("out of memory"), "{:?}", lost[0]);
    for sample in &snapshot.samples {
        let touches = sample.test.from == "h2" || sample.test.to == "h2";
        assert!(touches || matches!(sample.outcome, Outcome::Measured(_)), "{sample:?}");
    }
    let gaps = snapshot.samples.iter().filter(|s| matches!(s.outcome, Outcome::Gap { .. })).count();
    assert!(gaps > 0 && measured(&snapshot, "tcp") > 4);
}

#[test]
fn a_host_that_never_answers_is_a_gap_from_the_start() {
    let (snapshot, _) = surveyed(&cluster(3), |name| if name == "h3" { "crash" } else { "healthy" });
    assert_eq!(snapshot.gaps.len(), 1);
    assert!(snapshot.samples.iter().all(|s| s.test.from != "h3" && s.test.to != "h3"));
    assert!(measured(&snapshot, "tcp") >= 4);
}

#[test]
fn what_was_contended_is_marked_and_repeated_a_few_times_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("late.jsonl");
    // Somebody claims that everything was contended, for ever.
    std::fs::write(&path, format!("{{\"from_ms\":0,\"to_ms\":{},\"reason\":\"late wire\"}}\n", u64::MAX))
        .unwrap();
    let inventory = Inventory { disturbances: Some(path), ..cluster(2) };
    let (snapshot, stored) = surveyed(&inventory, |_| "healthy");
    assert_eq!(snapshot, stored);
    assert!(
        snapshot
            .samples
            .iter()
            .all(|s| matches!(&s.outcome, Outcome::Invalid { reason } if reason.contains("late wire")))
    );
    let rtt = |s: &&Sample| s.test.from == "h1" && s.test.kind.is::<RttPlan>();
    assert_eq!(snapshot.samples.iter().filter(rtt).count(), 1 + repeat::REPEATS_MAX);
    let mut ids: Vec<u32> = snapshot.samples.iter().map(|s| s.test.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), snapshot.samples.len(), "numbers are unique");
}

#[test]
fn what_is_planned_for_a_pair_without_a_way_comes_after_all_others_and_once() {
    let (snapshot, _) = surveyed(&cluster(3), |_| "no-way-to-2");
    let first = snapshot.samples.iter().filter(|s| !s.test.second_stage);
    let cut_off = |s: &&Sample| s.test.to == "h2" && !s.test.kind.is::<RttPlan>();
    let order: Vec<bool> = first.clone().map(|s| cut_off(&s)).collect();
    let begin = order.iter().position(|c| *c).unwrap();
    assert!(order[begin..].iter().all(|c| *c), "{order:?}");
    for from in ["h1", "h3"] {
        for kind in ["tcp", "udp", "mtu"] {
            let of = |s: &&Sample| cut_off(s) && s.test.from == from && s.test.kind.name() == kind;
            let samples: Vec<&Sample> = first.clone().filter(of).collect();
            assert_eq!(samples.len(), 1, "{kind} from {from}");
            assert!(matches!(samples[0].outcome, Outcome::NothingThrough { .. }), "{samples:?}");
        }
    }
}
