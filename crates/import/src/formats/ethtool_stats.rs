//! `ethtool -S NIC`: counters of the driver. The output does not name the device, so that the command or the
//! file's name must. Counters alone prove nothing: they count since boot.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format; its lines may be what `grep` left.
pub(crate) struct Statistics;

/// Most counters of one device that are kept; some drivers have thousands.
const COUNTERS_MAX: usize = 4096;

/// `     rx_missed_errors: 7012345`
fn counted(line: &str) -> Option<(&str, i64)> {
    let (name, value) = line.trim().rsplit_once(':')?;
    Some((name.trim(), value.trim().parse().ok()?)).filter(|(name, _)| !name.is_empty() && name.len() < 64)
}

/// A name that only drivers use: `rx_missed_errors`, `rx_queue_0_drops`, `tx3_dropped`.
fn is_named(name: &str) -> bool {
    let plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    plain && name.contains('_') && ["rx", "tx", "port."].iter().any(|head| name.starts_with(head))
}

impl Reader for Statistics {
    fn name(&self) -> &'static str {
        "ethtool-S"
    }

    fn describes(&self) -> &'static str {
        "ethtool -S: counters of the driver"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first();
        // `ethtool -S em1 | grep miss` has no title.
        let is_asked = block.at.command.is(&["ethtool"]) && block.at.command.has(&["-S", "--statistics"]);
        line.trim() == "NIC statistics:" || counted(line).is_some_and(|(name, _)| is_asked || is_named(name))
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let asked = block.at.command.last_plain().filter(|_| block.at.command.is(&["ethtool"]));
        let nic = asked.or(block.at.nic.as_deref()).map(super::ethtool::key);
        if nic.is_none() {
            out.unread(
                0,
                "unknown device: keep the command `ethtool -S NIC`, or name the file ethtool-S-NIC.txt",
            );
        }
        let from = usize::from(block.first().trim() == "NIC statistics:");
        let mut taken = from.max(1);
        for (at, line) in block.lines.iter().enumerate().skip(from) {
            let Some((name, value)) = counted(line) else { break };
            if let Some(nic) = nic.as_ref().filter(|_| at <= COUNTERS_MAX) {
                out.counter(format!("{nic}.stat.{}", name.replace(char::is_whitespace, "-")), value);
            }
            taken = at + 1;
        }
        taken
    }
}
