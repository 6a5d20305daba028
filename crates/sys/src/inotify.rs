//! Trees of folders whose files are written, moved or deleted, as the kernel reports it.
//!
//! In: paths of folders and files. Out: paths of files that changed. A path that is not there is waited for
//! in the nearest folder above it that is; folders that are made later are watched, with the files that they
//! have by then. Changes through another mount with its own inodes are not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Closed after writing, moved away, moved here, created (links too), deleted; the folder itself moved.
const CHANGES: u32 = libc::IN_CLOSE_WRITE
    | libc::IN_MOVED_FROM
    | libc::IN_MOVED_TO
    | libc::IN_CREATE
    | libc::IN_DELETE
    | libc::IN_MOVE_SELF
    | libc::IN_ONLYDIR;
const EVENT_BYTES: usize = size_of::<libc::inotify_event>();
/// Holds many events: one has at most 16 bytes and a name of 256.
const BUFFER_BYTES: usize = 16 << 10;
/// Folders below a watched one that are watched too. `NAME.service.d` of systemd and the profiles of tuned
/// are one deep.
const DEPTH_MAX: u8 = 3;
/// Folders of all trees together: ten times what a distribution has. A user may have 8192 watches by default,
/// and other programs need some.
const FOLDERS_MAX: usize = 1024;

/// A folder that is watched.
#[derive(Debug)]
struct Watched {
    path: PathBuf,
    /// How deep the folders below it are watched; `None` where only a wanted path leads through it.
    depth: Option<u8>,
}

/// A watch of trees and files.
#[derive(Debug)]
pub struct Inotify {
    file: File,
    /// Wanted folders.
    trees: BTreeSet<PathBuf>,
    /// Wanted files.
    files: BTreeSet<PathBuf>,
    /// By number.
    watched: BTreeMap<i32, Watched>,
}

impl Inotify {
    /// Watches these folders with those below them, and these files.
    pub fn on(
        trees: impl IntoIterator<Item = PathBuf>,
        files: impl IntoIterator<Item = PathBuf>,
    ) -> io::Result<Self> {
        // SAFETY: plain system call; the result is checked before it becomes an owned descriptor.
        let raw = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut watch = Self {
            // SAFETY: `raw` is a fresh descriptor that no one else owns.
            file: unsafe { OwnedFd::from_raw_fd(raw) }.into(),
            trees: trees.into_iter().collect(),
            files: files.into_iter().collect(),
            watched: BTreeMap::new(),
        };
        watch.arm(&mut |_| ())?;
        Ok(watch)
    }

    /// Watches what of the wanted paths is not watched yet; files that are found in new folders go to `each`.
    fn arm(&mut self, each: &mut impl FnMut(PathBuf)) -> io::Result<()> {
        for tree in self.trees.clone() {
            let is_watched = |one: &Watched| one.depth.is_some() && one.path == tree;
            if !self.watched.values().any(is_watched) && !self.tree(&tree, DEPTH_MAX, each)? {
                self.wait_for(&tree)?;
                // It may have come before its folder was watched.
                self.tree(&tree, DEPTH_MAX, each)?;
            }
        }
        for file in self.files.clone() {
            self.wait_for(&file)?;
        }
        Ok(())
    }

    /// Watches the nearest folder above a path.
    fn wait_for(&mut self, path: &Path) -> io::Result<()> {
        let mut below = path;
        while let Some(above) = below.parent() {
            if self.watched.values().any(|one| one.path == above) || self.add(above, None)? {
                // What is below it may have come before it was watched.
                if below == path || !below.is_dir() {
                    break;
                }
                below = path;
            } else {
                below = above;
            }
        }
        Ok(())
    }

    /// Watches a folder with those below it. `false` where it is not there.
    fn tree(&mut self, folder: &Path, depth: u8, each: &mut impl FnMut(PathBuf)) -> io::Result<bool> {
        if self.watched.len() >= FOLDERS_MAX {
            return Ok(true);
        }
        if !self.add(folder, Some(depth))? {
            return Ok(false);
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Links lead elsewhere, or in a circle.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                each(entry.path());
            } else if let Some(depth) = depth.checked_sub(1) {
                self.tree(&entry.path(), depth, each)?;
            }
        }
        Ok(true)
    }

    /// `false` where the folder is not there.
    fn add(&mut self, path: &Path, depth: Option<u8>) -> io::Result<bool> {
        let number = match self.number(path) {
            Ok(number) => number,
            Err(error) => {
                let is_absent =
                    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES));
                return if is_absent { Ok(false) } else { Err(error) };
            }
        };
        let one = Watched { path: path.to_owned(), depth };
        let known = self.watched.entry(number).or_insert(one);
        // A folder has one number, by whatever path; one that was moved has a new path.
        if depth.is_some() {
            *known = Watched { path: path.to_owned(), depth: depth.max(known.depth) };
        }
        Ok(true)
    }

    /// The number of a folder, watched from now on.
    fn number(&self, path: &Path) -> io::Result<i32> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: the path is a string with its end, which outlives the call.
        let number = unsafe { libc::inotify_add_watch(self.file.as_raw_fd(), name.as_ptr(), CHANGES) };
        if number < 0 { Err(io::Error::last_os_error()) } else { Ok(number) }
    }

    /// Paths that changed since the last call. `false`: there were more than the kernel keeps.
    pub fn drain(&mut self, mut each: impl FnMut(PathBuf)) -> io::Result<bool> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut is_whole = true;
        loop {
            let got = match self.file.read(&mut buffer) {
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(is_whole),
                Err(error) => return Err(error),
            };
            for event in events(&buffer[..got]) {
                is_whole &= event.mask & libc::IN_Q_OVERFLOW == 0;
                // What cannot be watched is not there, or there are too many watches: the others go on.
                let _ = self.event(&event, &mut each);
            }
        }
    }

    fn event(&mut self, event: &Event<'_>, each: &mut impl FnMut(PathBuf)) -> io::Result<()> {
        let Some(Watched { path: folder, depth }) = self.watched.get(&event.watch) else { return Ok(()) };
        let (folder, depth) = (folder.clone(), *depth);
        if event.mask & libc::IN_MOVE_SELF != 0 {
            // Moved within a tree: known by its new path already.
            if self.number(&folder).is_ok_and(|number| number == event.watch) {
                return Ok(());
            }
            let below = |one: &Watched| one.path.starts_with(&folder);
            let gone: Vec<i32> =
                self.watched.iter().filter(|(_, one)| below(one)).map(|(number, _)| *number).collect();
            for number in gone {
                // SAFETY: plain system call with numbers; a watch that is gone already is an error that
                // changes nothing.
                let _ = unsafe { libc::inotify_rm_watch(self.file.as_raw_fd(), number) };
                self.watched.remove(&number);
            }
            return self.arm(each);
        }
        if event.mask & libc::IN_IGNORED != 0 {
            self.watched.remove(&event.watch);
            return self.arm(each);
        }
        let path = folder.join(event.name);
        if depth.is_some() || self.files.contains(&path) {
            each(path.clone());
        }
        let has_come = event.mask & (libc::IN_CREATE | libc::IN_MOVED_TO) != 0;
        if has_come && event.mask & libc::IN_ISDIR != 0 {
            if let Some(depth) = depth.and_then(|depth| depth.checked_sub(1)) {
                self.tree(&path, depth, each)?;
            }
            if self.trees.iter().chain(&self.files).any(|wanted| wanted.starts_with(&path)) {
                self.arm(each)?;
            }
        }
        Ok(())
    }
}

impl AsFd for Inotify {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// An event of a read.
struct Event<'a> {
    watch: i32,
    mask: u32,
    name: &'a OsStr,
}

fn events(mut bytes: &[u8]) -> impl Iterator<Item = Event<'_>> {
    std::iter::from_fn(move || {
        let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let (watch, mask, length) = (word(0)?.cast_signed(), word(4)?, word(12)? as usize);
        let name = bytes.get(EVENT_BYTES..EVENT_BYTES + length)?;
        bytes = &bytes[EVENT_BYTES + length..];
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Some(Event { watch, mask, name: OsStr::from_bytes(&name[..end]) })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn changed(watch: &mut Inotify) -> BTreeSet<PathBuf> {
        let mut paths = BTreeSet::new();
        assert!(
            watch
                .drain(|path| {
                    paths.insert(path);
                })
                .unwrap()
        );
        paths
    }

    #[test]
    fn what_is_written_moved_and_deleted_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut watch = Inotify::on([folder.path().to_owned()], []).unwrap();
        assert_eq!(changed(&mut watch), BTreeSet::new());
        fs::write(path("a.conf"), "1").unwrap();
        assert_eq!(changed(&mut watch), [path("a.conf")].into());
        fs::rename(path("a.conf"), path("b.conf")).unwrap();
        assert_eq!(changed(&mut watch), [path("a.conf"), path("b.conf")].into());
        fs::remove_file(path("b.conf")).unwrap();
        assert_eq!(changed(&mut watch), [path("b.conf")].into());
    }

    #[test]
    fn folders_below_and_folders_that_come_later_are_watched() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("tuned/own")).unwrap();
        let trees = ["tuned", "netplan/later"].map(path);
        let mut watch = Inotify::on(trees, [path("sysctl.conf")]).unwrap();
        fs::write(path("tuned/own/tuned.conf"), "1").unwrap();
        assert_eq!(changed(&mut watch), [path("tuned/own/tuned.conf")].into());
        // A new folder with a file, before anything is read.
        fs::create_dir_all(path("tuned/new/deep")).unwrap();
        fs::write(path("tuned/new/deep/a"), "1").unwrap();
        assert!(changed(&mut watch).contains(&path("tuned/new/deep/a")));
        fs::write(path("tuned/new/deep/a"), "2").unwrap();
        assert_eq!(changed(&mut watch), [path("tuned/new/deep/a")].into());
        // One that was not there, in two steps, and once more after it was taken away.
        for _ in 0..2 {
            fs::create_dir(path("netplan")).unwrap();
            fs::write(path("netplan/other"), "1").unwrap();
            assert_eq!(changed(&mut watch), BTreeSet::new());
            fs::create_dir(path("netplan/later")).unwrap();
            fs::write(path("netplan/later/a.yaml"), "1").unwrap();
            assert!(changed(&mut watch).contains(&path("netplan/later/a.yaml")));
            fs::remove_dir_all(path("netplan")).unwrap();
            changed(&mut watch);
        }
        // Another name within the tree.
        fs::rename(path("tuned/new"), path("tuned/newer")).unwrap();
        changed(&mut watch);
        fs::write(path("tuned/newer/deep/a"), "3").unwrap();
        assert_eq!(changed(&mut watch), [path("tuned/newer/deep/a")].into());
        // Moved away: its files are others', and the next one of its name is watched.
        fs::rename(path("tuned"), path("old")).unwrap();
        changed(&mut watch);
        fs::write(path("old/own/tuned.conf"), "2").unwrap();
        assert_eq!(changed(&mut watch), BTreeSet::new());
        fs::create_dir(path("tuned")).unwrap();
        fs::write(path("tuned/active_profile"), "x").unwrap();
        assert!(changed(&mut watch).contains(&path("tuned/active_profile")));
        // A file of its own, also when an editor puts another one there; nothing of its neighbours.
        fs::write(path("other"), "1").unwrap();
        assert_eq!(changed(&mut watch), BTreeSet::new());
        fs::rename(path("other"), path("sysctl.conf")).unwrap();
        assert_eq!(changed(&mut watch), [path("sysctl.conf")].into());
    }

    #[test]
    fn a_cut_event_is_none() {
        let mut bytes = vec![0; EVENT_BYTES];
        bytes[12..16].copy_from_slice(&9_u32.to_ne_bytes());
        assert_eq!(events(&bytes).count(), 0);
        assert_eq!(events(&bytes[..7]).count(), 0);
    }
}
