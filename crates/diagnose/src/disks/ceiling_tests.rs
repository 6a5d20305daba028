//! Figures of the casebook (D2, E), and volumes as their facts show them.
#![allow(clippy::unwrap_used)]

use linerate_model::disk_load::{DeviceShare, DiskPhase, DiskRequests, DiskResult, Doubt, Durable};
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::histogram::Histogram;
use linerate_storage::plan::{CLASSES, Filesystem, LEVELS, VolumeSpec, plan};

use super::ceiling::{AlsoSafe, Arithmetic, DiskLimit, Term, beside, reach};
use super::layout;
use super::link::DriveBus;
use super::volume::{Class, VolumeMembers, volume};

fn phase(random: bool, reads: u8, block_bytes: u32, depth: u16) -> DiskPhase {
    DiskPhase {
        random,
        reads,
        block_bytes,
        depth,
        threads: 1,
        direct: true,
        durable: Durable::Never,
        batch: 1,
    }
}

fn about(value: f64, wanted: f64) {
    assert!((value - wanted).abs() < 0.5, "{value} is not {wanted}");
}

/// 36 drives, one mirror, 18 stripes of 64 KiB.
fn of_36() -> VolumeMembers {
    VolumeMembers {
        drives: 36,
        copies: 2,
        chunk_bytes: Some(64 << 10),
        ..VolumeMembers::drive(Class::Rotating)
    }
}

/// Casebook D2: 36 x 150 = 5400 random reads a second, half of it for writes.
#[test]
fn thirty_six_drives_read_5400_times_a_second_and_write_half_of_it() {
    let reads = reach(&of_36(), &phase(true, 100, 4096, 256)).unwrap();
    assert_eq!((reads.requests_per_s.round(), reads.binds), (5400.0, Term::Seeks));
    let writes = reach(&of_36(), &phase(true, 0, 4096, 256)).unwrap();
    assert_eq!((writes.requests_per_s.round(), writes.binds), (2700.0, Term::Seeks));
    let mixed = reach(&of_36(), &phase(true, 50, 4096, 256)).unwrap();
    // Half reads: 1.5 requests to drives for each.
    about(mixed.requests_per_s, 3600.0);
}

/// D2 as measured: 65,955 writes a second of 4 KB in a row are no random writes; merging makes large ones of
/// them.
#[test]
fn writes_in_a_row_are_bound_by_bytes_because_they_are_merged() {
    let should = reach(&of_36(), &phase(false, 0, 4096, 1024)).unwrap();
    assert_eq!(should.binds, Term::Transfer);
    assert!((should.bytes_per_s - 18.0 * 150e6).abs() < 1.0, "{should:?}");
    assert!(should.requests_per_s > 65_955.0);
    let few = reach(&of_36(), &phase(false, 0, 4096, 32)).unwrap();
    assert_eq!(
        (few.binds, few.bytes_per_s.round()),
        (Term::Depth, 300e6),
        "128 KiB reach two drives: {few:?}"
    );
}

#[test]
fn few_requests_do_not_keep_many_drives_busy() {
    let should = reach(&of_36(), &phase(true, 100, 4096, 18)).unwrap();
    // Half of the drives have one request each: 8.5 ms + 4.17 ms.
    assert_eq!((should.requests_per_s.round(), should.binds), (1421.0, Term::Depth));
    let shortage = Some((36, 144.0));
    assert!(
        matches!(should.arithmetic, Arithmetic::Seeks { shortage: s, .. } if s == shortage),
        "{should:?}"
    );
    let one = reach(&VolumeMembers::drive(Class::Rotating), &phase(true, 100, 4096, 1)).unwrap();
    about(one.requests_per_s, 79.0);
}

#[test]
fn large_requests_are_cut_into_pieces() {
    let should = reach(&of_36(), &phase(true, 100, 1 << 20, 64)).unwrap();
    // 16 pieces of 64 KiB each: 36 x 1 / (1/150 s + 0.44 ms) / 16.
    assert!((300.0..330.0).contains(&should.requests_per_s), "{should:?}");
    let parity = VolumeMembers { copies: 1, parity: 1, drives: 6, ..of_36() };
    let small = reach(&parity, &phase(true, 0, 4096, 256)).unwrap();
    // 6 x 150 / 4: old data and parity are read, both are written.
    about(small.requests_per_s, 225.0);
    let row = reach(&parity, &phase(true, 0, 5 * 65_536, 256)).unwrap();
    assert!(row.requests_per_s > 130.0, "a whole row is written without reading: {row:?}");
}

#[test]
fn safe_writes_wait_for_a_revolution() {
    let safe = DiskPhase { durable: Durable::Data(1), ..phase(false, 0, 4096, 1) };
    let should = reach(&of_36(), &safe).unwrap();
    assert_eq!((should.requests_per_s.round(), should.binds), (120.0, Term::Flush));
    let eight = DiskPhase { durable: Durable::Data(8), ..safe };
    about(reach(&of_36(), &eight).unwrap().requests_per_s, 960.0);
}

/// A file system that has to make a record safe too waits twice, and where nothing is written to a cache
/// there is nothing to empty.
#[test]
fn the_file_system_and_the_write_cache_decide_what_a_safe_write_costs() {
    let safe = |durable: Durable| DiskPhase { durable, ..phase(false, 0, 4096, 1) };
    let rate = |filesystem: &str, write_back: Option<bool>, durable: Durable| {
        let volume = VolumeMembers { write_back, ..of_36() }.under(filesystem);
        reach(&volume, &safe(durable)).unwrap().requests_per_s.round()
    };
    about(rate("xfs", Some(true), Durable::Data(1)), 120.0);
    about(rate("xfs", Some(true), Durable::Full(1)), 60.0);
    about(rate("ext4", None, Durable::Full(8)), 480.0);
    about(rate("btrfs", Some(true), Durable::Data(1)), 60.0);
    about(rate("", Some(true), Durable::Full(1)), 120.0);
    // Each of the eight waits, and the record with the last one.
    about(rate("xfs", Some(false), Durable::Data(8)), 120.0);
    about(rate("xfs", Some(false), Durable::Full(8)), 107.0);
    let xfs = VolumeMembers { write_back: Some(true), ..of_36() }.under("xfs");
    let flush = Arithmetic::Flush { by_itself: false, also: Some(AlsoSafe::Journal) };
    assert_eq!(reach(&xfs, &safe(Durable::Full(1))).unwrap().arithmetic, flush);
}

#[test]
fn a_write_cache_orders_writes_by_itself_and_without_one_a_place_is_missed() {
    let one = VolumeMembers::drive(Class::Rotating);
    let random = phase(true, 0, 4096, 1);
    about(reach(&one, &random).unwrap().requests_per_s, 79.0);
    let with = VolumeMembers { write_back: Some(true), ..one.clone() };
    let should = reach(&with, &random).unwrap();
    assert_eq!((should.requests_per_s.round(), should.binds), (150.0, Term::Seeks));
    assert_eq!(reach(&with, &phase(true, 100, 4096, 1)).unwrap().binds, Term::Depth, "reads are not taken");
    let without = VolumeMembers { write_back: Some(false), ..one };
    let row = reach(&without, &phase(false, 0, 1 << 20, 1)).unwrap();
    assert_eq!((row.requests_per_s.round(), row.binds), (120.0, Term::Depth), "{row:?}");
    let two = reach(&without, &phase(false, 0, 1 << 20, 2)).unwrap();
    assert_eq!((two.bytes_per_s.round(), two.binds), (150e6, Term::Transfer));
}

#[test]
fn what_nobody_can_know_is_not_said() {
    for class in [Class::Nvme, Class::Virtual, Class::Controller, Class::Made] {
        for phase in [phase(true, 100, 4096, 32), phase(false, 100, 1 << 20, 8)] {
            assert_eq!(reach(&VolumeMembers::drive(class), &phase), None);
        }
    }
    // Nobody knows what a chip needs for a request or a flush.
    let safe = DiskPhase { durable: Durable::Data(1), ..phase(false, 0, 4096, 1) };
    for phase in [phase(true, 100, 4096, 1), safe] {
        assert_eq!(reach(&VolumeMembers::drive(Class::Solid), &phase), None);
    }
    let solid = reach(&VolumeMembers::drive(Class::Solid), &phase(false, 100, 1 << 20, 8)).unwrap();
    assert_eq!((solid.bytes_per_s.round(), solid.binds), (600e6, Term::Link));
}

fn result(phase: DiskPhase, requests: u64, took_ns: u64) -> DiskResult {
    let mut histogram = Histogram::default();
    histogram.record_many(took_ns, requests);
    let moved = DiskRequests { requests, bytes: requests * u64::from(phase.block_bytes), took_ns: histogram };
    let (read, write) =
        if phase.reads > 0 { (moved, DiskRequests::default()) } else { (DiskRequests::default(), moved) };
    DiskResult {
        phase,
        read,
        write,
        flush_ns: Histogram::default(),
        elapsed_s: 1.0,
        last_flush_s: 0.0,
        cpu_s: 0.1,
        series: Vec::new(),
        way: "io_uring".into(),
        remark: None,
        device: None,
        doubts: Vec::new(),
    }
}

#[test]
fn measured_figures_stand_beside_what_should_be_reached() {
    let all = phase(true, 100, 4096, 256);
    let seen = beside(Some(&of_36()), &result(all, 2700, 5_000_000));
    assert_eq!(seen.share, Some(0.5));
    assert_eq!(seen.limit, DiskLimit::Expected);
    // Casebook E3: 8000 MB/s from the page cache is no share of anything.
    let cached = DiskResult { doubts: vec![Doubt::FromCache], ..result(all, 2_000_000, 1000) };
    let seen = beside(Some(&of_36()), &cached);
    assert_eq!((seen.share, seen.limit), (None, DiskLimit::Unknown(Doubt::FromCache)));
}

#[test]
fn what_binds_is_seen_where_the_drive_is_unknown() {
    let unknown = VolumeMembers::drive(Class::Virtual);
    let one = beside(Some(&unknown), &result(phase(true, 100, 4096, 1), 5000, 200_000));
    assert_eq!((one.limit, one.should), (DiskLimit::Latency(200.0), None));
    let full = DiskResult { cpu_s: 0.97, ..result(phase(true, 100, 4096, 64), 400_000, 150_000) };
    assert_eq!(beside(None, &full).limit, DiskLimit::Cpu(0.97));
    let mut safe =
        result(DiskPhase { durable: Durable::Data(1), ..phase(false, 0, 4096, 1) }, 400, 2_500_000);
    safe.flush_ns.record_many(2_000_000, 400);
    let DiskLimit::Flush(flush, whole) = beside(Some(&unknown), &safe).limit else { panic!("{safe:?}") };
    assert!((flush / 2.0 - 1.0).abs() < 0.1 && (whole / 2.5 - 1.0).abs() < 0.1, "{flush} of {whole} ms");
    let merged = DeviceShare { requests: 1000, merged: 63_000, ..DeviceShare::default() };
    let row = DiskResult { device: Some(merged), ..result(phase(false, 0, 4096, 32), 64_000, 400_000) };
    assert_eq!(beside(Some(&unknown), &row).merged, Some((64_000.0, 1000.0)));
}

/// The recorded server: SATA at 6 and at 3 Gbit/s below one mirror, SAS with two ways, an NVMe drive with two
/// of its four lanes.
#[test]
fn the_wire_to_a_drive_is_known_from_its_host() {
    let readings = serde_json::from_str(include_str!("recorded/storage-stack.json")).unwrap();
    let facts = HostFacts { readings, ..HostFacts::default() };
    let link = |device: &str| volume(&layout(&facts), &facts, device).unwrap().link.unwrap();
    let seen = ["md0", "dm-1", "nvme0n1"].map(link).map(|l| (l.bus, l.bytes_per_s.round()));
    let pcie = DriveBus::Pcie { gts: 8.0, lanes: 2.0 };
    assert_eq!(seen, [(DriveBus::Sata(3.0), 300e6), (DriveBus::Sas(12.0), 1200e6), (pcie, 1_969_230_769.0)]);
    let nvme = volume(&layout(&facts), &facts, "nvme0n1").unwrap();
    let should = reach(&nvme, &phase(false, 100, 1 << 20, 8)).unwrap();
    assert_eq!((should.bytes_per_s.round(), should.binds), (1_969_230_769.0, Term::Link));
}

/// What a controller or a hypervisor shows rotates, if one believes the kernel.
#[test]
fn a_drive_that_is_none_is_known_by_its_model() {
    for (model, class) in [
        ("PERC H730P Mini", Class::Controller),
        ("MR9361-8i", Class::Controller),
        ("LOGICAL VOLUME", Class::Controller),
        ("QEMU HARDDISK", Class::Virtual),
        ("Virtual disk", Class::Virtual),
        ("ST4000NM0035-1V4", Class::Rotating),
    ] {
        let facts = facts(&[
            ("disk.sda.rotational", FactValue::Flag(true)),
            ("disk.sda.model", FactValue::Text(model.into())),
        ]);
        assert_eq!(volume(&layout(&facts), &facts, "sda").unwrap().class, class, "{model}");
    }
}

fn facts(readings: &[(&str, FactValue)]) -> HostFacts {
    let mut host = HostFacts::default();
    host.readings.extend(readings.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    host
}

fn list(names: &[&str]) -> FactValue {
    FactValue::List(names.iter().map(|n| (*n).to_owned()).collect())
}

#[test]
fn an_array_of_md_is_read_from_its_facts() {
    let facts = facts(&[
        ("disk.md0.on", list(&["sda", "sdb", "sdc", "sdd"])),
        ("disk.md0.md_level", FactValue::Text("raid10".into())),
        ("disk.md0.md_layout", FactValue::Int(0x102)),
        ("disk.md0.md_chunk_bytes", FactValue::Int(65_536)),
        ("disk.md0.partitions", list(&["md0p1"])),
        ("disk.sda.rotational", FactValue::Flag(true)),
        ("disk.sda.write_cache", FactValue::Text("write back".into())),
        ("disk.drbd0.on", list(&["md0p1"])),
        ("disk.drbd0.size_bytes", FactValue::Int(1)),
    ]);
    let found = volume(&layout(&facts), &facts, "drbd0").unwrap();
    assert_eq!(found.clone().under("xfs").filesystem, "xfs");
    assert_eq!((found.drives, found.copies, found.chunk_bytes), (4, 2, Some(65_536)));
    assert_eq!((found.class, found.write_back), (Class::Rotating, Some(true)));
    assert_eq!(found.layers, ["DRBD", "partition", "md raid10"]);
    assert_eq!(volume(&layout(&facts), &facts, "sdz"), None);
}

/// LVM reports a row of all 36 images for its raid10, also of the copies (seen with LVM 2.03.16).
#[test]
fn an_array_of_lvm_is_known_by_its_images_and_its_row() {
    let mut all: Vec<(String, FactValue)> = vec![
        ("disk.dm-72.dm_name".into(), FactValue::Text("vg0-home".into())),
        ("disk.dm-72.dm_kind".into(), FactValue::Text("LVM".into())),
        ("disk.dm-72.minimum_io_bytes".into(), FactValue::Int(65_536)),
        ("disk.dm-72.optimal_io_bytes".into(), FactValue::Int(36 * 65_536)),
    ];
    let mut on = Vec::new();
    for n in 0..36 {
        for (kind, number) in [("rmeta", 2 * n), ("rimage", 2 * n + 1)] {
            let device = format!("dm-{number}");
            all.push((format!("disk.{device}.dm_name"), FactValue::Text(format!("vg0-home_{kind}_{n}"))));
            all.push((format!("disk.{device}.dm_kind"), FactValue::Text("LVM".into())));
            all.push((format!("disk.{device}.on"), FactValue::List(vec![format!("sd{n}")])));
            on.push(device);
        }
        all.push((format!("disk.sd{n}.rotational"), FactValue::Flag(true)));
    }
    all.push(("disk.dm-72.on".into(), FactValue::List(on)));
    let mut facts = HostFacts::default();
    facts.readings.extend(all);
    let found = volume(&layout(&facts), &facts, "dm-72").unwrap();
    assert_eq!((found.drives, found.copies, found.data_drives()), (36, 2, 18));
    assert_eq!(found.layers, ["LVM raid10", "LVM"]);
    let should = reach(&found, &phase(true, 100, 4096, 256)).unwrap();
    about(should.requests_per_s, 5400.0);
}

/// What is planned is what `linerate measure disk` holds against the same volume later.
#[test]
fn a_plan_and_the_ceilings_of_a_measurement_are_the_same_figures() {
    let every = VolumeSpec {
        levels: LEVELS.to_vec(),
        shelves: vec![(0..36).map(|n| format!("/dev/sd{n}")).collect()],
        drive_bytes: 3_000_000_000_000,
        chunk_bytes: 64 << 10,
        class: CLASSES[0],
        volume_bytes: None,
        filesystem: Filesystem::Xfs,
        group: "vg0".to_owned(),
        name: "data".to_owned(),
    };
    let plan = plan(&every).unwrap();
    assert!(plan.not_offered.is_empty(), "{:?}", plan.not_offered);
    let volume = VolumeMembers {
        drives: 36,
        copies: 2,
        chunk_bytes: Some(64 << 10),
        ..VolumeMembers::drive(Class::Rotating)
    };
    let phase = |random, reads, block_bytes| DiskPhase {
        random,
        reads,
        block_bytes,
        depth: 288,
        threads: 1,
        direct: true,
        durable: Durable::Never,
        batch: 1,
    };
    for layout in &plan.layouts {
        let shape = layout.shape;
        let volume = VolumeMembers {
            copies: shape.copies as u32,
            parity: shape.parity as u32,
            reads_one: shape.reads_one,
            ..volume.clone()
        };
        let should = |phase| reach(&volume, &phase).unwrap();
        let rates = layout.rates;
        let pairs = [
            (rates.random_reads_per_s, should(phase(true, 100, 4096)).requests_per_s),
            (rates.random_writes_per_s, should(phase(true, 0, 4096)).requests_per_s),
            (rates.read_bytes_per_s, should(phase(false, 100, 1 << 20)).bytes_per_s),
            (rates.write_bytes_per_s, should(phase(false, 0, 1 << 20)).bytes_per_s),
        ];
        for (planned, reached) in pairs {
            assert!((planned / reached - 1.0).abs() < 1e-6, "{}: {planned} and {reached}", layout.name);
        }
    }
}
