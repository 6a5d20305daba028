//! Everything that changes and their undoing touch, as one trait: settings, files, clock, guardian.
//!
//! In: the real host, or one in memory that can be made to crash at any step. Out: plain results. It decides
//! nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use linerate_model::change::Change;
use linerate_model::fact::{FactKey, FactValue};
use linerate_sys::ancestors::{self, Trusted};
use linerate_sys::root::Root;
use serde::{Deserialize, Serialize};

use super::guardian_link::GuardianLink;
use super::setting::{Persist, SettingError};
use crate::private::Folder;
use crate::{boot_files, setting_for};

/// Mode of new files of persistent settings, which other programs read.
const SETTINGS_MODE: u32 = 0o644;
/// The same for files of netplan.
const NETPLAN_MODE: u32 = 0o600;
/// Mode of new folders of such files.
const SETTINGS_FOLDER_MODE: u32 = 0o755;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// A file of UTF-8 text.
    Text(String),
    /// A symbolic link to this target.
    Link(PathBuf),
}

/// Held as long as the journals of a host are this process's alone.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "closing the file is what unlocks")] pub Option<File>);

/// The host whose settings change.
pub trait ChangingHost {
    /// Time of day, Unix milliseconds. Somebody may set it, so that it serves for records only.
    fn now_ms(&self) -> u64;
    /// Milliseconds of a clock that nobody sets and that all processes of one boot share: deadlines stand in
    /// it.
    fn running_ms(&self) -> u64;
    /// Identity of this boot of the kernel.
    fn boot_id(&self) -> String;
    /// Identity of the network namespace that the settings belong to.
    fn namespace(&self) -> u64;
    fn is_setting(&self, key: &str) -> bool;
    fn read(&self, key: &str) -> Result<FactValue, SettingError>;
    fn write(&self, key: &str, value: &FactValue) -> Result<(), SettingError>;
    /// Says why a value could not be taken back from.
    fn check(&self, key: &str, value: &FactValue) -> Result<(), SettingError>;
    fn related(&self, key: &str) -> Vec<String>;
    /// How a value survives a reboot on this host, by the owner that rules the setting here.
    fn persist(&self, etc_dir: &Path, key: &str, value: &FactValue) -> Persist;
    /// What else has to be written for a line in a file to count at boot.
    fn persist_beside(&self, etc_dir: &Path, key: &str) -> Option<Persist>;
    /// The first change that the files of the host would not give after a boot, were these files written,
    /// with the reason.
    fn overridden(
        &self,
        etc_dir: &Path,
        files: &[(PathBuf, Content)],
        changes: &[Change],
    ) -> Option<(FactKey, String)>;
    /// What is at a path, `None` when nothing is.
    fn load(&self, path: &Path) -> io::Result<Option<Content>>;
    /// Puts content at a path in one step that is on the disk when this returns.
    fn store(&self, path: &Path, content: &Content) -> io::Result<()>;
    /// Removes what is at a path; nothing there is no error.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Whether a symbolic link is at a path.
    fn is_link(&self, path: &Path) -> io::Result<bool>;
    /// Refuses a folder of persistent settings in which another user may write or exchange something, also
    /// through one above it. What is missing is made later, in folders that were checked.
    fn check_closed(&self, folder: &Path) -> io::Result<()>;
    /// Text of a journal, `None` when there is none. Refused where another user may have written it.
    fn load_private(&self, path: &Path) -> io::Result<Option<String>>;
    /// Puts a journal in place in one step that is on the disk when this returns; no other user can read it.
    fn store_private(&self, path: &Path, text: &str) -> io::Result<()>;
    /// Removes a journal; nothing there is no error.
    fn remove_private(&self, path: &Path) -> io::Result<()>;
    /// Paths of the entries of a folder of journals; none when there is no folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Waits for the lock at a path; `None` when it was not free in time.
    fn lock(&self, path: &Path, patience: Duration) -> io::Result<Option<Lock>>;
    /// Makes sure that a process other than this one watches over the journal, and that it has read the
    /// journal as it is now.
    fn ensure_guardian(&self, journal: &Path, etc_dir: &Path) -> io::Result<()>;
}

/// This host.
pub struct RealHost {
    root: Root,
    guardians: RefCell<BTreeMap<PathBuf, GuardianLink>>,
}

impl RealHost {
    pub fn new(root: Root) -> Self {
        Self { root, guardians: RefCell::default() }
    }

    /// Forgets guardians that have ended.
    pub fn reap(&self) {
        self.guardians.borrow_mut().retain(|_, guardian| matches!(guardian.lives(), Ok(true)));
    }
}

/// Puts content at a fresh path, with the rights of what is at `path` now.
fn put(fresh: &Path, path: &Path, content: &Content) -> io::Result<()> {
    let text = match content {
        Content::Text(text) => text,
        Content::Link(target) => return std::os::unix::fs::symlink(target, fresh),
    };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(fresh)?;
    let old = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file);
    // netplan wants files that root alone can read: they may hold passwords.
    let new = if path.extension().is_some_and(|e| e == "yaml") { NETPLAN_MODE } else { SETTINGS_MODE };
    if let Some(old) = &old {
        std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()))?;
    }
    let mode = old.map_or(new, |old| old.mode() & 0o777);
    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

impl ChangingHost for RealHost {
    fn now_ms(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
    }

    fn running_ms(&self) -> u64 {
        linerate_sys::sched::monotonic_ns() / 1_000_000
    }

    fn boot_id(&self) -> String {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
    }

    fn namespace(&self) -> u64 {
        std::fs::metadata("/proc/self/ns/net").map_or(0, |m| m.ino())
    }

    fn is_setting(&self, key: &str) -> bool {
        setting_for(key).is_some()
    }

    fn read(&self, key: &str) -> Result<FactValue, SettingError> {
        setting_for(key).ok_or(SettingError::Unknown)?.read(&self.root, key)
    }

    fn write(&self, key: &str, value: &FactValue) -> Result<(), SettingError> {
        setting_for(key).ok_or(SettingError::Unknown)?.write(&self.root, key, value)
    }

    fn check(&self, key: &str, value: &FactValue) -> Result<(), SettingError> {
        setting_for(key).ok_or(SettingError::Unknown)?.check(&self.root, key, value)
    }

    fn related(&self, key: &str) -> Vec<String> {
        setting_for(key).map(|s| s.related(key)).unwrap_or_default()
    }

    fn persist(&self, etc_dir: &Path, key: &str, value: &FactValue) -> Persist {
        boot_files::persist(&self.root, etc_dir, key, value)
    }

    fn persist_beside(&self, etc_dir: &Path, key: &str) -> Option<Persist> {
        boot_files::persist_beside(&self.root, etc_dir, key)
    }

    fn overridden(
        &self,
        etc_dir: &Path,
        files: &[(PathBuf, Content)],
        changes: &[Change],
    ) -> Option<(FactKey, String)> {
        let text = |(path, content): &(PathBuf, Content)| {
            let text = match content {
                Content::Text(text) => text.clone(),
                // Of a link only that it is there counts.
                Content::Link(_) => String::new(),
            };
            (path.display().to_string(), text)
        };
        let written = files.iter().map(text).collect();
        boot_files::overridden(&self.root, etc_dir, written, changes)
    }

    fn load(&self, path: &Path) -> io::Result<Option<Content>> {
        let content = match path.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => Content::Link(std::fs::read_link(path)?),
            Ok(_) => Content::Text(std::fs::read_to_string(path)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(content))
    }

    fn store(&self, path: &Path, content: &Content) -> io::Result<()> {
        let folder = path.parent().ok_or_else(|| io::Error::other("a path without a folder"))?;
        make_folder(folder)?;
        // In a shared folder another user may have made it at the same moment.
        self.check_closed(folder)?;
        let name = path.file_name().ok_or_else(|| io::Error::other("a path without a name"))?;
        let fresh = folder.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
        self.remove(&fresh)?;
        if let Err(error) = put(&fresh, path, content).and_then(|()| std::fs::rename(&fresh, path)) {
            // Half of a file on a full disk is of no use to anybody, and in the way of everybody.
            let _ = std::fs::remove_file(&fresh);
            return Err(error);
        }
        File::open(folder)?.sync_all()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all()),
        }
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            other => Ok(other?.is_symlink()),
        }
    }

    fn check_closed(&self, folder: &Path) -> io::Result<()> {
        let trusted = Trusted::new();
        let reached = ancestors::reach(folder, &trusted)?;
        if reached.missing.is_empty() {
            trusted.check_closed(&reached.path, &reached.folder.metadata()?)?;
        }
        Ok(())
    }

    fn load_private(&self, path: &Path) -> io::Result<Option<String>> {
        let (folder, name) = parts(path)?;
        Folder::open(folder)?.map_or(Ok(None), |folder| folder.read(name))
    }

    fn store_private(&self, path: &Path, text: &str) -> io::Result<()> {
        let (folder, name) = parts(path)?;
        Folder::make(folder)?.write(name, text)
    }

    fn remove_private(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = parts(path)?;
        Folder::open(folder)?.map_or(Ok(()), |folder| folder.remove(name))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        Folder::open(folder)?.map_or_else(|| Ok(Vec::new()), |folder| folder.paths())
    }

    fn lock(&self, path: &Path, patience: Duration) -> io::Result<Option<Lock>> {
        let (folder, name) = parts(path)?;
        let file = Folder::make(folder)?.lock_file(name)?;
        let until = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Lock(Some(file)))),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => return Ok(None),
                // The kernel has no lock with a time limit.
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn ensure_guardian(&self, journal: &Path, etc_dir: &Path) -> io::Result<()> {
        let mut guardians = self.guardians.borrow_mut();
        // One that does not confirm is dropped here; it undoes when it can, because its node is gone for it.
        if let Some(mut guardian) = guardians.remove(journal)
            && guardian.holds()?
        {
            guardians.insert(journal.to_owned(), guardian);
            return Ok(());
        }
        let mut guardian = GuardianLink::start(journal, etc_dir)?;
        if !guardian.holds()? {
            return Err(io::Error::other("it ended before it had read the journal"));
        }
        guardians.insert(journal.to_owned(), guardian);
        Ok(())
    }
}

/// Folder and name of a journal.
fn parts(path: &Path) -> io::Result<(&Path, &OsStr)> {
    path.parent().zip(path.file_name()).ok_or_else(|| io::Error::other("a path without a folder"))
}

/// Makes a folder of persistent settings and those above it; when this returns they are on the disk.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        make_folder(above)?;
        match std::fs::create_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(()) => {
                std::fs::set_permissions(folder, std::fs::Permissions::from_mode(SETTINGS_FOLDER_MODE))?;
            }
        }
        return File::open(above)?.sync_all();
    }
    Err(io::Error::from(io::ErrorKind::NotFound))
}
