//! Steps with md.

use serde::{Deserialize, Serialize};

use super::{Act, Argv, Clear, Deed, Need, Stamp, StepError, argv, check_devices, check_name};

/// Superblock (1.2), bitmap and list of bad blocks stand in the first MiB of a drive.
const HEAD_BYTES: u64 = 1 << 20;

/// An array of md as RAID10 with two copies beside each other, and a bitmap of what has been written, so that a drive that comes back is not
/// copied whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MdStep {
    /// Name below `/dev/md/`.
    pub name: String,
    /// Bytes on one drive before the next one follows, KiB.
    pub chunk_kib: u32,
    /// Paths, in the order that makes the pairs.
    pub devices: Vec<String>,
}

impl MdStep {
    /// Where the array is found.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/dev/md/{}", self.name)
    }
}

impl Deed for MdStep {
    fn says(&self) -> String {
        format!(
            "make the array {} of {} drives; its first synchronisation begins",
            self.name,
            self.devices.len()
        )
    }

    // Without `--run`: mdadm asks when a drive holds something, and nobody answers here.
    fn act(&self) -> Act {
        let (chunk, count) =
            (format!("--chunk={}", self.chunk_kib), format!("--raid-devices={}", self.devices.len()));
        let path = self.path();
        let options = ["--create", &path, "--level=10", "--layout=n2", &chunk, &count, "--bitmap=internal"];
        Act::Run(argv("mdadm", &options, &self.devices))
    }

    fn undo(&self) -> Vec<Argv> {
        vec![
            argv("mdadm", &["--stop", &self.path()], &[]),
            argv("mdadm", &["--zero-superblock"], &self.devices),
        ]
    }

    fn clear(&self) -> Vec<Clear> {
        vec![Clear::Head { devices: self.devices.clone(), bytes: HEAD_BYTES }]
    }

    /// `set_uuid` of the superblock (`struct mdp_superblock_1` of linux/raid/md_p.h), 4 KiB from the start for 1.2.
    fn stamp(&self) -> Option<Stamp> {
        Some(Stamp { devices: self.devices.clone(), at: 4096 + 16, bytes: 16, marks: &["md array"] })
    }

    fn needs(&self) -> Vec<Need> {
        self.devices.iter().cloned().map(|device| Need::Empty { device }).collect()
    }

    fn check(&self) -> Result<(), StepError> {
        check_name("the array", &self.name)?;
        check_devices(&self.devices, 2)
    }
}
