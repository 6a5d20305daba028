//! Steps with md.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{StepError, check_devices, check_name};
use super::operation::{Act, Argv, Clear, Listing, Need, Own, Remains, Stamp, StepOperation, argv};

/// Superblock (1.2), bitmap and list of bad blocks stand in the first MiB of a drive.
const HEAD_BYTES: u64 = 1 << 20;

/// How an array keeps what a failed drive held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MdLevel {
    /// Two copies beside each other.
    #[default]
    Raid10,
    /// One parity block in each row.
    Raid5,
    /// Two parity blocks in each row.
    Raid6,
}

impl MdLevel {
    // serde hands a reference on.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_raid10(&self) -> bool {
        *self == Self::Raid10
    }

    /// For mdadm.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Raid10 => &["--level=10", "--layout=n2"],
            Self::Raid5 => &["--level=5"],
            Self::Raid6 => &["--level=6"],
        }
    }

    /// Fewest devices.
    fn devices_min(self) -> usize {
        match self {
            Self::Raid10 => 2,
            Self::Raid5 => 3,
            Self::Raid6 => 4,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Raid10 => "RAID10",
            Self::Raid5 => "RAID5",
            Self::Raid6 => "RAID6",
        }
    }
}

/// An array of md, with a bitmap of what has been written, so that a drive that comes back is not copied
/// whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MdStep {
    /// Name below `/dev/md/`.
    pub name: String,
    /// RAID10 where a journal of an older version has none.
    #[serde(default, skip_serializing_if = "MdLevel::is_raid10")]
    pub level: MdLevel,
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

impl StepOperation for MdStep {
    fn says(&self) -> String {
        format!(
            "make the array {} of {} drives as {}; its first synchronisation begins",
            self.name,
            self.devices.len(),
            self.level.word()
        )
    }

    // Without `--run`: mdadm asks when a drive holds something, and nobody answers here.
    fn act(&self) -> Act {
        let (chunk, count) =
            (format!("--chunk={}", self.chunk_kib), format!("--raid-devices={}", self.devices.len()));
        let path = self.path();
        let shape = [chunk.as_str(), &count, "--bitmap=internal"];
        let options = [&["--create", path.as_str()], self.level.options(), &shape].concat();
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

    fn remains(&self) -> Vec<Remains> {
        let device = self.path();
        let activate = argv("mdadm", &["--assemble", &device], &self.devices);
        vec![Remains::Volume { device, listed: None, activate }]
    }

    /// `set_uuid` of the superblock (`struct mdp_superblock_1` of linux/raid/md_p.h), 4 KiB from the start
    /// for 1.2.
    fn stamp(&self) -> Option<Stamp> {
        Some(Stamp {
            devices: self.devices.clone(),
            at: 4096 + 16,
            in_last_page: false,
            bytes: 16,
            marks: &["md array"],
            // `set_name`.
            own: Own::Named { at: 4096 + 32, bytes: 32, name: self.name.clone() },
        })
    }

    fn makes(&self) -> Option<String> {
        Some(self.path())
    }

    fn listing(&self) -> Option<Listing> {
        Some(Listing { argv: argv("mdadm", &["--detail", "--scan"], &[]), names: vec![self.path()] })
    }

    fn needs(&self) -> Vec<Need> {
        self.devices.iter().cloned().map(|device| Need::Empty { device }).collect()
    }

    fn check(&self) -> Result<(), StepError> {
        check_name("the array", &self.name)?;
        check_devices(&self.devices, self.level.devices_min())
    }
}
