//! `/proc/net/softnet_stat`: a row of hexadecimal numbers for each CPU. The rows come in, their sums go out
//! as counters.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Softnet;

/// Columns that are kept: frames processed, dropped, times the budget was used up, times another CPU asked.
const COLUMNS: [(usize, &str); 4] =
    [(0, "processed"), (1, "dropped"), (2, "time_squeeze"), (9, "received_rps")];

fn row(line: &str) -> Option<Vec<i64>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_hex = |w: &&str| w.len() == 8 && w.bytes().all(|b| b.is_ascii_hexdigit());
    if !(9..=20).contains(&words.len()) || !words.iter().all(is_hex) {
        return None;
    }
    words.iter().map(|w| i64::from_str_radix(w, 16).ok()).collect()
}

impl Reader for Softnet {
    fn name(&self) -> &'static str {
        "softnet_stat"
    }

    fn describes(&self) -> &'static str {
        "/proc/net/softnet_stat"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        row(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let rows: Vec<Vec<i64>> = block.lines.iter().map_while(|line| row(line)).collect();
        if rows.is_empty() {
            out.unread(0, "no row of softnet_stat");
        }
        for (column, name) in COLUMNS {
            if rows.iter().any(|row| row.len() > column) {
                let sum =
                    rows.iter().filter_map(|row| row.get(column)).fold(0_i64, |a, b| a.saturating_add(*b));
                out.counter(format!("softnet.{name}"), sum);
            }
        }
        rows.len().max(1)
    }
}
