//! Nodes that mean harm: the operator neither runs what they say, nor writes where they say, nor fills its
//! memory, nor hands their commands to a terminal or a browser. The nodes are processes of their own that
//! speak the real protocol.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, dead_code)]

#[path = "../src/fake_node.rs"]
mod fake_node;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fake_node::hostile;
use linerate_testkit::TestPrograms;

/// What an operator may have in memory at most while three nodes flood it: decoded frames (the largest
/// is 16 MiB of JSON), a few of them at a time. Seen: 145 MiB. KiB.
const PEAK_KIB_MAX: u64 = 400 << 10;

/// A folder for everything: `store` is where the operator writes, the others are where it must not.
struct Site {
    folder: tempfile::TempDir,
}

/// How a command ended.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    peak_kib: u64,
}

impl Site {
    /// Three hosts, all of them this kind of node.
    fn new(behaviour: &str) -> Self {
        let site = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["store", "home", "tmp", "here/below/it"] {
            std::fs::create_dir_all(site.path(name)).unwrap();
        }
        let node = fake_node::program(&site.path("store"), behaviour);
        std::fs::rename(node, site.path("node")).unwrap();
        let hosts = (1..=3).map(|n| {
            format!("[[host]]\nname = \"h{n}\"\ntransport = \"local\"\n[[host.endpoint]]\naddress = \"127.0.0.{n}\"\n")
        });
        std::fs::write(site.path("cluster.toml"), hosts.collect::<String>()).unwrap();
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let mut child = Command::new(TestPrograms::built().linerate)
            .args(arguments)
            .current_dir(self.path("here/below/it"))
            .env("LINERATE_DATA", self.path("store"))
            .env("LINERATE_NODE", self.path("node"))
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
        let peak_kib = peak_kib(&mut child);
        let code = child.wait().unwrap().code();
        Ended { code, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap(), peak_kib }
    }

    /// Every file outside the store; in the store there is the database and nothing else.
    fn files(&self) -> BTreeSet<PathBuf> {
        for entry in std::fs::read_dir(self.path("store")).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            assert!(name.starts_with("linerate.sqlite"), "{name} in the store");
        }
        let mut found = BTreeSet::new();
        let mut todo = vec![self.folder.path().to_owned()];
        while let Some(folder) = todo.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() && entry.path() != self.path("store") {
                    todo.push(entry.path());
                }
                found.insert(entry.path());
            }
        }
        found
    }
}

fn collect(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    let mut stream = stream.unwrap();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).expect("everything that is printed is text")
    })
}

/// The largest resident size of a child until it ends.
fn peak_kib(child: &mut Child) -> u64 {
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(linerate_testkit::peak_memory_kib(child.id()));
        std::thread::yield_now();
    }
    peak
}

/// Whether a terminal takes part of a text for a command, or shows it in another order.
fn acts(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_harmless(what: &str, text: &str) {
    let found: Vec<(usize, char)> = text.char_indices().filter(|(_, c)| acts(*c)).take(3).collect();
    assert!(found.is_empty(), "{what} has {found:?} in\n{}", text.escape_debug());
    // A line of a node must not look like one of ours.
    assert!(!text.lines().any(|line| line.starts_with("error: all is lost")), "{what}: {text}");
}

#[test]
fn floods_end_in_a_gap_and_bounded_memory() {
    if !linerate_testkit::are_built("floods_end_in_a_gap_and_bounded_memory") {
        return;
    }
    for behaviour in hostile::FLOODS {
        let site = Site::new(behaviour);
        let before = site.files();
        let ended =
            site.run(&["survey", "-i", &site.path("cluster.toml").display().to_string(), "--time", "4s"]);
        println!("{behaviour}: at most {} MiB, exit code {:?}", ended.peak_kib >> 10, ended.code);
        assert!(matches!(ended.code, Some(1..=3)), "{behaviour}: {:?}: {}", ended.code, ended.stderr);
        assert!(ended.stderr.contains("h1"), "{behaviour}: {}", ended.stderr);
        assert!(ended.peak_kib < PEAK_KIB_MAX, "{behaviour}: {} KiB", ended.peak_kib);
        assert_eq!(site.files(), before, "{behaviour}");
    }
}

#[test]
fn lies_are_values_and_end_nothing() {
    if !linerate_testkit::are_built("lies_are_values_and_end_nothing") {
        return;
    }
    for behaviour in hostile::LIES {
        let site = Site::new(behaviour);
        let inventory = site.path("cluster.toml").display().to_string();
        let before = site.files();
        let survey = site.run(&["survey", "-i", &inventory, "--time", "4s"]);
        println!("{behaviour}: exit code {:?}, at most {} MiB", survey.code, survey.peak_kib >> 10);
        assert!(matches!(survey.code, Some(0..=3)), "{behaviour}: {:?}: {}", survey.code, survey.stderr);
        assert!(survey.peak_kib < PEAK_KIB_MAX, "{behaviour}: {} KiB", survey.peak_kib);
        let facts = site.run(&["facts", "-i", &inventory, "h1", "--counters"]);
        let facts_json = site.run(&["facts", "-i", &inventory, "h1", "--json"]);
        let transfer =
            site.run(&["measure", "-i", &inventory, "h1", "h2", "--time", "300ms", "--no-calibration"]);
        let path = site.run(&["mtu", "-i", &inventory, "h1", "h2"]);
        let reports = ["--json", "--html", "--md"].map(|format| site.run(&["report", format, "-o", "-"]));
        let runs = site.run(&["runs"]);
        let all = [&survey, &facts, &facts_json, &transfer, &path, &runs];
        for (number, ended) in all.into_iter().chain(&reports).enumerate() {
            assert!(
                ended.code.is_some_and(|code| code != 101),
                "{behaviour}, command {number}: {}",
                ended.stderr
            );
            is_harmless(&format!("{behaviour}, stdout of command {number}"), &ended.stdout);
            is_harmless(&format!("{behaviour}, stderr of command {number}"), &ended.stderr);
        }
        for ended in &reports {
            let lower = ended.stdout.to_lowercase();
            assert!(!lower.contains("<script") || ended.stdout.starts_with('{'), "{behaviour}: {lower}");
            assert!(!lower.contains("<img") || ended.stdout.starts_with('{'), "{behaviour}: {lower}");
        }
        assert_eq!(site.files(), before, "{behaviour}");
    }
    assert!(!Path::new("/tmp/owned").exists() && !Path::new("/owned").exists());
}
