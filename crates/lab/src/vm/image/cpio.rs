//! Writes a tree of files as the archive that a kernel unpacks into memory (cpio, `newc`), owned by root
//! regardless of the user who packs it.
//!
//! In: a folder. Out: bytes; the format is that of the kernel's
//! `Documentation/driver-api/early-userspace/buffer-format.rst`. It needs no rights: device files exist in
//! the archive only.

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// What the kernel opens for the first program before anything is mounted: major 5, minor 1.
const CONSOLE: (&str, u32, u32) = ("dev/console", 5, 1);

struct Entry<'a> {
    path: &'a [u8],
    mode: u32,
    device: (u32, u32),
    data: &'a [u8],
}

/// Packs everything below a folder; returns the writer.
pub(super) fn write<W: Write>(root: &Path, to: W) -> io::Result<W> {
    let mut archive = Archive { to, number: 0, written: 0 };
    let (console, major, minor) = CONSOLE;
    for folder in ["dev", "proc", "sys", "run", "tmp", "mnt"] {
        archive.add(&Entry { path: folder.as_bytes(), mode: FOLDER | 0o755, device: (0, 0), data: &[] })?;
    }
    let mode = CHARACTER_DEVICE | 0o600;
    archive.add(&Entry { path: console.as_bytes(), mode, device: (major, minor), data: &[] })?;
    archive.folder(root, root)?;
    archive.add(&Entry { path: b"TRAILER!!!", mode: 0, device: (0, 0), data: &[] })?;
    Ok(archive.to)
}

struct Archive<W> {
    to: W,
    number: u32,
    written: usize,
}

impl<W: Write> Archive<W> {
    fn folder(&mut self, root: &Path, folder: &Path) -> io::Result<()> {
        let mut paths: Vec<_> =
            fs::read_dir(folder)?.map(|entry| entry.map(|e| e.path())).collect::<io::Result<_>>()?;
        paths.sort();
        for path in paths {
            let about = path.symlink_metadata()?;
            let permissions = about.permissions().mode() & 0o7777;
            let name = path.strip_prefix(root).unwrap_or(&path).as_os_str().as_bytes();
            let entry = |mode, data| Entry { path: name, mode, device: (0, 0), data };
            if about.is_dir() {
                self.add(&entry(FOLDER | permissions, &[]))?;
                self.folder(root, &path)?;
            } else if about.is_symlink() {
                let target = fs::read_link(&path)?;
                self.add(&entry(LINK | 0o777, target.as_os_str().as_bytes()))?;
            } else if about.is_file() {
                let data = fs::read(&path)?;
                self.add(&entry(FILE | permissions, &data))?;
            }
        }
        Ok(())
    }

    fn add(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        self.number += 1;
        let links = if entry.mode & FOLDER == FOLDER { 2 } else { 1 };
        let length =
            u32::try_from(entry.data.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        // inode, mode, owner, group, links, time, length, device of the file, device that it is, name with
        // its end, checksum
        let fields = [
            self.number,
            entry.mode,
            0,
            0,
            links,
            0,
            length,
            0,
            0,
            entry.device.0,
            entry.device.1,
            entry.path.len() as u32 + 1,
            0,
        ];
        let mut head = b"070701".to_vec();
        for field in fields {
            write!(head, "{field:08x}")?;
        }
        head.extend_from_slice(entry.path);
        head.push(0);
        self.put(&head)?;
        self.put(entry.data)
    }

    /// Every part begins at a multiple of four.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        self.written += bytes.len();
        let fill = self.written.next_multiple_of(4) - self.written;
        self.to.write_all(&[0; 3][..fill])?;
        self.written += fill;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_links_and_folders_are_where_the_format_requires() {
        let folder = std::env::temp_dir().join(format!("linerate-cpio-{}", std::process::id()));
        fs::create_dir_all(folder.join("a")).unwrap();
        fs::write(folder.join("a/b"), "hello").unwrap();
        std::os::unix::fs::symlink("b", folder.join("a/c")).unwrap();
        let bytes = write(&folder, Vec::new()).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let mut names = Vec::new();
        let mut at = 0;
        loop {
            assert_eq!(&bytes[at..at + 6], b"070701");
            let field = |n: usize| {
                let text = std::str::from_utf8(&bytes[at + 6 + 8 * n..at + 14 + 8 * n]).unwrap();
                usize::from_str_radix(text, 16).unwrap()
            };
            let (mode, length, name_length) = (field(1), field(6), field(11));
            let name = String::from_utf8(bytes[at + 110..at + 109 + name_length].to_vec()).unwrap();
            let data = (at + 110 + name_length).next_multiple_of(4);
            let text = String::from_utf8(bytes[data..data + length].to_vec()).unwrap();
            at = (data + length).next_multiple_of(4);
            if name == "TRAILER!!!" {
                break;
            }
            names.push((name, mode & 0o170_000, text));
        }
        assert_eq!(at, bytes.len());
        let of = |wanted: &str| names.iter().find(|(name, _, _)| name == wanted).unwrap();
        assert_eq!((of("a").1, of("a/b").1, of("a/b").2.as_str()), (0o040_000, 0o100_000, "hello"));
        assert_eq!((of("a/c").1, of("a/c").2.as_str()), (0o120_000, "b"));
        assert_eq!(of("dev/console").1, 0o020_000);
    }
}
