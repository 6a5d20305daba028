//! The text of the kept set for people and for git, its revisions in the database, and an edited file that
//! becomes the next one.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use linerate_fleet::clock;
use linerate_input as input;
use linerate_kept::{revision_of, with_revision};
use linerate_model::exit::ExitCode;
use linerate_model::printable::one_line;
use linerate_model::shell;
use linerate_model::units::date_minute;
use linerate_report::names;
use linerate_store::KeptRevision;

use super::super::documents::{KeptRevisions, KeptToml};
use super::super::out;
use super::super::targets::Chosen;
use super::location::{self, Document, KeptLocation};

/// Width of the list of revisions.
const COLUMNS: usize = 100;
/// Columns of an operator.
const WHO: usize = 28;

/// Prints the text, or that of a revision of the database.
pub(super) fn print(
    named: Option<&Path>,
    chosen: &Chosen,
    revision: Option<u64>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let cluster = &chosen.inventory.name;
    let found = match revision {
        None => {
            let location = KeptLocation::find(named, chosen.file.as_deref(), cluster)?;
            location.read()?.with_context(|| location.absent())?
        }
        Some(number) => {
            let shared = location::database(cluster)?;
            let text = shared.read(revision)?.with_context(|| {
                format!(
                    "no {}\nhint: `linerate drift --revisions` lists those that are there",
                    location::of_revision(cluster, number)
                )
            })?;
            location::document(&shared, text)
        }
    };
    let Document { name, revision, toml } = found;
    if json {
        out::listing(KeptToml { kept: &name, revision, toml: &toml })?;
    } else {
        out::print(&toml)?;
    }
    Ok(ExitCode::Ok)
}

/// Lists the revisions.
pub(super) fn revisions(chosen: &Chosen, json: bool) -> anyhow::Result<ExitCode> {
    let shared = location::database(&chosen.inventory.name)?;
    let revisions = shared.revisions()?;
    if json {
        out::listing(KeptRevisions { cluster: shared.cluster(), revisions: &revisions })?;
    } else if revisions.is_empty() {
        out::print(&format!("no kept set of {} in the database", one_line(shared.cluster())))?;
    } else {
        out::print(&table(&revisions))?;
    }
    Ok(ExitCode::Ok)
}

fn table(revisions: &[KeptRevision]) -> String {
    let mut text = format!("{:>8}  {:16}  {:WHO$}  {:16}  what\n", "revision", "UTC", "who", "database user");
    for one in revisions {
        let (who, role) = (names::cut(&one_line(&one.who), WHO), names::cut(&one_line(&one.role), 16));
        let line = format!(
            "{:>8}  {:16}  {who:WHO$}  {role:16}  {}",
            one.revision,
            date_minute(one.at_ms),
            one_line(&one.what)
        );
        // Writing into a `String` cannot fail.
        let _ = writeln!(text, "{}", names::cut(&line, COLUMNS));
    }
    text
}

/// Stores an edited file as the next revision, where it was edited from the newest one. `inventory` is the
/// option that names it to another command.
pub(super) fn load(file: &Path, chosen: &Chosen, inventory: &str) -> anyhow::Result<ExitCode> {
    let cluster = &chosen.inventory.name;
    let shared = location::database(cluster)?;
    let name = file.display().to_string();
    let toml = input::text(file, input::KNOWLEDGE_BYTES_MAX)?;
    location::parse(&name, &toml)?;
    let is_begun = shared.read(None)?.is_some();
    let edited_from = revision_of(&toml);
    // Where there is none, nothing of others can be lost.
    let read = edited_from.filter(|_| is_begun).unwrap_or(0);
    let new = with_revision(&toml, read.saturating_add(1));
    let what = format!("drift --load {name}");
    let Some(revision) = shared.write(read, &new, &what, clock::now_ms())? else {
        let newest = shared.revisions()?.into_iter().next().map_or(String::new(), |newest| {
            format!(" (revision {}: {}, {})", newest.revision, one_line(&newest.who), one_line(&newest.what))
        });
        let edited_from = edited_from.map_or_else(
            || format!("{name} does not begin with the revision that it was edited from"),
            |revision| format!("{name} was edited from revision {revision}"),
        );
        anyhow::bail!(
            "{edited_from}, which is not the newest kept set of {cluster}{newest}\n\
             hint: `linerate drift {inventory}--print | diff {} -` shows what differs",
            shell::path(file)
        );
    };
    out::print(&format!("{}: stored from {name}", location::of_revision(cluster, revision)))?;
    if let Some(unused) = location::unused(chosen.file.as_deref(), cluster)? {
        out::note(&unused);
    }
    Ok(ExitCode::Ok)
}
