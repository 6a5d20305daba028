//! Which programs use devices without an exclusive claim: open files, mappings, fixed files of io_uring, and
//! character devices that reach the same drive around the block layer (`/dev/sg*`, `/dev/bsg/*`, NVMe
//! controllers and `/dev/ng*`).
//!
//! In: devices, `/sys` and `/proc` of the running machine. Out: the process that uses each, or what cannot be
//! seen, which counts as use. Every thread counts: one may have a file table of its own
//! (`unshare(CLONE_FILES)`), and the main thread may have ended before the others, after which the entries of
//! its process are empty. Files in transit in a Unix socket are not seen.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::RawFd;
use std::path::Path;

use linerate_sys::block::{self, DeviceNode, Number};
use linerate_sys::root::{NAMES_MAX, ReadError, Root};
use linerate_sys::tasks;

use super::candidate::Candidate;
use super::error::WriteRefusal;

/// So often the files of an io_uring are read: while it is busy the kernel leaves them out.
const RING_READS: u32 = 64;
/// Longest line of `/proc/PID/maps` that is kept: numbers and a path.
const LINE_BYTES_MAX: usize = 16 << 10;

/// Numbers and names by which the content of a device can be reached.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    pub block: Vec<(Number, String)>,
    pub character: Vec<(Number, String)>,
}

impl Reach {
    /// The device, the drive that it is a part of or its parts, and the character devices of the drive.
    pub(super) fn of(candidate: &Candidate<'_>) -> Result<Self, WriteRefusal> {
        let parse = |(number, name): (String, String)| match number.parse() {
            Ok(parsed) => Ok((parsed, name)),
            Err(()) => Err(WriteRefusal::BadNumber { name, number }),
        };
        let block = candidate.family()?.into_iter().map(parse).collect::<Result<_, WriteRefusal>>()?;
        let character =
            character_devices(candidate)?.into_iter().map(parse).collect::<Result<_, WriteRefusal>>()?;
        Ok(Self { block, character })
    }

    fn name(&self, node: DeviceNode) -> Option<&str> {
        let (list, number) = match node {
            DeviceNode::Block(number) => (&self.block, number),
            DeviceNode::Character(number) => (&self.character, number),
            DeviceNode::Anonymous | DeviceNode::Other => return None,
        };
        list.iter().find(|(known, _)| *known == number).map(|(_, name)| name.as_str())
    }

    /// The device of this file name.
    fn named(&self, file_name: &str) -> Option<&str> {
        let mut all = self.block.iter().chain(&self.character);
        all.find(|(_, name)| name == file_name).map(|(_, name)| name.as_str())
    }
}

/// Number and name of each character device that reaches the drive.
fn character_devices(candidate: &Candidate<'_>) -> Result<Vec<(String, String)>, WriteRefusal> {
    let whole = candidate.whole.as_ref().unwrap_or(&candidate.name);
    let device = format!("/sys/block/{whole}/device");
    let mut folders = Vec::new();
    for class in ["scsi_generic", "bsg"] {
        let list = format!("{device}/{class}");
        folders.extend(names(candidate, &list)?.into_iter().map(|name| (format!("{list}/{name}"), name)));
    }
    if let Some(space) = whole.strip_prefix("nvme") {
        // Without multipath this is the controller itself, with it the subsystem of several controllers.
        let is_controller = |name: &str| {
            name.strip_prefix("nvme").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        for name in names(candidate, &device)? {
            if is_controller(&name) || name.strip_prefix("ng") == Some(space) {
                folders.push((format!("{device}/{name}"), name));
            }
        }
        let controller = space.split_once('n').map_or(space, |(controller, _)| controller);
        if is_there(candidate, &format!("{device}/dev"))? {
            folders.push((device.clone(), format!("nvme{controller}")));
        }
    }
    let number = |(folder, name): (String, String)| {
        let path = format!("{folder}/dev");
        Ok((candidate.root.line(&path).map_err(WriteRefusal::file(&path))?, name))
    };
    folders.into_iter().map(number).collect()
}

fn is_there(candidate: &Candidate<'_>, path: &str) -> Result<bool, WriteRefusal> {
    match candidate.root.line(path) {
        Ok(_) => Ok(true),
        Err(ReadError::Missing) => Ok(false),
        Err(error) => Err(WriteRefusal::file(path)(error)),
    }
}

/// A folder that most devices do not have.
fn names(candidate: &Candidate<'_>, path: &str) -> Result<Vec<String>, WriteRefusal> {
    match candidate.root.list(path) {
        Err(ReadError::Missing) => Ok(Vec::new()),
        _ => candidate.seen(path, "character devices of the drive"),
    }
}

/// Processes by number.
pub(super) fn processes(root: &Root) -> Result<Vec<u32>, WriteRefusal> {
    let unseen = |reason: WriteRefusal| WriteRefusal::unseen("processes", reason);
    let names = root.list("/proc").map_err(|e| unseen(WriteRefusal::file("/proc")(e)))?;
    if names.len() >= NAMES_MAX {
        return Err(WriteRefusal::LongList { what: "processes".to_owned(), list: "/proc".to_owned() });
    }
    let all: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    if all.is_empty() { Err(unseen(WriteRefusal::NoProcess)) } else { Ok(all) }
}

/// A thread, with its folder in `/proc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    process: u32,
    number: u32,
}

impl Task {
    fn is_main(&self) -> bool {
        self.number == self.process
    }

    /// `/proc/PID` for the main thread: recorded trees have no more.
    pub(super) fn folder(&self) -> String {
        if self.is_main() {
            format!("/proc/{}", self.process)
        } else {
            format!("/proc/{}/task/{}", self.process, self.number)
        }
    }

    fn names(&self) -> String {
        let Self { process, number } = self;
        if self.is_main() {
            format!("process {process}")
        } else {
            format!("thread {number} of process {process}")
        }
    }

    /// Whether it has ended, or has nothing open any more: it is gone, a zombie, or exiting (`PF_EXITING` of
    /// linux/sched.h). A main thread can be a zombie while other threads run.
    pub(super) fn has_ended(&self, root: &Root) -> bool {
        const EXITING: u64 = 4;
        // Of the thread alone: `/proc/PID/stat` has the same state and flags for the main thread.
        match root.read(&format!("{}/stat", self.folder())) {
            Err(error) => error == ReadError::Missing,
            Ok(text) => {
                // The name in brackets may hold anything.
                let mut fields = text.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
                let is_dead = fields.next().is_some_and(|state| ["Z", "X"].contains(&state));
                // State, parent, group, session, terminal and its group stand before the flags.
                is_dead || fields.nth(5).and_then(|f| f.parse::<u64>().ok()).is_some_and(|f| f & EXITING != 0)
            }
        }
    }
}

/// The threads of a process, the main one first; that one alone where the process has ended, or in a recorded
/// tree.
pub(super) fn tasks(root: &Root, process: u32) -> Result<Vec<Task>, WriteRefusal> {
    let main = Task { process, number: process };
    let what = format!("threads of process {process}");
    let names = match root.list(&format!("/proc/{process}/task")) {
        Ok(names) => names,
        Err(ReadError::Missing) => return Ok(vec![main]),
        Err(error) => return Err(WriteRefusal::unseen_process(what, error)),
    };
    if names.len() >= NAMES_MAX {
        return Err(WriteRefusal::TooMany(what));
    }
    let others = names.iter().filter_map(|name| name.parse().ok()).filter(|number| *number != process);
    Ok(std::iter::once(main).chain(others.map(|number| Task { process, number })).collect())
}

/// Who uses each of some devices; the files `own` of this process do not count.
pub(super) fn users(
    root: &Root,
    devices: &[Reach],
    own: &[RawFd],
) -> Result<Vec<Option<WriteRefusal>>, WriteRefusal> {
    let mut found: Vec<Option<WriteRefusal>> = devices.iter().map(|_| None).collect();
    let mut known = BTreeSet::new();
    for process in processes(root)? {
        let user = |device: &str, how| {
            let program = root.line(&format!("/proc/{process}/comm")).unwrap_or_default();
            WriteRefusal::User { process, program, device: device.to_owned(), how }
        };
        let note = |reach: &Reach, node, how| reach.name(node).map(|name| user(name, how));
        let mut seen = |find: &dyn Fn(&Reach) -> Result<Option<WriteRefusal>, WriteRefusal>| {
            for (reach, found) in devices.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
                *found = find(reach)?;
            }
            Ok(())
        };
        let mut tables: Vec<u32> = Vec::new();
        let mut is_mapped = false;
        for task in tasks(root, process)? {
            // Thousands of threads share one table; where the kernel does not compare them, each is read.
            let is_known = |table: &u32| tasks::share_files(*table, task.number).unwrap_or(false);
            let files = if tables.iter().any(is_known) {
                Ok(())
            } else {
                // Of this process: of a thread with another table the numbers are those of other files.
                let is_other = |table: &u32| tasks::share_files(*table, task.number).is_ok_and(|same| !same);
                let own = if tables.first().is_some_and(is_other) { &[] } else { own };
                tables.push(task.number);
                descriptors(root, &task, own, &mut |node, fixed| match fixed {
                    None => seen(&|reach| Ok(note(reach, node, "open"))),
                    Some(file) => seen(&|reach| {
                        let name = fixed_file(&task, reach, file)?;
                        Ok(name.map(|name| user(name, "as a file of its io_uring")))
                    }),
                })
            };
            // All threads have the same memory, but for those that have ended.
            let result = files.and_then(|()| {
                if !is_mapped {
                    is_mapped = mappings(&task, &mut known, &mut |node| {
                        seen(&|reach| Ok(note(reach, node, "mapped")))
                    })?;
                }
                Ok(())
            });
            // One that ended meanwhile uses nothing; all else that cannot be read may be use.
            if let Err(unseen) = result
                && !task.has_ended(root)
            {
                return Err(unseen);
            }
        }
    }
    Ok(found)
}

/// Whether an error means that a file was closed, or its process has ended.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || ReadError::from(clone(error)) == ReadError::Missing
}

fn clone(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Takes an open file, or the path of one that an io_uring holds.
type Seen<'a> = &'a mut dyn FnMut(DeviceNode, Option<&str>) -> Result<(), WriteRefusal>;

/// Reports each open file of a thread, and each file that its io_uring instances hold.
fn descriptors(root: &Root, task: &Task, own: &[RawFd], seen: Seen<'_>) -> Result<(), WriteRefusal> {
    let folder = format!("{}/fd", task.folder());
    let what = || format!("open files of {}", task.names());
    let files = match root.list(&folder) {
        Ok(files) => files,
        Err(ReadError::Missing) => return Ok(()),
        Err(error) => return Err(WriteRefusal::unseen_process(what(), error)),
    };
    if files.len() >= NAMES_MAX {
        return Err(WriteRefusal::TooMany(what()));
    }
    let is_this = task.process == std::process::id();
    for file in files {
        if is_this && file.parse().is_ok_and(|file: RawFd| own.contains(&file)) {
            continue;
        }
        let path = format!("{folder}/{file}");
        match block::node(Path::new(&path)) {
            Ok(DeviceNode::Anonymous) if is_ring(root, &path)? => {
                for fixed in fixed_files(root, task, &file)? {
                    seen(DeviceNode::Other, Some(&fixed))?;
                }
            }
            Ok(node) => seen(node, None)?,
            Err(error) if is_gone(&error) => {}
            Err(error) => {
                return Err(WriteRefusal::unseen_process(
                    format!("open file {file} of {}", task.names()),
                    error,
                ));
            }
        }
    }
    Ok(())
}

fn is_ring(root: &Root, path: &str) -> Result<bool, WriteRefusal> {
    match root.link(path) {
        Ok(target) => Ok(target.contains("io_uring")),
        Err(ReadError::Missing) => Ok(false),
        Err(error) => Err(WriteRefusal::unseen(path, error)),
    }
}

/// Paths of the files that an io_uring holds. Kernels up to 5.11 show the last name of each alone.
fn fixed_files(root: &Root, task: &Task, file: &str) -> Result<Vec<String>, WriteRefusal> {
    let what = format!("files of the io_uring of {}", task.names());
    for _ in 0..RING_READS {
        match root.read(&format!("{}/fdinfo/{file}", task.folder())) {
            Ok(text) => {
                if let Some(files) = parse_fixed_files(&text) {
                    return Ok(files);
                }
            }
            Err(ReadError::Missing) => return Ok(Vec::new()),
            Err(error) => return Err(WriteRefusal::unseen(what, error)),
        }
    }
    let program = root.line(&format!("/proc/{}/comm", task.process)).unwrap_or_default();
    Err(WriteRefusal::unseen(format!("{what} ({program})"), WriteRefusal::BusyRing))
}

/// `UserFiles: 2`, then a line for each: number, colon, path.
pub(super) fn parse_fixed_files(text: &str) -> Option<Vec<String>> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("UserFiles:"));
    lines.next()?;
    let entry = |line: &str| {
        let (number, path) = line.trim_start().split_once(": ")?;
        number.bytes().all(|b| b.is_ascii_digit()).then(|| path.to_owned())
    };
    Some(lines.map_while(entry).collect())
}

/// Whether a file of an io_uring is a device of these: by its name, and where it is a path by what is there
/// for the thread. Nothing is there where the file was removed, or the thread has ended.
fn fixed_file<'a>(task: &Task, reach: &'a Reach, file: &str) -> Result<Option<&'a str>, WriteRefusal> {
    let name = file.trim_end_matches(" (deleted)").rsplit('/').next().unwrap_or_default();
    if let Some(name) = reach.named(name) {
        return Ok(Some(name));
    }
    if !file.starts_with('/') {
        return Ok(None);
    }
    match block::node(Path::new(&format!("{}/root{file}", task.folder()))) {
        Ok(node) => Ok(reach.name(node)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => {
            let what = format!("{file}, a file of the io_uring of {},", task.names());
            Err(WriteRefusal::unseen_process(what, error))
        }
    }
}

/// Reports the file below each mapping of a thread's memory; `false` where it has none, as a thread that has
/// ended. `known` are files that were seen in another process and are no devices.
fn mappings(
    task: &Task,
    known: &mut BTreeSet<Vec<u8>>,
    seen: &mut dyn FnMut(DeviceNode) -> Result<(), WriteRefusal>,
) -> Result<bool, WriteRefusal> {
    // Only a folder at the top of `/proc` has `map_files`, and each thread has one there.
    let folder = format!("/proc/{}", task.number);
    let what = || format!("mappings of {}", task.names());
    let unseen = |error: io::Error| WriteRefusal::unseen_process(what(), error);
    let file = match File::open(format!("{folder}/maps")) {
        Ok(file) => file,
        Err(error) if is_gone(&error) => return Ok(false),
        Err(error) => return Err(unseen(error)),
    };
    let mut lines = BufReader::new(file);
    let (mut line, mut has_any) = (Vec::new(), false);
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(has_any),
            Ok(_) if line.len() > LINE_BYTES_MAX => {
                return Err(WriteRefusal::unseen(what(), WriteRefusal::LongLine(line.len())));
            }
            Ok(_) => has_any = true,
            Err(error) if is_gone(&error) => return Ok(false),
            Err(error) => return Err(unseen(error)),
        }
        let Some((range, file)) = mapped_file(&line) else { continue };
        if known.contains(file) {
            continue;
        }
        match block::node(Path::new(&format!("{folder}/map_files/{range}"))) {
            Ok(DeviceNode::Other) => _ = known.insert(file.to_vec()),
            Ok(node) => seen(node)?,
            // Unmapped meanwhile.
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(unseen(error)),
        }
    }
}

/// Range and file (device, inode, path) of a line of `maps`, in the form of the names in `map_files`; nothing
/// for memory without a file.
pub(super) fn mapped_file(line: &[u8]) -> Option<(String, &[u8])> {
    let mut fields = line.splitn(4, |byte| *byte == b' ');
    let (range, _, _) = (fields.next()?, fields.next()?, fields.next()?);
    let file = fields.next()?;
    let inode = file.split(|byte| *byte == b' ').nth(1)?;
    if inode == b"0" || inode == b"0\n" {
        return None;
    }
    let (start, end) = std::str::from_utf8(range).ok()?.split_once('-')?;
    let plain = |number: &str| Some(format!("{:x}", u64::from_str_radix(number, 16).ok()?));
    Some((format!("{}-{}", plain(start)?, plain(end)?), file))
}
