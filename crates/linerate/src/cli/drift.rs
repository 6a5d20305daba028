//! `linerate drift`: the kept set beside what is in force on hosts and what their files give after a boot.

mod chosen;
mod file;
pub(super) mod put_back;
mod read;

use std::path::{Path, PathBuf};

use linerate_fleet::Fleet;
use linerate_kept::KeptSet;
use linerate_model::drift::{DriftRow, DriftState};
use linerate_model::exit::ExitCode;
use linerate_model::inventory::Inventory;
use linerate_report::drift as page;
use linerate_report::heat::Style;
use linerate_store::Store;

use super::documents::Drift;
use super::targets::{Chosen, Targets};
use super::{open, out};

pub(super) use chosen::ChosenProfiles;
pub(super) use file::{add_trial, beside, kept_set, load};

/// Compare kept settings with what is in force and what survives a reboot.
// Each switch of the command line is one.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate drift                       all hosts of ./cluster.toml against ./kept.toml\n  linerate drift vs-4 --kept site.toml\n  linerate drift --init                write ./kept.toml from the kept trials\n  linerate drift --put-back            put back what has the policy put-back\n\nExit codes: 1 drifted or lost by a reboot, 3 not all read."
)]
pub(super) struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Kept set; defaults to kept.toml beside the inventory
    #[arg(long, value_name = "FILE")]
    kept: Option<PathBuf>,
    /// Write a kept set from the kept trials of this cluster
    #[arg(long, conflicts_with_all = ["put_back", "json"])]
    init: bool,
    /// Put back what drifted and has the policy `put-back`, at most once an hour
    #[arg(long)]
    put_back: bool,
    /// Also put back what has the policy `propose`
    #[arg(long, requires = "put_back")]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was found, and what was done about it.
struct Outcome {
    rows: Vec<DriftRow>,
    done: Vec<put_back::Done>,
    /// Whether the store has what was done.
    saved: anyhow::Result<()>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let chosen = args.targets.machines()?;
    let path = args.kept.clone().unwrap_or_else(|| file::beside(chosen.file.as_deref()));
    if args.init {
        return file::init(&path, &chosen.inventory);
    }
    let set = file::load(&path)?;
    let mut store = Store::open_default()?;
    let found = open::runtime()?.block_on(compare(args, &chosen, &set, &mut store))?;
    let Some(Outcome { rows, done, saved }) = found else { return Ok(open::after_interrupt()) };
    let inventory = option("-i", args.targets.given());
    let kept = option("--kept", args.kept.as_deref());
    let again = page::SameFiles { inventory: &inventory, kept: &kept };
    if args.json {
        let document = Drift { kept: &set.file, rows: &rows, put_back: &done };
        out::document(page::verdict(&rows, again), document)?;
    } else {
        for one in &done {
            out::note(&one.sentence(&inventory));
        }
        out::print(&page::text(&rows, &set.file, again, Style::detect()))?;
    }
    saved?;
    Ok(code(&rows, &done))
}

/// An option that names a file to another command, with a space behind it.
fn option(name: &str, path: Option<&Path>) -> String {
    path.map_or(String::new(), |path| format!("{name} {} ", out::word(&path.to_string_lossy())))
}

async fn compare(
    args: &Args,
    chosen: &Chosen,
    set: &KeptSet,
    store: &mut Store,
) -> anyhow::Result<Option<Outcome>> {
    let inventory = &chosen.inventory;
    let profiles = ChosenProfiles(inventory);
    let is_asked = |host: &str| !linerate_kept::prefixes(set, inventory, host, &profiles).is_empty();
    let opened = open::unless_interrupted(Fleet::open(inventory, |h| is_asked(&h.name))).await;
    let Some(fleet) = opened else { return Ok(None) };
    fleet.notes.iter().for_each(|note| out::note(note));
    open::with_fleet(fleet, async |fleet| {
        let mut rows = read::rows(fleet, inventory, set, store).await?;
        let (mut done, mut saved) = (Vec::new(), Ok(()));
        if args.put_back {
            let put = put_back::all(fleet, inventory, &rows, args.yes, store).await;
            (done, saved) = (put.0, put.1.map_err(anyhow::Error::from));
            // Without the store the rows stay as they were read: what was done is printed all the same.
            if saved.is_ok() && done.iter().any(put_back::Done::is_done) {
                match read_again(fleet, inventory, set).await {
                    Ok(again) => rows = again,
                    Err(error) => saved = Err(error),
                }
            }
        }
        Ok(Outcome { rows, done, saved })
    })
    .await
}

/// The rows after a change: over a new connection to the store, because the first may be lost by now.
async fn read_again(fleet: &Fleet, inventory: &Inventory, set: &KeptSet) -> anyhow::Result<Vec<DriftRow>> {
    read::rows(fleet, inventory, set, &mut Store::open_default()?).await
}

fn code(rows: &[DriftRow], done: &[put_back::Done]) -> ExitCode {
    let has = |state: DriftState| rows.iter().any(|row| row.state == state);
    if done.iter().any(|one| one.undo_failed) {
        ExitCode::RollbackFailed
    } else if done.iter().any(|one| one.error.is_some()) {
        ExitCode::RolledBack
    } else if has(DriftState::Drifted) || has(DriftState::WillNotSurvive) || rows.iter().any(|row| row.fight)
    {
        ExitCode::Findings
    } else if has(DriftState::Unreadable) {
        ExitCode::PartlyBlind
    } else {
        ExitCode::Ok
    }
}
