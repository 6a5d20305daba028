//! What several commands need open: the runtime, the store, the inventory of a run, the knowledge; and Ctrl-C.

use std::path::{Path, PathBuf};

use anyhow::Context;
use linerate_diagnose::Knowledge;
use linerate_model::exit::ExitCode;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::Inventory;
use linerate_model::snapshot::Snapshot;

use super::out;
use crate::fleet::Fleet;
use crate::inventory;
use crate::observe::addresses;
use crate::store::{RunRow, Store};

/// One thread is enough: the operator waits for nodes and does little itself.
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")
}

/// The knowledge that is built in, and the user's own.
pub(super) fn knowledge() -> anyhow::Result<Knowledge> {
    knowledge_with(None)
}

/// The same for what is asked in an emergency: a mistake in the user's own is said, and what is built in has to do.
pub(super) fn knowledge_at_any_rate() -> anyhow::Result<Knowledge> {
    knowledge().or_else(|error| {
        out::note(&format!("not used: your own knowledge: {error:#}"));
        builtin()
    })
}

fn builtin() -> anyhow::Result<Knowledge> {
    Knowledge::builtin().map_err(|errors| anyhow::anyhow!("the built-in knowledge does not load: {errors}"))
}

/// The same with a folder or file instead of the usual place of the user's own.
pub(super) fn knowledge_with(own: Option<&Path>) -> anyhow::Result<Knowledge> {
    let mut knowledge = builtin()?;
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    // What was named has to be there; the usual place need not.
    let named = own.map(Path::to_owned).or_else(|| variable("LINERATE_KNOWLEDGE"));
    let usual = || {
        let config = variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|h| h.join(".config")))?;
        Some(config.join("linerate/knowledge")).filter(|path| path.is_dir())
    };
    let Some(path) = named.or_else(usual) else { return Ok(knowledge) };
    let mut files = if path.is_dir() {
        let entries = std::fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let files = entries.flatten().map(|entry| entry.path());
        files.filter(|file| file.extension().is_some_and(|e| e == "toml")).collect()
    } else {
        vec![path]
    };
    files.sort();
    for file in files {
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        knowledge.add(&file.display().to_string(), &text)?;
    }
    Ok(knowledge)
}

/// Ends when the user or the system wants this program to stop.
pub(super) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let wait = async |kind| {
        match signal(kind) {
            Ok(mut stream) => {
                stream.recv().await;
            }
            // Without a handler the signal has its usual effect.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = wait(SignalKind::interrupt()) => {}
        () = wait(SignalKind::terminate()) => {}
        () = wait(SignalKind::hangup()) => {}
    }
}

/// Waits for work; `None` when it was interrupted. What the work had begun ends with it: the sessions of hosts close.
pub(super) async fn unless_interrupted<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        () = interrupted() => None,
    }
}

/// Runs work on a fleet; ends the sessions in every case. `None` when it was interrupted.
pub(super) async fn with_fleet<T>(
    fleet: Fleet,
    work: impl AsyncFnOnce(&Fleet) -> anyhow::Result<T>,
) -> anyhow::Result<Option<T>> {
    let result = tokio::select! {
        result = work(&fleet) => result.map(Some),
        () = interrupted() => Ok(None),
    };
    if matches!(result, Ok(None)) {
        super::out::note("interrupted: stopping loads and undoing what is not confirmed …");
    }
    fleet.bye().await;
    result
}

/// The code of a command that was interrupted.
pub(super) fn after_interrupt() -> ExitCode {
    super::out::note("interrupted; everything was cleaned up");
    ExitCode::Interrupted
}

/// The code that a diagnosis deserves.
pub(super) fn verdict_code(snapshot: &Snapshot, diagnosis: &Diagnosis) -> ExitCode {
    if !diagnosis.findings.is_empty() {
        ExitCode::Findings
    } else if snapshot.gaps.is_empty() && diagnosis.blind.is_empty() {
        ExitCode::Ok
    } else {
        ExitCode::PartlyBlind
    }
}

/// The inventory for a command that follows a run: the file given, else the file of the run, else the copy in the run.
pub(super) fn inventory_of(given: Option<&Path>, run: &RunRow, store: &Store) -> anyhow::Result<Inventory> {
    // The file may have newer addresses and namespaces; when it is gone, what was true at the run must do.
    let path = given.or(run.inventory_path.as_deref().filter(|path| path.is_file()));
    let Some(path) = path else {
        let snapshot = store.load_snapshot(&run.id)?;
        // Names in a pasted text are no permission to log in anywhere.
        anyhow::ensure!(
            snapshot.foreign.is_none(),
            "run {} was read from files, so that nobody told how to reach its hosts\nhint: name an inventory with -i",
            run.id
        );
        return Ok(snapshot.inventory);
    };
    let mut inventory = inventory::load(path)?;
    if addresses::is_needed(&inventory) {
        // The hosts were asked for their addresses in the run.
        let known = store.load_snapshot(&run.id)?.inventory;
        for host in &mut inventory.hosts {
            host.endpoints = known.host(&host.name).map_or_else(Vec::new, |h| h.endpoints.clone());
        }
    }
    Ok(inventory)
}

/// An absolute path of a file, for the store.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
