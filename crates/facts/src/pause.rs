//! Facts and settings `nic.*.pause.*`: flow control by pause frames.

use linerate_sys::ethtool::EthtoolFamily;

use super::family::{LinkKey, Numbers};
use super::readings::setting;

/// The topic.
pub(super) static PAUSE: Numbers = Numbers {
    family: EthtoolFamily::Pause,
    declare: || {
        vec![
            setting("nic.*.pause.rx", "flag", "Whether the device stops for pause frames that it receives."),
            setting(
                "nic.*.pause.tx",
                "flag",
                "Whether the device sends pause frames when it cannot keep up.",
            ),
            setting("nic.*.pause.autoneg", "flag", "Whether both ends of the link negotiate it."),
        ]
    },
    writable: |name| ["rx", "tx", "autoneg"].contains(&name),
    // Negotiation decides about both directions.
    moves: &["autoneg", "rx", "tx"],
    link_key: |name| {
        Some(LinkKey::YesNo(match name {
            "rx" => "RxFlowControl",
            "tx" => "TxFlowControl",
            "autoneg" => "AutoNegotiationFlowControl",
            _ => return None,
        }))
    },
    option: "-A",
};

pub(super) fn is_setting(key: &str) -> bool {
    PAUSE.serves(key)
}
