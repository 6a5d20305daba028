//! Journals of rollouts: a folder for each beside the database, with the plan and one file per wave, so that
//! a rollout resumes where it ended.
//!
//! In: documents that serialise. Out: the same. A file is replaced as a whole: a kill leaves the old one or
//! the new one. Folders are 0700, files 0600, as the database.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{StoreError, from_json};
use super::{paths, private};

const PLAN: &str = "plan.json";
/// Bytes of a journal: a wave of ten thousand hosts has two million.
const BYTES_MAX: u64 = 64 << 20;
const FILE_MODE: u32 = 0o600;

/// The journals of the user's data folder.
#[derive(Debug)]
pub struct Rollouts {
    folder: PathBuf,
}

impl Rollouts {
    /// The journals beside the database of the user's data folder.
    pub fn open_default() -> Result<Self, StoreError> {
        let folder = paths::data_dir().ok_or(StoreError::NoFolder)?;
        private::make_folder(&folder)?;
        Self::open(&folder)
    }

    /// The journals in a data folder.
    pub fn open(data: &Path) -> Result<Self, StoreError> {
        let folder = data.join(private::ROLLOUTS);
        private::make_folder(&folder)?;
        Ok(Self { folder })
    }

    /// Folder of a rollout.
    #[must_use]
    pub fn folder(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    /// Writes the plan of a rollout.
    pub fn save_plan<T: Serialize>(&self, id: &str, plan: &T) -> Result<(), StoreError> {
        self.write(id, PLAN, plan)
    }

    /// The plan of a rollout.
    pub fn load_plan<T: DeserializeOwned>(&self, id: &str) -> Result<T, StoreError> {
        let missing = || StoreError::Missing { kind: "rollout", id: id.to_owned() };
        self.read(id, PLAN)?.ok_or_else(missing)
    }

    /// Writes the journal of a wave; `number` counts from 1.
    pub fn save_wave<T: Serialize>(&self, id: &str, number: usize, wave: &T) -> Result<(), StoreError> {
        self.write(id, &wave_file(number), wave)
    }

    /// The journal of a wave; `None` where it was not begun.
    pub fn load_wave<T: DeserializeOwned>(&self, id: &str, number: usize) -> Result<Option<T>, StoreError> {
        self.read(id, &wave_file(number))
    }

    fn write<T: Serialize>(&self, id: &str, name: &str, document: &T) -> Result<(), StoreError> {
        let folder = self.checked(id)?;
        private::make_folder(&folder)?;
        let path = folder.join(name);
        let failed = |source| StoreError::Folder { path: path.clone(), source };
        let text = serde_json::to_vec_pretty(document).map_err(|error| failed(error.into()))?;
        let beside = folder.join(format!("{name}.new"));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(FILE_MODE);
        let mut file = options.open(&beside).map_err(failed)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
        std::fs::rename(&beside, &path).map_err(failed)?;
        // The name is on the disk when its folder is.
        File::open(&folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    fn read<T: DeserializeOwned>(&self, id: &str, name: &str) -> Result<Option<T>, StoreError> {
        let path = self.checked(id)?.join(name);
        let failed = |source| StoreError::Folder { path: path.clone(), source };
        let found = match std::fs::metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if !found.is_file() || found.len() > BYTES_MAX {
            return Err(failed(std::io::Error::other(format!("not a file of at most {BYTES_MAX} bytes"))));
        }
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        from_json(path.display().to_string(), &text).map(Some)
    }

    /// The folder of an id that is nothing but a name.
    fn checked(&self, id: &str) -> Result<PathBuf, StoreError> {
        let is_name = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let missing = || StoreError::Missing { kind: "rollout", id: id.to_owned() };
        if is_name { Ok(self.folder(id)) } else { Err(missing()) }
    }
}

fn wave_file(number: usize) -> String {
    format!("wave-{number}.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_journal_is_replaced_as_a_whole_and_private() {
        let data = tempfile::tempdir().unwrap();
        let rollouts = Rollouts::open(data.path()).unwrap();
        assert!(matches!(rollouts.load_plan::<Vec<u32>>("r-1"), Err(StoreError::Missing { .. })));
        rollouts.save_plan("r-1", &[1, 2, 3]).unwrap();
        assert_eq!(rollouts.load_plan::<Vec<u32>>("r-1").unwrap(), [1, 2, 3]);
        assert_eq!(rollouts.load_wave::<u32>("r-1", 1).unwrap(), None);
        rollouts.save_wave("r-1", 1, &"a much longer journal than the next").unwrap();
        rollouts.save_wave("r-1", 1, &7).unwrap();
        assert_eq!(rollouts.load_wave::<u32>("r-1", 1).unwrap(), Some(7));
        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(rollouts.folder("r-1")), 0o700);
        assert_eq!(mode(rollouts.folder("r-1").join("wave-1.json")), 0o600);
        assert_eq!(std::fs::read_dir(rollouts.folder("r-1")).unwrap().count(), 2, "nothing half written");
    }

    #[test]
    fn an_id_is_no_path_and_a_damaged_journal_is_named() {
        let data = tempfile::tempdir().unwrap();
        let rollouts = Rollouts::open(data.path()).unwrap();
        for id in ["", "..", "../x", "/etc", "a/b", "a.b"] {
            assert!(matches!(rollouts.save_plan(id, &1), Err(StoreError::Missing { .. })), "{id}");
            assert!(matches!(rollouts.load_plan::<u32>(id), Err(StoreError::Missing { .. })), "{id}");
        }
        rollouts.save_plan("r-1", &1).unwrap();
        std::fs::write(rollouts.folder("r-1").join(PLAN), "{").unwrap();
        let error = rollouts.load_plan::<u32>("r-1").unwrap_err();
        assert!(error.to_string().contains(PLAN), "{error}");
    }
}
