//! Emulated guests for real: they boot, `linerate` works on them as on any host behind ssh, drives and links
//! follow their settings, and power cuts leave what drives had made safe.
//!
//! In: qemu, packages of the distribution (the image of the guests is made of them), the programs `linerate`
//! and `linerate-node` (named by `LINERATE` and `LINERATE_NODE`, or beside the lab's). As many labs at a time
//! as the test runner has threads, one for each CPU: most of the time one guest of a lab computes and the
//! others wait. Minutes under emulation.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod cli;
mod drbd;
mod drives;
mod kills;
mod pair;
mod persistence;
mod replica;
mod slurmd;
mod units;
mod volume;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use linerate_lab::vm::image::Image;
use linerate_lab::vm::lab::VmLab;
use linerate_lab::vm::topology::{GuestSystem, VmTopology};
use linerate_testkit::{TestPrograms, pause, skip, text};

/// The image is made once.
static IMAGE: Mutex<()> = Mutex::new(());
/// Far above what a step takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// Two guests with a drive that is soon copied and compared: no test of a replica is about its size.
const REPLICA: &str = "name = \"replica\"
[[guest]]
name = \"one\"
[[guest.drives]]
name = \"data\"
size_mib = 64
[[guest]]
name = \"two\"
[[guest.drives]]
name = \"data\"
size_mib = 64
";

/// A lab with the operator's programs.
struct Scene {
    lab: VmLab,
    programs: TestPrograms,
}

impl Scene {
    /// `None` where guests cannot run; prints why.
    fn new(test: &str, lab: &str) -> Option<Self> {
        Self::up(test, || VmTopology::load(lab).unwrap())
    }

    /// The same with the text of a lab.
    fn of(test: &str, text: &str) -> Option<Self> {
        Self::up(test, || VmTopology::parse(text, Path::new(test)).unwrap())
    }

    fn up(test: &str, topology: impl FnOnce() -> VmTopology) -> Option<Self> {
        let programs = TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-lab"));
        let unbuilt = [&programs.linerate, &programs.node].into_iter().find(|p| !p.is_file());
        let topology = topology();
        let reason =
            missing(topology.system).or_else(|| unbuilt.map(|p| format!("{} is not built", p.display())));
        if let Some(reason) = reason {
            skip(test, &reason);
            return None;
        }
        let lab = VmLab::up(topology, None, &mut |_| {}).unwrap();
        let node = lighter(&programs.node, lab.folder());
        Some(Self { lab, programs: TestPrograms { node, ..programs } })
    }

    /// Runs a program in a guest, which has to succeed.
    fn exec(&self, guest: &str, words: &[&str]) -> String {
        self.lab.exec(guest, words).unwrap()
    }

    /// Runs lines of shell in a guest, which all have to succeed.
    fn sh(&self, guest: &str, lines: &str) -> String {
        self.exec(guest, &["bash", "-ec", lines])
    }

    /// Runs the operator's program on the guests.
    fn linerate(&self, words: &[&str]) -> Output {
        let (variable, value) = self.lab.environment();
        let mut command = Command::new(&self.programs.linerate);
        command.args(words).env(variable, value).env("LINERATE_NODE", &self.programs.node);
        command.env("LINERATE_DATA", self.lab.folder().join("data")).output().unwrap()
    }

    fn inventory(&self) -> String {
        self.lab.inventory().display().to_string()
    }
}

/// Why guests cannot be had here; makes their image when they can.
fn missing(system: GuestSystem) -> Option<String> {
    let _one = IMAGE.lock().unwrap_or_else(PoisonError::into_inner);
    linerate_lab::vm::missing()
        .or_else(|| Image::ready(system, &mut |_| {}).err().map(|e| format!("no image of the guests: {e}")))
}

/// The node program without what only debuggers read: a tenth of the bytes to copy into a guest.
fn lighter(node: &Path, folder: &Path) -> PathBuf {
    let light = folder.join("linerate-node");
    let stripped = Command::new("strip").arg("-o").arg(&light).arg(node).output();
    if stripped.is_ok_and(|o| o.status.success()) { light } else { node.to_owned() }
}

/// Asks until it is so; fails with the last answer when it never is.
fn wait_for(what: &str, mut ask: impl FnMut() -> String, done: impl Fn(&str) -> bool) -> String {
    let begin = Instant::now();
    loop {
        let answer = ask();
        if done(&answer) {
            return answer;
        }
        assert!(begin.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}; the last answer was\n{answer}");
        pause();
    }
}

/// Standard output of a command that ended with one of these codes.
fn printed(output: &Output, codes: &[i32]) -> String {
    let (shown, errors) = (text(&output.stdout), text(&output.stderr));
    let has_code = output.status.code().is_some_and(|code| codes.contains(&code));
    assert!(has_code, "{:?}: {errors}\n{shown}", output.status);
    shown
}
