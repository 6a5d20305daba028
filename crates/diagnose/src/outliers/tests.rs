//! Hosts with drawn counters: who stands out, since when, and when none does.

use linerate_knowledge::Knowledge;
use linerate_model::inventory::{Group, Host, TransportSpec};
use linerate_model::outlier::{HostOutlier, OutlierUnit, StoredSeries};
use linerate_model::remark::Remark;
use linerate_model::snapshot::Snapshot;

use crate::stats::Rng;

/// 24 hours of a quarter of an hour.
const INTERVALS: usize = 96;
const EVERY_S: f64 = 900.0;
const START_MS: u64 = 1_795_000_000_000;

/// Hosts of these jobs, so many of each.
fn hosts(jobs: &[(&str, usize)]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (job, count) in jobs {
        snapshot.inventory.groups.push(Group { name: (*job).into(), kind: "job".into(), ..Group::default() });
        for number in 1..=*count {
            snapshot.inventory.hosts.push(Host {
                name: format!("{job}-{number}"),
                transport: TransportSpec::Local,
                groups: vec![(*job).into()],
                endpoints: Vec::new(),
                state_dir: None,
                etc_dir: None,
                cache_dir: None,
            });
        }
    }
    snapshot
}

fn add(snapshot: &mut Snapshot, host: &str, key: &str, growth: impl Fn(usize) -> Option<f64>) {
    snapshot.stored.push(StoredSeries {
        host: host.to_owned(),
        key: key.to_owned(),
        start_ms: START_MS,
        every_s: EVERY_S,
        intervals: INTERVALS,
        growth: (0..INTERVALS).map(growth).collect(),
    });
}

fn outliers(snapshot: &Snapshot) -> Vec<HostOutlier> {
    let diagnosis = crate::diagnose(snapshot, &Knowledge::default());
    let outlier = |remark: Remark| match remark {
        Remark::Outlier(outlier) => Some(*outlier),
        _ => None,
    };
    diagnosis.remarks.into_iter().filter_map(outlier).collect()
}

/// Segments of all hosts by the load of a day; shares sent again by `share`, with heavy tails.
fn transfers(snapshot: &mut Snapshot, seed: u64, share: impl Fn(&str, usize) -> f64) {
    let names: Vec<String> = snapshot.inventory.hosts.iter().map(|host| host.name.clone()).collect();
    let mut rng = Rng::new(seed);
    for name in names {
        let noise: Vec<f64> = (0..INTERVALS).map(|_| (0.6 * rng.normal()).exp()).collect();
        let load = |t: usize| 1e6 * (1.2 + (t as f64 / 15.0).sin());
        add(snapshot, &name, "snmp.Tcp.OutSegs", |t| Some(load(t)));
        add(snapshot, &name, "snmp.Tcp.RetransSegs", |t| Some(load(t) * share(&name, t) * noise[t]));
    }
}

#[test]
fn one_host_stands_out_from_the_moment_on_that_it_does() {
    let mut snapshot = hosts(&[("node", 8)]);
    transfers(&mut snapshot, 1, |host, t| if host == "node-3" && t >= 60 { 0.02 } else { 2e-4 });
    let found = outliers(&snapshot);
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.host.as_str(), one.unit, one.others), ("node-3", OutlierUnit::Share, 7));
    assert_eq!((one.since_ms, one.until_ms), (Some(START_MS + 60 * 900_000), None));
    assert!((0.01..0.04).contains(&one.value) && one.usual < 4e-4, "{one:?}");
    assert!(one.before.unwrap() < 4e-4);
}

#[test]
fn what_was_over_has_an_end_and_what_was_always_so_has_no_begin() {
    let mut snapshot = hosts(&[("node", 8)]);
    transfers(&mut snapshot, 2, |host, t| match host {
        "node-2" if (20..40).contains(&t) => 0.02,
        _ => 2e-4,
    });
    let found = outliers(&snapshot);
    assert_eq!(found.len(), 1, "{found:?}");
    let minutes = |ms: Option<u64>| ms.map(|ms| (ms - START_MS) / 900_000);
    assert_eq!((minutes(found[0].since_ms), minutes(found[0].until_ms)), (Some(20), Some(40)));
    let mut snapshot = hosts(&[("node", 8)]);
    transfers(&mut snapshot, 3, |host, _| if host == "node-2" { 0.02 } else { 2e-4 });
    let found = outliers(&snapshot);
    assert_eq!((found.len(), found[0].since_ms, found[0].until_ms), (1, None, None));
}

#[test]
fn hosts_of_another_job_are_no_equals() {
    let mut snapshot = hosts(&[("node", 6), ("gateway", 6)]);
    transfers(&mut snapshot, 4, |host, _| if host.starts_with("gateway") { 0.02 } else { 2e-4 });
    assert_eq!(outliers(&snapshot), []);
}

#[test]
fn a_spike_noise_and_what_many_have_are_of_no_host() {
    for seed in 0..20 {
        let mut snapshot = hosts(&[("node", 12)]);
        transfers(&mut snapshot, seed, |host, t| if host == "node-1" && t == 50 { 0.5 } else { 2e-4 });
        assert_eq!(outliers(&snapshot), [], "{seed}");
    }
    // All become worse at once: the network between them, not one of them.
    let mut snapshot = hosts(&[("node", 8)]);
    transfers(&mut snapshot, 5, |_, t| if t >= 60 { 0.02 } else { 2e-4 });
    assert_eq!(outliers(&snapshot), []);
    let mut snapshot = hosts(&[("node", 8)]);
    transfers(&mut snapshot, 6, |host, _| if host < "node-4" { 0.02 } else { 2e-4 });
    assert_eq!(outliers(&snapshot), [], "three of eight");
    // Three hosts have no majority.
    let mut snapshot = hosts(&[("node", 3)]);
    transfers(&mut snapshot, 7, |host, _| if host == "node-1" { 0.02 } else { 2e-4 });
    assert_eq!(outliers(&snapshot), []);
}

#[test]
fn gaps_and_numbers_that_are_none_name_no_host() {
    let mut snapshot = hosts(&[("node", 8)]);
    transfers(&mut snapshot, 8, |_, _| 2e-4);
    for series in &mut snapshot.stored {
        for value in &mut series.growth[30..50] {
            *value = None;
        }
    }
    snapshot.stored[1].growth = vec![Some(f64::NAN), Some(f64::INFINITY), Some(-1e300)];
    snapshot.stored[3].intervals = usize::MAX / 4;
    snapshot.stored[3].growth.clear();
    snapshot.stored[5].growth = vec![Some(1e308); INTERVALS];
    snapshot.stored[5].every_s = 0.0;
    assert_eq!(outliers(&snapshot), []);
}

#[test]
fn drives_are_compared_at_their_load() {
    let mut snapshot = hosts(&[("node", 8)]);
    for number in 1..=8 {
        // Twice the requests, twice the wait; the last one is slow since noon.
        let reads = 1e4 * f64::from(number);
        let host = format!("node-{number}");
        let wait = move |t: usize| f64::from(number) * if number == 8 && t >= 48 { 12.0 } else { 1.0 };
        add(&mut snapshot, &host, "disk.sda.stat.reads", |_| Some(reads));
        add(&mut snapshot, &host, "disk.sda.stat.read_ms", move |t| Some(reads * wait(t)));
    }
    let found = outliers(&snapshot);
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.host.as_str(), one.device.as_str()), ("node-8", "sda"));
    assert_eq!((one.since_ms, one.value), (Some(START_MS + 48 * 900_000), 96.0));
}

#[test]
fn of_cpus_the_busiest_counts_and_a_device_is_one_of_several() {
    let mut snapshot = hosts(&[("node", 6)]);
    for number in 1..=6 {
        let host = format!("node-{number}");
        for cpu in 0..4 {
            // Interrupts are at another CPU on each host; one host has a full one.
            let busy = if cpu != number % 4 {
                0.01
            } else if number == 2 {
                0.99
            } else {
                0.1
            };
            let key = format!("cpu.{cpu}.softirq_us");
            add(&mut snapshot, &host, &key, |_| Some(busy * EVERY_S * 1e6));
        }
        for nic in ["eth0", "eth1"] {
            add(&mut snapshot, &host, &format!("nic.{nic}.stat.rx_packets"), |_| Some(1e7));
            let drops = if number == 5 && nic == "eth1" { 1e5 } else { 0.0 };
            add(&mut snapshot, &host, &format!("nic.{nic}.stat.rx_dropped"), |_| Some(drops));
        }
    }
    let found = outliers(&snapshot);
    let names: Vec<(&str, &str)> = found.iter().map(|o| (o.host.as_str(), o.device.as_str())).collect();
    assert_eq!(names, [("node-5", "eth1"), ("node-2", "")], "{found:?}");
}
