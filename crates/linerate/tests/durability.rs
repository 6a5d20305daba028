//! `linerate disk durability` on this machine: written, acknowledged, lost on purpose, found, removed; and
//! what it refuses.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

struct Stage {
    folder: tempfile::TempDir,
    node: PathBuf,
}

impl Stage {
    fn new(name: &str) -> Option<Self> {
        let Some(node) = linerate_testkit::node_program(env!("CARGO_BIN_EXE_linerate")) else {
            linerate_testkit::skip(name, "no linerate-node beside linerate and LINERATE_NODE is not set");
            return None;
        };
        Some(Self { folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), node })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(["disk", "durability"]).args(arguments).current_dir(self.folder.path());
        command.env("LINERATE_NODE", &self.node).env("LINERATE_DATA", self.folder.path().join("data"));
        command
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8_lossy(&stderr).into_owned())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Records in `test`, promises in `list`, as if the host had been started again since.
    fn written(&self, records: &str) -> Value {
        let list = self.path("list");
        let fast = ["--rate", "100000", "--files", "3", "--same-disk", "--json", "--promises", "list"];
        let (code, shown, errors) = self.run(&[&["write", "test", "--records", records], &fast[..]].concat());
        assert_eq!(code, Some(0), "{errors}");
        let promises: Value = serde_json::from_str(&shown).unwrap();
        linerate_testkit::schemas::hold("durability-promises", &promises);
        let boot = promises["place"]["boot"].as_str().unwrap();
        let text = fs::read_to_string(&list).unwrap().replace(boot, "another-start");
        fs::write(list, text).unwrap();
        promises
    }

    fn checked(&self) -> (Option<i32>, Value) {
        let (code, shown, errors) = self.run(&["check", "--promises", "list", "--json"]);
        let checked = serde_json::from_str(&shown).unwrap_or_else(|e| panic!("{e}: {shown}{errors}"));
        linerate_testkit::schemas::hold("durability-check", &checked);
        (code, checked)
    }
}

fn file(stage: &Stage, pattern: &str, slot: u32) -> PathBuf {
    stage.path("test").join(pattern).join(format!("{slot:08}"))
}

#[test]
fn what_was_promised_is_found_and_what_was_lost_is_named() {
    let Some(stage) = Stage::new("what_was_promised_is_found_and_what_was_lost_is_named") else { return };
    let promises = stage.written("340");
    assert_eq!(promises["acknowledged"], 340);
    assert_eq!(promises["ended"], "all records are written");
    let (code, report) = stage.checked();
    assert_eq!((code, &report["verdict"]), (Some(0), &Value::from("kept")), "{report:#}");
    let patterns = report["patterns"].as_array().unwrap();
    assert!(patterns.len() > 10);
    for pattern in patterns {
        assert_eq!(pattern["fates"]["kept"], pattern["files"], "{pattern}");
    }
    // What nobody had promised.
    fs::write(file(&stage, "create", 0), []).unwrap();
    fs::remove_file(file(&stage, "new-name", 1)).unwrap();
    let (code, shown, _) = stage.run(&["check", "--promises", "list"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("bug but a missing fsync") && shown.contains("create/00000000: empty"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    // What the kernel had promised.
    let kept = file(&stage, "replace+fsync+folder", 2);
    fs::write(&kept, vec![0; fs::read(&kept).unwrap().len()]).unwrap();
    let (code, report) = stage.checked();
    assert_eq!((code, &report["verdict"]), (Some(1), &Value::from("broken")));
    assert_eq!(report["lost"][0]["file"], "replace+fsync+folder/00000002");
    assert_eq!(report["lost"][0]["fate"], "zeros");
    let (code, shown, errors) = stage.run(&["check", "--promises", "list", "--clean"]);
    assert!(code == Some(1) && shown.contains("this disk lies about flush"), "{shown}");
    assert!(errors.contains("files removed from") && !stage.path("test").exists(), "{errors}");
}

#[test]
fn a_folder_that_is_gone_had_been_promised() {
    let Some(stage) = Stage::new("a_folder_that_is_gone_had_been_promised") else { return };
    stage.written("100");
    fs::remove_dir_all(stage.path("test")).unwrap();
    let (code, report) = stage.checked();
    assert_eq!((code, &report["verdict"]), (Some(1), &Value::from("broken")), "{report:#}");
    let sentences = report["sentences"].to_string();
    assert!(
        sentences.contains("The folder itself is gone") && sentences.contains("lies about flush"),
        "{sentences}"
    );
}

#[test]
fn a_host_that_was_not_started_again_proves_nothing() {
    let Some(stage) = Stage::new("a_host_that_was_not_started_again_proves_nothing") else { return };
    let (code, shown, errors) = stage.run(&[
        "write",
        "test",
        "--records",
        "20",
        "--files",
        "1",
        "--rate",
        "10000",
        "--promises",
        "-",
    ]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(
        shown.lines().next().unwrap().contains("\"promises\"") && shown.contains("\"promised\":20"),
        "{shown}"
    );
    fs::write(stage.path("list"), shown).unwrap();
    let (code, shown, _) = stage.run(&["check", "--promises", "list"]);
    assert!(code == Some(3) && shown.contains("was not restarted"), "{shown}");
    let (code, _, errors) = stage.run(&["clean", "test"]);
    assert!(code == Some(0) && !stage.path("test").exists(), "{errors}");
}

#[test]
fn a_host_that_goes_away_in_the_middle_is_what_it_is_for() {
    const NAME: &str = "a_host_that_goes_away_in_the_middle_is_what_it_is_for";
    let Some(stage) = Stage::new(NAME) else { return };
    let write = stage
        .command(&["write", "test", "--time", "600", "--same-disk", "--promises", "list"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let list = stage.path("list");
    // The host is the node program: it dies when some records are promised.
    let promised = || fs::read_to_string(&list).is_ok_and(|text| text.lines().count() > 6);
    linerate_testkit::wait_until("records are promised", promised);
    let node = child_of(write.id());
    assert!(Command::new("kill").args(["-9", &node.to_string()]).status().unwrap().success());
    let output = write.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains("records were acknowledged") && shown.contains("is lost"), "{shown}");
    let (code, report) = stage.checked();
    // The machine itself went on, so that all is there.
    assert_eq!((code, &report["verdict"]), (Some(3), &Value::from("not-restarted")));
    assert!(report["patterns"].as_array().unwrap().iter().all(|p| p["broken"] == 0), "{report:#}");
    assert_eq!(stage.run(&["clean", "test"]).0, Some(0));
}

/// The only child of a process.
fn child_of(parent: u32) -> u32 {
    let parent = format!(" {parent} ");
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u32>().ok())
        .find(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // pid (name) state parent …
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.get(1..).is_some_and(|r| r.starts_with(&parent)))
        })
        .unwrap()
}

#[test]
fn what_could_do_harm_or_prove_nothing_is_refused() {
    let Some(stage) = Stage::new("what_could_do_harm_or_prove_nothing_is_refused") else { return };
    fs::create_dir(stage.path("full")).unwrap();
    fs::write(stage.path("full/thesis.tex"), "x").unwrap();
    let refused = |arguments: &[&str], words: &str| {
        let (code, _, errors) = stage.run(arguments);
        assert!(code == Some(2) && errors.contains(words), "{arguments:?}: {errors}");
    };
    refused(&["write", "full", "--same-disk"], "is not empty: thesis.tex is in it");
    refused(&["clean", "full"], "it has no marker");
    refused(&["write", "new"], "would lie on the file system under test");
    refused(&["write", "a/b/c", "--same-disk"], "cannot make");
    refused(&["write", "new", "--same-disk", "--patterns", "rm"], "there is no pattern \"rm\"");
    refused(&["check", "--promises", "full/thesis.tex"], "is no list of promises");
    refused(&["check", "--promises", "none"], "cannot read the list");
    assert_eq!(fs::read_dir(stage.path("full")).unwrap().count(), 1);
    assert!(!stage.path("new").exists() && !Path::new(&stage.path("a")).exists());
}

#[test]
fn what_earlier_power_cuts_have_left_is_counted() {
    let Some(stage) = Stage::new("what_earlier_power_cuts_have_left_is_counted") else { return };
    let blocks = stage.path("dn/current/BP-1/current/finalized/subdir0");
    fs::create_dir_all(&blocks).unwrap();
    // A block without checksums, one of which only the metadata know, one that is empty.
    fs::write(blocks.join("blk_1"), "data").unwrap();
    fs::write(blocks.join("blk_1_7.meta"), [0, 1, 0, 0, 0, 2, 0]).unwrap();
    let audit = |arguments: &[&str]| stage.run(&[&["--audit", "dn", "--kind", "hadoop"], arguments].concat());
    let (code, shown, errors) = audit(&[]);
    assert!(code == Some(0) && shown.contains("Nothing is lost among 1."), "{shown}{errors}");
    fs::write(blocks.join("blk_2_7.meta"), [0, 1, 2, 0, 0, 2, 0, 1, 2, 3, 4]).unwrap();
    fs::write(blocks.join("blk_3"), "").unwrap();
    let (code, shown, _) = audit(&[]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("2 of 3 are lost") && shown.contains("blk_2: only blk_2_7.meta"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    let (code, shown, _) = audit(&["--json", "--sums"]);
    let report: Value = serde_json::from_str(&shown).unwrap();
    linerate_testkit::schemas::hold("durability-audit", &report);
    assert_eq!((code, &report["found"]["classes"]["empty-alone"]["count"]), (Some(1), &Value::from(1)));
    let (code, _, errors) = stage.run(&["--audit", "none"]);
    assert!(code == Some(2) && errors.contains("cannot look at"), "{errors}");
}
