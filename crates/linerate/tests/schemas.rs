//! What commands print with `--json` is what `docs/reference/schemas.json` publishes.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

struct Site {
    folder: tempfile::TempDir,
    published: Value,
}

impl Site {
    fn new() -> Self {
        let published = std::fs::read_to_string(root().join("docs/reference/schemas.json")).unwrap();
        Self { folder: tempfile::tempdir().unwrap(), published: serde_json::from_str(&published).unwrap() }
    }

    fn output(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(line.split(' ')).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("LINERATE_DATA", self.folder.path().join("data")).env("HOME", self.folder.path());
        command.output().unwrap()
    }

    /// Why a value is not the document of this name.
    fn flaws(&self, document: &str, value: &Value) -> Vec<String> {
        let mut schema = self.published.clone();
        assert!(schema["$defs"][document].is_object(), "no schema of {document}");
        schema["$ref"] = format!("#/$defs/{document}").into();
        let schema = jsonschema::validator_for(&schema).unwrap();
        schema.iter_errors(value).map(|flaw| format!("{}: {flaw}", flaw.instance_path())).collect()
    }

    /// Runs the command; what it prints is the document of this name.
    fn prints(&self, line: &str, document: &str) -> Value {
        let output = self.output(line);
        let value: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{line}: {e}: {}", String::from_utf8_lossy(&output.stderr)));
        assert_eq!(self.flaws(document, &value), Vec::<String>::new(), "{line}");
        value
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_recorded_case_is_a_run() {
    let site = Site::new();
    let mut cases: Vec<PathBuf> = std::fs::read_dir(root().join("cases"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    cases.sort();
    assert!(cases.len() > 50, "{}", cases.len());
    for case in cases {
        let value = site.prints(&format!("diagnose --json {}", case.display()), "run");
        assert!(value["summary"]["findings"].is_array(), "{}", case.display());
    }
}

#[test]
fn what_is_asked_of_this_host_alone_is_as_published() {
    let site = Site::new();
    std::fs::write(site.folder.path().join("hosts"), "a\nb\n").unwrap();
    for (line, document) in [
        ("runs --json", "runs"),
        ("facts local --json", "facts"),
        ("changes --json", "changes"),
        ("inventory hosts --format hosts --json", "inventory"),
        ("explain --json", "causes"),
        ("explain nic-gro-overlay --json", "cause"),
        ("disk plan --raid10 --drives 8 --size 3T --json", "disk-plan"),
        ("disk durability patterns --json", "durability-patterns"),
        ("undo --json", "undo-list"),
        ("check --as json", "check"),
        ("measure tcp local --time 100ms --json", "single"),
        ("measure latency local --time 100ms --json", "single"),
    ] {
        site.prints(line, document);
    }
    let shown = site.output("measure tcp local --time 100ms --json");
    let events = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(events.lines().count() > 1, "{events}");
    for event in events.lines() {
        let value: Value = serde_json::from_str(event).unwrap_or_else(|e| panic!("{event}: {e}"));
        assert_eq!(site.flaws("event", &value), Vec::<String>::new(), "{event}");
    }
}

/// The published schema refuses what is not the document: a key that is gone, another type.
#[test]
fn another_shape_is_refused() {
    let site = Site::new();
    let case = root().join("cases/casebook-a1.toml");
    let whole = site.prints(&format!("diagnose --json {}", case.display()), "run");
    for key in ["schema", "run", "summary", "diagnosis"] {
        let mut value = whole.clone();
        value.as_object_mut().unwrap().remove(key);
        assert!(!site.flaws("run", &value).is_empty(), "without {key}");
        value[key] = Value::Bool(true);
        assert!(!site.flaws("run", &value).is_empty(), "{key} is a flag");
    }
    let mut value = whole.clone();
    value["summary"]["findings"][0]["what"] = 7.into();
    assert!(!site.flaws("run", &value).is_empty());
    assert!(!site.flaws("runs", &whole).is_empty());
}

/// A value that a reading of facts finds changed, in a network namespace of its own, is listed as published.
#[test]
fn a_changed_fact_is_listed_as_published() {
    let site = Site::new();
    let key = "sysctl.net.ipv4.tcp_rmem";
    let read = |value: &str| {
        let script = format!(
            "echo '{value}' > /proc/sys/net/ipv4/tcp_rmem && exec {} facts local {key}",
            env!("CARGO_BIN_EXE_linerate")
        );
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", &script]).current_dir(site.folder.path()).stdin(Stdio::null());
        command.env("LINERATE_DATA", site.folder.path().join("data")).env("HOME", site.folder.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    read("4096 131072 6291456");
    read("4096 131072 6291456");
    let none = site.prints("changes --json", "changes");
    assert_eq!(none["changes"].as_array().unwrap().len(), 0, "{none}");
    read("4096 65536 212992");
    let log = site.prints("changes local --since 1h --key sysctl.net --json", "changes");
    let [change] = &log["changes"].as_array().unwrap()[..] else { panic!("{log}") };
    assert_eq!((&change["host"], &change["key"]), (&"local".into(), &key.into()));
    assert_eq!(
        (&change["from"], &change["to"]),
        (&"4096 131072 6291456".into(), &"4096 65536 212992".into())
    );
    assert!(change["after_ms"].as_u64() < change["seen_ms"].as_u64() && change.get("who").is_none(), "{log}");
    let text = String::from_utf8(site.output("changes").stdout).unwrap();
    assert!(text.contains("4096 131072 6291456 -> 4096 65536 212992"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    for elsewhere in ["changes other", "changes --key nic", "changes --since 2099-01-01"] {
        let text = String::from_utf8(site.output(elsewhere).stdout).unwrap();
        assert!(text.starts_with("no changes seen"), "{elsewhere}: {text}");
    }
}
