//! A remedy tried: before and after, interleaved, beside an untouched control.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::Remedy;
use crate::finding::Metric;
use crate::inventory::{HostName, Layer};
use crate::run_id::RunId;

/// Where a trial stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialStatus {
    /// Measuring; the dead-man timer is armed on the node.
    #[default]
    Running,
    /// Measured; the old values are back, the journal is kept so that `keep` can apply the change again.
    Measured,
    /// Applied for good and written where it survives a reboot.
    Kept,
    /// Taken back.
    Undone,
    /// Could not be taken back.
    UndoFailed,
}

/// What the measurement says about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The interval lies above no change.
    Better,
    /// The interval holds no change and is narrow.
    NoEffect,
    /// The interval lies below no change.
    Worse,
    /// The control moved as much, or there were too few valid measurements.
    NotShown,
}

/// One measurement of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arm {
    /// `false` with the old values (A), `true` with the new ones (B).
    pub changed: bool,
    /// Value of the response on the affected pair; `None` when the test was invalid.
    pub value: Option<f64>,
    /// The same on the control pair, right after.
    pub control: Option<f64>,
}

/// Effect of a change with its uncertainty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EffectSize {
    /// Better, no effect, worse, not shown.
    pub effect: Effect,
    /// Ratio after / before of the medians (for values where less is better the inverse, so that above 1 is
    /// better).
    pub ratio: f64,
    /// Bootstrap interval of the ratio, 95 %.
    pub interval: (f64, f64),
    /// The same ratio on the control pair.
    pub control_ratio: f64,
    /// Its interval.
    pub control_interval: (f64, f64),
    /// Median before, in the unit of the response.
    pub before: f64,
    /// Median after.
    pub after: f64,
    /// Valid measurements that each kind of arm needs, where one of the two has fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fewer_than: Option<usize>,
    /// All of it in words; empty until a report writes it.
    pub sentence: String,
}

/// What a trial measures, and between whom.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrialMeasure {
    /// In which value the effect is measured.
    pub response: Metric,
    /// Layer in which both pairs are measured.
    pub layer: Layer,
    /// Affected ordered pair.
    pub pair: (HostName, HostName),
    /// Untouched ordered pair, where the cluster has one.
    pub control: Option<(HostName, HostName)>,
}

/// A remedy tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Identifier.
    pub id: RunId,
    /// Run whose finding is treated.
    pub run: RunId,
    /// What was changed.
    pub remedy: Remedy,
    /// In which value the effect is measured.
    pub response: Metric,
    /// Layer in which both pairs are measured.
    #[serde(default)]
    pub layer: Layer,
    /// Affected ordered pair.
    pub pair: (HostName, HostName),
    /// Untouched ordered pair, where the cluster has one.
    pub control: Option<(HostName, HostName)>,
    /// In order of time.
    pub arms: Vec<Arm>,
    /// Result.
    pub effect: Option<EffectSize>,
    /// Where it stands.
    pub status: TrialStatus,
    /// Files that make it survive a reboot.
    #[serde(default)]
    pub persisted: Vec<String>,
    /// What went wrong, in order.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Trial {
    /// Before its first arm.
    #[must_use]
    pub fn planned(id: RunId, run: RunId, remedy: Remedy, measure: TrialMeasure) -> Self {
        let TrialMeasure { response, layer, pair, control } = measure;
        Self {
            id,
            run,
            remedy,
            response,
            layer,
            pair,
            control,
            arms: Vec::new(),
            effect: None,
            status: TrialStatus::Running,
            persisted: Vec::new(),
            notes: Vec::new(),
        }
    }
}
