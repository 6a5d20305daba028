//! `ssacli ctrl all show status` and its older names: the write cache of a Smart Array controller, and what
//! keeps it over a power loss. Lines come in, facts `raid.…` go out.

use super::storage_words::field;
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Ssacli;

/// Names of the tool.
const TOOLS: [&str; 3] = ["ssacli", "hpssacli", "hpacucli"];
/// Lines with which a piece begins, where no prompt has the command.
const BEGINS: [&str; 4] =
    ["cache board present", "cache status", "battery/capacitor status", "battery/capacitor count"];
/// Words of the details for a cache that is off because of its battery or capacitor.
const POWER: [&str; 3] = ["backup power", "battery", "capacitor"];

/// A field in small letters.
fn small(line: &str) -> Option<(String, String)> {
    field(line).map(|(name, value)| (name.to_lowercase(), value.to_lowercase()))
}

impl Reader for Ssacli {
    fn name(&self) -> &'static str {
        "ssacli"
    }

    fn describes(&self) -> &'static str {
        "ssacli ctrl all show: cache and battery of a Smart Array controller"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let named = small(block.first()).is_some_and(|(name, _)| BEGINS.contains(&name.as_str()));
        named || block.at.command.is(&TOOLS) && block.first().starts_with("Smart Array ")
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            let Some((name, value)) = small(line) else {
                if text.is_empty() || text.starts_with("Smart Array ") {
                    continue;
                }
                break;
            };
            match name.as_str() {
                "cache status" => out.text("raid.cache.state", &value),
                "battery/capacitor status" => out.text("raid.bbu.state", &value),
                "cache status details" | "cache disable reason"
                    if value.contains("fail") && POWER.iter().any(|word| value.contains(word)) =>
                {
                    out.text("raid.bbu.state", "failed");
                }
                _ => {}
            }
            taken = at + 1;
        }
        taken
    }
}
