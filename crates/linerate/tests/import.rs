//! `linerate import` and `linerate diagnose FILE…`: files of other tools as people hand them over, through
//! the real program.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(arguments).current_dir(self.0.path()).env("LINERATE_DATA", self.0.path().join("data"));
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        parts(&self.command(arguments).output().unwrap())
    }

    /// A file in the folder of the test.
    fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

fn parts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/files")
}

fn fixture(name: &str) -> String {
    fixtures().join(name).display().to_string()
}

#[test]
fn a_pasted_investigation_becomes_a_run() {
    let home = Home::new();
    let (code, short, err) = home.run(&["diagnose", &fixture("casebook/a3.md")]);
    assert_eq!(code, 1, "{short}{err}");
    let fix = "   Fix    linerate try nic-gro-hw-overlay --on vs-4   # ";
    assert!(short.contains(fix) && short.contains("1. vs-4 receives 200 kbit/s of "), "{short}");
    let (code, out, err) = home.run(&["import", "-v", &fixture("casebook/a3.md")]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(
        out.contains("a3.md") && out.contains("table") && out.contains("ethtool-k") && out.contains("vs-4"),
        "{out}"
    );
    assert!(out.contains("rx-gro-hw") && out.contains("group vs-4"), "{out}");
    assert!(out.contains("a3.md:1:") && out.contains("With the sixth node on a new hypervisor"), "{out}");
    // What works on a run works on this one.
    let (code, shown, _) = home.run(&["report"]);
    assert!(code == 0 && shown.contains("rx-gro-hw"), "{shown}");
    let (code, page, _) = home.run(&["report", "--html", "-o", "-"]);
    assert!(code == 0 && page.contains("What was read") && page.contains("a3.md"), "{page}");
    let (code, json, _) = home.run(&["report", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(code == 0 && json["imported"]["pieces"].as_array().unwrap().len() > 10, "{json}");
    let (_, differences, _) = home.run(&["diff", "vs-4", "vs-3"]);
    assert!(differences.contains("rx-gro-hw"), "{differences}");
    // Before and after.
    let (code, ..) = home.run(&["import", &fixture("casebook/a4.md"), "--json"]);
    assert_eq!(code, home.run(&["diagnose", &fixture("casebook/a4.md")]).0);
    let (_, runs, _) = home.run(&["runs", "--json"]);
    let runs: serde_json::Value = serde_json::from_str(&runs).unwrap();
    let id = |n: usize| runs["runs"][n]["id"].as_str().unwrap().to_owned();
    let (after, before) = (id(0), id(1));
    let (_, effect, _) = home.run(&["diff", &before, &after]);
    assert!(effect.contains("fix proven"), "{effect}");
}

#[test]
fn names_in_a_text_are_no_way_to_log_in() {
    let home = Home::new();
    home.run(&["import", &fixture("casebook/a3.md")]);
    let (code, _, err) = home.run(&["try", "nic-gro-hw-overlay", "--on", "vs-4"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("read from files") && err.contains("hint: name an inventory with -i"), "{err}");
}

#[test]
fn a_verdict_without_storing_anything() {
    let home = Home::new();
    let (code, out, err) = home.run(&["diagnose", &fixture("casebook/b2.txt")]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("does all the receiving") && out.contains("Check  ssh b mpstat"), "{out}");
    // What would make it surer, with the command, is part of all of it.
    let (_, all, _) = home.run(&["diagnose", "-v", &fixture("casebook/b2.txt")]);
    assert!(all.contains("receiver CPU") && all.contains("receiving core"), "{all}");
    assert!(all.contains("from b to a") && all.contains("iperf3 -c a -t 20"), "{all}");
    assert!(!home.0.path().join("data").exists(), "nothing is stored");
    let (_, json, _) = home.run(&["diagnose", "--json", &fixture("casebook/b2.txt"), &fixture("hosts")]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["diagnosis"]["findings"][0]["causes"][0]["id"], "receiver-cpu-bound");
    assert!(!json["imported"]["missing"].as_array().unwrap().is_empty());
    // A JSON of iperf3 is no snapshot of ours.
    let (code, out, _) = home.run(&["diagnose", &fixture("iperf3.json")]);
    assert!([0, 3].contains(&code) && out.contains("10.20.0.1"), "{out}");
}

#[test]
fn a_pasted_table_of_two_speeds_of_ports_is_no_alarm() {
    let home = Home::new();
    let rate = |a: usize, b: usize| if a.max(b) > 3 { "9.41" } else { "23.5" };
    let row = |a: usize| -> String {
        let cell = |b: usize| if a == b { "-" } else { rate(a, b) };
        format!("| n{a} | {} |\n", (1..=6).map(cell).collect::<Vec<_>>().join(" | "))
    };
    let rows: String = (1..=6).map(row).collect();
    let table = format!("| Gbit/s | n1 | n2 | n3 | n4 | n5 | n6 |\n|---|---|---|---|---|---|---|\n{rows}");
    home.file("table.md", table.as_bytes());
    let (code, out, err) = home.run(&["diagnose", "-v", "table.md"]);
    assert_ne!(code, 1, "no finding: {out}{err}");
    assert!(out.contains("n[4-6] reach 9.41 Gbit/s (ports of 10 Gbit/s)"), "{out}");
    assert!(out.contains("`ethtool`") && !out.contains("every pair"), "{out}");
}

#[test]
fn a_slow_drive_is_named_from_one_iostat() {
    let home = Home::new();
    let line = |name: &str, rate: f64, wait: f64, busy: f64| {
        format!(
            "{name} {rate:.2} 1200.00 0.00 0.00 {wait:.2} 16.00 10.00 200.00 0.00 0.00 3.00 20.00 0.90 {busy:.2}\n"
        )
    };
    let drives: String = ["sda", "sdb", "sdc", "sdd", "sde", "sdf"]
        .into_iter()
        .map(|name| if name == "sdd" { line(name, 41.0, 74.0, 99.0) } else { line(name, 80.0, 11.0, 60.0) })
        .collect();
    let heading =
        "Device r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz aqu-sz %util";
    let text =
        format!("Linux 6.1.0-28-amd64 (store-1) \t11/21/26 \t_x86_64_\t(16 CPU)\n\n{heading}\n{drives}");
    home.file("disks.txt", text.as_bytes());
    let (_, short, _) = home.run(&["diagnose", "disks.txt"]);
    assert!(short.contains("1. store-1 sdd: a read takes 74 ms, 11 ms on the 5 other drives"), "{short}");
    let (code, out, err) = home.run(&["diagnose", "-v", "disks.txt"]);
    assert_ne!(code, 1, "a note, no finding: {out}{err}");
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("store-1 sdd: a read takes 74 ms, one of the 5 other drives 11 ms at its rate"),
        "{said}"
    );
    assert!(!said.contains("busy for 99"), "busy because it is slow: {said}");
}

/// Selective acknowledgements are off on some of twelve hosts between which nobody measured.
fn without_sack(off: usize) -> (i32, String) {
    home_without_sack(off, &["-v"])
}

fn home_without_sack(off: usize, options: &[&str]) -> (i32, String) {
    let home = Home::new();
    for number in 1..=12 {
        let sack = usize::from(number > off);
        home.file(&format!("kept/n{number}-sysctl.txt"), format!("net.ipv4.tcp_sack = {sack}\n").as_bytes());
    }
    let (code, out, err) = home.run(&[&["diagnose", "kept"][..], options].concat());
    assert!(err.is_empty(), "{err}");
    (code, out)
}

#[test]
fn a_setting_is_found_without_any_measurement_on_one_host_and_once_for_most_of_them() {
    let (code, nothing) = without_sack(0);
    let decides = "the cause is not known: what was read decides nothing";
    assert!(code == 3 && nothing.starts_with(decides), "{nothing}");
    let (code, one) = without_sack(1);
    assert!(code == 1 && one.starts_with("host n1: selective acknowledgements"), "{one}");
    assert!(one.contains("Nothing; it was only read.") && one.contains("try tcp-sack-off --on n1"), "{one}");
    let (code, most) = without_sack(11);
    assert!(code == 1 && most.starts_with("11 of 12 hosts: selective acknowledgements"), "{most}");
    assert!(most.contains("likewise on n[5-11]"), "{most}");
    assert!(most.contains("and 3 more of the same kind"), "{most}");
    assert_eq!(most.matches("Most likely (").count(), 1, "{most}");
    let (_, short) = home_without_sack(11, &[]);
    assert!(short.starts_with("1. 11 of 12 hosts: selective acknowledgements are"), "{short}");
    assert!(short.contains("Fix    linerate try tcp-sack-off   # "), "{short}");
    assert!(short.lines().all(|line| line.chars().count() <= 100), "{short}");
}

#[test]
fn a_session_on_standard_input() {
    let home = Home::new();
    let mut child = home
        .command(&["import", "-v", "-", "--host", "arc-1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes = std::fs::read(fixtures().join("ethtool-k-eth0.txt")).unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let (code, out, err) = parts(&child.wait_with_output().unwrap());
    assert_eq!(code, 3, "nothing was found, and no pair was seen: {err}");
    assert!(out.contains("stdin") && out.contains("ethtool-k") && out.contains("arc-1"), "{out}");
}

#[test]
fn a_folder_with_a_sosreport_and_things_that_are_no_evidence() {
    let home = Home::new();
    let report = "sosreport-arc-1-2026-11-21-abcdefg";
    let mut todo = vec![fixtures().join(report)];
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path()));
        } else {
            let below = path.strip_prefix(fixtures()).unwrap().display().to_string();
            home.file(&format!("evidence/{below}"), &std::fs::read(path).unwrap());
        }
    }
    home.file("evidence/arc-2/sysctl.txt", b"net.core.rmem_max = 212992\r\n");
    home.file("evidence/report.tar.xz", b"\xfd7zXZ\0");
    home.file("evidence/core", b"\x7fELF\0\0");
    home.file("evidence/notes.txt", b"it is slow since Monday\n");
    std::os::unix::fs::symlink("/proc/self/mem", home.0.path().join("evidence/link")).unwrap();
    let (code, out, err) = home.run(&["import", "-v", "evidence"]);
    assert_eq!(code, home.run(&["diagnose", "evidence"]).0, "{out}{err}");
    assert!(
        err.contains("report.tar.xz: an archive; unpack it") && err.contains("network or disks: 1"),
        "{err}"
    );
    assert!(out.contains("not a text") && out.contains("notes.txt:1: \"it is slow since Monday\""), "{out}");
    let (_, facts, _) = home.run(&["diff", "arc-1", "arc-2"]);
    assert!(facts.contains("sysctl.net.core.rmem_max") || !facts.is_empty(), "{facts}");
}

#[test]
fn words_alone_end_in_what_to_measure_next() {
    let home = Home::new();
    home.file("letter.txt", b"Dear all,\nthe network is slow.\n");
    for command in ["import", "diagnose"] {
        let (code, short, err) = home.run(&[command, "letter.txt"]);
        assert_eq!(code, 3, "{short}{err}");
        assert!(short.contains("Not seen: throughput between hosts: `linerate survey HOST HOST`"), "{short}");
        assert!(short.trim_end().ends_with("2 lines were not understood"), "{short}");
        let (_, out, _) = home.run(&[command, "-v", "letter.txt"]);
        assert!(
            out.contains("the cause is not known") && out.contains("letter.txt:1: \"Dear all,\""),
            "{out}"
        );
        assert!(out.contains("What to measure next") && out.contains("linerate survey HOST HOST"), "{out}");
    }
}

#[test]
fn what_is_no_evidence_is_an_error_that_quotes_it() {
    let home = Home::new();
    home.file("letter.txt", b"Dear all,\n1 2 3\n");
    for arguments in [&["import", "letter.txt"][..], &["diagnose", "letter.txt"]] {
        let (code, _, err) = home.run(arguments);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("letter.txt:1: \"Dear all,\"") && err.contains("hint: "), "{err}");
    }
    let (code, _, err) = home.run(&["import", "absent.txt"]);
    assert!(code == 2 && err.contains("cannot read absent.txt") && err.contains("hint: "), "{err}");
    let (code, _, err) = home.run(&["import", "letter.txt", "--as", "nonsense"]);
    assert!(code == 2 && err.contains("iperf3-json"), "{err}");
}
