//! Folders whose files are written, moved or deleted, as the kernel reports it.
//!
//! In: paths of folders and files. Out: paths of files that changed. What is not there is passed over.
//! Changes below a folder that is added later, and through another mount with its own inodes, are not seen.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Closed after writing, moved away, moved here, created (links too), deleted.
const CHANGES: u32 =
    libc::IN_CLOSE_WRITE | libc::IN_MOVED_FROM | libc::IN_MOVED_TO | libc::IN_CREATE | libc::IN_DELETE;
const EVENT_BYTES: usize = size_of::<libc::inotify_event>();
/// Holds many events: one has at most 16 bytes and a name of 256.
const BUFFER_BYTES: usize = 16 << 10;

/// A watch of folders.
#[derive(Debug)]
pub struct Inotify {
    file: File,
    /// Path of each watch, by its number.
    paths: Vec<(i32, PathBuf)>,
}

impl Inotify {
    /// Watches these folders and files, as far as they exist.
    pub fn on(paths: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
        // SAFETY: plain system call; the result is checked before it becomes an owned descriptor.
        let raw = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` is a fresh descriptor that no one else owns.
        let mut watch = Self { file: unsafe { OwnedFd::from_raw_fd(raw) }.into(), paths: Vec::new() };
        for path in paths {
            match watch.add(&path) {
                Ok(number) => watch.paths.push((number, path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(watch)
    }

    fn add(&self, path: &Path) -> io::Result<i32> {
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
                if let Some((_, folder)) = self.paths.iter().find(|(number, _)| *number == event.watch) {
                    each(if event.name.is_empty() { folder.clone() } else { folder.join(event.name) });
                }
            }
        }
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

    #[test]
    fn what_is_written_moved_and_deleted_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut watch = Inotify::on([folder.path().to_owned(), path("gone")]).unwrap();
        let changed = |watch: &mut Inotify| {
            let mut paths = Vec::new();
            assert!(watch.drain(|path| paths.push(path)).unwrap());
            paths.dedup();
            paths
        };
        assert_eq!(changed(&mut watch), Vec::<PathBuf>::new());
        std::fs::write(path("a.conf"), "1").unwrap();
        assert_eq!(changed(&mut watch), [path("a.conf")]);
        std::fs::rename(path("a.conf"), path("b.conf")).unwrap();
        assert_eq!(changed(&mut watch), [path("a.conf"), path("b.conf")]);
        std::fs::remove_file(path("b.conf")).unwrap();
        assert_eq!(changed(&mut watch), [path("b.conf")]);
    }

    #[test]
    fn a_cut_event_is_none() {
        let mut bytes = vec![0; EVENT_BYTES];
        bytes[12..16].copy_from_slice(&9_u32.to_ne_bytes());
        assert_eq!(events(&bytes).count(), 0);
        assert_eq!(events(&bytes[..7]).count(), 0);
    }
}
