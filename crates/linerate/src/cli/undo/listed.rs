//! What can be undone: trials of the store and of the journals of hosts, volumes and replicas.

use std::fmt::Write as _;

use linerate_model::exit::ExitCode;
use linerate_model::fact::Gap;
use linerate_model::printable::one_line;
use linerate_model::verdict::{Verdict, VerdictFix, VerdictItem};

use super::args::Args;
use super::trials;
use crate::cli::documents::{Open, OpenTrial};
use crate::cli::{builds, open, out};
use linerate_fleet::Fleet;
use linerate_report::builds::{self as shown, BuildView};
use linerate_store::{Store, TrialRow};

/// What hosts have open.
#[derive(Debug, Default)]
struct OnHosts {
    /// Host and trial.
    trials: Vec<(String, String)>,
    builds: Vec<BuildView>,
    /// What could not be asked.
    gaps: Vec<String>,
    /// The hosts that were asked, as words of a command.
    words: String,
}

/// Status of a trial in the store that is in force because its undo failed.
const UNDO_FAILED: &str = "undo-failed";

/// Whether a change of this trial may be in force.
fn is_open(trial: &TrialRow) -> bool {
    matches!(trial.status.as_str(), "running" | "kept" | UNDO_FAILED)
}

pub(super) fn list(args: &Args, store: &Store) -> anyhow::Result<ExitCode> {
    let stored: Vec<TrialRow> = store.list_trials()?.into_iter().filter(is_open).collect();
    let on_hosts = match args.hosts_to_ask(store) {
        Ok(chosen) => open::runtime()?.block_on(async {
            let opened = open::unless_interrupted(Fleet::open(&chosen.inventory, |_| true)).await;
            let Some(mut fleet) = opened else { return anyhow::Ok(None) };
            fleet.named_by(chosen.file.as_deref(), &chosen.inventory);
            open::with_fleet(fleet, async |fleet| ask(fleet).await).await
        })?,
        // Without hosts the store alone knows what is open.
        Err(_) if args.name.is_none() && args.given().is_none() => Some(OnHosts {
            gaps: vec!["no host was asked: none is named, and there is no inventory and no run".to_owned()],
            ..OnHosts::default()
        }),
        Err(error) => return Err(error),
    };
    let Some(on_hosts) = on_hosts else { return Ok(open::after_interrupt()) };
    let trials = together(stored, &on_hosts);
    if args.json {
        let document = Open { trials: &trials, builds: &on_hosts.builds, gaps: &on_hosts.gaps };
        out::document(verdict(&trials, &on_hosts.gaps), document)?;
    } else {
        out::print(&text(&trials, &on_hosts.builds))?;
        on_hosts.gaps.iter().for_each(|gap| out::note(&format!("not seen: {gap}")));
    }
    Ok(if on_hosts.gaps.is_empty() { ExitCode::Ok } else { ExitCode::PartlyBlind })
}

/// Trials that could not be undone; what else is open is no fault.
fn verdict(trials: &[OpenTrial], gaps: &[String]) -> Verdict {
    let failed = trials.iter().filter(|trial| trial.status == UNDO_FAILED);
    let item = |trial: &OpenTrial| {
        let sentence = format!("trial {} could not be undone: {}", trial.trial, trial.remedy);
        VerdictItem {
            fix: Some(VerdictFix { by_hand: trial.undo.clone(), ..VerdictFix::default() }),
            ..VerdictItem::stated(None, &trial.trial, sentence)
        }
    };
    let gap = |text: &String| {
        let (what, reason) = text.split_once(": ").unwrap_or(("hosts", text));
        Gap { what: what.into(), reason: reason.to_owned() }
    };
    Verdict::stating(failed.map(item), gaps.iter().map(gap).collect())
}

async fn ask(fleet: &Fleet) -> anyhow::Result<OnHosts> {
    let mut found = OnHosts {
        gaps: fleet.gaps.iter().map(|gap| format!("{}: {}", gap.what, gap.reason)).collect(),
        words: fleet.all_arguments(),
        ..OnHosts::default()
    };
    for host in fleet.hosts() {
        match trials::journals(fleet, &host).await {
            Ok(journals) => {
                found.trials.extend(journals.into_iter().map(|entry| (host.clone(), entry.trial)));
            }
            Err(error) => found.gaps.push(error.to_string()),
        }
    }
    found.builds = builds::all(fleet).await?;
    Ok(found)
}

/// Trials of the store with the hosts that have them, then those that only hosts know.
fn together(stored: Vec<TrialRow>, on_hosts: &OnHosts) -> Vec<OpenTrial> {
    let having = |trial: &str| -> Vec<String> {
        on_hosts.trials.iter().filter(|(_, id)| id == trial).map(|(host, _)| host.clone()).collect()
    };
    let mut all: Vec<OpenTrial> = stored
        .into_iter()
        .map(|row| OpenTrial {
            hosts: having(&row.id),
            undo: format!("linerate undo {}", row.id),
            trial: row.id,
            remedy: row.remedy,
            status: row.status,
        })
        .collect();
    for (_, id) in &on_hosts.trials {
        if !all.iter().any(|trial| trial.trial == *id) {
            all.push(OpenTrial {
                trial: id.clone(),
                remedy: String::new(),
                status: "open on hosts".to_owned(),
                hosts: having(id),
                undo: format!("linerate undo --all {}", on_hosts.words),
            });
        }
    }
    all
}

fn text(trials: &[OpenTrial], builds: &[BuildView]) -> String {
    if trials.is_empty() && builds.is_empty() {
        return "nothing is open: no trial, and nothing that was built stands in a journal\n".to_owned();
    }
    let mut text = String::new();
    for trial in trials {
        let on =
            if trial.hosts.is_empty() { String::new() } else { format!(" on {}", trial.hosts.join(", ")) };
        let what = if trial.remedy.is_empty() { "of another store" } else { &trial.remedy };
        // Writing into a `String` cannot fail.
        let _ =
            writeln!(text, "trial {}: {}{}, {}", trial.trial, one_line(what), one_line(&on), trial.status);
        let _ = writeln!(text, "  {}", one_line(&trial.undo));
    }
    if builds.is_empty() { text } else { text + &shown::list(builds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_listed_once_with_the_command_that_undoes_it() {
        let row = |id: &str, status: &str| TrialRow {
            id: id.to_owned(),
            run: "run".to_owned(),
            remedy: "ring-small".to_owned(),
            status: status.to_owned(),
        };
        let rows = [row("t1", "kept"), row("t2", "undone"), row("t3", "measured"), row("t4", "undo-failed")];
        let stored: Vec<TrialRow> = rows.into_iter().filter(is_open).collect();
        let pair = |host: &str, trial: &str| (host.to_owned(), trial.to_owned());
        let on_hosts = OnHosts {
            trials: vec![pair("a", "t1"), pair("b", "t1"), pair("a", "t9")],
            words: "a b".to_owned(),
            ..OnHosts::default()
        };
        assert_eq!(
            text(&together(stored, &on_hosts), &[]),
            "trial t1: ring-small on a, b, kept\n  linerate undo t1\ntrial t4: ring-small, undo-failed\n  \
             linerate undo t4\ntrial t9: of another store on a, open on hosts\n  linerate undo --all a b\n"
        );
        assert!(text(&[], &[]).starts_with("nothing is open"));
    }
}
