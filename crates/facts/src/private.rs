//! The node's state folder: journals that no other user of the host may write, exchange or read.
//!
//! In: absolute paths `STATE_DIR/FOLDER/FILE`. Out: the content of a file, or a refusal with path, owner and
//! mode. The path is walked from the root by descriptors (`ancestors` of the crate `sys`): a folder above
//! that another user may write or exchange is refused, and so are links of other users. The last two folders
//! and the files in them are ours: owned by the effective user, no links, writable by no one else. Where an
//! older version left them readable, they are made private; missing ones are made with 0700 and 0600,
//! whatever the umask.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use linerate_model::inventory::check_folder;
use linerate_sys::ancestors::{self, Exchangeable, FolderIssue, Trusted, WRITABLE_BY_OTHERS};
use linerate_sys::{at, process};
use thiserror::Error;

/// The state folder and the one below it belong to the node alone.
const OURS: usize = 2;
/// Folder of what checks remember, in the state folder.
pub const CHECK_FOLDER: &str = "check";
/// Folders in the state folder.
pub const FOLDERS: [&str; 3] = ["trials", "builds", CHECK_FOLDER];
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Of missing folders above the state folder, which other programs use too.
const ABOVE_MODE: u32 = 0o755;
/// Largest journal that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Of `open` on a symbolic link that must not be followed.
const ELOOP: i32 = 40;

/// Why a path is not used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{} {problem}", path.display())]
struct NotPrivate {
    path: PathBuf,
    problem: String,
    /// What to do about it.
    hint: String,
}

impl NotPrivate {
    /// The refusal behind an error of this module.
    fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    fn because(path: &Path, problem: String, hint: String) -> io::Error {
        io::Error::other(Self { path: path.to_owned(), problem, hint })
    }

    /// Something that another user made, or may have written into.
    fn not_ours(path: &Path, problem: String) -> io::Error {
        let shown = quoted(path);
        Self::because(
            path,
            problem,
            format!("look at it on that host: `ls -ld {shown}`; to move it away: `mv {shown} {shown}.moved`"),
        )
    }
}

/// Refuses a file that others could write or exchange: what such a file demands is not done.
pub fn check_unwritable(path: &Path) -> Result<(), String> {
    let named = |flaw: String| format!("{}: {flaw}", path.display());
    let meta = std::fs::metadata(path).map_err(|error| named(error.to_string()))?;
    let is_ours = meta.uid() == 0 || meta.uid() == process::effective_user();
    if !is_ours || meta.mode() & WRITABLE_BY_OTHERS != 0 {
        let mode = meta.mode() & 0o7777;
        return Err(named(format!("others can write it (owner uid {}, mode {mode:04o})", meta.uid())));
    }
    if let Some(folder) = path.parent().filter(|folder| folder.is_absolute()) {
        let meta = std::fs::metadata(folder).map_err(|error| named(error.to_string()))?;
        Trusted::new().check(folder, &meta).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// What to do about an error of a private folder or of any other one.
pub fn disk_hint(error: &io::Error) -> &str {
    NotPrivate::of(error).map_or("check space and rights of this folder", |refused| &refused.hint)
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// A private folder, open.
pub struct Folder {
    file: File,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder; `None` where it or one above it is missing.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        Ok(walk(path, false)?.map(|file| Self { file, path: path.to_owned() }))
    }

    /// Opens a folder, and makes it and those above it where they are missing. They are on the disk when this
    /// returns.
    pub fn make(path: &Path) -> io::Result<Self> {
        let file = walk(path, true)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Text of a file; `None` where nothing is.
    pub fn read(&self, name: &OsStr) -> io::Result<Option<String>> {
        let path = self.path.join(name);
        let file = match at::read(&self.file, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| link(&path, error))?,
        };
        check_file(&path, &file)?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(io::Error::other(format!("larger than {} MiB", FILE_BYTES_MAX >> 20)));
        }
        String::from_utf8(bytes).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Puts text at a name in one step; it is on the disk when this returns.
    pub fn write(&self, name: &OsStr, text: &str) -> io::Result<()> {
        let mut fresh = OsString::from(".");
        fresh.push(name);
        fresh.push(format!(".{}", std::process::id()));
        self.unlink(&fresh)?;
        let fill = || {
            let mut file = at::create_new(&self.file, &fresh, FILE_MODE)?;
            file.set_permissions(Permissions::from_mode(FILE_MODE))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            at::rename(&self.file, &fresh, name)
        };
        if let Err(error) = fill() {
            // Half of a file on a full disk helps no reader and is in the way of the next try.
            let _ = at::remove(&self.file, &fresh);
            return Err(error);
        }
        self.file.sync_all()
    }

    /// Removes a file; nothing there is no error.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        self.unlink(name)?;
        self.file.sync_all()
    }

    /// A file for locking, made where it is missing.
    pub fn lock_file(&self, name: &OsStr) -> io::Result<File> {
        let path = self.path.join(name);
        let file = at::open_or_create(&self.file, name, FILE_MODE).map_err(|error| link(&path, error))?;
        check_file(&path, &file)?;
        Ok(file)
    }

    /// Paths of all entries.
    pub fn paths(&self) -> io::Result<Vec<PathBuf>> {
        // The very folder that was checked, whatever has its name by now.
        let entries = std::fs::read_dir(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        entries.map(|entry| Ok(self.path.join(entry?.file_name()))).collect()
    }

    fn unlink(&self, name: &OsStr) -> io::Result<()> {
        match at::remove(&self.file, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

fn link(path: &Path, error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(ELOOP) {
        return NotPrivate::not_ours(path, "is a symbolic link".to_owned());
    }
    error
}

/// Checks a file of ours by its descriptor, and makes it private where it can only be read by others.
fn check_file(path: &Path, file: &File) -> io::Result<()> {
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(NotPrivate::not_ours(path, "is not a regular file".to_owned()));
    }
    check_ours(path, &meta)?;
    if mode(&meta) != FILE_MODE {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(())
}

fn mode(meta: &Metadata) -> u32 {
    meta.mode() & 0o7777
}

/// Owned by the effective user and writable by no one else.
fn check_ours(path: &Path, meta: &Metadata) -> io::Result<()> {
    let (owner, user) = (meta.uid(), process::effective_user());
    if owner == 0 && user != 0 {
        let problem =
            format!("is owned by root (mode {:04o}), and this session is that of uid {user}", mode(meta));
        let hint = "changes need root on that host: log in as root, or allow `sudo` there".to_owned();
        return Err(NotPrivate::because(path, problem, hint));
    }
    let problem = if owner != user {
        format!("is owned by uid {owner} (mode {:04o}) instead of uid {user}", mode(meta))
    } else if meta.mode() & WRITABLE_BY_OTHERS != 0 {
        format!("is writable by other users (owner uid {owner}, mode {:04o})", mode(meta))
    } else {
        return Ok(());
    };
    Err(NotPrivate::not_ours(path, problem))
}

/// A refusal of a folder above ours, with what to do about it.
fn above(error: io::Error) -> io::Error {
    let Some(refused) = Exchangeable::of(&error) else { return error };
    let problem = refused.problem("the state folder");
    let hint = match refused.by {
        FolderIssue::Owner => {
            "set `state_dir` to a folder below one of root's, such as /var/lib/linerate".to_owned()
        }
        FolderIssue::Mode => format!(
            "on that host: `chmod go-w {}`, or set `state_dir` to another folder",
            quoted(&refused.path)
        ),
        FolderIssue::Link | FolderIssue::NotFolder => return NotPrivate::not_ours(&refused.path, problem),
    };
    NotPrivate::because(&refused.path, problem, hint)
}

/// Walks to a folder and checks every one on the way.
fn walk(path: &Path, make: bool) -> io::Result<Option<File>> {
    if let Err(problem) = check_folder(path) {
        let hint = "set `state_dir` to an absolute path".to_owned();
        return Err(NotPrivate::because(path, problem.to_owned(), hint));
    }
    let names: Vec<&OsStr> = path.iter().skip(1).collect();
    let (higher, ours) = names.split_at(names.len().saturating_sub(OURS));
    let higher = Path::new("/").join(higher.iter().collect::<PathBuf>());
    let trusted = Trusted::new();
    let mut reached = ancestors::reach(&higher, &trusted).map_err(above)?;
    for name in std::mem::take(&mut reached.missing) {
        let Some(next) = enter(&reached.folder, &name, make.then_some(ABOVE_MODE))? else { return Ok(None) };
        reached.path.push(&name);
        trusted.check(&reached.path, &next.metadata()?).map_err(above)?;
        reached.folder = next;
    }
    for (position, name) in ours.iter().enumerate() {
        let Some(next) = enter(&reached.folder, name, make.then_some(FOLDER_MODE))? else { return Ok(None) };
        reached.path.push(name);
        let (here, meta) = (&reached.path, next.metadata()?);
        if meta.is_symlink() {
            let problem = format!("is a symbolic link (owner uid {}, mode {:04o})", meta.uid(), mode(&meta));
            return Err(NotPrivate::not_ours(here, problem));
        }
        if !meta.is_dir() {
            return Err(NotPrivate::not_ours(here, "is not a folder".to_owned()));
        }
        check_ours(here, &meta)?;
        if mode(&meta) != FOLDER_MODE {
            tighten(&next, position + 1 == ours.len())?;
        }
        reached.folder = next;
    }
    at::readable(&reached.folder).map(Some)
}

/// What is at a name in a folder; where nothing is, a folder is made with the mode, if there is one.
fn enter(folder: &File, name: &OsStr, make: Option<u32>) -> io::Result<Option<File>> {
    match (at::lookup(folder, name), make) {
        (Err(error), None) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        (Err(error), Some(mode)) if error.kind() == io::ErrorKind::NotFound => {
            make_one(folder, name, mode)?;
            at::lookup(folder, name).map(Some)
        }
        (other, _) => other.map(Some),
    }
}

/// Makes a folder private that an older version left readable. One that also holds other things (`state_dir =
/// "/var/lib"`) keeps its mode: other programs need it, and what is ours in it is private by itself.
fn tighten(folder: &File, is_last: bool) -> io::Result<()> {
    let folder = at::readable(folder)?;
    for entry in std::fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))? {
        let name = entry?.file_name();
        let bytes = name.as_bytes();
        let is_journal = bytes.starts_with(b".") || bytes.ends_with(b".json");
        let is_folder = FOLDERS.iter().any(|ours| bytes == ours.as_bytes());
        let is_ours = if is_last { is_journal } else { is_folder };
        if !is_ours {
            return Ok(());
        }
    }
    folder.set_permissions(Permissions::from_mode(FOLDER_MODE))
}

/// Makes one folder with this mode, whatever the umask; it is on the disk when this returns.
fn make_one(above: &File, name: &OsStr, mode: u32) -> io::Result<()> {
    match at::make_folder(above, name, FOLDER_MODE) {
        // Another session was first; what it made is checked like any other.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        other => other?,
    }
    if mode != FOLDER_MODE {
        at::readable(&at::lookup(above, name)?)?.set_permissions(Permissions::from_mode(mode))?;
    }
    at::readable(above)?.sync_all()
}

#[cfg(test)]
#[path = "private_tests.rs"]
mod tests;
