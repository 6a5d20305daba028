//! A cause of one's own, proven by `linerate knowledge test --lab`: the programs work together.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::process::Command;

use linerate_testkit::TestPrograms;

/// The judge as a user's own cause meets it: a cluster, a fault, a survey, a verdict, all by the programs
/// themselves.
#[test]
fn a_cause_of_ones_own_is_proven_by_the_lab() {
    let test = "a_cause_of_ones_own_is_proven_by_the_lab";
    let programs = TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-judge"));
    if let Some(reason) = programs.missing() {
        println!("SKIPPED {test}: {reason}");
        return;
    }
    let text = include_str!("../../../knowledge/tcp/tcp-rmem-small.toml")
        .replace("\"tcp-rmem-small\"", "\"my-small-window\"")
        .replace("prior = \"medium\"", "prior = \"high\"");
    let file = std::env::temp_dir().join(format!("linerate-own-{}.toml", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let output = Command::new(&programs.linerate)
        .args(["knowledge", "test", "--lab", "--json"])
        .arg(&file)
        .env("LINERATE_JUDGE", env!("CARGO_BIN_EXE_linerate-judge"))
        .env("LINERATE_NODE", &programs.node)
        .output();
    std::fs::remove_file(&file).unwrap();
    let output = output.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let tested: serde_json::Value =
        serde_json::from_str(&printed).unwrap_or_else(|e| panic!("{e}: {printed}{errors}"));
    assert_eq!(tested["proofs"][0]["name"], "small-rmem", "{printed}");
    assert_eq!(tested["proofs"][0]["found"], true, "{printed}{errors}");
}
