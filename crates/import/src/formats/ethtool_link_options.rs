//! `ethtool -a NIC` and `ethtool --show-eee NIC`: flow control and energy saving of the link. Lines come in,
//! flags of the same names as those of our own readers go out.

use linerate_model::fact::FactValue;

use super::ethtool::{device, pairs, titled};
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// `ethtool -a NIC`.
pub(crate) struct Pause;
/// `ethtool --show-eee NIC`.
pub(crate) struct Eee;

fn on_off(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

impl Reader for Pause {
    fn name(&self) -> &'static str {
        "ethtool-a"
    }

    fn describes(&self) -> &'static str {
        "ethtool -a: flow control"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        device(block.first(), "Pause parameters").is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let Some(nic) = titled(block, "Pause parameters", out) else { return 1 };
        pairs(block, out, |out, name, value| {
            let field = match name {
                "Autonegotiate" => "autoneg",
                "RX" => "rx",
                "TX" => "tx",
                "RX negotiated" => "rx_negotiated",
                "TX negotiated" => "tx_negotiated",
                _ => return false,
            };
            if let Some(flag) = on_off(value) {
                out.fact(format!("{nic}.pause.{field}"), FactValue::Flag(flag));
            }
            true
        })
    }
}

impl Reader for Eee {
    fn name(&self) -> &'static str {
        "ethtool-eee"
    }

    fn describes(&self) -> &'static str {
        "ethtool --show-eee: energy saving of the link"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        device(block.first(), "EEE settings").is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let Some(nic) = titled(block, "EEE settings", out) else { return 1 };
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate().skip(1) {
            let text = line.trim();
            match text.split_once(':').map(|(name, value)| (name.trim(), value.trim())) {
                // `enabled - active`, `enabled - inactive`, `disabled`
                Some(("EEE status", value)) => {
                    let is_on = value.starts_with("enabled");
                    out.fact(format!("{nic}.eee.enabled"), FactValue::Flag(is_on));
                    out.fact(
                        format!("{nic}.eee.active"),
                        FactValue::Flag(is_on && value.ends_with("- active")),
                    );
                }
                Some(("Tx LPI", value)) => {
                    let is_on = !value.starts_with("disabled");
                    out.fact(format!("{nic}.eee.tx_lpi_enabled"), FactValue::Flag(is_on));
                }
                Some((name, _)) if name.ends_with("EEE link modes") => {}
                // The modes of a list go on: `1000baseT/Full`
                None if !text.is_empty() && text.contains("base") && line.starts_with([' ', '\t']) => {}
                _ => break,
            }
            taken = at + 1;
        }
        taken
    }
}
