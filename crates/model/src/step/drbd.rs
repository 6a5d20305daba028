//! Steps with DRBD, in the words of `drbdadm`, which are the same for 8.4 and 9.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{StepError, check_device, check_name};
use super::operation::{Act, Argv, Need, Own, Stamp, StepOperation, argv};

/// Folder of resource files, as the packages of all distributions read it.
const FOLDER: &str = "/etc/drbd.d";
/// Longest resource file, bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DrbdStep {
    /// The resource's file is written.
    File {
        /// Resource.
        resource: String,
        /// All of the file.
        text: String,
    },
    /// Metadata are written.
    Metadata {
        /// Resource.
        resource: String,
        /// Where they go: the data's own device when they are internal.
        device: String,
        /// Bytes at the beginning of the device that a filesystem may have; without it the device has to be
        /// empty.
        filesystem_max_bytes: Option<u64>,
        /// The data's device where that is another one and the first synchronisation will write over it: it
        /// has to be empty too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        overwritten: Option<String>,
    },
    /// The resource is taken into use.
    Up {
        /// Resource.
        resource: String,
    },
    /// The resource is given up until the next `up`.
    Down {
        /// Resource.
        resource: String,
    },
    /// This side may be written to.
    Primary {
        /// Resource.
        resource: String,
        /// Also where no side is known to be good: the beginning of the first synchronisation, from here.
        force: bool,
    },
    /// This side may not be written to any more.
    Secondary {
        /// Resource.
        resource: String,
    },
    /// The peer is looked for.
    Connect {
        /// Resource.
        resource: String,
        /// What was written here alone is given up.
        discard: bool,
    },
    /// The peer is left.
    Disconnect {
        /// Resource.
        resource: String,
    },
    /// Both sides are compared block by block.
    Verify {
        /// Resource.
        resource: String,
    },
    /// What the file says comes into force.
    Adjust {
        /// Resource.
        resource: String,
    },
}

impl DrbdStep {
    /// The resource.
    #[must_use]
    pub fn resource(&self) -> &str {
        match self {
            Self::File { resource, .. }
            | Self::Metadata { resource, .. }
            | Self::Up { resource }
            | Self::Down { resource }
            | Self::Primary { resource, .. }
            | Self::Secondary { resource }
            | Self::Connect { resource, .. }
            | Self::Disconnect { resource }
            | Self::Verify { resource }
            | Self::Adjust { resource } => resource,
        }
    }
}

fn drbdadm(words: &[&str], resource: &str) -> Argv {
    argv("drbdadm", words, &[resource.to_owned()])
}

impl StepOperation for DrbdStep {
    fn says(&self) -> String {
        let name = self.resource();
        match self {
            Self::File { .. } => format!("write {FOLDER}/{name}.res"),
            Self::Metadata { device, .. } => format!("write the metadata of {name} on {device}"),
            Self::Up { .. } => format!("take {name} into use"),
            Self::Down { .. } => format!("give {name} up"),
            Self::Primary { force: false, .. } => format!("make this side of {name} the primary"),
            Self::Primary { .. } => {
                format!("declare this side of {name} to be the good one; it is copied to the other")
            }
            Self::Secondary { .. } => format!("make this side of {name} a secondary"),
            Self::Connect { discard: false, .. } => format!("connect {name} to its peer"),
            Self::Connect { .. } => {
                format!("connect {name} to its peer and give up what was written here alone")
            }
            Self::Disconnect { .. } => format!("disconnect {name} from its peer"),
            Self::Verify { .. } => format!("compare both sides of {name}"),
            Self::Adjust { .. } => format!("bring the file of {name} into force"),
        }
    }

    fn act(&self) -> Act {
        let name = self.resource();
        Act::Run(match self {
            Self::File { text, .. } => {
                return Act::Write {
                    path: format!("{FOLDER}/{name}.res"),
                    text: text.clone(),
                    is_program: false,
                };
            }
            // Without `--force`: where it finds something it asks, and nobody answers here. Only for a
            // filesystem that the host has measured itself, right before, the answer is known.
            Self::Metadata { filesystem_max_bytes: None, .. } => drbdadm(&["create-md"], name),
            Self::Metadata { .. } => drbdadm(&["create-md", "--force"], name),
            Self::Up { .. } => drbdadm(&["up"], name),
            Self::Down { .. } => drbdadm(&["down"], name),
            Self::Primary { force: false, .. } => drbdadm(&["primary"], name),
            Self::Primary { .. } => drbdadm(&["primary", "--force"], name),
            Self::Secondary { .. } => drbdadm(&["secondary"], name),
            Self::Connect { discard: false, .. } => drbdadm(&["connect"], name),
            Self::Connect { .. } => drbdadm(&["connect", "--discard-my-data"], name),
            Self::Disconnect { .. } => drbdadm(&["disconnect"], name),
            Self::Verify { .. } => drbdadm(&["verify"], name),
            Self::Adjust { .. } => drbdadm(&["adjust"], name),
        })
    }

    fn undo(&self) -> Vec<Argv> {
        let name = self.resource();
        match self {
            Self::Metadata { .. } => vec![drbdadm(&["--", "--force", "wipe-md"], name)],
            Self::Up { .. } => vec![drbdadm(&["down"], name)],
            Self::Primary { .. } => vec![drbdadm(&["secondary"], name)],
            // Only a primary is told to become a secondary.
            Self::Secondary { .. } => vec![drbdadm(&["primary"], name)],
            Self::Disconnect { .. } => vec![drbdadm(&["connect"], name)],
            Self::Connect { .. } => vec![drbdadm(&["disconnect"], name)],
            Self::File { .. } | Self::Down { .. } | Self::Verify { .. } | Self::Adjust { .. } => Vec::new(),
        }
    }

    fn needs(&self) -> Vec<Need> {
        match self {
            Self::File { resource, text } => {
                vec![Need::NoOtherFile { path: format!("{FOLDER}/{resource}.res"), text: text.clone() }]
            }
            Self::Metadata { device, filesystem_max_bytes, overwritten, .. } => {
                let device = device.clone();
                let own = match filesystem_max_bytes {
                    Some(filesystem_max_bytes) => {
                        Need::Shrunk { device, filesystem_max_bytes: *filesystem_max_bytes }
                    }
                    None => Need::Empty { device },
                };
                let data = overwritten.iter().map(|device| Need::Empty { device: device.clone() });
                std::iter::once(own).chain(data).collect()
            }
            _ => Vec::new(),
        }
    }

    /// `device_uuid`, by chance for each metadata: at byte 40 of the superblock (8.4) or at 48 (9), which
    /// stands in the last 4 KiB of the device where the metadata are internal. Elsewhere nothing stands
    /// there, and nothing is compared.
    fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::Metadata { device, .. } => {
                let devices = vec![device.clone()];
                let marks = &["DRBD"];
                Some(Stamp { devices, at: 40, in_last_page: true, bytes: 16, marks, own: Own::Any })
            }
            _ => None,
        }
    }

    fn check(&self) -> Result<(), StepError> {
        // `all` is a word of drbdadm for every resource of the host.
        if self.resource() == "all" {
            let allowed = "the name of one resource";
            return Err(StepError { what: "the resource", seen: "all".to_owned(), allowed });
        }
        check_name("the resource", self.resource())?;
        match self {
            Self::Metadata { device, overwritten, .. } => {
                overwritten.iter().chain([device]).try_for_each(|device| check_device(device))
            }
            Self::File { text, .. } if text.len() > TEXT_BYTES_MAX => Err(StepError {
                what: "the resource file",
                seen: format!("{} bytes", text.len()),
                allowed: "at most 64 KiB long",
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
pub(super) fn examples() -> Vec<DrbdStep> {
    let resource = || "r0".to_owned();
    vec![
        DrbdStep::File { resource: resource(), text: "resource r0 {}\n".to_owned() },
        DrbdStep::Metadata {
            resource: resource(),
            device: "/dev/sda".to_owned(),
            filesystem_max_bytes: None,
            overwritten: Some("/dev/sdb".to_owned()),
        },
        DrbdStep::Up { resource: resource() },
        DrbdStep::Down { resource: resource() },
        DrbdStep::Primary { resource: resource(), force: false },
        DrbdStep::Primary { resource: resource(), force: true },
        DrbdStep::Secondary { resource: resource() },
        DrbdStep::Connect { resource: resource(), discard: true },
        DrbdStep::Connect { resource: resource(), discard: false },
        DrbdStep::Disconnect { resource: resource() },
        DrbdStep::Verify { resource: resource() },
        DrbdStep::Adjust { resource: resource() },
    ]
}
