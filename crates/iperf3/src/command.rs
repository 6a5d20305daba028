//! The command `iperf3`: a client and a server of iperf3's protocol for the command line.
//!
//! In: iperf3's flags. Out: iperf3's output, as text or JSON, and an exit code. A server listens until it is
//! stopped, or for one test; nothing else in this program ever starts one.

use std::cell::Cell;
use std::io::Write;
use std::process::ExitCode;

use linerate_sys::interrupt::Interrupt;

use super::flags::{self, Iperf3Command};
use super::printer::Printer;
use super::{ask, serve};

/// A test that did not go through.
const FAILED: u8 = 1;

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
    let mut printer = Printer::new(std::io::stdout(), show);
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
