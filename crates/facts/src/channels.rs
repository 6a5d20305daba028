//! Facts and settings `nic.*.channels.*`: how many queues a device has.

use linerate_sys::ethtool::EthtoolFamily;

use super::family::{LinkKey, Numbers};
use super::readings::{fact, setting};

/// The topic.
pub(super) static CHANNELS: Numbers = Numbers {
    family: EthtoolFamily::Channels,
    declare: || {
        vec![
            setting("nic.*.channels.combined", "count", "Queue pairs that send and receive."),
            setting("nic.*.channels.rx", "count", "Queues that only receive."),
            setting("nic.*.channels.tx", "count", "Queues that only send."),
            setting("nic.*.channels.other", "count", "Queues for other work of the device."),
            fact(
                "nic.*.channels.combined_max",
                "count",
                "Most queue pairs; also rx_max, tx_max and other_max.",
            ),
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
