//! File system calls that the standard library lacks: free space, and flushing to disk.
//!
//! In: a path. Out: numbers, or the kernel's error. It writes nothing.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

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
