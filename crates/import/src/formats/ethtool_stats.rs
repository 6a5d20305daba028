//! `ethtool -S NIC`: counters of the driver. The output does not name the device, so that the command or the
//! file's name must. Counters alone prove nothing: they count since boot.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Statistics;

/// Most counters of one device that are kept; some drivers have thousands.
const COUNTERS_MAX: usize = 4096;

impl Reader for Statistics {
    fn name(&self) -> &'static str {
        "ethtool-S"
    }

    fn describes(&self) -> &'static str {
        "ethtool -S: counters of the driver"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        block.first().trim() == "NIC statistics:"
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
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate().skip(1) {
            let pair = line.trim().rsplit_once(':').filter(|_| line.starts_with([' ', '\t']));
            let Some((name, value)) = pair.and_then(|(n, v)| Some((n.trim(), v.trim().parse::<i64>().ok()?)))
            else {
                break;
            };
            if let Some(nic) = nic.as_ref().filter(|_| at <= COUNTERS_MAX) {
                out.counter(format!("{nic}.stat.{}", name.replace(char::is_whitespace, "-")), value);
            }
            taken = at + 1;
        }
        taken
    }
}
