//! nccl-tests (`all_reduce_perf` and the like): ranks and the bus bandwidth by size. Lines come in; facts
//! `nccl.…` of each host that has a rank go out. GB/s are decimal bytes.

use linerate_model::fact::FactValue;

use crate::context::is_host;
use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::number;

/// The format.
pub(crate) struct Nccl;

/// `#  Rank  0 Group  0 Pid   1234 on     node1 device  0 [0x07] NVIDIA A100`: the host.
fn rank(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix('#')?.trim_start();
    let (_, rest) = rest.strip_prefix("Rank ")?.split_once(" on ")?;
    rest.split_whitespace().next().filter(|host| is_host(host))
}

/// A row: size in bytes, and the first bus bandwidth in GB/s.
fn row(line: &str) -> Option<(f64, f64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let size = number(words.first()?)?;
    // size count type redop root | time algbw busbw #wrong | the same again; some have no redop or root.
    let begin = words
        .iter()
        .position(|word| ["float", "half", "int8", "uint8", "bfloat16", "double", "int32"].contains(word))?;
    let figures: Vec<f64> =
        words[begin + 1..].iter().filter(|word| word.contains('.')).filter_map(|w| number(w)).collect();
    Some((size, *figures.get(2)?))
}

/// `# Avg bus bandwidth    : 12.3456`
fn average(line: &str) -> Option<f64> {
    number(line.split_once("Avg bus bandwidth")?.1.trim_start_matches([' ', ':']).trim())
}

impl Reader for Nccl {
    fn name(&self) -> &'static str {
        "nccl-tests"
    }

    fn describes(&self) -> &'static str {
        "nccl-tests: bus bandwidth of collectives"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first();
        line.starts_with("# nThread ")
            || rank(line).is_some()
            || row(line).is_some()
            || average(line).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut hosts: Vec<&str> = Vec::new();
        let (mut best, mut mean, mut largest) = (0.0_f64, None, (0.0, 0.0));
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some(host) = rank(line) {
                if !hosts.contains(&host) && hosts.len() < RANKS_MAX {
                    hosts.push(host);
                }
            } else if let Some((size, busbw)) = row(line) {
                best = best.max(busbw);
                if size >= largest.0 {
                    largest = (size, busbw);
                }
            } else if let Some(found) = average(line) {
                mean = Some(found);
            } else if !(line.trim().is_empty() || line.trim_start().starts_with('#')) {
                break;
            }
            if !line.trim().is_empty() {
                taken = at + 1;
            }
        }
        let of =
            if hosts.is_empty() { block.at.host.as_deref().into_iter().collect() } else { hosts.clone() };
        for host in of {
            out.of_host(host);
            for (name, value) in
                [("busbw_best", Some(best)), ("busbw_mean", mean), ("busbw_largest", Some(largest.1))]
            {
                if let Some(value) = value.filter(|value| *value > 0.0) {
                    out.fact(format!("nccl.{name}_gbyte_per_s"), FactValue::Float(value));
                }
            }
            if !hosts.is_empty() {
                out.fact("nccl.hosts", FactValue::Int(hosts.len() as i64));
            }
        }
        taken.max(1)
    }
}

/// Most hosts of a test.
const RANKS_MAX: usize = 4096;
