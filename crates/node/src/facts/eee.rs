//! Facts `nic.*.eee.*`: energy saving of the link, which can add latency.

use linerate_sys::ethtool::EthtoolFamily;

use super::family::Numbers;
use super::readings::fact;

/// The topic.
pub(super) static EEE: Numbers = Numbers {
    family: EthtoolFamily::Eee,
    declare: || {
        vec![
            fact("nic.*.eee.*", "flag", "Energy saving: enabled, active, tx_lpi_enabled."),
            fact("nic.*.eee.tx_lpi_timer", "us", "Idle time before the link saves energy."),
        ]
    },
    writable: |_| false,
    moves: &[],
    link_key: |_| None,
    option: "--set-eee",
};
