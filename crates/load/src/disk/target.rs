//! What a load reads and writes, made ready and put away again.
//!
//! What comes in: a folder, a file, or a device. What goes out: an open file and the part of it that may be
//! used. A file that is made for a load has no name: it replaces no file and is gone with the program. A
//! device is written only after [`super::guard`] let it, and is filled with zeros again, as it was found;
//! what another program has written into that part meanwhile is left and named. Space is never used up: half
//! of what is free stays free.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use linerate_model::disk_load::{DiskEnd, DiskPhase, DiskTarget, Durable};
use linerate_model::random::Random;
use linerate_sys::block::{self, FileKind, How, Number};
use linerate_sys::pages::Buffer;
use linerate_sys::root::Root;

use super::guard;
use super::seal::{SECTOR, Seal};
use crate::job::{Job, LoadError};

/// Nothing of a device's first MiB is ever written.
const DEVICE_START: u64 = 1 << 20;
/// A part of a target is a multiple of that, whatever the size of a request.
const GRAIN: u64 = 1 << 20;
/// Smallest part that is of any use.
pub(super) const BYTES_MIN: u64 = 4 << 20;
/// Filling takes no longer; then the part is as large as it got.
const FILL: Duration = Duration::from_secs(40);
/// How much is written at a time while filling.
const STEP: usize = 1 << 20;

/// What is used.
#[derive(Debug)]
pub(super) struct Target {
    /// Held as long as the load runs: a file without a name lives by it, a device is ours by it.
    file: File,
    /// Device that it is or is on, where it has one.
    pub device: Option<Number>,
    /// First byte that may be used.
    pub start: u64,
    /// How many.
    pub bytes: u64,
    /// It is memory.
    pub is_memory: bool,
    /// Zeros are written into it at the end.
    zero_after: bool,
    /// What the load writes has it.
    seal: Seal,
}

fn refused<'a>(path: &'a Path, hint: &'static str) -> impl Fn(String) -> LoadError + 'a {
    move |reason| LoadError::Target { path: path.to_path_buf(), reason, hint }
}

/// Makes the target of a plan ready.
pub(super) fn prepare(job: &Job<'_>, target: &DiskTarget, end: &mut DiskEnd) -> Result<Target, LoadError> {
    let begun = Instant::now();
    let ready = match target {
        DiskTarget::Folder { path, bytes } => folder(job, path, *bytes, end),
        DiskTarget::Existing { path } => existing(job, path),
        DiskTarget::Empty { path, really, bytes } => empty(job, path, really, *bytes, end),
    };
    end.prepared_s = begun.elapsed().as_secs_f64();
    let ready = ready?;
    end.bytes = ready.bytes;
    Ok(ready)
}

fn folder(job: &Job<'_>, path: &Path, bytes: u64, end: &mut DiskEnd) -> Result<Target, LoadError> {
    let bad = refused(path, "name a folder on the disk to measure: --in FOLDER");
    match block::kind(path) {
        Ok(FileKind::Folder(_)) => {}
        Ok(_) => return Err(bad("it is no folder".to_owned())),
        Err(error) => return Err(bad(error.to_string())),
    }
    let folder = File::open(path).map_err(|e| bad(e.to_string()))?;
    let system = block::filesystem(&folder).map_err(|e| bad(e.to_string()))?;
    let bytes = bytes.max(BYTES_MIN).next_multiple_of(GRAIN);
    if system.free_bytes == 0 {
        let reason = "its filesystem takes no files".to_owned();
        return Err(refused(path, "take another folder (--in)")(reason));
    }
    if bytes > system.free_bytes / 2 {
        let reason = format!(
            "a file of {bytes} bytes is more than half of the {} bytes that are free",
            system.free_bytes
        );
        return Err(refused(path, "take a smaller file (--size) or another folder (--in)")(reason));
    }
    let file = new_file(path, &job.spec.token).map_err(|e| bad(format!("no file can be made there: {e}")))?;
    block::reserve(&file, bytes).map_err(|e| bad(format!("cannot reserve {bytes} bytes: {e}")))?;
    let device = match block::kind_of(&file.metadata().map_err(|e| bad(e.to_string()))?) {
        FileKind::File(number) if number.major != 0 => Some(number),
        _ => None,
    };
    let mut ready = Target {
        file,
        device,
        start: 0,
        bytes,
        is_memory: system.is_memory,
        zero_after: false,
        seal: Seal::of(job),
    };
    fill(job, &mut ready, end)?;
    Ok(ready)
}

/// A file that no other program can open and that is gone when it is closed.
fn new_file(folder: &Path, token: &[u8; 16]) -> io::Result<File> {
    match block::nameless(folder) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        other => return other,
    }
    // File systems without nameless files (NFS): it has a name for a moment, which cannot be anybody's.
    let path = folder.join(format!(".linerate-bench-{:032x}", u128::from_be_bytes(*token)));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn existing(job: &Job<'_>, path: &Path) -> Result<Target, LoadError> {
    let bad = refused(path, "name a file or a block device; it is only read");
    let file = block::open(path, How::default()).map_err(|e| bad(e.to_string()))?;
    let meta = file.metadata().map_err(|e| bad(e.to_string()))?;
    let (device, bytes, is_memory) = match block::kind_of(&meta) {
        FileKind::File(number) => {
            let system = block::filesystem(&file).map_err(|e| bad(e.to_string()))?;
            (Some(number).filter(|n| n.major != 0), meta.len(), system.is_memory)
        }
        FileKind::Device(number) => {
            let bytes = block::size(&file).map_err(|e| bad(format!("its size cannot be read: {e}")))?;
            (Some(number), bytes, false)
        }
        FileKind::Folder(_) | FileKind::Other => {
            return Err(bad("it is neither a file nor a block device".to_owned()));
        }
    };
    if bytes < BYTES_MIN {
        return Err(bad(format!("it has {bytes} bytes, less than {BYTES_MIN}")));
    }
    Ok(Target { file, device, start: 0, bytes, is_memory, zero_after: false, seal: Seal::of(job) })
}

fn empty(
    job: &Job<'_>,
    path: &Path,
    really: &str,
    bytes: u64,
    end: &mut DiskEnd,
) -> Result<Target, LoadError> {
    let bad = refused(
        path,
        "nothing was written; measure a file on it (--in FOLDER), read it (--read), or take a drive that holds nothing",
    );
    let bytes = bytes.max(BYTES_MIN).next_multiple_of(GRAIN);
    let mut go_on = || job.check("checking whether the device is empty");
    let free = guard::open(&Root::live(), path, really, (DEVICE_START, bytes), &mut go_on)
        .map_err(|e| bad(e.to_string()))?;
    end.remarks.push(format!(
        "{} held nothing; bytes {DEVICE_START} to {} were written, and are filled with zeros again",
        free.name,
        DEVICE_START + bytes
    ));
    if bytes < free.bytes / 10 {
        end.remarks.push(format!(
            "only {:.1} % of {} was used: seeks are short there",
            bytes as f64 / free.bytes as f64 * 100.0,
            free.name
        ));
    }
    let mut ready = Target {
        file: free.file,
        device: Some(free.number),
        start: DEVICE_START,
        bytes,
        is_memory: false,
        zero_after: true,
        seal: Seal::of(job),
    };
    fill(job, &mut ready, end)?;
    Ok(ready)
}

/// Fills the part with what no drive and no file system can make smaller, around the cache where that goes.
fn fill(job: &Job<'_>, target: &mut Target, end: &mut DiskEnd) -> Result<(), LoadError> {
    let io = LoadError::io("fill the file");
    let mut random = Random(u64::from_le_bytes([1, 9, 2, 8, 3, 7, 4, 6]));
    let mut block = Buffer::new(STEP).map_err(LoadError::io("get memory"))?;
    random.fill(&mut block);
    target.seal.put(&mut block);
    let mut there = Buffer::new(STEP).map_err(LoadError::io("get memory"))?;
    let file = direct_if_possible(&target.file).map_err(&io)?;
    let begun = Instant::now();
    let mut done = 0;
    while done < target.bytes {
        job.check("filling the file")?;
        if begun.elapsed() > FILL {
            end.remarks.push(format!(
                "filling took longer than {} s: {done} of {} bytes are used",
                FILL.as_secs(),
                target.bytes
            ));
            break;
        }
        // No two steps alike.
        random.fill(&mut block[..4096]);
        target.seal.put(&mut block[..4096]);
        let at = target.start + done;
        if target.zero_after {
            is_free(&file, at, &mut there).map_err(&io)?;
        }
        file.write_all_at(&block, at).map_err(&io)?;
        done += STEP as u64;
    }
    file.sync_data().map_err(&io)?;
    // Only what was filled is used: the rest of the file reads as zeros, without a read of the drive.
    target.bytes = done;
    if target.bytes < BYTES_MIN {
        let source = io::Error::other(format!("only {done} bytes within {} s", FILL.as_secs()));
        return Err(LoadError::Io { what: "fill the file", source });
    }
    Ok(())
}

/// Whether a step of a device is still as the guard found it: another program can have written it since.
fn is_free(file: &File, at: u64, there: &mut [u8]) -> io::Result<()> {
    file.read_exact_at(there, at)?;
    match there.iter().position(|byte| *byte != 0) {
        None => Ok(()),
        Some(byte) => {
            let byte = at + byte as u64;
            Err(io::Error::other(format!("another program has written byte {byte} since it was read")))
        }
    }
}

fn direct_if_possible(file: &File) -> io::Result<File> {
    let how = How { write: true, direct: true, ..How::default() };
    block::reopen(file, how).or_else(|_| block::reopen(file, How { direct: false, ..how }))
}

impl Target {
    /// Opens it for a phase.
    pub(super) fn open(&self, phase: &DiskPhase) -> Result<File, LoadError> {
        let how = How {
            write: phase.writes(),
            direct: phase.direct,
            safe: phase.durable == Durable::Each,
            alone: false,
        };
        let file = block::reopen(&self.file, how).map_err(|source| match source.kind() {
            io::ErrorKind::InvalidInput if phase.direct => LoadError::Option {
                what: "I/O mode",
                value: "direct".to_owned(),
                reason: "this file system does not support direct I/O\nhint: --cached measures through it"
                    .to_owned(),
            },
            _ => LoadError::Io { what: "open the target", source },
        })?;
        if !phase.direct {
            // What earlier phases left in the cache must not answer.
            block::forget(&file).map_err(LoadError::io("empty the cache of the file"))?;
        }
        Ok(file)
    }
}

/// Ranges of bytes that are named at most.
const NAMED: usize = 4;

impl Target {
    /// Writes zeros over what the load wrote into a device, and nothing else; returns a line for each thing
    /// that is not as it was found. Each mebibyte is read right before: a program that writes between that
    /// read and the zeros loses its write.
    pub(super) fn put_back(&mut self, device: &str) -> Vec<String> {
        if !std::mem::take(&mut self.zero_after) {
            return Vec::new();
        }
        let mut left = Vec::new();
        let end = self.start + self.bytes.next_multiple_of(GRAIN);
        let done = self.zero(end, &mut left).and_then(|()| self.file.sync_data());
        let mut lines = Vec::new();
        if let Err(error) = done {
            // It holds chance then, which the next guard sees.
            lines.push(format!("zeros could not be written back to {device}: {error}"));
        }
        if !left.is_empty() {
            let ranges: Vec<String> =
                left.iter().take(NAMED).map(|(start, end)| format!("{start} to {end}")).collect();
            let more = left.len() - ranges.len();
            let more = if more == 0 { String::new() } else { format!(" and {more} other ranges") };
            lines.push(format!(
                "bytes {}{more} of {device} were written by another program while the load ran, and were left as they are",
                ranges.join(", ")
            ));
        }
        lines
    }

    /// `left`: what the load did not write, start and end.
    fn zero(&self, end: u64, left: &mut Vec<(u64, u64)>) -> io::Result<()> {
        block::forget(&self.file)?;
        let (zeros, mut content) = (vec![0; STEP], vec![0; STEP]);
        let mut at = self.start;
        while at < end {
            let length = (STEP as u64).min(end - at) as usize;
            self.file.read_exact_at(&mut content[..length], at)?;
            // Runs of sectors alike are handled at once.
            let kind = |sector: &&[u8]| match sector {
                sector if self.seal.is_in(sector) => Sector::Own,
                sector if **sector == zeros[..sector.len()] => Sector::Zero,
                _ => Sector::Other,
            };
            let kinds: Vec<Sector> = content[..length].chunks(SECTOR).map(|sector| kind(&sector)).collect();
            let mut from = 0;
            for run in kinds.chunk_by(|one, next| one == next) {
                let to = (from + run.len() * SECTOR).min(length);
                let (start, stop) = (at + from as u64, at + to as u64);
                match (run.first(), left.last_mut()) {
                    (Some(Sector::Own), _) => self.file.write_all_at(&zeros[from..to], start)?,
                    (Some(Sector::Other), Some(last)) if last.1 == start => last.1 = stop,
                    (Some(Sector::Other), _) => left.push((start, stop)),
                    (Some(Sector::Zero) | None, _) => {}
                }
                from = to;
            }
            at += length as u64;
        }
        Ok(())
    }
}

/// What a sector is when zeros are put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sector {
    Own,
    Zero,
    Other,
}

impl Drop for Target {
    fn drop(&mut self) {
        // Where a load failed, nothing reports what was left; the next guard names it.
        let _ = self.put_back("the device");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use linerate_model::load::Role;

    use super::*;
    use crate::tests::{V4, control, spec};
    use linerate_model::kind::RttPlan;

    /// Eight mebibytes of a file of sixteen as a part of a device, and the file as another program has it.
    fn target(job: &Job<'_>) -> (Target, File) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(16 << 20).unwrap();
        let other = file.try_clone().unwrap();
        let (start, bytes, seal) = (DEVICE_START, 8 << 20, Seal::of(job));
        (Target { file, device: None, start, bytes, is_memory: false, zero_after: true, seal }, other)
    }

    /// A program writes into the part of the device while a load runs: less than a sector, a page, and over
    /// two mebibytes.
    #[test]
    fn what_another_program_wrote_meanwhile_is_left_and_named() {
        let (spec, control) = (spec(RttPlan { count: 1 }, Role::Receiver, V4), control(|_| {}));
        let job = Job::new(&spec, &control);
        let (mut target, other) = target(&job);
        fill(&job, &mut target, &mut DiskEnd::default()).unwrap();
        let written: [(u64, Vec<u8>); 3] = [
            (5 << 20, b"KEEPME".to_vec()),
            ((6 << 20) + 4096, vec![9; 4096]),
            ((8 << 20) - 512, vec![8; 1024]),
        ];
        for (at, content) in &written {
            other.write_all_at(content, *at).unwrap();
        }
        let lines = target.put_back("sdx");
        assert_eq!(
            lines,
            [
                "bytes 5242880 to 5243392, 6295552 to 6299648, 8388096 to 8389120 of sdx were written by another program while the load ran, and were left as they are"
            ]
        );
        for (at, content) in &written {
            let mut now = vec![0; content.len()];
            other.read_exact_at(&mut now, *at).unwrap();
            assert!(now == *content, "{at}");
            // The whole sectors that were named.
            let sectors = content.len().next_multiple_of(SECTOR);
            other.write_all_at(&vec![0; sectors], *at).unwrap();
        }
        let mut all = vec![1; 16 << 20];
        other.read_exact_at(&mut all, 0).unwrap();
        assert!(all.iter().all(|byte| *byte == 0), "all else is zeros, as it was found");
        assert!(target.put_back("sdx").is_empty(), "only once");
    }

    /// A program wrote to the device between the guard's read and the step of filling that would overwrite
    /// it.
    #[test]
    fn what_was_written_since_the_guard_read_is_not_filled_over() {
        let (spec, control) = (spec(RttPlan { count: 1 }, Role::Receiver, V4), control(|_| {}));
        let job = Job::new(&spec, &control);
        let (mut target, other) = target(&job);
        let written = (4 << 20) + 8192;
        other.write_all_at(b"KEEPME", written).unwrap();
        let refused = fill(&job, &mut target, &mut DiskEnd::default()).unwrap_err();
        assert!(refused.to_string().contains(&format!("has written byte {written}")), "{refused}");
        drop(target);
        let mut all = vec![1; 16 << 20];
        other.read_exact_at(&mut all, 0).unwrap();
        assert_eq!(&all[written as usize..][..6], b"KEEPME");
        assert_eq!(all.iter().filter(|byte| **byte != 0).count(), 6, "all else is zeros again");
    }
}
