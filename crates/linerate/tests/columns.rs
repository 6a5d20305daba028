//! What commands print fits 100 columns: tables, verdicts, messages. A command to type is never cut.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const COLUMNS: usize = 100;

/// Commands that need nothing but this host and the checkout, whose folder is `ROOT`.
const LINES: &[&str] = &[
    "--help",
    "explain",
    "explain --search ring",
    "runs",
    "undo",
    "profile list",
    "changes",
    "inventory ROOT/docs/examples/cluster.toml",
    "facts local cpu.",
    "measure tcp local -t 300ms",
    "measure tcp local -t 300ms -P 4 --bidir",
    "measure udp local -t 300ms",
    "measure latency local -t 300ms",
    "measure mtu local",
    "measure connections local -t 300ms",
    "disk plan --raid10 --drives 8 --size 3T",
    "disk durability patterns",
    "show",
];

struct Site(tempfile::TempDir);

impl Site {
    fn output(&self, words: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(words).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("LINERATE_DATA", self.0.path().join("data")).env("HOME", self.0.path());
        let output = command.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        // A test that a busy machine made invalid has the same code, and a run.
        let has_run = output.status.code() != Some(2) || err.lines().any(|line| line.starts_with("run "));
        assert!(has_run, "{words:?}: {err}");
        out.into_owned()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Lines that are too wide, but for commands: they stand behind a label and are pasted whole.
fn wide(text: &str) -> Vec<&str> {
    const PROGRAMS: [&str; 7] = ["linerate ", "ssh ", "ethtool ", "sysctl ", "ip ", "tc ", "mdadm "];
    let is_command = |line: &str| PROGRAMS.iter().any(|program| line.contains(program));
    text.lines().filter(|line| line.chars().count() > COLUMNS && !is_command(line)).collect()
}

#[test]
fn what_commands_print_fits_100_columns() {
    let site = Site(tempfile::tempdir().unwrap());
    let root = root().display().to_string();
    let mut all = Vec::new();
    for line in LINES {
        let line = line.replace("ROOT", &root);
        let text = site.output(&line.split(' ').collect::<Vec<_>>());
        all.extend(
            wide(&text).iter().map(|wide| format!("{line}: {} columns: {wide}", wide.chars().count())),
        );
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn all_of_a_recorded_case_fits_100_columns() {
    let site = Site(tempfile::tempdir().unwrap());
    let mut all = Vec::new();
    for name in
        ["casebook-a3", "casebook-b2", "casebook-d1", "conntrack-full", "drbd-apart", "lro-forwarding"]
    {
        let case = root().join(format!("cases/{name}.toml")).display().to_string();
        let text = site.output(&["diagnose", "-v", &case]);
        all.extend(
            wide(&text).iter().map(|line| format!("{name}: {} columns: {line}", line.chars().count())),
        );
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn a_wide_line_is_noticed() {
    let long = "x ".repeat(60);
    assert_eq!(wide(&format!("short\n{long}\n")), [long.as_str()]);
    assert!(wide(&format!("Fix    linerate try {long}")).is_empty());
}
