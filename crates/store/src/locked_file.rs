//! A small record of the operator beside the database: one file, replaced as a whole, held by one command at
//! a time. In: a name and a text. Out: the text that was written last. Folder and files are private, as those
//! of the database.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::StoreError;
use super::{paths, private};

/// A record that no other command of this user writes meanwhile.
#[derive(Debug)]
pub struct LockedFile {
    path: PathBuf,
    /// Locked until this is dropped.
    _lock: File,
}

impl LockedFile {
    /// Opens the record of this name in the user's data folder. Characters that are not those of a file name
    /// are replaced.
    ///
    /// # Errors
    /// Another command holds it, or the folder is not private.
    pub fn open(name: &str) -> Result<Self, StoreError> {
        Self::open_in(&paths::data_dir().ok_or(StoreError::NoFolder)?, name)
    }

    fn open_in(folder: &Path, name: &str) -> Result<Self, StoreError> {
        private::make_folder(folder)?;
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' };
        let name: String = name.chars().map(plain).collect();
        let path = folder.join(format!("{}{name}.json", private::RECORD));
        let lock = paths::beside(&path, ".lock");
        for file in [&path, &lock] {
            private::check_file(file)?;
        }
        let failed = |source| StoreError::Folder { path: lock.clone(), source };
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(private::FILE_MODE)
            .open(&lock)
            .map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| StoreError::Place {
            what: format!("another linerate holds {}", lock.display()),
            hint: format!("fuser -v {}", linerate_model::shell::path(&lock)),
        })?;
        Ok(Self { path, _lock: file })
    }

    /// What was written last; `None` when nothing was.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self) -> Result<Option<String>, StoreError> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Folder { path: self.path.clone(), source }),
        }
    }

    /// Replaces it; on the disk when this returns.
    ///
    /// # Errors
    /// The file cannot be written: the old text stays.
    pub fn write(&self, text: &str) -> Result<(), StoreError> {
        let failed = |source| StoreError::Folder { path: self.path.clone(), source };
        let new = paths::beside(&self.path, ".new");
        // Left behind by a command that was killed.
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let written = || {
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(private::FILE_MODE).open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &self.path)?;
            File::open(self.path.parent().unwrap_or(&self.path))?.sync_all()
        };
        written().map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_record_is_replaced_as_a_whole_private_and_held_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let record = LockedFile::open_in(&data, "drain-a/../b").unwrap();
        assert_eq!(record.read().unwrap(), None);
        record.write("a much longer text than the next").unwrap();
        // Left behind by a command that was killed.
        std::fs::write(paths::beside(&record.path, ".new"), "half").unwrap();
        record.write("short").unwrap();
        assert_eq!(record.read().unwrap().as_deref(), Some("short"));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&data), mode(&record.path)), (0o700, 0o600));
        assert_eq!(record.path.parent(), Some(data.as_path()), "a name is no path");
        assert_eq!(std::fs::read_dir(&data).unwrap().count(), 2, "the text and its lock");

        let held = LockedFile::open_in(&data, "drain-a/../b").unwrap_err().to_string();
        assert!(held.contains("another linerate holds"), "{held}");
        assert!(LockedFile::open_in(&data, "drain-c").is_ok(), "another record is free");
        let path = record.path.clone();
        drop(record);
        let again = LockedFile::open_in(&data, "drain-a/../b").unwrap();
        assert_eq!(again.read().unwrap().as_deref(), Some("short"));
        drop(again);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(LockedFile::open_in(&data, "drain-a/../b").is_err(), "others can write it");
    }
}
