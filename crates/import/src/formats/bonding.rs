//! `/proc/net/bonding/*`: mode, hash and ports of a bond. Lines come in, facts `nic.<bond>.bond.…` of the
//! names of our own readers go out, with speed, state and duplex of each port.
//!
//! The kernel prints the name of the bond nowhere in the file: the path of the command has it.

use std::collections::BTreeMap;

use linerate_model::fact::FactValue;

use super::ethtool::key;
use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::leading;

/// The format.
pub(crate) struct Bonding;

/// What a bond is called whose name is not known.
const UNNAMED: &str = "bond0";

/// What the kernel writes for a mode, and the name of the mode.
const MODES: [(&str, &str); 7] = [
    ("load balancing (round-robin)", "balance-rr"),
    ("fault-tolerance (active-backup)", "active-backup"),
    ("load balancing (xor)", "balance-xor"),
    ("fault-tolerance (broadcast)", "broadcast"),
    ("IEEE 802.3ad", "802.3ad"),
    ("transmit load balancing", "balance-tlb"),
    ("adaptive load balancing", "balance-alb"),
];

/// One port.
#[derive(Default)]
struct Port {
    name: String,
    aggregator: Option<i64>,
    is_down: bool,
    churned: bool,
}

/// The file, line by line.
#[derive(Default)]
struct Bond {
    /// The fields of the bond itself.
    fields: BTreeMap<String, String>,
    /// Aggregator that is in use.
    active: Option<i64>,
    /// Ports that the kernel counts in it.
    active_ports: Option<i64>,
    ports: Vec<Port>,
}

impl Bond {
    /// Takes a field; those of a port are facts of it.
    fn field(&mut self, name: &str, value: &str, out: &mut Sink) {
        if name == "Slave Interface" {
            self.ports.push(Port { name: value.to_owned(), ..Port::default() });
            return;
        }
        let Some(port) = self.ports.last_mut() else {
            match name {
                "Aggregator ID" => self.active = value.parse().ok(),
                "Number of ports" => self.active_ports = value.parse().ok(),
                _ => _ = self.fields.insert(name.to_owned(), value.to_owned()),
            }
            return;
        };
        let nic = key(&port.name);
        match name {
            "MII Status" => {
                port.is_down = value != "up";
                out.text(format!("{nic}.state"), if port.is_down { "down" } else { "up" });
            }
            "Speed" => {
                let mbit = value.strip_suffix(" Mbps").and_then(leading).filter(|mbit| *mbit >= 1.0);
                if let Some(mbit) = mbit {
                    out.fact(format!("{nic}.speed_mbit"), FactValue::Int(mbit as i64));
                }
            }
            "Duplex" if ["full", "half"].contains(&value) => out.text(format!("{nic}.duplex"), value),
            "Link Failure Count" => {
                if let Ok(count) = value.parse() {
                    out.fact(format!("{nic}.bond_port.link_failures"), FactValue::Int(count));
                }
            }
            "Aggregator ID" => port.aggregator = value.parse().ok(),
            "Actor Churn State" | "Partner Churn State" => port.churned |= value == "churned",
            _ => {}
        }
    }

    /// Ports of the active aggregator: as the kernel counts them, else those that name it.
    fn active_ports(&self) -> Option<i64> {
        let own = || {
            let active = self.active?;
            Some(self.ports.iter().filter(|port| port.aggregator == Some(active)).count() as i64)
        };
        let by_state = || {
            let known = self.ports.iter().any(|port| port.churned || port.aggregator.is_some());
            let lost = |port: &&Port| !port.churned && !port.is_down;
            known.then(|| self.ports.iter().filter(lost).count() as i64)
        };
        self.active_ports.or_else(own).or_else(by_state)
    }

    fn put(&self, nic: &str, out: &mut Sink) {
        let bond = format!("{}.bond", key(nic));
        let mode = self.fields.get("Bonding Mode").map(String::as_str).unwrap_or_default();
        let mode = MODES.iter().find(|(words, _)| mode.starts_with(words)).map(|(_, mode)| *mode);
        out.text(format!("{bond}.mode"), mode.unwrap_or_default());
        // `layer3+4 (1)`
        let policy = self.fields.get("Transmit Hash Policy").and_then(|policy| policy.split(' ').next());
        out.text(format!("{bond}.xmit_hash_policy"), policy.unwrap_or_default());
        if let Some(rate) = self.fields.get("LACP rate").or_else(|| self.fields.get("LACP activity")) {
            out.text(format!("{bond}.lacp_rate"), rate);
        }
        out.fact(format!("{bond}.slaves"), FactValue::Int(self.ports.len() as i64));
        let active = self.active_ports().filter(|_| mode.is_none_or(|mode| mode == "802.3ad"));
        if let Some(active) = active {
            out.fact(format!("{bond}.active_ports"), FactValue::Int(active));
        }
    }
}

/// The name in `cat /proc/net/bonding/bond1`.
fn named<'c>(block: &'c Block<'_>) -> Option<&'c str> {
    let path = block.at.command.whole.split("/proc/net/bonding/").nth(1)?;
    let name = path.split([' ', ';', '|', '"', '\'', '`']).next()?;
    let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    (is_plain && (1..=15).contains(&name.len())).then_some(name)
}

impl Reader for Bonding {
    fn name(&self) -> &'static str {
        "bonding"
    }

    fn describes(&self) -> &'static str {
        "/proc/net/bonding: mode, hash and ports of a bond"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first().trim();
        line.starts_with("Ethernet Channel Bonding Driver:") || line.starts_with("Bonding Mode: ")
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut bond = Bond::default();
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            if text.is_empty() {
                continue;
            }
            let is_heading =
                ["802.3ad info", "details actor lacp pdu:", "details partner lacp pdu:"].contains(&text);
            match text.split_once(':') {
                _ if is_heading => {}
                // The next bond, of `cat /proc/net/bonding/*`.
                Some(("Ethernet Channel Bonding Driver", _)) if taken > 0 => break,
                Some((name, value)) if name.len() <= 40 => bond.field(name.trim(), value.trim(), out),
                _ => break,
            }
            taken = at + 1;
        }
        let nic = named(block).unwrap_or_else(|| {
            out.note(format!("the file of a bond does not name it: it is called {UNNAMED}"));
            UNNAMED
        });
        bond.put(nic, out);
        taken.max(1)
    }
}
