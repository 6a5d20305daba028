//! Where the kept set of an inventory is, decided here alone, and how it is read and written there: a file,
//! or the database of a team.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use linerate_fleet::clock;
use linerate_input as input;
use linerate_kept::{KeptSet, with_revision};
use linerate_model::shell;
use linerate_store::{KeptText, SharedKeptSet};

use super::super::profile::named;

/// Name of the file beside the inventory.
const NAME: &str = "kept.toml";

/// Where a kept set is.
#[derive(Debug)]
pub(in super::super) enum KeptLocation {
    /// A file, which need not be there yet.
    File(PathBuf),
    /// The operator's database.
    Database(Box<SharedKeptSet>),
}

/// The text of a kept set.
#[derive(Debug)]
pub(super) struct Document {
    /// File, or database and revision, for messages.
    pub(super) name: String,
    /// Revision of the database.
    pub(super) revision: Option<u64>,
    pub(super) toml: String,
}

impl KeptLocation {
    /// The kept set of an inventory: the file that was named, else the one beside the inventory where it has
    /// a text, else the database of a team, else the file beside the inventory.
    pub(in super::super) fn find(
        named: Option<&Path>,
        inventory: Option<&Path>,
        cluster: &str,
    ) -> anyhow::Result<Self> {
        if let Some(file) = named {
            return Ok(Self::File(file.to_owned()));
        }
        let file = beside(inventory);
        if has_text(&file) {
            return Ok(Self::File(file));
        }
        let shared = SharedKeptSet::open_default(cluster)?;
        Ok(shared.map_or(Self::File(file), |shared| Self::Database(Box::new(shared))))
    }

    /// The kept set that gets the settings of a trial: none where its run is of no inventory file, or where
    /// that file is not on this machine and there is no database.
    pub(in super::super) fn for_trial(
        named: Option<&Path>,
        inventory: Option<&Path>,
        cluster: &str,
    ) -> anyhow::Result<Option<Self>> {
        let found = match (named, inventory) {
            (None, None) => return Ok(None),
            _ => Self::find(named, inventory, cluster)?,
        };
        let is_beside = named.is_none() && matches!(found, Self::File(_));
        Ok(Some(found).filter(|_| !is_beside || inventory.is_some_and(Path::is_file)))
    }

    /// In words, without a revision.
    pub(in super::super) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Database(shared) => in_database(shared.cluster()),
        }
    }

    /// The text; `None` where there is none yet.
    pub(super) fn read(&self) -> anyhow::Result<Option<Document>> {
        match self {
            Self::File(path) if is_there(path) => {
                let toml = input::text(path, input::KNOWLEDGE_BYTES_MAX)?;
                Ok(Some(Document { name: self.name(), revision: None, toml }))
            }
            Self::File(_) => Ok(None),
            Self::Database(shared) => Ok(shared.read(None)?.map(|text| document(shared, text))),
        }
    }

    /// The kept set; `None` where there is none yet.
    pub(in super::super) fn load_if_any(&self) -> anyhow::Result<Option<KeptSet>> {
        self.read()?.map(|document| parse(&document.name, &document.toml)).transpose()
    }

    /// The kept set, which has to be there.
    pub(in super::super) fn load(&self) -> anyhow::Result<KeptSet> {
        self.load_if_any()?.with_context(|| self.absent())
    }

    /// Why there is none.
    pub(super) fn absent(&self) -> String {
        let which = match self {
            Self::File(path) => format!("no kept set at {}", path.display()),
            Self::Database(_) => format!("no {}", self.name()),
        };
        format!(
            "{which}\nhint: `linerate drift --init` writes one from the kept trials, `linerate keep TRIAL` adds \
             to it"
        )
    }

    /// Makes a change of the text, which gets the name of the text before and the text; gives the name of the
    /// new one. `what` is the command. What other operators write to the database meanwhile stays.
    pub(super) fn edit(
        &self,
        what: &str,
        change: impl FnOnce(&str, &str) -> anyhow::Result<String>,
    ) -> anyhow::Result<String> {
        match self {
            Self::File(path) => {
                let old = self.read()?.map_or_else(String::new, |document| document.toml);
                let new = change(&self.name(), &old)?;
                replace(path, &new).with_context(|| format!("cannot write {}", path.display()))?;
                Ok(self.name())
            }
            Self::Database(shared) => {
                let revision = shared.edit(what, clock::now_ms(), |old| {
                    let (read, toml) = old.map_or((0, ""), |old| (old.revision, old.toml.as_str()));
                    let new = change(&of_revision(shared.cluster(), read), toml)?;
                    anyhow::Ok(with_revision(&new, read + 1))
                })?;
                Ok(of_revision(shared.cluster(), revision))
            }
        }
    }
}

/// The kept set in the operator's database, whatever files are there.
pub(super) fn database(cluster: &str) -> anyhow::Result<SharedKeptSet> {
    SharedKeptSet::open_default(cluster)?.context(
        "the store is no PostgreSQL database, so the kept set is a file\n\
         hint: `linerate drift --print` prints it",
    )
}

/// The kept set of the database that is not used, because the file beside the inventory has priority.
pub(super) fn unused(inventory: Option<&Path>, cluster: &str) -> anyhow::Result<Option<String>> {
    let Some(file) = Some(beside(inventory)).filter(|file| has_text(file)) else { return Ok(None) };
    let Some(shared) = SharedKeptSet::open_default(cluster)? else { return Ok(None) };
    let path = shell::path(&file);
    Ok(shared.read(None)?.map(|text| {
        let name = of_revision(cluster, text.revision);
        format!("{} has priority over the {name}\nhint: mv {path} {path}.old", file.display())
    }))
}

/// A text of the database with its name.
pub(super) fn document(shared: &SharedKeptSet, text: KeptText) -> Document {
    let KeptText { revision, toml } = text;
    Document { name: of_revision(shared.cluster(), revision), revision: Some(revision), toml }
}

/// The kept set of a text, with profiles that there are.
pub(super) fn parse(name: &str, toml: &str) -> anyhow::Result<KeptSet> {
    let set = KeptSet::parse(name, toml)?;
    for chosen in set.cohorts.iter().filter_map(|cohort| cohort.profile.as_ref()) {
        named::find(&chosen.name).with_context(|| format!("{}:{}", set.file, chosen.line))?;
    }
    Ok(set)
}

fn in_database(cluster: &str) -> String {
    format!("kept set of {cluster} in the database")
}

/// A revision in words.
pub(super) fn of_revision(cluster: &str, revision: u64) -> String {
    format!("{} (revision {revision})", in_database(cluster))
}

/// The file beside an inventory file; of hosts that were named without one in this folder.
fn beside(inventory: Option<&Path>) -> PathBuf {
    let folder = inventory.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(
        || PathBuf::from(NAME),
        |folder| if folder == Path::new(".") { NAME.into() } else { folder.join(NAME) },
    )
}

/// A file that cannot be seen is there: reading it names the reason.
fn is_there(file: &Path) -> bool {
    file.try_exists().unwrap_or(true)
}

/// Whether there is more than the empty file that a shell makes first for `linerate drift --print
/// >kept.toml`.
fn has_text(file: &Path) -> bool {
    is_there(file) && file.metadata().map_or(true, |found| found.len() > 0)
}

/// Writes a file whole: who reads it meanwhile, or after a crash, finds the old text or the new one.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let new = path.with_extension("toml.new");
    std::fs::write(&new, text)?;
    std::fs::rename(&new, &path)
}
