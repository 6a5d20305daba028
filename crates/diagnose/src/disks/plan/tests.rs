//! Capacities against those that real tools gave for 36 drives of 136 MiB (LVM 2.03.16, mdadm 4.2), and the figures of a real plan.

use std::collections::BTreeSet;

use linerate_model::disk_load::{DiskPhase, Durable};
use linerate_model::step::{Act, Step};

use super::super::reach::reach;
use super::super::volume::{Class, Volume};
use super::*;

const MIB: u64 = 1 << 20;

fn names(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("/dev/sd{n}")).collect()
}

fn wish(shelves: Vec<Vec<String>>, drive_bytes: u64) -> Wish {
    Wish {
        shelves,
        drive_bytes,
        chunk_bytes: 64 << 10,
        class: CLASSES[0],
        group: "vg0".to_owned(),
        name: "data".to_owned(),
    }
}

fn layout<'a>(plan: &'a Plan, name: &str) -> &'a LayoutPlan {
    plan.layouts.iter().find(|l| l.name == name).unwrap()
}

#[test]
fn capacities_are_those_of_the_real_tools() {
    let plan = plan(&wish(vec![names(0..36)], 136 * MIB)).unwrap();
    // lvs: 2.25g. /proc/mdstat: 2488320 blocks. dmsetup table: 4866048 sectors.
    assert_eq!(layout(&plan, "lvm").capacity_bytes, 2304 * MIB);
    assert_eq!(layout(&plan, "md").capacity_bytes, 2_488_320 << 10);
    assert_eq!(layout(&plan, "mirror").capacity_bytes, 4_866_048 * 512);
}

#[test]
fn thirty_six_drives_reach_5400_reads_and_half_as_many_writes() {
    // Casebook D2: 36 drives of 3 TB.
    let plan = plan(&wish(vec![names(0..36)], 3_000_000_000_000)).unwrap();
    for layout in &plan.layouts {
        assert_eq!((layout.rates.random_reads_per_s, layout.rates.random_writes_per_s), (5400.0, 2700.0));
        assert!(
            (48.0..49.2).contains(&(layout.capacity_bytes as f64 / (1u64 << 40) as f64)),
            "{}",
            layout.name
        );
    }
    let (lvm, mirror) = (layout(&plan, "lvm"), layout(&plan, "mirror"));
    assert!((lvm.failures.second_loses - 1.0 / 35.0).abs() < 1e-9);
    assert!((mirror.failures.second_loses - 18.0 / 35.0).abs() < 1e-9);
    assert!((lvm.failures.rebuild_s - 20_000.0).abs() < 1.0);
    assert_eq!(mirror.failures.rebuild_bytes, 18 * lvm.failures.rebuild_bytes);
    assert!((mirror.failures.loss_per_year / lvm.failures.loss_per_year - 18.0).abs() < 1e-6);
}

/// What is planned is what `linerate disk bench` holds against the same volume later.
#[test]
fn a_plan_and_the_ceilings_of_a_measurement_are_the_same_figures() {
    let plan = plan(&wish(vec![names(0..36)], 3_000_000_000_000)).unwrap();
    let volume =
        Volume { drives: 36, copies: 2, chunk_bytes: Some(64 << 10), ..Volume::drive(Class::Rotating) };
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
    let should = |phase| reach(&volume, &phase).unwrap();
    for layout in &plan.layouts {
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

#[test]
fn no_pair_stands_in_one_shelf() {
    let (left, right) = (names(0..18), names(18..36));
    let plan = plan(&wish(vec![left.clone(), right.clone()], 136 * MIB)).unwrap();
    for layout in &plan.layouts {
        assert_eq!(layout.pairs.len(), 18);
        for (a, b) in &layout.pairs {
            assert!(left.contains(a) && right.contains(b), "{}: {a} {b}", layout.name);
        }
        let all: BTreeSet<&String> = layout.pairs.iter().flat_map(|(a, b)| [a, b]).collect();
        assert_eq!(all.len(), 36);
    }
}

#[test]
fn commands_are_those_that_lvm_takes() {
    let plan = plan(&wish(vec![names(0..4)], 160 * MIB)).unwrap();
    let lines = |name: &str| -> Vec<String> {
        let acts = layout(&plan, name).steps.iter().map(|step| step.deed().act());
        acts.map(|act| match act {
            Act::Run(argv) => argv.join(" "),
            Act::Write { path, .. } => path,
        })
        .collect()
    };
    assert_eq!(
        lines("lvm"),
        [
            "pvcreate -- /dev/sd0 /dev/sd1 /dev/sd2 /dev/sd3",
            "vgcreate -- vg0 /dev/sd0 /dev/sd1 /dev/sd2 /dev/sd3",
            "lvcreate --type raid10 --mirrors 1 --stripes 2 --stripesize 64k --extents 100%FREE --name data -- vg0 /dev/sd0 /dev/sd1 /dev/sd2 /dev/sd3",
            "mkfs.xfs -d su=64k,sw=2 /dev/vg0/data",
        ]
    );
    assert_eq!(
        lines("md"),
        [
            "mdadm --create /dev/md/data --level=10 --layout=n2 --chunk=64 --raid-devices=4 --bitmap=internal /dev/sd0 /dev/sd1 /dev/sd2 /dev/sd3",
            "mkfs.xfs -d su=64k,sw=2 /dev/md/data",
        ]
    );
    assert!(lines("mirror")[2].contains("--type mirror --mirrorlog core --mirrors 1 --stripes 2"));
}

#[test]
fn what_cannot_be_built_is_refused_with_what_would_do() {
    for (shelves, bytes, chunk) in [
        (vec![names(0..3)], 136 * MIB, 64 << 10),
        (vec![names(0..4)], 136 * MIB, 64 << 10),
        (vec![names(0..2)], 136 * MIB, 64 << 10),
        (vec![names(0..4), names(4..6)], 136 * MIB, 64 << 10),
        (vec![names(0..4), names(4..8), names(8..12)], 136 * MIB, 64 << 10),
        (vec![names(0..4)], MIB, 64 << 10),
        (vec![names(0..4)], 160 * MIB, 65_000),
        (vec![vec!["/dev/sd0".to_owned(); 4]], 160 * MIB, 64 << 10),
    ] {
        let wish = Wish { chunk_bytes: chunk, ..wish(shelves, bytes) };
        assert!(plan(&wish).is_err(), "{wish:?}");
    }
    let bad = Wish { name: "-f".to_owned(), ..wish(vec![names(0..4)], 160 * MIB) };
    assert!(matches!(plan(&bad), Err(PlanError::Name(_))));
}

#[test]
fn every_layout_is_told_apart_and_ends_with_an_aligned_filesystem() {
    let plan = plan(&wish(vec![names(0..8)], 136 * MIB)).unwrap();
    let names: BTreeSet<&str> = plan.layouts.iter().map(|l| l.name).collect();
    assert_eq!(names.len(), layouts::LAYOUTS.len());
    for layout in &plan.layouts {
        assert!(matches!(layout.steps.last(), Some(Step::Filesystem(_))), "{}", layout.name);
        assert!(!layout.remarks.is_empty() && layout.device.starts_with("/dev/"), "{}", layout.name);
    }
}

#[test]
fn progress_is_read_from_what_md_and_lvm_print() {
    let text = include_str!("fixtures/mdstat.txt");
    let share = parse_mdstat(text, "sdaj").unwrap();
    assert!((share - 394_432.0 / 2_488_320.0).abs() < 1e-9);
    assert_eq!(parse_mdstat(text, "sdzz"), None);
    assert_eq!(parse_mdstat("md0 : active raid10 sda[0]\n      8 blocks\n\n", "sda"), Some(1.0));
    assert_eq!(
        parse_mdstat("md0 : active raid10 sda[0]\n      8 blocks\n      \tresync=DELAYED\n", "sda"),
        Some(0.0)
    );
    assert_eq!(
        (parse_percent("  13.80   \n"), parse_percent(""), parse_percent("200")),
        (Some(0.138), None, None)
    );
}
