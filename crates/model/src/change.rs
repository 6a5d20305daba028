//! A change of one setting, and a remedy: a list of changes that leaves no choice.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::{FactKey, FactValue};
use crate::inventory::HostName;

/// One setting on one host, from a value to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Where.
    pub host: HostName,
    /// Which setting.
    pub key: FactKey,
    /// Value that was read before; the node refuses the change when it reads another one.
    pub from: FactValue,
    /// Value to write.
    pub to: FactValue,
}

/// A file that would be written so that a change survives a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedFile {
    /// Absolute.
    pub path: PathBuf,
    /// Whether there is none yet.
    pub is_new: bool,
    /// The lines that are set, or all of a file that is written whole; `-> TARGET` of a symbolic link.
    pub lines: Vec<String>,
}

/// Settings with the values that a host read back.
pub type ReadBack = Vec<(FactKey, FactValue)>;

/// What a change can cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Nothing.
    #[default]
    Harmless,
    /// A short interruption of the link, or more CPU.
    Brief,
    /// May cut connectivity or slow something else.
    Disruptive,
    /// Data or security at stake.
    Dangerous,
}

impl std::fmt::Display for Risk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Harmless => "harmless",
            Self::Brief => "brief: a short interruption of the link or more CPU",
            Self::Disruptive => "disruptive: may cut connectivity or slow something else",
            Self::Dangerous => "dangerous: data or security at stake",
        })
    }
}

/// What to try against a cause.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remedy {
    /// Name to type after `linerate try`: the id of the cause.
    pub id: String,
    /// What it does, one line.
    pub title: String,
    /// Fully specified; empty when the remedy is an instruction for people.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// The command or instruction for people.
    #[serde(default)]
    pub instruction: String,
    /// The same in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by_hand: String,
    /// A command that reads only and shows the cause on [`Self::host`]; empty where something that it needs
    /// is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub check: String,
    /// Where instruction and check run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: HostName,
    /// How it is made to survive a reboot.
    #[serde(default)]
    pub persistence: String,
    /// What it can cost.
    pub risk: Risk,
    /// In words.
    #[serde(default)]
    pub risk_text: String,
}

impl Remedy {
    /// Hosts that it changes, each once, in order.
    pub fn hosts(&self) -> Vec<HostName> {
        let mut hosts: Vec<HostName> = Vec::new();
        for change in &self.changes {
            if !hosts.contains(&change.host) {
                hosts.push(change.host.clone());
            }
        }
        hosts
    }

    /// Whether it changes settings of replicated volumes (DRBD): writes to them show what it does, no
    /// transfer between hosts does.
    pub fn is_of_replicas(&self) -> bool {
        self.changes.iter().any(|change| change.key.starts_with("drbd."))
    }
}
