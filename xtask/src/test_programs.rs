//! The test programs of the workspace: built all at once, run in the folder of their crate, those that mostly
//! wait beside each other, those that only compute beside the guests that are left then.
//!
//! In: the workspace. Out: the lines that they print, program by program.

use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};

use crate::shell::{am_root, cargo};

/// Programs whose tests wait for other programs most of their time, for daemons and for sessions that end,
/// each in namespaces of its own. None measures what another one would disturb. [`GUESTS`] has what they
/// leave.
const WAITING: [&str; 11] = [
    "agents",
    "drain",
    "hostile",
    "prometheus",
    "slurm",
    "ssh",
    "ssh_failures",
    "ssh_ways",
    "strangers",
    "watch",
    GUESTS,
];
/// The program whose guests compute for minutes, and measure nothing that depends on the time.
const GUESTS: &str = "vm";
/// Of the guests, and of what computes beside them: the others that wait come first, and neither starves the
/// other. A guest that gets no CPU for seconds is silent, and a session with it counts as lost.
const LOWEST: &str = "19";
/// Programs that compute and measure nothing: they run one by one while the guests go on, whose program needs
/// three times as long as the others that wait.
const COMPUTING: [&str; 12] = [
    "advice",
    "cases",
    "import",
    "linerate_diagnose",
    "linerate_history",
    "linerate_judge",
    "own_cause",
    "pages",
    "postgres",
    "simulated",
    "simulated_rtt",
    "synthetic",
];
/// Programs whose tests give real devices away. The guard looks at what all processes have open, and process
/// 1 of a container or a sandbox hides that even from root: they see the processes that they started and no
/// others. Their tests run one by one: a program that another test is about to start has, for a moment,
/// everything open that this one has.
const DEVICES: [&str; 2] = ["linerate_load", "linerate_node"];
/// Tests of each of these at a time; two cores are busy a little more than half of the time with that.
const AT_A_TIME: &str = "3";
/// Programs of `--quick` beside the unit tests of all crates: they answer within seconds, and start no
/// daemon, guest or virtual cluster.
const QUICK: [&str; 14] = [
    "cases",
    "synthetic",
    "cli",
    "disk",
    "disk_watch",
    "durability",
    "events",
    "import",
    "knowledge",
    "measure",
    "single",
    "frames",
    "sealed",
    "sessions",
];
/// Modules of [`DEVICES`] whose tests give devices away, or wait for real ones.
const DEVICE_MODULES: [&str; 4] = ["disk::", "durable::", "build::", "audit::"];
/// Programs that are named with the time that they took.
const SHOWN: usize = 12;
/// The variable of the test programs that says how many.
const THREADS: &str = "RUST_TEST_THREADS";

/// A test program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Of the target: the name of a file in `tests`, or of the crate.
    name: String,
    /// What to run.
    path: PathBuf,
    /// The folder of its crate, in which it expects to be.
    folder: PathBuf,
}

/// Which tests are run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice<'a> {
    /// Only those whose name contains this.
    pub(crate) filter: Option<&'a str>,
    /// Unit tests without devices, and the programs of [`QUICK`].
    pub(crate) is_quick: bool,
}

/// Builds their programs.
pub(crate) fn build(choice: Choice<'_>) -> Result<Vec<Program>> {
    let mut args =
        vec!["test", "--workspace", "--locked", "--no-run", "--message-format=json-render-diagnostics"];
    if choice.is_quick {
        args.extend(["--lib", "--bins"]);
        args.extend(QUICK.iter().flat_map(|name| ["--test", name]));
    }
    println!("$ cargo {}", args.join(" "));
    let out = cargo().args(&args).stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    ensure!(out.status.success(), "`cargo {}` failed: {}", args.join(" "), out.status);
    let programs: Vec<Program> = String::from_utf8_lossy(&out.stdout).lines().filter_map(program).collect();
    ensure!(!programs.is_empty(), "cargo names no test program");
    // Gigabytes that were just built are on their way to the disk, and the first tests would wait for it.
    Command::new("sync").status().context("cannot run sync")?;
    Ok(programs)
}

/// The program that a message of cargo is about, if it is a test program.
fn program(message: &str) -> Option<Program> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let is_test = message["profile"]["test"].as_bool()?;
    let manifest = text(&message["manifest_path"])?;
    is_test.then_some(Program {
        name: text(&message["target"]["name"])?,
        path: PathBuf::from(text(&message["executable"])?),
        folder: Path::new(&manifest).parent()?.to_owned(),
    })
}

/// Runs all, in an environment, and hands over their lines: those that wait beside each other and first, then
/// those that compute, the others one by one when no guest is left.
pub(crate) fn run(
    programs: &[Program],
    choice: Choice<'_>,
    environment: &[(&str, PathBuf)],
    mut line: impl FnMut(&str),
) -> Result<Ran> {
    let (waiting, others): (Vec<&Program>, Vec<&Program>) =
        programs.iter().partition(|program| WAITING.contains(&program.name.as_str()));
    let (computing, alone): (Vec<&Program>, Vec<&Program>) =
        others.into_iter().partition(|program| COMPUTING.contains(&program.name.as_str()));
    let prepared = |program: &Program| {
        let mut command = program.command(choice.is_quick);
        command.current_dir(&program.folder).args(choice.filter).arg("--show-output");
        command.envs(environment.iter().map(|(key, value)| (key, value)));
        command
    };
    if !waiting.is_empty() {
        let names: Vec<&str> = waiting.iter().map(|program| program.name.as_str()).collect();
        line(&format!("     Running side by side, some minutes: {}", names.join(", ")));
    }
    let (guests, together): (Vec<_>, Vec<_>) = waiting
        .into_iter()
        .map(|program| {
            let mut command = prepared(program);
            if std::env::var_os(THREADS).is_none() && program.name != GUESTS {
                command.env(THREADS, AT_A_TIME);
            }
            let begun = Instant::now();
            let end = move || (command.stderr(Stdio::inherit()).output(), begun.elapsed());
            (program, thread::spawn(end))
        })
        .partition(|(program, _)| program.name == GUESTS);
    let mut ran = Ran { all_well: true, took: Vec::new() };
    for beside in together {
        ran.add(joined(beside, &mut line)?);
    }
    for program in computing {
        ran.add(one(program, nice(&prepared(program)), &mut line)?);
    }
    for beside in guests {
        ran.add(joined(beside, &mut line)?);
    }
    for program in alone {
        ran.add(one(program, prepared(program), &mut line)?);
    }
    Ok(ran)
}

/// How the programs went.
pub(crate) struct Ran {
    /// No test failed.
    pub(crate) all_well: bool,
    /// What each took.
    took: Vec<(String, Duration)>,
}

impl Ran {
    fn add(&mut self, (program, is_well, took): (&Program, bool, Duration)) {
        self.all_well &= is_well;
        self.took.push((program.name.clone(), took));
    }

    /// Those that took longest, in words.
    pub(crate) fn slowest(&self) -> String {
        let mut took: Vec<&(String, Duration)> = self.took.iter().collect();
        took.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        let words = took.iter().take(SHOWN).map(|(name, took)| format!("{name} {} s", took.as_secs()));
        format!("slowest: {}", words.collect::<Vec<_>>().join(", "))
    }
}

/// Waits for a program that runs beside others, and hands over its lines.
fn joined(
    (program, output): (&Program, JoinHandle<(io::Result<Output>, Duration)>),
    mut line: impl FnMut(&str),
) -> Result<(&Program, bool, Duration)> {
    let (output, took) = output.join().map_err(|_| anyhow!("the thread of {} ended", program.name))?;
    let output = output.with_context(|| format!("cannot run {}", program.path.display()))?;
    line(&program.heading());
    String::from_utf8_lossy(&output.stdout).lines().for_each(line);
    Ok((program, output.status.success(), took))
}

/// Runs a program, and hands over its lines as they come.
fn one(
    program: &Program,
    mut command: Command,
    mut line: impl FnMut(&str),
) -> Result<(&Program, bool, Duration)> {
    line(&program.heading());
    let begun = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", program.path.display()))?;
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).lines().try_for_each(|one| one.map(|one| line(&one)))?;
    }
    let is_well = child.wait()?.success();
    Ok((program, is_well, begun.elapsed()))
}

/// The same command with the lowest priority.
fn nice(command: &Command) -> Command {
    let mut nicer = Command::new("nice");
    nicer.args(["-n", LOWEST, "--"]).arg(command.get_program()).args(command.get_args());
    nicer.envs(command.get_envs().filter_map(|(key, value)| value.map(|value| (key, value))));
    if let Some(folder) = command.get_current_dir() {
        nicer.current_dir(folder);
    }
    nicer
}

impl Program {
    /// What starts it.
    fn command(&self, is_quick: bool) -> Command {
        let mut plain = Command::new(&self.path);
        if self.name == GUESTS {
            return nice(&plain);
        }
        let has_devices = DEVICES.contains(&self.name.as_str());
        if has_devices && is_quick {
            plain.args(DEVICE_MODULES.iter().flat_map(|module| ["--skip", module])).env(THREADS, AT_A_TIME);
        }
        if !has_devices || is_quick || !am_root() {
            return plain;
        }
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--"]).arg(&self.path);
        command.env(THREADS, "1");
        command
    }

    /// What it is, before its lines.
    fn heading(&self) -> String {
        let folder =
            self.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        format!("     Running {} of {folder}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_programs_are_taken_from_what_cargo_says() {
        let of = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{{"name":"b"}},
                "profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let found = program(&of(true, r#""/w/target/b-1""#)).unwrap();
        assert_eq!((found.name.as_str(), found.folder.as_path()), ("b", Path::new("/w/crates/a")));
        assert_eq!(found.heading(), "     Running b of a");
        assert_eq!(program(&of(false, r#""/w/target/b""#)), None);
        assert_eq!(program(&of(true, "null")), None);
        assert_eq!(program("warning: no JSON"), None);
    }
}
