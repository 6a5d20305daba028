//! From two hosts and a device on each to a running resource: what is checked before, and the steps.

use linerate_model::inventory::HostName;
use linerate_model::step::{DrbdStep, Step, StepOperation as _, check_device, check_name};
use schemars::JsonSchema;
use serde::Serialize;

use super::capacity::device_layout;
use super::metadata::{DeviceLayout, MetadataLocation};
use super::resource::{Release, ReplicaSide, ResourceSpec, SetupError, file_text};

/// A step and where it is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct On {
    /// Host.
    pub host: HostName,
    /// Step.
    pub step: Step,
}

/// How a resource is made.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ResourcePlan {
    /// What was wished for.
    pub spec: ResourceSpec,
    /// How the device of each side is shared.
    pub rooms: [DeviceLayout; 2],
    /// What can be stored, bytes.
    pub data_bytes: u64,
    /// The file.
    pub file: String,
    /// The steps until both sides are connected.
    pub steps: Vec<On>,
    /// The step that begins the first synchronisation, when the good side was named.
    pub first: Option<On>,
}

/// Both hosts of a resource have one peer.
const PEERS: u64 = 1;

/// Works out how a resource is made.
///
/// # Errors
/// Names the host, the device, the sizes and what would do.
pub fn plan(spec: &ResourceSpec) -> Result<ResourcePlan, SetupError> {
    check(spec)?;
    let [left, right] = &spec.sides;
    // What would be overwritten anyway needs no capacity.
    for side in &spec.sides {
        if let Some(kind) = side.contents.filesystem.clone()
            && spec.from.as_deref() != Some(side.host.as_str())
        {
            let (host, device) = (side.host.clone(), side.disk.clone());
            return Err(SetupError::Overwritten { host, device, kind });
        }
    }
    let rooms = [shared(left)?, shared(right)?];
    let data_bytes = rooms[0].data_bytes.min(rooms[1].data_bytes);
    for (side, layout) in spec.sides.iter().zip(&rooms) {
        if side.contents.filesystem.is_none() {
            continue;
        }
        let needed = side.contents.filesystem_bytes.unwrap_or(layout.data_bytes);
        if data_bytes < needed {
            let other = spec.sides.iter().find(|other| other.host != side.host).unwrap_or(side);
            return Err(SetupError::Smaller {
                host: other.host.clone(),
                from: side.host.clone(),
                seen: data_bytes,
                needed,
            });
        }
    }
    let file = file_text(spec);
    let mut steps = Vec::new();
    let resource = || spec.resource.clone();
    for (side, layout) in spec.sides.iter().zip(&rooms) {
        let (device, filesystem_max_bytes, overwritten) = match &side.meta {
            MetadataLocation::Internal => {
                (side.disk.clone(), side.contents.filesystem.as_ref().map(|_| layout.data_bytes), None)
            }
            MetadataLocation::External { device, .. } => {
                let is_kept = spec.from.as_deref() == Some(side.host.as_str());
                (device.clone(), None, (!is_kept).then(|| side.disk.clone()))
            }
        };
        let own = [
            DrbdStep::File { resource: resource(), text: file.clone() },
            DrbdStep::Metadata { resource: resource(), device, filesystem_max_bytes, overwritten },
            DrbdStep::Up { resource: resource() },
        ];
        steps.extend(own.into_iter().map(|step| On { host: side.host.clone(), step: Step::Drbd(step) }));
    }
    let first = spec
        .from
        .clone()
        .map(|host| On { host, step: Step::Drbd(DrbdStep::Primary { resource: resource(), force: true }) });
    Ok(ResourcePlan { spec: spec.clone(), rooms, data_bytes, file, steps, first })
}

fn shared(side: &ReplicaSide) -> Result<DeviceLayout, SetupError> {
    device_layout(&side.host, &side.disk, &side.contents, &side.meta, PEERS)
}

fn check(spec: &ResourceSpec) -> Result<(), SetupError> {
    let [left, right] = &spec.sides;
    for (one, other) in [
        (left.host.clone(), right.host.clone()),
        (left.node_name.clone(), right.node_name.clone()),
        (left.address.to_string(), right.address.to_string()),
    ] {
        if one == other {
            return Err(SetupError::Same { seen: one });
        }
    }
    if let Some(from) = &spec.from
        && ![&left.host, &right.host].contains(&from)
    {
        return Err(SetupError::From {
            seen: from.clone(),
            first: left.host.clone(),
            second: right.host.clone(),
        });
    }
    if !['A', 'B', 'C'].contains(&spec.protocol) {
        return Err(SetupError::Protocol { seen: spec.protocol });
    }
    DrbdStep::Up { resource: spec.resource.clone() }.check()?;
    for side in &spec.sides {
        check_name("the name of the node", &side.node_name)?;
        check_device(&side.disk)?;
        metadata_apart(side)?;
    }
    Ok(())
}

/// Metadata of their own are on a device that holds neither the data nor anything else.
fn metadata_apart(side: &ReplicaSide) -> Result<(), SetupError> {
    let MetadataLocation::External { device, number, filesystem, .. } = &side.meta else { return Ok(()) };
    check_device(device)?;
    let is_data = *device == side.disk || number.is_some() && *number == side.contents.number;
    let holds = match filesystem {
        _ if is_data => "is the device of the data".to_owned(),
        Some(kind) => format!("holds a filesystem ({kind})"),
        None => return Ok(()),
    };
    Err(SetupError::MetadataOver { host: side.host.clone(), device: device.clone(), holds })
}

impl ResourceSpec {
    /// Release in words.
    #[must_use]
    pub fn release_name(&self) -> &'static str {
        match self.release {
            Release::V84 => "8.4",
            Release::V9 => "9",
        }
    }
}
