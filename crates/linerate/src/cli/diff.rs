//! `linerate diff`: two hosts of the last run, or two runs.

use std::fmt::Write;

use linerate_model::difference::Difference;
use linerate_model::exit::ExitCode;
use linerate_model::fact_change::FactChange;
use linerate_model::verdict::{Verdict, VerdictItem};

use super::documents::Differences;
use super::{open, out};
use linerate_report::differ;
use linerate_report::words::{RunDifference, quoted};
use linerate_store::Store;

/// Show differences between two hosts or two runs.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate diff arc-1 arc-2\n  linerate diff 20261121-083015-4f2a 20261121-084410-77b0"
)]
pub(super) struct Args {
    /// Host name or run ID
    first: String,
    /// Host name or run ID
    second: String,
    /// Run in which to compare the hosts; defaults to the last run
    #[arg(long)]
    run: Option<String>,
    /// List addresses, MACs and neighbours of two hosts too, and each fact of a device that one of them lacks
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = Store::open_to_read()?;
    let row = store.find_diagnosable(args.run.as_deref())?;
    let snapshot = store.load_snapshot(&row.id)?;
    let is_host = |name: &str| snapshot.inventory.host(name).is_some();
    let mut changes = Vec::new();
    let are_hosts = is_host(&args.first) && is_host(&args.second);
    let differences = match (is_host(&args.first), is_host(&args.second)) {
        (true, true) => {
            if args.run.is_none() {
                open::name(&row);
            }
            changes.clone_from(&snapshot.changes);
            linerate_diagnose::diff::hosts(&snapshot, &args.first, &args.second)
        }
        (false, false) => {
            let before = store.load_snapshot(&store.find_run(Some(&args.first))?.id)?;
            let after = store.load_snapshot(&store.find_run(Some(&args.second))?.id)?;
            let differences = linerate_diagnose::diff::runs(&before, &after);
            changes = after.changes;
            differences
        }
        (first, _) => {
            let (host, other) = if first { (&args.first, &args.second) } else { (&args.second, &args.first) };
            anyhow::bail!(
                "{host} is a host of run {}, {other} is not\nhint: name two hosts or two runs",
                row.id
            )
        }
    };
    let hosts = are_hosts.then_some([args.first.as_str(), args.second.as_str()]);
    if let Some(hosts) = hosts.filter(|_| !args.all && !args.json) {
        return of_hosts(&differences, hosts, &changes);
    }
    let summary = verdict(&differences, hosts, &changes);
    let is_same = if args.all { differences.is_empty() } else { summary.findings.is_empty() };
    let differences: Vec<RunDifference> =
        differences.iter().map(|one| quoted(one, hosts, &changes)).collect();
    if args.json {
        out::document(summary, Differences { differences: &differences })?;
    } else if differences.is_empty() {
        out::print(&format!("{} and {} do not differ", args.first, args.second))?;
    } else {
        let mut text = String::new();
        for difference in &differences {
            let _ = writeln!(text, "{}", difference.sentence);
        }
        out::print(&text)?;
    }
    Ok(if is_same { ExitCode::Ok } else { ExitCode::Findings })
}

/// A sentence for each difference, as the screen has them; what any two hosts differ in is harmless.
fn verdict(differences: &[Difference], hosts: Option<[&str; 2]>, changes: &[FactChange]) -> Verdict {
    let (sentences, harmless) = if let Some(hosts) = hosts {
        let found = differ::of_hosts(differences, hosts, changes);
        (found.lines.into_iter().map(|line| (String::new(), line)).collect(), found.identity)
    } else {
        let all = differences.iter().map(|one| quoted(one, None, changes));
        (all.map(|one| (one.subject, one.sentence)).collect::<Vec<_>>(), 0)
    };
    let items =
        sentences.into_iter().map(|(subject, sentence)| VerdictItem::stated(None, &subject, sentence));
    Verdict { harmless, ..Verdict::stating(items, Vec::new()) }
}

/// Prints what two hosts differ in, without what any two hosts do.
fn of_hosts(
    differences: &[Difference],
    hosts: [&str; 2],
    changes: &[FactChange],
) -> anyhow::Result<ExitCode> {
    let found = differ::of_hosts(differences, hosts, changes);
    let mut text = found.lines.join("\n");
    let [one, other] = hosts;
    if found.lines.is_empty() {
        text = format!("{one} and {other} do not differ");
    }
    if found.identity > 0 {
        let _ = write!(text, "\nnot listed: {} of addresses, MACs and neighbours (--all)", found.identity);
    }
    out::print(&text)?;
    Ok(if found.lines.is_empty() { ExitCode::Ok } else { ExitCode::Findings })
}
