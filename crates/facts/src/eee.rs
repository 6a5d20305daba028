//! Facts and settings `nic.*.eee.*`: energy saving of the link, which can add latency.

use linerate_sys::ethtool::EthtoolFamily;

use super::family::Numbers;
use super::readings::{fact, setting};

/// The topic.
pub(super) static EEE: Numbers = Numbers {
    family: EthtoolFamily::Eee,
    declare: || {
        vec![
            setting("nic.*.eee.enabled", "flag", "Whether the link may save energy."),
            setting("nic.*.eee.tx_lpi_enabled", "flag", "Whether this end asks for it."),
            setting("nic.*.eee.tx_lpi_timer", "us", "Idle time before the link saves energy."),
            fact("nic.*.eee.active", "flag", "Whether both ends have agreed to save energy."),
        ]
    },
    writable: |name| ["enabled", "tx_lpi_enabled", "tx_lpi_timer"].contains(&name),
    moves: &["enabled", "tx_lpi_enabled", "tx_lpi_timer"],
    link_key: |_| None,
    option: "--set-eee",
};

pub(super) fn is_setting(key: &str) -> bool {
    EEE.serves(key)
}
