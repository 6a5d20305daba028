//! A survey of drives that were made up: who is slow, who is not, and who is left alone.

use std::collections::BTreeMap;

use linerate_knowledge::Knowledge;
use linerate_model::disk::{DiskInterval, DiskRates};
use linerate_model::disk_load::{
    DeviceShare, DiskEnd, DiskPhase, DiskRequests, DiskResult, DiskTarget, Durable,
};
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::finding::{RankedCause, Suspect};
use linerate_model::histogram::Histogram;
use linerate_model::inventory::{Host, Inventory, Layer, SshSpec, TransportSpec};
use linerate_model::kind::{DiskPlan, TestKind};
use linerate_model::load::LoadReport;
use linerate_model::plan::Test;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::Snapshot;

use super::survey::{
    DrivePromise, DriveState, again, hosts_with_drives, is_of_survey, survey, surveyed, surveyed_in,
};

fn phase(random: bool) -> DiskPhase {
    DiskPhase {
        random,
        reads: 100,
        block_bytes: if random { 4096 } else { 1 << 20 },
        depth: 8,
        threads: 1,
        direct: true,
        durable: Durable::Never,
        batch: 1,
    }
}

/// One second at so many requests.
fn result(random: bool, per_s: u64, others_bytes: u64) -> DiskResult {
    let phase = phase(random);
    let bytes = per_s * u64::from(phase.block_bytes);
    let mut took_ns = Histogram::default();
    (0..per_s).for_each(|_| took_ns.record(1_000_000));
    DiskResult {
        phase,
        read: DiskRequests { requests: per_s, bytes, took_ns },
        write: DiskRequests::default(),
        flush_ns: Histogram::default(),
        elapsed_s: 1.0,
        last_flush_s: 0.0,
        cpu_s: 0.01,
        series: Vec::new(),
        way: "io_uring".into(),
        remark: None,
        device: Some(DeviceShare { requests: per_s, bytes: bytes + others_bytes, ..DeviceShare::default() }),
        doubts: Vec::new(),
    }
}

/// A measurement of `sda` of a host.
fn round(host: &str, random: u64, row: u64, others_bytes: u64) -> Sample {
    let phases = vec![result(true, random, others_bytes), result(false, row, others_bytes)];
    let plan = DiskPlan {
        target: DiskTarget::Existing { path: "/dev/sda".into() },
        phases: vec![phase(true), phase(false)],
        phase_ms: 1000,
        bytes_max: Some(256 << 20),
        requests_max: None,
        way: None,
    };
    let end = DiskEnd { device: "sda".into(), phases, ..DiskEnd::default() };
    let tx = LoadReport { disk: Some(Box::new(end)), ..LoadReport::default() };
    let measured = Measurement { tx: Some(Box::new(tx)), ..Measurement::default() };
    Sample {
        test: Test::new(host.into(), host.into(), Layer::Underlay, TestKind::from(plan)),
        start_ms: 0,
        outcome: Outcome::Measured(Box::new(measured)),
        tx_counters: BTreeMap::default(),
        rx_counters: BTreeMap::default(),
    }
}

fn facts(firmware: &str) -> HostFacts {
    let mut facts = HostFacts::default();
    for (key, value) in [
        ("disk.sda.size_bytes", FactValue::Int(4_000_000_000_000)),
        ("disk.sda.rotational", FactValue::Flag(false)),
        ("disk.sda.model", FactValue::Text("MZ7L33T8HBLT".into())),
        ("disk.sda.firmware", FactValue::Text(firmware.into())),
        ("disk.sda.scheduler", FactValue::Text("mq-deadline".into())),
        ("disk_health.sda.state", FactValue::Text("running".into())),
    ] {
        facts.readings.insert(key.to_owned(), value);
    }
    facts
}

/// Six hosts with a drive each, all alike.
fn six() -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (number, rate) in (1..).zip([9000, 9200, 8900, 9100, 9050, 8950]) {
        let host = format!("store-{number}");
        snapshot.facts.insert(host.clone(), facts("JXTC304Q"));
        snapshot.samples.push(round(&host, rate, 520, 0));
    }
    snapshot
}

fn state(snapshot: &Snapshot, host: &str) -> DriveState {
    let drives = survey(snapshot, &[], DrivePromise::default());
    drives.into_iter().find(|drive| drive.host == host).unwrap().state
}

#[test]
fn equals_of_many_hosts_are_compared_and_the_slow_one_comes_first() {
    let mut snapshot = six();
    assert!(survey(&snapshot, &[], DrivePromise::default()).iter().all(|d| d.state == DriveState::Fine));
    snapshot.samples[3] = round("store-4", 9100, 200, 0);
    let drives = survey(&snapshot, &[], DrivePromise::default());
    assert_eq!((drives[0].host.as_str(), &drives[0].state), ("store-4", &DriveState::Slow));
    assert_eq!((drives[0].equals, drives[0].same_firmware), (5, true));
    assert!((drives[0].sequential.unwrap().of_equals.unwrap() - 200.0 / 520.0).abs() < 1e-9);
    assert_eq!(again(&drives), [("store-4".to_owned(), "sda".to_owned())]);
    // It was fast once: a first measurement is often slow.
    snapshot.samples.push(round("store-4", 9100, 515, 0));
    assert_eq!(state(&snapshot, "store-4"), DriveState::Fine);
}

#[test]
fn a_moment_without_a_cpu_is_no_slow_drive() {
    let mut snapshot = six();
    let mut short = round("store-1", 3000, 520, 0);
    if let Outcome::Measured(m) = &mut short.outcome
        && let Some(disk) = m.tx.as_mut().and_then(|tx| tx.disk.as_mut())
    {
        let random = &mut disk.phases[0];
        (random.read.requests, random.elapsed_s) = (600, 0.2);
    }
    snapshot.samples[0] = short;
    assert_eq!(state(&snapshot, "store-1"), DriveState::Fine, "too short");
    let drives = survey(&snapshot, &[], DrivePromise::default());
    assert_eq!(again(&drives), [("store-1".to_owned(), "sda".to_owned())], "so it is measured longer");
    // As slow in a test that lasts.
    snapshot.samples.push(round("store-1", 2900, 520, 0));
    assert_eq!(state(&snapshot, "store-1"), DriveState::Slow);
}

#[test]
fn a_drive_that_stays_slow_is_asked_three_times_and_not_more() {
    let mut snapshot = six();
    snapshot.samples[0] = round("store-1", 3000, 520, 0);
    for _ in 0..2 {
        assert_eq!(again(&survey(&snapshot, &[], DrivePromise::default())).len(), 1);
        snapshot.samples.push(round("store-1", 3000, 520, 0));
    }
    let drives = survey(&snapshot, &[], DrivePromise::default());
    assert!(again(&drives).is_empty());
    assert_eq!((drives[0].rounds, &drives[0].state), (3, &DriveState::Slow));
}

#[test]
fn what_others_load_is_called_busy_and_counts_for_no_equal() {
    let mut snapshot = six();
    snapshot.samples[1] = round("store-2", 3000, 100, 400_000_000);
    assert_eq!(state(&snapshot, "store-2"), DriveState::Busy);
    snapshot.samples.remove(1);
    let rates = DiskRates { device: "sda".into(), busy: 0.8, ..DiskRates::default() };
    let host = "store-2".to_owned();
    snapshot.disks.push(DiskInterval {
        host,
        at_ms: 0,
        seconds: 1.0,
        disks: vec![rates],
        times_missing: None,
    });
    assert_eq!(state(&snapshot, "store-2"), DriveState::Busy);
    let drives = survey(&snapshot, &[], DrivePromise::default());
    assert_eq!(drives.iter().filter(|drive| drive.state == DriveState::Fine).count(), 5);
}

#[test]
fn few_equals_with_its_firmware_are_replaced_by_those_of_its_model_and_two_drives_decide_nothing() {
    let mut snapshot = six();
    snapshot.facts.insert("store-5".into(), facts("JXTC604Q"));
    snapshot.samples[4] = round("store-5", 3000, 520, 0);
    let drives = survey(&snapshot, &[], DrivePromise::default());
    assert_eq!((drives[0].host.as_str(), &drives[0].state), ("store-5", &DriveState::Slow));
    assert!(!drives[0].same_firmware && drives[1].same_firmware);
    snapshot.facts.retain(|host, _| ["store-4", "store-5"].contains(&host.as_str()));
    assert_eq!(state(&snapshot, "store-5"), DriveState::Fine, "one of two is slow: which?");
}

#[test]
fn a_promise_that_is_not_kept_a_setting_unlike_the_others_and_bad_health_are_reported() {
    let mut snapshot = six();
    let promise = DrivePromise { requests_per_s: Some(9000.0), bytes_per_s: Some(700e6) };
    let drives = survey(&snapshot, &[], promise);
    assert!(drives.iter().all(|drive| drive.state == DriveState::BelowPromise));
    let facts = snapshot.facts.get_mut("store-3").unwrap();
    facts.readings.insert("disk.sda.scheduler".into(), FactValue::Text("bfq".into()));
    facts.readings.insert("disk_health.sda.media_errors".into(), FactValue::Int(4));
    let drives = survey(&snapshot, &[], DrivePromise::default());
    let drive = &drives[0];
    assert_eq!((drive.host.as_str(), &drive.state), ("store-3", &DriveState::Fine));
    assert_eq!((drive.health[0].fact.as_str(), drive.health[0].value.as_str()), ("media_errors", "4"));
    assert_eq!(
        (drive.unlike[0].fact.as_str(), drive.unlike[0].usual.as_deref()),
        ("scheduler", Some("mq-deadline"))
    );
    assert!(drive.is_finding() && !drives[1].is_finding() && drives[1].unlike.is_empty());
}

#[test]
fn a_run_has_drives_where_it_surveyed_them_and_namespaces_have_those_of_their_machine() {
    let mut snapshot = six();
    assert_eq!(surveyed_in(&snapshot).len(), 6);
    // Of a bench, which ends by its time, nothing is compared.
    let mut bench = snapshot.clone();
    for sample in &mut bench.samples {
        let plan = sample.test.kind.get::<DiskPlan>().unwrap().clone();
        sample.test.kind = TestKind::from(DiskPlan { bytes_max: None, ..plan });
        assert!(!is_of_survey(sample));
    }
    assert!(surveyed_in(&bench).is_empty());
    let host = |name: &str, transport: TransportSpec| Host {
        name: name.to_owned(),
        transport,
        groups: Vec::new(),
        endpoints: Vec::new(),
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    };
    let netns = |name: &str| host(name, TransportSpec::Netns { path: "/run/netns/x".into() });
    let hosts = vec![netns("store-2"), netns("store-3"), host("store-5", TransportSpec::Local)];
    snapshot.inventory = Inventory { hosts, ..Inventory::default() };
    let hosts: Vec<&str> = hosts_with_drives(&snapshot).map(|(host, _)| host.as_str()).collect();
    assert_eq!(hosts, ["store-1", "store-2", "store-4", "store-6"]);
    assert_eq!(surveyed_in(&snapshot).len(), 4);
}

#[test]
fn whole_drives_are_surveyed_and_what_is_made_of_files_only_by_name() {
    let mut facts = facts("x");
    for (key, value) in [
        ("disk.loop0.size_bytes", FactValue::Int(1 << 30)),
        ("disk.sda.partitions", FactValue::List(vec!["sda1".into()])),
        ("disk.sda1.size_bytes", FactValue::Int(1 << 30)),
        ("disk.sr0.size_bytes", FactValue::Int(1 << 30)),
        ("disk.sdb.size_bytes", FactValue::Int(1 << 20)),
        ("disk.md0.size_bytes", FactValue::Int(1 << 30)),
        ("disk.md0.on", FactValue::List(vec!["sda1".into()])),
    ] {
        facts.readings.insert(key.to_owned(), value);
    }
    assert_eq!(surveyed(&facts, &[]), ["sda"]);
    assert_eq!(surveyed(&facts, &["loop0".to_owned(), "sdb".to_owned()]), ["loop0"]);
}

#[test]
fn a_drive_that_was_measured_slow_is_the_suspect_of_the_causes_that_its_own_facts_speak_for() {
    let mut snapshot = six();
    let host = |name: &String| Host {
        name: name.clone(),
        transport: TransportSpec::Ssh(SshSpec { host: name.clone(), user: None, port: None, sudo: true }),
        groups: Vec::new(),
        endpoints: Vec::new(),
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    };
    let hosts = snapshot.facts.keys().map(host).collect();
    snapshot.inventory = Inventory { hosts, ..Inventory::default() };
    let facts = snapshot.facts.get_mut("store-4").unwrap();
    facts.readings.insert("disk.sda.scheduler".into(), FactValue::Text("bfq".into()));
    snapshot.samples.retain(|sample| sample.test.from != "store-4");
    let knowledge = Knowledge::builtin().unwrap();
    let suspects = |snapshot: &Snapshot| -> Vec<(Suspect, Vec<String>)> {
        let findings = crate::diagnose(snapshot, &knowledge).findings.into_iter();
        let ids = |causes: Vec<RankedCause>| causes.into_iter().map(|cause| cause.id).collect();
        findings.map(|finding| (finding.places[0].suspect.clone(), ids(finding.causes))).collect()
    };
    let of_host = |id: &str| (Suspect::Host("store-4".into()), vec![id.to_owned()]);
    // Another drive of the same host is sick, and was not measured slow.
    let facts = snapshot.facts.get_mut("store-4").unwrap();
    facts.readings.insert("disk_health.sdb.media_errors".into(), FactValue::Int(9));
    snapshot.samples.extend((0..3).map(|_| round("store-4", 3000, 520, 0)));
    let measured = suspects(&snapshot);
    let drive = Suspect::Drive("store-4".into(), "sda".into());
    assert_eq!(measured[0], (drive, vec!["disk-scheduler".to_owned()]));
    assert_eq!(measured[1..], [of_host("drive-failing")], "the scheduler once");
    let finding = &crate::diagnose(&snapshot, &knowledge).findings[0];
    assert!((finding.measured - 3000.0 * 4096.0).abs() < 1.0, "{}", finding.measured);
    assert!((finding.expected - 9000.0 * 4096.0).abs() < 1.0, "{}", finding.expected);
    assert_eq!(finding.rests_on, Some((3, 3)));
    let change = &finding.causes[0].remedy.as_ref().unwrap().changes;
    let changes: Vec<(&str, &str)> = change.iter().map(|c| (c.host.as_str(), c.key.as_str())).collect();
    assert_eq!(changes, [("store-4", "disk.sda.scheduler")]);
    // Two rounds are no evidence yet.
    snapshot.samples.pop();
    assert!(suspects(&snapshot).iter().all(|(suspect, _)| matches!(suspect, Suspect::Host(_))));
}
