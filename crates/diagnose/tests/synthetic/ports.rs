//! Tables of throughput alone, of clusters whose ports have different speeds that nobody told.

use linerate_diagnose::stats::Rng;
use linerate_knowledge::Knowledge;
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::finding::{Diagnosis, Suspect};
use linerate_model::inventory::{Endpoint, Host, Inventory, Layer, TransportSpec};
use linerate_model::kind::{TcpPlan, TestKind};
use linerate_model::sample::{Measurement, Outcome};
use linerate_model::snapshot::Snapshot;

use super::cluster::sample;
use super::diagnose;

/// What ports of 1, 10 and 25 Gbit/s reach.
const GBIT: [f64; 3] = [0.94e9, 9.4e9, 23.5e9];

fn name(number: usize) -> String {
    format!("n{}", number + 1)
}

/// What is said of such a table.
fn said(ports: &[f64], seed: u64, damage: impl Fn(usize, usize, &mut f64)) -> Diagnosis {
    diagnose(&table(ports, seed, damage), &Knowledge::builtin().expect("the knowledge that is built in"))
}

/// A table of hosts with these ports, by what each of them reaches; `damage` changes what a pair reaches.
fn table(ports: &[f64], seed: u64, damage: impl Fn(usize, usize, &mut f64)) -> Snapshot {
    let host = |number: usize| Host {
        name: name(number),
        transport: TransportSpec::Local,
        groups: Vec::new(),
        endpoints: vec![Endpoint {
            address: [10, 0, 0, number as u8 + 1].into(),
            layer: Layer::Underlay,
            netns: None,
            link_bps: None,
        }],
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    };
    let mut rng = Rng::new(seed);
    let mut samples = Vec::new();
    for from in 0..ports.len() {
        for to in (0..ports.len()).filter(|to| *to != from) {
            let mut bps = ports[from].min(ports[to]) * (1.0 + 0.01 * rng.normal());
            damage(from, to, &mut bps);
            let measured = Measurement { throughput_bps: Some(bps), ..Measurement::default() };
            let kind = TestKind::from(TcpPlan::single(10_000));
            let outcome = Outcome::Measured(Box::new(measured));
            samples.push(sample(&name(from), &name(to), Layer::Underlay, kind, 0, outcome));
        }
    }
    let hosts = (0..ports.len()).map(host).collect();
    Snapshot {
        schema: linerate_model::SCHEMA,
        id: format!("table-{seed}"),
        inventory: Inventory { name: "table".to_owned(), hosts, ..Inventory::default() },
        samples,
        ..Snapshot::default()
    }
}

/// Hosts of ports with these places in [`GBIT`].
fn with(kinds: &[usize]) -> Vec<f64> {
    kinds.iter().map(|kind| GBIT[*kind]).collect()
}

#[test]
fn healthy_hosts_with_slower_ports_are_no_loss_and_are_told() {
    let mixtures: [&[usize]; 6] = [
        &[2, 2, 1, 1],
        &[2, 2, 2, 1, 1, 1],
        &[2, 2, 1, 1, 1, 1],
        &[1, 2, 1, 2, 1, 2, 1, 2],
        &[1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
        &[2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0],
    ];
    for kinds in mixtures {
        for seed in 0..20 {
            let diagnosis = said(&with(kinds), seed, |_, _, _| {});
            let sentences: Vec<&str> = diagnosis.findings.iter().map(|f| f.sentence.as_str()).collect();
            assert!(sentences.is_empty(), "{kinds:?}: {sentences:?}");
            assert!(
                diagnosis.headline.contains("ports have different speeds"),
                "{kinds:?}: {}",
                diagnosis.headline
            );
            assert!(diagnosis.notes.iter().any(|note| note.contains("ethtool")), "{:?}", diagnosis.notes);
        }
    }
    let words = said(&with(&[2, 2, 1, 1]), 1, |_, _, _| {}).headline;
    assert!(words.contains("n3, n4 reach 9.") && words.contains("(ports of 10 Gbit/s)"), "{words}");
}

/// The places of all findings, and of what was suspected and could not be repeated in a table, as words.
fn blamed(diagnosis: &Diagnosis) -> String {
    let places = diagnosis.findings.iter().filter_map(|f| f.places.first()).map(|p| match &p.suspect {
        Suspect::Host(host) => host.clone(),
        other => format!("{other:?}"),
    });
    places.chain([diagnosis.headline.clone()]).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_host_that_receives_badly_is_found_beside_slower_ports() {
    let ports = with(&[2, 2, 2, 2, 1, 1, 1, 1]);
    for (victim, seed) in [(1, 1), (3, 2), (6, 3)] {
        let diagnosis = said(&ports, seed, |_, to, bps| *bps *= if to == victim { 0.25 } else { 1.0 });
        assert!(blamed(&diagnosis).contains(&name(victim)), "{}", blamed(&diagnosis));
        assert!(!blamed(&diagnosis).contains("every pair"), "{}", blamed(&diagnosis));
    }
}

#[test]
fn what_is_no_port_stays_a_loss() {
    let no_alarm = |diagnosis: &Diagnosis| {
        diagnosis.headline.contains("ports have different speeds")
            || diagnosis.headline.starts_with("nothing stands out")
    };
    // One host of its own speed is a suspect, and so are two of eight.
    for kinds in [&[2, 2, 2, 2, 2, 1][..], &[2, 2, 2, 2, 2, 2, 1, 1]] {
        let diagnosis = said(&with(kinds), 4, |_, _, _| {});
        assert!(!no_alarm(&diagnosis), "{kinds:?}: {}", diagnosis.headline);
    }
    // Half of the hosts at what no port reaches.
    let diagnosis = said(&[23.5e9, 23.5e9, 23.5e9, 14e9, 14e9, 14e9], 5, |_, _, _| {});
    assert!(!no_alarm(&diagnosis), "{}", diagnosis.headline);
    // One direction alone: what half of the hosts receive, not what they send.
    let half = |_: usize, to: usize, bps: &mut f64| *bps *= if to < 4 { 0.4 } else { 1.0 };
    let diagnosis = said(&with(&[2; 8]), 6, half);
    assert!(!no_alarm(&diagnosis), "{}", diagnosis.headline);
    // Between two racks, each of which is fast inside.
    let between = |from: usize, to: usize, bps: &mut f64| {
        *bps *= if (from < 4) == (to < 4) { 1.0 } else { 0.4 };
    };
    let diagnosis = said(&with(&[2; 8]), 7, between);
    assert!(!no_alarm(&diagnosis), "{}", diagnosis.headline);
}

#[test]
fn buffers_that_are_ample_are_not_blamed_where_no_round_trip_is_known() {
    let causes = |most_bytes: &str| -> Vec<String> {
        let mut snapshot = table(&[3.1e9; 6], 8, |_, _, _| {});
        for number in 0..6 {
            let readings = [
                ("nic.eth0.speed_mbit", FactValue::Int(10_000)),
                ("sysctl.net.ipv4.tcp_rmem", FactValue::Text(format!("4096 131072 {most_bytes}"))),
                ("sysctl.net.ipv4.tcp_wmem", FactValue::Text(format!("4096 65536 {most_bytes}"))),
            ];
            let readings = readings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            snapshot.facts.insert(name(number), HostFacts { readings, ..HostFacts::default() });
        }
        let diagnosis = diagnose(&snapshot, &Knowledge::builtin().expect("the knowledge that is built in"));
        let [finding] = &diagnosis.findings[..] else { panic!("{:?}", diagnosis.headline) };
        assert_eq!(finding.places[0].suspect, Suspect::All, "{}", finding.sentence);
        finding.causes.iter().map(|cause| cause.id.clone()).collect()
    };
    let of_buffers = |causes: &[String]| causes.iter().any(|c| c.contains("mem-small"));
    let (ample, small) = (causes("67108864"), causes("6291456"));
    assert!(!of_buffers(&ample), "{ample:?}");
    assert!(of_buffers(&small), "a path may be long: {small:?}");
}
