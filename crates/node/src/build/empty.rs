//! Whether a device holds nothing: nobody has it in use, and its beginning and end, where everything that can stand on a device has its mark, are all
//! zero.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// So much at both ends has to be zero, bytes: the marks of filesystems, LVM, LUKS and swap stand in the first 68 KiB, those of md, DRBD and the second
/// table of partitions in the last 128 KiB.
const EDGE: u64 = 1 << 20;

/// Says why a device is not empty.
pub(super) fn check(path: &Path) -> Result<(), String> {
    let kind = path.metadata().map_err(|e| format!("cannot be looked at: {e}"))?.file_type();
    if !kind.is_block_device() {
        return Err("is no block device".to_owned());
    }
    // With `O_EXCL` the kernel refuses a device that is mounted, swapped to, part of a volume or array, or has a part of which that is true.
    let mut file =
        OpenOptions::new().read(true).custom_flags(EXCLUSIVE).open(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::ResourceBusy => "is in use: mounted, swap, or part of a volume".to_owned(),
            _ => format!("cannot be opened: {e}"),
        })?;
    let size = file.seek(SeekFrom::End(0)).map_err(|e| format!("has no size: {e}"))?;
    if size == 0 {
        return Err("has no size".to_owned());
    }
    for begin in [0, size.saturating_sub(EDGE)] {
        file.seek(SeekFrom::Start(begin)).map_err(|e| format!("cannot be read at {begin}: {e}"))?;
        let mut edge = Vec::new();
        file.by_ref()
            .take(EDGE)
            .read_to_end(&mut edge)
            .map_err(|e| format!("cannot be read at {begin}: {e}"))?;
        if let Some(at) = edge.iter().position(|byte| *byte != 0) {
            return Err(format!("is not empty: byte {} is not zero", begin + at as u64));
        }
    }
    Ok(())
}

/// `O_EXCL` of Linux, the same number on all of its machines but those that are not supported here.
const EXCLUSIVE: i32 = 0o200;
