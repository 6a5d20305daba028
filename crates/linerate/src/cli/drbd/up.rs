//! `linerate drbd up`: from two devices to a replica: file, metadata, connection, and the first
//! synchronisation from the side that is named.

use std::time::Duration;

use linerate_model::exit::ExitCode;
use linerate_storage::drbd::{On, first_sync};

use super::super::builds::stop;
use super::super::hosts::{Needs, really};
use super::super::{out, progress};
use super::plan::{self, What};
use super::{moves, wait};
use crate::cli::documents::DrbdUp;
use linerate_operator::build::{self, DRBD, OnLoss};
use linerate_operator::observe::drbd::Replicas;
use linerate_report::drbd as shown;
use linerate_report::heat::Style;

/// Build a resource on both hosts and start the initial synchronisation from the named side
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate drbd up r0 --disk /dev/sdb --from store-1 --yes=r0 store-1 store-2\n\nEach step is journalled on its host before it runs; if one fails, all steps are reverted. To revert later:\n  linerate undo r0 --yes=r0 store-1 store-2"
)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    what: What,
    /// Confirm non-interactively by repeating the resource name
    #[arg(long = "yes", alias = "really", value_name = "RESOURCE")]
    really: Option<String>,
    /// Skip waiting for the initial synchronisation
    #[arg(long)]
    no_wait: bool,
    /// Print events while running and JSON at the end
    #[arg(long)]
    json: bool,
}

/// How long both sides may take to find each other.
const CONNECT_LIMIT: Duration = Duration::from_secs(60);

/// Name of the build of a resource on its hosts.
pub(super) fn build_of(resource: &str) -> String {
    format!("{DRBD}{resource}")
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let progress = progress::start(false, args.json);
    args.what.hosts.with(Needs::Addresses, async |fleet, inventory| {
        let plan = args.what.plan(fleet, inventory).await?;
        let resource = &args.what.resource;
        let Some(from) = args.what.from.as_deref() else {
            anyhow::bail!("nobody is named whose data are the good ones\nhint: --from HOST; the other side is overwritten");
        };
        if !args.json {
            out::print(&shown::plan(&plan, Style::detect()))?;
        }
        let others = plan.spec.sides.iter().find(|side| side.host != from);
        let warning = format!(
            "all of {} on {} is overwritten by what is on {from}",
            others.map_or("the other device", |side| side.disk.as_str()),
            others.map_or("the other host", |side| side.host.as_str()),
        );
        really(resource, args.really.as_deref(), &warning)?;
        let build = build_of(resource);
        if let Err(stopped) = build::run(fleet, &build, &plan.steps, OnLoss::TakeBack, progress.as_ref()).await {
            return Ok(stop(&stopped));
        }
        let hosts: Vec<&str> = plan.spec.sides.iter().map(|side| side.host.as_str()).collect();
        let undo = build::undo_command(&build, &fleet.arguments(&hosts));
        let both = |now: &Replicas| {
            let sides: Vec<_> = now.all.iter().filter(|r| r.resource == *resource).collect();
            sides.len() == 2 && sides.iter().all(|side| side.is_connected())
        };
        let (found, now) = wait::until(fleet, CONNECT_LIMIT, both).await;
        anyhow::ensure!(
            found,
            "both sides of {resource} are up and did not find each other within {} s\nhint: is port {} open between their addresses? `{undo}` takes all of it back",
            CONNECT_LIMIT.as_secs(),
            plan.spec.port
        );
        let On { host, step } = first_sync(&now.all, resource, from)?;
        if let Err(why) = build::step(fleet, &host, &build, &step).await {
            anyhow::bail!("{why}\nhint: both sides are up; `{undo}` takes all of it back");
        }
        if !args.no_wait {
            wait::until_done(fleet, "first synchronisation", progress.as_ref()).await?;
        }
        let now = linerate_operator::observe::drbd::look(fleet).await;
        if args.json {
            let document = DrbdUp { plan: plan::document(&plan), replicas: &now.all };
            out::document(moves::verdict(&now, inventory.typed.as_deref()), document)?;
        } else {
            out::print(&shown::table(&now.all, Style::detect()))?;
        }
        Ok(ExitCode::Ok)
    })
}
