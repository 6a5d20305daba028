//! How much room DRBD's metadata take, and whether it is there.

use linerate_model::step::Contents;
use serde::Serialize;

use super::resource::{Overlap, SetupError};

/// Superblock (4 KiB) and activity log (32 KiB), in sectors of 512 bytes.
const FIXED_SECTORS: u64 = 72;
/// Sectors of data for which the bitmap of one peer has 4 KiB: a bit for 4 KiB of data.
const DATA_PER_BITMAP_BLOCK: u64 = 1 << 18;
const BITMAP_BLOCK_SECTORS: u64 = 8;
const SECTOR: u64 = 512;
/// Internal metadata end at a whole block of this size.
const BLOCK: u64 = 4096;

/// Where metadata are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// At the end of the data's own device.
    Internal,
    /// On a device of their own.
    External {
        /// Path.
        device: String,
        /// Size, bytes.
        size_bytes: u64,
        /// The kernel's number of the device.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u64>,
        /// `ext`, `xfs`, where one is on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filesystem: Option<String>,
    },
}

/// How a device is shared between data and metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Room {
    /// Size of the device, bytes.
    pub device_bytes: u64,
    /// Of which metadata, bytes.
    pub metadata_bytes: u64,
    /// Of which data, bytes.
    pub data_bytes: u64,
}

/// Size of the metadata for a device or for data of this size: the users' guide of LINBIT, "estimating metadata size",
/// `ceil(sectors / 2^18) * 8 * peers + 72` sectors.
#[must_use]
pub fn metadata_bytes(device_bytes: u64, peers: u64) -> u64 {
    let blocks = (device_bytes / SECTOR).div_ceil(DATA_PER_BITMAP_BLOCK);
    (blocks.saturating_mul(BITMAP_BLOCK_SECTORS).saturating_mul(peers)).saturating_add(FIXED_SECTORS) * SECTOR
}

/// Shares a device.
///
/// # Errors
/// There is no room, or a filesystem is where metadata would go; with the arithmetic and the way out.
pub fn room(
    host: &str,
    device: &str,
    contents: &Contents,
    place: &Place,
    peers: u64,
) -> Result<Room, SetupError> {
    let device_bytes = contents.size_bytes / BLOCK * BLOCK;
    let needed = metadata_bytes(device_bytes, peers);
    let room = match place {
        Place::Internal => {
            let data_bytes = device_bytes.saturating_sub(needed);
            Room { device_bytes, metadata_bytes: needed, data_bytes }
        }
        Place::External { device, size_bytes, .. } => {
            if *size_bytes < needed {
                return Err(SetupError::MetadataDevice {
                    host: host.to_owned(),
                    device: device.clone(),
                    seen: *size_bytes,
                    needed,
                });
            }
            Room { device_bytes, metadata_bytes: 0, data_bytes: device_bytes }
        }
    };
    if room.data_bytes == 0 {
        return Err(SetupError::TooSmall {
            host: host.to_owned(),
            device: device.to_owned(),
            seen: device_bytes,
            needed,
        });
    }
    let fits = contents.filesystem_bytes.is_some_and(|bytes| bytes <= room.data_bytes);
    match &contents.filesystem {
        Some(kind) if !fits => Err(SetupError::Filesystem(Box::new(Overlap {
            host: host.to_owned(),
            device: device.to_owned(),
            kind: kind.clone(),
            filesystem_bytes: contents.filesystem_bytes.unwrap_or(device_bytes),
            room,
            needed,
            way_out: way_out(kind, device, room),
        }))),
        _ => Ok(room),
    }
}

/// What to do about a filesystem that is in the way.
fn way_out(kind: &str, device: &str, room: Room) -> String {
    let outside = format!(
        "put the metadata on a device of their own of at least {} bytes (--meta-disk), or make {device} larger by as much",
        room.metadata_bytes
    );
    if kind == "ext" {
        // resize2fs takes KiB; whole blocks of 4 KiB are rounded down.
        let kib = room.data_bytes / BLOCK * BLOCK / 1024;
        format!("unmount it, `e2fsck -f {device}`, `resize2fs {device} {kib}K`; or {outside}")
    } else {
        format!("{kind} cannot be shrunk: {outside}")
    }
}
