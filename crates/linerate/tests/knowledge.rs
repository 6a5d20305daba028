//! `linerate knowledge` and `linerate case` as people use them: tables, words, a cause of one's own, a run
//! given away.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::PathBuf;
use std::process::{Command, Output};

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(arguments)
            .current_dir(self.0.path())
            .env("LINERATE_DATA", self.0.path().join("data"))
            .env("XDG_CONFIG_HOME", self.0.path().join("config"))
            .env_remove("LINERATE_KNOWLEDGE")
            .output()
            .unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A cause that nobody else knows: the setting that a case of ours has.
const OWN: &str = r#"
id = "house-rule"
title = "a rule of this house: somaxconn is 4096"
area = "setting"
prior = "high"
static = true
mechanism = "One. Two."
proof = ["case:accept-queue-full"]

[symptom]
responses = ["setting"]
suspects = ["host-rx"]
layers = "either"

[[indicators]]
keys = ["sysctl.net.core.somaxconn"]
op = "less-than"
values = ["128"]
weight = 9.0
required = true
"#;

#[test]
fn the_list_fits_a_terminal_and_says_what_proves_each() {
    let home = Home::new();
    let plain = home.run(&["knowledge"]);
    assert_eq!(plain.status.code(), Some(0), "{}", text(&plain.stderr));
    let list = text(&home.run(&["knowledge", "list"]).stdout);
    assert_eq!(text(&plain.stdout), list);
    assert!(list.lines().all(|l| l.chars().count() <= 100), "{list}");
    assert!(list.lines().any(|l| l == "offload") && list.contains("tso-off"), "{list}");
    let queue = text(&home.run(&["knowledge", "list", "--area", "queue"]).stdout);
    assert!(queue.contains("rx-ring-small") && !queue.contains("tso-off"), "{queue}");
    assert_eq!(home.run(&["knowledge", "list", "--area", "weather"]).status.code(), Some(2));
    let json: Vec<serde_json::Value> =
        serde_json::from_slice(&home.run(&["knowledge", "--json"]).stdout).unwrap();
    assert!(json.len() >= 60 && json.iter().all(|c| c["proof"].as_array().is_some_and(|p| !p.is_empty())));
}

#[test]
fn causes_are_found_by_words_and_told() {
    let home = Home::new();
    let found = text(&home.run(&["knowledge", "search", "rx_missed_errors"]).stdout);
    assert!(found.contains("flow-control-off") && found.contains("rx-ring-small"), "{found}");
    let none = home.run(&["knowledge", "search", "nosuchword"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("hint: "), "{}", text(&none.stderr));
    let old = text(&home.run(&["knowledge", "lro-forwarding"]).stdout);
    let new = text(&home.run(&["knowledge", "show", "lro-forwarding"]).stdout);
    assert_eq!(old, new);
    assert!(new.contains("Betrayed by:") && new.contains("while nic.*.master is there"), "{new}");
    let wrong = home.run(&["knowledge", "show", "ring"]);
    assert!(text(&wrong.stderr).contains("perhaps") && text(&wrong.stderr).contains("rx-ring-small"));
}

#[test]
fn a_cause_of_ones_own_is_tested_and_used() {
    let home = Home::new();
    let file = home.write("own.toml", OWN);
    let tested = home.run(&["knowledge", "test", file.to_str().unwrap()]);
    let shown = text(&tested.stdout);
    // It finds what it names, and takes the verdict of the cause that the case is there for.
    assert!(shown.contains("case:accept-queue-full: found"), "{shown}{}", text(&tested.stderr));
    assert!(shown.contains("accept-queue-full\n    before: ") && shown.contains("WRONG:"), "{shown}");
    assert_eq!(tested.status.code(), Some(1));
    let json = home.run(&["knowledge", "test", "own.toml", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["proofs"][0]["found"], true);

    // Where the program looks for files of one's own.
    assert!(!text(&home.run(&["knowledge"]).stdout).contains("house-rule"));
    home.write("config/linerate/knowledge/own.toml", OWN);
    assert!(text(&home.run(&["knowledge"]).stdout).contains("house-rule"));
    let given = home.run(&["knowledge", "show", "house-rule", "--knowledge", "own.toml"]);
    assert_eq!(given.status.code(), Some(0), "{}", text(&given.stderr));
    // Tested again although it is there already.
    assert_eq!(home.run(&["knowledge", "test", "own.toml"]).status.code(), Some(1));
}

#[test]
fn a_bad_file_is_code_2_with_its_line() {
    let home = Home::new();
    home.write("bad.toml", &OWN.replace("sysctl.net.core.somaxconn", "registry.somaxconn"));
    let refused = home.run(&["knowledge", "test", "bad.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    let shown = text(&refused.stderr);
    assert!(
        shown.contains("bad.toml:16: `registry.somaxconn` is no key") && shown.contains("hint:"),
        "{shown}"
    );
    home.write("worse.toml", "id = \"x\"\ntitle = 3\n");
    let shown = text(&home.run(&["knowledge", "test", "worse.toml"]).stderr);
    assert!(shown.contains("worse.toml:2:"), "{shown}");
    // A proof that does not exist.
    home.write("rumour.toml", &OWN.replace("case:accept-queue-full", "case:hearsay"));
    let shown = text(&home.run(&["knowledge", "test", "rumour.toml"]).stdout);
    assert!(shown.contains("case:hearsay: NOT FOUND: no such case"), "{shown}");
}

#[test]
fn a_run_becomes_a_case_that_names_nobody_and_says_the_same() {
    let home = Home::new();
    let evidence = home.write(
        "evidence.txt",
        "from secretalpha secretbeta secretgamma\nsecretalpha - 9400 9390\nsecretbeta 9410 - 9400\nsecretgamma 0.3 9380 -\n",
    );
    let import = home.run(&["import", evidence.to_str().unwrap()]);
    assert!(matches!(import.status.code(), Some(0 | 1 | 3)), "{}", text(&import.stderr));
    let recorded = home.run(&["case", "record", "-o", "case.toml", "--title", "a matrix"]);
    assert_eq!(recorded.status.code(), Some(0), "{}", text(&recorded.stderr));
    let case = std::fs::read_to_string(home.0.path().join("case.toml")).unwrap();
    assert!(!case.contains("secret") && case.contains("host-1") && case.contains("[expect]"), "{case}");
    let again = home.run(&["diagnose", "case.toml"]);
    let (shown, before) = (text(&again.stdout), text(&home.run(&["diagnose"]).stdout));
    for (old, new) in [("secretalpha", "host-1"), ("secretbeta", "host-2"), ("secretgamma", "host-3")] {
        assert!(before.contains(old) && shown.contains(new), "{before}\n{shown}");
    }
    // A case of one's own beside a file of one's own is run with it.
    home.write("cases/mine.toml", &case);
    home.write("own.toml", OWN);
    let tested = home.run(&["knowledge", "test", "own.toml", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&tested.stdout).unwrap();
    assert!(json["cases"].as_u64().is_some_and(|n| n > 50), "{json}");
}
