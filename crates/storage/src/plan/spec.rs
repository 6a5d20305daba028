//! The request: which drives, which levels, how much of them, with which filesystem.

use super::filesystems::Filesystem;
use super::levels::Level;
use super::rates::DriveClass;

/// The request for a volume.
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeSpec {
    /// Levels that are compared, each once.
    pub levels: Vec<Level>,
    /// Paths of the drives by shelf, so that no pair stands in one shelf. One shelf is no shelf.
    pub shelves: Vec<Vec<String>>,
    /// Size of the smallest drive, bytes.
    pub drive_bytes: u64,
    /// Bytes on one drive before the next one follows.
    pub chunk_bytes: u64,
    /// What one drive does.
    pub class: DriveClass,
    /// Size of the volume, bytes; all that the drives give without it.
    pub volume_bytes: Option<u64>,
    /// What is made on it.
    pub filesystem: Filesystem,
    /// Group of LVM.
    pub group: String,
    /// Name of the volume.
    pub name: String,
}

impl VolumeSpec {
    /// Drives of all shelves.
    pub(super) fn drives(&self) -> u64 {
        self.shelves.iter().map(Vec::len).sum::<usize>() as u64
    }

    /// Drives of all shelves in turns.
    pub(super) fn in_turns(&self) -> Vec<String> {
        let longest = self.shelves.iter().map(Vec::len).max().unwrap_or(0);
        let row = |at: usize| self.shelves.iter().filter_map(move |shelf| shelf.get(at).cloned());
        (0..longest).flat_map(row).collect()
    }
}
