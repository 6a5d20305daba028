//! `arping`: which hardware addresses answer for an address. Lines come in; the number of different ones is
//! a fact of the host that has the address.

use std::collections::BTreeSet;
use std::net::IpAddr;

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Arping;

/// `Unicast reply from 192.0.2.7 [00:50:56:95:BA:89]  0.685ms`, and
/// `60 bytes from 00:50:56:95:ba:89 (192.0.2.7): index=0 time=1 msec`: address and hardware address.
fn answer(line: &str) -> Option<(IpAddr, String)> {
    let text = line.trim();
    let (address, hardware) = if let Some((kind, rest)) = text.split_once(" reply from ") {
        let (address, rest) = rest.split_once(" [")?;
        ["Unicast", "Broadcast"].contains(&kind).then_some((address, rest.split(']').next()?))?
    } else {
        let (hardware, rest) = text.split_once(" bytes from ")?.1.split_once(" (")?;
        (rest.split(')').next()?, hardware)
    };
    let is_hardware = hardware.len() == 17
        && hardware.bytes().all(|b| b.is_ascii_hexdigit() || b == b':')
        && hardware.matches(':').count() == 5;
    is_hardware.then_some((address.parse().ok()?, hardware.to_lowercase()))
}

impl Reader for Arping {
    fn name(&self) -> &'static str {
        "arping"
    }

    fn describes(&self) -> &'static str {
        "arping: hardware addresses that answer for an address"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        block.first().trim().starts_with("ARPING ") && (1..4).any(|n| answer(block.line(n)).is_some())
            || answer(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut seen: BTreeSet<(IpAddr, String)> = BTreeSet::new();
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            let is_beside =
                ["ARPING ", "Sent ", "Received ", "---", "rtt min"].iter().any(|head| text.starts_with(head))
                    || text.contains("packets transmitted")
                    || text.is_empty();
            match answer(text) {
                Some(found) => _ = seen.insert(found),
                None if is_beside => {}
                None => break,
            }
            if !text.is_empty() {
                taken = at + 1;
            }
        }
        let addresses: BTreeSet<IpAddr> = seen.iter().map(|(address, _)| *address).collect();
        for address in addresses {
            let count = seen.iter().filter(|(known, _)| *known == address).count();
            out.of_host(&address.to_string());
            out.fact("arp.answering_devices", FactValue::Int(count as i64));
        }
        taken.max(1)
    }
}
