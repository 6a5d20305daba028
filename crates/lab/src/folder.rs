//! The folder of a running lab: inventory, control socket, what the nodes keep.
//!
//! In: nothing. Out: a private folder that goes away when it is dropped; folders of labs that were killed are
//! removed by the next one. A lock that the kernel drops with the process separates running labs from dead
//! ones.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::cgroup;
use crate::error::{LabError, Result};

const PREFIX: &str = "linerate-lab-";
const LOCK: &str = "lock";
/// A younger folder may belong to a lab that is just about to lock it.
const YOUNG: Duration = Duration::from_secs(5);

/// One folder is made at a time.
static CREATED: Mutex<()> = Mutex::new(());

/// The folder of a lab.
#[derive(Debug)]
pub struct LabFolder {
    path: PathBuf,
    _lock: File,
}

impl LabFolder {
    /// Removes folders of dead labs and makes a new one.
    pub fn create() -> Result<Self> {
        sweep();
        // A folder is not taken by another lab of this process before it is locked.
        let _one = CREATED.lock().unwrap_or_else(PoisonError::into_inner);
        let path = Self::unused();
        let step = || format!("making the folder {}", path.display());
        // An old folder of the same process number: its lab is gone, because we are here.
        let _ = std::fs::remove_dir_all(&path);
        DirBuilder::new().mode(0o700).create(&path).map_err(LabError::at(step()))?;
        let lock = File::create(path.join(LOCK)).map_err(LabError::at(step()))?;
        lock.lock().map_err(LabError::at(step()))?;
        Ok(Self { path, _lock: lock })
    }

    /// Named by the process; further labs of the same process have a number as well.
    fn unused() -> PathBuf {
        let first = std::env::temp_dir().join(format!("{PREFIX}{}", std::process::id()));
        let mut path = first.clone();
        let mut number = 1;
        while is_locked(&path) {
            number += 1;
            path = PathBuf::from(format!("{}-{number}", first.display()));
        }
        path
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LabFolder {
    fn drop(&mut self) {
        // What cannot be removed now is swept up by the next lab.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Whether its lab is running.
fn is_locked(folder: &Path) -> bool {
    File::open(folder.join(LOCK)).is_ok_and(|file| file.try_lock().is_err())
}

/// The folders of this user's labs, and whether each lab is running.
fn all() -> Vec<(PathBuf, bool)> {
    // The owner of our own process folder: the number as this user namespace shows it.
    let Ok(own) = std::fs::metadata("/proc/self").map(|m| m.uid()) else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let Ok(about) = entry.path().symlink_metadata() else { continue };
        if ours && about.is_dir() && about.uid() == own {
            let locked = is_locked(&entry.path());
            let young = about.modified().is_ok_and(|m| m.elapsed().is_ok_and(|age| age < YOUNG));
            found.push((entry.path(), locked || young));
        }
    }
    found
}

fn sweep() {
    for (path, alive) in all() {
        if !alive {
            let _ = std::fs::remove_dir_all(path);
        }
    }
    cgroup::sweep();
}

/// The folder of the running lab that commands go to.
pub fn running() -> Result<PathBuf> {
    running_with(crate::control::SOCKET, "linerate-lab up")
}

/// The same for labs with another socket, which `start` would start.
pub fn running_with(socket: &str, start: &str) -> Result<PathBuf> {
    let mut running: Vec<PathBuf> =
        all().into_iter().filter(|(p, alive)| *alive && p.join(socket).exists()).map(|(p, _)| p).collect();
    match running.len() {
        0 => Err(LabError::Unknown(format!("no lab is running\nhint: {start}"))),
        1 => Ok(running.remove(0)),
        n => Err(LabError::Unknown(format!(
            "{n} labs are running: {}\nhint: choose one with --folder",
            running.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
        ))),
    }
}
