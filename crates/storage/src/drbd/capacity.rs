//! Whether a device has the capacity for DRBD's metadata beside its data.

use linerate_model::step::Contents;

use super::metadata::{DeviceLayout, MetadataLocation, metadata_bytes};
use super::resource::{Overlap, SetupError};

/// Internal metadata end at a whole block of this size.
const BLOCK: u64 = 4096;

/// Shares a device.
///
/// # Errors
/// The device is too small, or a filesystem is where metadata would go; with the arithmetic and a hint.
pub fn device_layout(
    host: &str,
    device: &str,
    contents: &Contents,
    location: &MetadataLocation,
    peers: u64,
) -> Result<DeviceLayout, SetupError> {
    let device_bytes = contents.size_bytes / BLOCK * BLOCK;
    let needed = metadata_bytes(device_bytes, peers);
    let layout = match location {
        MetadataLocation::Internal => {
            let data_bytes = device_bytes.saturating_sub(needed);
            DeviceLayout { device_bytes, metadata_bytes: needed, data_bytes }
        }
        MetadataLocation::External { device, size_bytes, .. } => {
            if *size_bytes < needed {
                return Err(SetupError::MetadataDevice {
                    host: host.to_owned(),
                    device: device.clone(),
                    seen: *size_bytes,
                    needed,
                });
            }
            DeviceLayout { device_bytes, metadata_bytes: 0, data_bytes: device_bytes }
        }
    };
    if layout.data_bytes == 0 {
        return Err(SetupError::TooSmall {
            host: host.to_owned(),
            device: device.to_owned(),
            seen: device_bytes,
            needed,
        });
    }
    let fits = contents.filesystem_bytes.is_some_and(|bytes| bytes <= layout.data_bytes);
    match &contents.filesystem {
        Some(kind) if !fits => Err(SetupError::Filesystem(Box::new(Overlap {
            host: host.to_owned(),
            device: device.to_owned(),
            kind: kind.clone(),
            filesystem_bytes: contents.filesystem_bytes.unwrap_or(device_bytes),
            layout,
            needed,
            advice: advice(kind, device, layout),
        }))),
        _ => Ok(layout),
    }
}

/// What to do about a filesystem that overlaps the metadata.
fn advice(kind: &str, device: &str, layout: DeviceLayout) -> String {
    let outside = format!(
        "put the metadata on a device of their own of at least {} bytes (--meta-disk), or make {device} larger by as much",
        layout.metadata_bytes
    );
    if kind == "ext" {
        // resize2fs takes KiB; whole blocks of 4 KiB are rounded down.
        let kib = layout.data_bytes / BLOCK * BLOCK / 1024;
        format!("unmount it, `e2fsck -f {device}`, `resize2fs {device} {kib}K`; or {outside}")
    } else {
        format!("{kind} cannot be shrunk: {outside}")
    }
}
