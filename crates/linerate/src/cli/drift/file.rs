//! The file of the kept set: where it is, how one is begun, and how `keep` adds to it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use linerate_input as input;
use linerate_kept::{KeptSet, set};
use linerate_model::change::Change;
use linerate_model::drift::PUT_BACK;
use linerate_model::exit::ExitCode;
use linerate_model::inventory::Inventory;
use linerate_model::trial::Trial;
use linerate_store::Store;

use super::super::out;
use super::super::profile::named;

/// Name of the file beside the inventory.
const NAME: &str = "kept.toml";

/// The kept set of an inventory file; of hosts that were named without one that of this folder.
pub(in super::super) fn beside(inventory: Option<&Path>) -> PathBuf {
    let folder = inventory.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(
        || PathBuf::from(NAME),
        |folder| if folder == Path::new(".") { NAME.into() } else { folder.join(NAME) },
    )
}

pub(in super::super) fn load(path: &Path) -> anyhow::Result<KeptSet> {
    anyhow::ensure!(
        path.exists(),
        "no kept set at {}\nhint: `linerate drift --init` writes one from the kept trials, `linerate keep TRIAL` adds to it",
        path.display()
    );
    let text = input::text(path, input::KNOWLEDGE_BYTES_MAX)?;
    let set = KeptSet::parse(&path.display().to_string(), &text)?;
    for chosen in set.cohorts.iter().filter_map(|cohort| cohort.profile.as_ref()) {
        named::find(&chosen.name).with_context(|| format!("{}:{}", set.file, chosen.line))?;
    }
    Ok(set)
}

/// Writes the kept set from the trials of this cluster that are kept.
pub(super) fn init(path: &Path, inventory: &Inventory) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        !path.exists(),
        "{} is there already\nhint: `linerate keep TRIAL --into {0}` adds a trial to it",
        path.display()
    );
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
    let file = path.display().to_string();
    let text = trials.iter().try_fold(String::new(), |text, trial| with(&file, &text, trial))?;
    replace(path, &text).with_context(|| format!("cannot write {file}"))?;
    let count = trials.len();
    out::print(&format!("{file}: {count} kept {}", if count == 1 { "trial" } else { "trials" }))?;
    Ok(ExitCode::Ok)
}

/// Writes a file whole: who reads it meanwhile, or after a crash, finds the old text or the new one.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let new = path.with_extension("toml.new");
    std::fs::write(&new, text)?;
    std::fs::rename(&new, &path)
}

fn with(file: &str, text: &str, trial: &Trial) -> anyhow::Result<String> {
    let changes: &[Change] = &trial.remedy.changes;
    let additions: Vec<set::Addition<'_>> = changes
        .iter()
        .map(|Change { host, key, to, .. }| set::Addition { host, key, value: to, trial: &trial.id })
        .collect();
    Ok(set::add(file, text, &additions)?)
}

/// The kept set that gets a trial: the file that was named, else the one beside the inventory; without either
/// none.
pub(in super::super) fn kept_set(into: Option<&Path>, inventory: Option<&Path>) -> Option<PathBuf> {
    into.map(Path::to_owned).or_else(|| inventory.map(|file| beside(Some(file))))
}

/// Adds a kept trial to its kept set.
pub(in super::super) fn add_trial(
    into: Option<&Path>,
    inventory: Option<&Path>,
    trial: &Trial,
) -> anyhow::Result<Option<PathBuf>> {
    let Some(path) = kept_set(into, inventory) else { return Ok(None) };
    let file = path.display().to_string();
    let old = if path.exists() { input::text(&path, input::KNOWLEDGE_BYTES_MAX)? } else { String::new() };
    replace(&path, &with(&file, &old, trial)?).with_context(|| format!("cannot write {file}"))?;
    Ok(Some(path))
}
