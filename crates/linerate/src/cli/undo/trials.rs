//! Undoes trials, also kept ones; with `--all` what every host has still open.

use linerate_model::exit::ExitCode;
use linerate_model::finding::Diagnosis;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::{Trial, TrialStatus};
use linerate_model::verdict::{Verdict, VerdictItem};
use linerate_wire::message::{Event, JournalEntry, TrialRequest};

use super::args::Args;
use crate::cli::documents::{AllUndone, Undone};
use crate::cli::{open, out, progress, trial, watcher};
use linerate_fleet::{Fleet, LinkError, REQUEST_WAIT};
use linerate_operator::trial::{self as trials, FleetActions, drive};
use linerate_store::Store;

/// Undoes one trial.
pub(super) fn one(args: &Args, store: &Store, stored: Trial) -> anyhow::Result<ExitCode> {
    let (snapshot, diagnosis) = scene(args, store, &stored)?;
    let progress = progress::start(!args.json, args.json);
    let inventory = snapshot.inventory.clone();
    let trial = open::runtime()?.block_on(async {
        let changed = |name: &str| stored.remedy.changes.iter().any(|c| c.host == name);
        let fleet = Fleet::open(&inventory, |h| changed(&h.name)).await;
        let mut hands = FleetActions::new(&fleet, &inventory);
        let scene = drive::Scene { snapshot: &snapshot, diagnosis: &diagnosis };
        let mut watch = watcher::Watcher::new(store, progress.as_ref());
        let trial =
            trials::undo(&mut hands, scene, stored, &mut |t, step, left| watch.step(t, step, left)).await;
        hands.bye().await;
        fleet.bye().await;
        trial
    });
    let saved = watcher::save(store, &trial);
    trial::show(&trial, args.json)?;
    saved?;
    Ok(if trial.status == TrialStatus::Undone { ExitCode::Ok } else { ExitCode::RollbackFailed })
}

/// The run of a trial with the hosts as they are now; of one that needed no run (a put-back) the hosts alone.
fn scene(args: &Args, store: &Store, stored: &Trial) -> anyhow::Result<(Snapshot, Diagnosis)> {
    if stored.run.is_empty() {
        let inventory = args.hosts.chosen()?.inventory;
        return Ok((Snapshot { inventory, ..Snapshot::default() }, Diagnosis::default()));
    }
    let row = store.find_run(Some(&stored.run))?;
    let mut snapshot = store.load_snapshot(&row.id)?;
    snapshot.inventory = open::inventory_of(args.given(), &row, store)?;
    Ok((snapshot, store.load_diagnosis(&row.id)?.unwrap_or_default()))
}

/// Undoes all trials that are open on hosts.
pub(super) fn all(args: &Args, store: &Store) -> anyhow::Result<ExitCode> {
    let inventory = args.hosts_to_ask(store)?.inventory;
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
    let ended = undone.iter().filter(|u| u.error.is_none());
    let saved = watcher::save_ends(store, ended.map(|u| (u.trial.clone(), TrialStatus::Undone)));
    if args.json {
        let failed = undone.iter().filter_map(|one| {
            let sentence = format!("{}: {}", one.host, one.error.as_ref()?);
            Some(VerdictItem::stated(Some(&one.host), &one.trial, sentence))
        });
        out::document(Verdict::stating(failed, Vec::new()), AllUndone { undone: &undone })?;
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
    saved?;
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
    // The last trial first, by the times in their names: an earlier one finds its values and files as it left
    // them.
    for entry in journals.into_iter().rev() {
        let request = TrialRequest::Undo { trial: entry.trial.clone() };
        let done = match fleet.link(host) {
            Ok(link) => link.request(request, REQUEST_WAIT).await.map(|_| ()),
            Err(error) => Err(error),
        };
        results.push(undone(&entry.trial, done.err().map(|e| e.to_string())));
    }
    results
}

/// Trials in the journals of a host.
pub(super) async fn journals(fleet: &Fleet, host: &str) -> Result<Vec<JournalEntry>, LinkError> {
    let events = fleet.link(host)?.request(TrialRequest::Journals, REQUEST_WAIT).await?;
    Ok(events
        .into_iter()
        .find_map(|e| if let Event::Journals(list) = e { Some(list) } else { None })
        .unwrap_or_default())
}
