//! A plan for the drives of a host: their sizes and kinds are read there. Nothing is written here; with
//! `--apply` it is handed on.

use linerate_model::exit::ExitCode;
use linerate_model::inventory::Inventory;

use super::apply;
use super::args::Args;
use super::measure::Place;
use crate::build;
use crate::cli::{open, out};
use crate::observe::run::read_facts;
use linerate_fleet::Fleet;
use linerate_inventory as inventory;

/// The inventory, and the host's name in it.
fn inventory_of(args: &Args, host: &str) -> anyhow::Result<(Inventory, String)> {
    let mut inventory = match &args.live.inventory {
        Some(path) => open::inventory(path, &[])?,
        None => inventory::named(&[host.to_owned()])?,
    };
    if args.live.no_sudo {
        inventory.without_sudo();
    }
    let name = match &args.live.inventory {
        Some(_) => host.to_owned(),
        None => inventory.hosts.first().map_or_else(String::new, |host| host.name.clone()),
    };
    let file =
        args.live.inventory.as_ref().map_or("command line".to_owned(), |path| path.display().to_string());
    let inventory = inventory::selected(inventory, std::slice::from_ref(&name), &file)?;
    Ok((inventory, name))
}

/// Plans with what the host says.
pub(super) fn on_host(args: &Args, host: &str) -> anyhow::Result<ExitCode> {
    let (inventory, host) = inventory_of(args, host)?;
    anyhow::ensure!(
        !args.live.apply || args.levels().len() == 1,
        "--apply builds one level, and several are given\nhint: one of --raid10, --raid5 and --raid6"
    );
    open::runtime()?.block_on(async {
        let opened = open::unless_interrupted(Fleet::open(&inventory, |h| h.name == host)).await;
        let Some(mut fleet) = opened else { return Ok(open::after_interrupt()) };
        fleet.named_by(args.live.inventory.as_deref(), &inventory);
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
