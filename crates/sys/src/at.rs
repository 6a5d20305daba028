//! Files relative to an open folder: the `openat` family.
//!
//! In: a descriptor of a folder and one name in it. Out: descriptors, or the kernel's error. No call follows
//! a symbolic link at that name, so what was checked by its descriptor is what is used. It does not check
//! owners and modes.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// Longest target of a symbolic link, bytes (`PATH_MAX`).
const TARGET_BYTES_MAX: usize = 4096;

/// The root folder, for lookups only.
///
/// # Errors
/// The kernel's refusal.
pub fn root() -> io::Result<File> {
    open(None, c"/", libc::O_PATH | libc::O_DIRECTORY, 0)
}

/// What is at a name, for its metadata and for further lookups; a symbolic link is opened itself.
///
/// # Errors
/// Nothing is there, or the folder may not be searched.
pub fn lookup(folder: &File, name: &OsStr) -> io::Result<File> {
    open(Some(folder), &text(name)?, libc::O_PATH, 0)
}

/// The folder itself, for listing it, changing its mode and writing it to the disk.
///
/// # Errors
/// It may not be read.
pub fn readable(folder: &File) -> io::Result<File> {
    open(Some(folder), c".", libc::O_RDONLY | libc::O_DIRECTORY, 0)
}

/// A file for reading. A pipe without a writer does not block.
///
/// # Errors
/// Nothing is there, it is a symbolic link (`ELOOP`), or it may not be read.
pub fn read(folder: &File, name: &OsStr) -> io::Result<File> {
    open(Some(folder), &text(name)?, libc::O_RDONLY | libc::O_NONBLOCK, 0)
}

/// A file for locking, made with this mode when nothing is there.
///
/// # Errors
/// It is a symbolic link (`ELOOP`), or it may not be opened.
pub fn open_or_create(folder: &File, name: &OsStr, mode: u32) -> io::Result<File> {
    open(Some(folder), &text(name)?, libc::O_WRONLY | libc::O_CREAT | libc::O_NONBLOCK, mode)
}

/// A new file for writing.
///
/// # Errors
/// Something is there already, or the file cannot be made.
pub fn create_new(folder: &File, name: &OsStr, mode: u32) -> io::Result<File> {
    open(Some(folder), &text(name)?, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, mode)
}

/// Makes a folder.
///
/// # Errors
/// Something is there already, or the folder cannot be made.
pub fn make_folder(folder: &File, name: &OsStr, mode: u32) -> io::Result<()> {
    let name = text(name)?;
    // SAFETY: the descriptor is open as long as `folder` lives, and the name ends with a zero.
    check(unsafe { libc::mkdirat(folder.as_raw_fd(), name.as_ptr(), mode) })
}

/// Gives a file another name in the same folder, in place of what has that name.
///
/// # Errors
/// The kernel's refusal.
pub fn rename(folder: &File, from: &OsStr, to: &OsStr) -> io::Result<()> {
    let (from, to) = (text(from)?, text(to)?);
    let at = folder.as_raw_fd();
    // SAFETY: the descriptor is open as long as `folder` lives, and both names end with a zero.
    check(unsafe { libc::renameat(at, from.as_ptr(), at, to.as_ptr()) })
}

/// Removes a file or a symbolic link.
///
/// # Errors
/// Nothing is there, or it may not be removed.
pub fn remove(folder: &File, name: &OsStr) -> io::Result<()> {
    let name = text(name)?;
    // SAFETY: the descriptor is open as long as `folder` lives, and the name ends with a zero.
    check(unsafe { libc::unlinkat(folder.as_raw_fd(), name.as_ptr(), 0) })
}

/// Target of a symbolic link that [`lookup`] opened.
///
/// # Errors
/// It is no link.
pub fn target(link: &File) -> io::Result<PathBuf> {
    let mut bytes = vec![0_u8; TARGET_BYTES_MAX];
    // SAFETY: the kernel writes at most as many bytes as the buffer has; the name is the empty one, for the
    // descriptor itself.
    let length =
        unsafe { libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), bytes.as_mut_ptr().cast(), bytes.len()) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    bytes.truncate(length);
    Ok(OsString::from_vec(bytes).into())
}

fn open(folder: Option<&File>, name: &CStr, flags: libc::c_int, mode: u32) -> io::Result<File> {
    let at = folder.map_or(libc::AT_FDCWD, File::as_raw_fd);
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the descriptor is open as long as `folder` lives, and the name ends with a zero.
    let descriptor = unsafe { libc::openat(at, name.as_ptr(), flags, mode) };
    check(descriptor)?;
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// One name: no path, nothing with a zero in it.
fn text(name: &OsStr) -> io::Result<CString> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, "not a name in a folder");
    if name.is_empty() || name.as_bytes().contains(&b'/') {
        return Err(refused());
    }
    CString::new(name.as_bytes()).map_err(|_| refused())
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn files_are_reached_by_their_folder_and_links_are_not_followed() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = readable(&File::open(temporary.path()).unwrap()).unwrap();
        let name = OsStr::new;
        create_new(&folder, name("a"), 0o600).unwrap().write_all(b"text").unwrap();
        assert_eq!(create_new(&folder, name("a"), 0o600).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        rename(&folder, name("a"), name("b")).unwrap();
        let mut read_back = String::new();
        read(&folder, name("b")).unwrap().read_to_string(&mut read_back).unwrap();
        assert_eq!(read_back, "text");
        std::os::unix::fs::symlink("b", temporary.path().join("link")).unwrap();
        let link = lookup(&folder, name("link")).unwrap();
        assert!(link.metadata().unwrap().is_symlink());
        assert_eq!(target(&link).unwrap(), PathBuf::from("b"));
        for refused in [read(&folder, name("link")), open_or_create(&folder, name("link"), 0o600)] {
            assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ELOOP));
        }
        remove(&folder, name("b")).unwrap();
        assert_eq!(lookup(&folder, name("b")).unwrap_err().kind(), io::ErrorKind::NotFound);
        make_folder(&folder, name("inner"), 0o700).unwrap();
        assert!(lookup(&folder, name("inner")).unwrap().metadata().unwrap().is_dir());
        for path in ["", "a/b", "a\0b"] {
            assert_eq!(lookup(&folder, name(path)).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
