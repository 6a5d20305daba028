//! `linerate undo`: a trial is taken back, also a kept one; `--all` asks every host what is still open.

use std::path::PathBuf;

use linerate_model::exit::ExitCode;
use linerate_model::trial::{Trial, TrialStatus};
use linerate_wire::message::{Event, JournalEntry, TrialRequest};

use super::{open, out, progress};
use crate::trial::{self, FleetActions, drive};
use linerate_fleet::clock;
use linerate_fleet::{Fleet, LinkError, REQUEST_WAIT};
use linerate_store::Store;

/// Restore the old values of one trial, or of all trials still open on hosts.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate undo 20261121-083015-4f2a\n  linerate undo --all -i cluster.toml"
)]
pub(super) struct Args {
    /// Trial ID
    #[arg(required_unless_present = "all")]
    trial: Option<String>,
    /// Undo all trials that are still open on any host
    #[arg(long, conflicts_with = "trial")]
    all: bool,
    /// Inventory file; defaults to the run's inventory
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = Store::open_default()?;
    match &args.trial {
        Some(id) => one(args, &store, store.load_trial(id)?),
        None => all(args, &store),
    }
}

fn one(args: &Args, store: &Store, stored: Trial) -> anyhow::Result<ExitCode> {
    let row = store.find_run(Some(&stored.run))?;
    let mut snapshot = store.load_snapshot(&row.id)?;
    snapshot.inventory = open::inventory_of(args.inventory.as_deref(), &row, store)?;
    let diagnosis = store.load_diagnosis(&row.id)?.unwrap_or_default();
    let progress = progress::start(!args.json, args.json);
    let inventory = snapshot.inventory.clone();
    let trial = open::runtime()?.block_on(async {
        let changed = |name: &str| stored.remedy.changes.iter().any(|c| c.host == name);
        let fleet = Fleet::open(&inventory, |h| changed(&h.name)).await;
        let mut hands = FleetActions::new(&fleet, &inventory);
        let scene = drive::Scene { snapshot: &snapshot, diagnosis: &diagnosis };
        let mut watch = super::watcher::Watcher::new(store, progress.as_ref());
        let trial =
            trial::undo(&mut hands, scene, stored, &mut |t, step, left| watch.step(t, step, left)).await;
        hands.bye().await;
        fleet.bye().await;
        trial
    });
    store.save_trial(&trial, clock::now_ms())?;
    super::trial::show(&trial, args.json)?;
    Ok(if trial.status == TrialStatus::Undone { ExitCode::Ok } else { ExitCode::RollbackFailed })
}

/// What became of one journal entry of one host.
#[derive(Debug, serde::Serialize)]
struct Undone {
    host: String,
    trial: String,
    error: Option<String>,
}

fn all(args: &Args, store: &Store) -> anyhow::Result<ExitCode> {
    let inventory = match &args.inventory {
        Some(path) => open::inventory(path, &[])?,
        None => open::inventory_of(None, &store.find_run(None)?, store)?,
    };
    let undone = open::runtime()?.block_on(async {
        let fleet = Fleet::open(&inventory, |_| true).await;
        let mut undone: Vec<Undone> = fleet
            .gaps
            .iter()
            .map(|g| Undone { host: g.what.to_string(), trial: String::new(), error: Some(g.reason.clone()) })
            .collect();
        for host in fleet.hosts() {
            undone.extend(undo_host(&fleet, &host).await);
        }
        fleet.bye().await;
        undone
    });
    for entry in undone.iter().filter(|u| u.error.is_none()) {
        // A trial of another operator is not in our store.
        if let Ok(mut trial) = store.load_trial(&entry.trial) {
            trial.status = TrialStatus::Undone;
            store.save_trial(&trial, clock::now_ms())?;
        }
    }
    if args.json {
        out::json(&serde_json::json!({ "schema": linerate_model::SCHEMA, "undone": undone }))?;
    } else {
        let line = |u: &Undone| match &u.error {
            None => format!("{}: trial {} undone", u.host, u.trial),
            Some(error) => format!("{}: {error}", u.host),
        };
        let text: Vec<String> = undone.iter().map(line).collect();
        out::print(
            if text.is_empty() { "nothing is open on any host".to_owned() } else { text.join("\n") }.as_str(),
        )?;
    }
    Ok(if undone.iter().any(|u| u.error.is_some()) { ExitCode::RollbackFailed } else { ExitCode::Ok })
}

async fn undo_host(fleet: &Fleet, host: &str) -> Vec<Undone> {
    let undone =
        |trial: &str, error: Option<String>| Undone { host: host.to_owned(), trial: trial.to_owned(), error };
    let journals = match journals(fleet, host).await {
        Ok(journals) => journals,
        Err(error) => return vec![undone("", Some(error.to_string()))],
    };
    let mut results = Vec::new();
    for entry in journals {
        let request = TrialRequest::Undo { trial: entry.trial.clone() };
        let done = match fleet.link(host) {
            Ok(link) => link.request(request, REQUEST_WAIT).await.map(|_| ()),
            Err(error) => Err(error),
        };
        results.push(undone(&entry.trial, done.err().map(|e| e.to_string())));
    }
    results
}

async fn journals(fleet: &Fleet, host: &str) -> Result<Vec<JournalEntry>, LinkError> {
    let events = fleet.link(host)?.request(TrialRequest::Journals, REQUEST_WAIT).await?;
    Ok(events
        .into_iter()
        .find_map(|e| if let Event::Journals(list) = e { Some(list) } else { None })
        .unwrap_or_default())
}
