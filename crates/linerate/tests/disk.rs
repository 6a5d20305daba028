//! `linerate disk watch` on this machine, while a file is written.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Most that is written, whatever happens.
const ROUNDS_MAX: usize = 400;

#[test]
fn what_is_written_is_seen_by_its_device() {
    const NAME: &str = "what_is_written_is_seen_by_its_device";
    let Some(node) = linerate_stage::node_program(env!("CARGO_BIN_EXE_linerate")) else {
        linerate_stage::skip(NAME, "no linerate-node beside linerate and LINERATE_NODE is not set");
        return;
    };
    if !Path::new("/sys/block").is_dir() {
        linerate_stage::skip(NAME, "no block devices are to be seen here");
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut watch = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["disk", "watch", "-i", "0.4", "--count", "3", "--json"])
        .env("LINERATE_DATA", folder.path())
        .env("LINERATE_NODE", node)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut file = std::fs::File::create(folder.path().join("written")).unwrap();
    for _ in 0..ROUNDS_MAX {
        if watch.try_wait().unwrap().is_some() {
            break;
        }
        file.write_all(&[7; 8 << 10]).unwrap();
        file.sync_data().unwrap();
    }
    let output = watch.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    assert_eq!(lines.len(), 5, "a layout, three intervals, the findings: {lines:?}");
    assert!(lines[0]["layout"].is_array() && lines[4]["findings"].is_array());
    let written: f64 = lines[1..4]
        .iter()
        .flat_map(|interval| interval["disks"].as_array().unwrap())
        .map(|disk| disk["write"]["bytes_per_s"].as_f64().unwrap())
        .sum();
    // A file system in memory has no device: then nothing is to be seen, and that is said so.
    let on_a_device = Command::new("df").arg(folder.path()).output().unwrap();
    if String::from_utf8_lossy(&on_a_device.stdout).contains("/dev/") {
        assert!(written > 0.0, "{lines:?}");
    } else {
        linerate_stage::skip(NAME, "the folder of the tests is on no block device");
    }
    let runs = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("runs")
        .env("LINERATE_DATA", folder.path())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&runs.stdout).contains("disks of 1 hosts watched for 1 s"), "{runs:?}");
}

#[test]
fn intervals_that_make_no_sense_are_refused() {
    for interval in ["0", "-1", "nan", "abc", "1e9"] {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(["disk", "watch", &format!("--interval={interval}")])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{interval}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("a number of seconds from 0.2 to 3600 is needed"), "{interval}: {said}");
    }
}
