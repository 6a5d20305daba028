//! `tcpretrans` of bcc: one line for each segment that was sent again. Lines come in; facts with the number
//! by the far end go out: `tcpretrans.to.<address>`, and `tcpretrans.count`.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Tcpretrans;

/// Most far ends that are counted.
const ENDS_MAX: usize = 1024;

/// `01:55:05 0      4  10.0.0.1:22       R> 10.0.0.2:53194    ESTABLISHED`: local and remote address.
fn row(line: &str) -> Option<(&str, &str)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| ["R>", "L>"].contains(word))?;
    let address = |word: &'_ str| word.rsplit_once(':').map(|(address, _)| address.len());
    let (local, remote) = (*words.get(at.checked_sub(1)?)?, *words.get(at + 1)?);
    words.first()?.contains(':').then_some((&local[..address(local)?], &remote[..address(remote)?]))
}

impl Reader for Tcpretrans {
    fn name(&self) -> &'static str {
        "tcpretrans"
    }

    fn describes(&self) -> &'static str {
        "tcpretrans: segments sent again, by receiver"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first();
        line.starts_with("Tracing retransmits") || line.contains("LADDR:LPORT") || row(line).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut counts = std::collections::BTreeMap::<&str, i64>::new();
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some((local, remote)) = row(line) {
                if let Some(host) = block.at.host.as_deref().filter(|_| !block.at.weak) {
                    out.alias(local, host);
                }
                if counts.len() < ENDS_MAX || counts.contains_key(remote) {
                    *counts.entry(remote).or_default() += 1;
                }
            } else if !(line.trim().is_empty()
                || line.starts_with("Tracing retransmits")
                || line.contains("LADDR:LPORT"))
            {
                break;
            }
            if !line.trim().is_empty() {
                taken = at + 1;
            }
        }
        let count: i64 = counts.values().sum();
        out.fact("tcpretrans.count", FactValue::Int(count));
        for (remote, count) in counts {
            out.fact(format!("tcpretrans.to.{}", remote.replace('.', "/")), FactValue::Int(count));
        }
        taken.max(1)
    }
}
