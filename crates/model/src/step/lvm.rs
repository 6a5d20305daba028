//! Steps with LVM. The forms are those that LVM 2.03 takes: `--mirrorlog` together with RAID10 is refused by it, `--stripes` with a log in
//! memory needs `--type mirror`.

use serde::{Deserialize, Serialize};

use super::{Act, Argv, Clear, Deed, Need, Stamp, StepError, argv, check_devices, check_name};

/// What LVM knows stands in the first MiB of a drive, and what its RAID knows in the first extent behind it (4 MiB unless another is asked for).
const HEAD_BYTES: u64 = 5 << 20;

/// How a mirrored volume over many drives is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LvmKind {
    /// Stripes over mirrors: neighbours on the command line are pairs.
    Raid10,
    /// A mirror over two sets of stripes, with its log in memory: the older form.
    MirrorOverStripes,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LvmStep {
    /// Drives become LVM's.
    Drives {
        /// Paths.
        devices: Vec<String>,
    },
    /// A group of drives.
    Group {
        /// Its name.
        name: String,
        /// Paths.
        devices: Vec<String>,
    },
    /// A volume over all of the group.
    Volume {
        /// Group.
        group: String,
        /// Volume.
        name: String,
        /// How.
        kind: LvmKind,
        /// Bytes on one drive before the next one follows, KiB.
        chunk_kib: u32,
        /// Paths, in the order that makes the pairs.
        devices: Vec<String>,
    },
}

impl Deed for LvmStep {
    fn says(&self) -> String {
        match self {
            Self::Drives { devices } => format!("give {} drives to LVM", devices.len()),
            Self::Group { name, devices } => format!("make the group {name} of {} drives", devices.len()),
            Self::Volume { group, name, kind: LvmKind::Raid10, .. } => {
                format!("make the volume {group}/{name} as RAID10; its first synchronisation begins")
            }
            Self::Volume { group, name, .. } => {
                format!("make the volume {group}/{name} as a mirror of two sets of stripes")
            }
        }
    }

    fn act(&self) -> Act {
        Act::Run(match self {
            Self::Drives { devices } => argv("pvcreate", &["--"], devices),
            Self::Group { name, devices } => argv("vgcreate", &["--", name], devices),
            Self::Volume { group, name, kind, chunk_kib, devices } => {
                let (stripes, chunk) = ((devices.len() / 2).to_string(), format!("{chunk_kib}k"));
                let kind: &[&str] = match kind {
                    LvmKind::Raid10 => &["--type", "raid10"],
                    LvmKind::MirrorOverStripes => &["--type", "mirror", "--mirrorlog", "core"],
                };
                let size = ["--mirrors", "1", "--stripes", &stripes, "--stripesize", &chunk];
                let rest = ["--extents", "100%FREE", "--name", name, "--", group];
                argv("lvcreate", &[kind, &size, &rest].concat(), devices)
            }
        })
    }

    fn undo(&self) -> Vec<Argv> {
        vec![match self {
            Self::Drives { devices } => argv("pvremove", &["--"], devices),
            Self::Group { name, .. } => argv("vgremove", &["--", name], &[]),
            Self::Volume { group, name, .. } => {
                argv("lvremove", &["--yes", "--", &format!("{group}/{name}")], &[])
            }
        }]
    }

    fn clear(&self) -> Vec<Clear> {
        match self {
            Self::Drives { devices } => vec![Clear::Head { devices: devices.clone(), bytes: HEAD_BYTES }],
            Self::Group { .. } | Self::Volume { .. } => Vec::new(),
        }
    }

    /// The identifier of the physical volume: behind the 32 bytes of the label (`struct label_header` of LVM2), which stands in the second sector.
    fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::Drives { devices } => {
                Some(Stamp { devices: devices.clone(), at: 512 + 32, bytes: 32, marks: &["LVM"] })
            }
            Self::Group { .. } | Self::Volume { .. } => None,
        }
    }

    fn needs(&self) -> Vec<Need> {
        match self {
            Self::Drives { devices } => {
                devices.iter().cloned().map(|device| Need::Empty { device }).collect()
            }
            Self::Group { .. } | Self::Volume { .. } => Vec::new(),
        }
    }

    fn check(&self) -> Result<(), StepError> {
        match self {
            Self::Drives { devices } => check_devices(devices, 1),
            Self::Group { name, devices } => {
                check_name("the group", name)?;
                check_devices(devices, 1)
            }
            Self::Volume { group, name, devices, .. } => {
                check_name("the group", group)?;
                check_name("the volume", name)?;
                check_devices(devices, 2)
            }
        }
    }
}
