//! Facts and settings `nic.*.ring.*`: how many packets a queue of the device holds. They are declared here,
//! read and written by `family.rs`, and put back by `change/undo.rs`.

use linerate_sys::ethtool::EthtoolFamily;

use super::family::{LinkKey, Numbers};
use super::readings::{fact, setting};

/// The topic.
pub(super) static RINGS: Numbers = Numbers {
    family: EthtoolFamily::Rings,
    declare: || {
        vec![
            setting("nic.*.ring.rx", "packets", "Size of each receive ring."),
            setting("nic.*.ring.rx_mini", "packets", "Size of each receive ring for small packets."),
            setting("nic.*.ring.rx_jumbo", "packets", "Size of each receive ring for large packets."),
            setting("nic.*.ring.tx", "packets", "Size of each send ring."),
            fact("nic.*.ring.rx_max", "packets", "Largest receive ring that the device takes."),
            fact("nic.*.ring.tx_max", "packets", "Largest send ring that the device takes."),
        ]
    },
    writable: |name| ["rx", "tx", "rx_mini", "rx_jumbo"].contains(&name),
    moves: &["rx", "tx", "rx_mini", "rx_jumbo"],
    link_key: |name| {
        Some(LinkKey::Plain(match name {
            "rx" => "RxBufferSize",
            "rx_mini" => "RxMiniBufferSize",
            "rx_jumbo" => "RxJumboBufferSize",
            "tx" => "TxBufferSize",
            _ => return None,
        }))
    },
    option: "-G",
};

pub(super) fn is_setting(key: &str) -> bool {
    RINGS.serves(key)
}
