//! What a host reports while its facts are followed: that something was written, what it changed, and who did
//! where the kernel knows it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::{FactKey, FactValue};

/// Who changed what is different after a boot.
pub const BY_REBOOT: &str = "a reboot";
/// Subject of the gap of a host that cannot record who writes to sysctls.
pub const WRITERS: &str = "notices of writing processes";
/// Subject of the gap of a host that cannot record who asks for changes of links and settings of drivers.
pub const LINK_WRITERS: &str = "notices of processes that change links";

/// What reported a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeSource {
    /// A file below `/proc` or `/sys` was written.
    Written,
    /// Links, addresses, routes, rules, queueing disciplines (rtnetlink).
    Link,
    /// Settings of a driver (ethtool).
    Driver,
    /// nftables.
    Firewall,
    /// A file that is read at boot or by a daemon.
    File,
    /// Nothing reported it: all was read again.
    Reading,
    /// The host has booted: all was read again.
    Reboot,
}

/// The process that wrote.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Writer {
    /// Process id.
    pub pid: i32,
    /// Its name; `None` where it had ended before it could be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its systemd unit, such as `tuned.service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// It alone asked for a change at that time; that it asked for this one is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_probable: bool,
}

impl Writer {
    /// Its unit, else its name and number; `probably` stands before what is not known for certain.
    #[must_use]
    pub fn name(&self) -> String {
        if self.is_probable {
            return format!("probably {}", Self { is_probable: false, ..self.clone() }.name());
        }
        match (&self.unit, &self.name) {
            (Some(unit), _) => unit.clone(),
            (None, Some(name)) => format!("{name} ({})", self.pid),
            (None, None) => format!("process {}, which has ended", self.pid),
        }
    }
}

/// A value that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueChange {
    /// Key.
    pub key: FactKey,
    /// The value before; `None` where there was none.
    pub from: Option<FactValue>,
    /// The value now; `None` where it is gone.
    pub to: Option<FactValue>,
}

/// What a host reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactNotice {
    /// When it was reported, by the clock of the host, Unix milliseconds.
    pub at_ms: u64,
    /// How long after that its values were read, milliseconds.
    #[serde(default)]
    pub read_after_ms: u64,
    /// What reported it.
    pub source: NoticeSource,
    /// The file or device; empty where a whole table is meant.
    pub about: String,
    /// Who wrote, where the kernel knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<Writer>,
    /// What is different now. Empty for a file: what it changes shows at the next boot or restart.
    pub changes: Vec<ValueChange>,
}

impl FactNotice {
    /// Who changed what is different, where that is known.
    #[must_use]
    pub fn who(&self) -> Option<String> {
        let boot = (self.source == NoticeSource::Reboot).then(|| BY_REBOOT.to_owned());
        self.writer.as_ref().map(Writer::name).or(boot)
    }
}
