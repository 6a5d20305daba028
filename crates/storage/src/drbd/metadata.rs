//! Size of DRBD's metadata, and whether they are there.

use schemars::JsonSchema;
use serde::Serialize;

/// Superblock (4 KiB) and activity log (32 KiB), in sectors of 512 bytes.
const FIXED_SECTORS: u64 = 72;
/// Sectors of data for which the bitmap of one peer has 4 KiB: a bit for 4 KiB of data.
const DATA_PER_BITMAP_BLOCK: u64 = 1 << 18;
const BITMAP_BLOCK_SECTORS: u64 = 8;
const SECTOR: u64 = 512;

/// Where metadata are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MetadataLocation {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeviceLayout {
    /// Size of the device, bytes.
    pub device_bytes: u64,
    /// Bytes of metadata.
    pub metadata_bytes: u64,
    /// Bytes of data.
    pub data_bytes: u64,
}

/// Size of the metadata for a device or for data of this size: the users' guide of LINBIT, "estimating
/// metadata size", `ceil(sectors / 2^18) * 8 * peers + 72` sectors.
#[must_use]
pub fn metadata_bytes(device_bytes: u64, peers: u64) -> u64 {
    let blocks = (device_bytes / SECTOR).div_ceil(DATA_PER_BITMAP_BLOCK);
    (blocks.saturating_mul(BITMAP_BLOCK_SECTORS).saturating_mul(peers)).saturating_add(FIXED_SECTORS) * SECTOR
}
