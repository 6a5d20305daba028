//! `dd`: `8589934592 bytes (8.6 GB) copied, 50.5 s, 170 MB/s`. Lines come in, a figure of a sequential read
//! or write goes out. Without a direct or synchronous flag it may be that of the page cache, which is noted.

use linerate_model::snapshot::{StorageFigure, StoragePattern};

use super::storage_words;
use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::number;

/// The format.
pub(crate) struct Dd;

/// Bytes and seconds.
fn copied(line: &str) -> Option<(f64, f64)> {
    let (bytes, rest) = line.trim().split_once(" bytes ")?;
    let seconds = rest.split_once("copied, ")?.1.split_whitespace().next()?;
    Some((number(bytes)?, number(&seconds.replace(',', "."))?)).filter(|(_, seconds)| *seconds > 0.0)
}

/// The words behind an option of a command: `direct` and `dsync` of `oflag=direct,dsync`.
fn flags<'c>(command: &'c str, option: &'c str) -> impl Iterator<Item = &'c str> {
    command
        .split_whitespace()
        .filter_map(move |word| word.strip_prefix(option))
        .flat_map(|all| all.split(','))
}

/// `8192+0 records in`
fn is_record(line: &str) -> bool {
    let line = line.trim();
    line.ends_with(" records in") || line.ends_with(" records out")
}

impl Reader for Dd {
    fn name(&self) -> &'static str {
        "dd"
    }

    fn describes(&self) -> &'static str {
        "dd: rate of a copy"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        is_record(block.first()) || copied(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let records = block.lines.iter().take_while(|line| is_record(line)).count();
        let Some((bytes, seconds)) = copied(block.line(records)) else {
            return records.max(1);
        };
        let command = &block.at.command;
        // A line above that is no prompt may be the command, too.
        let is_dd =
            |text: &&str| text.split_whitespace().any(|w| w.starts_with("if=") || w.starts_with("of="));
        let command = [command.whole.as_str(), &block.at.label].into_iter().find(is_dd);
        let of_dd = command.is_some();
        let command = command.unwrap_or_default();
        let writes = !command.contains("of=/dev/null");
        // Each record waits until it is on the medium: `oflag=dsync`, `oflag=sync`.
        let is_each =
            ["dsync", "sync"].iter().any(|flag| flags(command, "oflag=").any(|given| given == *flag));
        let count: f64 = block.lines[..records]
            .last()
            .and_then(|line| number(line.trim().split('+').next()?))
            .unwrap_or(0.0);
        let per_s = (is_each && count >= 1.0).then(|| count / seconds);
        if !of_dd {
            out.note(format!(
                "{}: the command of dd is not in the text: its figure may be that of the page cache",
                block.at.file
            ));
        } else if !["direct", "sync"].iter().any(|flag| command.contains(flag)) {
            out.note(format!(
                "{}: dd without oflag=direct or conv=fdatasync: its figure may be that of the page cache",
                block.at.file
            ));
        }
        out.figure(StorageFigure {
            what: storage_words::location(block.at),
            variant: storage_words::transport(block.at).unwrap_or_default(),
            pattern: if writes { StoragePattern::Write } else { StoragePattern::Read },
            bytes_per_s: bytes / seconds,
            requests_per_s: per_s,
            wait_ms: per_s.map(|per_s| 1000.0 / per_s),
            ..StorageFigure::default()
        });
        records + 1
    }
}
