//! `ip neigh`: how many neighbours the host has, and of how many the hardware address is not
//! known. Lines come in, facts `neighbours.…` go out.

use std::net::IpAddr;

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Neighbours;

/// States of the kernel.
const STATES: [&str; 8] =
    ["REACHABLE", "STALE", "DELAY", "PROBE", "FAILED", "INCOMPLETE", "PERMANENT", "NOARP"];

/// `192.0.2.7 dev eth0 lladdr 02:00:00:00:00:07 REACHABLE`: the state.
fn state(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.first()?.parse::<IpAddr>().ok()?;
    let last = words.last().filter(|word| STATES.contains(word))?;
    (words.get(1) == Some(&"dev") || words.contains(&"lladdr")).then_some(*last)
}

impl Reader for Neighbours {
    fn name(&self) -> &'static str {
        "ip-neigh"
    }

    fn describes(&self) -> &'static str {
        "ip neigh: the table of neighbours"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        state(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let states: Vec<&str> = block.lines.iter().map_while(|line| state(line)).collect();
        let unknown = states.iter().filter(|state| ["FAILED", "INCOMPLETE"].contains(state)).count();
        out.fact("neighbours.all", FactValue::Int(states.len() as i64));
        out.fact("neighbours.unknown", FactValue::Int(unknown as i64));
        states.len().max(1)
    }
}
