//! Names of the settings of NICs in the files of those who configure networks. Pure.

use linerate_model::fact::FactValue;

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Number,
    TrueFalse,
    OneZero,
    OnOff,
}

impl Form {
    fn text(self, value: &FactValue) -> Option<String> {
        let (yes, no) = match self {
            Self::Number => return matches!(value, FactValue::Int(_)).then(|| value.to_string()),
            Self::TrueFalse => ("true", "false"),
            Self::OneZero => ("1", "0"),
            Self::OnOff => ("on", "off"),
        };
        match value {
            FactValue::Flag(is_on) => Some(if *is_on { yes } else { no }.to_owned()),
            // Numbers of a family in which others are flags.
            FactValue::Int(number) if self == Self::OneZero => Some(number.to_string()),
            _ => None,
        }
    }
}

/// A setting in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NicWord {
    /// Name.
    pub(super) name: String,
    /// Value as it is written; `None` for one that cannot be.
    pub(super) value: Option<String>,
}

/// Names of features that ethtool(8) has short names for.
const SHORT: [(&str, &str); 11] = [
    ("rx-checksumming", "rx"),
    ("tx-checksumming", "tx"),
    ("scatter-gather", "sg"),
    ("tcp-segmentation-offload", "tso"),
    ("generic-segmentation-offload", "gso"),
    ("generic-receive-offload", "gro"),
    ("large-receive-offload", "lro"),
    ("rx-vlan-offload", "rxvlan"),
    ("tx-vlan-offload", "txvlan"),
    ("ntuple-filters", "ntuple"),
    ("receive-hashing", "rxhash"),
];

/// Features that NetworkManager knows by their long name (nm-ethtool-utils-base.h of 1.42).
const LONG: [&str; 22] = [
    "hw-tc-offload",
    "rx-gro-hw",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
    "rx-udp_tunnel-port-offload",
    "rx-vlan-filter",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv4",
    "tx-checksum-ipv6",
    "tx-checksum-sctp",
    "tx-esp-segmentation",
    "tx-gre-segmentation",
    "tx-gso-list",
    "tx-gso-partial",
    "tx-nocache-copy",
    "tx-scatter-gather",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "tx-udp_tnl-segmentation",
];

/// The short name of a feature, or the name itself.
pub(super) fn short(feature: &str) -> String {
    SHORT.iter().find(|(long, _)| *long == feature).map_or(feature, |(_, short)| short).to_owned()
}

/// The name of a feature that ethtool(8) has a short name for, or the name itself.
pub(super) fn long(feature: &str) -> String {
    SHORT.iter().find(|(_, short)| *short == feature).map_or(feature, |(long, _)| long).to_owned()
}

/// Section, and name with value, in a keyfile of NetworkManager.
pub(super) fn network_manager(field: &str, value: &FactValue) -> Option<(&'static str, NicWord)> {
    const ETHTOOL: &str = "[ethtool]";
    let word = |name: String, form: Form| NicWord { name, value: form.text(value) };
    let (family, name) = field.split_once('.').unwrap_or(("", field));
    let dashed = name.replace('_', "-");
    Some(match family {
        "" if name == "mtu" => ("[ethernet]", word("mtu".to_owned(), Form::Number)),
        "feature" => {
            let known = SHORT.iter().any(|(long, _)| *long == name) || LONG.contains(&name);
            known.then(|| (ETHTOOL, word(format!("feature-{}", short(name)), Form::TrueFalse)))?
        }
        "ring" => (ETHTOOL, word(format!("ring-{dashed}"), Form::Number)),
        "coalesce" => (ETHTOOL, word(format!("coalesce-{dashed}"), Form::OneZero)),
        "pause" => (ETHTOOL, word(format!("pause-{dashed}"), Form::TrueFalse)),
        _ => return None,
    })
}

/// Option of a stanza of interfaces(5): its own, and those of ethtool's scripts.
pub(super) fn ifupdown(field: &str, value: &FactValue) -> Option<NicWord> {
    let word = |name: String, form: Form| NicWord { name, value: form.text(value) };
    let (family, name) = field.split_once('.').unwrap_or(("", field));
    let dashed = name.replace('_', "-");
    Some(match family {
        "" if name == "mtu" => word("mtu".to_owned(), Form::Number),
        "feature" => word(format!("offload-{}", short(name)), Form::OnOff),
        "ring" => word(format!("hardware-dma-ring-{dashed}"), Form::Number),
        "coalesce" if matches!(value, FactValue::Flag(_)) => {
            word(format!("hardware-irq-coalesce-{dashed}"), Form::OnOff)
        }
        "coalesce" => word(format!("hardware-irq-coalesce-{dashed}"), Form::Number),
        "pause" => word(format!("ethernet-pause-{dashed}"), Form::OnOff),
        _ => return None,
    })
}
