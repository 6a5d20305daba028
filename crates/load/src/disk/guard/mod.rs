//! Whether a block device may be written: only when it provably holds nothing and has no user.
//!
//! What comes in: a path, and for a load what the operator typed. What goes out: the device, opened so that
//! no other part of the kernel can take it (`O_EXCL`), or the reason why not. Whatever cannot be seen counts
//! against writing. It never writes. Entry points: `open` for a load, [`claim`] for a step of a build and for
//! its undo; all code that writes to a device goes through one of them.
//!
//! To add a check: one type with `Check`, one line in `CHECKS`, its rows in the table of `tests.rs`.

mod candidate;
mod content;
mod error;
mod parts;
mod people;
mod programs;
mod signatures;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use linerate_sys::block::{self, FileKind, How, Number};
use linerate_sys::root::Root;

use self::candidate::{Candidate, Check, candidate};
pub use self::error::WriteRefusal;
use crate::job::LoadError;

/// All checks that read no content, in their order: the most informative reason comes first.
static CHECKS: &[&dyn Check] = &[
    &people::Mounted,
    &people::Swap,
    &parts::Held,
    &parts::Partitions,
    &parts::Siblings,
    &parts::BehindLoop,
    &parts::ReadOnly,
    &people::Exported,
];

/// Whether what was typed is the device's own name: `sdx`, or `/dev/sdx`.
fn is_named(typed: &str, name: &str) -> bool {
    typed.strip_prefix("/dev/").unwrap_or(typed) == name
}

/// A device that may be written, held against everybody else in the kernel as long as the file is open.
#[derive(Debug)]
pub(super) struct Free {
    /// Open for reading and writing.
    pub file: File,
    /// Its number.
    pub number: Number,
    /// Its name.
    pub name: String,
    /// Its size, bytes.
    pub bytes: u64,
}

/// Opens a device for writing when it provably holds nothing and has no user. `used` bytes from `start` on
/// are all read.
///
/// # Errors
/// Why it may not be written.
pub(super) fn open(
    root: &Root,
    path: &Path,
    really: &str,
    (start, used): (u64, u64),
    go_on: &mut dyn FnMut() -> Result<(), LoadError>,
) -> Result<Free, WriteRefusal> {
    let candidate = candidate(root, path)?;
    check_users(&candidate)?;
    users(root, std::slice::from_ref(&candidate), &[]).swap_remove(0)?;
    named(&candidate, really)?;
    let free = hold(candidate, true)?;
    content::check_empty(&free.file, free.bytes)?;
    content::is_zero(&free.file, free.bytes, (start, used), go_on)?;
    // Reading took minutes: a program that opened it since does not conflict with the exclusive claim.
    let found = candidate::candidate(root, path)?;
    if found.number != free.number {
        return Err(WriteRefusal::Replaced);
    }
    users(root, std::slice::from_ref(&found), &[free.file.as_raw_fd()]).swap_remove(0)?;
    check_users(&found)?;
    content::edges_are_empty(&free.file, free.bytes)?;
    Ok(free)
}

/// What is asked of the content of a device, beside that it is not in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedContent {
    /// It seems to hold nothing. The program that gets it writes where it likes, so that only a read of the
    /// whole device would be a proof, hours for a drive.
    Empty,
    /// The caller checks it.
    Any,
}

/// A device that no other part of the kernel can take as long as this lives.
#[derive(Debug)]
pub struct DeviceClaim {
    free: Free,
    path: PathBuf,
    content: WantedContent,
}

/// So many devices are read side by side: one with rotating discs takes seconds; more would leave a small
/// host no time for anything else.
const AT_ONCE: usize = 8;

/// Claims devices, or gives the reason for each that may not be written; `write` opens them for writing.
pub fn claim(paths: &[&Path], content: WantedContent, write: bool) -> Vec<Result<DeviceClaim, WriteRefusal>> {
    let root = Root::live();
    let mut claims: Vec<Result<DeviceClaim, WriteRefusal>> = held(&root, paths, write)
        .into_iter()
        .map(|free| free.map(|(free, path)| DeviceClaim { free, path, content }))
        .collect();
    if content == WantedContent::Any {
        return claims;
    }
    for some in claims.chunks_mut(AT_ONCE) {
        let checked: Vec<Result<(), WriteRefusal>> = std::thread::scope(|scope| {
            let files = some.iter().map(|claim| claim.as_ref().ok().map(|claim| &claim.free));
            let check = |free: Option<&Free>| {
                free.map_or(Ok(()), |free| content::check_empty(&free.file, free.bytes))
            };
            let begin = |free| std::thread::Builder::new().spawn_scoped(scope, move || check(free));
            let threads: Vec<_> = files.map(begin).collect();
            let unseen = || Err(WriteRefusal::NotRead);
            let end =
                |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, Result<(), WriteRefusal>>>| {
                    thread.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(unseen)
                };
            threads.into_iter().map(end).collect()
        });
        for (claim, checked) in some.iter_mut().zip(checked) {
            if let (Ok(_), Err(why)) = (&*claim, checked) {
                *claim = Err(why);
            }
        }
    }
    claims
}

/// All of them that are not in use, open exclusively: programs are checked at once for all.
fn held(root: &Root, paths: &[&Path], write: bool) -> Vec<Result<(Free, PathBuf), WriteRefusal>> {
    let checked = |path: &&Path| {
        let candidate = candidate(root, path)?;
        check_users(&candidate).map(|()| candidate)
    };
    let (mut good, mut all) = (Vec::new(), Vec::new());
    for candidate in paths.iter().map(checked) {
        all.push(candidate.map(|candidate| good.push(candidate)));
    }
    let mut free = users(root, &good, &[]).into_iter().zip(good).map(|(user, candidate)| {
        user?;
        let path = candidate.path.clone();
        Ok((hold(candidate, write)?, path))
    });
    let missing = || Err(WriteRefusal::NotRead);
    all.into_iter()
        .map(|one: Result<(), WriteRefusal>| one.and_then(|()| free.next().unwrap_or_else(missing)))
        .collect()
}

impl DeviceClaim {
    /// The open device.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.free.file
    }

    /// Its size, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.free.bytes
    }

    /// The open device alone.
    #[must_use]
    pub fn into_file(self) -> File {
        self.free.file
    }

    /// The same users and edges once more.
    fn again(&self, root: &Root) -> Result<(), WriteRefusal> {
        let found = candidate(root, &self.path)?;
        if found.number != self.free.number {
            return Err(WriteRefusal::Replaced);
        }
        check_users(&found)?;
        match self.content {
            WantedContent::Empty => content::edges_are_empty(&self.free.file, self.free.bytes),
            WantedContent::Any => Ok(()),
        }
    }
}

/// Checks claimed devices once more, right before they are given to a program: all their users, and where
/// they have to be empty the marks of owners and both ends.
///
/// # Errors
/// Which one in the order of `claims` is in use or holds something now, and why.
pub fn again(claims: &[DeviceClaim]) -> Result<(), (usize, WriteRefusal)> {
    let root = Root::live();
    let own: Vec<RawFd> = claims.iter().map(|claim| claim.free.file.as_raw_fd()).collect();
    let candidates: Result<Vec<_>, _> = claims
        .iter()
        .enumerate()
        .map(|(at, claim)| candidate(&root, &claim.path).map_err(|why| (at, why)))
        .collect();
    for (at, user) in users(&root, &candidates?, &own).into_iter().enumerate() {
        user.map_err(|why| (at, why))?;
    }
    claims.iter().enumerate().try_for_each(|(at, claim)| claim.again(&root).map_err(|why| (at, why)))
}

/// Whether a device may be given to a program that makes something on it (LVM, md, DRBD).
///
/// # Errors
/// Why not.
pub fn empty(path: &Path) -> Result<(), WriteRefusal> {
    claim(&[path], WantedContent::Empty, false).swap_remove(0).map(drop)
}

/// Holds a device that is not in use, whatever is on it: to undo what a build has left there.
///
/// # Errors
/// Who uses it.
pub fn unused(path: &Path) -> Result<File, WriteRefusal> {
    claim(&[path], WantedContent::Any, true).swap_remove(0).map(DeviceClaim::into_file)
}

/// The first mark of an owner on a device, with its byte; only read, also when it is in use.
///
/// # Errors
/// It is no block device, or cannot be read.
pub fn mark(path: &Path) -> Result<Option<(&'static str, u64)>, WriteRefusal> {
    let FileKind::Device(_) = block::kind(path)? else { return Err(WriteRefusal::NoBlockDevice) };
    let file = File::open(path).map_err(WriteRefusal::step("it cannot be read"))?;
    let size = block::size(&file).map_err(WriteRefusal::step("its size cannot be read"))?;
    content::fresh(&file)?;
    content::mark(&file, size)
}

/// The first mark of an owner on an open device, with its byte.
///
/// # Errors
/// It cannot be read.
pub fn mark_on(device: &File, bytes: u64) -> Result<Option<(&'static str, u64)>, WriteRefusal> {
    content::fresh(device)?;
    content::mark(device, bytes)
}

/// Whether an open device has no mark but those of the owner `own`, whose superblock is a range of bytes
/// (start and end).
///
/// # Errors
/// Whose mark is there too, or that it cannot be read.
pub fn has_no_other_mark(
    device: &File,
    bytes: u64,
    own: &str,
    superblock: (u64, u64),
) -> Result<(), WriteRefusal> {
    content::fresh(device)?;
    match content::mark_beside(device, bytes, own, superblock)? {
        Some((owner, byte)) => Err(WriteRefusal::OtherMark { owner, byte, own: own.to_owned() }),
        None => Ok(()),
    }
}

/// Whether all samples of an open device are zero but for some ranges (start and end): both ends, and offsets
/// between.
///
/// # Errors
/// The first byte that is not zero, or that it cannot be read.
pub fn holds_nothing_beside(device: &File, bytes: u64, made: &[(u64, u64)]) -> Result<(), WriteRefusal> {
    content::is_zero_beside(device, bytes, made)
}

/// What stands on an open device that should hold nothing: the mark of an owner or the first byte that is not
/// zero, as for [`WantedContent::Empty`], with more samples.
///
/// # Errors
/// What stands there and at which byte, or that it cannot be read.
pub fn holds_nothing(device: &File, bytes: u64) -> Result<(), WriteRefusal> {
    content::is_empty_at(device, bytes, content::SAMPLES_UNDO)
}

/// Programs that use devices, by [`programs::users`]: what cannot be seen counts for all of them.
fn users(root: &Root, candidates: &[Candidate<'_>], own: &[RawFd]) -> Vec<Result<(), WriteRefusal>> {
    let opened = |reason: Arc<WriteRefusal>| Err(WriteRefusal::Check { check: "open", reason });
    let _queried = parts::QUERIED.lock().unwrap_or_else(PoisonError::into_inner);
    let find = || {
        let reach: Vec<_> =
            candidates.iter().map(programs::Reach::of).collect::<Result<_, WriteRefusal>>()?;
        // A recorded tree has no open files.
        if root.is_live() {
            programs::users(root, &reach, own)
        } else {
            Ok(reach.iter().map(|_| None).collect())
        }
    };
    match find() {
        Ok(all) => all.into_iter().map(|user| user.map_or(Ok(()), |user| opened(Arc::new(user)))).collect(),
        Err(unseen) => {
            let unseen = Arc::new(unseen);
            candidates.iter().map(|_| opened(Arc::clone(&unseen))).collect()
        }
    }
}

/// Users known to the kernel, without programs and content.
fn check_users(candidate: &Candidate<'_>) -> Result<(), WriteRefusal> {
    CHECKS.iter().try_for_each(|check| {
        let refused = |reason| WriteRefusal::Check { check: check.name(), reason: Arc::new(reason) };
        check.run(candidate).map_err(refused)
    })
}

/// Whether what a person typed is its name.
fn named(candidate: &Candidate<'_>, really: &str) -> Result<(), WriteRefusal> {
    if is_named(really, &candidate.name) {
        return Ok(());
    }
    let typed = if really.is_empty() { "nothing".to_owned() } else { format!("`{really}`") };
    Err(WriteRefusal::OtherName { name: candidate.name.clone(), typed })
}

/// Opens it so that no other part of the kernel can take it. Only what is written is opened for writing: the
/// device manager probes a device again after a writer closed it.
fn hold(candidate: Candidate<'_>, write: bool) -> Result<Free, WriteRefusal> {
    let how = How { write, alone: true, ..How::default() };
    let file = block::open(&candidate.path, how).map_err(|e| match e.kind() {
        std::io::ErrorKind::ResourceBusy => WriteRefusal::Busy,
        _ => WriteRefusal::Step { what: "it cannot be opened exclusively", source: e },
    })?;
    // The path could have become another device in between.
    let opened = file.metadata()?;
    if block::kind_of(&opened) != FileKind::Device(candidate.number) {
        return Err(WriteRefusal::Replaced);
    }
    if block::is_read_only(&file).map_err(WriteRefusal::step("whether it is read-only cannot be read"))? {
        return Err(WriteRefusal::ReadOnly);
    }
    let bytes = block::size(&file).map_err(WriteRefusal::step("its size cannot be read"))?;
    Ok(Free { file, number: candidate.number, name: candidate.name, bytes })
}
