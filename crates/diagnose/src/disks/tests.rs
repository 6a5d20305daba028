//! Real figures of 36 drives, one of which becomes slow (recorded in a virtual machine with throttled drives,
//! iostat every 2 s), the figures of the casebook (D1, D2), and the arithmetic.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use linerate_model::disk::{
    DiskFinding, DiskInterval, DiskKind, DiskRates, DiskTimes, DiskTraffic, DiskTrouble,
};
use linerate_model::fact::{FactValue, HostFacts};
use linerate_report::words::disks::sentence;

use super::{Layout, between, findings, join_paths, layout};

fn host(facts: &[(&str, FactValue)]) -> HostFacts {
    let mut host = HostFacts::default();
    host.readings.extend(facts.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    host
}

fn text(value: &str) -> FactValue {
    FactValue::Text(value.to_owned())
}

fn list(values: &[String]) -> FactValue {
    FactValue::List(values.to_vec())
}

/// A device on drives of one size, with more facts about it.
fn above(device: &str, drives: &[String], rotating: bool, more: &[(&str, FactValue)]) -> Layout {
    let mut facts = host(more);
    facts.readings.extend([(format!("disk.{device}.on"), list(drives))]);
    for drive in drives {
        facts.readings.extend([
            (format!("disk.{drive}.size_bytes"), FactValue::Int(142_606_336)),
            (format!("disk.{drive}.rotational"), FactValue::Flag(rotating)),
        ]);
    }
    layout(&facts)
}

/// `sda` to `sdz`, `sdaa` and so on.
fn drives(count: u8) -> Vec<String> {
    let letter = |n: u8| char::from(b'a' + n);
    (0..count)
        .map(|n| if n < 26 { format!("sd{}", letter(n)) } else { format!("sda{}", letter(n - 26)) })
        .collect()
}

fn traffic(requests: f64, merged: f64, bytes: f64, wait: f64) -> DiskTraffic {
    DiskTraffic {
        requests_per_s: requests,
        merged_per_s: merged,
        bytes_per_s: bytes,
        wait_ms: (requests > 0.0).then_some(wait),
        times: None,
    }
}

/// What iostat printed, column by column.
fn recorded() -> Vec<DiskInterval> {
    let text = include_str!("recorded/one-slow-drive.txt");
    let mut intervals: Vec<DiskInterval> = Vec::new();
    let mut columns: Vec<&str> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words[0] == "Device" {
            columns.clone_from(&words);
            intervals.push(DiskInterval {
                host: "store".into(),
                at_ms: 0,
                seconds: 2.0,
                disks: Vec::new(),
                times_missing: None,
            });
            continue;
        }
        let of = |name: &str| words[columns.iter().position(|c| *c == name).unwrap()].parse::<f64>().unwrap();
        intervals.last_mut().unwrap().disks.push(DiskRates {
            device: words[0].into(),
            read: traffic(of("r/s"), of("rrqm/s"), of("rMB/s") * 1e6, of("r_await")),
            write: traffic(of("w/s"), of("wrqm/s"), of("wMB/s") * 1e6, of("w_await")),
            flushes_per_s: of("f/s"),
            flush_ms: Some(of("f_await")),
            queue: of("aqu-sz"),
            busy: of("%util") / 100.0,
            ..DiskRates::default()
        });
    }
    intervals
}

fn told(found: &[DiskFinding]) -> Vec<(&str, DiskTrouble)> {
    found.iter().map(|f| (f.device.as_str(), f.what)).collect()
}

#[test]
fn one_drive_of_36_becomes_slow_and_is_the_only_one_named() {
    let layout = above("md0", &drives(36), false, &[("disk.md0.md_level", text("raid10"))]);
    let intervals = recorded();
    assert_eq!(intervals.len(), 11);
    // Before it was throttled.
    assert_eq!(told(&findings(&layout, &intervals[..5])), []);
    let found = findings(&layout, &intervals);
    assert_eq!(told(&found), [("sdh", DiskTrouble::SlowAmongEquals)], "{found:#?}");
    let sentence = sentence(&found[0]);
    assert!(sentence.contains("one of the 35 others of md0"), "{sentence}");
    // Soon afterwards as well.
    assert_eq!(told(&findings(&layout, &intervals[5..8])), [("sdh", DiskTrouble::SlowAmongEquals)]);
}

#[test]
fn the_slow_drive_is_quoted_with_its_longest_requests_where_they_are_known() {
    let layout = above("md0", &drives(12), false, &[]);
    let times = |p99_ms| Some(DiskTimes { requests: 60, p99_ms, max_ms: p99_ms, ..DiskTimes::default() });
    let interval = |known: bool| {
        let disk = |device: &String| {
            let (wait, p99) = if device == "sdc" { (90.0, 410.0) } else { (4.0, 9.0) };
            let write = DiskTraffic { times: times(p99).filter(|_| known), ..traffic(30.0, 0.0, 1e6, wait) };
            DiskRates { device: device.clone(), write, ..DiskRates::default() }
        };
        let disks = drives(12).iter().map(disk).collect();
        DiskInterval { host: "store".into(), at_ms: 0, seconds: 2.0, disks, times_missing: None }
    };
    let sentence = |known| {
        let found = findings(&layout, &[interval(known), interval(known), interval(false)]);
        assert_eq!(told(&found), [("sdc", DiskTrouble::SlowAmongEquals)]);
        sentence(&found[0])
    };
    let with = sentence(true);
    assert!(with.ends_with("inside the drive 99 of 100 take at most 410 ms, of the others 9 ms"), "{with}");
    assert!(sentence(false).ends_with("(in 3 of 3 intervals)"));
}

#[test]
fn drives_that_are_all_slow_alike_are_not_one_slow_drive() {
    let layout = above("md0", &drives(12), false, &[]);
    let disk = |device: &String| DiskRates {
        device: device.clone(),
        write: traffic(30.0, 0.0, 1e6, 900.0),
        ..DiskRates::default()
    };
    let interval = DiskInterval {
        host: "store".into(),
        at_ms: 0,
        seconds: 1.0,
        disks: drives(12).iter().map(disk).collect(),
        times_missing: None,
    };
    assert_eq!(told(&findings(&layout, &vec![interval; 6])), []);
}

/// Seen in a virtual machine: one drive at 5 requests a second leaves the other 35 little more than one write
/// a second each.
#[test]
fn a_drive_that_holds_up_all_others_is_named_although_nobody_does_much() {
    let layout = above("dm-72", &drives(36), true, &[]);
    let interval = |seconds| {
        let disk = |device: &String| DiskRates {
            device: device.clone(),
            write: traffic(1.41, 0.0, 5e4, if device == "sdh" { 708.0 } else { 15.0 }),
            busy: if device == "sdh" { 0.97 } else { 0.02 },
            ..DiskRates::default()
        };
        let disks = drives(36).iter().map(disk).collect();
        DiskInterval { host: "store".into(), at_ms: 0, seconds, disks, times_missing: None }
    };
    let found = findings(&layout, &vec![interval(5.7); 3]);
    assert_eq!(told(&found), [("sdh", DiskTrouble::SlowAmongEquals)]);
    // One or two requests have no mean.
    assert_eq!(told(&findings(&layout, &vec![interval(1.0); 3])), [("sdh", DiskTrouble::Saturated)]);
}

/// Casebook D1: a shared home on two SATA drives.
#[test]
fn two_saturated_drives_below_an_array_that_takes_more_than_they_do() {
    let both = ["sdx".to_owned(), "sdy".to_owned()];
    let layout = above("md1", &both, true, &[("disk.md1.md_level", text("raid0"))]);
    let drive = |device: &str, reads, writes, merged, busy| DiskRates {
        device: device.into(),
        read: traffic(reads, 0.0, 1e6, 8.0),
        write: traffic(writes, merged, 15e6, 9.0),
        busy,
        ..DiskRates::default()
    };
    let array = DiskRates {
        device: "md1".into(),
        read: traffic(518.0, 0.0, 2e6, 0.0),
        write: traffic(7690.0, 0.0, 30e6, 0.0),
        ..DiskRates::default()
    };
    let disks =
        vec![drive("sdx", 222.0, 888.0, 3047.0, 0.94), drive("sdy", 226.0, 825.0, 2826.0, 0.81), array];
    let found = findings(
        &layout,
        &[DiskInterval { host: "home".into(), at_ms: 0, seconds: 5.0, disks, times_missing: None }],
    );
    assert_eq!(
        told(&found),
        [("sdx", DiskTrouble::Saturated), ("sdy", DiskTrouble::Saturated), ("md1", DiskTrouble::Merged)]
    );
    assert!(
        sentence(&found[0]).contains("94 % busy with 222 reads and 888 writes"),
        "{}",
        sentence(&found[0])
    );
    assert!(
        sentence(&found[2]).starts_with("md1 is asked 8208 times a second; 2161 reach its 2 drives"),
        "{}",
        sentence(&found[2])
    );
}

/// Casebook D2: the volume 253:2 over 36 drives.
#[test]
fn a_volume_is_called_by_its_name_and_its_drives_are_not_full() {
    let more = [
        ("disk.dm-2.dm_name", text("vg0-home--dirs")),
        ("disk.dm-2.number", text("253:2")),
        ("mount./home", text("xfs /dev/mapper/vg0-home--dirs rw")),
    ];
    let layout = above("dm-2", &drives(36), true, &more);
    let volume = layout.get("dm-2").unwrap();
    assert_eq!((volume.name.as_str(), volume.number.as_deref()), ("vg0/home-dirs", Some("253:2")));
    assert_eq!(volume.mounts, ["/home"]);
    let drive = |device: &String| DiskRates {
        device: device.clone(),
        write: traffic(115.0, 3400.0, 14e6, 5.0),
        busy: 0.55,
        ..DiskRates::default()
    };
    let mut disks: Vec<DiskRates> = drives(36).iter().map(drive).collect();
    disks.push(DiskRates {
        device: "dm-2".into(),
        write: traffic(65_955.0, 0.0, 258e6, 1.0),
        busy: 0.6,
        ..DiskRates::default()
    });
    let found = findings(
        &layout,
        &[DiskInterval { host: "store".into(), at_ms: 0, seconds: 5.0, disks, times_missing: None }],
    );
    assert_eq!(told(&found), [("dm-2", DiskTrouble::Merged)], "{found:#?}");
    assert!(
        sentence(&found[0]).starts_with("vg0/home-dirs (dm-2) is asked 65955 times"),
        "{}",
        sentence(&found[0])
    );
}

#[test]
fn an_uneven_leg_is_named() {
    let layout = above("md0", &drives(8), false, &[]);
    let disk = |device: &String| DiskRates {
        device: device.clone(),
        write: traffic(if device == "sdc" { 12.0 } else { 80.0 }, 0.0, 1e6, 2.0),
        ..DiskRates::default()
    };
    let disks = drives(8).iter().map(disk).collect();
    let found = findings(
        &layout,
        &[DiskInterval { host: "store".into(), at_ms: 0, seconds: 5.0, disks, times_missing: None }],
    );
    assert_eq!(told(&found), [("sdc", DiskTrouble::Uneven)]);
}

#[test]
fn the_stack_is_a_tree_of_what_people_know() {
    let facts = host(&[
        ("disk.sda.size_bytes", FactValue::Int(1000)),
        ("disk.sda.rotational", FactValue::Flag(true)),
        ("disk.sda.partitions", list(&["sda1".into(), "sda2".into()])),
        ("disk.sda2.size_bytes", FactValue::Int(900)),
        ("disk.vda.rotational", FactValue::Flag(true)),
        ("disk.dm-0.dm_name", text("vg0-data_rimage_0")),
        ("disk.dm-0.on", list(&["sda2".into()])),
        ("disk.dm-1.dm_name", text("vg0-data")),
        ("disk.dm-1.on", list(&["dm-0".into()])),
        ("disk.drbd0.on", list(&["dm-1".into()])),
    ]);
    let layout = layout(&facts);
    let lines = |inner| {
        let lines = layout.lines(inner);
        lines.iter().map(|l| format!("{}{}", " ".repeat(l.depth), l.disk.name)).collect::<Vec<_>>()
    };
    assert_eq!(lines(false), ["drbd0", " vg0/data", "  sda2", "   sda", "sda1", "vda"]);
    assert_eq!(
        lines(true),
        ["drbd0", " vg0/data", "  vg0/data_rimage_0", "   sda2", "    sda", "sda1", "vda"]
    );
    assert_eq!(layout.get("sda").unwrap().kind, DiskKind::Rotating);
    assert_eq!(layout.get("vda").unwrap().kind, DiskKind::Solid, "what a virtual drive says of itself");
    assert_eq!(layout.drives_of("drbd0").into_iter().collect::<Vec<_>>(), ["sda"]);
}

fn counters(values: &[(&str, i64)]) -> BTreeMap<String, i64> {
    values.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect()
}

#[test]
fn rates_are_growth_over_the_time_of_the_host() {
    let before = counters(&[
        ("disk.clock_us", 10_000_000),
        ("disk.sda.stat.reads", 100),
        ("disk.sda.stat.reads_merged", 10),
        ("disk.sda.stat.read_sectors", 8000),
        ("disk.sda.stat.read_ms", (1 << 32) - 50),
        ("disk.sda.stat.busy_ms", 500),
        ("disk.sda.stat.queue_ms", 1000),
        ("disk.sdb.stat.reads", 5000),
    ]);
    let after = counters(&[
        ("disk.clock_us", 12_000_000),
        ("disk.sda.stat.reads", 300),
        ("disk.sda.stat.reads_merged", 110),
        ("disk.sda.stat.read_sectors", 12_000),
        ("disk.sda.stat.read_ms", 350),
        ("disk.sda.stat.busy_ms", 2600),
        ("disk.sda.stat.queue_ms", 2000),
        ("disk.sdb.stat.reads", 3),
    ]);
    let (seconds, rates) = between(&before, &after).unwrap();
    assert!((seconds - 2.0).abs() < 1e-9);
    // Another drive took the place of sdb.
    assert_eq!(rates.iter().map(|r| r.device.as_str()).collect::<Vec<_>>(), ["sda"]);
    let sda = &rates[0];
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    close(sda.read.requests_per_s, 100.0);
    close(sda.read.merged_per_s, 50.0);
    close(sda.read.bytes_per_s, 1_024_000.0);
    // 400 ms, across the end of 32 bits, for 200 requests.
    close(sda.read.wait_ms.unwrap(), 2.0);
    assert_eq!(sda.write.wait_ms, None);
    close(sda.queue, 0.5);
    close(sda.busy, 1.0);
    assert!(between(&after, &before).is_none() && between(&after, &after).is_none());
}

/// A server with a stack of every kind, as the node program reads it
/// (`crates/facts/tests/roots/storage-stack`).
fn stack() -> Layout {
    let readings: BTreeMap<String, FactValue> =
        serde_json::from_str(include_str!("recorded/storage-stack.json")).unwrap();
    let mut facts = HostFacts::default();
    facts.readings.extend(readings);
    layout(&facts)
}

#[test]
fn drbd_multipath_and_encryption_are_a_tree_of_what_people_know() {
    let layout = stack();
    let lines: Vec<String> = layout
        .lines(false)
        .iter()
        .map(|l| {
            let mounts = l.disk.mounts.join(" ");
            format!("{}{} {mounts}", " ".repeat(l.depth), l.disk.name).trim_end().to_owned()
        })
        .collect();
    let expected = [
        "vg1/data /data",
        " mpath-a1",
        "  mpath-a",
        "   sdb",
        "   sdc",
        "luks-5f1c-secret /secret",
        " md0",
        "  sdd",
        "  sde",
        "drbd0 /home",
        " vg0/home-r0",
        "  sda2",
        "   sda",
        // Data and external metadata.
        "drbd1",
        " vdb",
        " vdc",
        "nvme0n1 /scratch",
        " nvme0c0n1",
        " nvme0c1n1",
        "sda1 /",
    ];
    assert_eq!(lines, expected);
    let kind = |device: &str| layout.get(device).unwrap().kind;
    assert_eq!([kind("dm-1"), kind("nvme0n1")], [DiskKind::Multipath; 2]);
    assert_eq!([kind("drbd0"), kind("drbd1")], [DiskKind::Replicated; 2]);
    assert_eq!(
        [kind("md0"), kind("dm-4"), kind("sda2")],
        [DiskKind::Array, DiskKind::Volume, DiskKind::Partition]
    );
    // Several ways lead to one drive.
    assert_eq!(layout.drives_of("dm-3").into_iter().collect::<Vec<_>>(), ["dm-1"]);
    assert_eq!(layout.drives_of("drbd1").into_iter().collect::<Vec<_>>(), ["vdb", "vdc"]);
}

#[test]
fn the_ways_of_a_drive_give_it_their_traffic_and_are_not_compared() {
    let layout = stack();
    let rates = |device: &str, writes: f64, wait: f64| DiskRates {
        device: device.into(),
        write: traffic(writes, 0.0, writes * 4096.0, wait),
        queue: 1.0,
        busy: writes / 200.0,
        ..DiskRates::default()
    };
    let idle = DiskRates { device: "nvme0n1".into(), ..DiskRates::default() };
    let mut disks = vec![rates("nvme0c0n1", 100.0, 2.0), rates("nvme0c1n1", 50.0, 5.0), idle];
    join_paths(&layout, &mut disks);
    let head = &disks[2];
    assert_eq!((head.write.requests_per_s, head.queue, head.busy), (150.0, 2.0, 0.5));
    assert!((head.write.wait_ms.unwrap() - 3.0).abs() < 1e-9);
    // A kernel that counts at the head is believed.
    let mut counted = vec![rates("nvme0c0n1", 100.0, 2.0), rates("nvme0n1", 7.0, 1.0)];
    join_paths(&layout, &mut counted);
    assert!((counted[1].write.requests_per_s - 7.0).abs() < 1e-9);
    // Eight ways with one in use: by intent, not uneven.
    let paths = drives(8);
    let layout = above(
        "dm-9",
        &paths,
        false,
        &[("disk.dm-9.dm_kind", text("mpath")), ("disk.dm-9.dm_name", text("mpatha"))],
    );
    let rates = |(at, device): (usize, &String)| rates(device, if at == 0 { 500.0 } else { 20.0 }, 1.0);
    let disks = paths.iter().enumerate().map(rates).collect();
    let interval = DiskInterval { host: "store".into(), at_ms: 0, seconds: 5.0, disks, times_missing: None };
    assert_eq!(told(&findings(&layout, &vec![interval; 4])), []);
}

/// A volume of LVM over four drives, one image of which has failed: its drive is named, and not as an uneven
/// one too.
#[test]
fn a_leg_that_failed_is_named_as_what_it_is() {
    let mut facts = host(&[
        ("disk.dm-8.dm_name", text("vg0-home")),
        ("disk.dm-8.on", list(&["dm-0", "dm-1", "dm-2", "dm-3"].map(str::to_owned))),
        ("disk.dm-8.failed_legs", list(&["2".to_owned()])),
        ("disk.md0.md_level", text("raid10")),
        ("disk.md0.on", list(&["sdx".to_owned()])),
        ("disk.md0.failed_legs", list(&["3".to_owned()])),
    ]);
    for (at, drive) in drives(4).into_iter().enumerate() {
        facts.readings.extend([
            (format!("disk.dm-{at}.dm_name"), text(&format!("vg0-home_rimage_{at}"))),
            (format!("disk.dm-{at}.on"), list(std::slice::from_ref(&drive))),
            (format!("disk.{drive}.size_bytes"), FactValue::Int(1 << 30)),
        ]);
    }
    let layout = layout(&facts);
    let disk = |(at, device): (usize, String)| DiskRates {
        device,
        write: traffic(if at == 2 { 0.0 } else { 100.0 }, 0.0, 1e6, 5.0),
        ..DiskRates::default()
    };
    let disks = drives(4).into_iter().enumerate().map(disk).collect();
    let interval = DiskInterval { host: "store".into(), at_ms: 0, seconds: 2.0, disks, times_missing: None };
    let found = findings(&layout, &[interval]);
    assert_eq!(told(&found), [("sdc", DiskTrouble::Degraded), ("md0", DiskTrouble::Degraded)], "{found:#?}");
    assert!(sentence(&found[0]).contains("lvconvert --repair vg0/home"), "{}", sentence(&found[0]));
    assert!(sentence(&found[1]).contains("its leg number 3"), "{}", sentence(&found[1]));
}

/// Drives of which some are written to five times as much as the others.
fn written(drives: &[String], more: &[&str]) -> DiskInterval {
    let disk = |device: &String| DiskRates {
        device: device.clone(),
        write: traffic(if more.contains(&device.as_str()) { 400.0 } else { 80.0 }, 0.0, 1e6, 2.0),
        ..DiskRates::default()
    };
    let disks = drives.iter().map(disk).collect();
    DiskInterval { host: "store".into(), at_ms: 0, seconds: 5.0, disks, times_missing: None }
}

/// What fills a leg makes it uneven: that is said of the volume, and of no leg that it is uneven.
#[test]
fn legs_are_not_called_uneven_while_some_are_being_filled() {
    let drives = drives(8);
    let interval = written(&drives, &["sdc"]);
    let said = |more: &[(&str, FactValue)], device: &str, what: DiskTrouble| {
        let found = findings(&above("md0", &drives, false, more), std::slice::from_ref(&interval));
        assert_eq!(told(&found), [(device, what)], "{more:?}");
        sentence(&found[0])
    };
    said(&[], "sdc", DiskTrouble::Uneven);
    let leg = [("disk.md0.rebuilding_legs", list(&["sdc".to_owned()]))];
    let sentence = said(&leg, "sdc", DiskTrouble::Rebuilding);
    assert_eq!(
        sentence,
        "md0 is being rebuilt: sdc is being filled, and until that ends there is one copy less; its legs are uneven because of it"
    );
    let all = [("disk.md0.rebuilding_legs", list(&drives))];
    assert_eq!(
        said(&all, "md0", DiskTrouble::Rebuilding),
        "md0 is being synchronised: its copies are being brought in line with each other, and are not proven equal until that ends"
    );
    let some = [("disk.md0.rebuilding_legs", list(&drives[..3]))];
    assert!(
        said(&some, "md0", DiskTrouble::Rebuilding).contains("3 of its legs are being filled or brought")
    );
    let md0 = || list(&["md0".to_owned()]);
    let replica = [("disk.drbd0.on", md0()), ("disk.drbd0.rebuilding_legs", md0())];
    assert!(said(&replica, "drbd0", DiskTrouble::Rebuilding).contains("uneven because of it"));
}

/// A volume stands on the metadata of its legs too, and one of its legs failed: the others are all that are
/// left.
#[test]
fn all_legs_of_a_volume_that_are_left_are_brought_in_line() {
    let below: Vec<String> = (0..6).map(|at| format!("dm-{at}")).collect();
    let mut facts = host(&[
        ("disk.dm-8.dm_name", text("vg0-home")),
        ("disk.dm-8.on", list(&below)),
        ("disk.dm-8.failed_legs", list(&["1".to_owned()])),
        ("disk.dm-8.rebuilding_legs", list(&["0", "2"].map(str::to_owned))),
    ]);
    for at in 0..3 {
        for (number, part) in [(2 * at, "rimage"), (2 * at + 1, "rmeta")] {
            let name = text(&format!("vg0-home_{part}_{at}"));
            facts.readings.extend([(format!("disk.dm-{number}.dm_name"), name)]);
        }
    }
    let found = findings(&layout(&facts), &[written(&drives(1), &[])]);
    assert_eq!(found[1].device, "dm-8");
    assert!(sentence(&found[1]).starts_with("vg0/home (dm-8) is being synchronised"), "{found:#?}");
}

/// One drive is filled and another one read for it, both at their limit and with long requests: neither is
/// slow, full or uneven.
#[test]
fn drives_of_what_is_being_rebuilt_are_neither_slow_nor_full() {
    let drives = drives(8);
    let is_busy = |device: &str| ["sdc", "sdd"].contains(&device);
    let disk = |device: &String| {
        let (requests, wait, busy) = if is_busy(device) { (90.0, 80.0, 0.99) } else { (80.0, 4.0, 0.2) };
        let way = || traffic(requests, 0.0, 1e6, wait);
        DiskRates { device: device.clone(), read: way(), write: way(), busy, ..DiskRates::default() }
    };
    let disks = drives.iter().map(disk).collect();
    let interval = DiskInterval { host: "store".into(), at_ms: 0, seconds: 5.0, disks, times_missing: None };
    let told_of = |more: &[(&str, FactValue)]| {
        let found = findings(&above("md0", &drives, true, more), &vec![interval.clone(); 4]);
        found.into_iter().map(|f| (f.device, f.what)).collect::<Vec<_>>()
    };
    let slow = |device: &str| (device.to_owned(), DiskTrouble::SlowAmongEquals);
    assert_eq!(told_of(&[]), [slow("sdc"), slow("sdd")]);
    let rebuilding = |device: &str| [(device.to_owned(), DiskTrouble::Rebuilding)];
    // A leg by its name, one that cannot be told, and the side of a replica.
    let leg = [("disk.md0.rebuilding_legs", list(&["sdc".to_owned()]))];
    assert_eq!(told_of(&leg), rebuilding("sdc"));
    let unknown = [("disk.md0.rebuilding_legs", list(&["2".to_owned()]))];
    assert_eq!(told_of(&unknown), rebuilding("md0"));
    let md0 = || list(&["md0".to_owned()]);
    let replica = [("disk.drbd0.on", md0()), ("disk.drbd0.rebuilding_legs", md0())];
    assert_eq!(told_of(&replica), rebuilding("drbd0"));
}

#[test]
fn a_leg_is_uneven_while_those_of_another_volume_are_being_filled() {
    let drives = drives(8);
    let mut facts = host(&[
        ("disk.md0.on", list(&drives[..4])),
        ("disk.md0.rebuilding_legs", list(&drives[..1])),
        ("disk.md1.on", list(&drives[4..])),
    ]);
    let size = |drive: &String| (format!("disk.{drive}.size_bytes"), FactValue::Int(1 << 30));
    facts.readings.extend(drives.iter().map(size));
    let found = findings(&layout(&facts), &[written(&drives, &["sda", "sde"])]);
    assert_eq!(told(&found), [("sda", DiskTrouble::Rebuilding), ("sde", DiskTrouble::Uneven)]);
}

#[test]
fn drives_stand_in_the_order_in_which_people_count_them() {
    let natural = drives(36);
    let mut by_letters = natural.clone();
    by_letters.sort();
    assert_ne!(by_letters, natural);
    let layout = above("md0", &by_letters, false, &[]);
    let lines: Vec<String> = layout.lines(false).iter().map(|line| line.disk.device.clone()).collect();
    assert_eq!((lines[0].as_str(), &lines[1..]), ("md0", &natural[..]));
    let found = findings(&layout, &[written(&by_letters, &["sdaa", "sdb"])]);
    assert_eq!(told(&found), [("sdb", DiskTrouble::Uneven), ("sdaa", DiskTrouble::Uneven)]);
}
