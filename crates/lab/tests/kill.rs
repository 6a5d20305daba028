//! `kill -9` in the middle of a real trial on a real cluster: the operator, the node of the changed host,
//! both, and with them the guardian. Old values are back, journals are closed, nothing is left.
//!
//! In: the programs `linerate` and `linerate-node` (named by `LINERATE` and `LINERATE_NODE`, or beside the
//! lab's). Each step is recognised by what it does to the host, never by a guessed time; the node is stopped
//! at its sight, so that the kill hits just that step.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_lab::faults;
use linerate_lab::lab::Lab;
use linerate_lab::namespace::Namespace;
use linerate_lab::topology::Topology;
use linerate_model::exit::ExitCode;
use linerate_testkit::TestPrograms;

const VICTIM: &str = "node-2";
const KEY: &str = "net.ipv4.tcp_rmem";
/// Far above what a step takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kill {
    Operator,
    Node,
    Both,
}

/// When it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A new value was just written.
    Written,
    /// A transfer runs with the new value.
    Measuring,
    /// The files that make it stay are being written.
    Keeping,
}

/// A signal within a fraction of a millisecond: the shell that sends it runs already.
struct Signals(Child, ChildStdin);

impl Signals {
    fn new() -> Self {
        let mut shell = Command::new("sh").stdin(Stdio::piped()).spawn().unwrap();
        let stdin = shell.stdin.take().unwrap();
        Self(shell, stdin)
    }

    fn send(&mut self, name: &str, pids: &[u32]) {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        writeln!(self.1, "kill -{name} {}", pids.join(" ")).unwrap();
    }

    /// Stops a process and waits until it is stopped. Returns false if it ended before.
    fn stop(&mut self, pid: u32) -> bool {
        self.send("STOP", &[pid]);
        wait_until(PATIENCE, "the node stands", || state_of(pid) == Some('T') || has_ended(pid));
        !has_ended(pid)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Only a failed test has it still running; it has no children.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_until(within: Duration, what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < within, "after {within:?} still not: {what}");
        std::thread::yield_now();
    }
    start.elapsed()
}

/// The fields of a process behind its name: state, parent, …
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_ascii_whitespace().map(str::to_owned).collect())
}

fn state_of(pid: u32) -> Option<char> {
    stat(pid)?.first()?.chars().next()
}

/// Whether a process is gone, or only waits to be reaped.
fn has_ended(pid: u32) -> bool {
    matches!(state_of(pid), None | Some('Z' | 'X'))
}

/// Processes other than this one in a namespace.
fn processes_in(namespace: &Namespace) -> Vec<u32> {
    linerate_testkit::processes_in(namespace.inode().unwrap())
}

/// How many TCP sockets of a namespace are in a state: `01` established, `0A` listening.
fn sockets(namespace: &Namespace, state: &str) -> usize {
    let table = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap()).unwrap();
    table.lines().filter(|line| line.split_ascii_whitespace().nth(3) == Some(state)).count()
}

/// A running `linerate`.
struct Run {
    child: Child,
    output: Vec<JoinHandle<String>>,
}

impl Run {
    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Exit code (`None` after a signal) and the whole output.
    fn end(mut self) -> (Option<i32>, String) {
        wait_until(PATIENCE, "linerate ends", || self.child.try_wait().unwrap().is_some());
        let output = self.output.drain(..).map(|s| s.join().unwrap()).collect::<Vec<_>>().join("\n");
        (self.child.wait().unwrap().code(), output)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Only a failed test leaves one behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    let mut stream = stream.unwrap();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The cluster with its broken host, and the run that found it.
struct Scene {
    lab: Lab,
    program: PathBuf,
    signals: Signals,
    old: String,
}

impl Scene {
    fn host(&self) -> &Namespace {
        &self.lab.cluster.hosts.iter().find(|(plan, _)| plan.name == VICTIM).unwrap().1
    }

    fn folder(&self, of: &str) -> PathBuf {
        self.lab.folder.path().join("hosts").join(VICTIM).join(of)
    }

    fn conf(&self) -> PathBuf {
        self.folder("etc").join("sysctl.d/90-linerate.conf")
    }

    fn start(&self, arguments: &[&str]) -> Run {
        let mut child = Command::new(&self.program)
            .args(arguments)
            .env("LINERATE_DATA", self.lab.folder.path().join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = vec![collect(child.stdout.take()), collect(child.stderr.take())];
        Run { child, output }
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        self.start(arguments).end()
    }

    fn changed(&self) -> bool {
        self.host().read_sysctl(KEY).unwrap() != self.old
    }

    /// Trials on the changed host with the states of their journals.
    fn journals(&self) -> BTreeMap<String, String> {
        let files = std::fs::read_dir(self.folder("state").join("trials")).into_iter().flatten().flatten();
        let journal = |path: PathBuf| {
            let text = std::fs::read_to_string(&path).ok()?;
            let value: serde_json::Value = serde_json::from_str(&text).ok()?;
            let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
            (!name.starts_with('.')).then(|| (name.to_owned(), value["state"].as_str().unwrap().to_owned()))
        };
        files.filter_map(|f| journal(f.path())).collect()
    }

    fn any_is(&self, state: &str) -> bool {
        self.journals().values().any(|s| s == state)
    }

    /// The node program of the changed host that an operator has started.
    fn node_of(&self, run: &Run) -> Option<u32> {
        let child = |pid: &u32| stat(*pid).is_some_and(|s| s[1] == run.pid().to_string());
        processes_in(self.host()).into_iter().find(child)
    }

    /// The node of a run; `None` when that has ended.
    fn wait_for_node(&self, run: &Run) -> Option<u32> {
        let mut node = None;
        wait_until(PATIENCE, "the node has started", || {
            node = self.node_of(run);
            node.is_some() || has_ended(run.pid())
        });
        node
    }

    /// Whether the changed host is in this step.
    fn is_at(&self, step: Step) -> bool {
        match step {
            Step::Written => self.changed(),
            Step::Measuring => self.changed() && sockets(self.host(), "01") > 0,
            Step::Keeping => self.any_is("keeping"),
        }
    }

    /// Goes to a step of the run and gives the node, which stands in it; `None` when the run was over before.
    fn reach(&mut self, step: Step, run: &Run) -> Option<u32> {
        let node = self.wait_for_node(run)?;
        loop {
            wait_until(PATIENCE, &format!("the step {step:?}"), || {
                self.is_at(step) || has_ended(node) || has_ended(run.pid())
            });
            if !self.signals.stop(node) {
                return None;
            }
            if self.is_at(step) {
                return Some(node);
            }
            // The step was over before the node stood; the next one comes, or the end.
            self.signals.send("CONT", &[node]);
        }
    }

    /// Starts a command and goes to a step of it: a short one may pass unseen, and then it is done again.
    fn started_until(&mut self, arguments: &[&str], step: Step) -> (Run, u32) {
        let begun = Instant::now();
        loop {
            let run = self.start(arguments);
            if let Some(node) = self.reach(step, &run) {
                return (run, node);
            }
            let (code, output) = run.end();
            assert!(matches!(code, Some(0 | 1)), "{step:?}, uncontended: {code:?}: {output}");
            assert!(begun.elapsed() < PATIENCE, "the step {step:?} always passes unseen");
            if step == Step::Keeping {
                let (code, output) = self.run(&["undo", arguments[1]]);
                assert_eq!(code, Some(ExitCode::Ok as i32), "{output}");
            }
        }
    }

    /// No process is left in any namespace of a host, and none listens.
    fn nothing_is_left(&self, what: &str) {
        let hosts = || self.lab.cluster.hosts.iter().map(|(_, n)| n).chain(&self.lab.cluster.hypervisors);
        wait_until(PATIENCE, &format!("{what}: no process is left"), || {
            hosts().all(|n| processes_in(n).is_empty())
        });
        assert!(hosts().all(|n| sockets(n, "0A") == 0), "{what}: something listens");
    }

    fn is_as_before(&self, what: &str) {
        let took = wait_until(PATIENCE, &format!("{what}: the old value is back"), || !self.changed());
        let open = || self.journals().into_iter().find(|(_, s)| s != "closed" && s != "measured");
        wait_until(
            PATIENCE,
            &format!("{what}: the journal is closed, or no process is left to close it"),
            || open().is_none() || processes_in(self.host()).is_empty(),
        );
        // Killed after the journal was written and before its guardian ran: nothing was changed yet, and the
        // next contact closes the journal.
        if let Some((trial, state)) = open() {
            println!("{what}: nothing was changed yet, the journal is {state}");
            let (code, output) = self.run(&["undo", &trial]);
            assert_eq!(code, Some(ExitCode::Ok as i32), "{what}: {output}");
            assert_eq!(open(), None, "{what}: {output}");
        }
        self.nothing_is_left(what);
        assert!(!self.conf().exists(), "{what}: {} is left", self.conf().display());
        println!("{what}: the old value was back {took:?} after the kill");
    }

    /// One kill at one step, and everything that has to be true after it.
    fn killed(&mut self, arguments: &[&str], step: Step, kill: Kill) {
        let what = format!("{kill:?} killed at {step:?}");
        let (run, node) = self.started_until(arguments, step);
        let hit = match kill {
            Kill::Operator => vec![run.pid()],
            Kill::Node => vec![node],
            Kill::Both => vec![run.pid(), node],
        };
        self.signals.send("KILL", &hit);
        if kill == Kill::Operator {
            wait_until(PATIENCE, "the operator is dead", || has_ended(run.pid()));
            self.signals.send("CONT", &[node]);
        }
        let (code, output) = run.end();
        if kill == Kill::Node {
            assert_eq!(code, Some(ExitCode::RolledBack as i32), "{what}: {output}");
            assert!(output.contains(VICTIM) && output.contains("signal: 9"), "{what}: {output}");
        } else {
            assert_eq!(code, None, "{what}: {output}");
        }
        if step == Step::Keeping && kill == Kill::Operator {
            // Wholly kept or wholly undone, whichever the node had decided when it noticed.
            let resolved =
                || self.any_is("kept") || (!self.changed() && processes_in(self.host()).is_empty());
            wait_until(PATIENCE, &format!("{what}: kept or undone as a whole"), resolved);
            if self.any_is("kept") {
                self.nothing_is_left(&what);
                assert!(self.changed() && self.conf().exists(), "{what}: half kept");
                let (code, output) = self.run(&["undo", arguments[1]]);
                assert_eq!(code, Some(ExitCode::Ok as i32), "{output}");
            }
        }
        self.is_as_before(&what);
    }

    /// With the guardian killed too the next contact undoes the change.
    fn everybody_killed(&mut self, arguments: &[&str]) {
        let (run, node) = self.started_until(arguments, Step::Written);
        let mut all = processes_in(self.host());
        assert!(all.len() >= 2 && all.contains(&node), "node and guardian: {all:?}");
        // The guardian first: the end of the node is its signal to undo.
        all.sort_by_key(|pid| *pid == node);
        all.push(run.pid());
        self.signals.send("KILL", &all);
        run.end();
        self.nothing_is_left("everybody killed");
        let armed: Vec<String> =
            self.journals().into_iter().filter(|(_, s)| s == "armed").map(|(t, _)| t).collect();
        assert!(self.changed() && armed.len() == 1, "{armed:?}");
        let (code, output) = self.run(&["undo", &armed[0]]);
        assert_eq!(code, Some(ExitCode::Ok as i32), "{output}");
        self.is_as_before("everybody killed, then linerate undo");
    }
}

fn programs() -> TestPrograms {
    TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-lab"))
}

#[test]
fn a_kill_in_a_real_trial_leaves_the_old_values() {
    if let Some(reason) = programs().missing() {
        println!("SKIPPED a_kill_in_a_real_trial_leaves_the_old_values: {reason}");
        return;
    }
    let mut lab = Lab::up(Topology::load("three").unwrap()).unwrap();
    lab.inject(faults::find("small-rmem").unwrap(), Some(VICTIM), 1).unwrap();
    let mut scene = Scene { lab, program: programs().linerate, signals: Signals::new(), old: String::new() };
    scene.old = scene.host().read_sysctl(KEY).unwrap();
    let cluster = &scene.lab.cluster;
    let inventory = cluster.without_confessions(&cluster.inventory_path()).unwrap();
    let (_, output) = scene.run(&["survey", "-q", "-i", inventory.to_str().unwrap(), "--time", "30s"]);
    assert!(output.contains("tcp-rmem-small"), "{output}");
    let attempt = ["try", "tcp-rmem-small", "--on", VICTIM, "--arms", "4", "--quiet"];
    let (code, output) = scene.run(&attempt);
    assert!(matches!(code, Some(0 | 1)), "{code:?}: {output}");
    let trial = scene.journals().into_keys().next().unwrap();
    // Long enough to be met in any step.
    let attempt = ["try", "tcp-rmem-small", "--on", VICTIM, "--arms", "16", "--quiet"];
    let keep = ["keep", trial.as_str(), "--quiet"];
    for kill in [Kill::Operator, Kill::Node, Kill::Both] {
        for step in [Step::Written, Step::Measuring] {
            scene.killed(&attempt, step, kill);
        }
        scene.killed(&keep, Step::Keeping, kill);
    }
    scene.everybody_killed(&attempt);
}
