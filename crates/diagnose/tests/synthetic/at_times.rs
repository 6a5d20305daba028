//! Probes that lose datagrams once, or intermittently: repeated in turns with their neighbours before they
//! are believed, and before they are dropped.

use linerate_diagnose::second_stage;
use linerate_knowledge::Knowledge;
use linerate_model::fact::FactValue;
use linerate_model::finding::{Diagnosis, Direction, Suspect};
use linerate_model::inventory::Layer;
use linerate_model::kind::{TcpPlan, UdpPlan};
use linerate_model::plan::Test;
use linerate_model::sample::{Outcome, Sample};
use linerate_model::snapshot::Snapshot;

use super::cluster::{Cluster, Layout, SIX, THREE};
use super::diagnose;

const TWO: Layout = &[("left", &["west-1"]), ("right", &["east-1"])];
const FIRST_ID: u32 = 5000;

fn is_probe(sample: &Sample, from: &str, to: &str, layer: Layer) -> bool {
    let test = &sample.test;
    test.kind.is::<UdpPlan>() && test.from == from && test.to == to && test.layer == layer
}

fn lose(sample: &mut Sample, share: f64) {
    if let Outcome::Measured(measured) = &mut sample.outcome {
        measured.loss = Some(share);
    }
}

/// A healthy cluster in which one probe in the overlay lost a part of its datagrams, and another one was
/// contended.
fn lost_once(layout: Layout, lossy: [&str; 2], contended: Option<[&str; 2]>) -> Snapshot {
    let mut snapshot = Cluster::new(layout).measure(21, &|_, _, _, path| path.loss = 0.0);
    for sample in &mut snapshot.samples {
        if is_probe(sample, lossy[0], lossy[1], Layer::Overlay) {
            lose(sample, 0.045);
        }
        if contended.is_some_and(|[from, to]| is_probe(sample, from, to, Layer::Overlay)) {
            sample.outcome = Outcome::Invalid { reason: "contended".to_owned() };
        }
    }
    snapshot
}

/// What the second stage asks for, measured: `share` says what a probe loses, by its place among the
/// repetitions of its pair.
fn measured_again(mut snapshot: Snapshot, share: impl Fn(&Test, u16) -> f64) -> (Vec<Test>, Diagnosis) {
    let knowledge = Knowledge::builtin().expect("the knowledge is good");
    let wanted = second_stage(&snapshot, &knowledge, FIRST_ID);
    let probes: Vec<Test> = wanted.into_iter().filter(|t| t.kind.is::<UdpPlan>()).collect();
    for test in &probes {
        let healthy = snapshot.samples.iter().find(|s| {
            is_probe(s, &test.from, &test.to, Layer::Underlay) && matches!(s.outcome, Outcome::Measured(_))
        });
        let mut sample = Sample { test: test.clone(), ..healthy.expect("all pairs were probed").clone() };
        lose(&mut sample, share(test, test.repeat - 100));
        snapshot.samples.push(sample);
    }
    (probes, diagnose(&snapshot, &knowledge))
}

fn into_node_3(test: &Test) -> bool {
    test.to == "node-3"
}

fn lost_into_node_3() -> Snapshot {
    let snapshot = lost_once(THREE, ["node-1", "node-3"], Some(["node-2", "node-3"]));
    let before = diagnose(&snapshot, &Knowledge::builtin().expect("the knowledge is good"));
    assert!(before.findings.is_empty(), "{}", before.headline);
    snapshot
}

/// Whether the first finding is a host that receives badly, or its group, which is that host alone.
fn receives_badly(diagnosis: &Diagnosis, host: &str, group: &str) -> bool {
    diagnosis.findings.first().is_some_and(|finding| {
        let place = &finding.places[0];
        let here = [Suspect::Host(host.into()), Suspect::Group(group.into())].contains(&place.suspect);
        here && place.direction == Direction::Rx
    })
}

fn is_node_3(diagnosis: &Diagnosis) -> bool {
    receives_badly(diagnosis, "node-3", "rack-3")
}

#[test]
fn one_lossy_probe_is_repeated_in_turns_with_what_shares_an_end_with_it_and_then_believed() {
    let (probes, found) =
        measured_again(lost_into_node_3(), |test, _| if into_node_3(test) { 0.04 } else { 0.0 });
    assert!(probes.iter().all(|t| t.serial && t.layer == Layer::Overlay), "{probes:?}");
    let pairs = |turn: usize| -> Vec<(&str, &str)> {
        probes.chunks(3).nth(turn).unwrap().iter().map(|t| (t.from.as_str(), t.to.as_str())).collect()
    };
    assert_eq!(pairs(0), [("node-1", "node-3"), ("node-2", "node-3"), ("node-1", "node-2")]);
    assert_eq!((pairs(1), pairs(2), probes.len()), (pairs(0), pairs(0), 9));
    assert!(is_node_3(&found), "{}", found.headline);
    assert_eq!(found.findings.len(), 1);
    assert!((found.findings[0].measured - 0.04).abs() < 0.005, "{}", found.findings[0].sentence);
}

#[test]
fn what_is_lost_in_one_turn_of_three_is_lost_at_times() {
    let lost = |test: &Test, turn| if into_node_3(test) && turn == 1 { 0.04 } else { 0.0 };
    let (_, found) = measured_again(lost_into_node_3(), lost);
    assert!(is_node_3(&found), "{}", found.headline);
}

#[test]
fn what_does_not_come_back_is_no_finding_and_a_note() {
    let (probes, found) = measured_again(lost_into_node_3(), |_, _| 0.0);
    assert!(!probes.is_empty() && found.findings.is_empty(), "{}", found.headline);
    assert!(
        found.notes.iter().any(|n| n.contains("node-1 to node-3") && n.contains("lost")),
        "{:?}",
        found.notes
    );
}

#[test]
fn between_two_hosts_a_lossy_probe_is_repeated_too_and_dropped_if_no_repetition_loses() {
    let lost = || lost_once(TWO, ["west-1", "east-1"], None);
    let (probes, found) = measured_again(lost(), |_, turn| if turn == 2 { 0.05 } else { 0.0 });
    assert!(probes.len() == 3 && probes.iter().all(|t| t.to == "east-1"), "{probes:?}");
    assert_eq!(found.findings.len(), 1, "{}", found.headline);
    let (_, found) = measured_again(lost(), |_, _| 0.0);
    assert!(found.findings.is_empty(), "{}", found.headline);
}

/// A healthy cluster whose tests begin half a second apart, and a counter that node-3 read in some of them.
fn counted(read: impl Fn(usize) -> bool) -> Diagnosis {
    let mut snapshot = Cluster::new(THREE).measure(22, &|_, _, _, path| path.loss = 0.0);
    for (number, sample) in snapshot.samples.iter_mut().enumerate() {
        sample.start_ms = 500 * number as u64;
        if read(number) && sample.test.to == "node-3" {
            sample.rx_counters.insert("softnet.dropped".to_owned(), 844);
        }
    }
    diagnose(&snapshot, &Knowledge::builtin().expect("the knowledge is good"))
}

#[test]
fn what_is_counted_for_a_moment_is_no_state_of_the_host() {
    let always = counted(|_| true);
    assert_eq!(always.findings.len(), 1, "{}", always.headline);
    assert_eq!(always.findings[0].causes[0].id, "backlog-overflow");
    let once = counted(|number| (10..12).contains(&number));
    assert!(once.findings.is_empty(), "{}", once.headline);
}

/// What the first sentence says of a cluster in which the one transfer of a pair had this outcome, and that
/// of the notes.
fn said_of_one(outcome: impl Fn(&Sample) -> Outcome) -> (String, String) {
    let mut snapshot = Cluster::new(THREE).measure(23, &|_, _, _, path| path.loss = 0.0);
    let is_it = |s: &Sample| {
        s.test.kind.is::<TcpPlan>()
            && (s.test.from.as_str(), s.test.to.as_str()) == ("node-1", "node-3")
            && s.test.layer == Layer::Overlay
    };
    snapshot.samples.retain(|s| !is_it(s) || s.test.repeat == 0);
    for sample in snapshot.samples.iter_mut().filter(|s| is_it(s)) {
        sample.outcome = outcome(sample);
    }
    let diagnosis = diagnose(&snapshot, &Knowledge::builtin().expect("the knowledge is good"));
    assert!(diagnosis.findings.is_empty(), "{}", diagnosis.headline);
    (diagnosis.headline, diagnosis.notes.join("\n"))
}

#[test]
fn that_nothing_got_through_is_in_the_first_sentence_and_a_slow_transfer_a_note() {
    let slow = |sample: &Sample| {
        let Outcome::Measured(measured) = &sample.outcome else { panic!("{sample:?}") };
        let mut measured = measured.clone();
        measured.throughput_bps = measured.throughput_bps.map(|bps| 0.5 * bps);
        Outcome::Measured(measured)
    };
    let (headline, notes) = said_of_one(slow);
    assert!(headline.starts_with("at ceiling") && !headline.contains("suspected"), "{headline}");
    assert!(notes.contains("suspected once and not tested again"), "{notes}");
    let (headline, _) = said_of_one(|_| Outcome::NothingThrough { reason: "stalled".to_owned() });
    assert!(headline.contains("suspected and not tested again: "), "{headline}");
}

/// A healthy cluster whose tests begin one after the other, `apart_ms` between them, and some of which came
/// out otherwise.
fn changed(layout: Layout, apart_ms: u64, change: impl Fn(&mut Sample)) -> Snapshot {
    let mut snapshot =
        Cluster::new(layout).measure(24, &|_, _, _, path| (path.loss, path.reordered) = (0.0, 0.0));
    for (number, sample) in snapshot.samples.iter_mut().enumerate() {
        sample.start_ms = apart_ms * number as u64;
        change(sample);
    }
    snapshot
}

fn said_of(snapshot: &Snapshot) -> Diagnosis {
    diagnose(snapshot, &Knowledge::builtin().expect("the knowledge is good"))
}

/// Six hosts of which these probes lost a part of their datagrams, one underlay or overlay probe after the
/// other, `apart_ms` between them.
fn lossy(probes: &[(&str, &str, Layer)], apart_ms: u64) -> Diagnosis {
    said_of(&changed(SIX, apart_ms, |sample| {
        if probes.iter().any(|(from, to, layer)| is_probe(sample, from, to, *layer)) {
            lose(sample, 0.03);
        }
    }))
}

const INTO_ARC_5: [(&str, &str, Layer); 4] = [
    ("arc-1", "arc-5", Layer::Underlay),
    ("arc-3", "arc-5", Layer::Overlay),
    ("arc-4", "arc-5", Layer::Overlay),
    ("arc-6", "arc-5", Layer::Underlay),
];

#[test]
fn probes_that_lose_at_times_on_several_paths_of_a_host_are_that_host() {
    let found = lossy(&INTO_ARC_5, 300);
    assert_eq!(found.findings.len(), 1, "{}", found.headline);
    let at = &found.findings[0].places[0];
    assert!(
        [Suspect::Host("arc-5".into()), Suspect::Group("vs-5".into())].contains(&at.suspect)
            && at.direction == Direction::Rx,
        "{}",
        found.headline
    );
}

#[test]
fn probes_that_lose_in_one_moment_or_here_and_there_name_no_host() {
    let moment = lossy(&INTO_ARC_5, 0);
    assert!(moment.findings.is_empty(), "{}", moment.headline);
    let here_and_there = [
        ("arc-1", "arc-5", Layer::Underlay),
        ("arc-6", "arc-3", Layer::Overlay),
        ("arc-5", "arc-4", Layer::Overlay),
        ("arc-3", "arc-6", Layer::Underlay),
    ];
    let scattered = lossy(&here_and_there, 300);
    assert!(scattered.findings.is_empty(), "{}", scattered.headline);
}

/// The transfers of one repetition into arc-5 in the underlay, but for those from one host.
fn is_at_a_bad_time(sample: &Sample) -> bool {
    let test = &sample.test;
    test.kind.get().is_some_and(TcpPlan::is_single)
        && (test.to.as_str(), test.layer, test.repeat) == ("arc-5", Layer::Underlay, 0)
        && test.from != "arc-3"
}

fn is_into_arc_5(found: &Diagnosis) -> bool {
    receives_badly(found, "arc-5", "vs-5")
}

#[test]
fn transfers_that_are_slow_at_times_and_not_alike_are_the_host_that_they_share() {
    let found = said_of(&changed(SIX, 300, |sample| {
        let share = if sample.test.from == "arc-1" { 0.35 } else { 0.6 };
        if is_at_a_bad_time(sample)
            && let Outcome::Measured(measured) = &mut sample.outcome
        {
            measured.throughput_bps = measured.throughput_bps.map(|bps| share * bps);
        }
    }));
    assert!(is_into_arc_5(&found), "{}", found.headline);
    let (expected, measured) = (found.findings[0].expected, found.findings[0].measured);
    assert!((0.5..0.7).contains(&(measured / expected)), "{}", found.findings[0].sentence);
}

#[test]
fn a_queue_that_is_long_at_times_is_the_host_behind_it() {
    let found = said_of(&changed(SIX, 300, |sample| {
        let bad = is_at_a_bad_time(sample);
        if let Outcome::Measured(measured) = &mut sample.outcome
            && bad
        {
            measured.rtt_loaded_us = measured.rtt_loaded_us.map(|us| 12.0 * us);
            for interval in measured.tx.iter_mut().flat_map(|tx| &mut tx.series) {
                interval.rtt_us *= 12.0;
            }
        }
    }));
    assert!(is_into_arc_5(&found), "{}", found.headline);
    let sentence = &found.findings[0].sentence;
    assert!(sentence.contains("comes and goes"), "{sentence}");
}

/// Two hosts of which one sends at these shares of its rate in the underlay, again and again: what was asked
/// for after the first two, and what is said after all of them.
fn slow_transfers(shares: [f64; 4]) -> (Vec<Test>, Diagnosis) {
    let is_it = |t: &Test| {
        t.kind.get().is_some_and(TcpPlan::is_single)
            && (t.from.as_str(), t.layer) == ("west-1", Layer::Underlay)
    };
    let slow = |sample: &mut Sample, share: f64| {
        if let Outcome::Measured(measured) = &mut sample.outcome {
            measured.throughput_bps = measured.throughput_bps.map(|bps| share * bps);
        }
    };
    let healthy = changed(TWO, 300, |_| {});
    let pattern = healthy.samples.iter().find(|s| is_it(&s.test)).expect("it was measured").clone();
    let mut snapshot = healthy;
    for sample in snapshot.samples.iter_mut().filter(|s| is_it(&s.test)) {
        slow(sample, shares[usize::from(sample.test.repeat)]);
    }
    let mut wanted = second_stage(&snapshot, &Knowledge::builtin().expect("the knowledge is good"), FIRST_ID);
    // Beside the repetitions there is one longer transfer, for its rate jumps.
    wanted.retain(|test| is_it(test) && test.kind == pattern.test.kind);
    for (test, share) in wanted.iter().zip(&shares[2..]) {
        let mut sample = Sample { test: test.clone(), start_ms: pattern.start_ms + 9000, ..pattern.clone() };
        slow(&mut sample, *share);
        snapshot.samples.push(sample);
    }
    (wanted, said_of(&snapshot))
}

#[test]
fn between_two_hosts_what_was_slow_twice_is_measured_again_and_then_believed_or_a_note() {
    let (wanted, found) = slow_transfers([0.47, 0.54, 0.5, 0.5]);
    assert_eq!(wanted.len(), 2, "{wanted:?}");
    assert!(!found.headline.starts_with("at ceiling"), "{}", found.headline);
    let (_, refuted) = slow_transfers([0.47, 0.54, 1.0, 0.99]);
    assert!(refuted.findings.is_empty(), "{}", refuted.headline);
    assert!(refuted.notes.iter().any(|n| n.contains("suspected once")), "{:?}", refuted.notes);
}

#[test]
fn a_suspicion_whose_repetition_was_contended_is_told_with_the_setting_that_would_explain_it() {
    let said = |small: bool, again: fn(&mut Sample)| {
        let mut cluster = Cluster::new(THREE);
        if small {
            let small = FactValue::Text("4096 4096 6144".to_owned());
            cluster.set("node-3", "sysctl.net.ipv4.tcp_rmem", small);
        }
        let mut snapshot = cluster.measure(24, &|_, _, _, path| (path.loss, path.reordered) = (0.0, 0.0));
        let is_it = |s: &Sample| {
            s.test.kind.is::<TcpPlan>()
                && (s.test.from.as_str(), s.test.to.as_str()) == ("node-1", "node-3")
                && s.test.layer == Layer::Overlay
        };
        snapshot.samples.retain(|s| !is_it(s) || s.test.repeat == 0);
        let mut repeated = Vec::new();
        for sample in snapshot.samples.iter_mut().filter(|s| is_it(s)) {
            let mut other = sample.clone();
            other.test.second_stage = true;
            again(&mut other);
            repeated.push(other);
            if let Outcome::Measured(measured) = &mut sample.outcome {
                measured.throughput_bps = measured.throughput_bps.map(|bps| 0.5 * bps);
            }
        }
        snapshot.samples.extend(repeated);
        let found = said_of(&snapshot);
        assert!(found.findings.is_empty(), "{}", found.headline);
        found.notes.into_iter().find(|n| n.contains("suspected once"))
    };
    let contended: fn(&mut Sample) =
        |s| s.outcome = Outcome::Invalid { reason: "waited 0.61 s of 1.03 s for a CPU".into() };
    let note = said(true, contended).expect("a note");
    assert!(note.contains("its repetition was contended") && note.contains("(tcp_rmem)"), "{note}");
    assert!(note.contains("node-3: sysctl.net.ipv4.tcp_rmem is 4096 4096 6144"), "{note}");
    let note = said(false, contended).expect("a note");
    assert!(note.contains("contended") && !note.contains("would explain"), "{note}");
    assert_eq!(said(true, |_| ()), None, "the repetition is as it should be");
}

/// The fact of the machine of node-3 alone says that it may be slower than a short transfer shows.
#[test]
fn a_limiter_on_a_machine_asks_for_a_longer_transfer() {
    let mut cluster = Cluster::new(THREE);
    let long = |cluster: &Cluster| -> Vec<[String; 2]> {
        let snapshot = cluster.measure(21, &|_, _, _, path| path.loss = 0.0);
        let tests = second_stage(&snapshot, &Knowledge::builtin().expect("the knowledge is good"), FIRST_ID);
        let is_long = |test: &Test| test.kind.get().is_some_and(|tcp: &TcpPlan| tcp.duration_ms >= 2000);
        tests.into_iter().filter(is_long).map(|test| [test.from, test.to]).collect()
    };
    assert!(long(&cluster).is_empty());
    cluster.set("rack-3", "nic.p-node-3.qdisc", FactValue::Text("tbf".to_owned()));
    let tests = long(&cluster);
    for end in [0, 1] {
        assert!(tests.iter().any(|ends| ends[end] == "node-3"), "{tests:?}");
    }
    assert!(tests.iter().flatten().filter(|host| *host == "node-3").count() == tests.len());
}
