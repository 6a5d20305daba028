//! The command `iperf3`: a client and a server of iperf3's protocol for the command line.
//!
//! In: iperf3's flags. Out: iperf3's output, as text or JSON, and an exit code. A server listens until it is
//! stopped, or for one test; nothing else in this program ever starts one.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use linerate_sys::background::{self, Detached};
use linerate_sys::interrupt::Interrupt;

use super::flags::{self, Iperf3Command, OutputStyle};
use super::printer::{Printer, Stamped};
use super::serve::ServerSpec;
use super::{ask, serve};

/// A test that did not go through.
const FAILED: u8 = 1;

/// Where the output goes.
fn sink(show: &OutputStyle) -> Result<Box<dyn Write>, String> {
    let out: Box<dyn Write> = match &show.logfile {
        Some(path) => {
            let file = File::options().create(true).append(true).open(path);
            Box::new(file.map_err(|e| format!("cannot write {}: {e}", path.display()))?)
        }
        None => Box::new(std::io::stdout()),
    };
    // A time before JSON would make it none.
    Ok(match show.timestamps.clone().filter(|_| !show.json) {
        Some(format) => Box::new(Stamped::new(out, format)),
        None => out,
    })
}

/// The file of the process id. It is removed at the end, where it still has that of this process.
struct PidFile(PathBuf);

impl PidFile {
    /// Refuses where the process of the file is running.
    fn begin(path: &Path) -> Result<Self, String> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let running = Self::process(&path).filter(|id| Path::new(&format!("/proc/{id}")).exists());
        match running {
            Some(id) => Err(format!(
                "{}: process {id} is running\nhint: `kill {id}` ends it; another --pidfile leaves it",
                path.display()
            )),
            None => Ok(Self(path)),
        }
    }

    fn process(path: &Path) -> Option<u32> {
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    fn write(&self, id: u32) -> Result<(), String> {
        std::fs::write(&self.0, format!("{id}\n"))
            .map_err(|e| format!("cannot write {}: {e}", self.0.display()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if Self::process(&self.0) == Some(std::process::id()) {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

/// Leaves the server, which listens, to a process in the background; ends the one that was called once the
/// file of the process id is there.
fn in_background(at: SocketAddr, pidfile: Option<&PidFile>) -> io::Result<()> {
    let Detached::Foreground(id) = background::detach()? else { return Ok(()) };
    // It was written a moment before, with the id of this process.
    if let Some(Err(error)) = pidfile.map(|file| file.write(id)) {
        let _ = writeln!(io::stderr(), "error: {error}");
    }
    let _ = writeln!(io::stderr(), "listening on {at} in the background; `kill {id}` ends it");
    std::process::exit(0)
}

/// With paths that hold in any folder: a server in the background is in the root.
fn absolute(mut spec: ServerSpec) -> ServerSpec {
    let whole = |path: &mut PathBuf| {
        if let Ok(whole) = std::path::absolute(&path) {
            *path = whole;
        }
    };
    if let Some(policy) = &mut spec.listener {
        whole(&mut policy.users);
        whole(&mut policy.rsa.key);
    }
    spec
}

/// Runs the command.
pub fn run(arguments: Vec<String>) -> Result<ExitCode, String> {
    let password = || std::env::var("IPERF3_PASSWORD").ok();
    let (order, show) = flags::parse(arguments, password)?;
    // Before any thread is started: they inherit what is blocked.
    let interrupt = Interrupt::new().map_err(|e| format!("cannot wait for Ctrl-C: {e}"))?;
    let stopped = Cell::new(false);
    let stop = || {
        if interrupt.taken() {
            stopped.set(true);
        }
        stopped.get()
    };
    let daemon = matches!(&order, Iperf3Command::Serve(spec) if spec.daemon);
    let pidfile = show.pidfile.as_deref().map(PidFile::begin).transpose()?;
    if let Some(file) = &pidfile {
        file.write(std::process::id())?;
    }
    let mut printer = Printer::new(sink(&show)?, show);
    match order {
        Iperf3Command::Help => printer.line(flags::HELP.trim_end()),
        Iperf3Command::Version => printer.line(&format!("linerate-node {}", env!("CARGO_PKG_VERSION"))),
        Iperf3Command::Ask(spec) => {
            let record = ask::run(&spec, &stop, &mut printer);
            return Ok(if record.error.is_some() { ExitCode::from(FAILED) } else { ExitCode::SUCCESS });
        }
        Iperf3Command::Serve(spec) => {
            let ready = |at: SocketAddr| {
                if daemon {
                    return in_background(at, pidfile.as_ref());
                }
                // Not part of any test's output, so that JSON stays JSON.
                let _ = writeln!(std::io::stderr(), "listening on {at}; Ctrl-C ends it");
                Ok(())
            };
            serve::run(&absolute(*spec), &stop, &ready, &mut printer).map_err(|e| e.to_string())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
