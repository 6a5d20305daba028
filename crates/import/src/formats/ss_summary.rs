//! `ss -s`: numbers of sockets. Lines come in, facts `sockets.tcp.…` go out.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::leading;

/// The format.
pub(crate) struct SsSummary;

/// `TCP:   12 (estab 3, closed 2, orphaned 0, synrecv 0, timewait 1/0), ports 0`: the sockets by state.
fn states(line: &str) -> Option<(i64, Vec<(&str, i64)>)> {
    let rest = line.strip_prefix("TCP:")?.trim();
    let (all, rest) = rest.split_once(" (")?;
    let inside = rest.split(')').next()?;
    let parts = inside.split(", ").filter_map(|part| {
        let (name, value) = part.split_once(' ')?;
        Some((name, leading(value)? as i64))
    });
    Some((all.parse().ok()?, parts.collect()))
}

impl Reader for SsSummary {
    fn name(&self) -> &'static str {
        "ss-s"
    }

    fn describes(&self) -> &'static str {
        "ss -s: numbers of sockets"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        states(block.first()).is_some()
            || block.first().starts_with("Total: ") && states(block.line(1)).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some((all, parts)) = states(line) {
                out.fact("sockets.tcp.all", FactValue::Int(all));
                for (state, count) in parts {
                    out.fact(format!("sockets.tcp.{state}"), FactValue::Int(count));
                }
            } else if !(line.trim().is_empty()
                || ["Total", "Transport", "*", "RAW", "UDP", "TCP", "INET", "FRAG"]
                    .iter()
                    .any(|head| line.starts_with(head)))
            {
                break;
            }
            if !line.trim().is_empty() {
                taken = at + 1;
            }
        }
        taken.max(1)
    }
}
