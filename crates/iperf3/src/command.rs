//! The command `iperf3`: a client and a server of iperf3's protocol for the command line.
//!
//! In: iperf3's flags. Out: iperf3's output, as text or JSON, and an exit code. A server listens until it is
//! stopped, or for one test; nothing else in this program ever starts one.

use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::process::ExitCode;

use linerate_sys::interrupt::Interrupt;

use super::flags::{self, Iperf3Command, OutputStyle};
use super::printer::{Printer, Stamped};
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
    if let Some(path) = &show.pidfile {
        std::fs::write(path, format!("{}\n", std::process::id()))
            .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
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
            let ready = |at: std::net::SocketAddr| {
                // Not part of any test's output, so that JSON stays JSON.
                let _ = writeln!(std::io::stderr(), "listening on {at}; Ctrl-C ends it");
            };
            serve::run(&spec, &stop, &ready, &mut printer).map_err(|e| e.to_string())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
