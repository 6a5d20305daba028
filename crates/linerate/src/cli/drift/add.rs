//! Kept trials go into the kept set: how one is begun, and how `keep` adds to it.

use std::path::Path;

use linerate_kept::set;
use linerate_model::change::Change;
use linerate_model::drift::PUT_BACK;
use linerate_model::exit::ExitCode;
use linerate_model::inventory::Inventory;
use linerate_model::trial::Trial;
use linerate_store::Store;

use super::super::out;
use super::location::KeptLocation;

/// Writes the kept set from the trials of this cluster that are kept.
pub(super) fn init(location: &KeptLocation, inventory: &Inventory) -> anyhow::Result<ExitCode> {
    if let Some(old) = location.read()? {
        return Err(there_already(&old.name, location));
    }
    let store = Store::open_to_read()?;
    let runs = store.list_runs()?;
    let is_here = |trial: &Trial| {
        runs.iter().any(|run| run.id == trial.run && run.cluster == inventory.name)
            && trial.remedy.changes.iter().all(|change| inventory.host(&change.host).is_some())
    };
    let mut trials = Vec::new();
    for row in store.list_trials()?.into_iter().filter(|row| row.status == "kept" && row.remedy != PUT_BACK) {
        trials.push(store.load_trial(&row.id)?);
    }
    trials.retain(is_here);
    // The newest one decides about a setting.
    trials.reverse();
    anyhow::ensure!(
        !trials.is_empty(),
        "no kept trials of {}\nhint: `linerate keep TRIAL` persists a tried change; `linerate runs` lists trials",
        inventory.name
    );
    let name = location.edit("drift --init", |name, old| {
        // Another operator may have begun one just now.
        anyhow::ensure!(old.is_empty(), there_already(name, location));
        trials.iter().try_fold(String::new(), |text, trial| with(name, &text, trial))
    })?;
    let count = trials.len();
    out::print(&format!("{name}: {count} kept {}", if count == 1 { "trial" } else { "trials" }))?;
    Ok(ExitCode::Ok)
}

fn there_already(name: &str, location: &KeptLocation) -> anyhow::Error {
    let into = match location {
        KeptLocation::File(path) => format!(" --into {}", path.display()),
        KeptLocation::Database(_) => String::new(),
    };
    anyhow::anyhow!("{name} is there already\nhint: `linerate keep TRIAL{into}` adds a trial to it")
}

fn with(name: &str, text: &str, trial: &Trial) -> anyhow::Result<String> {
    let changes: &[Change] = &trial.remedy.changes;
    let additions: Vec<set::Addition<'_>> = changes
        .iter()
        .map(|Change { host, key, to, .. }| set::Addition { host, key, value: to, trial: &trial.id })
        .collect();
    Ok(set::add(name, text, &additions)?)
}

/// Adds a kept trial to its kept set, where there is one; gives the name of that.
pub(in super::super) fn add_trial(
    into: Option<&Path>,
    inventory: Option<&Path>,
    cluster: &str,
    trial: &Trial,
) -> anyhow::Result<Option<String>> {
    let location = KeptLocation::for_trial(into, inventory, cluster)?;
    let what = format!("keep {}", trial.id);
    location.map(|location| location.edit(&what, |name, old| with(name, old, trial))).transpose()
}
