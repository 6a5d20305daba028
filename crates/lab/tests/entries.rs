//! A wrong policy rule and a wrong forwarding entry on a real cluster of network namespaces: found, tried,
//! put back, kept and undone, each time exactly.
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

/// What is broken, which cause that is, and what shows it on the host.
struct Broken {
    fault: &'static str,
    at: &'static str,
    cause: &'static str,
    shown: (&'static str, &'static [&'static str]),
    /// What only the broken host shows.
    wrong: &'static str,
}

const VICTIM: (&str, usize) = ("node-2", 1);

#[test]
fn a_wrong_policy_rule_is_tried_kept_and_undone() {
    there_and_back(
        "a_wrong_policy_rule_is_tried_kept_and_undone",
        &Broken {
            fault: "policy-route",
            at: VICTIM.0,
            cause: "policy-route-detour",
            shown: ("ip", &["-details", "rule", "show"]),
            wrong: "lookup 100",
        },
    );
}

#[test]
fn a_wrong_forwarding_entry_is_tried_kept_and_undone() {
    there_and_back(
        "a_wrong_forwarding_entry_is_tried_kept_and_undone",
        &Broken {
            fault: "wrong-forwarding",
            at: "node-2:node-3",
            cause: "forwarding-entry-wrong",
            shown: ("bridge", &["-details", "fdb", "show", "dev", "vx0"]),
            wrong: "dst 10.77.0.203",
        },
    );
}

fn there_and_back(test: &str, broken: &Broken) {
    let programs = TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-lab"));
    if let Some(reason) = programs.missing() {
        return println!("SKIPPED {test}: {reason}");
    }
    let mut lab = Lab::up(Topology::load("three").unwrap()).unwrap();
    lab.inject(faults::find(broken.fault).unwrap(), Some(broken.at), 1).unwrap();
    // The kernel lists the entries of a tunnel in an order of its own.
    let shown = |lab: &Lab| {
        let (program, arguments) = broken.shown;
        let text = lab.cluster.hosts[VICTIM.1].1.output(program, arguments).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    let before = shown(&lab);
    assert!(before.contains(broken.wrong), "{before}");
    let run = |arguments: &[&str]| {
        let output = Command::new(&programs.linerate)
            .args(arguments)
            .env("LINERATE_DATA", lab.folder.path().join("data"))
            .env("LINERATE_NODE", &programs.node)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), errors)
    };
    let inventory = lab.cluster.without_confessions(&lab.cluster.inventory_path()).unwrap();
    let (_, text, errors) = run(&["survey", "-q", "-i", inventory.to_str().unwrap(), "--time", "20s"]);
    assert!(text.contains(broken.cause), "{text}{errors}");
    assert_eq!(shown(&lab), before, "a survey changes nothing");

    let (code, text, errors) =
        run(&["try", broken.cause, "--on", VICTIM.0, "--arms", "4", "--quiet", "--json"]);
    assert!(matches!(code, Some(0 | 1)), "{text}{errors}");
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let trial = &document["trial"];
    // How much it gains is no promise of a busy machine.
    println!("{test}: {} {}", trial["remedy"]["changes"], trial["effect"]);
    assert_eq!(trial["status"], "measured", "{text}");
    assert_eq!(trial["remedy"]["changes"].as_array().map(Vec::len), Some(1), "only what is wrong: {text}");
    assert_eq!(shown(&lab), before, "a trial puts the old value back");

    let id = trial["id"].as_str().unwrap();
    let (code, text, errors) = run(&["keep", id, "--quiet"]);
    assert_eq!(code, Some(ExitCode::Ok as i32), "{text}{errors}");
    assert!(!shown(&lab).contains(broken.wrong), "{}", shown(&lab));
    let (code, text, errors) = run(&["undo", id]);
    assert_eq!(code, Some(ExitCode::Ok as i32), "{text}{errors}");
    assert_eq!(shown(&lab), before);
}
