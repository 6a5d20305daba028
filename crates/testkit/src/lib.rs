//! Test support: a test starts itself again inside fresh namespaces, makes further ones, and waits for
//! conditions.
//!
//! In: the name of a test, what it needs. Out: `SKIPPED name: reason`, or a world that goes with the test.
//! Nothing of the machine outside is touched. Fails as loudly as a test, which is what it is part of; no
//! program uses it.
#![deny(missing_docs)]
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::missing_panics_doc)]

pub mod chromium;
pub mod cost;
pub mod postgres;
pub mod prometheus;
pub mod schemas;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set in the process that runs inside the namespaces.
const INSIDE: &str = "LINERATE_TEST_INSIDE";
/// Far above what a step takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// What a test wants around itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestEnvironment {
    /// A network of its own.
    Network,
    /// A network and mounts of its own.
    Mounts,
    /// The same as the machine's root, because several users take part.
    Root,
}

impl TestEnvironment {
    fn flags(self, root: bool) -> &'static [&'static str] {
        match (self, root) {
            (Self::Network, true) => &["-n"],
            (Self::Network, false) => &["-U", "-r", "-n"],
            (Self::Mounts, true) | (Self::Root, _) => &["-n", "-m", "--propagation", "private"],
            (Self::Mounts, false) => &["-U", "-r", "-n", "-m"],
        }
    }
}

/// Runs the test of this name again inside a fresh world. Gives `true` in the process inside; `false`
/// outside, behind its end or after a skip.
#[must_use]
pub fn inside(name: &str, world: TestEnvironment) -> bool {
    if is_inside() {
        return true;
    }
    let root = is_root();
    if world == TestEnvironment::Root && !root {
        return skip(name, "needs root");
    }
    let flags = world.flags(root);
    let possible = Command::new("unshare").args(flags).args(["ip", "link", "set", "lo", "up"]).output();
    match possible {
        Ok(output) if output.status.success() => {}
        Ok(output) => return skip(name, &format!("no namespaces here: {}", text(&output.stderr).trim())),
        Err(error) => return skip(name, &format!("unshare: {error}")),
    }
    let mut again = Command::new("unshare");
    again.args(flags).arg(std::env::current_exe().unwrap()).args([name, "--exact", "--nocapture"]);
    assert!(again.env(INSIDE, "1").status().unwrap().success(), "{name} failed inside the namespaces");
    false
}

/// Whether this process is the one inside.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Whether a survey came to its end: all at its ceiling, something found, or, on a machine with other work,
/// not all seen.
#[must_use]
pub fn survey_ended(status: std::process::ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 1 | 3))
}

/// Prints why a test does not run; returns `false`.
pub fn skip(name: &str, reason: &str) -> bool {
    println!("SKIPPED {name}: {reason}");
    false
}

/// Whether this process is root, be it of a user namespace.
pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout == b"0\n")
}

/// The node program: named by `LINERATE_NODE`, or beside this program of ours.
pub fn node_program(beside: &str) -> Option<PathBuf> {
    Some(TestPrograms::beside(beside).node).filter(|p| p.is_file())
}

/// Whether the operator's and the node program of this build are there; says that the test does not run, and
/// why, when one is not.
pub fn are_built(name: &str) -> bool {
    TestPrograms::built().not_built().is_none_or(|why| skip(name, &why))
}

/// Programs of ours that a test starts as root.
#[derive(Debug)]
pub struct TestPrograms {
    /// The operator's: named by `LINERATE`, or beside.
    pub linerate: PathBuf,
    /// The node program: named by `LINERATE_NODE`, or beside.
    pub node: PathBuf,
}

impl TestPrograms {
    /// Those beside a program of ours.
    pub fn beside(ours: &str) -> Self {
        let named = |variable: &str, name: &str| {
            std::env::var_os(variable).map_or_else(|| Path::new(ours).with_file_name(name), PathBuf::from)
        };
        Self { linerate: named("LINERATE", "linerate"), node: named("LINERATE_NODE", "linerate-node") }
    }

    /// Those of the build that this test belongs to.
    pub fn built() -> Self {
        let test = std::env::current_exe().unwrap();
        Self::beside(&test.parent().unwrap().to_string_lossy())
    }

    /// What `linerate serve` returns for a path, with the headers; an empty `store` is the file in the
    /// folder.
    pub fn page(&self, data: &Path, store: &str, path: &str) -> String {
        let mut serve = Command::new(&self.linerate)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("LINERATE_DATA", data)
            .env("LINERATE_STORE", store)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(serve.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let server = address.trim().trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(server).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {server}\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        serve.kill().unwrap();
        serve.wait().unwrap();
        text
    }

    /// Which of them is not built.
    fn not_built(&self) -> Option<String> {
        let mut both = [&self.linerate, &self.node].into_iter();
        both.find(|program| !program.is_file()).map(|program| format!("{} is not built", program.display()))
    }

    /// Why a test that needs them and root cannot run here.
    pub fn missing(&self) -> Option<String> {
        if !is_root() {
            return Some(
                "needs root (the test runner has threads, so that it cannot enter a user namespace)".into(),
            );
        }
        self.not_built()
    }
}

/// Whether a program is installed; prints why the test does not run if it is not.
pub fn has(name: &str, program: &str, package: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$1\"", "sh", program]).output();
    found.is_ok_and(|o| o.status.success())
        || skip(name, &format!("no {program} here (install the package {package})"))
}

/// Processes other than this one in the network namespace of this number, without those that only wait to be
/// reaped.
pub fn processes_in(namespace: u64) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    let lives = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    let inside =
        |pid: &u32| std::fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|m| m.ino() == namespace);
    pids.filter(|pid| *pid != std::process::id() && inside(pid) && lives(pid)).collect()
}

/// Children of all threads of a process; none when it is gone.
pub fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.collect::<String>().split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// Most memory that a process had until now, KiB; 0 when it is gone.
pub fn peak_memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Runs a program that has to succeed; gives what it printed.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {}: {}", arguments.join(" "), text(&output.stderr));
    text(&output.stdout)
}

/// Bytes as text, whatever they are.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until a condition holds; panics when it does not within three minutes.
pub fn wait_until(what: &str, done: impl FnMut() -> bool) {
    wait_within(PATIENCE, what, done);
}

/// The same with a time limit. Returns the time it took.
pub fn wait_within(limit: Duration, what: &str, mut done: impl FnMut() -> bool) -> Duration {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < limit, "{what}: did not happen within {} s", limit.as_secs());
        pause();
    }
    begin.elapsed()
}

/// Leaves the CPU to what is waited for, which may run on the same one; the caller polls again.
pub fn pause() {
    std::thread::park_timeout(Duration::from_millis(5));
}

/// A process in a network namespace of its own, which lives as long as our pipe to it: also a killed test
/// leaves none.
#[derive(Debug)]
pub struct Holder(Child);

impl Holder {
    /// A fresh namespace.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let mut child = Command::new("unshare")
            .args(["-n", "sh", "-c", "echo ready; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        Self(child)
    }

    /// Its process id.
    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Runs a program inside that has to succeed; gives what it printed.
    pub fn run(&self, command: &[&str]) -> String {
        run("nsenter", &[&["-t", &self.pid(), "-n"], command].concat())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
