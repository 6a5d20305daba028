//! `storcli /cN show all` and `megacli -AdpBbuCmd`: battery of a RAID controller, and the cache policy that
//! its virtual drives have. Lines come in, facts `raid.…` go out.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Storcli;

/// Headings of parts that are read.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Other,
    Battery,
    Drives,
}

/// `VD LIST :`, `BBU_Info :`, `Cachevault_Info :`
fn heading(line: &str) -> Option<Part> {
    let name = line.trim().strip_suffix(':')?.trim_end();
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b" _-()/".contains(&b));
    (plain && !name.is_empty() && name.len() <= 40).then(|| match name.to_lowercase().as_str() {
        "bbu_info" | "cachevault_info" | "bbu info" | "cachevault info" => Part::Battery,
        "vd list" | "virtual drives" => Part::Drives,
        _ => Part::Other,
    })
}

/// `0/0   RAID5 Optl  RW     Yes     RWBD  -   ON  10.913 TB data`: number, state, cache.
fn virtual_drive(line: &str) -> Option<(u32, &str, &str)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (_, number) = words.first()?.split_once('/')?;
    let level = words.get(1)?;
    let cache = words.iter().skip(3).find(|word| word.contains("WT") || word.contains("WB"))?;
    level.starts_with("RAID").then_some((number.parse().ok()?, words[2], cache))
}

/// What the letters of a cache mean: `RWBD` is read ahead, write back, direct.
fn policy(cache: &str) -> &'static str {
    if cache.contains("AWB") {
        "AlwaysWriteBack"
    } else if cache.contains("WB") {
        "WriteBack"
    } else {
        "WriteThrough"
    }
}

/// `Battery State: Optimal` of `megacli -AdpBbuCmd -aALL`.
fn battery_of_megacli(line: &str) -> Option<&str> {
    let value = line.trim().strip_prefix("Battery State")?.trim_start().strip_prefix(':')?;
    Some(value.trim())
}

impl Reader for Storcli {
    fn name(&self) -> &'static str {
        "storcli"
    }

    fn describes(&self) -> &'static str {
        "storcli /c0 show all, megacli -AdpBbuCmd: battery and cache of a controller"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first();
        heading(line).is_some_and(|part| part != Part::Other)
            || line.starts_with("BBU status for Adapter")
            || battery_of_megacli(line).is_some()
            || block.at.command.is(&["storcli", "storcli64", "perccli", "perccli64"]) && line.contains(" = ")
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let is_asked = block.at.command.is(&["storcli", "storcli64", "perccli", "perccli64"]);
        let mut part = Part::Other;
        let mut has_columns = false;
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            let is_frame = text.is_empty() || text.bytes().all(|b| b == b'-' || b == b'=');
            if let Some(next) = heading(line) {
                (part, has_columns) = (next, false);
            } else if let Some(state) = battery_of_megacli(line) {
                out.text("raid.bbu.state", &state.to_lowercase());
            } else if is_frame || text.contains(" = ") {
            } else if part == Part::Battery && text.starts_with("Model") {
                has_columns = true;
            } else if part == Part::Battery && has_columns {
                // `BBU  Failed  0 hour(s)  38C  -  2013/01/01`
                if let Some(state) = text.split_whitespace().nth(1) {
                    out.text("raid.bbu.state", &state.to_lowercase());
                }
                has_columns = false;
            } else if let Some((number, state, cache)) = virtual_drive(line).filter(|_| part == Part::Drives)
            {
                out.text(format!("raid.vd{number}.state"), state);
                out.text(format!("raid.vd{number}.cache_policy"), policy(cache));
            } else if !is_asked && part == Part::Other && !text.contains(':') {
                break;
            }
            taken = at + 1;
        }
        taken
    }
}
