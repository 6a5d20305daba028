//! Facts and settings `nic.*.channels.*`: how many queues a device has.

use linerate_sys::ethtool::Family;

use super::family::{LinkKey, Numbers};
use super::readings::{fact, setting};

/// The topic.
pub(super) static CHANNELS: Numbers = Numbers {
    family: Family::Channels,
    declare: || {
        vec![
            setting(
                "nic.*.channels.combined",
                "count",
                "Queue pairs that send and receive; also rx, tx and other.",
            ),
            fact(
                "nic.*.channels.combined_max",
                "count",
                "Most queue pairs; also rx_max, tx_max and other_max.",
            ),
            setting("nic.*.channels.*", "count", "Other number of queues."),
        ]
    },
    writable: |name| ["rx", "tx", "other", "combined"].contains(&name),
    moves: &["rx", "tx", "other", "combined"],
    link_key: |name| {
        Some(LinkKey::Plain(match name {
            "rx" => "RxChannels",
            "tx" => "TxChannels",
            "other" => "OtherChannels",
            "combined" => "CombinedChannels",
            _ => return None,
        }))
    },
    option: "-L",
};

pub(super) fn is_setting(key: &str) -> bool {
    CHANNELS.serves(key)
}
