//! Steps with LVM. The forms are those that LVM 2.03 takes: `--mirrorlog` together with RAID10 is refused by
//! it, `--stripes` with a log in memory needs `--type mirror`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{StepError, check_above_zero, check_devices, check_name};
use super::operation::{Act, Argv, Clear, Listing, Need, Own, Remains, Stamp, StepOperation, argv};

/// What LVM knows stands in the first MiB of a drive, and what its RAID knows in the first extent behind it
/// (4 MiB unless another is asked for).
const HEAD_BYTES: u64 = 5 << 20;

/// How a volume over the devices of a group is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LvmKind {
    /// Stripes over mirrors: neighbours on the command line are pairs.
    Raid10,
    /// A mirror over two sets of stripes, with its log in memory: the older form.
    MirrorOverStripes,
    /// Stripes with one parity block in each row.
    Raid5,
    /// Stripes with two parity blocks in each row.
    Raid6,
    /// One extent after the other: on a device that is an array itself.
    Linear,
}

impl LvmKind {
    /// Devices that hold different data, of so many.
    fn stripes(self, devices: usize) -> usize {
        match self {
            Self::Raid10 | Self::MirrorOverStripes => devices / 2,
            Self::Raid5 => devices.saturating_sub(1),
            Self::Raid6 => devices.saturating_sub(2),
            Self::Linear => 1,
        }
    }

    /// Fewest devices that `lvcreate` accepts (lvmraid(7)).
    fn devices_min(self) -> usize {
        match self {
            Self::Linear => 1,
            Self::Raid10 | Self::MirrorOverStripes => 2,
            Self::Raid5 => 3,
            Self::Raid6 => 5,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Raid10 => "as RAID10; its first synchronisation begins",
            Self::Raid5 => "as RAID5; its first synchronisation begins",
            Self::Raid6 => "as RAID6; its first synchronisation begins",
            Self::MirrorOverStripes => "as a mirror of two sets of stripes",
            Self::Linear => "on the array",
        }
    }

    /// Type and shape for `lvcreate`.
    fn options(self, devices: usize, chunk_kib: u32) -> Argv {
        let kind: &[&str] = match self {
            Self::Raid10 => &["--type", "raid10", "--mirrors", "1"],
            Self::MirrorOverStripes => &["--type", "mirror", "--mirrorlog", "core", "--mirrors", "1"],
            Self::Raid5 => &["--type", "raid5"],
            Self::Raid6 => &["--type", "raid6"],
            Self::Linear => &["--type", "linear"],
        };
        let mut options: Argv = kind.iter().map(|word| (*word).to_owned()).collect();
        if self != Self::Linear {
            let (stripes, chunk) = (self.stripes(devices).to_string(), format!("{chunk_kib}k"));
            options.extend(["--stripes".to_owned(), stripes, "--stripesize".to_owned(), chunk]);
        }
        options
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LvmStep {
    /// Drives become LVM's.
    Drives {
        /// Paths.
        devices: Vec<String>,
        /// Where the first extent may begin: a multiple of so many KiB; LVM's own default without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        align_kib: Option<u32>,
    },
    /// A group of drives.
    Group {
        /// Its name.
        name: String,
        /// Paths.
        devices: Vec<String>,
    },
    /// A volume over the devices of a group.
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
        /// Extents of data; all that are free without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extents: Option<u64>,
    },
}

impl StepOperation for LvmStep {
    fn says(&self) -> String {
        match self {
            Self::Drives { devices, .. } => match devices.as_slice() {
                [one] => format!("give {one} to LVM"),
                many => format!("give {} drives to LVM", many.len()),
            },
            Self::Group { name, devices } => match devices.as_slice() {
                [one] => format!("make the group {name} of {one}"),
                many => format!("make the group {name} of {} drives", many.len()),
            },
            Self::Volume { group, name, kind, .. } => {
                format!("make the volume {group}/{name} {}", kind.words())
            }
        }
    }

    fn act(&self) -> Act {
        Act::Run(match self {
            Self::Drives { devices, align_kib: None } => argv("pvcreate", &["--"], devices),
            Self::Drives { devices, align_kib: Some(kib) } => {
                argv("pvcreate", &["--dataalignment", &format!("{kib}k"), "--"], devices)
            }
            Self::Group { name, devices } => argv("vgcreate", &["--", name], devices),
            Self::Volume { group, name, kind, chunk_kib, devices, extents } => {
                let options = kind.options(devices.len(), *chunk_kib);
                let extents = extents.map_or_else(|| "100%FREE".to_owned(), |extents| extents.to_string());
                let rest = ["--extents", &extents, "--name", name, "--", group];
                let words: Vec<&str> = options.iter().map(String::as_str).chain(rest).collect();
                argv("lvcreate", &words, devices)
            }
        })
    }

    fn undo(&self) -> Vec<Argv> {
        vec![match self {
            Self::Drives { devices, .. } => argv("pvremove", &["--"], devices),
            Self::Group { name, .. } => argv("vgremove", &["--", name], &[]),
            Self::Volume { group, name, .. } => {
                argv("lvremove", &["--yes", "--", &format!("{group}/{name}")], &[])
            }
        }]
    }

    fn clear(&self) -> Vec<Clear> {
        match self {
            Self::Drives { devices, .. } => vec![Clear::Head { devices: devices.clone(), bytes: HEAD_BYTES }],
            Self::Group { .. } | Self::Volume { .. } => Vec::new(),
        }
    }

    fn remains(&self) -> Vec<Remains> {
        let names = ["--noheadings", "-o", "lv_name", "--"];
        match self {
            Self::Drives { .. } => Vec::new(),
            Self::Group { name, .. } => {
                vec![Remains::Group {
                    name: name.clone(),
                    list: argv("lvs", &names, std::slice::from_ref(name)),
                }]
            }
            Self::Volume { group, name, .. } => {
                let volume = [format!("{group}/{name}")];
                vec![Remains::Volume {
                    device: format!("/dev/{group}/{name}"),
                    listed: Some(argv("lvs", &names, &volume)),
                    activate: argv("lvchange", &["--activate", "y", "--"], &volume),
                }]
            }
        }
    }

    /// The identifier of the physical volume: behind the 32 bytes of the label (`struct label_header` of
    /// LVM2), which stands in the second sector.
    fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::Drives { devices, .. } => Some(Stamp {
                devices: devices.clone(),
                at: 512 + 32,
                in_last_page: false,
                bytes: 32,
                marks: &["LVM"],
                // The label, and the header of an area of metadata that has none.
                own: Own::Alone { ranges: &[(512, 1024), (4096, 4608)], bytes: HEAD_BYTES },
            }),
            Self::Group { .. } | Self::Volume { .. } => None,
        }
    }

    fn makes(&self) -> Option<String> {
        match self {
            Self::Volume { group, name, .. } => Some(format!("/dev/{group}/{name}")),
            Self::Drives { .. } | Self::Group { .. } => None,
        }
    }

    fn listing(&self) -> Option<Listing> {
        let (program, column, names) = match self {
            Self::Drives { devices, .. } => ("pvs", "pv_name", devices.clone()),
            Self::Group { name, .. } => ("vgs", "vg_name", vec![name.clone()]),
            Self::Volume { group, name, .. } => ("lvs", "lv_full_name", vec![format!("{group}/{name}")]),
        };
        Some(Listing { argv: argv(program, &["--noheadings", "--options", column], &[]), names })
    }

    fn needs(&self) -> Vec<Need> {
        match self {
            Self::Drives { devices, .. } => {
                devices.iter().cloned().map(|device| Need::Empty { device }).collect()
            }
            Self::Group { .. } | Self::Volume { .. } => Vec::new(),
        }
    }

    fn check(&self) -> Result<(), StepError> {
        match self {
            Self::Drives { devices, align_kib } => {
                check_devices(devices, 1)?;
                check_above_zero("the alignment", align_kib.map(u64::from))
            }
            Self::Group { name, devices } => {
                check_name("the group", name)?;
                check_devices(devices, 1)
            }
            Self::Volume { group, name, devices, kind, extents, .. } => {
                check_name("the group", group)?;
                check_name("the volume", name)?;
                check_above_zero("the number of extents", *extents)?;
                check_devices(devices, kind.devices_min())
            }
        }
    }
}
