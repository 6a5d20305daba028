//! Queries: what a host is asked about its volumes, replicas and health that stands in no file of the kernel.
//! A query changes nothing but the past of the checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{StepError, check_device, check_devices, check_name, shown};
use super::operation::{Argv, argv};

/// One look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostQuery {
    /// Version of DRBD's module and tools.
    DrbdVersion,
    /// State of all resources, in the lines of `events2`, which 8.4 and 9 both have.
    DrbdState,
    /// `/proc/drbd` of 8.4: how far a comparison is, what a side that stands alone has marked.
    DrbdProc,
    /// The name that `uname -n` prints.
    NodeName,
    /// What is set for all resources, as `drbdadm dump` writes it.
    DrbdFiles,
    /// Generation identifiers of a resource.
    DrbdGeneration {
        /// Resource.
        resource: String,
    },
    /// How much of a volume of LVM is in sync, percent.
    VolumeSync {
        /// Group.
        group: String,
        /// Volume.
        name: String,
    },
    /// The kernel's list of arrays.
    ArraySync,
    /// Commands that would bring the file of a resource into force; none when it is.
    DrbdAdjust {
        /// Resource.
        resource: String,
    },
    /// Room of the filesystem of a folder: a [`Space`] as JSON.
    Space {
        /// Absolute.
        folder: String,
    },
    /// What stands at the beginning of a device: a [`Contents`] as JSON.
    Contents {
        /// Path.
        device: String,
    },
    /// Whether devices may be given away: nobody uses them, and they hold nothing. The output is a list of
    /// [`DeviceRefusal`] as JSON.
    Empty {
        /// Paths.
        devices: Vec<String>,
    },
    /// The health checks of the host: a [`CheckReport`](crate::check::CheckReport) as JSON.
    Health,
    /// SHA-256 of the node program that answers, hexadecimal.
    Program,
}

/// A device that may not be given away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceRefusal {
    /// Path.
    pub device: String,
    /// Why.
    pub why: String,
}

/// What a look costs the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryEffect {
    /// Run a program that only reads.
    Run(Argv),
    /// Read a file.
    Read(&'static str),
    /// Read the beginning of a device.
    Contents(String),
    /// Ask how much room a filesystem has.
    Space(String),
    /// Ask the guard.
    Empty(Vec<String>),
    /// Check the host.
    Health,
    /// Read the program that answers.
    Program,
}

impl HostQuery {
    /// What is done on the host.
    #[must_use]
    pub fn act(&self) -> QueryEffect {
        QueryEffect::Run(match self {
            Self::DrbdVersion => argv("drbdadm", &["--version"], &[]),
            Self::DrbdState => argv("drbdsetup", &["events2", "--now", "--statistics", "all"], &[]),
            Self::DrbdFiles => argv("drbdadm", &["dump"], &[]),
            Self::DrbdGeneration { resource } => argv("drbdadm", &["get-gi"], std::slice::from_ref(resource)),
            Self::VolumeSync { group, name } => {
                // The device mapper parts both names by one hyphen, and doubles those within.
                let device = [group, name].map(|part| part.replace('-', "--")).join("-");
                argv("dmsetup", &["status", &device], &[])
            }
            Self::ArraySync => return QueryEffect::Read("/proc/mdstat"),
            Self::DrbdProc => return QueryEffect::Read("/proc/drbd"),
            Self::NodeName => return QueryEffect::Read("/proc/sys/kernel/hostname"),
            Self::Contents { device } => return QueryEffect::Contents(device.clone()),
            Self::Space { folder } => return QueryEffect::Space(folder.clone()),
            Self::DrbdAdjust { resource } => {
                argv("drbdadm", &["--dry-run", "adjust"], std::slice::from_ref(resource))
            }
            Self::Empty { devices } => return QueryEffect::Empty(devices.clone()),
            Self::Health => return QueryEffect::Health,
            Self::Program => return QueryEffect::Program,
        })
    }

    /// Whether all names in it are names and nothing else.
    ///
    /// # Errors
    /// The first one that is not.
    pub fn check(&self) -> Result<(), StepError> {
        match self {
            Self::DrbdGeneration { resource } | Self::DrbdAdjust { resource } => {
                check_name("the resource", resource)
            }
            Self::Space { folder } => check_folder(folder),
            Self::VolumeSync { group, name } => {
                check_name("the group", group)?;
                check_name("the volume", name)
            }
            Self::Contents { device } => check_device(device),
            Self::Empty { devices } => check_devices(devices, 1),
            Self::DrbdVersion
            | Self::DrbdState
            | Self::DrbdProc
            | Self::NodeName
            | Self::DrbdFiles
            | Self::ArraySync
            | Self::Health
            | Self::Program => Ok(()),
        }
    }
}

/// A folder is only asked for its filesystem, so that any absolute path will do.
fn check_folder(folder: &str) -> Result<(), StepError> {
    let good =
        folder.starts_with('/') && folder.len() <= FOLDER_BYTES_MAX && !folder.contains(char::is_control);
    let (what, allowed) = ("the folder", "an absolute path");
    if good { Ok(()) } else { Err(StepError { what, seen: shown(folder), allowed }) }
}

/// `PATH_MAX` of Linux.
const FOLDER_BYTES_MAX: usize = 4096;

/// Room of a filesystem.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Space {
    /// All of it, bytes.
    pub size_bytes: u64,
    /// What is left to programs, bytes: without what is kept for root.
    pub free_bytes: u64,
}

/// What a program said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueryOutput {
    /// Exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// How long it took, ms.
    pub took_ms: u64,
}

impl QueryOutput {
    /// Whether it said that all went well.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.code == 0
    }
}

/// What stands at the beginning of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Contents {
    /// Size of the device, bytes.
    pub size_bytes: u64,
    /// The kernel's number of the device (`st_rdev`): two paths with one number are one device. Nothing from
    /// a node that does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// `xfs`, `ext`; nothing where neither is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<String>,
    /// Size of the filesystem by its own superblock, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem_bytes: Option<u64>,
}
