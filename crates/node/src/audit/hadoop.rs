//! The data folder of an HDFS data node: block files `blk_N` and their metadata `blk_N_G.meta`.
//!
//! The format is that of `BlockMetadataHeader` and `DataChecksum` in Hadoop: two bytes of version (1), a byte
//! for the kind of checksum (0 none, 1 CRC32, 2 CRC32C), four bytes for the bytes that each covers, then four
//! bytes for each piece of the block, all big-endian.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use linerate_model::audit::{AuditPart, Harm};

use super::auditor::{Auditor, Inside, gap};

pub(super) struct Hadoop;

/// Length of the head of a metadata file.
const HEAD_BYTES: u64 = 7;
/// Blocks of one folder that are held in memory at a time, about 50 bytes each. Folders of data nodes have
/// some hundred, those of old versions some ten thousand.
const HELD_MAX: usize = 200_000;
/// Piece of a block that one checksum may cover, bytes; Hadoop has 512.
const PIECE_BYTES_MAX: u32 = 1 << 20;
/// Names that are looked at to recognise a folder.
const NAMES_MAX: usize = 1000;

/// What belongs to a number.
#[derive(Default)]
struct Pair {
    block: bool,
    /// Generation of the newest metadata file.
    generation: Option<u64>,
    /// How many older ones there are.
    older: u32,
}

/// What a name says.
#[derive(Debug, PartialEq, Eq)]
enum Name {
    Block(i64),
    Meta(i64, u64),
    Other,
}

fn parse(name: &str) -> Name {
    let Some(rest) = name.strip_prefix("blk_") else { return Name::Other };
    if let Some(rest) = rest.strip_suffix(".meta") {
        let parts = rest.rsplit_once('_').and_then(|(n, g)| Some((n.parse().ok()?, g.parse().ok()?)));
        return parts.map_or(Name::Other, |(number, generation)| Name::Meta(number, generation));
    }
    rest.parse().map_or(Name::Other, Name::Block)
}

fn names(folder: &Path) -> io::Result<impl Iterator<Item = OsString> + use<>> {
    let files = fs::read_dir(folder)?.flatten().filter(|e| e.file_type().is_ok_and(|kind| kind.is_file()));
    Ok(files.map(|entry| entry.file_name()))
}

impl Auditor for Hadoop {
    fn recognises(&self, folder: &Path) -> bool {
        let version = |path: &str| {
            fs::read_to_string(folder.join(path)).is_ok_and(|text| text.contains("storageType=DATA_NODE"))
        };
        let named = ["finalized", "current/finalized"].iter().any(|inner| folder.join(inner).is_dir())
            || folder.ends_with("finalized");
        let holds = || {
            names(folder).is_ok_and(|names| {
                names.take(NAMES_MAX).any(|n| n.to_str().is_some_and(|n| parse(n) != Name::Other))
            })
        };
        version("current/VERSION") || version("VERSION") || named || holds()
    }

    fn enters(&self, _: &Path) -> bool {
        true
    }

    fn look(&self, place: &Inside<'_>, part: &mut AuditPart) -> io::Result<()> {
        // What was being written at a reset is decided by the data node itself when it starts.
        let open = place.inner.iter().any(|name| name == "rbw" || name == "tmp");
        let blocks = names(&place.path())?.filter(|n| n.to_str().is_some_and(|n| parse(n) != Name::Other));
        let slices = blocks.count() / HELD_MAX + 1;
        for slice in 0..slices {
            for (number, pair) in pairs(place, slice, slices)? {
                if place.is_stopped() {
                    return Ok(());
                }
                if open {
                    part.add(
                        "open",
                        Harm::Fine,
                        "being written (rbw, tmp): the data node settles them",
                        0,
                        String::new,
                    );
                } else {
                    judge(place, number, &pair, part)?;
                }
            }
        }
        Ok(())
    }
}

/// Pairs of a part of the numbers of a folder.
fn pairs(place: &Inside<'_>, slice: usize, slices: usize) -> io::Result<HashMap<i64, Pair>> {
    let mut pairs: HashMap<i64, Pair> = HashMap::new();
    let mine = |number: i64| number.unsigned_abs() % slices as u64 == slice as u64;
    for name in names(&place.path())? {
        match name.to_str().map(parse) {
            Some(Name::Block(number)) if mine(number) => pairs.entry(number).or_default().block = true,
            Some(Name::Meta(number, generation)) if mine(number) => {
                let pair = pairs.entry(number).or_default();
                pair.older += u32::from(pair.generation.is_some());
                pair.generation = pair.generation.max(Some(generation));
            }
            _ => {}
        }
    }
    Ok(pairs)
}

fn judge(place: &Inside<'_>, number: i64, pair: &Pair, part: &mut AuditPart) -> io::Result<()> {
    let block = format!("blk_{number}");
    let example = |what: String| format!("{}: {what}", place.name(block.as_ref()));
    let path = place.path();
    let length = |name: &str| match fs::symlink_metadata(path.join(name)) {
        Ok(metadata) => Ok(Some(metadata.len())),
        // It went in the meantime: the data node works on.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    if pair.older > 0 {
        let words = "metadata files of older generations beside the newest";
        part.add("meta-older", Harm::Remark, words, 0, || example(format!("{} of them", pair.older)));
    }
    let Some(generation) = pair.generation else {
        let Some(bytes) = length(&block)? else { return Ok(()) };
        if bytes == 0 {
            let words = "blocks of zero bytes, and their metadata are gone too";
            part.add("empty-alone", Harm::Loss, words, 0, || example("no metadata".into()));
        } else {
            let words = "blocks whose metadata file is gone: the data cannot be verified";
            part.add("meta-missing", Harm::Loss, words, bytes, || example(format!("{bytes} bytes")));
        }
        return Ok(());
    };
    let meta = format!("blk_{number}_{generation}.meta");
    let Some(meta_bytes) = length(&meta)? else { return Ok(()) };
    if !pair.block {
        let words = "metadata whose block is gone";
        part.add("block-missing", Harm::Loss, words, meta_bytes, || example(format!("only {meta}")));
        return Ok(());
    }
    let Some(bytes) = length(&block)? else { return Ok(()) };
    if meta_bytes == 0 {
        let words = "metadata files of zero bytes";
        part.add("meta-empty", Harm::Loss, words, bytes, || example(format!("{meta} beside {bytes} bytes")));
        return Ok(());
    }
    covered(place, &block, bytes, &meta, meta_bytes, part)
}

/// A block and its metadata, both with something in them.
fn covered(
    place: &Inside<'_>,
    block: &str,
    bytes: u64,
    meta: &str,
    meta_bytes: u64,
    part: &mut AuditPart,
) -> io::Result<()> {
    let example = |what: String| format!("{}: {what}", place.name(block.as_ref()));
    let mut file = BufReader::new(File::open(place.path().join(meta))?);
    let mut head = [0_u8; HEAD_BYTES as usize];
    let (kind, piece) = match file.read_exact(&mut head) {
        Ok(()) if head[..2] == [0, 1] => (head[2], u32::from_be_bytes([head[3], head[4], head[5], head[6]])),
        _ => (u8::MAX, 0),
    };
    if kind > 2 || (kind > 0 && !(1..=PIECE_BYTES_MAX).contains(&piece)) {
        let words = "metadata whose head makes no sense";
        part.add("meta-damaged", Harm::Loss, words, bytes, || {
            example(format!("{meta} begins with {head:02x?}"))
        });
        return Ok(());
    }
    if kind == 0 {
        part.add("no-sums", Harm::Remark, "blocks that are written without checksums", bytes, || {
            example(format!("{bytes} bytes"))
        });
        return Ok(());
    }
    let wanted = HEAD_BYTES + bytes.div_ceil(u64::from(piece)) * 4;
    if bytes == 0 && meta_bytes > HEAD_BYTES {
        let lost = (meta_bytes - HEAD_BYTES) / 4 * u64::from(piece);
        let words = "blocks of zero bytes whose metadata tell of data";
        part.add("empty", Harm::Loss, words, lost, || {
            example(format!("0 bytes, about {lost} by its metadata"))
        });
    } else if wanted != meta_bytes {
        let words = "blocks whose length is not that of their metadata";
        part.add("length", Harm::Loss, words, bytes, || {
            example(format!("{bytes} bytes need {wanted} bytes of metadata, there are {meta_bytes}"))
        });
    } else if bytes == 0 {
        let words = "blocks of zero bytes, and their metadata say the same";
        part.add("empty-by-intent", Harm::Remark, words, 0, || example("0 bytes".into()));
    } else if !place.sums {
        part.add("whole", Harm::Fine, "block and metadata have the same length", bytes, String::new);
    } else {
        match first_difference(place, block, kind, piece, file) {
            Ok(None) => {
                part.add("verified", Harm::Fine, "every checksum is that of the data", bytes, String::new);
            }
            Ok(Some(at)) => {
                let words = "blocks whose data differ from their checksums";
                part.add("sums", Harm::Loss, words, bytes, || example(format!("differs from byte {at} on")));
            }
            Err(error) => gap(part, place.name(block.as_ref()), error.to_string()),
        }
    }
    Ok(())
}

/// Where the data first differ from their checksums.
fn first_difference(
    place: &Inside<'_>,
    block: &str,
    kind: u8,
    piece: u32,
    mut sums: impl io::Read,
) -> io::Result<Option<u64>> {
    let mut data = BufReader::with_capacity(256 << 10, File::open(place.path().join(block))?);
    let mut bytes = Vec::with_capacity(piece as usize);
    let mut at = 0;
    loop {
        bytes.clear();
        data.by_ref().take(u64::from(piece)).read_to_end(&mut bytes)?;
        if bytes.is_empty() || place.is_stopped() {
            return Ok(None);
        }
        let mut sum = [0; 4];
        sums.read_exact(&mut sum)?;
        let seen = if kind == 1 { crc32fast::hash(&bytes) } else { crc32c::crc32c(&bytes) };
        if seen != u32::from_be_bytes(sum) {
            return Ok(Some(at));
        }
        at += bytes.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_understood() {
        assert_eq!(parse("blk_1073741825"), Name::Block(1_073_741_825));
        assert_eq!(parse("blk_-77"), Name::Block(-77));
        assert_eq!(parse("blk_1073741825_1001.meta"), Name::Meta(1_073_741_825, 1001));
        assert_eq!(parse("blk_-77_3.meta"), Name::Meta(-77, 3));
        for other in ["blk_", "blk_x", "blk_1.meta", "blk__.meta", "VERSION", "dncp_block_verification.log"] {
            assert_eq!(parse(other), Name::Other, "{other}");
        }
    }
}
