//! Capacities against those that real tools gave for 36 drives of 136 MiB (LVM 2.03.16, mdadm 4.2), and the
//! figures of a real plan.

use std::collections::BTreeSet;

use linerate_model::step::{Act, Step};

use super::*;

const MIB: u64 = 1 << 20;

fn names(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("/dev/sd{n}")).collect()
}

fn spec(shelves: Vec<Vec<String>>, drive_bytes: u64) -> VolumeSpec {
    VolumeSpec {
        levels: vec![Level::Raid10],
        shelves,
        drive_bytes,
        chunk_bytes: 64 << 10,
        class: CLASSES[0],
        volume_bytes: None,
        filesystem: Filesystem::Xfs,
        group: "vg0".to_owned(),
        name: "data".to_owned(),
    }
}

fn layout<'a>(plan: &'a LayoutComparison, name: &str) -> &'a LayoutPlan {
    plan.layouts.iter().find(|l| l.name == name).unwrap()
}

#[test]
fn capacities_are_those_of_the_real_tools() {
    let plan = plan(&spec(vec![names(0..36)], 136 * MIB)).unwrap();
    // lvs: 2.25g. /proc/mdstat: 2488320 blocks. dmsetup table: 4866048 sectors.
    assert_eq!(layout(&plan, "lvm").capacity_bytes, 2304 * MIB);
    assert_eq!(layout(&plan, "md").capacity_bytes, 2_488_320 << 10);
    assert_eq!(layout(&plan, "mirror").capacity_bytes, 4_866_048 * 512);
}

/// The same of parity and of volumes of a given size, for eight drives of 176 MiB.
#[test]
fn capacities_of_parity_are_those_of_the_real_tools() {
    let of = |volume_bytes| {
        let levels = vec![Level::Raid5, Level::Raid6];
        plan(&VolumeSpec { levels, volume_bytes, ..spec(vec![names(0..8)], 176 * MIB) })
    };
    let plan = of(None).unwrap();
    // lvs: 1176.00m and 1008.00m. /proc/mdstat: 1254400 and 1075200 blocks.
    assert_eq!(layout(&plan, "lvm-raid5").capacity_bytes, 1176 * MIB);
    assert_eq!(layout(&plan, "lvm-raid6").capacity_bytes, 1008 * MIB);
    assert_eq!(layout(&plan, "md-raid5").capacity_bytes, 1_254_400 << 10);
    assert_eq!(layout(&plan, "md-raid6").capacity_bytes, 1_075_200 << 10);
    // Beside 408 MiB a second volume of LVM RAID6 had 576 MiB. On the arrays pvs gave 1344.00k and 1152.00k
    // for the first extent, vgs 1220.00m and 1048.00m.
    let plan = of(Some(400 * MIB)).unwrap();
    let lvm = layout(&plan, "lvm-raid6");
    assert_eq!((lvm.capacity_bytes, lvm.free_bytes), (408 * MIB, Some(576 * MIB)));
    for (name, most) in [("md-raid5", 1220), ("md-raid6", 1048)] {
        let md = layout(&plan, name);
        assert_eq!((md.capacity_bytes, md.free_bytes), (400 * MIB, Some((most - 400) * MIB)), "{name}");
    }
}

#[test]
fn thirty_six_drives_reach_5400_reads_and_half_as_many_writes() {
    // Casebook D2: 36 drives of 3 TB.
    let plan = plan(&spec(vec![names(0..36)], 3_000_000_000_000)).unwrap();
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

/// `dev.raid.speed_limit_max` holds a RAID10 back however many drives it has; the older mirror has no such
/// limit.
#[test]
fn copying_is_held_back_by_the_kernel() {
    let of = |drives: usize, class: DriveKind, bytes: u64| {
        let class = *CLASSES.iter().find(|known| known.name == class).unwrap();
        plan(&VolumeSpec { class, ..spec(vec![names(0..drives)], bytes) }).unwrap()
    };
    let hours = |seconds: f64| seconds / 3600.0;
    let nvme = of(6, DriveKind::Nvme, 1_000_000_000_000);
    assert!((hours(layout(&nvme, "md").failures.rebuild_s) - 1.356).abs() < 0.01);
    let hdd = of(36, DriveKind::Hdd, 3_000_000_000_000);
    assert!((hours(layout(&hdd, "md").failures.rebuild_s) - 5.556).abs() < 0.01, "slower than the limit");
    assert!(
        (hours(layout(&hdd, "lvm").first_sync_s) - 73.2).abs() < 0.1,
        "{}",
        layout(&hdd, "lvm").first_sync_s
    );
    assert!((hours(layout(&hdd, "mirror").first_sync_s) - 5.55).abs() < 0.01);
    let names_limit = |plan: &LayoutComparison, name: &str| {
        layout(plan, name).remarks.iter().any(|r| r.contains("speed_limit_max"))
    };
    assert!(names_limit(&hdd, "md") && names_limit(&hdd, "lvm") && !names_limit(&hdd, "mirror"));
    assert!(!names_limit(&of(4, DriveKind::Hdd, 3_000_000_000_000), "mirror"));
}

#[test]
fn what_the_tools_refuse_is_not_offered() {
    let plan = plan(&spec(vec![names(0..300)], 136 * MIB)).unwrap();
    assert_eq!(plan.layouts.iter().map(|l| l.name).collect::<Vec<_>>(), ["md"]);
    let why = |tool| plan.not_offered.iter().find(|layout| layout.tool == tool).unwrap().why.clone();
    assert!(
        why(LayoutTool::Lvm)
            .contains("LVM RAID10 cannot be built of these drives: it takes at most 252 drives")
    );
    assert!(why(LayoutTool::Mirror).contains("at most 256 drives"), "{}", why(LayoutTool::Mirror));
}

#[test]
fn no_pair_stands_in_one_shelf() {
    let (left, right) = (names(0..18), names(18..36));
    let plan = plan(&spec(vec![left.clone(), right.clone()], 136 * MIB)).unwrap();
    for layout in &plan.layouts {
        assert_eq!(layout.pairs.len(), 18);
        for (a, b) in &layout.pairs {
            assert!(left.contains(a) && right.contains(b), "{}: {a} {b}", layout.name);
        }
        let all: BTreeSet<&String> = layout.pairs.iter().flat_map(|(a, b)| [a, b]).collect();
        assert_eq!(all.len(), 36);
    }
}

fn commands(layout: &LayoutPlan) -> Vec<String> {
    let acts = layout.steps.iter().map(|step| step.operation().act());
    acts.map(|act| match act {
        Act::Run(argv) => argv.join(" "),
        Act::Write { path, .. } | Act::Copy { path, .. } => path,
    })
    .collect()
}

#[test]
fn commands_are_those_that_lvm_takes() {
    let plan = plan(&spec(vec![names(0..4)], 160 * MIB)).unwrap();
    let lines = |name: &str| commands(layout(&plan, name));
    assert_eq!(
        lines("lvm"),
        [
            "pvcreate -- /dev/sd0 /dev/sd1 /dev/sd2 /dev/sd3",
            "vgcreate -- vg0 /dev/sd0 /dev/sd1 /dev/sd2 /dev/sd3",
            "lvcreate --type raid10 --mirrors 1 --stripes 2 --stripesize 64k --extents 100%FREE --name data -- vg0 /dev/sd0 /dev/sd1 /dev/sd2 /dev/sd3",
            "mkfs.xfs -d su=64k,sw=2,agcount=4 /dev/vg0/data",
        ]
    );
    assert_eq!(
        lines("md"),
        [
            "mdadm --create /dev/md/data --level=10 --layout=n2 --chunk=64 --raid-devices=4 --bitmap=internal /dev/sd0 /dev/sd1 /dev/sd2 /dev/sd3",
            "mkfs.xfs -d su=64k,sw=2,agcount=4 /dev/md/data",
        ]
    );
    assert!(lines("mirror")[2].contains("--type mirror --mirrorlog core --mirrors 1 --stripes 2"));
}

/// Casebook D2: of 36 drives of 3 TB one volume of 2 TB, and the rest of the group for others.
#[test]
fn a_volume_takes_what_is_asked_and_leaves_the_rest() {
    const TIB: u64 = 1 << 40;
    let of = |volume_bytes, filesystem| {
        let levels = LEVELS.to_vec();
        plan(&VolumeSpec { levels, volume_bytes, filesystem, ..spec(vec![names(0..36)], 3_000_000_000_000) })
    };
    let asked = 2_000_000_000_000;
    let (whole, part) = (of(None, Filesystem::Xfs).unwrap(), of(Some(asked), Filesystem::Ext4).unwrap());
    for layout in &part.layouts {
        let all = self::layout(&whole, layout.name).capacity_bytes;
        let row =
            u64::from(layout.tool != LayoutTool::Md) * layout.shape.data_drives() * (4 << 20) + (4 << 20);
        assert!((asked..asked + row).contains(&layout.capacity_bytes), "{}", layout.name);
        let free = layout.free_bytes.unwrap();
        assert!(free + layout.capacity_bytes <= all && free > 40 * TIB, "{}: {free}", layout.name);
        assert!(layout.rates == self::layout(&whole, layout.name).rates, "all drives work for it");
        assert_eq!(layout.device, "/dev/vg0/data");
        assert!(commands(layout).last().unwrap().starts_with("mkfs.ext4 -b 4096 -E stride=16,stripe_width="));
        // An array is brought in line whole; of LVM's only the volume.
        let whole_sync = self::layout(&whole, layout.name).first_sync_s;
        assert!(
            (layout.tool == LayoutTool::Md) == (layout.first_sync_s > whole_sync / 2.0),
            "{}",
            layout.name
        );
    }
    let lvm = commands(layout(&part, "lvm"));
    assert!(
        lvm[2]
            .contains("--type raid10 --mirrors 1 --stripes 18 --stripesize 64k --extents 476838 --name data"),
        "{}",
        lvm[2]
    );
    // On the array a volume of LVM, whose first extent begins at a whole row: 34 x 64 KiB.
    let md = commands(layout(&part, "md-raid6"));
    assert_eq!(md[1], "pvcreate --dataalignment 2176k -- /dev/md/data");
    assert_eq!(md[2], "vgcreate -- vg0 /dev/md/data");
    assert_eq!(md[3], "lvcreate --type linear --extents 476838 --name data -- vg0 /dev/md/data");
    assert_eq!(md[4], "mkfs.ext4 -b 4096 -E stride=16,stripe_width=544 /dev/vg0/data");
    // What fits is named, and does fit.
    let Err(PlanError::Volume { most, .. }) = of(Some(200 * TIB), Filesystem::Xfs) else {
        panic!("too large")
    };
    assert!(of(Some(most), Filesystem::Xfs).is_ok());
    assert!(matches!(of(Some(MIB), Filesystem::Xfs), Err(PlanError::Small { .. })));
    assert!(of(Some(u64::MAX), Filesystem::Xfs).is_err());
}

#[test]
fn levels_cost_what_their_parity_takes() {
    let of = |levels: &[Level], drives: usize| {
        plan(&VolumeSpec { levels: levels.to_vec(), ..spec(vec![names(0..drives)], 3_000_000_000_000) })
    };
    let plan = of(&LEVELS, 12).unwrap();
    let (raid5, raid6) = (layout(&plan, "md-raid5"), layout(&plan, "md-raid6"));
    let tb = |layout: &LayoutPlan| (layout.capacity_bytes as f64 / 1e12).round();
    assert_eq!((tb(raid5), tb(raid6), tb(layout(&plan, "md"))), (33.0, 30.0, 18.0));
    for (layout, writes, degraded, data) in [(raid5, 450.0, 900.0, 11.0), (raid6, 300.0, 942.857, 10.0)] {
        assert_eq!((layout.rates.random_reads_per_s, layout.rates.random_writes_per_s), (1800.0, writes));
        assert!((layout.degraded_reads_per_s - degraded).abs() < 0.001, "{}", layout.degraded_reads_per_s);
        assert!((layout.rates.write_bytes_per_s - data * 150e6).abs() < 1.0);
        assert!(layout.pairs.is_empty());
        // One is made anew from all others, as fast as one is written.
        assert_eq!(layout.failures.rebuild_read_bytes, 11 * layout.failures.rebuild_bytes);
        assert!((layout.failures.rebuild_s - 20_000.0).abs() < 1.0 && layout.first_sync_s < 20_001.0);
    }
    assert_eq!((raid5.failures.second_loses, raid6.failures.second_loses), (1.0, 0.0));
    assert!((layout(&plan, "md").failures.second_loses - 1.0 / 11.0).abs() < 1e-9);
    // Any of 11 instead of one partner; and three instead of two failures.
    let ten = layout(&plan, "md").failures.loss_per_year;
    assert!((raid5.failures.loss_per_year / ten - 11.0).abs() < 1e-6);
    assert!(raid6.failures.loss_per_year < ten / 100.0 && raid6.failures.loss_per_year > 0.0);
    // Numbers of drives: odd ones too, and the least of each tool.
    assert!(of(&[Level::Raid5], 2).is_err() && of(&[Level::Raid5], 3).is_ok());
    assert!(of(&[Level::Raid6], 3).is_err());
    let four = of(&[Level::Raid6], 4).unwrap();
    assert_eq!((four.layouts.len(), four.layouts[0].name), (1, "md-raid6"));
    assert!(
        four.not_offered[0]
            .why
            .contains("LVM RAID6 cannot be built of these drives: it takes at least 5 drives")
    );
    assert!(of(&[Level::Raid6], 256).is_err() && of(&[Level::Raid5], 513).is_err());
    assert!(of(&[Level::Raid5], 129).unwrap().not_offered.is_empty());
    assert_eq!(of(&[Level::Raid5], 130).unwrap().not_offered.len(), 1);
}

#[test]
fn commands_of_parity_are_those_that_the_tools_take() {
    let levels = vec![Level::Raid5, Level::Raid6];
    let plan = plan(&VolumeSpec { levels, ..spec(vec![names(0..5)], 1024 * MIB) }).unwrap();
    let first = |name: &str| commands(layout(&plan, name));
    assert!(first("md-raid5")[0].starts_with(
        "mdadm --create /dev/md/data --level=5 --chunk=64 --raid-devices=5 --bitmap=internal /dev/sd0 "
    ));
    assert!(first("md-raid6")[0].contains(" --level=6 --chunk=64 "), "{}", first("md-raid6")[0]);
    assert!(
        first("lvm-raid5")[2]
            .starts_with("lvcreate --type raid5 --stripes 4 --stripesize 64k --extents 100%FREE ")
    );
    assert!(first("lvm-raid6")[2].starts_with("lvcreate --type raid6 --stripes 3 --stripesize 64k "));
    assert_eq!(first("lvm-raid6")[3], "mkfs.xfs -d su=64k,sw=3 /dev/vg0/data");
}

/// A shelf that fails takes all of its drives: no more than there is parity.
#[test]
fn a_shelf_of_parity_may_fail_when_it_is_small() {
    let of = |level, shelves| plan(&VolumeSpec { levels: vec![level], ..spec(shelves, 1024 * MIB) }).unwrap();
    let may = |plan: &LayoutComparison| plan.layouts[0].failures.shelf_may_fail;
    let three = || vec![names(0..2), names(2..4), names(4..6)];
    assert_eq!(may(&of(Level::Raid6, three())), Some(true));
    assert_eq!(may(&of(Level::Raid5, three())), Some(false));
    assert_eq!(may(&of(Level::Raid5, vec![names(0..6)])), None);
}

/// The example of the guide: the smallest drives of the lab, too small for an XFS with default options.
#[test]
fn the_example_of_the_guide_can_be_built() {
    let plan = plan(&spec(vec![names(0..36)], 32 * MIB)).unwrap();
    let lvm = layout(&plan, "lvm");
    assert_eq!(lvm.capacity_bytes, 432 * MIB);
    assert_eq!(commands(lvm)[3], "mkfs.xfs -d su=64k,sw=18,agcount=4 /dev/vg0/data");
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
        let spec = VolumeSpec { chunk_bytes: chunk, ..spec(shelves, bytes) };
        assert!(plan(&spec).is_err(), "{spec:?}");
    }
    let bad = VolumeSpec { name: "-f".to_owned(), ..spec(vec![names(0..4)], 160 * MIB) };
    assert!(matches!(plan(&bad), Err(PlanError::Name(_))));
}

#[test]
fn every_layout_is_distinguished_and_ends_with_an_aligned_filesystem() {
    let every = VolumeSpec { levels: LEVELS.to_vec(), ..spec(vec![names(0..8)], 136 * MIB) };
    let plan = plan(&every).unwrap();
    let names: BTreeSet<&str> = plan.layouts.iter().map(|l| l.name).collect();
    assert_eq!(names.len(), layouts::LAYOUTS.len());
    let tools: BTreeSet<(&str, LayoutTool)> =
        plan.layouts.iter().map(|l| (l.level.title(), l.tool)).collect();
    assert_eq!(tools.len(), layouts::LAYOUTS.len(), "--layout names one of each level");
    for layout in &plan.layouts {
        assert!(layout.title.len() < 24 && layout.devices.len() == 8, "{}", layout.name);
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
    // As real volumes of 36 drives reported it; `lvs` printed 12.51 and 13.80 %.
    let raid = "0 4718592 raid raid10 36 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 590080/4718592 resync 0 0 -\n";
    let mirror = "0 4866048 mirror 2 253:0 253:1 177/1188 1 AA 1 core\n";
    assert_eq!(parse_status(raid), Some(590_080.0 / 4_718_592.0));
    assert_eq!(parse_status(mirror), Some(177.0 / 1188.0));
    for other in ["", "0 100 linear", "0 100 raid raid10 2 AA 5/0 idle 0 0 -", "Device vg0-data not found"] {
        assert_eq!(parse_status(other), None, "{other}");
    }
}
