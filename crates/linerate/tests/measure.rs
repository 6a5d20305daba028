//! `linerate measure` with a real node program, on the loopback of this machine. Without a built
//! `linerate-node` it is skipped, and says so.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn node_program() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_BIN_EXE_linerate")).with_file_name("linerate-node");
    std::env::var_os("LINERATE_NODE").map(PathBuf::from).or(Some(beside)).filter(|p| p.is_file())
}

/// `None`, and said so, without a node program.
fn measure(name: &str, arguments: &[&str]) -> Option<Output> {
    let Some(node) = node_program() else {
        println!("SKIPPED {name}: no linerate-node beside linerate and LINERATE_NODE is not set");
        return None;
    };
    let data = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("measure")
        .args(arguments)
        .env("LINERATE_DATA", data.path())
        .env("LINERATE_NODE", node)
        .output()
        .unwrap();
    Some(output)
}

#[test]
fn a_transfer_over_loopback_tells_what_it_did() {
    let Some(output) = measure("measure local", &["local", "--time", "2s", "-P", "2"]) else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "streams       2",
        "throughput",
        "s/GB sender",
        "moved by",
        "held up by",
        "at both ends",
        "`-v` prints ",
    ] {
        assert!(text.contains(part), "{part}\nin\n{text}");
    }
}

#[test]
fn the_same_as_json_with_checksums_in_both_directions() {
    let arguments = ["local", "--time", "1s", "--verify", "--both-ways", "--no-calibration", "--json"];
    let Some(output) = measure("measure local --verify", &arguments) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let measured = &json["samples"][0]["outcome"]["measured"];
    for (tx, rx) in [(&measured["tx"], &measured["rx"]), (&measured["rx"]["back"], &measured["tx"]["back"])] {
        assert!(tx["bytes"].as_u64().unwrap() > 0);
        assert_eq!(tx["bytes"], rx["bytes"]);
        assert_eq!(tx["verified_streams"], 1);
    }
}

#[test]
fn what_cannot_be_had_is_said_with_code_2() {
    let arguments = ["local", "--time", "200ms", "--congestion", "nosuch"];
    let Some(output) = measure("measure local --congestion", &arguments) else { return };
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("cannot use the congestion control `nosuch`"), "{text}");
}

#[test]
fn a_cpu_that_is_not_there_is_an_error_that_names_those_that_are() {
    let name = "a_cpu_that_is_not_there_is_an_error_that_names_those_that_are";
    let Some(output) = measure(name, &["local", "--pin", "0,1023", "--time", "100ms"]) else { return };
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("cannot run on CPU 1023: this host allows CPU 0"), "{text}");
    assert!(text.contains("hint: --pin 0"), "{text}");
}
