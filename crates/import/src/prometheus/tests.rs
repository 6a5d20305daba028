//! Recorded forms of answers, what becomes of them, and answers that mean harm.

use std::collections::BTreeMap;

use linerate_model::fact::FactValue;
use linerate_model::inventory::Inventory;
use serde_json::{Value, json};

use super::*;

fn range() -> StoredRange {
    StoredRange::new(1_795_000_000_000 - 3_600_000, 1_795_000_000_000).unwrap()
}

/// A series of these labels whose points are at the bounds of the intervals.
fn one(labels: &[(&str, &str)], values: impl Fn(usize) -> f64) -> Value {
    let range = range();
    let points: Vec<Value> = (0..=range.intervals)
        .map(|at| json!([range.start_s + range.step_s * at as u64, values(at).to_string()]))
        .collect();
    json!({ "metric": labels.iter().copied().collect::<BTreeMap<_, _>>(), "values": points })
}

fn matrix(series: &[Value]) -> Vec<u8> {
    let data = json!({ "resultType": "matrix", "result": series });
    json!({ "status": "success", "data": data }).to_string().into_bytes()
}

/// What is read of metrics with their series.
fn read(metrics: &[(&str, Vec<Value>)]) -> Snapshot {
    let names: Vec<String> = metrics.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut stored = StoredMetrics::new("http://prom:9090", range(), names.clone(), None::<Inventory>);
    for query in queries(&names) {
        let series = &metrics.iter().find(|(name, _)| *name == query.name).unwrap().1;
        stored.add(&query, &matrix(series)).unwrap();
    }
    stored.into_snapshot()
}

const A: (&str, &str) = ("instance", "a:9100");

#[test]
fn counters_facts_and_settings_have_the_keys_of_the_nodes() {
    let eth0 = [A, ("job", "node"), ("device", "eth0.140")];
    let sysctl = |index: &str, value: f64| one(&[A, ("index", index)], move |_| value);
    let snapshot = read(&[
        ("node_uname_info", vec![one(&[A, ("nodename", "arc-1.example"), ("release", "6.1")], |_| 1.0)]),
        ("node_network_mtu_bytes", vec![one(&eth0, |_| 1500.0)]),
        ("node_network_speed_bytes", vec![one(&eth0, |_| 1.25e9)]),
        ("node_network_receive_errs_total", vec![one(&eth0, |at| 7.0 * at as f64)]),
        ("node_network_transmit_errs_total", vec![one(&eth0, |_| 5.0)]),
        ("node_netstat_TcpExt_ListenDrops", vec![one(&[A], |at| if at < 6 { 100.0 } else { 30.0 })]),
        ("node_cpu_seconds_total", vec![one(&[A, ("cpu", "3"), ("mode", "steal")], |at| at as f64)]),
        ("node_ethtool_received_crc_errors", vec![one(&eth0, |at| at as f64)]),
        (
            "node_sysctl_net_ipv4_tcp_rmem",
            vec![sysctl("0", 4096.0), sysctl("2", 6e6), sysctl("1", 131_072.0)],
        ),
        ("node_sysctl_net_ipv4_conf_all_rp_filter", vec![one(&[A], |_| 1.0)]),
        (
            "node_filesystem_readonly",
            vec![one(&[A, ("mountpoint", "/srv"), ("fstype", "xfs"), ("device", "/dev/sda1")], |_| 1.0)],
        ),
        ("node_md_disks", vec![one(&[A, ("device", "md0"), ("state", "active")], |_| 3.0)]),
        ("node_md_disks_required", vec![one(&[A, ("device", "md0")], |_| 4.0)]),
        ("node_drbd_connected", vec![one(&[A, ("device", "drbd0")], |_| 1.0)]),
        ("node_unknown", vec![one(&[A], |_| 1.0)]),
    ]);
    let facts = &snapshot.facts["arc-1"];
    let reading = |key: &str| facts.readings.get(key).map(ToString::to_string).unwrap_or_default();
    assert_eq!(reading("nic.eth0/140.mtu"), "1500");
    assert_eq!(facts.readings.get("nic.eth0/140.speed_mbit"), Some(&FactValue::Int(10_000)));
    assert_eq!(reading("sysctl.net.ipv4.tcp_rmem"), "4096 131072 6000000");
    assert_eq!(reading("sysctl.net.ipv4.conf.all.rp_filter"), "1");
    assert_eq!(reading("mount./srv"), "xfs /dev/sda1 ro");
    assert_eq!(
        (reading("disk.md0.md_degraded"), reading("drbd.0.connection")),
        ("1".into(), "Connected".into())
    );
    assert_eq!(reading("disk.md0.failed_legs"), "1 of 4");
    // What did not grow has no part in it.
    assert_eq!(facts.counters.get("nic.eth0/140.stat.rx_errors"), Some(&84));
    assert_eq!(facts.counters.get("nic.eth0/140.stat.tx_errors"), None);
    assert_eq!(facts.counters.get("nic.eth0/140.stat.rx_crc_errors"), Some(&12));
    let stored = |key: &str| snapshot.stored.iter().find(|s| s.key == key).unwrap();
    assert_eq!(stored("nic.eth0/140.stat.tx_errors").growth, []);
    assert_eq!(stored("cpu.3.steal_us").at(4), Some(1e6));
    // A host that booted began to count anew.
    let listen = stored("netstat.TcpExt.ListenDrops");
    assert_eq!((listen.at(4), listen.at(5), listen.at(6)), (Some(0.0), Some(30.0), Some(0.0)));
    assert_eq!(snapshot.inventory.hosts[0].groups, ["node"]);
    let imported = snapshot.imported.unwrap();
    assert!(
        imported.pieces.iter().any(|piece| piece.format == "netdev" && piece.readings == 4),
        "{imported:?}"
    );
    assert!(imported.missing.iter().any(|missing| missing.command.contains("iostat")));
    assert!(imported.missing.iter().all(|missing| !missing.command.contains("sysctl -a")));
}

#[test]
fn counters_of_drives_are_figures_too() {
    let sda = [A, ("device", "sda")];
    let snapshot = read(&[
        ("node_disk_reads_completed_total", vec![one(&sda, |at| 3000.0 * at as f64)]),
        ("node_disk_read_time_seconds_total", vec![one(&sda, |at| 60.0 * at as f64)]),
        ("node_disk_read_bytes_total", vec![one(&sda, |at| 512.0 * 3e6 * at as f64)]),
        ("node_disk_io_time_seconds_total", vec![one(&sda, |at| 150.0 * at as f64)]),
    ]);
    let [figure] = &snapshot.storage[..] else { panic!("{:?}", snapshot.storage) };
    assert_eq!((figure.host.as_str(), figure.variant.as_str()), ("a", "sda"));
    assert_eq!((figure.requests_per_s, figure.wait_ms, figure.busy), (Some(10.0), Some(20.0), Some(0.5)));
    assert!((figure.bytes_per_s - 5.12e6).abs() < 1.0, "{figure:?}");
}

#[test]
fn a_host_that_is_no_longer_scraped_is_a_gap() {
    let mut gone = one(&[A, ("nodename", "a")], |_| 1.0);
    gone["values"].as_array_mut().unwrap().truncate(5);
    let snapshot = read(&[("node_uname_info", vec![gone, one(&[("instance", "b:9100")], |_| 1.0)])]);
    let gaps: Vec<String> = snapshot.gaps.iter().map(|gap| format!("{}: {}", gap.what, gap.reason)).collect();
    let silent: Vec<&String> = gaps.iter().filter(|gap| gap.contains("no samples")).collect();
    assert_eq!(silent, ["host a: Prometheus has no samples of it since 2026-11-18 10:26 UTC"], "{gaps:?}");
}

/// Only the points at these bounds.
fn within(mut series: Value, bounds: std::ops::Range<usize>) -> Value {
    let points = series["values"].as_array_mut().unwrap();
    *points = points[bounds].to_vec();
    series
}

#[test]
fn of_series_whose_labels_changed_the_newest_counts() {
    let count = range().intervals + 1;
    let uname = |release: &str| one(&[A, ("nodename", "a"), ("release", release)], |_| 1.0);
    let info = |duplex: &str, state: &str| {
        one(&[A, ("device", "eth0"), ("duplex", duplex), ("operstate", state)], |_| 1.0)
    };
    let job = |job: &str| one(&[A, ("job", job)], |at| 10.0 * at as f64);
    let [up, down] = [info("full", "up"), info("unknown", "down")];
    let snapshot = read(&[
        // In the order of Prometheus, which sorts labels; the other order follows for the device.
        ("node_uname_info", vec![within(uname("6.1.0-10"), 6..count), within(uname("6.1.0-9"), 0..6)]),
        ("node_network_info", vec![within(up, 5..count), within(down, 0..5)]),
        ("node_netstat_Tcp_OutSegs", vec![within(job("new"), 6..count), within(job("old"), 0..6)]),
    ]);
    let facts = &snapshot.facts["a"];
    let reading = |key: &str| facts.readings[key].to_string();
    assert_eq!(reading("kernel.release"), "6.1.0-10");
    assert_eq!((reading("nic.eth0.duplex"), reading("nic.eth0.state")), ("full".into(), "up".into()));
    assert!(snapshot.gaps.iter().all(|gap| !gap.reason.contains("no samples")), "{:?}", snapshot.gaps);
    // Both parts of the counter, but for the interval in which it changed.
    let stored = snapshot.stored.iter().find(|series| series.key == "snmp.Tcp.OutSegs").unwrap();
    let known: Vec<usize> = (0..stored.intervals).filter(|at| stored.at(*at) == Some(10.0)).collect();
    assert_eq!(known, (0..count - 1).filter(|at| *at != 5).collect::<Vec<_>>());
    assert_eq!(snapshot.inventory.hosts[0].groups, ["new"]);
    // The same with the old ones sorted first.
    let snapshot = read(&[
        ("node_uname_info", vec![within(uname("5.9"), 0..6), within(uname("6.0"), 6..count)]),
        ("node_netstat_Tcp_OutSegs", vec![within(job("a"), 0..6), within(job("b"), 6..count)]),
    ]);
    assert_eq!(snapshot.facts["a"].readings["kernel.release"].to_string(), "6.0");
    assert_eq!(snapshot.inventory.hosts[0].groups, ["b"]);
    // A host that was renamed has its new name.
    let named = |name: &str| one(&[A, ("nodename", name)], |_| 1.0);
    let snapshot = read(&[
        ("node_uname_info", vec![within(named("new"), 6..count), within(named("old"), 0..6)]),
        ("node_netstat_Tcp_OutSegs", vec![job("a")]),
    ]);
    assert_eq!(snapshot.inventory.hosts.len(), 1);
    assert_eq!(snapshot.inventory.hosts[0].name, "new");
}

#[test]
fn a_replica_without_a_peer_is_not_one_that_is_being_filled() {
    let connection = |growth: f64, connected: f64| {
        let drbd = [A, ("device", "drbd1")];
        let side = |node: &'static str, value: f64| one(&[drbd[0], drbd[1], ("node", node)], move |_| value);
        let snapshot = read(&[
            ("node_drbd_connected", vec![one(&drbd, |_| connected)]),
            ("node_drbd_disk_state_is_up_to_date", vec![side("local", 1.0), side("remote", connected)]),
            ("node_drbd_network_received_bytes_total", vec![one(&drbd, |_| 7.0)]),
            ("node_drbd_network_sent_bytes_total", vec![one(&drbd, |at| growth * at as f64)]),
        ]);
        let readings = snapshot.facts.get("a").map(|facts| facts.readings.clone()).unwrap_or_default();
        ["drbd.1.connection", "drbd.1.disks"].map(|key| readings.get(key).map(ToString::to_string))
    };
    let words = |words: [&str; 2]| words.map(|word| Some(word.to_owned()));
    assert_eq!(connection(0.0, 1.0), words(["Connected", "UpToDate/UpToDate"]));
    assert_eq!(connection(0.0, 0.0), words(["Unconnected", "UpToDate/DUnknown"]));
    assert_eq!(connection(1e9, 0.0), [None, None], "it sends: a side is being filled");
}

#[test]
fn labels_and_values_that_mean_harm_are_left_out() {
    let wild = |at: usize| [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -5.0, 1e300, 1e308, 0.0][at % 7];
    let long = "x".repeat(100_000);
    let device = |name: &str| one(&[A, ("device", name)], |at| at as f64);
    let hosts = ["a\u{1b}[2Jb:9100", "$(reboot):9100", "", "-rf:9100", "../../etc:9100"];
    let snapshot = read(&[
        (
            "node_network_receive_errs_total",
            vec![
                device("eth\u{7}0"),
                device("eth\n0"),
                device(&long),
                device(""),
                device("a b*c"),
                device("ok0"),
            ],
        ),
        ("node_network_transmit_errs_total", vec![one(&[A, ("device", "ok0")], wild)]),
        ("node_network_mtu_bytes", vec![one(&[A, ("device", "ok0")], |_| f64::NAN)]),
        ("node_netstat_Tcp_OutSegs", hosts.map(|host| one(&[("instance", host)], |at| at as f64)).to_vec()),
        (
            "node_sysctl_vm_x",
            vec![one(&[A, ("index", "99999999999")], |_| 1e300), one(&[A, ("index", "9")], wild)],
        ),
    ]);
    let names: Vec<&str> = snapshot.inventory.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["a"]);
    let text = format!("{snapshot:?}");
    assert!(!text.contains("\\u{1b}") && !text.contains("reboot") && text.len() < 20_000, "{text}");
    assert!(
        snapshot.stored.iter().flat_map(|s| s.growth.iter().flatten()).all(|v| v.is_finite() && *v >= 0.0)
    );
    assert!(snapshot.imported.unwrap().notes.iter().any(|note| note.contains("left out")));
    // Names become queries: only those that are names.
    assert!(queries(&["node_ethtool_x_errors\"} or up{a=\"".to_owned()]).is_empty());
    assert_eq!(queries(&vec!["node_uname_info".to_owned(); 5000]).len(), QUERIES_MAX);
}
