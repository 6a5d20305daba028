//! `ethtool -k NIC`, whole or what `grep` left of it: `rx-gro-hw: on [fixed]`. Lines come in, flags go out.

use std::borrow::Cow;

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Features;

/// Names that are features, by their beginning: `udp-fragmentation-offload` is long gone from kernels, not
/// from pastes.
const FEATURES: [&str; 12] = [
    "rx-",
    "tx-",
    "scatter-gather",
    "tcp-segmentation-offload",
    "udp-fragmentation-offload",
    "generic-",
    "large-receive-offload",
    "ntuple-filters",
    "receive-hashing",
    "highdma",
    "vlan-challenged",
    "netns-local",
];
/// More of them.
const FEATURES_TOO: [&str; 8] =
    ["fcoe-mtu", "loopback", "l2-fwd-offload", "hw-tc-offload", "esp-", "tls-hw-", "macsec-", "hsr-"];

/// Names as old versions wrote them, with blanks.
const WITH_BLANKS: [&str; 8] = [
    "tcp segmentation offload",
    "udp fragmentation offload",
    "generic segmentation offload",
    "generic receive offload",
    "large receive offload",
    "scatter gather",
    "ntuple filters",
    "receive hashing",
];

/// What old versions print for what the device does not know.
fn is_refused(line: &str) -> bool {
    line.trim_start().starts_with("Cannot get device ") && line.contains(" settings: ")
}

fn feature(line: &str) -> Option<(Cow<'_, str>, bool)> {
    let (name, value) = line.trim().split_once(": ")?;
    let is_old = WITH_BLANKS.contains(&name);
    let name: Cow<'_, str> = if is_old { name.replace(' ', "-").into() } else { name.into() };
    let known = FEATURES.iter().chain(&FEATURES_TOO).any(|f| name.starts_with(f));
    let value = value.trim_start();
    let (state, rest) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
    let rest = rest.trim_start();
    let marked = rest.is_empty() || rest.starts_with('[') || rest.starts_with('(');
    (known && marked && ["on", "off"].contains(&state)).then_some((name, state == "on"))
}

fn title(line: &str) -> Option<&str> {
    let line = line.trim();
    let rest = line.strip_prefix("Features for ").or_else(|| line.strip_prefix("Offload parameters for "))?;
    rest.strip_suffix(':').filter(|nic| !nic.is_empty() && !nic.contains(' '))
}

impl Reader for Features {
    fn name(&self) -> &'static str {
        "ethtool-k"
    }

    fn describes(&self) -> &'static str {
        "ethtool -k: offloads"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        title(block.first()).is_some() || feature(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let asked = block.at.command.last_plain().filter(|_| block.at.command.is(&["ethtool"]));
        let nic = title(block.first()).or(asked).or(block.at.nic.as_deref()).map(super::ethtool::key);
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some((name, on)) = feature(line) {
                match &nic {
                    Some(nic) => out.fact(format!("{nic}.feature.{name}"), FactValue::Flag(on)),
                    None => out.unread(at, "unknown device: keep the command `ethtool -k NIC`"),
                }
            } else if !(at == 0 && title(line).is_some() || is_refused(line)) {
                break;
            }
            taken = at + 1;
        }
        taken.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_letters_of_any_length() {
        assert_eq!(feature("rx-gro-hw: on [fixed]"), Some(("rx-gro-hw".into(), true)));
        assert_eq!(feature("rx-gro-hw:   off\u{a0}(requested on)"), Some(("rx-gro-hw".into(), false)));
        assert_eq!(feature("rx-gro-hw:    9800¡] 0.00"), None);
        assert_eq!(feature("rx-gro-hw: "), None);
    }
}
