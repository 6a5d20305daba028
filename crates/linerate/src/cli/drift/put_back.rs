//! Puts back what drifted: through the journal and the guardian of the host, as `keep` does, and as a trial
//! of the store, so that `linerate undo` knows it. Never what was put back within the last hour, and never
//! what two owners write.

use linerate_fleet::Fleet;
use linerate_fleet::changes::{FleetChangeError, FleetChanges};
use linerate_model::change::{Change, Remedy};
use linerate_model::drift::{DriftPolicy, DriftRow, DriftState, PUT_BACK};
use linerate_model::inventory::{HostName, Inventory};
use linerate_model::trial::{Trial, TrialMeasure, TrialStatus};
use linerate_store::{Store, StoreError};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::watcher;
use linerate_operator::run_id::new_id;

/// What was done about the settings of a host.
#[derive(Debug, Serialize, JsonSchema)]
pub(in super::super) struct Done {
    /// Host.
    pub(super) host: HostName,
    /// The trial that undoes it.
    pub(super) trial: String,
    /// Settings that were put back.
    pub(super) keys: Vec<String>,
    /// Files that were written.
    pub(super) files: Vec<String>,
    /// Why it could not be done; the old values are in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Whether the old values could not be restored.
    pub(super) undo_failed: bool,
}

impl Done {
    pub(super) fn is_done(&self) -> bool {
        self.error.is_none()
    }

    /// In words; `inventory` is the option that names it to another command.
    pub(super) fn sentence(&self, inventory: &str) -> String {
        let keys = self.keys.join(", ");
        match &self.error {
            None => format!(
                "{}: put back {keys}; `linerate undo {inventory}{}` reverts it",
                self.host, self.trial
            ),
            Some(error) => format!("{}: not put back: {keys}: {error}", self.host),
        }
    }
}

/// States that are put back, each as a trial of its own: what cannot be made to survive a boot does not
/// hold back what drifted.
const STATES: [DriftState; 2] = [DriftState::Drifted, DriftState::WillNotSurvive];

/// The settings of a host in a state that are put back, each from the value in force.
fn changes(rows: &[DriftRow], host: &str, state: DriftState, with_proposed: bool) -> Vec<Change> {
    let is_allowed = |row: &DriftRow| match row.kept.policy {
        DriftPolicy::Report => false,
        DriftPolicy::Propose => with_proposed,
        DriftPolicy::PutBack => true,
    };
    let ours = rows.iter().filter(|row| row.kept.host == host && row.state == state && is_allowed(row));
    let ours = ours.filter(|row| !row.fight && row.put_back_ms.is_none());
    let change = |row: &DriftRow| {
        let (host, key, to) = (row.kept.host.clone(), row.kept.key.clone(), row.kept.value.clone());
        Some(Change { host, key, from: row.now.clone()?, to })
    };
    ours.filter_map(change).collect()
}

/// Puts back what may be, host by host.
pub(super) async fn all(
    fleet: &Fleet,
    inventory: &Inventory,
    rows: &[DriftRow],
    with_proposed: bool,
    store: &Store,
) -> (Vec<Done>, Result<(), StoreError>) {
    let (mut done, mut saved) = (Vec::new(), Ok(()));
    let mut hands = FleetChanges::new(fleet, inventory);
    let of = |host| STATES.map(|state| (host, changes(rows, host, state, with_proposed)));
    let wanted = inventory.hosts.iter().flat_map(|host| of(&host.name));
    for (host, changes) in wanted.filter(|(_, changes)| !changes.is_empty()) {
        // What cannot be recorded is not begun, and what is begun is printed.
        match of_host(&mut hands, inventory, host, changes, store).await {
            Ok((one, one_saved)) => {
                done.push(one);
                saved = one_saved;
            }
            Err(error) => saved = Err(error),
        }
        if saved.is_err() {
            break;
        }
    }
    hands.bye().await;
    (done, saved)
}

async fn of_host(
    hands: &mut FleetChanges<'_>,
    inventory: &Inventory,
    host: &str,
    changes: Vec<Change>,
    store: &Store,
) -> Result<(Done, Result<(), StoreError>), StoreError> {
    let mut trial = trial(inventory, host, changes.clone(), store)?;
    watcher::save(store, &trial)?;
    let put = put(hands, host, &trial.id, &changes).await;
    let (error, undo_failed) = match &put {
        Ok(files) => {
            trial.status = TrialStatus::Kept;
            trial.persisted.clone_from(files);
            (None, false)
        }
        Err(error) => {
            trial.status = if error.undo_failed { TrialStatus::UndoFailed } else { TrialStatus::Undone };
            trial.notes.push(error.error.clone());
            (Some(error.error.clone()), error.undo_failed)
        }
    };
    let saved = watcher::save(store, &trial);
    let keys = changes.into_iter().map(|change| change.key).collect();
    let done = Done {
        host: host.to_owned(),
        trial: trial.id,
        keys,
        files: put.unwrap_or_default(),
        error,
        undo_failed,
    };
    Ok((done, saved))
}

/// Journal, guardian, values, files; then reads the values back. What cannot be kept is undone by the host.
async fn put(
    hands: &mut FleetChanges<'_>,
    host: &str,
    trial: &str,
    changes: &[Change],
) -> Result<Vec<String>, FleetChangeError> {
    let files = hands.keep(host, trial, changes).await?;
    let keys: Vec<String> = changes.iter().map(|change| change.key.clone()).collect();
    let values = hands.read(host, &keys).await?;
    let differs = changes.iter().find(|change| {
        let seen = values.iter().find(|(key, _)| *key == change.key);
        seen.is_none_or(|(_, value)| !value.is_same(&change.to))
    });
    if let Some(change) = differs {
        let undone = hands.undo(host, trial).await;
        let error = format!("{} does not keep {}", change.key, change.to);
        return Err(FleetChangeError { error, lost: false, undo_failed: undone.is_err() });
    }
    Ok(files.iter().map(|file| file.display().to_string()).collect())
}

/// The record of it: a trial without measurements of the last run of the cluster, where there is one.
fn trial(
    inventory: &Inventory,
    host: &str,
    changes: Vec<Change>,
    store: &Store,
) -> Result<Trial, StoreError> {
    let run = store.list_runs()?.into_iter().find(|run| run.cluster == inventory.name);
    let remedy = Remedy {
        id: PUT_BACK.to_owned(),
        title: "Put kept settings back".to_owned(),
        changes,
        host: host.to_owned(),
        ..Remedy::default()
    };
    // Nothing is measured.
    let measure = TrialMeasure { pair: (host.to_owned(), host.to_owned()), ..TrialMeasure::default() };
    Ok(Trial::planned(new_id(), run.map(|run| run.id).unwrap_or_default(), remedy, measure))
}

#[cfg(test)]
mod tests {
    use linerate_model::drift::KeptSetting;
    use linerate_model::fact::FactValue;

    use super::*;

    #[test]
    fn only_what_the_policy_allows_and_no_second_owner_writes_is_put_back() {
        let row = |state, policy| DriftRow {
            kept: KeptSetting {
                host: "a".to_owned(),
                key: "sysctl.vm.swappiness".to_owned(),
                value: FactValue::Int(1),
                policy,
                trial: None,
                profile: None,
                line: 1,
            },
            state,
            now: Some(FactValue::Int(60)),
            reason: None,
            boot: None,
            boot_read: true,
            changed: None,
            against: Vec::new(),
            fight: false,
            put_back_ms: None,
        };
        let count = |row: DriftRow, with_proposed| {
            STATES
                .map(|state| changes(std::slice::from_ref(&row), "a", state, with_proposed).len())
                .iter()
                .sum::<usize>()
        };
        assert_eq!(count(row(DriftState::Drifted, DriftPolicy::PutBack), false), 1);
        assert_eq!(count(row(DriftState::WillNotSurvive, DriftPolicy::PutBack), false), 1);
        assert_eq!(count(row(DriftState::Drifted, DriftPolicy::Propose), false), 0);
        assert_eq!(count(row(DriftState::Drifted, DriftPolicy::Propose), true), 1);
        assert_eq!(count(row(DriftState::Drifted, DriftPolicy::Report), true), 0);
        assert_eq!(count(row(DriftState::Same, DriftPolicy::PutBack), true), 0);
        let fight = DriftRow { fight: true, ..row(DriftState::Drifted, DriftPolicy::PutBack) };
        assert_eq!(count(fight, true), 0);
        let late = DriftRow { put_back_ms: Some(1), ..row(DriftState::WillNotSurvive, DriftPolicy::PutBack) };
        assert_eq!(count(late, true), 0);
    }
}
