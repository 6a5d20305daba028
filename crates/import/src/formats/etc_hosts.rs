//! A table of addresses and names (`/etc/hosts`, or two columns in a mail): lines come in, names of addresses
//! go out.

use std::net::IpAddr;

use crate::context::is_host;
use crate::reader::{Block, Reader};
use crate::sink::{Sink, is_loopback};

/// The format.
pub(crate) struct EtcHosts;

/// Words of routes and states, which are no names of hosts.
const NO_NAMES: [&str; 22] = [
    "dev",
    "via",
    "src",
    "scope",
    "proto",
    "metric",
    "mtu",
    "onlink",
    "link",
    "kernel",
    "dhcp",
    "static",
    "lladdr",
    "reachable",
    "stale",
    "delay",
    "failed",
    "up",
    "down",
    "unknown",
    "cache",
    "permanent",
];

fn row(line: &str) -> Option<(IpAddr, Vec<&str>)> {
    let line = line.split('#').next().unwrap_or("");
    let mut words = line.split_whitespace();
    let address: IpAddr = words.next()?.parse().ok()?;
    let names: Vec<&str> = words.collect();
    let is_name = |w: &&str| {
        is_host(w)
            && w.starts_with(|c: char| c.is_ascii_alphanumeric())
            && w.parse::<f64>().is_err()
            && !NO_NAMES.iter().any(|word| w.eq_ignore_ascii_case(word))
    };
    (!names.is_empty() && names.iter().all(is_name)).then_some((address, names))
}

impl Reader for EtcHosts {
    fn name(&self) -> &'static str {
        "hosts"
    }

    fn describes(&self) -> &'static str {
        "/etc/hosts: addresses and names"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        row(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            if let Some((address, names)) = row(line) {
                let address = address.to_string();
                if !is_loopback(&address) {
                    out.named(address, &names);
                }
            } else if !(text.is_empty() || text.starts_with('#')) {
                break;
            }
            if !text.is_empty() {
                taken = at + 1;
            }
        }
        taken.max(1)
    }
}
