//! `conntrack -S`: misfortunes of the table of connections, one line for each CPU. Lines come in, the sums of
//! all CPUs go out as counters of the names of our own readers.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Conntrack;

/// What is kept of a line.
const NAMES: [&str; 2] = ["insert_failed", "drop"];

/// `cpu=0   found=27 invalid=1 insert=0 insert_failed=7 drop=7 early_drop=0 error=0`: its numbers by name.
fn row(line: &str) -> Option<Vec<(&str, i64)>> {
    line.trim_start().strip_prefix("cpu=")?;
    let pairs = line.split_whitespace().map(|word| {
        let (name, value) = word.split_once('=')?;
        Some((name, value.parse().ok()?))
    });
    pairs.collect::<Option<Vec<_>>>().filter(|pairs| pairs.iter().any(|(name, _)| *name == "insert_failed"))
}

impl Reader for Conntrack {
    fn name(&self) -> &'static str {
        "conntrack"
    }

    fn describes(&self) -> &'static str {
        "conntrack -S: packets without an entry in the table of connections"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        row(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let rows: Vec<_> = block.lines.iter().map_while(|line| row(line)).collect();
        for wanted in NAMES {
            let of_rows = rows.iter().flatten().filter(|(name, _)| *name == wanted);
            let sum = of_rows.fold(0_i64, |sum, (_, value)| sum.saturating_add(*value));
            out.counter(format!("conntrack.{wanted}"), sum);
        }
        rows.len().max(1)
    }
}
