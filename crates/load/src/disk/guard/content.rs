//! Whether a device holds nothing: no mark of an owner, nothing but zeros at its start, its end and the
//! samples between ([`check_empty`]), and in all that a load is going to write ([`is_zero`]).
//!
//! What comes in: an open device. What goes out: yes, or what is there and where. It never writes.

use std::fs::File;
use std::os::unix::fs::FileExt;

use linerate_sys::block;

use super::error::{DEVICE_BYTES_MIN, WriteRefusal};
use super::signatures::{self, Signature};
use crate::job::LoadError;

/// How much of the start and of the end is read.
pub(super) const EDGE_BYTES: u64 = 1 << 20;
/// Samples between the edges.
const SAMPLES: u64 = 256;
/// The same before a volume is removed, which may have been used for years: up to half a minute on drives
/// with rotating discs.
pub(super) const SAMPLES_UNDO: u64 = 4096;
/// How much is read at each.
const SAMPLE_BYTES: u64 = 4096;
/// How much is read at a time of what is going to be written.
const STEP_BYTES: u64 = 1 << 20;
/// What a piece is compared with.
static ZEROS: [u8; 4096] = [0; 4096];

fn read(device: &File, at: u64, bytes: u64) -> Result<Vec<u8>, WriteRefusal> {
    let mut content = vec![0; bytes as usize];
    device.read_exact_at(&mut content, at).map_err(|source| WriteRefusal::Read { at, source })?;
    Ok(content)
}

fn something(content: &[u8], at: u64) -> Result<(), WriteRefusal> {
    // Almost always all is zero; pieces are compared many bytes at a time.
    if content.chunks(ZEROS.len()).all(|piece| piece == &ZEROS[..piece.len()]) {
        return Ok(());
    }
    match content.iter().position(|byte| *byte != 0) {
        None => Ok(()),
        Some(sample) => Err(WriteRefusal::Data(at + sample as u64)),
    }
}

/// The first mark of an owner.
pub(super) fn mark(device: &File, size: u64) -> Result<Option<(&'static str, u64)>, WriteRefusal> {
    mark_where(device, size, &|_, _| true)
}

/// Marks of so few bytes occur among the numbers of a superblock of another owner.
const SHORT: usize = 2;

/// The first mark that is not that of `own`, whose superblock is a range of bytes.
pub(super) fn mark_beside(
    device: &File,
    size: u64,
    own: &str,
    superblock: (u64, u64),
) -> Result<Option<(&'static str, u64)>, WriteRefusal> {
    let is_chance = |signature: &Signature, byte: u64| {
        signature.mark.len() <= SHORT && (superblock.0..superblock.1).contains(&byte)
    };
    mark_where(device, size, &|signature, byte| signature.owner != own && !is_chance(signature, byte))
}

fn mark_where(
    device: &File,
    size: u64,
    is_wanted: &dyn Fn(&Signature, u64) -> bool,
) -> Result<Option<(&'static str, u64)>, WriteRefusal> {
    if size < DEVICE_BYTES_MIN {
        return Err(WriteRefusal::Small(size));
    }
    let (head, tail) = (read(device, 0, EDGE_BYTES)?, read(device, size - EDGE_BYTES, EDGE_BYTES)?);
    Ok(signatures::find_where(&head, &tail, size, is_wanted))
}

/// Lets the kernel read from the device what it has in its cache, as far as that is not newer.
pub(super) fn fresh(device: &File) -> Result<(), WriteRefusal> {
    block::forget(device).map_err(WriteRefusal::step("its cache cannot be emptied"))
}

/// Whether a device of this size seems to hold nothing: its edges, the marks of owners, samples in between.
pub(super) fn check_empty(device: &File, size: u64) -> Result<(), WriteRefusal> {
    is_empty_at(device, size, SAMPLES)
}

/// Whether no owner has left a mark, and both ends are zero.
pub(super) fn edges_are_empty(device: &File, size: u64) -> Result<(), WriteRefusal> {
    if size < DEVICE_BYTES_MIN {
        return Err(WriteRefusal::Small(size));
    }
    fresh(device)?;
    let tail_at = size - EDGE_BYTES;
    let (head, tail) = (read(device, 0, EDGE_BYTES)?, read(device, tail_at, EDGE_BYTES)?);
    if let Some((owner, byte)) = signatures::find(&head, &tail, size) {
        return Err(WriteRefusal::Mark { owner, byte });
    }
    something(&head, 0)?;
    something(&tail, tail_at)
}

/// The same as [`check_empty`], with so many samples.
pub(super) fn is_empty_at(device: &File, size: u64, samples: u64) -> Result<(), WriteRefusal> {
    edges_are_empty(device, size)?;
    for sample in 1..samples {
        // A multiple of the pieces that are read.
        let at = size / samples * sample / SAMPLE_BYTES * SAMPLE_BYTES;
        something(&read(device, at, SAMPLE_BYTES.min(size - at))?, at)?;
    }
    Ok(())
}

/// Whether both ends and [`SAMPLES_UNDO`] samples between are zero, but for ranges (start and end).
pub(super) fn is_zero_beside(device: &File, size: u64, made: &[(u64, u64)]) -> Result<(), WriteRefusal> {
    if size < DEVICE_BYTES_MIN {
        return Err(WriteRefusal::Small(size));
    }
    fresh(device)?;
    let mut made = made.to_vec();
    made.sort_unstable();
    let is_made = |at: u64| {
        let behind = made.partition_point(|(start, _)| *start <= at);
        behind.checked_sub(1).and_then(|last| made.get(last)).is_some_and(|(_, end)| at < *end)
    };
    let edge = |start: u64| (0..EDGE_BYTES / SAMPLE_BYTES).map(move |n| start + n * SAMPLE_BYTES);
    let between = (1..SAMPLES_UNDO).map(|sample| size / SAMPLES_UNDO * sample / SAMPLE_BYTES * SAMPLE_BYTES);
    for at in edge(0).chain(between).chain(edge((size - EDGE_BYTES) / SAMPLE_BYTES * SAMPLE_BYTES)) {
        if !is_made(at) {
            something(&read(device, at, SAMPLE_BYTES.min(size - at))?, at)?;
        }
    }
    Ok(())
}

/// Whether all of the `used` bytes from `start` on are zero, and none of them is in the first or last MiB.
/// `go_on` is asked in between.
pub(super) fn is_zero(
    device: &File,
    size: u64,
    (start, used): (u64, u64),
    go_on: &mut dyn FnMut() -> Result<(), LoadError>,
) -> Result<(), WriteRefusal> {
    let end = start.checked_add(used).filter(|end| end.checked_add(EDGE_BYTES).is_some_and(|e| e <= size));
    let Some(end) = end.filter(|_| start >= EDGE_BYTES) else {
        return Err(WriteRefusal::Edges { start, end: start.saturating_add(used), size });
    };
    let mut at = start;
    while at < end {
        go_on().map_err(|stopped| WriteRefusal::Stopped(Box::new(stopped)))?;
        let step = STEP_BYTES.min(end - at);
        something(&read(device, at, step)?, at)?;
        at += step;
    }
    Ok(())
}
