//! Loads on files of the tests' own: every kind of phase, limits, what is refused. Times are asserted only as
//! deadlines.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_model::disk_load::{DiskEnd, DiskPhase, DiskTarget, Doubt, Durable};
use linerate_model::kind::DiskPlan;
use linerate_model::load::{LoadReport, LoadSpec, Role};

use super::doubt::TO_DEVICE;
use crate::tests::{V4, spec};
use crate::{LoadControl, run};

const BLOCK: u32 = 4096;

fn phase(random: bool, reads: u8) -> DiskPhase {
    DiskPhase {
        random,
        reads,
        block_bytes: BLOCK,
        depth: 4,
        threads: 2,
        direct: false,
        durable: Durable::Never,
        batch: 1,
    }
}

fn plan(target: DiskTarget, phases: Vec<DiskPhase>) -> DiskPlan {
    DiskPlan { target, phases, phase_ms: 600_000, bytes_max: None, requests_max: Some(100), way: None }
}

fn in_folder(path: &Path, phases: Vec<DiskPhase>) -> DiskPlan {
    plan(DiskTarget::Folder { path: path.to_path_buf(), bytes: 4 << 20 }, phases)
}

fn of(plan: DiskPlan) -> LoadSpec {
    let sender = Role::Sender { peer: "127.0.0.1:1".parse().unwrap() };
    // A disk that others use can be slow.
    LoadSpec { deadline_ms: 3_600_000, ..spec(plan, sender, V4) }
}

fn ask(plan: DiskPlan) -> LoadReport {
    run(&of(plan), &LoadControl { stop: Arc::default(), listening: Box::new(|_| panic!("nothing listens")) })
}

fn end(report: &LoadReport) -> &DiskEnd {
    assert_eq!(report.stopped, None);
    report.disk.as_deref().unwrap()
}

/// A folder on the disk of the checkout: tmpfs does not support direct I/O on some kernels.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

#[test]
fn every_kind_of_phase_counts_what_it_did_and_leaves_nothing() {
    let folder = folder();
    let sync = |durable| DiskPhase { durable, ..phase(false, 0) };
    let phases = vec![
        phase(true, 100),
        phase(false, 100),
        phase(true, 0),
        phase(false, 0),
        phase(true, 70),
        sync(Durable::Data(1)),
        sync(Durable::Full(8)),
        sync(Durable::Each),
    ];
    for method in [None, Some("calls".to_owned())] {
        let report = ask(DiskPlan { way: method.clone(), ..in_folder(folder.path(), phases.clone()) });
        let end = end(&report);
        assert_eq!((end.bytes, end.phases.len()), (4 << 20, phases.len()));
        assert!(end.memory_bytes > 0 && end.prepared_s > 0.0);
        for done in &end.phases {
            let all = done.read.requests + done.write.requests;
            assert_eq!(all, 100, "{}: {all}", done.phase);
            assert_eq!(done.read.bytes + done.write.bytes, all * u64::from(BLOCK), "{}", done.phase);
            assert_eq!(done.took_ns().count(), all, "every request has its time");
            let in_series: u64 = done.series.iter().map(|p| u64::from(p.requests)).sum();
            assert_eq!(in_series, all, "{}", done.phase);
            assert!(done.elapsed_s > 0.0 && done.elapsed_s < 600.0 && done.cpu_s >= 0.0);
            assert!(method.as_ref().is_none_or(|method| *method == done.way), "{}", done.way);
            let expected_writes = match done.phase.reads {
                100 => 0..=0,
                0 => 100..=100,
                _ => 10..=55,
            };
            assert!(expected_writes.contains(&done.write.requests), "{}", done.phase);
        }
        let flushes = |n: usize| end.phases[n].flush_ns.count();
        assert_eq!((flushes(5), flushes(7)), (100, 0), "a flush for each write, or none");
        // Every eighth and what is left, of two threads with 50 writes each or of eight with 12 or 13.
        let expected = if end.phases[6].way == "calls" { 16 } else { 14 };
        assert_eq!(flushes(6), expected);
        // In a row each block is written once: the flush at the end brings all of it to the device.
        let written = [Doubt::WriteBack, Doubt::Memory];
        assert!(
            written.iter().any(|doubt| end.phases[3].doubts.contains(doubt)),
            "{:?}",
            end.phases[3].doubts
        );
        assert!(end.phases[2].last_flush_s > 0.0);
        assert_eq!(report.bytes, end.phases.iter().map(|p| p.read.bytes + p.write.bytes).sum::<u64>());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the file has no name");
}

#[test]
fn reads_of_what_the_cache_has_are_recognised() {
    let folder = folder();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![7_u8; 8 << 20]).unwrap();
    let twice = DiskPlan {
        requests_max: Some(20_000),
        ..plan(DiskTarget::Existing { path: path.clone() }, vec![phase(true, 100)])
    };
    let report = ask(twice);
    let done = &end(&report).phases[0];
    // 80 MB from a file of 8 MB cannot all come from storage.
    let cached = [Doubt::FromCache, Doubt::FitsMemory, Doubt::Memory];
    assert!(cached.iter().any(|doubt| done.doubts.contains(doubt)), "{:?}", done.doubts);
    assert!(!done.is_evidence());
    assert_eq!(std::fs::read(&path).unwrap(), vec![7_u8; 8 << 20], "it was only read");
}

#[test]
fn writes_that_the_cache_kept_are_recognised() {
    let folder = folder();
    let again_and_again = DiskPlan {
        requests_max: Some(20_000),
        ..in_folder(folder.path(), vec![phase(false, 0), phase(true, 0)])
    };
    let report = ask(again_and_again);
    for done in &end(&report).phases {
        // Everything that others write to the same device at that time is counted too: it may be as much.
        let reached = done.device.as_ref().map_or(0, |share| share.write_bytes);
        if reached as f64 >= TO_DEVICE * done.write.bytes as f64 {
            assert!(!done.doubts.contains(&Doubt::KeptInCache), "{:?}", done.doubts);
            continue;
        }
        // 80 MB into a file of 4 MB: the device gets a part of it.
        let kept = [Doubt::KeptInCache, Doubt::FitsMemory, Doubt::Memory];
        assert!(kept.iter().any(|doubt| done.doubts.contains(doubt)), "{:?}", done.doubts);
        assert!(!done.is_evidence() && !done.doubts.contains(&Doubt::WriteBack));
        if done.doubts.contains(&Doubt::KeptInCache) {
            assert!(
                done.reason(Doubt::KeptInCache).contains(" of 82 MB, "),
                "{}",
                done.reason(Doubt::KeptInCache)
            );
        }
    }
}

#[test]
fn a_file_of_holes_is_no_evidence() {
    let folder = folder();
    let path = folder.path().join("holes");
    std::fs::File::create(&path).unwrap().set_len(8 << 20).unwrap();
    let report = ask(plan(DiskTarget::Existing { path }, vec![phase(true, 100)]));
    assert!(end(&report).phases[0].doubts.contains(&Doubt::Zeros));
}

#[test]
fn around_the_cache_the_device_is_asked() {
    const NAME: &str = "around_the_cache_the_device_is_asked";
    let folder = folder();
    let direct = DiskPhase { direct: true, ..phase(true, 100) };
    let report = ask(in_folder(folder.path(), vec![direct]));
    if let Some(reason) = report.stopped.filter(|r| r.contains("does not support direct I/O")) {
        println!("SKIPPED {NAME}: {reason}");
        return;
    }
    let end = report.disk.unwrap();
    let done = &end.phases[0];
    assert!(!done.doubts.contains(&Doubt::FromCache) && !done.doubts.contains(&Doubt::Zeros));
    match done.device {
        Some(share) => {
            let reached = share.requests + share.merged;
            assert!(reached >= 100 && share.bytes >= 100 * u64::from(BLOCK), "{share:?}");
            assert!(!end.device.is_empty() && !end.filesystem.is_empty());
        }
        None => println!("SKIPPED {NAME}: the folder of the tests is on no block device"),
    }
}

#[test]
fn time_bytes_and_a_stop_end_it() {
    let folder = folder();
    let many = |change: fn(&mut DiskPlan)| {
        let mut plan = DiskPlan { requests_max: None, ..in_folder(folder.path(), vec![phase(true, 100)]) };
        change(&mut plan);
        plan
    };
    let report = ask(many(|p| p.phase_ms = 120));
    let done = &end(&report).phases[0];
    assert!((0.12..60.0).contains(&done.elapsed_s), "{}", done.elapsed_s);
    let report = ask(many(|p| p.bytes_max = Some(1 << 20)));
    assert_eq!(end(&report).phases[0].read.bytes, 1 << 20);
    let stop = Arc::new(AtomicBool::new(false));
    let control = LoadControl { stop: Arc::clone(&stop), listening: Box::new(|_| {}) };
    let spec = of(many(|_| {}));
    let begun = Instant::now();
    let report = std::thread::scope(|scope| {
        let load = scope.spawn(|| run(&spec, &control));
        stop.store(true, Ordering::Relaxed);
        load.join().unwrap()
    });
    assert_eq!(report.stopped.as_deref(), Some("stopped by the operator"));
    assert!(begun.elapsed() < Duration::from_secs(300));
}

/// What makes a plan wrong.
type Change = fn(&mut DiskPlan);

#[test]
fn plans_that_make_no_sense_are_refused() {
    let folder = folder();
    let cases: [(Change, &str); 11] = [
        (|p| p.phases.clear(), "the number of phases is 0"),
        (|p| p.phase_ms = 0, "phase_ms is 0"),
        (|p| p.phases[0].block_bytes = 0, "the size of a request is 0"),
        (|p| p.phases[0].block_bytes = 1000, "the size of a request is 1000"),
        (|p| p.phases[0].reads = 101, "the share of reads is 101"),
        (|p| p.phases[0].depth = 0, "depth times threads is 0"),
        (|p| p.phases[0].depth = 65_535, "depth times threads is 131070"),
        (|p| p.phases[0].durable = Durable::Data(0), "writes before a flush is 0"),
        (|p| p.phases[0].block_bytes = 16 << 20, "the part of each thread is 2097152"),
        (|p| p.way = Some("fast".into()), "cannot use the I/O method `fast`: known are: io_uring, calls"),
        (
            |p| p.target = DiskTarget::Folder { path: "/".into(), bytes: u64::MAX / 4 },
            "/: a file of 4611686018427387904 bytes is more than half of the ",
        ),
    ];
    for (change, answer) in cases {
        let mut plan = in_folder(folder.path(), vec![phase(true, 100)]);
        change(&mut plan);
        let report = ask(plan);
        let reason = report.stopped.unwrap_or_default();
        assert!(reason.starts_with(answer), "{answer}: {reason}");
    }
}

#[test]
fn what_is_there_is_never_written() {
    let folder = folder();
    let path = folder.path().join("precious");
    std::fs::write(&path, vec![7_u8; 8 << 20]).unwrap();
    for reads in [0, 50, 99] {
        let report = ask(plan(DiskTarget::Existing { path: path.clone() }, vec![phase(true, reads)]));
        let reason = report.stopped.unwrap_or_default();
        assert!(reason.contains("would write it"), "{reason}");
    }
    let empty = DiskTarget::Empty { path: path.clone(), really: "precious".into(), bytes: 4 << 20 };
    let report = ask(plan(empty, vec![phase(true, 0)]));
    assert!(report.stopped.unwrap_or_default().contains("it is no block device"));
    assert_eq!(std::fs::read(&path).unwrap(), vec![7_u8; 8 << 20]);
    for (path, answer) in [("/dev/null", "neither a file nor"), ("/nonexistent", "No such file")] {
        let target = DiskTarget::Existing { path: PathBuf::from(path) };
        let reason = ask(plan(target, vec![phase(true, 100)])).stopped.unwrap_or_default();
        assert!(reason.contains(answer), "{path}: {reason}");
    }
    let report = ask(in_folder(&path, vec![phase(true, 100)]));
    assert!(report.stopped.unwrap_or_default().contains("it is no folder"));
}
