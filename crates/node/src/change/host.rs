//! Everything that changes and their undoing touch, as one trait: settings, files, clock, guardian.
//!
//! In: the real host, or one in memory that can be made to crash at any step. Out: plain results. It decides nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use linerate_model::fact::FactValue;
use linerate_sys::root::Root;
use serde::{Deserialize, Serialize};

use super::setting::Persist;
use crate::facts;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Content {
    /// A file of UTF-8 text.
    Text(String),
    /// A symbolic link to this target.
    Link(PathBuf),
}

/// Held as long as the journals of a host are this process's alone.
#[derive(Debug)]
pub(crate) struct Lock(
    #[allow(dead_code, reason = "closing the file is what unlocks")] pub(crate) Option<File>,
);

/// The host whose settings change.
pub(crate) trait Host {
    /// Time of day, Unix milliseconds. Somebody may set it, so that it serves for records only.
    fn now_ms(&self) -> u64;
    /// Milliseconds of a clock that nobody sets and that all processes of one boot share: deadlines stand in it.
    fn running_ms(&self) -> u64;
    /// Identity of this boot of the kernel.
    fn boot_id(&self) -> String;
    /// Identity of the network namespace that the settings belong to.
    fn namespace(&self) -> u64;
    fn is_setting(&self, key: &str) -> bool;
    fn read(&self, key: &str) -> Result<FactValue, String>;
    fn write(&self, key: &str, value: &FactValue) -> Result<(), String>;
    fn related(&self, key: &str) -> Vec<String>;
    fn persist(&self, key: &str, value: &FactValue) -> Persist;
    /// What is at a path, `None` when nothing is.
    fn load(&self, path: &Path) -> io::Result<Option<Content>>;
    /// Puts content at a path in one step that is on the disk when this returns.
    fn store(&self, path: &Path, content: &Content) -> io::Result<()>;
    /// Removes what is at a path; nothing there is no error.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Paths of the entries of a folder; none when there is no folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Waits for the lock at a path; `None` when it was not free in time.
    fn lock(&self, path: &Path, patience: Duration) -> io::Result<Option<Lock>>;
    /// Makes sure that a process other than this one watches over the journal.
    fn ensure_guardian(&self, journal: &Path) -> io::Result<()>;
}

/// This host.
pub(crate) struct RealHost {
    root: Root,
    guardians: RefCell<BTreeMap<PathBuf, Guardian>>,
}

/// A guardian that was started.
struct Guardian {
    /// Ends when this process does, whatever the reason: that is how the guardian notices.
    #[allow(dead_code, reason = "closing the pipe is what tells")]
    node: ChildStdin,
    /// Ends when the guardian does. Nothing is ever said on it.
    life: ChildStdout,
}

impl Guardian {
    /// Starts the running program itself, also when its file was replaced meanwhile.
    fn start(journal: &Path) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg("guard").arg(journal).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        linerate_sys::process::outlive(&mut command);
        let mut child = command.spawn()?;
        // Taken first: waiting closes what is still there.
        let (node, life) = (child.stdin.take(), child.stdout.take());
        child.wait()?;
        let closed = || io::Error::other("it has no pipes");
        Ok(Self { node: node.ok_or_else(closed)?, life: life.ok_or_else(closed)? })
    }

    fn lives(&self) -> io::Result<bool> {
        linerate_sys::sched::wait_any_readable(&[self.life.as_fd()], 0).map(|ended| !ended)
    }
}

impl RealHost {
    pub(crate) fn new(root: Root) -> Self {
        Self { root, guardians: RefCell::default() }
    }

    /// Forgets guardians that have ended.
    pub(crate) fn reap(&self) {
        self.guardians.borrow_mut().retain(|_, guardian| matches!(guardian.lives(), Ok(true)));
    }
}

/// Puts content at a fresh path, with the rights of what is at `path` now.
fn put(fresh: &Path, path: &Path, content: &Content) -> io::Result<()> {
    let text = match content {
        Content::Text(text) => text,
        Content::Link(target) => return std::os::unix::fs::symlink(target, fresh),
    };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(fresh)?;
    if let Ok(old) = path.symlink_metadata()
        && old.is_file()
    {
        file.set_permissions(std::fs::Permissions::from_mode(old.mode() & 0o7777))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

impl Host for RealHost {
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
        facts::setting_for(key).is_some()
    }

    fn read(&self, key: &str) -> Result<FactValue, String> {
        facts::setting_for(key).ok_or("no such setting")?.read(&self.root, key)
    }

    fn write(&self, key: &str, value: &FactValue) -> Result<(), String> {
        facts::setting_for(key).ok_or("no such setting")?.write(&self.root, key, value)
    }

    fn related(&self, key: &str) -> Vec<String> {
        facts::setting_for(key).map(|s| s.related(key)).unwrap_or_default()
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        facts::setting_for(key).map_or_else(
            || Persist::Impossible { reason: "no such setting".to_owned() },
            |s| s.persist(key, value),
        )
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

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        match std::fs::read_dir(folder) {
            Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn lock(&self, path: &Path, patience: Duration) -> io::Result<Option<Lock>> {
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
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

    fn ensure_guardian(&self, journal: &Path) -> io::Result<()> {
        let mut guardians = self.guardians.borrow_mut();
        if let Some(guardian) = guardians.get(journal)
            && guardian.lives()?
        {
            return Ok(());
        }
        guardians.insert(journal.to_owned(), Guardian::start(journal)?);
        Ok(())
    }
}

/// Makes a folder and those above it; when this returns they are on the disk.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        make_folder(above)?;
        match std::fs::create_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
        return File::open(above)?.sync_all();
    }
    Err(io::Error::from(io::ErrorKind::NotFound))
}
