//! What to do about tuning, computed from what was measured; also what to leave alone.

use serde::{Deserialize, Serialize};

/// What a piece of advice asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advised {
    /// Write this value.
    Change,
    /// Leave it as it is.
    Leave,
    /// Measure this first.
    Measure,
}

/// One piece of advice, with its arithmetic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// What is asked for.
    pub advised: Advised,
    /// What it is about: `tcp buffers`, `retransmits`, `drop counters`.
    pub about: String,
    /// All of it in words, with the figures that it follows from.
    pub sentence: String,
    /// `host key = value` for what is to be written, in words that `sysctl -w` takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// What others publish for such hosts, to compare with: text and source. Never a default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
}
