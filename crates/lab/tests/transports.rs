//! The lab's faults through a real sshd on each host and through a real Slurm: the survey names one, the
//! trial proves its remedy, `keep` makes it stay, `undo` takes it back; and an operator killed in the middle
//! of a trial leaves nothing.
//!
//! In: the programs `linerate` and `linerate-node` (named by `LINERATE` and `LINERATE_NODE`, or beside the
//! lab's), OpenSSH, Slurm.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_lab::access;
use linerate_lab::faults;
use linerate_lab::lab::Lab;
use linerate_lab::namespace::Namespace;
use linerate_lab::topology::Topology;
use linerate_model::exit::ExitCode;
use linerate_testkit::{TestPrograms, wait_within};

const VICTIM: &str = "node-2";
const KEY: &str = "net.ipv4.tcp_rmem";
const CAUSE: &str = "tcp-rmem-small";
/// Far above what a step takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

fn programs() -> TestPrograms {
    TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-lab"))
}

/// Why it cannot run here.
fn missing(transport: &str) -> Option<String> {
    if transport == "ssh" && !Path::new("/usr/sbin/sshd").exists() {
        return Some("no sshd here (install the package openssh-server)".into());
    }
    if transport == "slurm"
        && let Err(error) = access::slurm::site::missing()
    {
        return Some(error.to_string());
    }
    programs().missing()
}

/// Three hosts behind sshd or slurmd, the second with a receive window that never grows.
struct Scene {
    lab: Lab,
    broken: String,
    /// Processes and listeners of each host before anything was done there.
    before: Vec<(BTreeSet<u32>, BTreeSet<String>)>,
    _alone: MutexGuard<'static, ()>,
}

/// A process has one lab at a time.
static ALONE: Mutex<()> = Mutex::new(());

impl Scene {
    /// `None` where the transport is missing; prints why.
    fn new(test: &str, transport: &str) -> Option<Self> {
        if let Some(reason) = missing(transport) {
            println!("SKIPPED {test}: {reason}");
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lab =
            Lab::up_via(Topology::load("three").unwrap(), access::find(transport).unwrap()).unwrap();
        lab.inject(faults::find("small-rmem").unwrap(), Some(VICTIM), 1).unwrap();
        let mut scene = Self { lab, broken: String::new(), before: Vec::new(), _alone: alone };
        scene.broken = scene.value();
        scene.before = scene.lab.cluster.hosts.iter().map(|(_, n)| (processes(n), listeners(n))).collect();
        Some(scene)
    }

    fn host(&self) -> &Namespace {
        &self.lab.cluster.hosts.iter().find(|(plan, _)| plan.name == VICTIM).unwrap().1
    }

    fn value(&self) -> String {
        self.host().read_sysctl(KEY).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(programs().linerate);
        command
            .args(arguments)
            .env("LINERATE_DATA", self.lab.folder.path().join("data"))
            .env("LINERATE_NODE", programs().node)
            .envs(self.lab.reached.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> (Output, String) {
        let output = self.command(arguments).output().unwrap();
        let text = [&output.stdout, &output.stderr]
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .concat();
        (output, text)
    }

    /// Surveys and gives the verdict as JSON.
    fn survey(&self) -> serde_json::Value {
        let inventory = self.lab.cluster.without_confessions(&self.lab.reached.inventory).unwrap();
        let inventory = inventory.display().to_string();
        let (output, text) = self.run(&["survey", "-i", &inventory, "--time", "30s", "--json", "--quiet"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    /// Files below the folders that stand for `/etc` and the state of the changed host, without locks and
    /// closed journals.
    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut todo = vec![self.lab.folder.path().join("hosts").join(VICTIM)];
        while let Some(folder) = todo.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    todo.push(path);
                } else if std::fs::metadata(&path).is_ok_and(|m| m.len() > 0)
                    && !std::fs::read_to_string(&path).unwrap_or_default().contains("\"closed\"")
                {
                    found.push(path);
                }
            }
        }
        found
    }

    /// No new process and no new listener in any namespace of a host.
    fn nothing_is_left(&self) {
        for ((_, namespace), (ran, listened)) in self.lab.cluster.hosts.iter().zip(&self.before) {
            wait_within(PATIENCE, "no process is left", || processes(namespace).is_subset(ran));
            let listening = listeners(namespace);
            assert!(listening.is_subset(listened), "{}: {listening:?}", namespace.name);
        }
    }
}

fn processes(namespace: &Namespace) -> BTreeSet<u32> {
    linerate_testkit::processes_in(namespace.inode().unwrap()).into_iter().collect()
}

fn listeners(namespace: &Namespace) -> BTreeSet<String> {
    let listening = namespace.output("ss", &["-Hltun"]).unwrap();
    listening.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_fault_is_found_fixed_and_undone_over_ssh() {
    if let Some(scene) = Scene::new("a_fault_is_found_fixed_and_undone_over_ssh", "ssh") {
        found_fixed_and_undone(&scene);
    }
}

#[test]
fn a_fault_is_found_fixed_and_undone_over_slurm() {
    if let Some(scene) = Scene::new("a_fault_is_found_fixed_and_undone_over_slurm", "slurm") {
        found_fixed_and_undone(&scene);
    }
}

/// Whether the fault is among the findings. With CPU steal there are others, and they are true.
fn is_found(verdict: &serde_json::Value) -> bool {
    let is_it = |finding: &serde_json::Value| {
        finding["places"][0]["suspect"]["host"] == VICTIM && finding["causes"][0]["id"] == CAUSE
    };
    verdict["diagnosis"]["findings"].as_array().unwrap().iter().any(is_it)
}

fn found_fixed_and_undone(scene: &Scene) {
    let verdict = scene.survey();
    assert!(is_found(&verdict), "{}", verdict["diagnosis"]);
    assert_eq!(scene.value(), scene.broken, "a survey changes nothing");

    let (tried, text) = scene.run(&["try", CAUSE, "--on", VICTIM, "--json", "--quiet"]);
    let trial: serde_json::Value =
        serde_json::from_slice(&tried.stdout).unwrap_or_else(|e| panic!("{e}: {text}"));
    linerate_testkit::schemas::hold("trial", &trial);
    assert_eq!(tried.status.code(), Some(ExitCode::Ok as i32), "{text}");
    assert_eq!(scene.value(), scene.broken, "a trial puts the old value back");
    assert_eq!(scene.files(), Vec::<PathBuf>::new());
    scene.nothing_is_left();

    let id = trial["trial"]["id"].as_str().unwrap();
    let (kept, text) = scene.run(&["keep", id, "--quiet"]);
    assert_eq!(kept.status.code(), Some(ExitCode::Ok as i32), "{text}");
    assert_ne!(scene.value(), scene.broken);
    assert!(
        scene.files().iter().any(|path| path.ends_with("sysctl.d/90-linerate.conf")),
        "{:?}",
        scene.files()
    );
    let healed = scene.survey();
    assert!(!is_found(&healed), "{}", healed["diagnosis"]);

    let (undone, text) = scene.run(&["undo", id]);
    assert_eq!(undone.status.code(), Some(ExitCode::Ok as i32), "{text}");
    assert_eq!(scene.value(), scene.broken);
    assert_eq!(scene.files(), Vec::<PathBuf>::new());
    scene.nothing_is_left();
}

/// Ended whatever happens.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_operator_killed_in_a_trial_over_ssh_leaves_nothing() {
    if let Some(scene) = Scene::new("an_operator_killed_in_a_trial_over_ssh_leaves_nothing", "ssh") {
        killed_in_a_trial(&scene);
    }
}

#[test]
fn an_operator_killed_in_a_trial_over_slurm_leaves_nothing() {
    if let Some(scene) = Scene::new("an_operator_killed_in_a_trial_over_slurm_leaves_nothing", "slurm") {
        killed_in_a_trial(&scene);
    }
}

fn killed_in_a_trial(scene: &Scene) {
    scene.survey();
    let mut operator = Running(
        scene
            .command(&["try", CAUSE, "--on", VICTIM])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    wait_within(PATIENCE, "the new value is in force", || scene.value() != scene.broken);
    operator.0.kill().unwrap();
    operator.0.wait().unwrap();
    wait_within(PATIENCE, "the old value is back", || scene.value() == scene.broken);
    scene.nothing_is_left();
    assert_eq!(scene.files(), Vec::<PathBuf>::new());
}
