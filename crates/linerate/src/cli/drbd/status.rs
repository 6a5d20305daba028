//! `linerate drbd status`: all hosts in one table, what is under way with its remaining time, and what is
//! wrong though every state looks well.

use std::path::Path;
use std::time::Duration;

use linerate_diagnose::replica_limits::limits;
use linerate_model::drbd::DrbdAlarm;
use linerate_model::exit::ExitCode;
use linerate_model::fact::Gap;
use linerate_storage::drbd::alarms;

use super::super::hosts::{Hosts, Needs};
use super::super::{open, out};
use super::wait::Follow;
use crate::cli::documents::{DrbdState, KnownReplica};
use linerate_operator::observe::drbd::{self as seen, Replicas};
use linerate_report::drbd as shown;
use linerate_report::heat::Style;
use linerate_report::words;

/// Show all replicas in one table, and problems: split brain (also impending), differing blocks, disconnected
/// sides
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate drbd status store-1 store-2\n  linerate drbd status -i cluster.toml --watch\n  linerate drbd status -i cluster.toml --json | jq .alarms\n\nName both hosts: predicting a split brain requires the state of both sides."
)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    hosts: Hosts,
    /// Refresh every two seconds until no operation is in progress
    #[arg(short, long)]
    watch: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Time between two looks: the least that a rate needs.
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // Whoever asks this may have a split brain: no file of causes may keep the answer back.
    let knowledge = open::knowledge_at_any_rate()?;
    args.hosts.with(Needs::Sessions, async |fleet, inventory| {
        let typed = inventory.typed.as_deref();
        let mut follow = Follow::default();
        let mut now = seen::look(fleet).await;
        follow.take(&now);
        // A remaining time needs two looks.
        while follow.is_busy() {
            if args.watch {
                let mut found = alarms(&now.all, &now.known, &now.not_up);
                shown::name_inventory(&mut found, typed);
                show(args, &now, &follow, &found, typed)?;
            }
            tokio::time::sleep(LOOK_EVERY).await;
            now = seen::look(fleet).await;
            follow.take(&now);
            if !args.watch {
                break;
            }
        }
        let mut found = alarms(&now.all, &now.known, &now.not_up);
        let sides = seen::sides(fleet, inventory, &now).await;
        found.extend(limits(&sides, &follow.rates(), &knowledge).into_iter().map(words::drbd::written));
        shown::name_inventory(&mut found, typed);
        let is_blind = now.all.is_empty() && now.not_up.is_empty() && !now.gaps.is_empty();
        if args.json || !is_blind {
            show(args, &now, &follow, &found, typed)?;
        }
        anyhow::ensure!(!is_blind, "no host shows a resource of DRBD: {}", Gap::reasons(&now.gaps));
        Ok(match (found.is_empty(), now.gaps.is_empty()) {
            (false, _) => ExitCode::Findings,
            (true, true) => ExitCode::Ok,
            (true, false) => ExitCode::PartlyBlind,
        })
    })
}

fn show(
    args: &Args,
    now: &Replicas,
    follow: &Follow,
    found: &[DrbdAlarm],
    typed: Option<&Path>,
) -> anyhow::Result<()> {
    if args.json {
        let known = now.known.iter().map(|((host, resource), (generation, marked_kib))| KnownReplica {
            host: host.clone(),
            resource: resource.clone(),
            generation: *generation,
            marked_kib: *marked_kib,
        });
        let summary = linerate_report::verdict::of_replicas(found, &now.all, &now.gaps, typed);
        let document = DrbdState {
            replicas: &now.all,
            known: known.collect(),
            under_way: follow.document(),
            alarms: found,
            gaps: &now.gaps,
        };
        return out::document_line(summary, document);
    }
    let style = Style::detect();
    let mut text = shown::table(&now.all, style);
    for line in follow.lines() {
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str(&shown::alarms(found, style));
    if now.all.is_empty() && now.not_up.is_empty() {
        let output = if now.gaps.is_empty() {
            "no resource of DRBD on these hosts"
        } else {
            "no resource of DRBD was seen"
        };
        text.push_str(output);
        text.push('\n');
    }
    out::print(&text)?;
    now.gaps.iter().for_each(|gap| out::note(&format!("not seen: {}: {}", gap.what, gap.reason)));
    Ok(())
}
