//! What has to be true of devices before a step may touch them, looked at in the moment before, and held
//! until its program has them.
//!
//! In: needs of a step. Out: claims on the devices that the program is going to write, or the first device
//! that is in the way.

use std::fmt::Display;
use std::fs::File;
use std::path::Path;

use linerate_load::guard::{self, DeviceClaim, WantedContent, WriteRefusal};
use linerate_model::step::{DeviceRefusal, Need};

use super::contents::{self, ContentsError};
use super::program;

/// Devices that a step is going to write, all held against the rest of the kernel at the same time. They are
/// given to the program with [`super::run::run_with`]: its child has the last descriptors, and the kernel
/// closes them when the child executes the program. What is left is the time from there to the program's own
/// open of the device, some milliseconds in which another program could take it; those that claim devices
/// (`mkfs`, `mdadm`, `pvcreate`, `mount`) then exclude each other, one that just writes is excluded by
/// nothing.
#[derive(Debug, Default)]
pub(super) struct Claims {
    claims: Vec<DeviceClaim>,
    devices: Vec<String>,
}

impl Claims {
    /// Looks once more, right before the program starts.
    pub(super) fn again(&self) -> Result<(), DeviceRefusal> {
        guard::again(&self.claims).map_err(|(at, why)| DeviceRefusal {
            device: self.devices.get(at).cloned().unwrap_or_default(),
            why: why.to_string(),
        })
    }

    /// For the child.
    pub(super) fn into_files(self) -> Vec<File> {
        self.claims.into_iter().map(DeviceClaim::into_file).collect()
    }
}

/// Says what is in the way, or holds the devices.
pub(super) fn claim(needs: &[Need]) -> Result<Claims, DeviceRefusal> {
    let devices: Vec<String> = needs.iter().filter_map(written).cloned().collect();
    let refused =
        |device: &String, why: &dyn Display| DeviceRefusal { device: device.clone(), why: why.to_string() };
    let mut claims = Vec::new();
    for (claim, device) in claimed(&devices).into_iter().zip(&devices) {
        claims.push(claim.map_err(|why| refused(device, &why))?);
    }
    needs.iter().try_for_each(|need| match need {
        Need::Empty { .. } | Need::Volume { .. } => Ok(()),
        Need::Shrunk { device, filesystem_max_bytes } => {
            contents::ends_before(Path::new(device), *filesystem_max_bytes)
                .map_err(|why| refused(device, &why))
        }
        Need::NoOtherFile { path, text } => {
            no_other_file(Path::new(path), text).map_err(|why| refused(path, &why))
        }
        Need::NoOtherProgram { path, sha256 } => {
            no_other_program(Path::new(path), sha256).map_err(|why| refused(path, &why))
        }
    })?;
    Ok(Claims { claims, devices })
}

/// The device of a need that its program may write anywhere.
fn written(need: &Need) -> Option<&String> {
    match need {
        Need::Empty { device } | Need::Volume { device } => Some(device),
        Need::Shrunk { .. } | Need::NoOtherFile { .. } | Need::NoOtherProgram { .. } => None,
    }
}

fn claimed(devices: &[String]) -> Vec<Result<DeviceClaim, WriteRefusal>> {
    let paths: Vec<&Path> = devices.iter().map(Path::new).collect();
    guard::claim(&paths, WantedContent::Empty, false)
}

/// Says when a file is there that is not ours.
fn no_other_file(path: &Path, ours: &str) -> Result<(), ContentsError> {
    match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(content) if content == ours.as_bytes() => Ok(()),
        Ok(_) => Err(ContentsError::OtherFile),
        Err(error) => Err(error.into()),
    }
}

fn no_other_program(path: &Path, sha256: &str) -> Result<(), ContentsError> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(_) if program::is_there(path, sha256) => Ok(()),
        Ok(_) => Err(ContentsError::AnyFile),
        Err(error) => Err(error.into()),
    }
}

/// All devices that may not be given away, with the reason.
pub(super) fn not_empty(devices: &[String]) -> Vec<DeviceRefusal> {
    let all = claimed(devices).into_iter().zip(devices);
    all.filter_map(|(claim, device)| {
        Some(DeviceRefusal { device: device.clone(), why: claim.err()?.to_string() })
    })
    .collect()
}
