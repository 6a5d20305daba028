//! `linerate drift`: the kept set beside what is in force on hosts and what their files give after a boot.

mod add;
mod chosen;
mod location;
pub(super) mod put_back;
mod read;
mod text;

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

pub(super) use add::add_trial;
pub(super) use chosen::ChosenProfiles;
pub(super) use location::KeptLocation;

/// Compare kept settings with what is in force and what survives a reboot.
// Each switch of the command line is one.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate drift                       all hosts of ./cluster.toml against ./kept.toml\n  linerate drift vs-4 --kept site.toml\n  linerate drift --init                write it from the kept trials\n  linerate drift --put-back            put back what has the policy put-back\n  linerate drift --print >new.toml     then edit, and: linerate drift --load new.toml\n\nExit codes: 1 drifted or lost by a reboot, 3 not all read."
)]
pub(super) struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Kept set; defaults to kept.toml beside the inventory, else the one in PostgreSQL
    #[arg(long, value_name = "FILE")]
    kept: Option<PathBuf>,
    /// Write a kept set from the kept trials of this cluster
    #[arg(long, group = "text", conflicts_with_all = ["put_back", "json"])]
    init: bool,
    /// Print the kept set, or a revision of the one in PostgreSQL, as TOML
    #[arg(long, value_name = "REVISION", num_args = 0..=1, require_equals = true)]
    #[arg(group = "text", conflicts_with = "put_back")]
    #[allow(clippy::option_option, reason = "an option whose value may be left out")]
    print: Option<Option<u64>>,
    /// Store a file in PostgreSQL as the next revision of the one it was edited from
    #[arg(long, value_name = "FILE", group = "text", conflicts_with_all = ["put_back", "json", "kept"])]
    load: Option<PathBuf>,
    /// List the revisions in PostgreSQL, with their authors
    #[arg(long, group = "text", conflicts_with_all = ["put_back", "kept"])]
    revisions: bool,
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
    let inventory = option("-i", args.targets.given());
    if let Some(file) = &args.load {
        return text::load(file, &chosen, &inventory);
    }
    if args.revisions {
        return text::revisions(&chosen, args.json);
    }
    if let Some(revision) = args.print {
        return text::print(args.kept.as_deref(), &chosen, revision, args.json);
    }
    let location = KeptLocation::find(args.kept.as_deref(), chosen.file.as_deref(), &chosen.inventory.name)?;
    if args.init {
        return add::init(&location, &chosen.inventory);
    }
    let set = location.load()?;
    if args.kept.is_none()
        && let Some(unused) = location::unused(chosen.file.as_deref(), &chosen.inventory.name)?
    {
        out::note(&unused);
    }
    let mut store = Store::open_default()?;
    let found = open::runtime()?.block_on(compare(args, &chosen, &set, &mut store))?;
    let Some(Outcome { rows, done, saved }) = found else { return Ok(open::after_interrupt()) };
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
