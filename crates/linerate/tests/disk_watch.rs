//! `linerate disk watch` where hosts are not reached, are lost and come back; what it says to programs and to
//! people.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// Nothing listens there: ssh is refused at once.
const REFUSED: &str = "127.0.0.1:1";

/// `linerate` with a store of its own; nothing where the node program or a device is missing.
fn linerate(name: &str, folder: &Path, arguments: &[&str]) -> Option<Command> {
    let Some(node) = linerate_testkit::node_program(env!("CARGO_BIN_EXE_linerate")) else {
        linerate_testkit::skip(name, "no linerate-node beside linerate and LINERATE_NODE is not set");
        return None;
    };
    if !Path::new("/sys/block").is_dir() {
        linerate_testkit::skip(name, "no block devices are to be seen here");
        return None;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(arguments).env("LINERATE_DATA", folder.join("data")).env("LINERATE_NODE", node);
    command.stdin(Stdio::null());
    Some(command)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn shown(output: &Output) -> (String, String) {
    (linerate_testkit::text(&output.stdout), linerate_testkit::text(&output.stderr))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn hosts_that_are_not_reached_are_named_first_and_last() {
    const NAME: &str = "hosts_that_are_not_reached_are_named_first_and_last";
    if !linerate_testkit::has(NAME, "ssh", "openssh-client") {
        return;
    }
    let folder = folder();
    let arguments = ["disk", "watch", "-i", "0.2", "-c", "1", "localhost", REFUSED];
    let Some(mut command) = linerate(NAME, folder.path(), &arguments) else { return };
    let (text, notes) = shown(&command.output().unwrap());
    assert_eq!(text.lines().next(), Some("1 of 2 hosts seen; not seen: 127.0.0.1"), "{text}{notes}");
    let second = text.lines().nth(1).unwrap();
    assert!(second.starts_with("  127.0.0.1: ") && text.contains("refused"), "{text}");
    assert!(text.lines().any(|line| line == "localhost"), "the table names its host: {text}");
    for line in text.lines().filter(|line| line.starts_with("nothing is wrong")) {
        assert!(line.ends_with(" on the 1 of 2 hosts that were seen"), "{line}");
    }
    let runs = linerate(NAME, folder.path(), &["runs"]).unwrap().output().unwrap();
    assert!(shown(&runs).0.contains("disks of 1 of 2 hosts watched for "), "{runs:?}");

    let arguments = [&arguments[..], &["--json"]].concat();
    let output = linerate(NAME, folder.path(), &arguments).unwrap().output().unwrap();
    let lines = lines(&shown(&output).0);
    for line in &lines {
        linerate_testkit::schemas::hold("disk-watch-line", line);
    }
    let first = &lines[0];
    assert_eq!((&first["contact"], &first["host"]), (&"unseen".into(), &"127.0.0.1".into()), "{first}");
    assert!(first["reason"].as_str().unwrap().contains("refused"), "{first}");
    let last = &lines[lines.len() - 1];
    assert_eq!(last["hosts"], serde_json::json!({ "asked": 2, "seen": 1, "unseen": ["127.0.0.1"] }));
    assert_eq!(last["gaps"][0]["what"], "host 127.0.0.1", "{last}");
    // Something may be wrong with a disk here; that a host was not seen is never success.
    assert!(matches!(output.status.code(), Some(1 | 3)), "{output:?}");
}

/// Child processes of a process.
fn children(of: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).unwrap().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>()).collect()
}

/// Ends with the test, also when that fails.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_host_that_is_lost_is_asked_again_and_begins_anew() {
    const NAME: &str = "a_host_that_is_lost_is_asked_again_and_begins_anew";
    let folder = folder();
    // The count only bounds the test where the host does not come back.
    let arguments = ["disk", "watch", "-i", "0.2", "-c", "600", "--json", "--all"];
    let Some(mut command) = linerate(NAME, folder.path(), &arguments) else { return };
    if std::fs::metadata("/proc/self/task").is_err() {
        linerate_testkit::skip(NAME, "no /proc");
        return;
    }
    let mut watch = Ended(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut output = BufReader::new(watch.0.stdout.take().unwrap()).lines();
    let mut seen: Vec<Value> = Vec::new();
    let mut killed = false;
    for line in output.by_ref() {
        let record: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let is_interval = record["disks"].is_array();
        seen.push(record);
        if is_interval && !killed {
            // The node program of this machine is the only child.
            for child in children(watch.0.id()) {
                assert!(Command::new("kill").args(["-9", &child.to_string()]).status().unwrap().success());
            }
            killed = true;
        } else if is_interval && seen.iter().any(|record| record["contact"] == "back") {
            break;
        }
    }
    let contacts: Vec<&Value> = seen.iter().filter(|record| record["contact"].is_string()).collect();
    let [lost, back] = &contacts[..] else { panic!("{contacts:?}") };
    assert_eq!((&lost["contact"], &lost["host"]), (&"lost".into(), &"localhost".into()), "{lost}");
    assert!(lost["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{lost}");
    assert!(back["away_s"].as_f64().unwrap() > 0.0, "{back}");
    // A new begin: its layout again, and rates of the time since then alone.
    let after = seen.iter().position(|record| record["contact"] == "back").unwrap();
    assert!(seen[after + 1]["layout"].is_array(), "{:?}", seen[after + 1]);
    for disk in seen[after + 2]["disks"].as_array().unwrap() {
        assert!(disk["read"]["requests_per_s"].as_f64().unwrap() >= 0.0, "{disk}");
    }
    assert!(Command::new("kill").args(["-INT", &watch.0.id().to_string()]).status().unwrap().success());
    let last = output.map_while(Result::ok).last().unwrap();
    let last: Value = serde_json::from_str(&last).unwrap();
    assert!(last["gaps"][0]["reason"].as_str().unwrap().starts_with("not seen for "), "{last}");
    // Findings of this machine come first; without them the gap counts.
    assert!(matches!(watch.0.wait().unwrap().code(), Some(1 | 3)));
}

#[test]
fn idle_devices_are_counted_and_with_all_shown() {
    const NAME: &str = "idle_devices_are_counted_and_with_all_shown";
    let folder = folder();
    let interval = |more: &[&str]| {
        let arguments = [&["disk", "watch", "-i", "0.2", "-c", "1", "--json"], more].concat();
        let output = linerate(NAME, folder.path(), &arguments)?.output().unwrap();
        let all = lines(&shown(&output).0);
        all.into_iter().find(|line| line["disks"].is_array())
    };
    let Some(few) = interval(&[]) else { return };
    let all = interval(&["--all"]).unwrap();
    let is_idle = |disk: &Value| {
        let rate = |name: &str| disk[name]["requests_per_s"].as_f64().unwrap();
        let rest = disk["flushes_per_s"].as_f64().unwrap() + disk["busy"].as_f64().unwrap();
        rate("read") + rate("write") + rate("discard") + rest == 0.0
    };
    let idle = |line: &Value| line["disks"].as_array().unwrap().iter().filter(|d| is_idle(d)).count() as u64;
    assert_eq!(idle(&few), 0, "{few}");
    assert_eq!(idle(&all), all["idle"].as_u64().unwrap(), "{all}");
}

/// An inventory of this machine and of one that is not reached.
fn inventory(folder: &Path) -> PathBuf {
    let path = folder.join("cluster.toml");
    let text = "[[host]]\nname = \"one\"\ntransport = \"local\"\nstate_dir = \"STATE\"\n\n[[host]]\nname = \"two\"\nssh = { host = \"127.0.0.1\", port = 1 }\n";
    std::fs::write(&path, text.replace("STATE", folder.join("state").to_str().unwrap())).unwrap();
    path
}

#[test]
fn names_beside_an_inventory_select_its_hosts() {
    const NAME: &str = "names_beside_an_inventory_select_its_hosts";
    let folder = folder();
    let file = inventory(folder.path());
    let file = file.to_str().unwrap();
    let commands: [&[&str]; 5] = [
        &["disk", "watch", "-i", "0.2", "-c", "1", "--json", "--inventory", file],
        &["disk", "builds", "-i", file],
        &["drbd", "status", "-i", file],
        &["disk", "bench", "--quiet", "--size", "4M", "--do", "seq-write", "--time", "100ms", "-i", file],
        &["facts", "-i", file],
    ];
    for command in commands {
        let run = |host: &str| {
            let output = linerate(NAME, folder.path(), &[command, &[host]].concat())?.output().unwrap();
            let (text, notes) = shown(&output);
            Some((output.status.code(), text + &notes))
        };
        let Some((_, one)) = run("one") else { return };
        assert!(!one.contains("two") && !one.contains("cannot be used with"), "{command:?}: {one}");
        let (code, other) = run("three").unwrap();
        assert_eq!(code, Some(2), "{command:?}: {other}");
        assert!(other.contains("no host `three` in the inventory"), "{command:?}: {other}");
    }
}
