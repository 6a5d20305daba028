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
fn the_cpus_of_a_host_are_taken_together_and_a_device_is_one_of_several() {
    let mut snapshot = hosts(&[("node", 6)]);
    for number in 1..=6 {
        let host = format!("node-{number}");
        for cpu in 0..4 {
            // Interrupts are at another CPU on each host; on one they take ten times as long.
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
        add(&mut snapshot, &host, "softnet.processed", |_| Some(1e7));
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

/// Adds the same counter to hosts, with the growth of an interval by host.
fn each(snapshot: &mut Snapshot, key: &str, growth: impl Fn(&str) -> f64) {
    let names: Vec<String> = snapshot.inventory.hosts.iter().map(|host| host.name.clone()).collect();
    for name in names {
        let growth = growth(&name);
        add(snapshot, &name, key, |_| Some(growth));
    }
}

#[test]
fn a_host_that_is_busy_is_not_named_for_it() {
    let mut snapshot = hosts(&[("node", 8)]);
    // Fifty times the work: packets, connections, requests, waits, and what goes wrong in proportion.
    let work = |host: &str| if host == "node-3" { 50.0 } else { 1.0 };
    for (key, usual) in [
        ("snmp.Tcp.OutSegs", 1e6),
        ("snmp.Tcp.RetransSegs", 300.0),
        ("netstat.TcpExt.TCPTimeouts", 200.0),
        ("snmp.Tcp.PassiveOpens", 1e4),
        ("netstat.TcpExt.ListenDrops", 20.0),
        ("snmp.Udp.InDatagrams", 1e5),
        ("snmp.Udp.RcvbufErrors", 300.0),
        ("softnet.processed", 5e6),
        ("softnet.time_squeeze", 100.0),
        ("cpu.0.softirq_us", 8e6),
        ("nic.eth0.stat.rx_packets", 5e6),
        ("nic.eth0.stat.rx_dropped", 2000.0),
        ("nic.eth0.stat.tx_packets", 5e6),
        ("nfs.rpc.calls", 1e4),
        ("nfs.rpc.repeated", 100.0),
        ("conntrack.insert_failed", 100.0),
        ("pressure.cpu.some_us", 1e7),
        ("pressure.io.some_us", 1e7),
        ("pressure.memory.some_us", 1e7),
    ] {
        each(&mut snapshot, key, |host| usual * work(host));
    }
    // Fewer and larger requests, which take longer.
    let large = |host: &str| host == "node-3";
    each(&mut snapshot, "disk.sda.stat.writes", |host| if large(host) { 5e4 } else { 1e4 });
    each(&mut snapshot, "disk.sda.stat.write_ms", |host| if large(host) { 2e6 } else { 1e4 });
    each(&mut snapshot, "disk.sda.stat.write_sectors", |host| if large(host) { 1e8 } else { 8e4 });
    assert_eq!(outliers(&snapshot), []);
    // With requests of one size the same wait is of that drive.
    snapshot.stored.retain(|series| series.key != "disk.sda.stat.write_sectors");
    assert_eq!(outliers(&snapshot).len(), 1);
}

#[test]
fn a_host_or_nic_that_is_idle_is_not_named_for_it() {
    let mut snapshot = hosts(&[("node", 8)]);
    let is_idle = |host: &str| host == "node-6";
    // Spanning tree each 2 s and broadcasts, all dropped, on a NIC in standby; busy ones have them too.
    each(&mut snapshot, "nic.eth1.stat.rx_packets", |host| if is_idle(host) { 5000.0 } else { 1e7 });
    each(&mut snapshot, "nic.eth1.stat.rx_dropped", |host| if is_idle(host) { 4900.0 } else { 450.0 });
    each(&mut snapshot, "nic.eth1.stat.tx_packets", |host| if is_idle(host) { 2000.0 } else { 1e7 });
    each(&mut snapshot, "nic.eth1.stat.tx_dropped", |host| if is_idle(host) { 100.0 } else { 0.0 });
    // It tries to reach a service that is gone, once a minute, and does little else.
    each(&mut snapshot, "snmp.Tcp.OutSegs", |host| if is_idle(host) { 2500.0 } else { 1e7 });
    each(&mut snapshot, "snmp.Tcp.RetransSegs", |host| if is_idle(host) { 75.0 } else { 100.0 });
    each(&mut snapshot, "netstat.TcpExt.TCPTimeouts", |host| if is_idle(host) { 75.0 } else { 10.0 });
    each(&mut snapshot, "softnet.processed", |host| if is_idle(host) { 1e4 } else { 1e7 });
    // Timers have no part in packets.
    each(&mut snapshot, "cpu.0.softirq_us", |host| if is_idle(host) { 2e6 } else { 2e7 });
    assert_eq!(outliers(&snapshot), []);
}

#[test]
fn a_host_of_another_role_is_not_named_for_it() {
    let mut snapshot = hosts(&[("node", 7), ("store", 1)]);
    let is_other = |host: &str| host == "store-1";
    transfers(&mut snapshot, 9, |host, _| if is_other(host) { 0.02 } else { 2e-4 });
    each(&mut snapshot, "disk.sda.stat.reads", |host| if is_other(host) { 1e6 } else { 1e4 });
    each(&mut snapshot, "disk.sda.stat.read_ms", |host| if is_other(host) { 2e7 } else { 1e4 });
    each(&mut snapshot, "softnet.processed", |_| 1e7);
    each(&mut snapshot, "cpu.1.softirq_us", |host| if is_other(host) { 4e8 } else { 2e7 });
    assert_eq!(outliers(&snapshot), []);
    // As one of them it would be.
    for host in &mut snapshot.inventory.hosts {
        host.groups = vec!["node".to_owned()];
    }
    assert!(outliers(&snapshot).len() >= 2);
}

#[test]
fn many_series_of_many_intervals_take_bounded_memory() {
    let series = |number: usize| StoredSeries {
        host: format!("node-{number}"),
        key: "snmp.Tcp.RetransSegs".to_owned(),
        start_ms: START_MS,
        every_s: EVERY_S,
        intervals: usize::MAX,
        growth: Vec::new(),
    };
    let stored: Vec<StoredSeries> = (0..40_000).map(series).collect();
    let most = super::intervals_max(&stored);
    assert!(most * stored.len() <= super::CELLS_MAX && most >= 96, "{most}");
    assert_eq!(super::intervals_max(&stored[..10]), super::INTERVALS_MAX);
}
