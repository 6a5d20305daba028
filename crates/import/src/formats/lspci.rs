//! `lspci -vv`: what the PCIe link of a device could do (`LnkCap`) and does (`LnkSta`). Blocks of lines come
//! in, facts `pci.<address>.pcie.…` go out; the assembler hands them to the device that has that address.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::leading;

/// The format.
pub(crate) struct Lspci;

/// `03:00.0 Ethernet controller: Intel …`, with the domain or without: address and description.
fn device(line: &str) -> Option<(&str, &str)> {
    let (address, rest) = line.split_once(' ')?;
    let short = address.rsplit(':').take(2).count() == 2 && address.contains('.');
    let plain = address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
    (short && plain && (7..=12).contains(&address.len()) && rest.contains(": ")).then_some((address, rest))
}

/// `LnkSta: Speed 2.5GT/s (downgraded), Width x4 (downgraded)`: speed and width.
fn link(text: &str) -> (Option<f64>, Option<i64>) {
    let speed = text.split("Speed ").nth(1).and_then(leading);
    let width = text.split("Width x").nth(1).and_then(leading).map(|width| width as i64);
    (speed, width.filter(|width| (1..=64).contains(width)))
}

impl Reader for Lspci {
    fn name(&self) -> &'static str {
        "lspci"
    }

    fn describes(&self) -> &'static str {
        "lspci -vv: PCIe links and their power saving"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let text = block.first().trim();
        device(block.first()).is_some()
            || ["LnkSta: Speed", "LnkCap: Port", "LnkSta:\tSpeed", "LnkCap:\tPort"]
                .iter()
                .any(|w| text.starts_with(w))
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let asked = block.at.command.value(&["-s"]).or_else(|| slot(&block.at.label)).map(whole);
        let mut address = asked;
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            if let Some((named, what)) = device(line) {
                address = Some(whole(named));
                if let Some(address) = &address {
                    let (class, model) = what.split_once(": ").unwrap_or(("", what));
                    out.text(format!("pci.{address}.model"), model);
                    out.text(format!("pci.{address}.class"), class);
                }
            } else if let Some(control) = text.strip_prefix("LnkCtl:") {
                saving(address.as_deref(), control, out);
            } else if text.starts_with("LnkCap:") || text.starts_with("LnkSta:") {
                put(address.as_deref(), text, at, out);
            } else if !(text.is_empty() || line.starts_with([' ', '\t']) || text == "--") {
                break;
            }
            if !text.is_empty() {
                taken = at + 1;
            }
        }
        taken.max(1)
    }
}

/// `LnkCtl: ASPM L0s L1 Enabled; RCB 64 bytes, …`: in how many states the link may sleep.
fn saving(address: Option<&str>, text: &str, out: &mut Sink) {
    let Some((address, aspm)) = address.zip(text.trim_start().strip_prefix("ASPM ")) else { return };
    let state = aspm.split([';', ',']).next().unwrap_or_default().trim();
    let states = match state.strip_suffix(" Enabled") {
        Some(states) => states.split_whitespace().filter(|word| word.starts_with('L')).count(),
        None if state == "Disabled" => 0,
        None => return,
    };
    out.fact(format!("pci.{address}.pcie.aspm_states"), FactValue::Int(states as i64));
}

fn put(address: Option<&str>, text: &str, at: usize, out: &mut Sink) {
    let Some(address) = address else {
        return out.unread(at, "a link without its device: keep the line with the address");
    };
    let tail = if text.starts_with("LnkCap") { "max_" } else { "" };
    let (speed, width) = link(text);
    if let Some(speed) = speed {
        out.fact(format!("pci.{address}.pcie.{tail}speed_gts"), FactValue::Float(speed));
    }
    // `LnkSta` alone shows it too, without what the device could do.
    for part in text.split(',').filter(|part| tail.is_empty() && part.contains("(downgraded)")) {
        let what = if part.contains("Speed") { "speed" } else { "width" };
        out.fact(format!("pci.{address}.pcie.{what}_downgraded"), FactValue::Flag(true));
    }
    if let Some(width) = width {
        out.fact(format!("pci.{address}.pcie.{tail}width"), FactValue::Int(width));
    }
}

/// The address that a title such as `lspci -vv -s 0000:01:00.0` names, in prose.
fn slot(label: &str) -> Option<&str> {
    let rest = label.split("lspci").nth(1)?.split(" -s ").nth(1)?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_hexdigit() && c != ':' && c != '.').unwrap_or(rest.len());
    (rest[..end].contains(':') && rest[..end].contains('.')).then_some(&rest[..end])
}

/// An address with its domain, as the kernel writes it.
fn whole(address: &str) -> String {
    if address.matches(':').count() == 1 { format!("0000:{address}") } else { address.to_owned() }
}
