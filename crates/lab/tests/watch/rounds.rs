//! Rounds of throughput: idle hosts are measured and the rates are in the history; hosts with traffic of
//! others are left alone and named.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use linerate_lab::lab::Lab;
use linerate_lab::topology::Topology;
use linerate_testkit::{TestPrograms, has};
use serde_json::Value;

use super::{Running, Watch};

/// The inventory of the lab with windows that are open at all times.
fn with_rounds(lab: &Lab, folder: &Path) -> PathBuf {
    let cluster = fs::read_to_string(lab.cluster.inventory_path()).unwrap();
    let path = folder.join("rounds.toml");
    let windows = "[throughput]\nwindows = [\"00:00-12:00\", \"12:00-00:00\"]\n";
    fs::write(&path, format!("{cluster}\n{windows}")).unwrap();
    path
}

/// The first round of a watch that sees all hosts.
fn round(programs: &TestPrograms, data: &Path, inventory: &Path) -> Value {
    let mut watch = Watch::begin(programs, data, inventory, &[]);
    watch.until(|event| event["event"] == "throughput")["round"].clone()
}

/// iperf3 in the namespace of a host.
fn iperf3(lab: &Lab, host: &str, words: &[&str]) -> Running {
    let (_, netns) = lab.cluster.host(host).unwrap();
    let net = format!("--net={}", netns.path().display());
    let mut command = Command::new("nsenter");
    command.args([&net, "iperf3"]).args(words).stdin(Stdio::null()).stdout(Stdio::null());
    Running(command.stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn idle_hosts_are_measured_and_busy_ones_left_alone() {
    let test = "idle_hosts_are_measured_and_busy_ones_left_alone";
    let programs = TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-lab"));
    if let Some(reason) = programs.missing() {
        println!("SKIPPED {test}: {reason}");
        return;
    }
    if !has(test, "iperf3", "iperf3") {
        return;
    }
    let lab = Lab::up(Topology::load("three").unwrap()).unwrap();
    let folder = lab.folder.path().to_owned();
    let (data, inventory) = (folder.join("data"), with_rounds(&lab, &folder));
    let idle = round(&programs, &data, &inventory);
    let seen = idle["seen"].as_array().unwrap();
    // Hosts whose sessions were not open yet are left out; on a busy machine a transfer may be invalid.
    assert!(idle["busy"].is_null() && !(seen.is_empty() && idle["missing"].is_null()), "{idle:#}");
    assert!(seen.iter().all(|pair| pair["throughput_bps"].as_f64() > Some(0.0)), "{idle:#}");

    let address = lab.cluster.host("node-2").unwrap().0.underlay().to_string();
    let _server = iperf3(&lab, "node-2", &["-s"]);
    let sends = ["-c", &address, "-t", "600", "--connect-timeout", "60000"];
    linerate_testkit::wait_until("a listener", || {
        lab.cluster
            .host("node-2")
            .unwrap()
            .1
            .output("ss", &["-Htln", "sport = 5201"])
            .is_ok_and(|out| !out.is_empty())
    });
    let _client = iperf3(&lab, "node-3", &sends);
    let busy = round(&programs, &data, &inventory);
    let named = |list: &Value, host: &str| {
        list.as_array().is_some_and(|all| all.iter().any(|one| one["host"] == host))
    };
    assert!(named(&busy["busy"], "node-2") || named(&busy["busy"], "node-3"), "{busy:#}");
    let is_of_both = |pair: &Value| pair["from"] != "node-1" && pair["to"] != "node-1";
    assert!(!busy["seen"].as_array().unwrap().iter().any(is_of_both), "{busy:#}");
}
