//! `smartctl -a` and `-x`, and `nvme smart-log`: what a drive counts of its errors and its heat. Lines come
//! in, facts `disk_health.<drive>.…` of the names of our own readers go out.
//!
//! None of the tools prints the name of the drive: it stands in the command, or in the lines above.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::leading;

/// `smartctl`.
pub(crate) struct Smart;
/// `nvme smart-log`.
pub(crate) struct NvmeLog;

/// What a drive is called whose name is not known.
pub(super) const UNNAMED: &str = "drive";
/// Longest name of a drive, such as one of `/dev/disk/by-id/`.
const NAME_MAX: usize = 80;
/// Lines between two that are used, such as those of logs and of the self-tests.
const APART_MAX: usize = 60;

/// Attributes of SATA drives, by the name that smartmontools gives them.
const ATTRIBUTES: [(&str, &str); 6] = [
    ("Reallocated_Sector_Ct", "reallocated_sectors"),
    ("Current_Pending_Sector", "pending_sectors"),
    ("Offline_Uncorrectable", "uncorrectable_sectors"),
    ("UDMA_CRC_Error_Count", "link_crc_errors"),
    ("Power_On_Hours", "power_on_hours"),
    ("Temperature_Celsius", "temperature_c"),
];

/// Lines `name: value` of NVMe and SCSI drives, in small letters with one blank between words.
const FIELDS: [(&str, &str); 13] = [
    ("temperature", "temperature_c"),
    ("current drive temperature", "temperature_c"),
    ("warning comp. temp. threshold", "max_temperature_c"),
    ("media and data integrity errors", "media_errors"),
    ("media_errors", "media_errors"),
    ("percentage used", "used_percent"),
    ("percentage_used", "used_percent"),
    ("available spare", "spare_percent"),
    ("available_spare", "spare_percent"),
    ("power on hours", "power_on_hours"),
    ("power_on_hours", "power_on_hours"),
    ("warning comp. temperature time", "hot_minutes"),
    ("warning temperature time", "hot_minutes"),
];

/// Critical warnings of an NVMe drive, from bit 0 on.
const WARNINGS: [&str; 6] =
    ["spare-low", "temperature", "unreliable", "read-only", "backup-failed", "memory-region-failed"];

/// The drive of the command, or the one that a line above names: `sdb` of `/dev/sdb`.
pub(super) fn drive(block: &Block<'_>) -> Option<String> {
    // `/dev/sdb`, `/dev/disk/by-id/ata-WDC_WD40`: the last part of the path.
    let device = |text: &str| -> Option<String> {
        let path = text.split("/dev/").nth(1)?;
        let end = path.find(|c: char| !c.is_ascii_alphanumeric() && !"-_/".contains(c)).unwrap_or(path.len());
        let name = path[..end].trim_end_matches(['/', '-', '_']).rsplit('/').next()?;
        (!name.is_empty() && name.len() <= NAME_MAX).then(|| name.to_owned())
    };
    device(&block.at.command.whole).or_else(|| device(&block.at.label))
}

/// The beginning of the keys.
fn head(block: &Block<'_>, out: &mut Sink) -> String {
    let name = drive(block).unwrap_or_else(|| {
        out.note(format!("SMART does not name its drive: it is called {UNNAMED}; keep the command"));
        UNNAMED.to_owned()
    });
    // `nvme0` has its health as the drive `nvme0n1`.
    let is_controller =
        name.strip_prefix("nvme").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
    format!("disk_health.{name}{}", if is_controller { "n1" } else { "" })
}

/// The raw value of an attribute: the tenth column of smartmontools, or what stands behind `raw=`.
fn attribute(line: &str) -> Option<(&'static str, i64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().take(2).position(|word| ATTRIBUTES.iter().any(|(name, _)| name == word))?;
    let (_, fact) = ATTRIBUTES.iter().find(|(name, _)| *name == words[at])?;
    let named = words.iter().find_map(|word| word.strip_prefix("raw=").or(word.strip_prefix("RAW=")));
    // `  5 Reallocated_Sector_Ct 0x0033 100 100 010 Pre-fail Always - 2872`; `-x` has letters for the flags,
    // and neither type nor update.
    let column = || words.get(if words.get(2)?.starts_with("0x") { 9 } else { 7 });
    let raw = named.or_else(|| column().copied().filter(|_| at == 1))?;
    Some((fact, leading(raw)? as i64))
}

/// Takes a line; whether it is one of a drive.
fn put(line: &str, key: &str, out: &mut Sink) -> bool {
    if let Some((fact, raw)) = attribute(line) {
        out.fact(format!("{key}.{fact}"), FactValue::Int(raw));
        return true;
    }
    let Some((name, value)) = line.split_once(':') else { return false };
    let (name, value) = (name.trim().to_lowercase(), value.trim());
    match name.as_str() {
        "smart overall-health self-assessment test result" | "smart health status" => {
            let is_fine = ["PASSED", "OK"].iter().any(|word| value.starts_with(word));
            out.text(format!("{key}.smart_status"), if is_fine { "ok" } else { "failing" });
        }
        "critical warning" | "critical_warning" => warnings(value, key, out),
        "device model" | "model number" | "product" => {
            out.text(key.replacen("disk_health.", "storage.", 1) + ".model", value);
        }
        "ata error count" => integer(value, &format!("{key}.ata_errors"), out),
        _ => match FIELDS.iter().find(|(field, _)| *field == name) {
            // `38 Celsius`, `38°C (311 Kelvin)`, `100%`, `1,234`
            Some((_, fact)) => integer(value, &format!("{key}.{fact}"), out),
            None => return false,
        },
    }
    true
}

fn integer(value: &str, key: &str, out: &mut Sink) {
    if let Some(number) = leading(&value.replace(',', "")) {
        out.fact(key, FactValue::Int(number as i64));
    }
}

/// `0x04`, `4`
fn warnings(value: &str, key: &str, out: &mut Sink) {
    let value = value.split_whitespace().next().unwrap_or_default();
    let bits =
        value.strip_prefix("0x").map_or_else(|| value.parse().ok(), |hex| u8::from_str_radix(hex, 16).ok());
    let Some(bits) = bits else { return };
    let named = (0..).zip(WARNINGS).filter(|(bit, _)| bits & (1 << bit) != 0);
    let named: Vec<String> = named.map(|(_, word)| word.to_owned()).collect();
    if !named.is_empty() {
        out.fact(format!("{key}.warnings"), FactValue::List(named));
    }
}

/// Reads lines up to the last one that is used, over those of other parts of the report.
fn lines(block: &Block<'_>, out: &mut Sink) -> usize {
    let key = head(block, out);
    // All below a prompt that asks is of the drive, up to a sentence of its own.
    let is_asked = block.at.command.is(&["smartctl", "nvme"]);
    let mut used = None;
    for (at, line) in block.lines.iter().enumerate() {
        let text = line.trim();
        if put(text, &key, out) {
            used = Some(at);
        } else if !is_asked && (at > used.unwrap_or(0) + APART_MAX || is_elsewhere(text)) {
            break;
        }
    }
    if used.is_none() {
        out.unread(0, "nothing of the health of the drive: only the head of the report");
    }
    let rest = used.map_or(1, |at| at + 1);
    let is_own = |at: &usize| block.line(at - 1).trim().is_empty() && is_elsewhere(block.line(*at));
    if is_asked { (rest..block.lines.len()).find(is_own).unwrap_or(block.lines.len()) } else { rest }
}

/// Whether a line is no longer of a drive: a sentence.
fn is_elsewhere(text: &str) -> bool {
    let words = text.split_whitespace().filter(|w| w.bytes().all(|b| b.is_ascii_lowercase())).count();
    words >= 5
}

/// `smartctl 7.3 2022-02-28 r5338 [x86_64-linux-6.1.0] (local build)`
fn is_head(text: &str) -> bool {
    let version = text.strip_prefix("smartctl ").map(|rest| rest.trim_start_matches("version "));
    version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

impl Reader for Smart {
    fn name(&self) -> &'static str {
        "smartctl"
    }

    fn describes(&self) -> &'static str {
        "smartctl -a, -x: health of a drive"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let text = block.first().trim();
        is_head(text)
            || text.starts_with("=== START OF ")
            || text.starts_with("SMART overall-health self-assessment")
            || text.starts_with("SMART Health Status:")
            || text.starts_with("SMART/Health Information (NVMe")
            || attribute(text).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        lines(block, out)
    }
}

impl Reader for NvmeLog {
    fn name(&self) -> &'static str {
        "nvme-smart-log"
    }

    fn describes(&self) -> &'static str {
        "nvme smart-log: health of an NVMe drive"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let text = block.first().trim();
        text.starts_with("Smart Log for NVME device:") || text.starts_with("critical_warning")
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        // `Smart Log for NVME device:nvme0n1 namespace-id:ffffffff`
        let named = block.first().split("device:").nth(1).and_then(|rest| rest.split_whitespace().next());
        let key = match named.map(|name| name.trim_start_matches("/dev/")) {
            Some(name) if !name.is_empty() && !name.contains('.') => format!("disk_health.{name}"),
            _ => head(block, out),
        };
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            if !put(text, &key, out) && !text.contains(':') {
                break;
            }
            taken = at + 1;
        }
        taken
    }
}
