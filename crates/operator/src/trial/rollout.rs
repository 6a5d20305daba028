//! The trial of one host of a rollout: the proven settings that differ there, measured on a pair with that
//! host in the direction of the proof, beside an untouched one.
//!
//! In: a rollout, the settings beside the facts of the host, a diagnosis. Out: a trial that has not begun, or
//! the reason why the host needs none. Pure.

use linerate_kept::profile::{GroupResult, ProfileReading};
use linerate_kept::rollout::{HostResult, Rollout};
use linerate_model::finding::{Cell, Diagnosis};
use linerate_model::inventory::{HostName, Inventory};
use linerate_model::trial::{Trial, TrialMeasure};

use super::choose;
use super::profile::{nothing_to_try, remedy};
use super::sweep::{self, Ends, SweepError, SweepOptions};

/// What there is to do on a host.
#[derive(Debug, Clone, PartialEq)]
pub enum HostStart {
    /// A trial.
    Trial(Box<Trial>),
    /// Nothing, for this reason.
    Done(HostResult, String),
}

/// What there is to do on a host; `id` is that of its trial.
pub fn start(
    inventory: &Inventory,
    diagnosis: &Diagnosis,
    rollout: &Rollout,
    host: &HostName,
    readings: &[ProfileReading],
    id: String,
) -> Result<HostStart, SweepError> {
    if inventory.host(host).is_none() {
        return Err(SweepError::NoHost(host.clone()));
    }
    let readings: Vec<(&HostName, &ProfileReading)> =
        readings.iter().map(|reading| (host, reading)).collect();
    let remedy =
        remedy(format!("rollout/{}", rollout.id), format!("carry {} to {host}", rollout.source), &readings);
    if remedy.changes.is_empty() {
        let (result, why) = nothing_to_try(&readings);
        return Ok(match result {
            GroupResult::InForce => HostStart::Done(HostResult::InForce, why),
            GroupResult::NotForHost => HostStart::Done(HostResult::NotForHost, why),
            _ => HostStart::Done(HostResult::Failed, why),
        });
    }
    let pair = worst(diagnosis, rollout, host);
    let options =
        SweepOptions { on: vec![host.clone()], pair, response: rollout.metric, ..SweepOptions::default() };
    let (pair, layer, control) = sweep::pairs(inventory, diagnosis, &options, &remedy)?;
    let measure = TrialMeasure { response: rollout.metric, layer, pair, control };
    Ok(HostStart::Trial(Box::new(Trial::planned(id, diagnosis.run.clone(), remedy, measure))))
}

/// The worst measured pair in which the host sends or receives, as in the proof.
fn worst(diagnosis: &Diagnosis, rollout: &Rollout, host: &HostName) -> Option<Ends> {
    let is_of_host = |cell: &&Cell| match rollout.receives {
        Some(true) => cell.to == *host,
        Some(false) => cell.from == *host,
        None => cell.to == *host || cell.from == *host,
    };
    let by = |cell: &Cell| choose::effect(cell, rollout.metric);
    let cell = diagnosis.cells.iter().filter(is_of_host).max_by(|a, b| by(a).total_cmp(&by(b)))?;
    Some((cell.from.clone(), cell.to.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::testing::{self, inventory};
    use linerate_kept::profile::ReadingState;
    use linerate_knowledge::profile::SettingGroup;
    use linerate_model::change::Risk;
    use linerate_model::fact::FactValue;
    use linerate_model::finding::Metric;

    fn diagnosis() -> Diagnosis {
        testing::diagnosis(&[("a", "b", 0.3), ("b", "a", 0.5), ("c", "a", 0.9), ("c", "d", 1.0)])
    }

    fn rollout(receives: Option<bool>) -> Rollout {
        Rollout {
            id: "x".to_owned(),
            source: "t".to_owned(),
            trials: vec!["t".to_owned()],
            run: "r".to_owned(),
            metric: Metric::Throughput,
            receives,
            groups: Vec::new(),
            waves: Vec::new(),
            arms: 8,
        }
    }

    fn reading(state: ReadingState) -> ProfileReading {
        ProfileReading {
            group: SettingGroup::Queues,
            key: "sysctl.net.core.somaxconn".to_owned(),
            now: Some(FactValue::Int(128)),
            to: Some(FactValue::Int(4096)),
            state,
            why: "a reason".to_owned(),
            risk: Risk::Harmless,
        }
    }

    fn started(receives: Option<bool>, state: ReadingState) -> HostStart {
        let host = "a".to_owned();
        let rollout = rollout(receives);
        start(&inventory(), &diagnosis(), &rollout, &host, &[reading(state)], "n".to_owned()).unwrap()
    }

    #[test]
    fn a_host_is_measured_in_the_direction_of_the_proof_beside_an_untouched_pair() {
        for (receives, from, to) in [(Some(true), "b", "a"), (Some(false), "a", "b"), (None, "a", "b")] {
            let HostStart::Trial(trial) = started(receives, ReadingState::Differs) else {
                panic!("no trial")
            };
            assert_eq!(trial.pair, (from.to_owned(), to.to_owned()));
            assert_eq!(trial.control, Some(("c".to_owned(), "d".to_owned())));
            assert_eq!((trial.remedy.hosts(), trial.id.as_str()), (vec!["a".to_owned()], "n"));
            assert_eq!(trial.remedy.changes[0].to, FactValue::Int(4096));
        }
    }

    #[test]
    fn a_host_that_needs_nothing_has_a_reason() {
        let done = |state| match started(None, state) {
            HostStart::Done(result, _) => result,
            HostStart::Trial(_) => panic!("a trial"),
        };
        assert_eq!(done(ReadingState::Same), HostResult::InForce);
        assert_eq!(done(ReadingState::More), HostResult::InForce);
        assert_eq!(done(ReadingState::NotForHost), HostResult::NotForHost);
        assert_eq!(done(ReadingState::Missing), HostResult::Failed);
        let unknown = start(&inventory(), &diagnosis(), &rollout(None), &"x".to_owned(), &[], "n".to_owned());
        assert!(matches!(unknown, Err(SweepError::NoHost(host)) if host == "x"));
    }
}
