//! `tc -s qdisc show`: queueing disciplines. Lines come in; kind and rate of the root, and packets dropped,
//! go out as facts and counters of the device.

use linerate_model::fact::FactValue;

use super::ethtool::key;
use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::number;

/// The format.
pub(crate) struct Qdisc;

/// `qdisc tbf 8001: dev eth0 root refcnt 2 rate 10Mbit burst 1600b lat 50ms`: its words.
fn head(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    (words.first() == Some(&"qdisc") && words.get(2).is_some_and(|handle| handle.ends_with(':')))
        .then_some(words)
}

/// Bit/s of `10Mbit`, `10000Kbit`.
fn rate(word: &str) -> Option<i64> {
    let end = word.find(|c: char| c.is_alphabetic())?;
    let factor = match &word[end..] {
        "bit" => 1.0,
        "Kbit" | "kbit" => 1e3,
        "Mbit" | "mbit" => 1e6,
        "Gbit" | "gbit" => 1e9,
        _ => return None,
    };
    Some((number(&word[..end])? * factor) as i64)
}

impl Reader for Qdisc {
    fn name(&self) -> &'static str {
        "tc-qdisc"
    }

    fn describes(&self) -> &'static str {
        "tc -s qdisc show"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        head(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut root = None;
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            if let Some(words) = head(line) {
                let after =
                    |word: &str| words.iter().position(|w| *w == word).and_then(|at| words.get(at + 1));
                let asked = block.at.command.value(&["dev"]).or(block.at.nic.as_deref());
                let nic = key(after("dev").copied().or(asked).unwrap_or("unnamed"));
                root = words.contains(&"root").then(|| nic.clone());
                if root.is_some() {
                    out.text(format!("{nic}.qdisc"), words[1]);
                    if let Some(bit) = after("rate").and_then(|word| rate(word)) {
                        out.fact(format!("{nic}.qdisc_rate_bit"), FactValue::Int(bit));
                    }
                }
            } else if let Some((_, rest)) = text.split_once("(dropped ") {
                let dropped = rest.split([',', ' ']).next().and_then(|n| n.parse().ok());
                if let Some((nic, dropped)) = root.as_ref().zip(dropped) {
                    out.counter(format!("{nic}.stat.qdisc_dropped"), dropped);
                }
            } else if !(text.is_empty() || line.starts_with(' ')) {
                break;
            }
            if !text.is_empty() {
                taken = at + 1;
            }
        }
        taken.max(1)
    }
}
