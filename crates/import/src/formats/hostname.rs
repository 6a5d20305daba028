//! `hostname` and `uname -a`: a file or an answer of one line. The name belongs to the addresses of the host,
//! the rest are facts.

use crate::context::is_host;
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Hostname;

/// `Linux arc-1 6.1.0-28-amd64 #1 SMP … x86_64 GNU/Linux`: name and release.
fn uname(line: &str) -> Option<(&str, &str)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [first, name, release, build, ..] = &words[..] else { return None };
    (*first == "Linux" && build.starts_with('#') && is_host(name)).then_some((name, release))
}

impl Reader for Hostname {
    fn name(&self) -> &'static str {
        "hostname"
    }

    fn describes(&self) -> &'static str {
        "hostname, uname -a"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let base = block.at.file.rsplit('/').next().unwrap_or_default();
        let line = block.first().trim();
        let alone = !line.contains(char::is_whitespace) && is_host(line);
        uname(line).is_some() || alone && (base == "hostname" || block.at.command.is(&["hostname"]))
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let line = block.first().trim();
        match uname(line) {
            Some((_, release)) => out.text("kernel.release", release),
            None if is_host(line) => out.text("machine.hostname", line),
            None => out.unread(0, "no name of a host"),
        }
        1
    }
}
