//! Families of numeric ethtool settings: attribute numbers and names.
//!
//! In: nothing. Out: tables. The names are those of ethtool(8) and of the vocabulary of keys.

use serde::{Deserialize, Serialize};

use crate::ethtool_ioctl as ioctl;

/// Families of numbers that a driver may offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EthtoolFamily {
    /// Speed, duplex, autonegotiation.
    Link,
    /// Ring sizes.
    Rings,
    /// Numbers of queues.
    Channels,
    /// Interrupt coalescing.
    Coalesce,
    /// Flow control.
    Pause,
    /// Energy saving.
    Eee,
}

/// All of them.
pub const FAMILIES: [EthtoolFamily; 6] = [
    EthtoolFamily::Link,
    EthtoolFamily::Rings,
    EthtoolFamily::Channels,
    EthtoolFamily::Coalesce,
    EthtoolFamily::Pause,
    EthtoolFamily::Eee,
];

/// How a family is asked for.
pub(crate) struct FamilyInfo {
    /// Command that reads it.
    pub(crate) get: u8,
    /// Command that writes it.
    pub(crate) set: u8,
    /// Attribute and name.
    pub(crate) fields: &'static [(u16, &'static str)],
    /// The same by ioctl.
    pub(crate) older: Option<ioctl::Numbers>,
}

const LINK: FamilyInfo = FamilyInfo {
    get: 4,
    set: 5,
    fields: &[(2, "autoneg"), (5, "speed"), (6, "duplex"), (9, "lanes")],
    older: None,
};

const RINGS: FamilyInfo = FamilyInfo {
    get: 15,
    set: 16,
    fields: &[
        (2, "rx_max"),
        (3, "rx_mini_max"),
        (4, "rx_jumbo_max"),
        (5, "tx_max"),
        (6, "rx"),
        (7, "rx_mini"),
        (8, "rx_jumbo"),
        (9, "tx"),
        (10, "rx_buf_len"),
        (12, "cqe_size"),
    ],
    older: Some(ioctl::RINGS),
};

const CHANNELS: FamilyInfo = FamilyInfo {
    get: 17,
    set: 18,
    fields: &[
        (2, "rx_max"),
        (3, "tx_max"),
        (4, "other_max"),
        (5, "combined_max"),
        (6, "rx"),
        (7, "tx"),
        (8, "other"),
        (9, "combined"),
    ],
    older: Some(ioctl::CHANNELS),
};

const COALESCE: FamilyInfo = FamilyInfo {
    get: 19,
    set: 20,
    fields: &[
        (2, "rx-usecs"),
        (3, "rx-frames"),
        (4, "rx-usecs-irq"),
        (5, "rx-frames-irq"),
        (6, "tx-usecs"),
        (7, "tx-frames"),
        (8, "tx-usecs-irq"),
        (9, "tx-frames-irq"),
        (10, "stats-block-usecs"),
        (11, "adaptive-rx"),
        (12, "adaptive-tx"),
        (13, "pkt-rate-low"),
        (14, "rx-usecs-low"),
        (15, "rx-frames-low"),
        (16, "tx-usecs-low"),
        (17, "tx-frames-low"),
        (18, "pkt-rate-high"),
        (19, "rx-usecs-high"),
        (20, "rx-frames-high"),
        (21, "tx-usecs-high"),
        (22, "tx-frames-high"),
        (23, "sample-interval"),
        (24, "cqe-mode-tx"),
        (25, "cqe-mode-rx"),
    ],
    older: Some(ioctl::COALESCE),
};

const PAUSE: FamilyInfo = FamilyInfo {
    get: 21,
    set: 22,
    fields: &[(2, "autoneg"), (3, "rx"), (4, "tx")],
    older: Some(ioctl::PAUSE),
};

const EEE: FamilyInfo = FamilyInfo {
    get: 23,
    set: 24,
    fields: &[(4, "active"), (5, "enabled"), (6, "tx_lpi_enabled"), (7, "tx_lpi_timer")],
    older: None,
};

impl EthtoolFamily {
    pub(crate) fn info(self) -> FamilyInfo {
        match self {
            Self::Link => LINK,
            Self::Rings => RINGS,
            Self::Channels => CHANNELS,
            Self::Coalesce => COALESCE,
            Self::Pause => PAUSE,
            Self::Eee => EEE,
        }
    }
}

/// Name of a family in `Nic::missing`.
pub fn label(family: EthtoolFamily) -> &'static str {
    match family {
        EthtoolFamily::Link => "link",
        EthtoolFamily::Rings => "ring",
        EthtoolFamily::Channels => "channels",
        EthtoolFamily::Coalesce => "coalesce",
        EthtoolFamily::Pause => "pause",
        EthtoolFamily::Eee => "eee",
    }
}

/// Whether a number of a family is only on or off.
pub fn is_flag(family: EthtoolFamily, name: &str) -> bool {
    match family {
        EthtoolFamily::Pause => true,
        EthtoolFamily::Coalesce => name.starts_with("adaptive-") || name.starts_with("cqe-mode-"),
        EthtoolFamily::Eee => name != "tx_lpi_timer",
        EthtoolFamily::Link => name == "autoneg",
        EthtoolFamily::Rings | EthtoolFamily::Channels => false,
    }
}
