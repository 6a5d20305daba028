//! Files of whole mounts that were written, with the process that did: how `/proc` and `/sys` report that
//! a setting was written. Needs root.
//!
//! In: folders whose mounts are watched. Out: paths and process ids. A write through another mount of the
//! same file system, such as that of a container, is not seen. Each event holds the file open until it is
//! read; a file that cannot be opened for reading gives none.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Holds hundreds of events of 24 bytes.
const BUFFER_BYTES: usize = 16 << 10;

const EVENT_BYTES: usize = size_of::<libc::fanotify_event_metadata>();
/// Events in a row that cannot be read; each attempt takes one out of the queue, whose default is 16384.
const LOST_MAX: u32 = 20_000;

/// A file that was written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The file, as the mount shows it.
    pub path: PathBuf,
    /// The process that wrote; it may have ended.
    pub pid: i32,
}

/// A watch of mounts.
#[derive(Debug)]
pub struct Fanotify {
    file: File,
}

impl Fanotify {
    /// Watches the mounts that these folders are on.
    pub fn on(mounts: &[&Path]) -> io::Result<Self> {
        let flags = libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | libc::FAN_CLASS_NOTIF;
        let opened = (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) as libc::c_uint;
        // SAFETY: plain system call; the result is checked before it becomes an owned descriptor.
        let raw = unsafe { libc::fanotify_init(flags, opened) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` is a fresh descriptor that no one else owns.
        let watch = Self { file: unsafe { OwnedFd::from_raw_fd(raw) }.into() };
        mounts.iter().try_for_each(|mount| watch.add(mount))?;
        Ok(watch)
    }

    fn add(&self, mount: &Path) -> io::Result<()> {
        let name = CString::new(mount.as_os_str().as_bytes())?;
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_MOUNT;
        let descriptor = self.file.as_raw_fd();
        // SAFETY: the path is a string with its end, which outlives the call.
        let marked = unsafe {
            libc::fanotify_mark(descriptor, flags, libc::FAN_MODIFY, libc::AT_FDCWD, name.as_ptr())
        };
        if marked < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
                if let Some(written) = event.file {
                    // Proc names what the descriptor is about, without resolving the name again.
                    if let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{}", written.as_raw_fd())) {
                        each(Write { path, pid: event.pid });
                    }
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
        let own = Write { path: path.into(), pid: std::process::id().cast_signed() };
        assert!(writes.contains(&own), "{writes:?}");
    }
}
