//! Extended attributes of files.
//!
//! In: a path and a name. Out: the value, or that there is none. Links are not followed, nothing is written.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Reads an attribute of at most `max` bytes. `None` when the file does not have it.
///
/// # Errors
/// The file is not there, may not be read, or lies on a file system without attributes; the value is longer.
pub fn get(path: &Path, name: &str, max: usize) -> io::Result<Option<Vec<u8>>> {
    let text = |bytes: &[u8]| {
        CString::new(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a byte of zero"))
    };
    let (path, name) = (text(path.as_os_str().as_bytes())?, text(name.as_bytes())?);
    let mut value = vec![0_u8; max];
    // SAFETY: both texts end with a zero, and the kernel writes at most `value.len()` bytes into `value`.
    let length =
        unsafe { libc::lgetxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    if let Ok(length) = usize::try_from(length) {
        value.truncate(length);
        return Ok(Some(value));
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENODATA) { Ok(None) } else { Err(error) }
}

/// Sets an attribute, for tests that make the files of others.
///
/// # Errors
/// The kernel refuses it.
pub fn set(path: &Path, name: &str, value: &[u8]) -> io::Result<()> {
    let text = |bytes: &[u8]| {
        CString::new(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a byte of zero"))
    };
    let (path, name) = (text(path.as_os_str().as_bytes())?, text(name.as_bytes())?);
    // SAFETY: both texts end with a zero, and the kernel reads `value.len()` bytes of `value`.
    let done =
        unsafe { libc::lsetxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_read_and_what_is_not_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "x").unwrap();
        assert!(get(&folder.path().join("no"), "user.a", 16).is_err());
        match set(&path, "user.a", b"value") {
            Ok(()) => {
                assert_eq!(get(&path, "user.a", 16).unwrap().as_deref(), Some(&b"value"[..]));
                assert_eq!(get(&path, "user.b", 16).unwrap(), None);
                assert!(get(&path, "user.a", 2).is_err(), "longer than there is room");
            }
            Err(error) => println!("SKIPPED what_is_set_is_read_and_what_is_not_there_is_none: {error}"),
        }
    }
}
