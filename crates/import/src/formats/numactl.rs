//! `numactl -H`: NUMA nodes, their CPUs and memory. Lines come in, facts of the processor go out.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::leading;

/// The format.
pub(crate) struct Numactl;

/// `available: 2 nodes (0-1)`: their number.
fn available(line: &str) -> Option<i64> {
    let rest = line.strip_prefix("available: ")?;
    rest.contains(" node").then(|| leading(rest).map(|count| count as i64)).flatten()
}

/// `node 0 cpus: 0 1 2 3`: number of the node, topic and what stands behind it.
fn node(line: &str) -> Option<(u32, &str, &str)> {
    let (number, rest) = line.strip_prefix("node ")?.split_once(' ')?;
    let (topic, rest) = rest.split_once(':')?;
    Some((number.parse().ok()?, topic, rest.trim()))
}

impl Reader for Numactl {
    fn name(&self) -> &'static str {
        "numactl"
    }

    fn describes(&self) -> &'static str {
        "numactl -H: NUMA nodes"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        available(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            if let Some(nodes) = available(text) {
                out.fact("cpu.numa_nodes", FactValue::Int(nodes));
            } else if let Some((number, topic, value)) = node(text) {
                match topic {
                    "cpus" => out.text(format!("cpu.numa.{number}.cpus"), value),
                    "size" | "free" => {
                        if let Some(mib) = leading(value) {
                            out.fact(format!("cpu.numa.{number}.{topic}_mib"), FactValue::Int(mib as i64));
                        }
                    }
                    _ => {}
                }
            } else if !(text.starts_with("node ") || text.starts_with(|c: char| c.is_ascii_digit())) {
                break;
            }
            taken = at + 1;
        }
        taken.max(1)
    }
}
