//! Steps that make a filesystem. Its geometry is always said: LVM reports the width of a RAID10 volume with the mirrors counted in, twice of
//! what it is, and `mkfs.xfs` believes it.

use serde::{Deserialize, Serialize};

use super::{Act, Argv, Clear, Deed, Need, StepError, argv, check_device};

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilesystemStep {
    /// XFS. Without `-f` it refuses a device on which it knows something.
    Xfs {
        /// Path.
        device: String,
        /// Bytes on one drive before the next one follows, KiB.
        chunk_kib: u32,
        /// Drives that hold different data.
        stripes: u32,
    },
}

impl Deed for FilesystemStep {
    fn says(&self) -> String {
        let Self::Xfs { device, chunk_kib, stripes } = self;
        format!("make XFS on {device}, aligned to {stripes} stripes of {chunk_kib} KiB")
    }

    fn act(&self) -> Act {
        let Self::Xfs { device, chunk_kib, stripes } = self;
        let geometry = format!("su={chunk_kib}k,sw={stripes}");
        Act::Run(argv("mkfs.xfs", &["-d", &geometry, device], &[]))
    }

    // No command does: `wipefs` takes the mark alone and leaves the rest.
    fn undo(&self) -> Vec<Argv> {
        Vec::new()
    }

    fn clear(&self) -> Vec<Clear> {
        let Self::Xfs { device, .. } = self;
        vec![Clear::Xfs { device: device.clone() }]
    }

    // It is made on what the steps before made.
    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }

    fn check(&self) -> Result<(), StepError> {
        let Self::Xfs { device, .. } = self;
        check_device(device)
    }
}
