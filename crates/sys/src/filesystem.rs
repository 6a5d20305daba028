//! File system calls that the standard library lacks: free space, flushing to disk, and mounts that no one
//! else sees.
//!
//! In: a path or a kind of file system. Out: numbers, a descriptor, or the kernel's error. It writes nothing.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// `FSCONFIG_CMD_CREATE` of linux/mount.h.
const CREATE: libc::c_uint = 6;
/// `FSOPEN_CLOEXEC`, `FSMOUNT_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_uint = 1;

/// For `custom_flags`: a symbolic link at the end of the path is an error.
pub const NO_FOLLOW: i32 = libc::O_NOFOLLOW;

/// Room that a user without privileges has left on the file system of a path, bytes.
///
/// # Errors
/// The path does not exist or is not accessible.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the path has a byte of zero in it"))?;
    // SAFETY: all-zero is a valid value of this plain struct.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero, and the kernel writes into a struct of its own size.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Writes everything of the file system of an open file or folder to its disk, and waits for it.
///
/// # Errors
/// The disk failed.
pub fn flush(file: &File) -> io::Result<()> {
    // SAFETY: takes a descriptor that is open as long as `file` lives, and no memory.
    if unsafe { libc::syncfs(file.as_raw_fd()) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The descriptor that a system call returned.
pub(crate) fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(result as libc::c_int) })
}

/// The root of a file system of the kernel without a mount point: it is gone with the descriptor (fsopen(2),
/// Linux 5.2).
pub(crate) fn detached(kind: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: a name that ends with zero, and numbers.
    let context = descriptor(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOSE_ON_EXEC) })?;
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: the descriptor is open; this command takes neither a key nor a value.
    let made = unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, none, none, 0) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open; the rest are numbers.
    descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOSE_ON_EXEC, 0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_has_room_and_can_be_flushed() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_bytes(folder.path()).unwrap() > 0);
        flush(&File::open(folder.path()).unwrap()).unwrap();
        assert_eq!(free_bytes(&folder.path().join("no")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(free_bytes(Path::new("a\0b")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
