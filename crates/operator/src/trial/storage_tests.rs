//! Trials of settings of DRBD: what is measured where, and what is said where nothing can be.

use std::collections::BTreeMap;

use linerate_knowledge::Knowledge;
use linerate_model::change::Remedy;
use linerate_model::disk_load::DiskTarget;
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::finding::{Diagnosis, Metric};
use linerate_model::inventory::{Host, HostName, Layer, TransportSpec};
use linerate_model::kind::{DiskPlan, TcpPlan, TestKind};
use linerate_model::plan::Test;
use linerate_model::sample::{Outcome, Sample};
use linerate_model::snapshot::{Snapshot, StorageFigure, StoragePattern, StorageSubject};

use super::choose::{self, TrialError, TrialOptions};
use linerate_model::drbd_bench::PHASES;

/// A host of the inventory.
fn host(name: &HostName) -> Host {
    Host {
        name: name.clone(),
        transport: TransportSpec::Local,
        groups: Vec::new(),
        endpoints: Vec::new(),
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    }
}

/// A bench in which random writes are slow and the activity log is small.
fn bench() -> (Snapshot, Diagnosis) {
    let figure = |what: StorageSubject, pattern: StoragePattern, mbyte_per_s: f64| StorageFigure {
        host: "one".into(),
        what,
        variant: if what == StorageSubject::LocalDisk { String::new() } else { "underlay".into() },
        pattern,
        bytes_per_s: mbyte_per_s * 1e6,
        ..StorageFigure::default()
    };
    let plan = DiskPlan {
        target: DiskTarget::Folder { path: "/mnt".into(), bytes: 1 << 26 },
        phases: PHASES.iter().map(|(_, phase)| *phase).collect(),
        phase_ms: 2000,
        bytes_max: None,
        requests_max: None,
        way: None,
    };
    let test =
        |id: u32, kind: TestKind| Test { id, ..Test::new("one".into(), "one".into(), Layer::Underlay, kind) };
    let sample = |test: Test| Sample {
        test,
        start_ms: 0,
        outcome: Outcome::Gap { reason: "not needed here".into() },
        tx_counters: BTreeMap::default(),
        rx_counters: BTreeMap::default(),
    };
    let mut snapshot = Snapshot { id: "r".into(), ..Snapshot::default() };
    for host in ["one", "two"] {
        let mut facts = HostFacts::default();
        facts.readings.insert("drbd.r0.disk.al-extents".into(), FactValue::Int(127));
        snapshot.facts.insert(host.into(), facts);
    }
    snapshot.storage = vec![
        figure(StorageSubject::LocalDisk, StoragePattern::Write, 90.0),
        figure(StorageSubject::LocalDisk, StoragePattern::RandomWrite, 20.0),
        figure(StorageSubject::Replicated, StoragePattern::Write, 80.0),
        figure(StorageSubject::Replicated, StoragePattern::RandomWrite, 2.0),
        figure(StorageSubject::Transport, StoragePattern::Stream, 1100.0),
    ];
    let diagnosis = linerate_diagnose::diagnose(&snapshot, &Knowledge::builtin().unwrap());
    snapshot.samples =
        vec![sample(test(1, TestKind::from(plan))), sample(test(2, TestKind::from(TcpPlan::single(2000))))];
    (snapshot, diagnosis)
}

/// The first remedy of this name.
fn remedy(diagnosis: &Diagnosis, id: &str) -> Remedy {
    let causes = diagnosis.findings.iter().flat_map(|finding| &finding.causes);
    causes.filter_map(|cause| cause.remedy.clone()).find(|remedy| remedy.id == id).unwrap()
}

#[test]
fn a_setting_of_drbd_is_tried_on_both_hosts_with_the_test_that_showed_the_loss() {
    let (snapshot, diagnosis) = bench();
    let options = TrialOptions { remedy: "drbd-activity-log".into(), ..TrialOptions::default() };
    let trial = choose::plan(&snapshot, &diagnosis, &options, "t".into()).unwrap();
    assert_eq!((trial.response, trial.pair), (Metric::Storage, ("one".into(), "two".into())));
    assert_eq!(trial.control, None);
    let changes: Vec<(&str, &FactValue)> =
        trial.remedy.changes.iter().map(|c| (c.host.as_str(), &c.to)).collect();
    assert_eq!(changes, [("one", &FactValue::Int(6007)), ("two", &FactValue::Int(6007))]);
    let test = choose::storage_test(&snapshot, &diagnosis, &remedy(&diagnosis, "drbd-activity-log")).unwrap();
    let Some(plan) = test.kind.get::<DiskPlan>() else { panic!("{:?}", test.kind) };
    assert_eq!(plan.phases, [PHASES[1].1], "random writes alone");
    assert_eq!(plan.target, DiskTarget::Folder { path: "/mnt".into(), bytes: 1 << 26 });
    assert_eq!(plan.phase_ms, 2000, "as long as the bench where that is enough");
}

#[test]
fn an_arm_on_a_slow_disk_lasts_until_enough_requests_have_ended() {
    let (mut snapshot, mut diagnosis) = bench();
    let phase_ms = |snapshot: &Snapshot, diagnosis: &Diagnosis| {
        let test =
            choose::storage_test(snapshot, diagnosis, &remedy(diagnosis, "drbd-activity-log")).unwrap();
        test.kind.get::<DiskPlan>().unwrap().phase_ms
    };
    // 160 requests of 4 KiB, 65536 bytes in a second.
    for (bytes_per_s, wanted_ms) in [(65536.0, 10_000), (0.0, 30_000)] {
        let random = |f: &&mut StorageFigure| {
            f.what == StorageSubject::Replicated && f.pattern == StoragePattern::RandomWrite
        };
        snapshot.storage.iter_mut().find(random).unwrap().bytes_per_s = bytes_per_s;
        diagnosis.findings[0].measured = bytes_per_s;
        assert_eq!(phase_ms(&snapshot, &diagnosis), wanted_ms, "{bytes_per_s} byte/s");
    }
}

#[test]
fn a_setting_that_was_only_read_is_tried_with_the_writes_that_lose_most() {
    let (mut snapshot, _) = bench();
    snapshot.inventory.hosts = snapshot.facts.keys().map(host).collect();
    for facts in snapshot.facts.values_mut() {
        let key = "drbd.r0.net.data-integrity-alg";
        facts.readings.insert(key.into(), FactValue::Text("sha256".into()));
    }
    // Too few large writes for a figure: nothing tells what random ones should reach.
    snapshot.storage.retain(|f| f.pattern != StoragePattern::Write);
    let figure = |what: StorageSubject, mbyte_per_s: f64| StorageFigure {
        what,
        pattern: StoragePattern::SyncWrite,
        bytes_per_s: mbyte_per_s * 1e6,
        ..snapshot.storage[0].clone()
    };
    snapshot
        .storage
        .extend([figure(StorageSubject::LocalDisk, 1.0), figure(StorageSubject::Replicated, 0.5)]);
    let diagnosis = linerate_diagnose::diagnose(&snapshot, &Knowledge::builtin().unwrap());
    assert_eq!(diagnosis.findings[0].responses, [Metric::Setting], "{:?}", diagnosis.headline);
    let options = TrialOptions { remedy: "drbd-integrity-check".into(), ..TrialOptions::default() };
    let trial = choose::plan(&snapshot, &diagnosis, &options, "t".into()).unwrap();
    assert_eq!((trial.response, trial.remedy.changes.len()), (Metric::Storage, 2));
    let test =
        choose::storage_test(&snapshot, &diagnosis, &remedy(&diagnosis, "drbd-integrity-check")).unwrap();
    let Some(plan) = test.kind.get::<DiskPlan>() else { panic!("{:?}", test.kind) };
    assert_eq!(plan.phases, [PHASES[1].1], "a tenth of the disk at random, half of it one by one");
    // In a survey no transfer between hosts would show it.
    snapshot.storage.clear();
    let error = choose::plan(&snapshot, &diagnosis, &options, "t".into()).unwrap_err();
    assert!(error.to_string().contains("drbd bench"), "{error}");
}

#[test]
fn without_a_bench_it_says_which_command_measures() {
    let (mut snapshot, diagnosis) = bench();
    snapshot.samples.clear();
    let options = TrialOptions { remedy: "drbd-activity-log".into(), ..TrialOptions::default() };
    let error = choose::plan(&snapshot, &diagnosis, &options, "t".into()).unwrap_err();
    assert!(
        matches!(&error, TrialError::NoPair { .. }) && error.to_string().contains("drbd bench"),
        "{error}"
    );
}

#[test]
fn a_checksum_of_blocks_is_a_cause_where_there_is_one() {
    let named = |value: &str| {
        let (mut snapshot, _) = bench();
        for facts in snapshot.facts.values_mut() {
            let value = FactValue::Text(value.into());
            facts.readings.insert("drbd.r0.net.data-integrity-alg".into(), value);
        }
        let diagnosis = linerate_diagnose::diagnose(&snapshot, &Knowledge::builtin().unwrap());
        diagnosis.findings.iter().flat_map(|f| &f.causes).any(|c| c.id == "drbd-integrity-check")
    };
    assert!(named("blake2b-256") && !named("none"));
}

#[test]
fn a_setting_of_a_drive_is_tried_with_the_reads_of_a_survey_of_it() {
    let (mut snapshot, _) = bench();
    snapshot.facts.clear();
    for (host, scheduler) in [("one", "bfq"), ("two", "none"), ("three", "none"), ("four", "none")] {
        let mut facts = HostFacts::default();
        facts.readings.insert("disk.nvme0n1.scheduler".into(), FactValue::Text(scheduler.into()));
        snapshot.facts.insert(host.into(), facts);
    }
    snapshot.inventory.hosts = snapshot.facts.keys().map(host).collect();
    let diagnosis = linerate_diagnose::diagnose(&snapshot, &Knowledge::builtin().unwrap());
    let options = TrialOptions { remedy: "disk-scheduler-heavy".into(), ..TrialOptions::default() };
    let without = choose::plan(&snapshot, &diagnosis, &options, "t".into()).unwrap_err().to_string();
    assert!(without.contains("linerate disk survey --device nvme0n1 one"), "{without}");
    let random = PHASES[1].1;
    for sample in &mut snapshot.samples {
        let Some(plan) = sample.test.kind.get::<DiskPlan>() else { continue };
        let random = linerate_model::disk_load::DiskPhase { random: true, reads: 100, ..random };
        let plan = DiskPlan {
            target: DiskTarget::Existing { path: "/dev/nvme0n1".into() },
            phases: vec![random, linerate_model::disk_load::DiskPhase { random: false, ..random }],
            ..plan.clone()
        };
        sample.test.kind = plan.into();
        sample.test.from = "one".into();
    }
    let trial = choose::plan(&snapshot, &diagnosis, &options, "t".into()).unwrap();
    assert_eq!((trial.response, trial.pair), (Metric::Storage, ("one".into(), "one".into())));
    let change = &trial.remedy.changes[0];
    assert_eq!((change.key.as_str(), change.to.to_string().as_str()), ("disk.nvme0n1.scheduler", "none"));
    let test =
        choose::storage_test(&snapshot, &diagnosis, &remedy(&diagnosis, "disk-scheduler-heavy")).unwrap();
    let Some(plan) = test.kind.get::<DiskPlan>() else { panic!("{:?}", test.kind) };
    assert!(plan.phases.len() == 1 && plan.phases[0].random && !plan.phases[0].writes());
}
