//! Steps that make a filesystem. Its geometry is always given: LVM reports the width of a RAID10 volume with
//! the mirrors counted in, twice of what it is, and the programs believe it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{StepError, check_above_zero, check_device};
use super::operation::{Act, Argv, Clear, Need, StepOperation, argv};

/// Block of ext4, KiB: also for small volumes, of which `mkfs.ext4` would make blocks of 1 KiB and count
/// stripes in them.
const EXT4_BLOCK_KIB: u32 = 4;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
        /// Allocation groups; the program's own choice without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        groups: Option<u32>,
        /// Unit to which writes of the log are rounded, KiB; the chunk without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log_unit_kib: Option<u32>,
    },
    /// ext4. Without a terminal `mkfs.ext4` asks nothing and replaces what is there, so that the device has
    /// to hold nothing.
    Ext4 {
        /// Path.
        device: String,
        /// Bytes on one drive before the next one follows, KiB.
        chunk_kib: u32,
        /// Drives that hold different data.
        stripes: u32,
    },
}

impl FilesystemStep {
    fn device(&self) -> &String {
        match self {
            Self::Xfs { device, .. } | Self::Ext4 { device, .. } => device,
        }
    }
}

impl StepOperation for FilesystemStep {
    fn says(&self) -> String {
        let (name, device, chunk_kib, stripes) = match self {
            Self::Xfs { device, chunk_kib, stripes, .. } => ("XFS", device, chunk_kib, stripes),
            Self::Ext4 { device, chunk_kib, stripes } => ("ext4", device, chunk_kib, stripes),
        };
        format!("make {name} on {device}, aligned to {stripes} stripes of {chunk_kib} KiB")
    }

    fn act(&self) -> Act {
        Act::Run(match self {
            Self::Xfs { device, chunk_kib, stripes, groups, log_unit_kib } => {
                let groups = groups.map_or_else(String::new, |groups| format!(",agcount={groups}"));
                let geometry = format!("su={chunk_kib}k,sw={stripes}{groups}");
                match log_unit_kib.map(|kib| format!("su={kib}k")) {
                    Some(log) => argv("mkfs.xfs", &["-d", &geometry, "-l", &log, device], &[]),
                    None => argv("mkfs.xfs", &["-d", &geometry, device], &[]),
                }
            }
            Self::Ext4 { device, chunk_kib, stripes } => {
                let stride = u64::from(chunk_kib / EXT4_BLOCK_KIB);
                let width = stride * u64::from(*stripes);
                let block = (EXT4_BLOCK_KIB << 10).to_string();
                let geometry = format!("stride={stride},stripe_width={width}");
                argv("mkfs.ext4", &["-b", &block, "-E", &geometry, device], &[])
            }
        })
    }

    // No command does: `wipefs` takes the mark alone and leaves the rest.
    fn undo(&self) -> Vec<Argv> {
        Vec::new()
    }

    fn clear(&self) -> Vec<Clear> {
        let device = self.device().clone();
        vec![match self {
            Self::Xfs { .. } => Clear::Xfs { device },
            Self::Ext4 { .. } => Clear::Ext { device },
        }]
    }

    // It is made on what the steps before made, hours ago where a first synchronisation was waited for.
    // Without a terminal `mkfs.ext4` replaces what is there.
    fn needs(&self) -> Vec<Need> {
        vec![Need::Volume { device: self.device().clone() }]
    }

    fn check(&self) -> Result<(), StepError> {
        check_device(self.device())?;
        match self {
            Self::Xfs { chunk_kib, stripes, groups, log_unit_kib, .. } => {
                check_above_zero("the chunk", Some(u64::from(*chunk_kib)))?;
                check_above_zero("the number of stripes", Some(u64::from(*stripes)))?;
                check_above_zero("the number of groups", groups.map(u64::from))?;
                check_above_zero("the unit of the log", log_unit_kib.map(u64::from))
            }
            Self::Ext4 { chunk_kib, stripes, .. } => {
                let blocks = u64::from(chunk_kib / EXT4_BLOCK_KIB);
                check_above_zero("the chunk in blocks of ext4", Some(blocks))?;
                check_above_zero("the number of stripes", Some(u64::from(*stripes)))
            }
        }
    }
}
