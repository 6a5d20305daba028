//! `linerate disk builds`: what was built on hosts and not taken back, with the command that does.

use linerate_model::SCHEMA;
use linerate_model::exit::ExitCode;

use super::super::hosts::{Hosts, Needs};
use super::super::{builds, out};
use linerate_report::builds as shown;

/// List volumes and replicas built on hosts that can be undone from their journals
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate disk builds store-1\n  linerate disk builds -i cluster.toml --json"
)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    hosts: Hosts,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.hosts.with(Needs::Sessions, async |fleet, _| {
        let all = builds::all(fleet).await?;
        if args.json {
            out::json(&serde_json::json!({ "schema": SCHEMA, "builds": all, "gaps": fleet.gaps }))?;
        } else {
            out::print(&shown::list(&all))?;
        }
        Ok(if fleet.gaps.is_empty() { ExitCode::Ok } else { ExitCode::PartlyBlind })
    })
}
