//! `btrfs qgroup show` and `btrfs quota rescan -s`: whether a file system keeps quotas. Lines come in, facts
//! `btrfs.…` go out.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Btrfs;

/// `0/257   16.00KiB   16.00KiB`
fn is_group(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let id = words.next().and_then(|word| word.split_once('/'));
    id.is_some_and(|(level, number)| level.parse::<u16>().is_ok() && number.parse::<u64>().is_ok())
        && words.next().is_some()
}

/// `qgroupid         rfer         excl`, `Qgroupid    Referenced    Exclusive   Path`
fn is_heading(line: &str) -> bool {
    line.trim_start().to_lowercase().starts_with("qgroupid")
}

/// `rescan operation running (current key 0)`
fn is_rescan(line: &str) -> bool {
    line.trim_start().starts_with("rescan operation running")
}

impl Reader for Btrfs {
    fn name(&self) -> &'static str {
        "btrfs"
    }

    fn describes(&self) -> &'static str {
        "btrfs qgroup show, btrfs quota rescan -s: quotas of a file system"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        is_heading(block.first()) || is_rescan(block.first())
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        if is_rescan(block.first()) {
            out.fact("btrfs.quota_rescans", FactValue::Int(1));
            return 1;
        }
        let is_rule = |line: &str| line.trim().bytes().all(|b| b"- ".contains(&b));
        let rows =
            block.lines.iter().skip(1).take_while(|line| is_group(line) || is_rule(line) && !line.is_empty());
        let rows: Vec<&&str> = rows.collect();
        let groups = rows.iter().filter(|line| is_group(line)).count();
        out.fact("btrfs.quota_groups", FactValue::Int(i64::try_from(groups).unwrap_or(i64::MAX)));
        rows.len() + 1
    }
}
