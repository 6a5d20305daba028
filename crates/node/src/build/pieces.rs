//! Zeros over what a build left, piece by piece: each is read right before it is overwritten, and one that
//! nothing explains is left.
//!
//! In: an open device, ranges, and what may stand in a piece. Out: the ranges that were left. A program that
//! writes between the read of a mebibyte and the zeros over it loses that write: the kernel has no call that
//! compares and writes.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::os::unix::fs::FileExt;

/// How much is read and written at a time.
const STEP: u64 = 1 << 20;
/// Ranges that are named at most.
const NAMED: usize = 4;

/// Whether a piece that begins at a byte may be overwritten.
pub(super) type Explains<'a> = &'a dyn Fn(u64, &[u8]) -> bool;

pub(super) fn is_zero(piece: &[u8]) -> bool {
    piece.iter().all(|byte| *byte == 0)
}

/// Ranges of bytes in order, neighbours joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    fn push(&mut self, start: u64, end: u64) {
        match self.0.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => self.0.push((start, end)),
        }
    }

    pub(super) fn extend(&mut self, other: Self) {
        other.0.into_iter().for_each(|(start, end)| self.push(start, end));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first byte.
    pub(super) fn first(&self) -> Option<u64> {
        self.0.first().map(|(start, _)| *start)
    }

    /// `bytes 0 to 4096 and 8192 to 12288`.
    pub(super) fn says(&self) -> String {
        let name = |(start, end): &(u64, u64)| format!("{start} to {end}");
        let named: Vec<String> = self.0.iter().take(NAMED).map(name).collect();
        let more = self.0.len() - named.len();
        let rest = if more == 0 { String::new() } else { format!(" and {more} other ranges") };
        format!("bytes {}{rest}", named.join(", "))
    }
}

/// What of a range nothing explains.
pub(super) fn unexplained(
    file: &File,
    (start, end): (u64, u64),
    piece: usize,
    explains: Explains<'_>,
) -> io::Result<Ranges> {
    let mut found = Ranges::default();
    each(file, (start, end), piece, &mut |at, content| {
        if !is_zero(content) && !explains(at, content) {
            found.push(at, at + content.len() as u64);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Writes zeros over what is explained in a range, and returns what is not and was left. The caller flushes.
pub(super) fn zero(
    file: &File,
    (start, end): (u64, u64),
    piece: usize,
    explains: Explains<'_>,
) -> io::Result<Ranges> {
    let mut left = Ranges::default();
    let zeros = vec![0; piece];
    each(file, (start, end), piece, &mut |at, content| {
        if is_zero(content) {
            return Ok(());
        }
        if explains(at, content) {
            return file.write_all_at(&zeros[..content.len()], at);
        }
        left.push(at, at + content.len() as u64);
        Ok(())
    })?;
    Ok(left)
}

fn each(
    file: &File,
    (start, end): (u64, u64),
    piece: usize,
    work: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let step = (STEP / piece as u64).max(1) * piece as u64;
    let mut content = vec![0; usize::try_from(step).map_err(io::Error::other)?];
    let mut at = start;
    while at < end {
        let length = step.min(end - at);
        let part = &mut content[..length as usize];
        file.read_exact_at(part, at)?;
        for (number, piece_of) in part.chunks(piece).enumerate() {
            work(at + (number * piece) as u64, piece_of)?;
        }
        at += length;
    }
    Ok(())
}

/// The pieces of a device at a moment, to be known again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Picture(Vec<u64>);

/// Length of a piece of a picture, bytes.
pub(super) const PICTURE_PIECE: usize = 4096;

fn hash(piece: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(piece);
    hasher.finish()
}

impl Picture {
    /// Of the first bytes.
    pub(super) fn of(file: &File, bytes: u64) -> io::Result<Self> {
        let mut all = Vec::new();
        each(file, (0, bytes), PICTURE_PIECE, &mut |_, piece| {
            all.push(hash(piece));
            Ok(())
        })?;
        Ok(Self(all))
    }

    /// Whether this piece stood there.
    pub(super) fn had(&self, at: u64, piece: &[u8]) -> bool {
        let index = usize::try_from(at / PICTURE_PIECE as u64).unwrap_or(usize::MAX);
        self.0.get(index) == Some(&hash(piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_explained_is_left_and_named() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(3 << 20).unwrap();
        for (byte, content) in
            [(4096, b"ours"), (8192, b"theirs".first_chunk().unwrap()), ((2 << 20) + 5, b"ours")]
        {
            file.write_all_at(content, byte).unwrap();
        }
        let ours = |_: u64, piece: &[u8]| piece.windows(4).any(|four| four == b"ours");
        let all = (0, 3 << 20);
        assert_eq!(unexplained(&file, all, 4096, &ours).unwrap().says(), "bytes 8192 to 12288");
        assert_eq!(zero(&file, all, 4096, &ours).unwrap().first(), Some(8192));
        let nothing = unexplained(&file, all, 512, &|_, _| false).unwrap();
        assert_eq!(nothing, Ranges(vec![(8192, 8192 + 512)]), "the others are zeros");
        let picture = Picture::of(&file, 1 << 20).unwrap();
        let mut piece = vec![0; 4096];
        assert!(picture.had(4096, &piece) && !picture.had(8192, &piece) && !picture.had(1 << 20, &piece));
        piece[..4].copy_from_slice(b"thei");
        assert!(picture.had(8192, &piece));
        let mut many = Ranges::default();
        (0..6).for_each(|n| many.push(n * 10, n * 10 + 1));
        assert!(many.says().ends_with("30 to 31 and 2 other ranges"), "{}", many.says());
    }
}
