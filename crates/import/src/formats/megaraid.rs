//! Virtual drives of MegaRAID controllers (`megacli -LDInfo`, `perccli`): state, and the write cache that is
//! set and the one that is in effect. Without a charged battery a controller writes through. Lines come in,
//! facts `raid.vd<N>.…` go out.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Megaraid;

/// Names that the tool prints, and those of the facts.
const NAMES: [(&str, &str); 6] = [
    ("State", "state"),
    ("RAID Level", "level"),
    ("Default Cache Policy", "cache_default"),
    ("Current Cache Policy", "cache_current"),
    ("Disk Cache Policy", "disk_cache"),
    ("Bad Blocks Exist", "bad_blocks"),
];
/// Most lines between two settings of a drive.
const APART_MAX: usize = 12;

/// Number of `Virtual Drive: 0 (Target Id: 0)`.
fn drive(line: &str) -> Option<u32> {
    let rest = line.trim().strip_prefix("Virtual Drive: ")?;
    rest.split([' ', '(']).next()?.parse().ok()
}

fn is_adapter(line: &str) -> bool {
    line.trim().strip_prefix("Adapter ").is_some_and(|rest| rest.contains("Virtual Drive Information"))
}

impl Reader for Megaraid {
    fn name(&self) -> &'static str {
        "megaraid"
    }

    fn describes(&self) -> &'static str {
        "megacli -LDInfo: virtual drives"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        drive(block.first()).is_some() || is_adapter(block.first())
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut current = None;
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate() {
            if at > taken + APART_MAX {
                break;
            }
            if let Some(number) = drive(line) {
                current = Some(number);
            } else if let Some((name, value)) = line.trim().split_once(':') {
                let (name, value) = (name.trim(), value.trim());
                if let Some((number, (_, fact))) = current.zip(NAMES.iter().find(|(n, _)| *n == name)) {
                    out.text(format!("raid.vd{number}.{fact}"), value);
                }
                // Ends what the tool prints.
                if name == "Exit Code" {
                    return at + 1;
                }
            } else if !(line.trim().is_empty() || is_adapter(line)) {
                break;
            }
            if !line.trim().is_empty() {
                taken = at + 1;
            }
        }
        taken
    }
}
