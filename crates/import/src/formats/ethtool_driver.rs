//! `ethtool -i NIC`: driver, firmware, bus. The output does not name the device, so that the command or the
//! file's name must.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Driver;

/// Names that the tool prints, and those of the facts; the others are of no use.
const NAMES: [(&str, Option<&str>); 10] = [
    ("driver", Some("driver")),
    ("version", Some("driver_version")),
    ("firmware-version", Some("firmware")),
    ("expansion-rom-version", None),
    ("bus-info", Some("bus")),
    ("supports-statistics", None),
    ("supports-test", None),
    ("supports-eeprom-access", None),
    ("supports-register-dump", None),
    ("supports-priv-flags", None),
];

fn pair(line: &str) -> Option<(&'static str, Option<&'static str>, &str)> {
    let (name, value) = line.trim().split_once(':')?;
    let (name, fact) = NAMES.iter().find(|(n, _)| *n == name)?;
    Some((name, *fact, value.trim()))
}

impl Reader for Driver {
    fn name(&self) -> &'static str {
        "ethtool-i"
    }

    fn describes(&self) -> &'static str {
        "ethtool -i: driver and firmware"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        pair(block.first()).is_some_and(|(name, _, value)| {
            name == "driver" && !value.is_empty()
                || block.at.command.is(&["ethtool"]) && block.at.command.has(&["-i"])
        })
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let asked = block.at.command.last_plain().filter(|_| block.at.command.is(&["ethtool"]));
        let nic = asked.or(block.at.nic.as_deref()).map(super::ethtool::key);
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let Some((name, fact, value)) = pair(line) else { break };
            if name == "driver" && at > 0 {
                break;
            }
            match (&nic, fact) {
                (Some(nic), Some(fact)) if !value.is_empty() && value != "N/A" => {
                    out.text(format!("{nic}.{fact}"), value);
                }
                (None, _) => out.unread(
                    at,
                    "unknown device: keep the command `ethtool -i NIC`, or name the file ethtool-i-NIC.txt",
                ),
                _ => {}
            }
            taken = at + 1;
        }
        taken.max(1)
    }
}
