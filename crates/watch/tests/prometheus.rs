//! What a watch shows to Prometheus, judged by Prometheus' own tools: the text, the rules, the dashboard.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use linerate_model::download::DownloadPath;
use linerate_model::inventory::{Endpoint, Group, Host, Inventory, Layer, TransportSpec};
use linerate_model::slow::{DownloadSuspect, SlowAlarm, SlowOf, UsualOf};
use linerate_model::suspect::{Direction, Suspect};
use linerate_model::watch::LossAlarm;
use linerate_testkit::{has, run};
use linerate_watch::metrics::{
    DownloadFigures, HOST_SERIES, HostCounts, HostFigures, RULES_FILE, SERIES_MAX, WatchFigures, dashboard,
    rule_tests, rules, targets, text,
};

fn alarm(suspect: Suspect) -> LossAlarm {
    LossAlarm {
        id: 1,
        suspect,
        direction: Direction::Rx,
        since_ms: 1_780_000_000_000,
        reported_ms: 1_780_000_010_000,
        lost: 5,
        sent: 100,
        partners: 2,
    }
}

/// The text of hosts with these names.
fn shown(names: &[String]) -> String {
    let mut counts = HostCounts::default();
    counts.send(1000, 3);
    counts.receive(990, 0, &[40, 60, 51_200, 9_000_000]);
    let alarms = [
        alarm(Suspect::Host("a\"b\\c".into())),
        alarm(Suspect::Pair("a".into(), "b".into())),
        alarm(Suspect::All),
    ];
    let path =
        DownloadPath { host: "arc-1".into(), url: "http://files/\"a\"".into(), via: "192.0.2.11".into() };
    let download = DownloadFigures { path: &path, rate_bps: 256e3, downloads: 4, failed: 1 };
    let slow = SlowAlarm {
        id: 2,
        of: SlowOf::Download(DownloadSuspect {
            via: Some("192.0.2.11".into()),
            ..DownloadSuspect::default()
        }),
        since_ms: 1_780_000_000_000,
        reported_ms: 1_780_000_000_000,
        usual: 800e6,
        now: 256e3,
        usual_of: UsualOf::Peers,
        seen_with: 1,
        failure: None,
        decided: None,
    };
    let host = |name| HostFigures { name, is_watched: true, counts: &counts };
    let figures = WatchFigures {
        version: "0.1.0",
        start_ms: 1_780_000_000_500,
        hosts: names.iter().map(|name| host(name)).collect(),
        open: alarms.iter().collect(),
        slow: vec![&slow],
        downloads: vec![download],
        alarms: 7,
        notifications: (3, 1),
        missing_minutes: 2,
    };
    text(&figures, || Duration::from_millis(3))
}

fn series(text: &str) -> usize {
    text.lines().filter(|line| !line.starts_with('#')).count()
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("node{number}")).collect()
}

#[test]
fn the_text_has_no_complaint_of_promtool() {
    let test = "the_text_has_no_complaint_of_promtool";
    let text = shown(&names(3));
    assert!(text.contains("linerate_host_rtt_seconds_bucket{host=\"node0\",le=\"0.0001\"} 2\n"), "{text}");
    assert!(text.contains("linerate_host_rtt_seconds_bucket{host=\"node0\",le=\"+Inf\"} 4\n"), "{text}");
    assert!(
        text.contains("linerate_slow_alarm_ratio{kind=\"download\",suspect=\"through 192.0.2.11\"} 3125\n")
    );
    assert!(text.contains("front_end=\"192.0.2.11\"} 32000\n"), "{text}");
    assert!(text.contains("suspect=\"a\\\"b\\\\c\""), "{text}");
    if !has(test, "promtool", "prometheus") {
        return;
    }
    let mut check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    check.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let done = check.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && complaints.is_empty(), "{complaints}");
}

#[test]
fn a_host_has_at_most_25_series_and_what_the_cap_leaves_out_is_counted() {
    let (few, more) = (series(&shown(&names(10))), series(&shown(&names(11))));
    assert_eq!(more - few, HOST_SERIES);
    const { assert!(HOST_SERIES <= 25) };
    let all = shown(&names(10_000));
    assert!(series(&all) <= SERIES_MAX && series(&all) > SERIES_MAX * 95 / 100, "{}", series(&all));
    let shown = all.lines().filter(|line| line.starts_with("linerate_host_watched{")).count();
    let left_out = format!("linerate_watch_left_out_hosts {}\n", 10_000 - shown);
    assert!(all.contains(&left_out), "{left_out}");
}

/// A folder with the rules and their tests.
fn files() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(RULES_FILE), rules()).unwrap();
    let tests = folder.path().join("linerate.test.yml");
    fs::write(&tests, rule_tests()).unwrap();
    (folder, tests)
}

#[test]
fn each_rule_fires_in_its_case_and_is_silent_in_the_other() {
    let test = "each_rule_fires_in_its_case_and_is_silent_in_the_other";
    let (folder, tests) = files();
    let alerts = rules().matches("- alert: ").count();
    assert_eq!(rule_tests().matches("alertname: ").count(), 2 * alerts);
    assert_eq!(rule_tests().matches("exp_alerts:").count(), alerts);
    if !has(test, "promtool", "prometheus") {
        return;
    }
    run("promtool", &["check", "rules", folder.path().join(RULES_FILE).to_str().unwrap()]);
    run("promtool", &["test", "rules", tests.to_str().unwrap()]);
    // The tests can fail: without the rules none fires.
    fs::write(folder.path().join(RULES_FILE), "groups: []\n").unwrap();
    let done = Command::new("promtool").args(["test", "rules"]).arg(&tests).output().unwrap();
    assert!(!done.status.success());
}

/// Each query of the dashboard as a rule: promtool reads it as a server does.
#[test]
fn queries_of_the_dashboard_are_queries() {
    let test = "queries_of_the_dashboard_are_queries";
    let board = dashboard();
    let panels = board["panels"].as_array().unwrap();
    let mut rules = "groups:\n  - name: panels\n    rules:\n".to_owned();
    for (at, panel) in panels.iter().enumerate() {
        let query = panel["targets"][0]["expr"].as_str().unwrap();
        assert!(query.contains("linerate_"), "{query}");
        let query = query.replace("$__rate_interval", "5m").replace("$host", ".*");
        rules = format!("{rules}      - record: panel:{at}\n        expr: '{query}'\n");
    }
    let names: Vec<&str> = panels.iter().map(|panel| panel["title"].as_str().unwrap()).collect();
    assert!(names.len() >= 8, "{names:?}");
    if !has(test, "promtool", "prometheus") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("panels.yml");
    fs::write(&file, rules).unwrap();
    run("promtool", &["check", "rules", file.to_str().unwrap()]);
}

#[test]
fn targets_have_their_groups_and_prometheus_reads_them() {
    let test = "targets_have_their_groups_and_prometheus_reads_them";
    let host = |name: &str, address: &str, transport| Host {
        name: name.into(),
        transport,
        groups: vec!["vs-4".into()],
        endpoints: vec![Endpoint {
            address: address.parse().unwrap(),
            layer: Layer::Underlay,
            netns: None,
            link_bps: None,
        }],
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    };
    let group = Group { name: "vs-4".into(), kind: "hyper visor".into(), ..Group::default() };
    let inventory = Inventory {
        groups: vec![group],
        hosts: vec![
            host("arc-1", "10.0.0.1", TransportSpec::Local),
            host("arc-2", "fd00::2", TransportSpec::Local),
            host("nas", "10.0.0.9", TransportSpec::Iperf3 { port: 5201 }),
        ],
        ..Inventory::default()
    };
    let list = targets(&inventory);
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!(list[1]["targets"][0], "[fd00::2]:9100");
    assert_eq!(list[0]["labels"]["group_hyper_visor"], "vs-4");
    if !has(test, "promtool", "prometheus") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path: PathBuf = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let path = write("targets.json", &list.to_string());
    let config = format!(
        "scrape_configs:\n  - job_name: node\n    file_sd_configs:\n      - files: ['{}']\n",
        path.display()
    );
    let config = write("prometheus.yml", &config);
    let words = |path: &Path| path.to_str().unwrap().to_owned();
    run("promtool", &["check", "config", &words(&config)]);
    let found = run("promtool", &["check", "service-discovery", &words(&config), "node"]);
    assert!(found.contains("10.0.0.1:9100") && found.contains("group_hyper_visor"), "{found}");
}
