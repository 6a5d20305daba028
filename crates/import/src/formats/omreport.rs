//! `omreport storage vdisk` and `omreport storage battery`: write policy of the virtual drives of a PERC, and
//! its battery. Lines come in, facts `raid.…` go out.

use super::storage_words::field;
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Omreport;

/// Whether a line begins a list of the tool.
fn is_heading(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("List of Virtual Disks")
        || line.starts_with("Controller PERC ")
        || line.starts_with("Battery ") && line.contains(" on Controller ")
}

impl Reader for Omreport {
    fn name(&self) -> &'static str {
        "omreport"
    }

    fn describes(&self) -> &'static str {
        "omreport storage vdisk, battery: write policy and battery of a PERC"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        is_heading(block.first())
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let (mut drive, mut of_battery) = (0_u32, false);
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            if let Some((name, value)) = field(line) {
                match name {
                    "ID" => drive = value.parse().unwrap_or(drive),
                    "Name" => of_battery = value.starts_with("Battery"),
                    "State" if of_battery => out.text("raid.bbu.state", &value.to_lowercase()),
                    "Predicted Capacity Status" if value.starts_with("Failed") => {
                        out.text("raid.bbu.state", "failed");
                    }
                    "Write Policy" => {
                        out.text(format!("raid.vd{drive}.cache_policy"), &value.replace(' ', ""));
                    }
                    _ => {}
                }
            } else if !(text.is_empty() || is_heading(text)) {
                break;
            }
            if !text.is_empty() {
                taken = at + 1;
            }
        }
        taken
    }
}
