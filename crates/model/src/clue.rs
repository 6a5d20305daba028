//! What speaks for or against a cause, as facts; their texts are written by the reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::{FactKey, FactValue};
use crate::inventory::HostName;

/// A fact that was read, beside what most peers have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactHit {
    /// Host.
    pub host: HostName,
    /// Key.
    pub key: FactKey,
    /// Value there.
    pub value: FactValue,
    /// What most peers have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<FactValue>,
}

/// What speaks for or against a cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clue {
    /// A fact.
    Read(FactHit),
    /// The same facts on these hosts.
    AlsoOn(Vec<HostName>),
    /// A measured value.
    Measured {
        /// Its name in knowledge files.
        name: String,
        /// The value.
        value: f64,
        /// How the cause words it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        says: String,
    },
}
