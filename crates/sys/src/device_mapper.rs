//! State of device-mapper targets, as `dmsetup status` shows it (linux/dm-ioctl.h). Reading it needs root and
//! changes nothing.
//!
//! In: the number of a device. Out: its targets, each with its status line.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;

use crate::block::Number;

/// The listener of the device mapper.
const CONTROL: &str = "/dev/mapper/control";
/// `DM_TABLE_STATUS`: `_IOWR(0xfd, 12, struct dm_ioctl)`.
const DM_TABLE_STATUS: libc::c_ulong = 0xc138_fd0c;
/// Size of `struct dm_ioctl`, bytes; offsets of its fields.
const HEAD: usize = 312;
const DATA_SIZE_AT: usize = 12;
const DATA_START_AT: usize = 16;
const COUNT_AT: usize = 20;
const FLAGS_AT: usize = 28;
const DEVICE_AT: usize = 40;
/// `DM_BUFFER_FULL_FLAG`: there was more to say.
const BUFFER_FULL: u32 = 1 << 8;
/// `DM_NOFLUSH_FLAG`: do not wait for I/O in flight.
const NO_FLUSH: u32 = 1 << 11;
/// `struct dm_target_spec`: size, and offsets of `next` and `target_type`.
const SPEC: usize = 40;
const NEXT_AT: usize = 20;
const KIND_AT: usize = 24;
/// Buffer for the answer, bytes: a volume of a thousand legs needs less.
const ROOM: usize = 64 << 10;
/// Most targets that are read.
const TARGETS_MAX: usize = 1024;

/// One target of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmTarget {
    /// Its kind: `raid`, `mirror`, `linear`.
    pub kind: String,
    /// Its status line.
    pub state: String,
}

/// What the targets of a device say.
pub fn status(device: Number) -> io::Result<Vec<DmTarget>> {
    let control = OpenOptions::new().read(true).write(true).open(CONTROL)?;
    // Whole words, so that the kernel finds its numbers where they are aligned.
    let mut words = vec![0_u64; (HEAD + ROOM) / 8];
    let size = words.len() * 8;
    let mut put = |at: usize, value: u32| {
        let shift = 32 * (at / 4 % 2);
        // Little-endian machines alone are supported here; others answer with an error, for the version is
        // wrong.
        words[at / 8] |= u64::from(value) << shift;
    };
    put(0, 4);
    put(DATA_SIZE_AT, u32::try_from(size).map_err(io::Error::other)?);
    put(DATA_START_AT, HEAD as u32);
    put(FLAGS_AT, NO_FLUSH);
    // `huge_encode_dev` of linux/kdev_t.h.
    put(DEVICE_AT, (device.minor & 0xff) | (device.major << 8) | ((device.minor & !0xff) << 12));
    // SAFETY: the buffer is aligned, as large as the size at `DATA_SIZE_AT`, and lives until the call is
    // over.
    if unsafe { libc::ioctl(control.as_raw_fd(), DM_TABLE_STATUS as _, words.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    targets(&bytes).ok_or_else(|| io::Error::other("the device mapper's answer is not understood"))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Text up to its end or a zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn targets(bytes: &[u8]) -> Option<Vec<DmTarget>> {
    let (start, count) = (word(bytes, DATA_START_AT)? as usize, word(bytes, COUNT_AT)? as usize);
    if word(bytes, FLAGS_AT)? & BUFFER_FULL != 0 || count > TARGETS_MAX {
        return None;
    }
    let data = bytes.get(start..)?;
    let mut at = 0;
    let mut targets = Vec::new();
    for _ in 0..count {
        let kind = text(data.get(at + KIND_AT..at + SPEC)?);
        targets.push(DmTarget { kind, state: text(data.get(at + SPEC..)?) });
        // Counted from the first one.
        at = word(data, at + NEXT_AT)? as usize;
    }
    Some(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Vec<u8> {
        let mut bytes = vec![0; HEAD + 256];
        bytes[DATA_START_AT..DATA_START_AT + 4].copy_from_slice(&(HEAD as u32).to_ne_bytes());
        bytes[COUNT_AT..COUNT_AT + 4].copy_from_slice(&2_u32.to_ne_bytes());
        for (at, next, kind, state) in [(0, 96_u32, "raid", "raid10 4 AADA"), (96, 192, "linear", "")] {
            let spec = HEAD + at;
            bytes[spec + NEXT_AT..spec + NEXT_AT + 4].copy_from_slice(&next.to_ne_bytes());
            bytes[spec + KIND_AT..spec + KIND_AT + kind.len()].copy_from_slice(kind.as_bytes());
            bytes[spec + SPEC..spec + SPEC + state.len()].copy_from_slice(state.as_bytes());
        }
        bytes
    }

    #[test]
    fn targets_are_read_and_torn_answers_are_none() {
        let bytes = answer();
        let told = targets(&bytes).unwrap();
        assert_eq!(told[0], DmTarget { kind: "raid".into(), state: "raid10 4 AADA".into() });
        assert_eq!((told.len(), told[1].kind.as_str()), (2, "linear"));
        for end in 0..HEAD + 96 + SPEC {
            assert_eq!(targets(&bytes[..end]), None, "{end}");
        }
        let mut lost = bytes;
        lost[HEAD + NEXT_AT..HEAD + NEXT_AT + 4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(targets(&lost), None);
    }

    #[test]
    fn a_device_that_is_no_volume_says_nothing() {
        // Without the device mapper, without the right, or without such a volume.
        assert!(status(Number { major: 1, minor: 250 }).is_err());
    }
}
