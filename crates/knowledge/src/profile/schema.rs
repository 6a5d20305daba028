//! The fields of a profile.

use linerate_model::fact::{FactKey, FactValue};
use linerate_model::finding::Metric;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A published set of settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Stable name: lower case, digits and dashes.
    pub id: String,
    /// One line of at most 60 characters.
    pub title: String,
    /// Work of the hosts that it is for.
    pub role: ProfileRole,
    /// Date of the newest source, `YYYY-MM-DD`.
    pub date: String,
    /// Least and greatest speed of the link that it is for, Gbit/s; any speed without it.
    #[serde(default)]
    pub speed_gbits: Option<(f64, f64)>,
    /// Under which conditions its source recommends it, one sentence each.
    pub conditions: Vec<String>,
    /// Where the values are from. A setting without a `source` has the first.
    pub sources: Vec<ProfileSource>,
    /// Settings that are tried together, in the order of the trials.
    pub groups: Vec<ProfileGroup>,
    /// Parts of the source that are not tried, with the reason.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

/// Work of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileRole {
    /// Measures long paths with single streams.
    Measurement,
    /// Transfers data to other sites (data transfer node).
    Transfer,
    /// Streams within a cluster.
    Throughput,
    /// Short messages.
    Latency,
    /// Serves disks over the network.
    Storage,
}

impl ProfileRole {
    /// The word of files and tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Measurement => "measurement",
            Self::Transfer => "transfer",
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::Storage => "storage",
        }
    }
}

/// Where values are from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileSource {
    /// Name within the file.
    pub name: String,
    /// Document, version and page or path in it.
    pub text: String,
    /// Its date, `YYYY-MM-DD`, or the year.
    pub date: String,
}

/// Settings that take effect together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileGroup {
    /// Which.
    pub group: SettingGroup,
    /// The value that a trial of the group compares.
    #[serde(default)]
    pub metric: Metric,
    /// The settings.
    pub set: Vec<ProfileSetting>,
}

/// Groups of settings: a closed list, so that the results of two profiles can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettingGroup {
    /// Limits of socket buffers.
    Buffers,
    /// Behaviour of TCP connections.
    Tcp,
    /// Queueing discipline.
    Qdisc,
    /// Lengths of packet queues outside of the device.
    Queues,
    /// Rings of the device.
    Rings,
    /// Interrupt coalescing.
    Coalescing,
    /// CPUs that take interrupts.
    Interrupts,
    /// Offloads of the device.
    Offloads,
    /// Largest packet.
    Mtu,
    /// Busy polling of sockets.
    Polling,
    /// Frequency, idle states and scheduler.
    Cpu,
    /// Reclaim and statistics of memory.
    Memory,
}

impl SettingGroup {
    /// The word of files and tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Buffers => "buffers",
            Self::Tcp => "tcp",
            Self::Qdisc => "qdisc",
            Self::Queues => "queues",
            Self::Rings => "rings",
            Self::Coalescing => "coalescing",
            Self::Interrupts => "interrupts",
            Self::Offloads => "offloads",
            Self::Mtu => "mtu",
            Self::Polling => "polling",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }
}

impl SettingGroup {
    /// The group of a setting that no profile assigned to one.
    #[must_use]
    pub fn of_key(key: &str) -> Self {
        let has = |parts: &[&str]| parts.iter().any(|part| key.contains(part));
        match () {
            () if has(&["rmem", "wmem", "optmem"]) => Self::Buffers,
            () if has(&[".ring."]) => Self::Rings,
            () if has(&[".coalesce."]) => Self::Coalescing,
            () if has(&[".irq.", ".queue.", ".channels.", ".rss.", "irqbalance"]) => Self::Interrupts,
            () if has(&[".feature."]) => Self::Offloads,
            () if has(&[".mtu"]) => Self::Mtu,
            () if has(&["qdisc"]) => Self::Qdisc,
            () if has(&["txqueuelen", "backlog", "somaxconn"]) => Self::Queues,
            () if has(&["busy_"]) => Self::Polling,
            () if has(&["sysctl.vm."]) => Self::Memory,
            () if has(&["cpu.", "sysctl.kernel."]) => Self::Cpu,
            () => Self::Tcp,
        }
    }
}

/// One setting with its value. Exactly one of `to`, `to_fact` and `to_first_cpu_of` is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileSetting {
    /// Key of the setting; `nic.*` is the device with the measured address, a further `*` any name.
    pub key: FactKey,
    /// This value.
    #[serde(default)]
    pub to: Option<FactValue>,
    /// The value of another fact of the host; `nic.*` as in `key`.
    #[serde(default)]
    pub to_fact: Option<FactKey>,
    /// The first CPU of a list that another fact of the host has.
    #[serde(default)]
    pub to_first_cpu_of: Option<FactKey>,
    /// A host with a larger number (in its last field) keeps it.
    #[serde(default)]
    pub at_least: bool,
    /// Why this value.
    pub reason: String,
    /// Name of its source.
    #[serde(default)]
    pub source: Option<String>,
    /// Conditions of the host that have to hold; a host that does not meet one keeps its value.
    #[serde(default)]
    pub when: Vec<HostCondition>,
}

/// A condition of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum HostCondition {
    /// The longest measured RTT of the host is at least this many microseconds.
    RttUsMin(f64),
    /// A fact of the host is a number of at least `min`.
    FactMin {
        /// Which; `nic.*` as in the key of the setting.
        key: FactKey,
        /// In the unit of the fact.
        min: f64,
    },
}

/// A part of a source that is not tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Setting as the source has it.
    pub what: String,
    /// Reason.
    pub why: String,
}

impl Profile {
    /// Where a setting is from.
    #[must_use]
    pub fn source_of(&self, setting: &ProfileSetting) -> Option<&ProfileSource> {
        match &setting.source {
            Some(name) => self.sources.iter().find(|source| source.name == *name),
            None => self.sources.first(),
        }
    }

    /// Number of settings.
    #[must_use]
    pub fn settings(&self) -> usize {
        self.groups.iter().map(|group| group.set.len()).sum()
    }
}
