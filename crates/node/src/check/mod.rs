//! `linerate-node check`: checks this host without load, in 2 s and 50 ms of CPU where nothing hangs, in 40 s
//! where anything does.
//!
//! In: files and answers of the kernel, `/etc/linerate/checks.toml`, the past in a private folder. Out: a
//! report (`linerate_model::check`) in the form and with the exit codes of a context. It changes nothing but
//! its own state.
//!
//! Three processes, because a process that touches a dead file server cannot be ended: this one touches no
//! file and has a deadline; the core reads the configuration, judges and stores; workers read what may hang,
//! and are left where they do. A worker that still hangs is not started a second time.
//!
//! Adding a check: one file in `checks/`, one line in `list.rs`. A context: one file in `contexts/`, one line
//! in the list there.

mod boot;
mod checks;
mod config;
mod contexts;
mod core;
mod growth;
mod judge;
mod kind;
mod lanes;
mod list;
mod listed;
mod options;
mod past;
mod policy;
mod reading;
mod rule;
mod settings;
mod worker;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use linerate_model::exit::ExitCode as Code;
use linerate_sys::{sched, spawn};

use self::core::Printed;
use options::{Options, Request};

/// Word of the command line for the process that judges.
pub(crate) const CORE: &str = "check-core";
/// Word of the command line for a process that reads.
pub(crate) const WORKER: &str = "check-worker";
/// Most that the core prints.
const PRINTED_BYTES_MAX: usize = 16 << 20;
const SECOND_NS: u64 = 1_000_000_000;

/// This program again, with another task.
fn again(word: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    // `linerate` has the node in it, and is it by this name.
    command.arg0("linerate-node").arg(word).current_dir("/");
    command
}

/// The process that is called: waits for the core, at most until the deadline.
pub(crate) fn run(words: &[OsString]) -> Result<ExitCode, lexopt::Error> {
    let options = match options::parse(words.to_vec(), list::CHECKS) {
        Ok(Request::Help) => return Ok(print(options::HELP, 0)),
        Ok(Request::List) => return Ok(print(&listed::text(), 0)),
        Ok(Request::Check(options)) => options,
        // A prolog with a misspelled option must not drain all nodes.
        Err(error) => {
            let Some(context) = options::context_of(words) else { return Err(error) };
            let shown = context.unable(&error.to_string());
            return Ok(print(&shown.text, shown.code));
        }
    };
    wait_for_turn(&options);
    let printed = ask(words, options.deadline_s).unwrap_or_else(|reason| {
        let shown = options.context.unable(&reason);
        Printed { text: shown.text, code: shown.code }
    });
    Ok(print(&printed.text, printed.code))
}

/// Jitter by the name of the host, so that a thousand hosts do not ask one file server at once.
fn wait_for_turn(options: &Options) {
    let name = reading::host_name(options);
    let wait_s = options::jitter_s(&name, options.jitter_s);
    std::thread::sleep(std::time::Duration::from_secs(wait_s));
}

/// The clock, and the wait for something to read until a moment of it. Tests have one that passes at once.
struct Watch<'a> {
    now_ns: &'a dyn Fn() -> u64,
    wait: &'a dyn Fn(&PipeReader, u64) -> bool,
}

fn ask(words: &[OsString], deadline_s: u64) -> Result<Printed, String> {
    let wait =
        |pipe: &PipeReader, until_ns| sched::wait_any_readable(&[pipe.as_fd()], until_ns).unwrap_or(false);
    let watch = Watch { now_ns: &sched::monotonic_ns, wait: &wait };
    let (pipe, end) = io::pipe().map_err(|error| format!("cannot have a pipe: {error}"))?;
    let mut command = again(CORE);
    command.args(words).stdin(Stdio::null()).stdout(end).stderr(Stdio::null());
    command.process_group(0);
    spawn::without_inherited_descriptors(&mut command);
    let child = command.spawn().map_err(|error| format!("cannot start itself: {error}"))?;
    // Its copy of the end that is written to.
    drop(command);
    let bytes = printed(pipe, deadline_s, &watch).inspect_err(|_| {
        // It may hang in the kernel: its end is not waited for.
        let _ = spawn::kill_group(&child);
    })?;
    serde_json::from_slice(&bytes).map_err(|_| "the check ended without a result".to_owned())
}

/// What is printed into a pipe until it ends; an error is why it is not waited for any longer.
fn printed(mut pipe: PipeReader, deadline_s: u64, watch: &Watch<'_>) -> Result<Vec<u8>, String> {
    let deadline_ns = (watch.now_ns)() + deadline_s * SECOND_NS;
    let mut bytes = Vec::new();
    loop {
        if (watch.now_ns)() >= deadline_ns {
            return Err(format!("no result within {deadline_s} s: a disk or file server of this host hangs"));
        }
        if !(watch.wait)(&pipe, deadline_ns) {
            continue;
        }
        let mut part = [0; 16 << 10];
        match pipe.read(&mut part) {
            Ok(0) => return Ok(bytes),
            Ok(read) => bytes.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
        if bytes.len() > PRINTED_BYTES_MAX {
            return Err("the result is too long".to_owned());
        }
    }
}

/// The report of all checks as JSON, for the operator of a session.
pub(crate) fn of_session(host: &str, state_dir: &Path) -> Result<String, String> {
    let words = ["--as", "json", "--name", host, "--state"].map(OsString::from);
    let words: Vec<OsString> = words.into_iter().chain([state_dir.as_os_str().to_owned()]).collect();
    ask(&words, options::DEADLINE_S).map(|printed| printed.text)
}

fn print(text: &str, code: u8) -> ExitCode {
    // Nothing is left to do when stdout is closed.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::from(code)
}

/// The process that judges: prints what [`run`] reads.
pub(crate) fn run_core(words: Vec<OsString>) -> ExitCode {
    let Ok(Request::Check(options)) = options::parse(words, list::CHECKS) else {
        return Code::CouldNotRun.into();
    };
    let printed = core::run(&options, &|| {
        let mut command = again(WORKER);
        spawn::limited_cpu(&mut command, core::WORKER_CPU_S);
        command
    });
    let text = serde_json::to_string(&printed).unwrap_or_default();
    print(&text, 0)
}

/// A process that reads.
pub(crate) fn run_worker() -> ExitCode {
    match worker::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => Code::CouldNotRun.into(),
    }
}
