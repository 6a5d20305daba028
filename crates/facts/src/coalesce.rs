//! Facts and settings `nic.*.coalesce.*`: how long a device waits before it interrupts.

use linerate_sys::ethtool::EthtoolFamily;

use super::family::{LinkKey, Numbers};
use super::readings::setting;

/// The topic.
pub(super) static COALESCE: Numbers = Numbers {
    family: EthtoolFamily::Coalesce,
    declare: || {
        vec![
            setting(
                "nic.*.coalesce.rx-usecs",
                "us",
                "Longest wait before an interrupt for received packets.",
            ),
            setting(
                "nic.*.coalesce.adaptive-rx",
                "flag",
                "Whether the driver chooses the wait by itself; also adaptive-tx.",
            ),
            setting(
                "nic.*.coalesce.*",
                "us or packets",
                "Other number of interrupt coalescing, named as by `ethtool -c`.",
            ),
        ]
    },
    writable: |name| !name.is_empty(),
    // Adaptive coalescing moves the others by itself.
    moves: &["adaptive-rx", "adaptive-tx", "rx-usecs", "rx-frames", "tx-usecs", "tx-frames"],
    link_key: |name| {
        Some(match name {
            "rx-usecs" => LinkKey::Micros("RxCoalesceSec"),
            "tx-usecs" => LinkKey::Micros("TxCoalesceSec"),
            "rx-usecs-irq" => LinkKey::Micros("RxCoalesceIrqSec"),
            "tx-usecs-irq" => LinkKey::Micros("TxCoalesceIrqSec"),
            "rx-frames" => LinkKey::Plain("RxMaxCoalescedFrames"),
            "tx-frames" => LinkKey::Plain("TxMaxCoalescedFrames"),
            "adaptive-rx" => LinkKey::YesNo("UseAdaptiveRxCoalesce"),
            "adaptive-tx" => LinkKey::YesNo("UseAdaptiveTxCoalesce"),
            _ => return None,
        })
    },
    option: "-C",
};

pub(super) fn is_setting(key: &str) -> bool {
    COALESCE.serves(key)
}
