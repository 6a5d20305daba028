//! `/proc/diskstats`: counters of block devices since boot. Lines come in, counters go out.

use linerate_model::disk::FIELDS;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Diskstats;

fn row(line: &str) -> Option<(&str, Vec<i64>)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [major, minor, name, values @ ..] = &words[..] else { return None };
    major.parse::<u32>().ok()?;
    minor.parse::<u32>().ok()?;
    if !(11..=FIELDS.len() + 4).contains(&values.len())
        || !name.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        return None;
    }
    let values: Option<Vec<i64>> = values.iter().map(|v| v.parse().ok()).collect();
    Some((name, values?))
}

impl Reader for Diskstats {
    fn name(&self) -> &'static str {
        "diskstats"
    }

    fn describes(&self) -> &'static str {
        "/proc/diskstats"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        row(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut taken = 0;
        for line in block.lines {
            let Some((name, values)) = row(line) else { break };
            taken += 1;
            // Devices that never did anything: loop devices, empty drives.
            if values.iter().all(|v| *v == 0) {
                continue;
            }
            let disk = name.replace('.', "/");
            for (field, value) in FIELDS.iter().zip(values).filter(|(field, _)| **field != "in_flight") {
                out.counter(format!("disk.{disk}.stat.{field}"), value);
            }
        }
        if taken == 0 {
            out.unread(0, "no row of diskstats");
        }
        taken.max(1)
    }
}
