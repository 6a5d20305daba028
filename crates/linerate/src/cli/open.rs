//! What several commands need open: the runtime, the store, the inventory of a run, the knowledge; and
//! Ctrl-C.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context;
use linerate_knowledge::Knowledge;
use linerate_model::exit::ExitCode;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::Inventory;
use linerate_model::remark::Remark;
use linerate_model::snapshot::Snapshot;
use tokio::sync::watch;

use super::{out, usual};
use linerate_fleet::Fleet;
use linerate_input as input;
use linerate_inventory as inventory;
use linerate_operator::observe::addresses;
use linerate_report as report;
use linerate_store::{RunRow, Store, StoreError};

/// Most files of a folder with knowledge.
const KNOWLEDGE_FILES_MAX: usize = 10_000;

/// One thread for the sessions is enough: the operator waits for nodes and does little itself. A command runs
/// beside it: while it waits for a store, hosts still receive the signs of life without which they end their
/// sessions.
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(1).enable_all().build().context("cannot start the runtime")
}

/// The knowledge that is built in, and the user's own.
pub(super) fn knowledge() -> anyhow::Result<Knowledge> {
    knowledge_with(None)
}

/// The same for what is asked in an emergency: a mistake in the user's own is said, and what is built in has
/// to do.
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
        let files = files.filter(|file| file.extension().is_some_and(|e| e == "toml"));
        files.take(KNOWLEDGE_FILES_MAX + 1).collect()
    } else {
        vec![path.clone()]
    };
    anyhow::ensure!(
        files.len() <= KNOWLEDGE_FILES_MAX,
        "{} has more than {KNOWLEDGE_FILES_MAX} files of knowledge",
        path.display()
    );
    files.sort();
    for file in files {
        let text = input::text(&file, input::KNOWLEDGE_BYTES_MAX)?;
        knowledge.add(&file.display().to_string(), &text)?;
    }
    Ok(knowledge)
}

/// Ends when the user or the system wants this program to stop, or has wanted it since it was first asked
/// for: a signal that comes between two waits counts for the second one.
pub(super) async fn interrupted() {
    static WANTED: OnceLock<Option<watch::Receiver<bool>>> = OnceLock::new();
    if let Some(mut wanted) = WANTED.get_or_init(|| signals().ok()).clone()
        && wanted.wait_for(|wanted| *wanted).await.is_ok()
    {
        return;
    }
    // Without a handler the signal has its usual effect.
    std::future::pending::<()>().await;
}

/// Becomes true with the first signal. The thread that listens outlives the runtimes of the steps of a
/// command.
fn signals() -> std::io::Result<watch::Receiver<bool>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (tell, wanted) = watch::channel(false);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let listen = move || -> std::io::Result<()> {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut terminate = signal(SignalKind::terminate())?;
            let mut hangup = signal(SignalKind::hangup())?;
            let _ = ready.send(());
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            tell.send_replace(true);
            Ok(())
        })
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
    is_ready.recv().map_err(std::io::Error::other)?;
    Ok(wanted)
}

/// Ends at this time; without one never.
pub(super) async fn passed(until: Option<tokio::time::Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Waits for work; `None` when it was interrupted. What the work had begun ends with it: the sessions of
/// hosts close.
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

/// Prints a diagnosis: the four lines of each finding below the matrices, or all of it; `all` is the command
/// that lists what is only counted.
pub(super) fn print_verdict(
    snapshot: &Snapshot,
    diagnosis: &Diagnosis,
    is_verbose: bool,
    all: &str,
) -> anyhow::Result<()> {
    let style = report::heat::Style::detect();
    if is_verbose {
        return out::print(&report::text::page(snapshot, diagnosis, style));
    }
    out::print(&report::text::screen(snapshot, diagnosis, &format!("`{all}` lists them"), style))
}

/// The code that a diagnosis deserves.
pub(super) fn verdict_code(snapshot: &Snapshot, diagnosis: &Diagnosis) -> ExitCode {
    if !diagnosis.findings.is_empty() || diagnosis.remarks.iter().any(Remark::blames) {
        ExitCode::Findings
    } else if !diagnosis.asked.is_empty() && diagnosis.cells.is_empty() {
        ExitCode::PartlyBlind
    } else if snapshot.gaps.is_empty() && diagnosis.blind.is_empty() {
        ExitCode::Ok
    } else {
        ExitCode::PartlyBlind
    }
}

/// The run of this id, else the last one that can be diagnosed, which is then named.
pub(super) fn run_to_diagnose(store: &Store, wanted: Option<&str>) -> Result<RunRow, StoreError> {
    let row = store.find_diagnosable(wanted)?;
    if wanted.is_none() {
        name(&row);
    }
    Ok(row)
}

/// Names the run that a command took by itself.
pub(super) fn name(row: &RunRow) {
    let ago_s = linerate_fleet::clock::now_ms().saturating_sub(row.start_ms) / 1000;
    let ago = match ago_s {
        0..60 => format!("{ago_s} s"),
        60..3600 => format!("{} min", ago_s / 60),
        3600..86_400 => format!("{} h", ago_s / 3600),
        _ => format!("{} d", ago_s / 86_400),
    };
    out::note(&format!("run {} of {}, {ago} ago", row.id, row.cluster));
}

/// A stored run with its inventory as a command in this folder has to name it.
pub(super) fn snapshot_of(store: &Store, row: &RunRow) -> Result<Snapshot, StoreError> {
    let mut snapshot = store.load_snapshot(&row.id)?;
    snapshot.inventory.typed = row.inventory_path.as_deref().and_then(usual::to_type);
    Ok(snapshot)
}

/// The inventory for a command that follows a run: the file given, else the file of the run, else the copy in
/// the run.
pub(super) fn inventory_of(given: Option<&Path>, run: &RunRow, store: &Store) -> anyhow::Result<Inventory> {
    // The file may have newer addresses and namespaces; when it is gone, what was true at the run must do.
    let path = given.or(run.inventory_path.as_deref().filter(|path| path.is_file()));
    let Some(path) = path else {
        let snapshot = store.load_snapshot(&run.id)?;
        // Names in a pasted text are no permission to log in anywhere.
        anyhow::ensure!(
            snapshot.imported.is_none(),
            "run {} was read from files, so that nobody told how to reach its hosts\nhint: name an inventory with -i",
            run.id
        );
        return Ok(snapshot.inventory);
    };
    let mut inventory = self::inventory(path, &[])?;
    if given.is_none() {
        // Only hosts that were selected for the run.
        let of_run = store.load_snapshot(&run.id)?.inventory;
        inventory.hosts.retain(|host| of_run.host(&host.name).is_some());
    }
    if addresses::is_needed(&inventory) {
        // The hosts were asked for their addresses in the run.
        let known = store.load_snapshot(&run.id)?.inventory;
        for host in &mut inventory.hosts {
            host.endpoints = known.host(&host.name).map_or_else(Vec::new, |h| h.endpoints.clone());
        }
    }
    Ok(inventory)
}

/// The hosts of these names of an inventory file, all of them without names; names that look alike are noted.
pub(super) fn inventory(path: &Path, names: &[String]) -> anyhow::Result<Inventory> {
    let inventory = inventory::load_selected(path, names)?;
    for remark in inventory::confusables::remarks(inventory.hosts.iter().map(|host| host.name.as_str())) {
        out::note(&format!("{}: {}: {}", path.display(), remark.what, remark.why));
    }
    Ok(inventory)
}

/// An absolute path of a file, for the store.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sessions_go_on_while_a_command_waits_for_the_store() {
        runtime().unwrap().block_on(async {
            let (to, alive) = std::sync::mpsc::channel();
            tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                to.send(()).unwrap();
            });
            // Blocks this thread as a store does; without another one it would be for ever.
            alive.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        });
    }

    #[test]
    fn a_signal_between_two_waits_counts_for_the_second() {
        let wanted = signals().unwrap();
        assert!(!*wanted.borrow());
        let mut second = wanted.clone();
        let me = std::process::id().to_string();
        assert!(std::process::Command::new("kill").args(["-HUP", &me]).status().unwrap().success());
        let first = async |mut wanted: watch::Receiver<bool>| wanted.wait_for(|w| *w).await.map(|w| *w);
        assert!(runtime().unwrap().block_on(first(wanted)).unwrap());
        // Another runtime, later: it is still known.
        assert!(*runtime().unwrap().block_on(second.wait_for(|w| *w)).unwrap());
    }
}
