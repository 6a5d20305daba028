//! `iptables -L -t nat | wc -l`: how many rules were counted. A number comes in, a fact
//! `firewall.….rules` goes out.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct CountedRules;

/// The number of a line that has nothing else.
fn count(line: &str) -> Option<i64> {
    line.trim().parse().ok().filter(|count| *count > 0)
}

impl Reader for CountedRules {
    fn name(&self) -> &'static str {
        "counted-rules"
    }

    fn describes(&self) -> &'static str {
        "iptables … | wc -l, nft list ruleset | wc -l: the number of rules"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let command = &block.at.command.whole;
        let is_counted =
            command.contains("wc -l") && ["iptables", "nft "].iter().any(|name| command.contains(name));
        is_counted && !command.contains("grep") && count(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        if let Some(count) = count(block.first()) {
            // Of the table nat the first packet of each connection passes all; the hook is unknown.
            out.fact("firewall.prerouting.rules".to_owned(), FactValue::Int(count));
        }
        1
    }
}
