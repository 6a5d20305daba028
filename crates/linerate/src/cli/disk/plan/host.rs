//! A plan for the drives of a host: their sizes and kinds are read there. Nothing is written here; with
//! `--apply` it is handed on.

use linerate_model::exit::ExitCode;

use super::apply;
use super::args::Args;
use super::measure::Place;
use crate::cli::targets::{self, Chosen};
use crate::cli::{open, out};
use linerate_fleet::Fleet;
use linerate_operator::build;
use linerate_operator::observe::run::read_facts;

/// The inventory, and the host's name in it.
fn chosen(args: &Args, host: &str) -> anyhow::Result<Chosen> {
    let mut chosen = targets::machines(args.live.inventory.choose(&[host.to_owned()])?);
    if args.live.no_sudo {
        chosen.inventory.without_sudo();
    }
    Ok(chosen)
}

/// Plans with what the host says.
pub(super) fn on_host(args: &Args, host: &str) -> anyhow::Result<ExitCode> {
    let chosen = chosen(args, host)?;
    let host = chosen.names().remove(0);
    let Chosen { inventory, file, .. } = chosen;
    anyhow::ensure!(
        !args.live.apply || args.levels().len() == 1,
        "--apply builds one level, and several are given\nhint: one of --raid10, --raid5 and --raid6"
    );
    open::runtime()?.block_on(async {
        let opened = open::unless_interrupted(Fleet::open(&inventory, |h| h.name == host)).await;
        let Some(mut fleet) = opened else { return Ok(open::after_interrupt()) };
        fleet.named_by(file.as_deref(), &inventory);
        let undo = build::undo_command(&format!("{}{}", build::DISK, args.name), &fleet.arguments(&[&host]));
        fleet.notes.iter().for_each(|note| out::note(note));
        let done = open::with_fleet(fleet, async |fleet| {
            let wanted = ["disk.".to_owned()];
            let facts = read_facts(fleet, &inventory, &host, &wanted).await;
            let (plan, chosen) = args.plan(Some(&facts.map_err(|reason| anyhow::anyhow!(reason))?))?;
            if !args.live.apply {
                args.show(&plan, &chosen)?;
                return Ok(ExitCode::Ok);
            }
            if !args.json {
                args.show(&plan, &chosen)?;
            }
            apply::apply(args, &Place { fleet, inventory: &inventory, host: &host }, &plan, &chosen).await
        })
        .await?;
        Ok(done.unwrap_or_else(|| interrupted(args, &undo)))
    })
}

/// A build that was broken off stays in its journal.
fn interrupted(args: &Args, undo: &str) -> ExitCode {
    if !args.live.apply {
        return open::after_interrupt();
    }
    out::note(&format!(
        "interrupted; what was built stays as it is: the same command goes on with it, `{undo}` takes it back"
    ));
    ExitCode::Interrupted
}
