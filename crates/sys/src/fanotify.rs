//! Files of whole file systems that were written, with the process that did: how `/proc` and `/sys` report
//! that a setting was written. Needs root.
//!
//! In: folders whose file systems are watched. Out: paths and process ids. All mounts of a file system count:
//! services with a mount namespace of their own write through another one. A container with its own process
//! namespace has another `/proc`. Each event holds the file open until it is read; a file that cannot be
//! opened for reading gives none.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Holds hundreds of events of 24 bytes.
const BUFFER_BYTES: usize = 16 << 10;

const EVENT_BYTES: usize = size_of::<libc::fanotify_event_metadata>();
/// Events in a row that cannot be read; each attempt takes one out of the queue, whose default is 16384.
const LOST_MAX: u32 = 20_000;

/// A file that was written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The file, below the folder that is watched.
    pub path: PathBuf,
    /// The process that wrote; it may have ended.
    pub pid: i32,
}

/// A watch of file systems.
#[derive(Debug)]
pub struct Fanotify {
    file: File,
    /// The folders, by the devices of their file systems.
    folders: Vec<(u64, PathBuf)>,
}

impl Fanotify {
    /// Watches the file systems that these folders are on.
    pub fn on(folders: &[&Path]) -> io::Result<Self> {
        let flags = libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | libc::FAN_CLASS_NOTIF;
        let opened = (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) as libc::c_uint;
        // SAFETY: plain system call; the result is checked before it becomes an owned descriptor.
        let raw = unsafe { libc::fanotify_init(flags, opened) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` is a fresh descriptor that no one else owns.
        let mut watch = Self { file: unsafe { OwnedFd::from_raw_fd(raw) }.into(), folders: Vec::new() };
        for folder in folders {
            watch.add(folder)?;
            watch.folders.push((std::fs::metadata(folder)?.dev(), folder.to_path_buf()));
        }
        Ok(watch)
    }

    fn add(&self, folder: &Path) -> io::Result<()> {
        match self.mark(folder, libc::FAN_MARK_FILESYSTEM) {
            // Before Linux 4.20: writes through other mounts are not seen.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                self.mark(folder, libc::FAN_MARK_MOUNT)
            }
            marked => marked,
        }
    }

    fn mark(&self, folder: &Path, what: libc::c_uint) -> io::Result<()> {
        let name = CString::new(folder.as_os_str().as_bytes())?;
        let (descriptor, flags) = (self.file.as_raw_fd(), libc::FAN_MARK_ADD | what);
        // SAFETY: the path is a string with its end, which outlives the call.
        let marked = unsafe {
            libc::fanotify_mark(descriptor, flags, libc::FAN_MODIFY, libc::AT_FDCWD, name.as_ptr())
        };
        if marked < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// What a descriptor is about, without resolving the name again.
    fn path(&self, written: &OwnedFd) -> Option<PathBuf> {
        let link = format!("/proc/self/fd/{}", written.as_raw_fd());
        let (path, device) = (std::fs::read_link(&link).ok()?, std::fs::metadata(&link).ok()?.dev());
        let (_, folder) = self.folders.iter().find(|(of, _)| *of == device)?;
        // A mount whose namespace has ended with the writer is its own root.
        let below = path.strip_prefix("/").ok()?;
        Some(if path.starts_with(folder) { path } else { folder.join(below) })
    }

    /// Writes since the last call. `false`: there were more than the kernel keeps.
    pub fn drain(&mut self, mut each: impl FnMut(Write)) -> io::Result<bool> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let (mut is_whole, mut lost) = (true, 0);
        loop {
            let got = match self.file.read(&mut buffer) {
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(is_whole),
                // The file of an event cannot be opened for reading: that event is lost, others may follow.
                Err(error) if error.raw_os_error().is_some_and(is_of_the_file) && lost < LOST_MAX => {
                    (is_whole, lost) = (false, lost + 1);
                    continue;
                }
                Err(error) => return Err(error),
            };
            for event in events(&buffer[..got]) {
                is_whole &= event.mask & libc::FAN_Q_OVERFLOW == 0;
                if let Some(path) = event.file.and_then(|file| self.path(&file)) {
                    each(Write { path, pid: event.pid });
                }
            }
        }
    }
}

impl AsFd for Fanotify {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn is_of_the_file(errno: i32) -> bool {
    matches!(errno, libc::EACCES | libc::EPERM | libc::ENOENT | libc::ENXIO | libc::EIO | libc::ENODEV)
}

struct Event {
    mask: u64,
    pid: i32,
    file: Option<OwnedFd>,
}

/// The events of a read; each owns its file.
fn events(mut bytes: &[u8]) -> impl Iterator<Item = Event> {
    std::iter::from_fn(move || {
        let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let length = (word(0)? as usize).max(EVENT_BYTES);
        let mask = u64::from_ne_bytes(bytes.get(8..16)?.try_into().ok()?);
        let (raw, pid) = (word(16)?.cast_signed(), word(20)?.cast_signed());
        bytes = bytes.get(length..).unwrap_or_default();
        // SAFETY: the kernel opened this descriptor for us with the event, and no one else knows it.
        let file = (raw >= 0).then(|| unsafe { OwnedFd::from_raw_fd(raw) });
        Some(Event { mask, pid, file })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::print_stdout)]
mod tests {
    use super::*;

    #[test]
    fn a_write_below_proc_has_its_file_and_process() {
        let mut watch = match Fanotify::on(&[Path::new("/proc")]) {
            Ok(watch) => watch,
            Err(error) => return println!("SKIPPED a_write_below_proc_has_its_file_and_process: {error}"),
        };
        // A value of this thread alone.
        let path = format!("/proc/{}/timerslack_ns", std::process::id());
        std::fs::write(&path, "60000").unwrap();
        let mut writes = Vec::new();
        assert!(watch.drain(|write| writes.push(write)).unwrap());
        let own = Write { path: path.clone().into(), pid: std::process::id().cast_signed() };
        assert!(writes.contains(&own), "{writes:?}");

        // Through another mount, which is gone before the event is read.
        let mut other = std::process::Command::new("unshare");
        let written = other.args(["-m", "sh", "-c", &format!("echo 61000 > {path}")]).status().unwrap();
        assert!(written.success(), "{written}");
        writes.clear();
        assert!(watch.drain(|write| writes.push(write)).unwrap());
        assert!(writes.iter().any(|write| write.path == own.path), "{writes:?}");
    }
}
