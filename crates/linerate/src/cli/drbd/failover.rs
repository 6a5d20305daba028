//! `linerate drbd failover`: the primary goes to the other side, in order or because the old one is dead.

use linerate_model::drbd::DrbdMove;
use linerate_model::exit::ExitCode;
use linerate_storage::drbd;

use super::super::hosts::{Hosts, Needs, really};
use super::super::{out, progress};
use super::moves;
use linerate_operator::observe::drbd as seen;

/// Promote the other side to primary: orderly while both are up, or after the primary died
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate drbd failover r0 --to store-2 store-1 store-2\n  linerate drbd failover r0 --to store-2 --primary-is-dead --yes=store-1 store-2\n\nUnmount the filesystem first: a primary in use cannot be demoted. A primary that is only cut off and keeps writing causes a split brain; --primary-is-dead asserts that an operator has checked."
)]
pub(in crate::cli) struct Args {
    /// Name of the resource
    resource: String,
    #[command(flatten)]
    hosts: Hosts,
    /// Host to promote to primary
    #[arg(long, value_name = "HOST")]
    to: String,
    /// Assert that the old primary is off; a dead host and a cut cable are indistinguishable
    #[arg(long)]
    primary_is_dead: bool,
    /// Confirm non-interactively by repeating the host to promote
    #[arg(long = "yes", alias = "really", value_name = "HOST", requires = "primary_is_dead")]
    really: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let progress = progress::start(false, args.json);
    args.hosts.with(Needs::Sessions, async |fleet, inventory| {
        let typed = inventory.typed.as_deref();
        let now = seen::look(fleet).await;
        let is_there = now.of(&args.to, &args.resource).is_some_and(|side| side.role == "Primary");
        // One that was broken off behind its last step.
        if is_there && moves::close(fleet, &args.resource).await?.contains(&DrbdMove::Failover) {
            out::note(&format!("{} is the primary: the failover had come to its end", args.to));
            moves::show(fleet, typed, args.json).await?;
            return Ok(ExitCode::Ok);
        }
        let steps = if args.primary_is_dead {
            let steps = drbd::failover_of_the_dead(&now.all, &args.resource, &args.to)?;
            let warning = format!(
                "if the old primary of {} lives and is only cut off, both sides will be written to, and one of them has to be given up later",
                args.resource
            );
            really(&args.to, args.really.as_deref(), &warning)?;
            steps
        } else {
            drbd::failover(&now.all, &args.resource, &args.to)?
        };
        let what = (args.resource.as_str(), DrbdMove::Failover);
        if let Some(code) = moves::make(fleet, what, &steps, progress.as_ref()).await? {
            return Ok(code);
        }
        moves::show(fleet, typed, args.json).await?;
        Ok(ExitCode::Ok)
    })
}
