//! `linerate drbd verify`: both sides are compared block by block; what differs is an alarm, whatever the states say.

use linerate_diagnose::drbd::{On, alarms};
use linerate_model::SCHEMA;
use linerate_model::drbd::DrbdTrouble;
use linerate_model::exit::ExitCode;
use linerate_model::step::{DrbdStep, Step};

use super::super::hosts::{Hosts, Needs};
use super::super::{out, progress};
use super::{moves, wait};
use crate::observe::drbd as seen;
use crate::report::drbd as shown;
use crate::report::heat::Style;

/// Compare both sides block by block, with remaining time; blocks that differ are a finding
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate drbd verify r0 store-1 store-2\n\nThe resource goes on working meanwhile. It needs a verify-alg, which files of `linerate drbd up` have."
)]
pub(in crate::cli) struct Args {
    /// Name of the resource
    resource: String,
    #[command(flatten)]
    hosts: Hosts,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let progress = progress::start(false, args.json);
    args.hosts.with(Needs::Sessions, async |fleet, _| {
        let now = seen::look(fleet).await;
        let side = now.all.iter().filter(|r| r.resource == args.resource);
        // The primary reads anyway what it compares.
        let Some(side) = side.max_by_key(|r| r.role == "Primary") else {
            anyhow::bail!(
                "no host has {} in use\nhint: `linerate drbd status` shows what there is",
                args.resource
            );
        };
        anyhow::ensure!(
            side.is_connected(),
            "{}: {} is not connected, so that there is nothing to compare with\nhint: `linerate drbd status`",
            side.host,
            args.resource
        );
        let step = Step::Drbd(DrbdStep::Verify { resource: args.resource.clone() });
        let steps = [On { host: side.host.clone(), step }];
        let build = format!("drbd-{}-verify", args.resource);
        if let Some(code) = moves::make(fleet, &build, &steps, progress.as_ref()).await? {
            return Ok(code);
        }
        let end = wait::until_done(fleet, "comparing", progress.as_ref()).await?;
        let mut found = alarms(&end.all, &end.known, &end.not_up);
        found.retain(|alarm| alarm.resource == args.resource);
        if args.json {
            out::json(&serde_json::json!({ "schema": SCHEMA, "replicas": end.all, "alarms": found }))?;
        } else {
            let style = Style::detect();
            out::print(&(shown::table(&end.all, style) + &shown::alarms(&found, style)))?;
            if !found.iter().any(|alarm| alarm.what == DrbdTrouble::OutOfSync) {
                out::print("both sides hold the same")?;
            }
        }
        Ok(if found.is_empty() { ExitCode::Ok } else { ExitCode::Findings })
    })
}
