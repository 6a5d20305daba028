//! `cpu.stat` of a group of processes: how often its quota of CPU time held it back. Lines come in, facts
//! `cpu.quota.…` go out.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct CgroupCpu;

/// `nr_throttled 34`: a name of the file with its number; a file that `grep .` named may stand in front.
fn row(line: &str) -> Option<(&str, i64)> {
    let (name, number) = line.trim().rsplit_once(' ')?;
    let name = name.rsplit(':').next()?;
    let is_name = [
        "nr_periods",
        "nr_throttled",
        "nr_bursts",
        "throttled_time",
        "throttled_usec",
        "usage_usec",
        "user_usec",
        "system_usec",
        "burst_usec",
        "nice_usec",
        "core_sched.force_idle_usec",
    ];
    Some((name, number.parse().ok()?)).filter(|(name, _)| is_name.contains(name))
}

impl Reader for CgroupCpu {
    fn name(&self) -> &'static str {
        "cgroup-cpu"
    }

    fn describes(&self) -> &'static str {
        "cpu.stat of a cgroup: periods in which its quota was used up"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        row(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let rows: Vec<_> = block.lines.iter().map_while(|line| row(line)).collect();
        for (name, count) in &rows {
            if let Some(name) = name.strip_prefix("nr_") {
                out.fact(format!("cpu.quota.{name}"), FactValue::Int(*count));
            }
        }
        rows.len().max(1)
    }
}
