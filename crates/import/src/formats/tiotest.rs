//! Tables of tiotest (tiobench): a rate for each pattern. `MB` are 1048576 bytes there (`MBYTE` in
//! `tiotest.h`). The heading, the file's name or the folder of `-d` name a replicated disk and its transport.

use linerate_model::snapshot::{StorageFigure, StoragePattern};

use super::storage_words;
use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::number;

/// The format.
pub(crate) struct Tiotest;

/// Bytes of its megabyte.
const MEGABYTE: f64 = 1_048_576.0;

/// `| Random Write   16 MBs |    0.9 s |  16.400 MB/s |   0.0 %  |  198.4 % |`: pattern and MB/s.
fn row(line: &str) -> Option<(StoragePattern, f64)> {
    let cells: Vec<&str> = line.trim().strip_prefix('|')?.split('|').map(str::trim).collect();
    let item = cells.first()?;
    let patterns = [
        ("Random Write", StoragePattern::RandomWrite),
        ("Random Read", StoragePattern::RandomRead),
        ("Write", StoragePattern::Write),
        ("Read", StoragePattern::Read),
    ];
    let (_, pattern) = patterns.iter().find(|(name, _)| item.starts_with(name))?;
    item.ends_with("MBs").then_some(())?;
    let rate = cells.get(2)?.strip_suffix("MB/s")?.trim();
    Some((*pattern, number(rate)?))
}

impl Reader for Tiotest {
    fn name(&self) -> &'static str {
        "tiotest"
    }

    fn describes(&self) -> &'static str {
        "tables of tiotest"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first().trim();
        line.starts_with("Tiotest results for") || row(line).is_some() || line.starts_with("| Item ")
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let (mut taken, mut latency) = (0, false);
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            if let Some((pattern, rate)) = row(text) {
                if !latency {
                    out.figure(StorageFigure {
                        what: storage_words::location(block.at),
                        variant: storage_words::transport(block.at)
                            .or_else(|| storage_words::announced_transport(block.at))
                            .unwrap_or_default(),
                        pattern,
                        bytes_per_s: rate * MEGABYTE,
                        ..StorageFigure::default()
                    });
                }
            } else if text.starts_with("Tiotest results for") && at > 0 {
                // The next table, perhaps under another heading.
                break;
            } else if text.starts_with("Tiotest latency") {
                latency = true;
            } else if !(text.is_empty()
                || text.starts_with(['|', '+', '`', ','])
                || text.starts_with("Tiotest results"))
            {
                break;
            }
            if !text.is_empty() {
                taken = at + 1;
            }
        }
        taken.max(1)
    }
}
