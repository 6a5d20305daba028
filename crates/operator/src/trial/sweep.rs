//! A sweep: settings through several values, without a finding. Comes in: what to set on which hosts, and the
//! values in force there. Goes out: one trial for each value, all on the same pair beside the same untouched
//! one, and of the trials that were made the value that is best. Pure.

use std::collections::BTreeMap;

use linerate_model::change::{Change, Remedy};
use linerate_model::fact::{FactKey, FactValue};
use linerate_model::finding::{Cell, Diagnosis, Metric};
use linerate_model::inventory::{HostName, Inventory, Layer};
use linerate_model::trial::{Effect, Trial, TrialMeasure};
use linerate_model::writable::writable;
use thiserror::Error;

use super::choose;

/// Most values of a sweep: each is a trial of its own.
const VALUES_MAX: usize = 16;

/// One setting and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepSetting {
    /// Which setting.
    pub key: FactKey,
    /// Values, as they were typed.
    pub values: Vec<String>,
}

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct SweepOptions {
    /// Settings that change together: the first values of all, then the second ones.
    pub set: Vec<SweepSetting>,
    /// Hosts to change, all together.
    pub on: Vec<HostName>,
    /// Pair to measure; by default the worst measured one with a changed host.
    pub pair: Option<(HostName, HostName)>,
    /// What is compared.
    pub response: Metric,
}

/// Why there is nothing to sweep.
#[derive(Debug, Error)]
pub enum SweepError {
    /// No such form.
    #[error("'{0}' is no setting with values\nhint: such as nic.eth0.coalesce.rx-usecs=0,8,32,64")]
    Form(String),
    /// Not on the list.
    #[error(
        "{0} is no setting that may be written\nhint: settings have `yes` in the list of facts of the \
         reference; `linerate facts HOST` lists the keys"
    )]
    NotWritable(FactKey),
    /// Several settings change together.
    #[error(
        "{key} has {count} values and {other} has {others}\nhint: as many values for each setting, or one"
    )]
    Uneven {
        /// One setting.
        key: FactKey,
        /// Its number of values.
        count: usize,
        /// The other one.
        other: FactKey,
        /// Its number of values.
        others: usize,
    },
    /// Too many trials.
    #[error("{0} values are too many for one sweep\nhint: at most {VALUES_MAX}")]
    TooMany(usize),
    /// Only what is in force.
    #[error("every value is in force already\nhint: name a value that differs from the present one")]
    NothingNew,
    /// Nothing was measured there.
    #[error("run {run} has no measured pair with {hosts}\nhint: name one with --pair FROM,TO")]
    NoPair {
        /// Run.
        run: String,
        /// Hosts to change.
        hosts: String,
    },
    /// Not in the inventory.
    #[error("no host {0} in the inventory\nhint: `linerate inventory` lists them")]
    NoHost(HostName),
}

/// Reads `KEY=VALUE[,VALUE…]`.
pub fn parse(text: &str) -> Result<SweepSetting, SweepError> {
    let form = || SweepError::Form(text.to_owned());
    let (key, values) = text.split_once('=').ok_or_else(form)?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if key.is_empty() || values.iter().any(String::is_empty) {
        return Err(form());
    }
    if writable(key).is_none() {
        return Err(SweepError::NotWritable(key.to_owned()));
    }
    Ok(SweepSetting { key: key.to_owned(), values })
}

/// How many values each setting has; one value stands for as many as the others have.
fn length(set: &[SweepSetting]) -> Result<usize, SweepError> {
    let longest = set.iter().max_by_key(|s| s.values.len()).ok_or(SweepError::NothingNew)?;
    let count = longest.values.len();
    if let Some(other) = set.iter().find(|s| s.values.len() != 1 && s.values.len() != count) {
        let (key, other, others) = (longest.key.clone(), other.key.clone(), other.values.len());
        return Err(SweepError::Uneven { key, count, other, others });
    }
    if count > VALUES_MAX { Err(SweepError::TooMany(count)) } else { Ok(count) }
}

/// The trials of a sweep that have not begun, with ids that begin with `id`. `present` has the value in force
/// of each setting of each host; what is in force already is left out.
pub fn plan(
    inventory: &Inventory,
    diagnosis: &Diagnosis,
    options: &SweepOptions,
    present: &BTreeMap<(HostName, FactKey), FactValue>,
    id: &str,
) -> Result<Vec<Trial>, SweepError> {
    let unknown = |host: &&HostName| inventory.host(host).is_none();
    let ends = options.pair.iter().flat_map(|(from, to)| [from, to]);
    if let Some(host) = options.on.iter().chain(ends).find(unknown) {
        return Err(SweepError::NoHost(host.clone()));
    }
    let remedies = (0..length(&options.set)?).map(|at| remedy(options, present, at));
    let remedies: Vec<Remedy> = remedies.filter(|remedy| !remedy.changes.is_empty()).collect();
    let Some(first) = remedies.first() else { return Err(SweepError::NothingNew) };
    let (pair, layer, control) = pairs(inventory, diagnosis, options, first)?;
    let measure = TrialMeasure { response: options.response, layer, pair, control };
    let trial = |(number, remedy): (usize, Remedy)| {
        Trial::planned(format!("{id}-{}", number + 1), diagnosis.run.clone(), remedy, measure.clone())
    };
    Ok(remedies.into_iter().enumerate().map(trial).collect())
}

/// The change to the values at one position.
fn remedy(options: &SweepOptions, present: &BTreeMap<(HostName, FactKey), FactValue>, at: usize) -> Remedy {
    let value = |set: &'_ SweepSetting| set.values[at.min(set.values.len() - 1)].clone();
    let mut changes = Vec::new();
    for host in &options.on {
        for set in &options.set {
            let Some(from) = present.get(&(host.clone(), set.key.clone())) else { continue };
            let to = like(from, &value(set));
            if !to.is_same(from) {
                changes.push(Change { host: host.clone(), key: set.key.clone(), from: from.clone(), to });
            }
        }
    }
    let families = options.set.iter().filter_map(|set| writable(&set.key));
    let risk = families.clone().map(|family| family.risk).max().unwrap_or_default();
    let named: Vec<String> = options.set.iter().map(|set| format!("{}={}", set.key, value(set))).collect();
    Remedy {
        id: named.join(" "),
        title: format!("set {}", named.join(" and ")),
        changes,
        risk,
        risk_text: families.map(|family| family.what).collect::<Vec<_>>().join(" "),
        ..Remedy::default()
    }
}

/// A typed value in the form of the one in force.
pub(super) fn like(old: &FactValue, typed: &str) -> FactValue {
    match old {
        FactValue::Flag(_) if ["on", "off"].contains(&typed) => FactValue::Flag(typed == "on"),
        FactValue::Int(_) | FactValue::Float(_) => {
            typed.parse().map_or_else(|_| FactValue::Text(typed.to_owned()), FactValue::Int)
        }
        _ => FactValue::Text(typed.to_owned()),
    }
}

pub(super) type Ends = (HostName, HostName);

/// What is measured: the pair, its layer, and an untouched one of the same kind.
pub(super) fn pairs(
    inventory: &Inventory,
    diagnosis: &Diagnosis,
    options: &SweepOptions,
    remedy: &Remedy,
) -> Result<(Ends, Layer, Option<Ends>), SweepError> {
    let cell = if let Some((from, to)) = &options.pair {
        diagnosis.cells.iter().find(|c| c.from == *from && c.to == *to)
    } else {
        let touched = diagnosis.cells.iter().filter(|c| choose::touches(c, remedy, inventory));
        let worst = |c: &&Cell| choose::effect(c, options.response);
        touched.max_by(|a, b| worst(a).total_cmp(&worst(b)))
    };
    match (cell, &options.pair) {
        (Some(cell), _) => {
            let control = choose::control(cell, &[], diagnosis, remedy, inventory);
            Ok(((cell.from.clone(), cell.to.clone()), cell.layer, control))
        }
        (None, Some(pair)) => Ok((pair.clone(), Layer::Underlay, None)),
        (None, None) => Err(SweepError::NoPair { run: diagnosis.run.clone(), hosts: options.on.join(", ") }),
    }
}

/// The trial with the best value: of those that are proven to be better than the value in force, the one with
/// the largest ratio. `None` when none is.
pub fn best(trials: &[Trial]) -> Option<&Trial> {
    let better = |trial: &&Trial| trial.effect.as_ref().is_some_and(|e| e.effect == Effect::Better);
    let ratio = |trial: &Trial| trial.effect.as_ref().map_or(0.0, |e| e.ratio);
    trials.iter().filter(better).max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::testing::inventory;
    use linerate_model::trial::EffectSize;

    fn options(set: &[&str]) -> SweepOptions {
        SweepOptions {
            set: set.iter().map(|text| parse(text).unwrap()).collect(),
            on: vec!["a".to_owned()],
            pair: Some(("b".to_owned(), "a".to_owned())),
            response: Metric::Throughput,
        }
    }

    const WAIT: &str = "nic.eth0.coalesce.rx-usecs";
    const MTU: &str = "nic.eth0.mtu";

    fn present() -> BTreeMap<(HostName, FactKey), FactValue> {
        [(WAIT, 8), (MTU, 1500)]
            .map(|(key, value)| (("a".to_owned(), key.to_owned()), FactValue::Int(value)))
            .into()
    }

    fn planned(set: &[&str]) -> Result<Vec<Trial>, SweepError> {
        plan(&inventory(), &Diagnosis::default(), &options(set), &present(), "t")
    }

    #[test]
    fn each_value_but_the_present_one_is_a_trial() {
        let trials = planned(&["nic.eth0.coalesce.rx-usecs=0,8,32,64"]).unwrap();
        let values: Vec<String> = trials.iter().map(|t| t.remedy.changes[0].to.to_string()).collect();
        assert_eq!(values, ["0", "32", "64"]);
        assert_eq!(trials.iter().map(|t| t.id.as_str()).collect::<Vec<_>>(), ["t-1", "t-2", "t-3"]);
        assert_eq!(trials[0].remedy.title, "set nic.eth0.coalesce.rx-usecs=0");
        assert!(matches!(planned(&["nic.eth0.mtu=1500"]), Err(SweepError::NothingNew)));
    }

    #[test]
    fn settings_change_together_and_one_value_goes_with_all() {
        let trials = planned(&["nic.eth0.coalesce.rx-usecs=0,32", "nic.eth0.mtu=9000"]).unwrap();
        let changes: Vec<(usize, String)> =
            trials.iter().map(|t| (t.remedy.changes.len(), t.remedy.changes[1].to.to_string())).collect();
        assert_eq!(changes, [(2, "9000".to_owned()), (2, "9000".to_owned())]);
        let uneven = planned(&["nic.eth0.coalesce.rx-usecs=0,32,64", "nic.eth0.mtu=1400,9000"]);
        assert!(matches!(uneven, Err(SweepError::Uneven { count: 3, others: 2, .. })));
    }

    #[test]
    fn what_may_not_be_written_or_is_no_list_is_refused() {
        for text in ["nic.eth0.mtu", "nic.eth0.mtu=", "nic.eth0.mtu=1,,2", "=1"] {
            assert!(matches!(parse(text), Err(SweepError::Form(_))), "{text}");
        }
        assert!(matches!(parse("sysctl.kernel.core_pattern=x"), Err(SweepError::NotWritable(_))));
    }

    #[test]
    fn the_best_value_is_one_that_is_proven() {
        let mut trials = planned(&["nic.eth0.coalesce.rx-usecs=0,32,64"]).unwrap();
        let size = |effect, ratio| EffectSize {
            effect,
            ratio,
            interval: (ratio * 0.9, ratio * 1.1),
            control_ratio: 1.0,
            control_interval: (1.0, 1.0),
            before: 1.0,
            after: ratio,
            fewer_than: None,
            sentence: String::new(),
        };
        trials[0].effect = Some(size(Effect::Better, 1.2));
        trials[1].effect = Some(size(Effect::Better, 1.5));
        trials[2].effect = Some(size(Effect::NotShown, 3.0));
        assert_eq!(best(&trials).map(|t| t.id.as_str()), Some("t-2"));
        assert!(best(&trials[2..]).is_none());
    }
}
