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
        // The older mirror reads from one half.
        let reads = if layout.name == "mirror" { 2700.0 } else { 5400.0 };
        assert_eq!((layout.rates.random_reads_per_s, layout.rates.random_writes_per_s), (reads, 2700.0));
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
    for layout in &plan.layouts {
        let volume = Volume { reads_one: layout.reads_one, ..volume.clone() };
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

/// `dev.raid.speed_limit_max` holds a RAID10 back however many drives it has; the older mirror has no such limit.
#[test]
fn copying_is_held_back_by_the_kernel() {
    let of = |drives: usize, class: &str, bytes: u64| {
        let class = *CLASSES.iter().find(|known| known.name == class).unwrap();
        plan(&Wish { class, ..wish(vec![names(0..drives)], bytes) }).unwrap()
    };
    let hours = |seconds: f64| seconds / 3600.0;
    let nvme = of(6, "nvme", 1_000_000_000_000);
    assert!((hours(layout(&nvme, "md").failures.rebuild_s) - 1.356).abs() < 0.01);
    let hdd = of(36, "hdd", 3_000_000_000_000);
    assert!((hours(layout(&hdd, "md").failures.rebuild_s) - 5.556).abs() < 0.01, "slower than the limit");
    assert!(
        (hours(layout(&hdd, "lvm").first_sync_s) - 73.2).abs() < 0.1,
        "{}",
        layout(&hdd, "lvm").first_sync_s
    );
    assert!((hours(layout(&hdd, "mirror").first_sync_s) - 5.55).abs() < 0.01);
    let says =
        |plan: &Plan, name: &str| layout(plan, name).remarks.iter().any(|r| r.contains("speed_limit_max"));
    assert!(says(&hdd, "md") && says(&hdd, "lvm") && !says(&hdd, "mirror"));
    assert!(!says(&of(4, "hdd", 3_000_000_000_000), "mirror"));
}

#[test]
fn what_the_tools_refuse_is_not_offered() {
    let plan = plan(&wish(vec![names(0..300)], 136 * MIB)).unwrap();
    assert_eq!(plan.layouts.iter().map(|l| l.name).collect::<Vec<_>>(), ["md"]);
    let said = plan.layouts[0].remarks.join("\n");
    assert!(said.contains("LVM RAID10 is not offered: it takes at most 252 drives"), "{said}");
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
    // As real volumes of 36 drives said it; `lvs` said 12.51 and 13.80 %.
    let raid = "0 4718592 raid raid10 36 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 590080/4718592 resync 0 0 -\n";
    let mirror = "0 4866048 mirror 2 253:0 253:1 177/1188 1 AA 1 core\n";
    assert_eq!(parse_status(raid), Some(590_080.0 / 4_718_592.0));
    assert_eq!(parse_status(mirror), Some(177.0 / 1188.0));
    for other in ["", "0 100 linear", "0 100 raid raid10 2 AA 5/0 idle 0 0 -", "Device vg0-data not found"] {
        assert_eq!(parse_status(other), None, "{other}");
    }
}
