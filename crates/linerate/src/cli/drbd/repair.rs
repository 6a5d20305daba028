//! `linerate drbd repair`: a split brain ends with the operator's choice of the side that gives up what it
//! wrote alone.

use std::time::Duration;

use linerate_model::drbd::{DrbdMove, Replica};
use linerate_model::exit::ExitCode;
use linerate_storage::drbd::{self, Forecast, lost_by};

use super::super::hosts::{Hosts, Needs, really};
use super::super::{out, progress};
use super::{moves, wait};
use linerate_operator::observe::drbd::{self as seen, Replicas};

/// Resolve a split brain: discard the victim's changes, after listing them
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate drbd repair r0 --victim store-2 store-1 store-2\n\nUnmount the filesystem on the victim first. Back up data that exists only on the victim, if it matters."
)]
pub(in crate::cli) struct Args {
    /// Name of the resource
    resource: String,
    #[command(flatten)]
    hosts: Hosts,
    /// Host whose changes are discarded
    #[arg(long, value_name = "HOST")]
    victim: String,
    /// Confirm non-interactively by repeating the victim
    #[arg(long = "yes", alias = "really", value_name = "HOST")]
    really: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What the victim loses, in words; an error when there is no split brain.
fn warning(now: &Replicas, resource: &str, victim: &str) -> anyhow::Result<String> {
    let known = |host: &str| now.known.get(&(host.to_owned(), resource.to_owned())).copied();
    let other = now.all.iter().find(|r| r.host != victim && r.resource == resource);
    let (Some((Some(own), own_kib)), Some(victim_side), Some(other)) =
        (known(victim), now.of(victim, resource), other)
    else {
        anyhow::bail!(
            "the generation identifiers of both sides of {resource} are needed, and not all were seen\nhint: name both hosts; `linerate drbd status HOSTS` shows what is missing"
        );
    };
    let Some((Some(theirs), their_kib)) = known(&other.host) else {
        anyhow::bail!(
            "{} does not show its generation identifiers of {resource}\nhint: is it up there?",
            other.host
        );
    };
    match own.forecast(&theirs) {
        Forecast::SplitBrain { .. } => {}
        Forecast::Unrelated => anyhow::bail!(
            "the data of {victim} and {} have no common origin: this is no split brain, and they will refuse to connect\nhint: find out which device was exchanged; the metadata of the wrong side have to be made anew (`drbdadm create-md {resource}`), and all of it is copied",
            other.host
        ),
        _ => anyhow::bail!(
            "{resource} has no split brain: nobody has to give anything up\nhint: `drbdadm connect {resource}` on the side that stands alone"
        ),
    }
    Ok(format!(
        "{victim} gives up {} KiB that it has written since the sides parted; {} keeps its {} KiB. This cannot be taken back",
        lost_by(victim_side, own_kib),
        other.host,
        lost_by(other, their_kib)
    ))
}

/// How long both sides may take to meet again.
const MEET_LIMIT: Duration = Duration::from_secs(30);

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let progress = progress::start(false, args.json);
    args.hosts.with(Needs::Sessions, async |fleet, inventory| {
        let now = seen::look(fleet).await;
        let warning = warning(&now, &args.resource, &args.victim)?;
        let steps = drbd::repair(&now.all, &args.resource, &args.victim)?;
        really(&args.victim, args.really.as_deref(), &warning)?;
        out::note(&warning);
        let what = (args.resource.as_str(), DrbdMove::Repair);
        if let Some(code) = moves::make(fleet, what, &steps, progress.as_ref()).await? {
            return Ok(code);
        }
        let meets = |now: &Replicas| now.of(&args.victim, &args.resource).is_some_and(Replica::is_connected);
        wait::until(fleet, MEET_LIMIT, meets).await;
        let ended = wait::until_done(fleet, "copying to the victim", progress.as_ref()).await?;
        moves::show(fleet, inventory.typed.as_deref(), args.json).await?;
        let victim = ended.now.of(&args.victim, &args.resource);
        if victim.is_some_and(|side| side.is_connected() && side.is_up_to_date()) {
            return Ok(ExitCode::Ok);
        }
        out::note(&format!(
            "{} is not connected to its peer yet, or not up to date: it gives up its writes as soon as they meet\nhint: `linerate drbd status {}` shows when that is; is the path between both addresses open?",
            args.victim,
            args.hosts.words()
        ));
        Ok(ExitCode::PartlyBlind)
    })
}
