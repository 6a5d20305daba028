//! `linerate-lab up`: keeps a lab running until a request or a signal ends it.
//!
//! In: a lab, stop signals, requests over the control socket. Out: answers. It and its lab end together.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use linerate_sys::interrupt::Interrupt;
use linerate_sys::{sched, spawn};

use crate::control::{self, LabRequest};
use crate::error::{LabError, Result};
use crate::lab::Lab;

/// Line that reports to a background start that the lab is ready.
pub(crate) const READY: &str = "ready";
const POLL_INTERVAL_NS: u64 = 1_000_000_000;

/// Serves requests until one of them or a signal ends the lab. Returns whether it was a signal.
pub fn serve(lab: &mut Lab, interrupt: &Interrupt) -> Result<bool> {
    let path = lab.folder.path().join(control::SOCKET);
    let step = || format!("listening at {}", path.display());
    let listener = UnixListener::bind(&path).map_err(LabError::at(step()))?;
    listener.set_nonblocking(true).map_err(LabError::at(step()))?;
    // The reader may be gone: a background start exits after the line.
    let _ = writeln!(std::io::stdout(), "{}{READY}", lab.status());
    loop {
        let until = sched::monotonic_ns() + POLL_INTERVAL_NS;
        let [asked, _] = sched::wait_readable([listener.as_fd(), interrupt.as_fd()], until)
            .map_err(LabError::at("waiting for requests"))?;
        if interrupt.taken() {
            return Ok(true);
        }
        if !asked {
            continue;
        }
        // A caller that hung up is no reason to end the lab.
        if let Ok(Some(LabRequest::Down)) = control::serve_one(&listener, |request| lab.answer(request)) {
            return Ok(false);
        }
    }
}

/// Starts this program again with arguments that start a lab, without a terminal. Returns its output up to
/// ready.
pub fn start_in_background(arguments: &[&str]) -> Result<String> {
    let step = || "starting the lab in the background".to_owned();
    let own = std::env::current_exe().map_err(LabError::at(step()))?;
    // Not our own standard error: a caller that reads it to its end would wait for the end of the lab.
    let mut errors = nameless_file().map_err(LabError::at(step()))?;
    let mut command = Command::new(own);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    command.stderr(errors.try_clone().map_err(LabError::at(step()))?);
    // A lock or a pipe of the caller would be held until the lab ends.
    spawn::without_inherited_descriptors(&mut command);
    let mut child = command.spawn().map_err(LabError::at(step()))?;
    let mut output = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.map_err(LabError::at(step()))?;
            if line == READY {
                return Ok(output);
            }
            output.push_str(&line);
            output.push('\n');
        }
    }
    let _ = child.wait();
    let mut why = String::new();
    errors.rewind().and_then(|()| errors.read_to_string(&mut why)).map_err(LabError::at(step()))?;
    let why = why.trim().trim_start_matches("error: ");
    Err(LabError::Unknown(format!(
        "the lab did not start: {}",
        if why.is_empty() { "no error was printed" } else { why }
    )))
}

/// An unlinked temporary file.
fn nameless_file() -> std::io::Result<File> {
    let path = std::env::temp_dir().join(format!("linerate-lab-start-{}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
