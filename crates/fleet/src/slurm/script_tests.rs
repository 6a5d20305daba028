//! The scripts that run on a node of a cluster, with other users of the node beside them. What stands for the
//! node program is a program of the system that says who runs it.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use linerate_testkit::{self as testkit, text};

use super::step::RUN;
use crate::programs::ProgramSource;

const STRANGER: u32 = 65_534;
const PROGRAM: &str = "/usr/bin/id";
const MAKE: &str = include_str!("make.sh");
const TAKE: &str = concat!(include_str!("drop.sh"), include_str!("take.sh"));
const DROP: &str = concat!(include_str!("drop.sh"), "drop \"$0\"\n");

/// A node: what stands for its /tmp, and where the copy goes.
struct Node {
    tmp: tempfile::TempDir,
}

impl Node {
    fn new() -> Self {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::set_permissions(tmp.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
        Self { tmp }
    }

    fn folder(&self) -> PathBuf {
        self.tmp.path().join("linerate-node-7-ab")
    }

    fn place(&self) -> PathBuf {
        self.folder().join("linerate-node")
    }

    fn run(&self, script: &str, arguments: &[&str], stdin: &Path) -> Output {
        let input = std::fs::File::open(stdin).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(self.place()).args(arguments).stdin(input);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap()
    }

    fn take(&self) -> Output {
        let before = self.tmp.path().join("none/linerate-node").display().to_string();
        self.run(TAKE, &[&before], Path::new(PROGRAM))
    }

    fn start(&self) -> Output {
        self.run(RUN, &[&hash_of(PROGRAM), "-u"], Path::new("/dev/null"))
    }

    /// As another user of the node.
    fn as_stranger(&self, script: &str) -> bool {
        let uid = STRANGER.to_string();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &uid, "--regid", &uid, "--clear-groups", "sh", "-c", script, "sh"]);
        command.arg(self.folder()).stderr(Stdio::null()).status().unwrap().success()
    }
}

fn hash_of(path: &str) -> String {
    testkit::run("sha256sum", &[path])[..64].to_owned()
}

fn possible(name: &str) -> bool {
    (testkit::is_root() || testkit::skip(name, "needs root")) && testkit::has(name, "setpriv", "util-linux")
}

#[test]
fn what_arrived_runs_once_and_leaves_nothing() {
    let node = Node::new();
    assert!(node.take().status.success());
    assert_eq!(std::fs::metadata(node.folder()).unwrap().mode() & 0o777, 0o700);
    let run = node.start();
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    assert_eq!(text(&run.stdout).trim(), testkit::run("id", &["-u"]).trim());
    assert!(!node.folder().exists());
    let again = node.start();
    assert_eq!(again.status.code(), Some(70));
    assert!(text(&again.stderr).contains("the node program is not at"), "{}", text(&again.stderr));
}

#[test]
fn a_program_that_is_not_the_one_that_was_copied_is_not_run() {
    let node = Node::new();
    assert!(node.take().status.success());
    let ran = node.tmp.path().join("ran");
    std::fs::write(node.place(), format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
    let run = node.start();
    assert_eq!(run.status.code(), Some(70));
    assert!(text(&run.stderr).contains("is not what was copied there"), "{}", text(&run.stderr));
    assert!(!ran.exists() && !node.folder().exists());
}

#[test]
fn another_user_who_reads_the_name_gains_nothing() {
    if !possible("another_user_who_reads_the_name_gains_nothing") {
        return;
    }
    // There first, as a folder, a link or a file: the copy fails, and nothing is written through what is
    // there.
    let target = tempfile::tempdir().unwrap();
    let link = |node: &Node| symlink(target.path(), node.folder()).unwrap();
    let folder = |node: &Node| {
        assert!(node.as_stranger(
            "mkdir -m 777 \"$1\" && : > \"$1/linerate-node\" && chmod 666 \"$1/linerate-node\""
        ));
    };
    let file = |node: &Node| assert!(node.as_stranger(": > \"$1\""));
    for first in [&link as &dyn Fn(&Node), &folder, &file] {
        let node = Node::new();
        first(&node);
        assert!(!node.run(MAKE, &[], Path::new("/dev/null")).status.success());
        let taken = node.take();
        assert!(
            !taken.status.success() && text(&taken.stderr).contains("File exists"),
            "{}",
            text(&taken.stderr)
        );
        assert_eq!(std::fs::metadata(node.place()).map_or(0, |m| m.len()), 0, "nothing was written");
        assert_ne!(node.start().status.code(), Some(0));
        node.run(DROP, &[], Path::new("/dev/null"));
        assert!(std::fs::symlink_metadata(node.folder()).is_ok(), "what is not ours stays");
        // A file of theirs under the right name, with the right content.
        if node.folder().is_dir() {
            std::fs::copy(PROGRAM, node.place()).unwrap();
            chown(node.place(), Some(STRANGER), None).unwrap();
            let run = node.start();
            assert!(text(&run.stderr).contains("belongs to another user"), "{}", text(&run.stderr));
            let _ = std::fs::remove_file(node.place());
        }
    }
    // Later: the folder is closed to them, and cannot be moved away.
    let node = Node::new();
    assert!(node.take().status.success());
    for attack in [
        ": > \"$1/linerate-node\"",
        "rm -f \"$1/linerate-node\"",
        "mv \"$1\" \"$1.old\"",
        "rmdir \"$1\"",
        "cat \"$1/linerate-node\" >/dev/null",
    ] {
        assert!(!node.as_stranger(attack), "{attack}");
    }
    assert_eq!(node.start().status.code(), Some(0));
}

#[test]
fn a_step_whose_operator_goes_leaves_nothing() {
    let node = Node::new();
    assert!(node.run(MAKE, &[], Path::new("/dev/null")).status.success());
    // Its stdin ends without a word.
    let waited = node.run(super::one_step::WAIT_AND_RUN, &[&hash_of(PROGRAM), "-u"], Path::new("/dev/null"));
    assert_eq!(waited.status.code(), Some(1), "{}", text(&waited.stderr));
    assert!(text(&waited.stdout).starts_with("up "), "{}", text(&waited.stdout));
    assert!(!node.folder().exists());
}

#[test]
fn the_hash_of_a_source_is_that_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node");
    std::fs::copy(PROGRAM, &path).unwrap();
    let source = ProgramSource::of(path).unwrap();
    assert_eq!(source.hash, hash_of(PROGRAM));
    assert!(
        ProgramSource::of(folder.path().join("none")).unwrap_err().to_string().starts_with("cannot read ")
    );
}
