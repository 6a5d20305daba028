//! `ethtool NIC`, `-g`, `-c`, `-l`: the link, and tables of numbers by device. Lines come in, facts of the
//! same names as those of our own readers go out.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::number;

/// `ethtool NIC`.
pub(crate) struct Link;
/// `ethtool -g NIC`.
pub(crate) struct Rings;
/// `ethtool -c NIC`.
pub(crate) struct Coalesce;
/// `ethtool -l NIC`.
pub(crate) struct Channels;

/// Device of `Ring parameters for em1:`.
pub(super) fn device<'l>(line: &'l str, title: &str) -> Option<&'l str> {
    let nic = line.trim().strip_prefix(title)?.strip_prefix(" for ")?.strip_suffix(':')?;
    (!nic.is_empty() && nic.len() <= 64 && !nic.contains(char::is_whitespace)).then_some(nic)
}

/// Beginning of the keys of the device that a title names; a block without the title is reported.
pub(super) fn titled(block: &Block<'_>, title: &str, out: &mut Sink) -> Option<String> {
    let nic = device(block.first(), title).map(key);
    if nic.is_none() {
        out.unread(0, "unknown device");
    }
    nic
}

/// Beginning of all keys of a device; a dot in its name would be read as the end of it.
pub(crate) fn key(nic: &str) -> String {
    format!("nic.{}", nic.replace('.', "/"))
}

/// Reads `name: value` lines up to the first that is none; `take` returns whether it could use one.
pub(super) fn pairs(
    block: &Block<'_>,
    out: &mut Sink,
    mut take: impl FnMut(&mut Sink, &str, &str) -> bool,
) -> usize {
    let mut taken = 1;
    for (at, line) in block.lines.iter().enumerate().skip(1) {
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        // The next device begins, or something else.
        let Some((name, value)) = text.split_once(':').filter(|_| !text.contains(" for ")) else { break };
        if !take(out, name.trim(), value.trim()) {
            break;
        }
        taken = at + 1;
    }
    taken
}

impl Reader for Link {
    fn name(&self) -> &'static str {
        "ethtool"
    }

    fn describes(&self) -> &'static str {
        "ethtool NIC: speed, duplex, link"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        device(block.first(), "Settings").is_some()
            // `ethtool em1 | grep Speed`
            || block.first().trim().starts_with("Speed: ") && block.at.command.is(&["ethtool"])
            // Pasted without its first line.
            || is_inside(block.first())
                && (1..HEAD_MAX).any(|n| block.line(n).trim().starts_with("Advertised "))
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let titled = device(block.first(), "Settings");
        let nic = titled.or(block.at.nic.as_deref()).map_or_else(
            || {
                out.note(format!("the lines of ethtool name no device: it is called {UNNAMED}"));
                key(UNNAMED)
            },
            key,
        );
        let from = usize::from(titled.is_some());
        let mut taken = from;
        let (mut list, mut modes) = (String::new(), [None; 2]);
        for (at, line) in block.lines.iter().enumerate().skip(from) {
            // Lines below a setting are indented; lists of link modes go on without a name.
            if titled.is_some() && !line.starts_with([' ', '\t']) {
                break;
            }
            match line.trim().split_once(':') {
                Some((name, value)) => {
                    name.trim().clone_into(&mut list);
                    link(out, &nic, name.trim(), value.trim());
                }
                // Link modes go on below.
                None if titled.is_some() || fastest(line).is_some() => {}
                None => break,
            }
            for (at, name) in ["Supported link modes", "Advertised link modes"].into_iter().enumerate() {
                if list == name {
                    modes[at] = modes[at].max(fastest(line));
                }
            }
            taken = at + 1;
        }
        for (mbit, fact) in modes.into_iter().zip(["supported_mbit", "advertised_mbit"]) {
            if let Some(mbit) = mbit {
                out.fact(format!("{nic}.{fact}"), FactValue::Int(mbit));
            }
        }
        taken.max(1)
    }
}

/// What a device is called whose name is not known.
const UNNAMED: &str = "NIC";
/// Lines of link modes above the ones that are advertised.
const HEAD_MAX: usize = 12;

/// Whether a line is one of `ethtool NIC` below its heading.
fn is_inside(line: &str) -> bool {
    ["Supported ports: [", "Supported link modes:"].iter().any(|head| line.trim().starts_with(head))
}

/// The fastest link mode of a line, Mbit/s: 1000 of `100baseT/Full 1000baseT/Full`.
fn fastest(line: &str) -> Option<i64> {
    let modes = line.split_whitespace().filter_map(|word| word.split_once("base")?.0.parse().ok());
    modes.max()
}

fn link(out: &mut Sink, nic: &str, name: &str, value: &str) {
    match name {
        "Speed" => {
            if let Some(speed) =
                value.strip_suffix("Mb/s").and_then(|v| v.parse::<i64>().ok()).filter(|s| *s > 0)
            {
                out.fact(format!("{nic}.speed_mbit"), FactValue::Int(speed));
            }
        }
        "Duplex" if ["Full", "Half"].contains(&value) => {
            out.text(format!("{nic}.duplex"), &value.to_lowercase());
        }
        "Auto-negotiation" if ["on", "off"].contains(&value) => {
            out.fact(format!("{nic}.autoneg"), FactValue::Flag(value == "on"));
        }
        "Link detected" => {
            out.text(format!("{nic}.state"), if value.starts_with("yes") { "up" } else { "down" });
        }
        _ => {}
    }
}

/// Tables with two halves: what the device could do at most, and what is set.
fn halves(
    block: &Block<'_>,
    out: &mut Sink,
    title: &str,
    topic: &str,
    name_of: fn(&str) -> Option<&'static str>,
) -> usize {
    let Some(nic) = titled(block, title, out) else { return 1 };
    let mut most = false;
    pairs(block, out, |out, name, value| {
        match name {
            "Pre-set maximums" => most = true,
            "Current hardware settings" => most = false,
            _ => {
                let tail = if most { "_max" } else { "" };
                if let Some((field, n)) = name_of(name).zip(value.parse().ok()) {
                    out.fact(format!("{nic}.{topic}.{field}{tail}"), FactValue::Int(n));
                }
            }
        }
        true
    })
}

impl Reader for Rings {
    fn name(&self) -> &'static str {
        "ethtool-g"
    }

    fn describes(&self) -> &'static str {
        "ethtool -g: sizes of rings"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        device(block.first(), "Ring parameters").is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        halves(block, out, "Ring parameters", "ring", |name| {
            Some(match name {
                "RX" => "rx",
                "RX Mini" => "rx_mini",
                "RX Jumbo" => "rx_jumbo",
                "TX" => "tx",
                _ => return None,
            })
        })
    }
}

impl Reader for Channels {
    fn name(&self) -> &'static str {
        "ethtool-l"
    }

    fn describes(&self) -> &'static str {
        "ethtool -l: numbers of queues"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        device(block.first(), "Channel parameters").is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        halves(block, out, "Channel parameters", "channels", |name| {
            Some(match name {
                "RX" => "rx",
                "TX" => "tx",
                "Other" => "other",
                "Combined" => "combined",
                _ => return None,
            })
        })
    }
}

impl Reader for Coalesce {
    fn name(&self) -> &'static str {
        "ethtool-c"
    }

    fn describes(&self) -> &'static str {
        "ethtool -c: interrupt coalescing"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        device(block.first(), "Coalesce parameters").is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let Some(nic) = titled(block, "Coalesce parameters", out) else { return 1 };
        pairs(block, out, |out, name, value| {
            // `Adaptive RX: off  TX: n/a`, `CQE mode RX: n/a  TX: n/a`
            if let Some(what) = name.strip_suffix(" RX").filter(|w| ["Adaptive", "CQE mode"].contains(w)) {
                let topic = if what == "Adaptive" { "adaptive" } else { "cqe-mode" };
                let mut words = value.split_whitespace();
                let (rx, tx) = (words.next(), words.nth(1));
                for (side, state) in [("rx", rx), ("tx", tx)] {
                    if let Some(state @ ("on" | "off")) = state {
                        out.fact(format!("{nic}.coalesce.{topic}-{side}"), FactValue::Flag(state == "on"));
                    }
                }
                return true;
            }
            let named = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
            if let Some(n) = number(value).filter(|_| named) {
                out.fact(format!("{nic}.coalesce.{name}"), FactValue::Int(n as i64));
            }
            named
        })
    }
}
