//! The serial console of a guest: kept in a file, and watched for the line of a ready guest.
//!
//! In: what qemu prints. Out: the guest's host key, or the end of its console. It never writes to the guest.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::{Duration, Instant};

use crate::error::{LabError, Result};

/// What `init.sh` prints last, with the public half of the guest's key behind it.
const READY: &str = "linerate-lab: ready ";
/// Longest line that is examined, bytes.
const LINE_MAX: u64 = 4096;
/// Lines of the console that an error shows.
const SHOWN: usize = 6;
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A console that is being read.
#[derive(Debug)]
pub(super) struct Console {
    log: PathBuf,
    ready: Receiver<String>,
}

impl Console {
    /// Reads until the guest ends, and keeps everything in a file.
    pub(super) fn read(output: impl Read + Send + 'static, log: &Path) -> Result<Self> {
        let step = || format!("keeping the console in {}", log.display());
        let mut file = File::create(log).map_err(LabError::at(step()))?;
        let (sender, ready) = channel();
        let read = move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while matches!((&mut output).take(LINE_MAX).read_until(b'\n', &mut line), Ok(1..)) {
                // A full disk is no reason to stop the guest.
                let _ = file.write_all(&line);
                let text = String::from_utf8_lossy(&line);
                if let Some((_, key)) = text.split_once(READY) {
                    // The receiver is gone once the guest was ready before.
                    let _ = sender.send(key.trim().to_owned());
                }
                line.clear();
            }
        };
        std::thread::Builder::new().name("console".into()).spawn(read).map_err(LabError::at(step()))?;
        Ok(Self { log: log.to_owned(), ready })
    }

    /// Waits until the guest is ready; returns its public key. `stop` aborts the wait.
    pub(super) fn wait(&self, name: &str, within: Duration, stop: &dyn Fn() -> bool) -> Result<String> {
        let deadline = Instant::now() + within;
        loop {
            match self.ready.recv_timeout(POLL_INTERVAL) {
                Ok(key) => return Ok(key),
                Err(RecvTimeoutError::Timeout) if stop() => return Err(LabError::Interrupted),
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.error(name, &format!("is not ready after {} s", within.as_secs())));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.error(name, "ended while it started")),
            }
        }
    }

    /// Its last lines, for an error about the guest, and whether it has ended.
    pub(super) fn last(&self) -> String {
        let has_ended = matches!(self.ready.try_recv(), Err(TryRecvError::Disconnected));
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n  ");
        format!("its console{}\n  {last}", if has_ended { " ended with" } else { ", still open, shows last" })
    }

    fn error(&self, name: &str, what: &str) -> LabError {
        LabError::Unknown(format!("guest {name} {what}; {}", self.last()))
    }
}
