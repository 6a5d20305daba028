//! `nfsstat -c`, `-rc`: requests of the NFS client of a host, over all its mounts. Lines come in, facts
//! `nfs.all.…` go out.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Nfsstat;

/// Numbers of a line, if it has no other words.
fn numbers(line: &str) -> Option<Vec<i64>> {
    let all: Option<Vec<i64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
    all.filter(|all| !all.is_empty())
}

impl Reader for Nfsstat {
    fn name(&self) -> &'static str {
        "nfsstat"
    }

    fn describes(&self) -> &'static str {
        "nfsstat -c: requests of the NFS client"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        block.first().trim() == "Client rpc stats:" && block.line(1).trim().starts_with("calls")
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        // `calls retrans authrefrsh`, and their numbers below.
        if let Some([calls, again, ..]) = numbers(block.line(2)).as_deref()
            && *calls > 0
        {
            let percent = (100_000.0 * *again as f64 / *calls as f64).round() / 1e3;
            out.fact("nfs.all.calls", FactValue::Int(*calls));
            out.fact("nfs.all.repeated_percent", FactValue::Float(percent));
        } else {
            out.unread(2, "no numbers below the names");
        }
        // The tables of single operations follow: names with shares, and lines of names.
        let is_table = |line: &&&str| {
            let text = line.trim();
            let plain =
                text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b" %_\t".contains(&b));
            text.is_empty() || plain || text.starts_with("Client nfs v")
        };
        (3 + block.lines.iter().skip(3).take_while(is_table).count()).min(block.lines.len())
    }
}
