//! `linerate changes --follow` beside a node program that is killed: the host is read again, and what changed
//! meanwhile is reported and logged, with a boot as its cause where the host has booted. In a network and
//! mounts of its own; needs root or user namespaces and a built `linerate-node`.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use linerate_testkit::{self as testkit, TestEnvironment};
use serde_json::Value;

const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";

/// A follower, which ends with this, with what it prints: changes and notes.
struct Follower {
    child: Child,
    changes: Lines<BufReader<ChildStdout>>,
    notes: Lines<BufReader<ChildStderr>>,
}

impl Follower {
    fn begin(data: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(["changes", "--follow", "--for", "5m", "--json", "--key", "sysctl.net.core.", "local"])
            .env("LINERATE_DATA", data)
            .env_remove("LINERATE_INVENTORY")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let changes = BufReader::new(child.stdout.take().unwrap()).lines();
        let notes = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, changes, notes }
    }

    /// Reads notes up to one with these words; it ends by itself, and this with it, when none comes.
    fn noted(&mut self, words: &str) {
        let mut seen = Vec::new();
        for line in self.notes.by_ref().map_while(Result::ok) {
            if line.contains(words) {
                return;
            }
            seen.push(line);
        }
        panic!("it never noted {words}: {seen:#?}");
    }

    fn change(&mut self) -> Value {
        serde_json::from_str(&self.changes.next().unwrap().unwrap()).unwrap()
    }

    fn node(&self) -> String {
        testkit::children(self.child.id())[0].to_string()
    }

    /// The node program ends without a report of what is done meanwhile.
    fn behind_its_back(&self, does: impl FnOnce()) {
        let node = self.node();
        testkit::run("kill", &["-STOP", &node]);
        does();
        testkit::run("kill", &["-KILL", &node]);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_changed_while_a_host_was_lost_is_reported_and_a_reboot_is_named() {
    let name = "what_changed_while_a_host_was_lost_is_reported_and_a_reboot_is_named";
    if testkit::node_program(env!("CARGO_BIN_EXE_linerate")).is_none() {
        testkit::skip(name, "no linerate-node beside linerate and LINERATE_NODE is not set");
        return;
    }
    if !testkit::inside(name, TestEnvironment::Mounts) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(SOMAXCONN, "1000").unwrap();
    let mut follower = Follower::begin(folder.path());
    follower.noted("following 1 of 1 host");

    follower.behind_its_back(|| std::fs::write(SOMAXCONN, "1001").unwrap());
    follower.noted("local: not followed: ");
    let change = follower.change();
    assert_eq!((&change["host"], &change["source"]), (&"local".into(), &"reading".into()), "{change}");
    assert_eq!(change["changes"][0]["key"], "sysctl.net.core.somaxconn", "{change}");
    assert_eq!((&change["changes"][0]["from"], &change["changes"][0]["to"]), (&1000.into(), &1001.into()));
    follower.noted("local: followed again");

    // The same, and the kernel is another one afterwards.
    let boot = folder.path().join("boot_id");
    std::fs::write(&boot, "00000000-0000-4000-8000-000000000001\n").unwrap();
    follower.behind_its_back(|| {
        std::fs::write(SOMAXCONN, "1002").unwrap();
        let boot = boot.to_str().unwrap();
        testkit::run("mount", &["--bind", boot, "/proc/sys/kernel/random/boot_id"]);
    });
    let change = follower.change();
    assert_eq!(
        (&change["source"], &change["changes"][0]["to"]),
        (&"reboot".into(), &1002.into()),
        "{change}"
    );

    // And it is followed on.
    follower.noted("local: followed again");
    std::fs::write(SOMAXCONN, "1003").unwrap();
    assert_eq!(follower.change()["changes"][0]["to"], 1003);
    drop(follower);
    let listed = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["changes", "--key", "sysctl.net.core."])
        .env("LINERATE_DATA", folder.path())
        .output()
        .unwrap();
    let text = testkit::text(&listed.stdout);
    assert!(text.contains("seen by changes --follow"), "{text}");
    assert!(text.contains("1001 -> 1002   by a reboot"), "{text}");
    assert!(!text.contains("1000 -> 1001   by"), "{text}");
}
