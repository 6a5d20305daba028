//! The operator's folder of keys: a file `HOST.toml` for each agent, the same that its host has.
//!
//! In: the folder and the names of hosts. Out: the keys, or the first file that is missing, broken or not
//! private; and new files for hosts that have none. A key is written nowhere else and shown in no error.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use linerate_input::InputError;
use linerate_model::shell::word;
use linerate_wire::agent::{AGENT_FILE_BYTES_MAX, AgentFile, AgentFileError};
use linerate_wire::sealed::{AgentKey, KEY_ID_BYTES};
use schemars::JsonSchema;
use serde::Serialize;

use crate::clock;

/// Why the keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the texts name the fields")]
pub enum AgentKeysError {
    #[error(
        "host {host}: no key at {}\nhint: `linerate watch --make-keys -i FILE` makes those that are missing",
        path.display()
    )]
    Missing { host: String, path: PathBuf },
    #[error(transparent)]
    Unread(#[from] InputError),
    #[error("{}: {source}", path.display())]
    Flaw { path: PathBuf, source: AgentFileError },
    #[error("{}: it is the file of host {name}, not of {host}", path.display())]
    OfAnother { path: PathBuf, name: String, host: String },
    #[error("{}: it has the key of another host\nhint: remove it, and make a new one with `linerate watch --make-keys`", path.display())]
    Twice { path: PathBuf },
    #[error(
        "{} belongs to another user, or others may read or write it (owner uid {owner}, mode {mode:04o})\nhint: `chmod 700 {}` as its owner",
        path.display(),
        word(&path.display().to_string())
    )]
    NotPrivate { path: PathBuf, owner: u32, mode: u32 },
    #[error("`{}` cannot be the name of a file: rename the host", host.escape_debug())]
    Name { host: String },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Names of hosts with their keys, by their numbers.
type Known = BTreeMap<[u8; KEY_ID_BYTES], (String, AgentKey)>;

/// Reads the keys of these hosts.
pub(super) fn read<'a>(folder: &Path, hosts: impl Iterator<Item = &'a str>) -> Result<Known, AgentKeysError> {
    let mut known = Known::new();
    check_folder(folder)?;
    for host in hosts {
        let path = path_of(folder, host)?;
        if !path.exists() {
            return Err(AgentKeysError::Missing { host: host.to_owned(), path });
        }
        let AgentFile { name, key, .. } = read_one(&path)?;
        if name != host {
            return Err(AgentKeysError::OfAnother { path, name, host: host.to_owned() });
        }
        if known.insert(key.id(), (name, key)).is_some() {
            return Err(AgentKeysError::Twice { path });
        }
    }
    Ok(known)
}

fn read_one(path: &Path) -> Result<AgentFile, AgentKeysError> {
    let text = linerate_input::private_text(path, AGENT_FILE_BYTES_MAX)?;
    AgentFile::parse(&text).map_err(|source| AgentKeysError::Flaw { path: path.to_owned(), source })
}

/// The file of a host; names of hosts come from lists that others wrote.
fn path_of(folder: &Path, host: &str) -> Result<PathBuf, AgentKeysError> {
    if host.is_empty() || host.starts_with('.') || host.contains('/') || host.chars().any(char::is_control) {
        return Err(AgentKeysError::Name { host: host.to_owned() });
    }
    Ok(folder.join(format!("{host}.toml")))
}

/// Where the folder is: another user must not be able to put keys into it.
fn check_folder(folder: &Path) -> Result<(), AgentKeysError> {
    let Ok(meta) = std::fs::metadata(folder) else { return Ok(()) };
    let (owner, mode) = (meta.uid(), meta.mode() & 0o7777);
    let is_ours = owner == 0 || owner == rustix::process::geteuid().as_raw();
    if !is_ours || mode & 0o077 != 0 {
        return Err(AgentKeysError::NotPrivate { path: folder.to_owned(), owner, mode });
    }
    Ok(())
}

/// What became of the keys.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MadeKeys {
    /// Files that are new.
    pub new: Vec<PathBuf>,
    /// Files that were there and are as they were.
    pub old: Vec<PathBuf>,
    /// Files of hosts that are no agents of this inventory: their keys open nothing.
    pub unused: Vec<PathBuf>,
}

/// Makes the files of those hosts that have none. None that is there is changed.
///
/// # Errors
/// A file that is there and broken or not private, or one that cannot be written.
pub fn make_keys(
    folder: &Path,
    operators: &[SocketAddr],
    hosts: &[&str],
) -> Result<MadeKeys, AgentKeysError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| AgentKeysError::Write { path, source }
    };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(folder))?;
    check_folder(folder)?;
    let mut made = MadeKeys::default();
    for host in hosts {
        let path = path_of(folder, host)?;
        if path.exists() {
            read_one(&path)?;
            made.old.push(path);
            continue;
        }
        let key = AgentKey::new(clock::random().map_err(failed(&path))?);
        let file = AgentFile { name: (*host).to_owned(), operators: operators.to_vec(), key };
        // Whole or not at all: half of a key would block the next try.
        let write = || {
            let mut fresh = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            fresh.write_all(file.text().as_bytes())?;
            fresh.sync_all()
        };
        if let Err(error) = write() {
            if error.kind() != io::ErrorKind::AlreadyExists {
                let _ = std::fs::remove_file(&path);
            }
            return Err(failed(&path)(error));
        }
        made.new.push(path);
    }
    let used: BTreeSet<&PathBuf> = made.new.iter().chain(&made.old).collect();
    let entries = std::fs::read_dir(folder).map_err(failed(folder))?;
    let others = entries.flatten().map(|entry| entry.path());
    let mut unused: Vec<PathBuf> = others.filter(|path| !used.contains(path)).collect();
    unused.sort();
    made.unused = unused;
    Ok(made)
}
