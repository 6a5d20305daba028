//! `/proc/interrupts`: counts by CPU. The table comes in; counters by number, and for devices the names of
//! their interrupts, go out.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Interrupts;

/// Number of CPUs in the heading.
fn heading(line: &str) -> Option<usize> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_cpu = |w: &&str| w.strip_prefix("CPU").is_some_and(|n| n.parse::<u32>().is_ok());
    (!words.is_empty() && words.iter().all(is_cpu)).then_some(words.len())
}

/// Number or short name, sum of the counts, rest of the line.
fn row(line: &str, cpus: usize) -> Option<(&str, i64, &str)> {
    let (id, rest) = line.split_once(':')?;
    let id = id.trim();
    let known = !id.is_empty() && id.len() <= 8 && id.bytes().all(|b| b.is_ascii_alphanumeric());
    let mut sum = 0_i64;
    let mut counts = 0;
    let mut rest = rest.trim_start();
    while counts < cpus {
        let word = rest.split_whitespace().next().unwrap_or_default();
        let Ok(count) = word.parse::<i64>() else { break };
        sum = sum.saturating_add(count);
        counts += 1;
        rest = rest[word.len()..].trim_start();
    }
    // ERR and MIS have one count only.
    (known && counts > 0).then_some((id, sum, rest))
}

impl Reader for Interrupts {
    fn name(&self) -> &'static str {
        "interrupts"
    }

    fn describes(&self) -> &'static str {
        "/proc/interrupts"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        heading(block.first()).is_some_and(|cpus| (1..8).any(|n| row(block.line(n), cpus).is_some()))
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let Some(cpus) = heading(block.first()) else {
            out.unread(0, "no heading of /proc/interrupts");
            return 1;
        };
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate().skip(1) {
            let Some((id, sum, what)) = row(line, cpus) else {
                if line.trim().is_empty() {
                    continue;
                }
                break;
            };
            taken = at + 1;
            // The kernel's own (LOC, RES) are no interrupts of devices.
            let Ok(number) = id.parse::<u32>() else { continue };
            out.counter(format!("irq.{number}"), sum);
            let name = what.split_whitespace().next_back().unwrap_or_default();
            // `em1-TxRx-3`, `eth0-rx-0`, `mlx5_comp3@pci:0000:3b:00.0`: only those that begin with a device's
            // name.
            let nic = name.split(['-', '@', ':']).next().unwrap_or_default();
            let is_nic = ["eth", "en", "em", "ib", "p"].iter().any(|start| {
                nic.strip_prefix(start)
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || "ops".contains(c)))
            });
            if is_nic && nic.len() < name.len() && nic.bytes().any(|b| b.is_ascii_digit()) {
                out.text(format!("{}.irq.{number}.name", super::ethtool::key(nic)), name);
            }
        }
        taken
    }
}
