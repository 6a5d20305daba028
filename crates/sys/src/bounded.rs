//! Files that a user names, read up to a limit.
//!
//! In: a path and a limit. Out: the bytes, or why not. A FIFO without a writer does not block, a device is
//! not read, and a file that grows meanwhile costs no more than the limit.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// All bytes of a regular file.
///
/// # Errors
/// It cannot be read, is not a regular file, or has more than `limit` bytes.
pub fn read(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        let words = format!("longer than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_regular_files_are_read_and_never_more_than_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let (fifo, file) = (folder.path().join("fifo"), folder.path().join("file"));
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        std::fs::write(&file, "12345").unwrap();
        for special in [&fifo, Path::new("/dev/zero"), folder.path()] {
            assert!(read(special, 5).unwrap_err().to_string().contains("not a regular file"));
        }
        assert_eq!(read(&file, 5).unwrap(), b"12345");
        assert!(read(&file, 4).unwrap_err().to_string().contains("longer than 4 bytes"));
    }
}
