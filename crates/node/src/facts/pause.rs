//! Facts `nic.*.pause.*`: flow control by pause frames.

use linerate_sys::ethtool::EthtoolFamily;

use super::family::Numbers;
use super::readings::fact;

/// The topic.
pub(super) static PAUSE: Numbers = Numbers {
    family: EthtoolFamily::Pause,
    declare: || vec![fact("nic.*.pause.*", "flag", "Flow control: rx, tx, autoneg.")],
    writable: |_| false,
    moves: &[],
    link_key: |_| None,
    option: "-A",
};
