//! `linerate try --set` on a real cluster of network namespaces: several values of a setting, each with its
//! interval beside an untouched pair, the best one named, and nothing left of any.
//!
//! In: the programs `linerate` and `linerate-node` (named by `LINERATE` and `LINERATE_NODE`, or beside the
//! lab's).
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::process::Command;

use linerate_lab::faults;
use linerate_lab::lab::Lab;
use linerate_lab::topology::Topology;
use linerate_model::exit::ExitCode;
use linerate_testkit::TestPrograms;

const KEY: &str = "net.ipv4.tcp_rmem";
/// A little more than the fault leaves, and far more than the path needs.
const VALUES: [&str; 2] = ["4096 16384 32768", "4096 131072 6291456"];

#[test]
fn the_best_of_several_values_is_named_and_the_old_one_is_back() {
    let test = "the_best_of_several_values_is_named_and_the_old_one_is_back";
    let programs = TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-lab"));
    if let Some(reason) = programs.missing() {
        return println!("SKIPPED {test}: {reason}");
    }
    let mut lab = Lab::up(Topology::load("far").unwrap()).unwrap();
    let names: Vec<String> = lab.cluster.hosts.iter().map(|(plan, _)| plan.name.clone()).collect();
    let (victim, other) = (names[1].as_str(), names[0].as_str());
    lab.inject(faults::find("small-rmem").unwrap(), Some(victim), 1).unwrap();
    let value = |lab: &Lab| lab.cluster.hosts[1].1.read_sysctl(KEY).unwrap();
    let broken = value(&lab);
    let data = lab.folder.path().join("data");
    let run = |arguments: &[&str]| {
        let output = Command::new(&programs.linerate)
            .args(arguments)
            .env("LINERATE_DATA", &data)
            .env("LINERATE_NODE", &programs.node)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), errors)
    };
    let inventory = lab.cluster.without_confessions(&lab.cluster.inventory_path()).unwrap();
    run(&["survey", "-q", "-i", inventory.to_str().unwrap(), "--time", "20s"]);

    let set = format!("sysctl.{KEY}={},{}", VALUES[0], VALUES[1]);
    let pair = format!("{other},{victim}");
    let sweep = ["try", "--set", &set, "--on", victim, "--pair", &pair, "--quiet", "--json"];
    let (code, text, errors) = run(&sweep);
    assert_eq!(code, Some(ExitCode::Ok as i32), "{text}{errors}");
    let sweep: serde_json::Value = serde_json::from_str(&text).unwrap();
    linerate_testkit::schemas::hold("sweep", &sweep);
    let trials = sweep["sweep"]["trials"].as_array().unwrap();
    assert_eq!(trials.len(), VALUES.len(), "{sweep}");
    for (trial, value) in trials.iter().zip(VALUES) {
        assert_eq!(trial["remedy"]["changes"][0]["to"], value);
        assert_eq!(trial["status"], "measured");
        let interval = trial["effect"]["interval"].as_array().unwrap();
        assert!(interval[0].as_f64().unwrap() <= interval[1].as_f64().unwrap());
        let (from, to) = (&trial["control"][0], &trial["control"][1]);
        assert!(from.is_string() && from != victim && to != victim && from != other, "{trial}");
    }
    assert_eq!(sweep["sweep"]["best"], trials[1]["id"], "{sweep}");
    assert_eq!(value(&lab), broken, "a sweep puts the old value back");

    let best = trials[1]["id"].as_str().unwrap();
    let kept = lab.folder.path().join("site.toml").display().to_string();
    let (code, text, errors) = run(&["keep", best, "--quiet", "--into", &kept]);
    assert_eq!(code, Some(ExitCode::Ok as i32), "{text}{errors}");
    // The set of the command, and the one that is made from all kept trials, are the same.
    let made = lab.folder.path().join("made.toml").display().to_string();
    let (code, text, errors) = run(&["drift", "-i", inventory.to_str().unwrap(), "--init", "--kept", &made]);
    assert_eq!(code, Some(ExitCode::Ok as i32), "{text}{errors}");
    let set = std::fs::read_to_string(&kept).unwrap();
    assert_eq!(set, std::fs::read_to_string(&made).unwrap());
    assert!(set.contains(&format!("trial = \"{best}\"")) && set.contains(VALUES[1]), "{set}");
    let (_, text, errors) = run(&["drift", "-i", inventory.to_str().unwrap(), "--kept", &kept]);
    assert!(text.contains("1 kept setting"), "{text}{errors}");
    assert_eq!(value(&lab).split_ascii_whitespace().collect::<Vec<_>>().join(" "), VALUES[1]);
    let (code, text, errors) = run(&["undo", best]);
    assert_eq!(code, Some(ExitCode::Ok as i32), "{text}{errors}");
    assert_eq!(value(&lab), broken);

    let (code, _, errors) = run(&["try", "--set", "sysctl.kernel.core_pattern=x", "--on", victim]);
    assert_eq!(code, Some(ExitCode::CouldNotRun as i32));
    assert!(errors.contains("no setting that may be written"), "{errors}");
}
