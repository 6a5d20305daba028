//! Where the store lies, and that it is the user's alone: the folder 0700, the files 0600, whatever the
//! umask.
//!
//! Settings, addresses and names of a cluster stand in it, and what stands in it is believed. An existing
//! folder or file that is a link, belongs to another user, or can be written by others is refused with its
//! owner and mode; one that others can only read is closed to them, unless it is a folder with other things
//! in it. A FIFO or a device instead of a file is refused before it is opened. Every folder above is checked
//! as the node checks those above its journals: another user can exchange none of them.

use std::ffi::OsStr;
use std::fs::{DirBuilder, Metadata, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

use linerate_sys::ancestors::{self, Exchangeable, FolderIssue, Trusted};

use super::error::{StoreError, unusable};
use super::paths::{FILE, beside, copy};
use linerate_model::shell;

/// Files that SQLite keeps beside the database.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];
const FOLDER_MODE: u32 = 0o700;
pub(super) const FILE_MODE: u32 = 0o600;
/// The folder of journals of rollouts.
pub(super) const ROLLOUTS: &str = "rollouts";
/// What the names of records begin with.
pub(super) const RECORD: &str = "linerate-";

/// Makes the folder where it is not there, and sees to it that it is private.
pub(super) fn make_folder(folder: &Path) -> Result<(), StoreError> {
    if check_folder(folder)? {
        return Ok(());
    }
    let failed = |source| StoreError::Folder { path: folder.to_owned(), source };
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).map_err(failed)?;
    check_folder(folder)?;
    // A umask can take from the owner, too.
    std::fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)).map_err(failed)
}

/// Whether the folder is there; an error where it is not private and cannot be made so.
pub(super) fn check_folder(folder: &Path) -> Result<bool, StoreError> {
    check_above(folder)?;
    let Some(found) = stat(folder)? else { return Ok(false) };
    if !found.is_dir() {
        return Err(not_what(folder, &found, "a folder"));
    }
    refuse_stray(folder, &found, FOLDER_MODE)?;
    // A folder that LINERATE_DATA names may serve other programs too, which need its mode.
    if holds_nothing_else(folder) {
        close_to_others(folder, &found)?;
    }
    Ok(true)
}

/// Refuses a folder that another user could exchange through one above it.
fn check_above(folder: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::Folder { path: folder.to_owned(), source };
    let absolute = std::path::absolute(folder).map_err(failed)?;
    let Some(above) = absolute.parent() else { return Ok(()) };
    let Err(error) = ancestors::reach(above, &Trusted::new()) else { return Ok(()) };
    let Some(refused) = Exchangeable::of(&error) else { return Err(failed(error)) };
    let hint = match refused.by {
        FolderIssue::Mode => format!("chmod go-w {}", shell::path(&refused.path)),
        _ => "set LINERATE_DATA to a folder of your own".to_owned(),
    };
    Err(unusable(format!("{} {}", refused.path.display(), refused.problem("the store")), hint))
}

/// Whether a folder has no entries but those of a store.
fn holds_nothing_else(folder: &Path) -> bool {
    let begins = |name: &OsStr, with: &str| name.as_bytes().starts_with(with.as_bytes());
    let is_own = |name: &OsStr| begins(name, FILE) || begins(name, RECORD) || name == ROLLOUTS;
    std::fs::read_dir(folder)
        .is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(|entry| is_own(&entry.file_name()))))
}

/// Makes an empty file where there is none, and sees to it that it and those beside it are private.
pub(super) fn make_file(path: &Path) -> Result<(), StoreError> {
    if check_files(path)? {
        return Ok(());
    }
    let failed = |source| StoreError::Folder { path: path.to_owned(), source };
    match OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path) {
        // A umask can take from the owner, too.
        Ok(file) => file.set_permissions(Permissions::from_mode(FILE_MODE)).map_err(failed),
        // Another linerate made it just now.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => check_files(path).map(drop),
        Err(error) => Err(failed(error)),
    }
}

/// Whether the database is there; an error where it or a file beside it is not private and cannot be made so.
pub(super) fn check_files(path: &Path) -> Result<bool, StoreError> {
    for end in BESIDE {
        check_file(&beside(path, end))?;
    }
    check_file(path)
}

pub(super) fn check_file(path: &Path) -> Result<bool, StoreError> {
    let Some(found) = stat(path)? else { return Ok(false) };
    if !found.is_file() {
        return Err(not_what(path, &found, "a file of the database"));
    }
    refuse_stray(path, &found, FILE_MODE)?;
    close_to_others(path, &found)?;
    Ok(true)
}

/// Whether the write-ahead log has nothing that the database lacks.
pub(super) fn is_log_empty(path: &Path) -> bool {
    match std::fs::symlink_metadata(beside(path, "-wal")) {
        Ok(log) => log.len() == 0,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// A log that has to be replayed cannot be read where nothing can be written.
pub(super) fn needs_copy(path: &Path, source: &rusqlite::Error) -> StoreError {
    unusable(
        format!("database {} cannot be read where it cannot be written: {source}", path.display()),
        copy(path),
    )
}

/// What is there, without following a link; `None` where nothing is.
fn stat(path: &Path) -> Result<Option<Metadata>, StoreError> {
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StoreError::Folder { path: path.to_owned(), source }),
    }
}

fn not_what(path: &Path, found: &Metadata, wanted: &str) -> StoreError {
    let kind = found.file_type();
    let what = match kind {
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_file() => "a regular file",
        _ => "a device",
    };
    let hint = match path.canonicalize() {
        Ok(target) if kind.is_symlink() && target.is_dir() => {
            format!("LINERATE_DATA={} linerate runs", shell::path(&target))
        }
        _ => format!("mv {} {}", shell::path(path), shell::path(&beside(path, ".bad"))),
    };
    unusable(format!("{} is {what}, not {wanted} ({})", path.display(), owner(found)), hint)
}

fn owner(found: &Metadata) -> String {
    format!("owner uid {}, mode {:04o}", found.uid(), found.mode() & 0o7777)
}

/// Refuses what another user owns or can write.
fn refuse_stray(path: &Path, found: &Metadata, mode: u32) -> Result<(), StoreError> {
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        return Err(unusable(
            format!("{} belongs to another user ({}; you are uid {own})", path.display(), owner(found)),
            "set LINERATE_DATA to a folder of your own".to_owned(),
        ));
    }
    if found.mode() & 0o022 != 0 {
        return Err(unusable(
            format!("{} can be written by other users ({})", path.display(), owner(found)),
            format!("ls -la {0} && chmod {mode:04o} {0}", shell::path(path)),
        ));
    }
    Ok(())
}

/// Takes from other users what they may read.
fn close_to_others(path: &Path, found: &Metadata) -> Result<(), StoreError> {
    // Nothing for other users already.
    if found.mode().trailing_zeros() >= 6 {
        return Ok(());
    }
    match std::fs::set_permissions(path, Permissions::from_mode(found.mode() & 0o700)) {
        // There it stays as it is: that others read it cannot be changed by reading it as well.
        Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => Ok(()),
        Err(source) => Err(StoreError::Folder { path: path.to_owned(), source }),
        Ok(()) => Ok(()),
    }
}
