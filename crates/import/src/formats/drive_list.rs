//! `hdparm -W`, `hdparm -I` and `nvme list`: write cache and model of drives. Lines come in, facts
//! `disk.<drive>.…` of the names of our own readers go out.

use super::smart;
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// `hdparm -W`.
pub(crate) struct Hdparm;
/// `hdparm -I`.
pub(crate) struct HdparmModel;
/// `nvme list`.
pub(crate) struct NvmeList;

/// Longest name of a model; ATA has 40 characters.
const MODEL_MAX: usize = 60;

/// `/dev/sdb:`
fn device(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix("/dev/")?.strip_suffix(':')?;
    (!name.is_empty() && name.len() <= 32 && name.bytes().all(|b| b.is_ascii_alphanumeric())).then_some(name)
}

/// `write-caching =  0 (off)`
fn caching(line: &str) -> Option<&'static str> {
    let value = line.trim().strip_prefix("write-caching")?.trim().strip_prefix('=')?.trim();
    match value.split_whitespace().next()? {
        "0" => Some("write through"),
        "1" => Some("write back"),
        _ => None,
    }
}

impl Reader for Hdparm {
    fn name(&self) -> &'static str {
        "hdparm"
    }

    fn describes(&self) -> &'static str {
        "hdparm -W: write cache of a drive"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        device(block.first()).is_some() && (1..4).any(|n| caching(block.line(n)).is_some())
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut drive = None;
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            if let Some(name) = device(text) {
                drive = Some(name);
            } else if let Some((drive, cache)) = drive.zip(caching(text)) {
                out.text(format!("disk.{drive}.drive_cache"), cache);
            } else if !(text.is_empty() || text.contains(" = ") || text.starts_with("setting ")) {
                break;
            }
            if !text.is_empty() {
                taken = at + 1;
            }
        }
        taken.max(1)
    }
}

/// `Model Number:       ST4000DM004-2CV104` of `hdparm -I`.
fn model(line: &str) -> Option<&str> {
    let value = line.trim().strip_prefix("Model Number")?.trim_start().strip_prefix(':')?.trim();
    (!value.is_empty() && value.len() <= MODEL_MAX).then_some(value)
}

impl Reader for HdparmModel {
    fn name(&self) -> &'static str {
        "hdparm-I"
    }

    fn describes(&self) -> &'static str {
        "hdparm -I: model of a drive"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        model(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        if let Some(model) = model(block.first()) {
            let drive = smart::drive(block).unwrap_or_else(|| smart::UNNAMED.to_owned());
            out.text(format!("storage.{drive}.model"), model);
        }
        1
    }
}

/// Drive and model of a line of `nvme list`; the model stands between two offsets.
fn row(line: &str, (start, end): (usize, usize)) -> Option<(&str, &str)> {
    let name = line.strip_prefix("/dev/")?.split_whitespace().next()?;
    Some((name, line.get(start..end.min(line.len()))?.trim()))
}

/// Beginning and end of the column `Model`, by the dashes below the heading.
fn model_column(heading: &str, dashes: &str) -> Option<(usize, usize)> {
    let at = heading.find("Model")?;
    let width = dashes.get(at..)?.find(' ').unwrap_or(dashes.len() - at);
    Some((at, at + width))
}

impl Reader for NvmeList {
    fn name(&self) -> &'static str {
        "nvme-list"
    }

    fn describes(&self) -> &'static str {
        "nvme list: NVMe drives and their models"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        block.first().starts_with("Node ")
            && block.first().contains(" Model ")
            && block.line(1).starts_with("---")
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let Some(column) = model_column(block.first(), block.line(1)) else { return 1 };
        let mut taken = 2;
        for (at, line) in block.lines.iter().enumerate().skip(2) {
            let Some((name, model)) = row(line, column) else { break };
            out.text(format!("disk.{name}.model"), model);
            taken = at + 1;
        }
        taken.min(block.lines.len())
    }
}
