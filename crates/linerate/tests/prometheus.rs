//! `linerate diagnose --prometheus`: a real Prometheus with a history of node_exporter, through the real
//! program.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fmt::Write as _;
use std::net::TcpListener;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;

use linerate_testkit::prometheus::PrometheusServer;
use linerate_testkit::{has, run, wait_until};
use serde_json::Value;

/// 4 March 2025, 00:00 UTC.
const BEGIN_S: u64 = 1_741_046_400;
const MINUTES: u64 = 480;
/// From here on a host loses packets.
const FAULT_MIN: u64 = 300;
const HOSTS: u64 = 8;
const RANGE: &str = "2025-03-04T00:00/2025-03-04T08:00";

/// A metric of all hosts as node_exporter shows it, a scrape a minute.
fn metric(text: &mut String, name: &str, labels: &str, value: impl Fn(u64, u64) -> u64) {
    metric_of(text, 1..=HOSTS, name, labels, value);
}

/// The same of some hosts.
fn metric_of(
    text: &mut String,
    hosts: RangeInclusive<u64>,
    name: &str,
    labels: &str,
    value: impl Fn(u64, u64) -> u64,
) {
    let comma = if labels.is_empty() { "" } else { "," };
    for host in hosts {
        let labels = labels.replace("HOST", &format!("arc-{host}"));
        for minute in 0..=MINUTES {
            let at = BEGIN_S + 60 * minute;
            let value = value(host, minute);
            writeln!(
                text,
                "{name}{{instance=\"10.0.0.{host}:9100\",job=\"node\"{comma}{labels}}} {value} {at}"
            )
            .unwrap();
        }
    }
}

/// Eight hosts: one sends segments again from 05:00 on, one has a slow drive, a replica lost its
/// peer, an array a drive.
fn exposition() -> String {
    let mut text = String::new();
    let uname = "nodename=\"HOST\",release=\"6.1.0\",machine=\"x86_64\"";
    metric(&mut text, "node_uname_info", uname, |_, _| 1);
    metric_of(&mut text, 5..=5, "node_drbd_connected", "device=\"drbd0\"", |_, minute| {
        u64::from(minute < FAULT_MIN)
    });
    metric_of(&mut text, 5..=5, "node_drbd_network_received_bytes_total", "device=\"drbd0\"", |_, _| 7);
    metric_of(&mut text, 5..=5, "node_drbd_network_sent_bytes_total", "device=\"drbd0\"", |_, minute| {
        1_000_000 * minute.min(FAULT_MIN)
    });
    metric_of(&mut text, 6..=6, "node_md_disks", "device=\"md0\",state=\"active\"", |_, minute| {
        if minute < FAULT_MIN { 4 } else { 3 }
    });
    metric_of(&mut text, 6..=6, "node_md_disks_required", "device=\"md0\"", |_, _| 4);
    // What the load of the hosts is, and a little noise.
    let segments = |host: u64, minute: u64| minute * (40_000 + 500 * host);
    metric(&mut text, "node_netstat_Tcp_OutSegs", "", segments);
    metric(&mut text, "node_netstat_Tcp_RetransSegs", "", move |host, minute| {
        let lost = minute.saturating_sub(FAULT_MIN) * if host == 4 { 900 } else { 0 };
        segments(host, minute) / 10_000 + (minute * 7 + host) % 3 + lost
    });
    metric(&mut text, "node_disk_reads_completed_total", "device=\"sda\"", |_, minute| minute * 6000);
    metric(&mut text, "node_disk_read_time_seconds_total", "device=\"sda\"", |host, minute| {
        minute * if host == 2 { 240 } else { 6 }
    });
    metric(&mut text, "node_network_mtu_bytes", "device=\"eth0\"", |_, _| 1500);
    metric(&mut text, "node_sysctl_net_core_rmem_max", "", |_, _| 212_992);
    text + "# EOF\n"
}

/// A Prometheus over this history.
fn prometheus(folder: &Path) -> PrometheusServer {
    let (history, blocks) = (folder.join("history"), folder.join("tsdb"));
    std::fs::write(&history, exposition()).unwrap();
    let [history, blocks] = [&history, &blocks].map(|path| path.to_str().unwrap());
    run("promtool", &["tsdb", "create-blocks-from", "openmetrics", history, blocks]);
    PrometheusServer::start(folder, "scrape_configs: []\n", &["--storage.tsdb.retention.time=100y"])
}

fn linerate(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    let done = command.args(arguments).current_dir(folder).env("LINERATE_DATA", folder.join("data")).output();
    let done = done.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}

#[test]
fn the_bad_host_is_named_with_how_much_and_since_when() {
    let test = "the_bad_host_is_named_with_how_much_and_since_when";
    if !has(test, "prometheus", "prometheus") || !has(test, "promtool", "prometheus") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = prometheus(folder.path());
    wait_until("Prometheus is ready", || server.is_ready());
    let url = format!("http://{}/", server.address);
    let ask = ["diagnose", "--prometheus", &url, "--range", RANGE];
    let (code, out, err) = linerate(folder.path(), &ask);
    assert_eq!(code, Some(1), "{out}{err}");
    let lossy = "arc-4: segments sent again 2.15 %, 0.0097 % on 7 equals\n";
    let since = "When   since 2025-03-04 05:00 UTC, 0.0095 % before\n";
    assert!(out.contains(lossy) && out.contains(since), "{out}{err}");
    let slow = "arc-2 sda: time of a read 40 ms, 1 ms on 7 equals\n   When   in the whole range\n";
    assert!(out.contains(slow), "{out}{err}");
    assert!(
        out.contains("md0 failed_legs: 1 of 4") && out.contains("DRBD 0 connection: Unconnected"),
        "{out}"
    );
    // A replica that lost its peer and an array that lost a drive have their causes.
    for (host, what) in [("arc-5", "not connected"), ("arc-6", "degraded")] {
        assert!(out.lines().any(|line| line.contains(host) && line.contains(what)), "{host}: {out}{err}");
    }
    // Neither another host, nor a cause that counters do not show.
    assert!(!out.contains("arc-1:") && !out.contains("arc-7") && out.contains("unknown"), "{out}");
    assert!(out.contains("ss -ti"), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 100 && !line.contains('…')), "{out}");
    assert!(err.contains("reading: ") && err.contains(" metrics in "), "{err}");
    // The same as JSON, and stored.
    let (code, json, err) = linerate(folder.path(), &[&ask[..], &["--json"]].concat());
    let page: Value = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}{err}"));
    assert_eq!(code, Some(1));
    let remarks = page["diagnosis"]["remarks"].as_array().unwrap();
    let hosts: Vec<&Value> = remarks.iter().map(|remark| &remark["outlier"]["host"]).collect();
    assert!(hosts.contains(&&Value::from("arc-4")) && hosts.contains(&&Value::from("arc-2")), "{hosts:?}");
    let asked = page["imported"]["missing"].as_array().unwrap();
    assert!((1..=3).contains(&asked.len()), "{asked:?}");
    let (code, _, err) = linerate(folder.path(), &[&ask[..], &["--save"]].concat());
    assert!(code == Some(1) && err.contains("linerate show "), "{err}");
    let (code, again, err) = linerate(folder.path(), &["diagnose"]);
    assert!(code == Some(1) && again.contains(lossy), "{again}{err}");
    // A range before anything was stored, and another that has less than half an hour.
    let before = ["diagnose", "--prometheus", &url, "--range", "2025-03-01/2025-03-02"];
    let (code, _, err) = linerate(folder.path(), &before);
    assert!(code == Some(2) && err.contains("no metric of node_exporter in this range"), "{code:?} {err}");
    let (code, _, err) = linerate(folder.path(), &["diagnose", "--prometheus", &url, "--range", "5m"]);
    assert!(code == Some(2) && err.contains("300 s is too short: at least 1800 s"), "{code:?} {err}");
}

#[test]
fn a_server_that_is_not_there_is_named_with_a_command() {
    let folder = tempfile::tempdir().unwrap();
    // A port that nothing listens at.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let (code, _, err) = linerate(folder.path(), &["diagnose", "--prometheus", &url]);
    let hint = format!("hint: curl -sG {url}/api/v1/query --data-urlencode query=up");
    assert!(code == Some(2) && err.contains(&format!("cannot read {url}: ")) && err.contains(&hint), "{err}");
    for (wrong, what) in [
        (&["diagnose", "--prometheus", &url, "a.txt"][..], "cannot be used with"),
        (&["diagnose", "--range", "1h"][..], "--prometheus"),
        (&["diagnose", "--prometheus", &url, "--range", "soon"][..], "is not a time"),
    ] {
        let (code, _, err) = linerate(folder.path(), wrong);
        assert!(code == Some(2) && err.contains(what), "{err}");
    }
}
