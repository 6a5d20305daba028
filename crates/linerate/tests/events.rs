//! What a program reads on stderr while a command with `--json` runs: every line an event, phases that begin,
//! step and end.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn node_program() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_BIN_EXE_linerate")).with_file_name("linerate-node");
    std::env::var_os("LINERATE_NODE").map(PathBuf::from).or(Some(beside)).filter(|p| p.is_file())
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(arguments).current_dir(folder).env("LINERATE_DATA", folder);
    if let Some(node) = node_program() {
        command.env("LINERATE_NODE", node);
    }
    command.output().unwrap()
}

fn events(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

#[test]
fn every_line_is_an_event_and_every_phase_ends() {
    if node_program().is_none() {
        println!(
            "SKIPPED every_line_is_an_event_and_every_phase_ends: no linerate-node beside linerate and LINERATE_NODE is not set"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let measure = ["measure", "local", "--time", "800ms", "--no-calibration", "--json"];
    let output = run(folder.path(), &measure);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["samples"].is_array());
    let events = events(&output);
    assert!(events.iter().all(|e| e["schema"] == 1 && e["at_ms"].as_u64().unwrap() > 0), "{events:?}");
    let of = |name: &str| events.iter().filter(|e| e["event"] == name).collect::<Vec<_>>();
    let phases = |name: &str| of(name).iter().map(|e| e["phase"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(phases("begin"), ["connecting", "measuring"]);
    assert_eq!(phases("end"), ["connecting", "measuring"]);
    for end in of("end") {
        assert_eq!((&end["done"], &end["total"]), (&1.into(), &1.into()), "{end}");
        assert!(end["took_s"].as_f64().unwrap() > 0.0 && end["unit"].is_string(), "{end}");
    }
    // A transfer of 800 ms is longer than the time between two events.
    let progress = of("progress");
    assert!(!progress.is_empty(), "{events:?}");
    for event in progress {
        assert!(event["done"].as_u64().unwrap() <= event["total"].as_u64().unwrap(), "{event}");
        assert!(event["left_s"].is_null() || event["left_s"].as_f64().unwrap() >= 0.0, "{event}");
    }
}

#[test]
fn why_a_command_could_not_run_is_an_event_too() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["survey", "-i", "missing.toml", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let events = events(&output);
    let last = events.last().unwrap();
    assert_eq!(last["event"], "error");
    assert!(last["message"].as_str().unwrap().contains("missing.toml"), "{last}");
    assert!(last["hints"].is_array(), "{last}");
    // For people, when a program wants none.
    let quiet = run(folder.path(), &["survey", "-i", "missing.toml", "--json", "-q"]);
    assert!(String::from_utf8_lossy(&quiet.stderr).starts_with("error: "));
}
