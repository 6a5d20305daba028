//! Whether the devices of a step are still those that it was done to: letters change over a reboot, and
//! drives are exchanged.
//!
//! In: where the step leaves an identifier of its own, and what stood there right after it. Out: the devices
//! that are others now. Only reads.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

use linerate_load::guard;
use linerate_model::step::{Own, Stamp};
use linerate_sys::block;

use super::device_error::DeviceError;
use super::pieces;

/// Pieces in which a device is compared with zeros.
const SECTOR: usize = 512;
/// How much of the end of a device is read.
const TAIL_BYTES: u64 = 1 << 20;

/// What stands there on each device. A device that cannot be read has none, and is looked at by its marks
/// later.
pub(super) fn read(stamp: &Stamp) -> BTreeMap<String, Vec<u8>> {
    let one =
        |device: &String| Some((device.clone(), at(stamp, device).ok().filter(|bytes| !is_zero(bytes))?));
    stamp.devices.iter().filter_map(one).collect()
}

/// What is wrong with devices before a step is taken back. `is_whole`: the step had ended well.
pub(super) fn strangers(stamp: &Stamp, left: &BTreeMap<String, Vec<u8>>, is_whole: bool) -> Vec<String> {
    let wrong = |device: &String| {
        stranger(stamp, device, left.get(device), is_whole).err().map(|why| format!("{device}: {why}"))
    };
    stamp.devices.iter().filter_map(wrong).collect()
}

/// Whether a device carries what the step left there: its identifier, or where the step was killed before
/// that was known a mark that is the step's.
pub(super) fn is_carried(stamp: &Stamp, device: &str, left: Option<&Vec<u8>>) -> bool {
    match left {
        Some(left) => at(stamp, device).is_ok_and(|now| now == *left),
        None => has_own_mark(stamp, device).unwrap_or(false),
    }
}

/// Whether the mark on a device is one of the step, by [`Own`].
fn has_own_mark(stamp: &Stamp, device: &str) -> Result<bool, DeviceError> {
    let unread = DeviceError::step("it cannot be read");
    let mut file = File::open(device).map_err(&unread)?;
    block::forget(&file).map_err(&unread)?;
    match &stamp.own {
        Own::Any => Ok(false),
        Own::Named { at, bytes, name } => {
            let mut text = vec![0; *bytes];
            file.read_exact_at(&mut text, *at).map_err(&unread)?;
            Ok(is_named(&text, name))
        }
        Own::Alone { ranges, bytes } => {
            let size = file.seek(SeekFrom::End(0)).map_err(&unread)?;
            let is_own = |at: u64, _: &[u8]| ranges.iter().any(|(start, end)| (*start..*end).contains(&at));
            for part in [(0, size.min(*bytes)), (size.saturating_sub(TAIL_BYTES).max(*bytes), size)] {
                if !pieces::unexplained(&file, part, SECTOR, &is_own).map_err(&unread)?.is_empty() {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Whether a text that ends with its first zero byte is a name, behind a host and a colon or alone, and cut
/// to fit.
fn is_named(text: &[u8], name: &str) -> bool {
    let fits = &name.as_bytes()[..name.len().min(text.len().saturating_sub(1))];
    let stated = text.split(|byte| *byte == 0).next().unwrap_or_default();
    stated.rsplit(|byte| *byte == b':').next() == Some(fits)
}

fn at(stamp: &Stamp, device: &str) -> Result<Vec<u8>, DeviceError> {
    let mut bytes = vec![0; stamp.bytes];
    let mut file = File::open(device).map_err(DeviceError::step("it cannot be read"))?;
    let read = block::forget(&file).and_then(|()| {
        let page = if stamp.in_last_page { last_page(file.seek(SeekFrom::End(0))?)? } else { 0 };
        file.read_exact_at(&mut bytes, page + stamp.at)
    });
    read.map_err(|source| DeviceError::Identifier { at: stamp.at, source })?;
    Ok(bytes)
}

/// Where the last whole 4 KiB of a device begin.
fn last_page(size: u64) -> io::Result<u64> {
    (size & !4095).checked_sub(4096).ok_or_else(|| io::Error::other(format!("it has {size} bytes")))
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn stranger(stamp: &Stamp, device: &str, left: Option<&Vec<u8>>, is_whole: bool) -> Result<(), DeviceError> {
    let now = at(stamp, device)?;
    if left == Some(&now) {
        return Ok(());
    }
    // Metadata behind data: marks at the front are of the data, or of those who use the device since. Nothing
    // of the step is there any more, and the command that would remove it finds none and writes nothing.
    if stamp.in_last_page && is_zero(&now) {
        return Ok(());
    }
    // Taken back half before, or a step that failed before it wrote: then no mark is there, or one that the
    // step itself leaves. An array or a physical volume that others have made since has the same kind of
    // mark.
    let mark = guard::mark(Path::new(device))?;
    let is_of_step = |owner: &str| left.is_none() && stamp.marks.iter().any(|mark| owner.starts_with(mark));
    let is_own = match mark {
        Some((owner, _)) if is_of_step(owner) => {
            is_whole || stamp.own == Own::Any || has_own_mark(stamp, device)?
        }
        _ => false,
    };
    match mark {
        Some((owner, byte)) if !is_own => Err(DeviceError::OtherMark { owner, byte }),
        None if !is_zero(&now) => Err(DeviceError::Replaced),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(device: &Path) -> Stamp {
        Stamp {
            devices: vec![device.display().to_string()],
            at: 544,
            in_last_page: false,
            bytes: 4,
            marks: &["LVM"],
            own: Own::Any,
        }
    }

    #[test]
    fn an_array_is_known_by_its_name_with_its_host_or_without() {
        let text = |text: &str| {
            let mut bytes = vec![0; 32];
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            bytes
        };
        for own in ["data", "host:data"] {
            assert!(is_named(&text(own), "data"), "{own}");
        }
        for other in ["", "datab", "data:host", "host:other", "ata", "host:"] {
            assert!(!is_named(&text(other), "data"), "{other}");
        }
        let long = "a".repeat(40);
        assert!(is_named(&text(&long[..31]), &long) && !is_named(&text(&long[..30]), &long));
    }

    #[test]
    fn a_device_is_known_by_what_was_left_on_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive");
        let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        file.set_len(8 << 20).unwrap();
        assert_eq!(read(&stamp(&path)), BTreeMap::new(), "nothing was left");
        file.write_all_at(&[1, 2, 3, 0xaf], 544).unwrap();
        let left = read(&stamp(&path));
        assert_eq!(left.values().collect::<Vec<_>>(), [&[1, 2, 3, 0xaf]]);
        assert_eq!(strangers(&stamp(&path), &left, true), Vec::<String>::new());
        let last = Stamp { in_last_page: true, at: 40, ..stamp(&path) };
        file.write_all_at(&[9, 9, 9, 9], (8 << 20) - 4096 + 40).unwrap();
        assert_eq!(read(&last).values().collect::<Vec<_>>(), [&[9, 9, 9, 9]]);
        // Wiped by an undo that was killed then: the data of a replica stay, with whatever mark they have.
        let front = File::options().write(true).open(&path).unwrap();
        front.write_all_at(&[0x53, 0xef], 1080).unwrap();
        let wiped = read(&last);
        file.write_all_at(&[0; 4], (8 << 20) - 4096 + 40).unwrap();
        assert_eq!(strangers(&last, &wiped, true), Vec::<String>::new());
        front.write_all_at(&[0; 2], 1080).unwrap();
        // Another one by the same name. That this is a file and no device is as good a reason as a mark.
        file.write_all_at(&[1, 2, 3, 4], 544).unwrap();
        assert_eq!(strangers(&stamp(&path), &left, true).len(), 1);
        std::fs::remove_file(&path).unwrap();
        assert!(strangers(&stamp(&path), &left, true)[0].contains("cannot be read"));
    }
}
