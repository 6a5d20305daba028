//! What commands print with `--json` is what `docs/reference/schemas.json` publishes.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::fact_change::SeenBy;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::Inventory;
use linerate_model::snapshot::Snapshot;
use linerate_store::{FactReading, ReadScope, Store};
use linerate_testkit::schemas::Schemas;
use serde_json::Value;

struct Site {
    folder: tempfile::TempDir,
    published: Schemas,
}

impl Site {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), published: Schemas::published() }
    }

    fn output(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(line.split(' ')).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("LINERATE_DATA", self.folder.path().join("data")).env("HOME", self.folder.path());
        command.output().unwrap()
    }

    /// Why a value is not the document of this name.
    fn flaws(&self, document: &str, value: &Value) -> Vec<String> {
        self.published.flaws(document, value)
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
        ("history --json", "history"),
        ("inventory hosts --format hosts --json", "inventory"),
        ("explain --json", "causes"),
        ("explain nic-gro-overlay --json", "cause"),
        ("disk plan --raid10 --drives 8 --size 3T --json", "disk-plan"),
        ("disk durability patterns --json", "durability-patterns"),
        ("undo --json", "undo-list"),
        ("clean local --json", "clean"),
        ("check --as json", "check"),
        ("check local --json", "checks"),
        ("profile --json", "profiles"),
        ("profile show tuned-network-latency --json", "profile"),
        ("profile diff tuned-network-latency local --json", "profile-diff"),
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

/// Keys that a schema requires, also through what it refers to.
fn required_keys(all: &Value, schema: &Value) -> Vec<String> {
    let strings = |value: &Value| {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut keys = strings(&schema["required"]);
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        keys.extend(required_keys(all, &all["$defs"][name]));
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        keys.extend(required_keys(all, part));
    }
    keys
}

/// Each document has its verdict, or its schema has the reason why nothing is judged in it.
#[test]
fn every_document_has_a_verdict_or_a_reason() {
    let site = Site::new();
    let output = site.output("schema");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let listed = String::from_utf8(site.output("schema --list").stdout).unwrap();
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() > 40, "{listed}");
    let mut judged = 0;
    for name in names {
        let has = required_keys(&all, &all["$defs"][name]).iter().any(|key| key == "summary");
        let reason = site.published.unjudged(name);
        assert_ne!(has, reason.is_some(), "{name}: {reason:?}");
        judged += usize::from(has);
    }
    assert!(judged > 25, "{judged}");
}

/// The verdict of a document has what the exit code blames, and what stands on the screen.
#[test]
fn a_verdict_blames_what_the_exit_code_blames() {
    let site = Site::new();
    keep_surveys(&site.folder.path().join("data"));
    for (line, document) in [
        ("diff run-8 run-9 --json", "diff"),
        ("diff run-7 run-8 --json", "diff"),
        ("check local --json", "checks"),
    ] {
        let output = site.output(line);
        let value: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{line}: {e}: {}", String::from_utf8_lossy(&output.stderr)));
        assert_eq!(site.flaws(document, &value), Vec::<String>::new(), "{line}");
        let findings = value["summary"]["findings"].as_array().unwrap().len();
        assert_eq!(findings > 0, output.status.code() == Some(1), "{line}: {value:#}");
    }
    let ring = site.output("diff run-8 run-9 --json").stdout;
    let ring: Value = serde_json::from_slice(&ring).unwrap();
    assert_eq!(
        ring["summary"]["findings"][0]["what"]["stated"]["sentence"],
        ring["differences"][0]["sentence"]
    );
    let history = site.prints("history --json", "history");
    let [finding] = &history["summary"]["findings"].as_array().unwrap()[..] else { panic!("{history:#}") };
    let stated = &finding["what"]["stated"];
    assert_eq!(stated["host"], "n2");
    assert!(stated["sentence"].as_str().unwrap().starts_with("host n2, what it receives: worse"), "{stated}");
    assert_eq!(finding["check"]["command"], "linerate diff run-8 run-9");
}

/// A document that must have a verdict is refused without it, even where its schema does not ask for one.
#[test]
fn a_document_without_a_verdict_is_refused() {
    let site = Site::new();
    keep_surveys(&site.folder.path().join("data"));
    let mut value = site.prints("history --json", "history");
    value.as_object_mut().unwrap().remove("summary");
    assert_eq!(site.flaws("history", &value), ["/summary: history without a verdict"]);
    assert_eq!(site.published.unjudged("runs"), Some("a list"));
}

/// A host reports a change while it is followed; one line is the document.
#[test]
fn a_notice_is_a_line_as_published() {
    let site = Site::new();
    let script = format!(
        "{} changes --follow local --json > lines & operator=$!; mtu=1000\n\
         while ! [ -s lines ]; do mtu=$((mtu + 1)); ip link set lo mtu $mtu; sleep 0.1\n\
         kill -0 $operator || exit 1; done; kill -INT $operator; wait $operator",
        env!("CARGO_BIN_EXE_linerate")
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", &script]).current_dir(site.folder.path()).stdin(Stdio::null());
    command.env("LINERATE_DATA", site.folder.path().join("data")).env("HOME", site.folder.path());
    let output = command.output().unwrap();
    let lines = std::fs::read_to_string(site.folder.path().join("lines")).unwrap();
    let first = lines.lines().next().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let notice: Value = serde_json::from_str(first).unwrap();
    assert_eq!(site.flaws("notice", &notice), Vec::<String>::new(), "{first}");
    assert_eq!(notice["host"], "local");
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

/// Fourteen daily surveys of four hosts; from the tenth on `n2` receives 60 %, and a ring of it was changed
/// between.
fn keep_surveys(data: &Path) {
    const DAY_MS: u64 = 86_400_000;
    let now_ms = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    std::fs::create_dir(data).unwrap();
    let mut store = Store::open(&data.join("linerate.sqlite")).unwrap();
    for day in 0..14_u64 {
        let start_ms = now_ms as u64 - (14 - day) * DAY_MS;
        let run = format!("run-{day}");
        let inventory = Inventory { name: "four".into(), ..Inventory::default() };
        let mut facts = HostFacts::default();
        let ring = if day < 9 { 4096 } else { 256 };
        facts.readings.insert("nic.eth0.ring.rx".into(), FactValue::Int(ring));
        let snapshot = Snapshot { id: run.clone(), start_ms, inventory, ..Snapshot::default() };
        store.begin_run(&snapshot, None).unwrap();
        store.add_facts(&run, [(&"n2".to_owned(), &facts)]).unwrap();
        let (seen_by, scope) = (SeenBy::Run(run.clone()), ReadScope::All);
        let ended_ms = start_ms + 1000;
        let reading =
            FactReading { cluster: "four", started_ms: start_ms, ended_ms, seen_by, scope, who: None };
        store.log_facts(&reading, [(&"n2".to_owned(), &facts)]).unwrap();
        let mut cells = Vec::new();
        for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))).filter(|(a, b)| a != b) {
            let noise = ((day * 7 + from * 3 + to * 5) % 11) as f64 * 0.004;
            let share = if to == 2 && day >= 9 { 0.6 } else { 1.0 };
            let cell = serde_json::json!({
                "from": format!("n{from}"), "to": format!("n{to}"), "layer": "underlay",
                "throughput_bps": 9.4e9 * share * (1.0 - noise), "ceiling": { "bps": null, "binding": "", "terms": [] },
            });
            cells.push(serde_json::from_value(cell).unwrap());
        }
        store.finish(&snapshot, &Diagnosis { run, cells, ..Diagnosis::default() }).unwrap();
    }
}

#[test]
fn a_host_that_became_slow_is_in_the_history_with_what_was_set_then() {
    let site = Site::new();
    keep_surveys(&site.folder.path().join("data"));
    let history = site.prints("history --json", "history");
    let [moved] = &history["moved"].as_array().unwrap()[..] else { panic!("{history}") };
    assert_eq!((&moved["last"], &moved["first"], &moved["is_worse"]), (&8.into(), &9.into(), &true.into()));
    let series = &history["series"][moved["series"].as_u64().unwrap() as usize];
    assert_eq!((&series["suspect"]["host"], &series["direction"]), (&"n2".into(), &"rx".into()), "{series}");
    assert_eq!(moved["settings"][0]["key"], "nic.eth0.ring.rx", "{moved}");
    assert_eq!(moved["settings"].as_array().unwrap().len(), 1, "{moved}");
    for (line, expected) in [
        ("history", "host n2, what it receives: worse between "),
        ("history", "\n  changed  n2 eth0 ring.rx 4096 -> 256\n"),
        ("history", "\n  compare  linerate diff run-8 run-9"),
        ("history n2", "\nhost n2, what it sends\n"),
        ("history n1 n2", "\ntraffic from n2 to n1\n"),
        ("history n1", "four: 14 surveys, "),
        ("history --since 3d", "a change shows from 6 surveys on"),
        ("history --since 2099-01-01", "no surveys since "),
    ] {
        let text = String::from_utf8(site.output(line).stdout).unwrap();
        assert!(text.contains(expected), "{line}: {expected}\n{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
    let unknown = site.output("history n9");
    assert_eq!(unknown.status.code(), Some(2));
    let error = String::from_utf8(unknown.stderr).unwrap();
    assert!(error.contains("no survey measured n9\nhint: "), "{error}");
}
