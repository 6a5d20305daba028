//! The program `linerate`, as a user runs it: arguments in, text and an exit code out.
//!
//! In: arguments. Out: its output and exit code. The judge and the demo see no more than a user does.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_sys::interrupt::Interrupt;
use linerate_sys::{sched, spawn};

use crate::error::{LabError, Result};
use crate::lab::Lab;

const POLL_INTERVAL_NS: u64 = 20_000_000;
/// Timeout of the cleanup of `linerate` after a stop signal.
const CLEAN_UP_WITHIN: Duration = Duration::from_secs(10);

/// Destination of its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputTo {
    /// To the terminal of the lab.
    Terminal,
    /// To the caller.
    Captured,
}

/// How a call ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it printed, when captured.
    pub stdout: String,
    /// Progress and errors, when captured.
    pub stderr: String,
}

/// The program with a data folder of its own.
#[derive(Debug)]
pub struct Operator {
    program: PathBuf,
    data: PathBuf,
    environment: Vec<(&'static str, OsString)>,
}

impl Operator {
    /// Finds the program: named by `LINERATE`, or beside this one. It keeps its data in the folder of the
    /// lab.
    pub fn find(lab: &Lab) -> Result<Self> {
        Self::with(lab.folder.path().join("data"), lab.reached.environment.clone())
    }

    /// The same with a data folder and variables of its environment.
    pub fn with(data: PathBuf, environment: Vec<(&'static str, OsString)>) -> Result<Self> {
        let beside = || std::env::current_exe().map(|own| own.with_file_name("linerate")).unwrap_or_default();
        let program = std::env::var_os("LINERATE").map_or_else(beside, PathBuf::from);
        if !program.is_file() {
            return Err(LabError::Unknown(format!(
                "program {} is missing\nhint: build it (cargo build --workspace), or name it in LINERATE",
                program.display()
            )));
        }
        Ok(Self { program, data, environment })
    }

    /// The same with the colours of a terminal in what is captured.
    #[must_use]
    pub fn coloured(mut self, is_terminal: bool) -> Self {
        self.environment.extend(is_terminal.then(|| ("CLICOLOR_FORCE", "1".into())));
        self
    }

    /// Runs it to its end, at most for `within`.
    ///
    /// # Errors
    /// It could not be started, took too long, or we were interrupted; then it was ended first.
    pub fn run<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        output: OutputTo,
        within: Duration,
        interrupt: &Interrupt,
    ) -> Result<Ended> {
        self.run_while(arguments, output, within, interrupt, &mut || Ok(()))
    }

    /// The same, and calls `meanwhile` many times a second until it ends.
    ///
    /// # Errors
    /// Also those of `meanwhile`; then the program was ended first.
    pub fn run_while<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        output: OutputTo,
        within: Duration,
        interrupt: &Interrupt,
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Ended> {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("LINERATE_DATA", &self.data);
        command.envs(self.environment.iter().map(|(name, value)| (name, value))).stdin(Stdio::null());
        if output == OutputTo::Captured {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        spawn::dies_with_parent(&mut command);
        let step = || format!("running {}", self.program.display());
        let mut child = command.spawn().map_err(LabError::at(step()))?;
        let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
        let deadline = Instant::now() + within;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(LabError::at(step()))? {
                break status;
            }
            let until = sched::monotonic_ns() + POLL_INTERVAL_NS;
            sched::wait_readable([interrupt.as_fd()], until).map_err(LabError::at(step()))?;
            if let Err(error) = meanwhile() {
                end(&mut child);
                return Err(error);
            }
            let interrupted = interrupt.taken();
            if interrupted || Instant::now() > deadline {
                end(&mut child);
                let late =
                    || LabError::Unknown(format!("linerate did not end within {} s", within.as_secs()));
                return Err(if interrupted { LabError::Interrupted } else { late() });
            }
        };
        Ok(Ended { code: status.code(), stdout: text(stdout), stderr: text(stderr) })
    }
}

fn collect(stream: Option<impl Read + Send + 'static>) -> Option<JoinHandle<Vec<u8>>> {
    let mut stream = stream?;
    Some(std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still worth showing.
        let _ = stream.read_to_end(&mut bytes);
        bytes
    }))
}

fn text(collected: Option<JoinHandle<Vec<u8>>>) -> String {
    let bytes = collected.and_then(|thread| thread.join().ok()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Signals a child to end, waits for its cleanup, and kills it after a timeout.
fn end(child: &mut Child) {
    // Both fail only when it is gone already.
    let _ = spawn::terminate(child, false);
    let deadline = Instant::now() + CLEAN_UP_WITHIN;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > deadline {
            let _ = spawn::terminate(child, true);
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
