//! Which programs use devices without an exclusive claim: open files, mappings, fixed files of io_uring, and
//! character devices that reach the same drive around the block layer (`/dev/sg*`, `/dev/bsg/*`, NVMe
//! controllers and `/dev/ng*`).
//!
//! In: devices, `/sys` and `/proc` of the running machine. Out: the process that uses each, or what cannot be
//! seen, which counts as use. Not seen are descriptors of a thread with a file table of its own
//! (`unshare(CLONE_FILES)`), and files that are on their way in a Unix socket.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::RawFd;
use std::path::Path;

use linerate_sys::block::{self, Node, Number};
use linerate_sys::root::{NAMES_MAX, ReadError, Root};

use super::Candidate;

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
    pub(super) fn of(candidate: &Candidate<'_>) -> Result<Self, String> {
        let parse = |(number, name): (String, String)| {
            let parsed =
                number.parse().map_err(|()| format!("the number of {name} cannot be read: '{number}'"))?;
            Ok((parsed, name))
        };
        let block = candidate.family()?.into_iter().map(parse).collect::<Result<_, String>>()?;
        let character =
            character_devices(candidate)?.into_iter().map(parse).collect::<Result<_, String>>()?;
        Ok(Self { block, character })
    }

    fn name(&self, node: Node) -> Option<&str> {
        let (list, number) = match node {
            Node::Block(number) => (&self.block, number),
            Node::Character(number) => (&self.character, number),
            Node::Anonymous | Node::Other => return None,
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
fn character_devices(candidate: &Candidate<'_>) -> Result<Vec<(String, String)>, String> {
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
        Ok((candidate.root.line(&path).map_err(|e| format!("{path}: {e}"))?, name))
    };
    folders.into_iter().map(number).collect()
}

fn is_there(candidate: &Candidate<'_>, path: &str) -> Result<bool, String> {
    match candidate.root.line(path) {
        Ok(_) => Ok(true),
        Err(ReadError::Missing) => Ok(false),
        Err(error) => Err(format!("{path}: {error}")),
    }
}

/// A folder that most devices do not have.
fn names(candidate: &Candidate<'_>, path: &str) -> Result<Vec<String>, String> {
    match candidate.root.list(path) {
        Err(ReadError::Missing) => Ok(Vec::new()),
        _ => candidate.seen(path, "character devices of the drive"),
    }
}

/// Processes by number.
pub(super) fn processes(root: &Root) -> Result<Vec<u32>, String> {
    let names = root.list("/proc").map_err(|e| format!("processes cannot be seen: /proc: {e}"))?;
    if names.len() >= NAMES_MAX {
        return Err(format!("processes cannot all be seen: /proc has {NAMES_MAX} entries or more"));
    }
    let all: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    if all.is_empty() { Err("processes cannot be seen: /proc names none".to_owned()) } else { Ok(all) }
}

/// Whether a process has ended, or has nothing open any more: it is gone, a zombie, or on its way out
/// (`PF_EXITING` of linux/sched.h).
pub(super) fn has_ended(root: &Root, process: u32) -> bool {
    const EXITING: u64 = 4;
    match root.read(&format!("/proc/{process}/stat")) {
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

/// Who uses each of some devices; the files `own` of this process do not count.
pub(super) fn users(root: &Root, devices: &[Reach], own: &[RawFd]) -> Result<Vec<Option<String>>, String> {
    let mut found = vec![None; devices.len()];
    let mut known = BTreeSet::new();
    for process in processes(root)? {
        let note = |reach: &Reach, node: Node| reach.name(node).map(|name| who(root, process, name));
        let mut seen = |find: &dyn Fn(&Reach) -> Option<String>| {
            for (reach, user) in devices.iter().zip(&mut found).filter(|(_, user)| user.is_none()) {
                *user = find(reach);
            }
        };
        let files = descriptors(root, process, own, &mut |node, fixed| match fixed {
            None => seen(&|reach| note(reach, node).map(|who| format!("{who} open"))),
            Some(file) => seen(&|reach| {
                let name = fixed_file(process, reach, file)?;
                Some(format!("{} as a file of its io_uring", who(root, process, name)))
            }),
        });
        let result = files.and_then(|()| {
            mappings(process, &mut known, &mut |node| {
                seen(&|reach| note(reach, node).map(|who| format!("{who} mapped")));
            })
        });
        // One that ended meanwhile uses nothing; all else that cannot be read may be use.
        if let Err(unseen) = result
            && !has_ended(root, process)
        {
            return Err(unseen);
        }
    }
    Ok(found)
}

fn who(root: &Root, process: u32, name: &str) -> String {
    let program = root.line(&format!("/proc/{process}/comm")).unwrap_or_default();
    format!("process {process} ({program}) has {name}")
}

/// An error with what would help: in a container, `root` may lack the right to look into processes.
fn said(error: &ReadError) -> String {
    match error {
        ReadError::Denied => {
            format!("{error}: this needs root of the host (CAP_SYS_PTRACE and CAP_SYS_ADMIN)")
        }
        _ => error.to_string(),
    }
}

/// Whether an error says that a file was closed, or its process has ended.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || ReadError::from(clone(error)) == ReadError::Missing
}

fn clone(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Reports each open file of a process, and each file that its io_uring instances hold.
fn descriptors(
    root: &Root,
    process: u32,
    own: &[RawFd],
    seen: &mut dyn FnMut(Node, Option<&str>),
) -> Result<(), String> {
    let folder = format!("/proc/{process}/fd");
    let files = match root.list(&folder) {
        Ok(files) => files,
        Err(ReadError::Missing) => return Ok(()),
        Err(error) => {
            return Err(format!("open files of process {process} cannot be seen: {}", said(&error)));
        }
    };
    if files.len() >= NAMES_MAX {
        return Err(format!("open files of process {process} cannot all be seen: {NAMES_MAX} or more"));
    }
    let is_this = process == std::process::id();
    for file in files {
        if is_this && file.parse().is_ok_and(|file: RawFd| own.contains(&file)) {
            continue;
        }
        let path = format!("{folder}/{file}");
        match block::node(Path::new(&path)) {
            Ok(Node::Anonymous) if is_ring(root, &path)? => {
                for fixed in fixed_files(root, process, &file)? {
                    seen(Node::Other, Some(&fixed));
                }
            }
            Ok(node) => seen(node, None),
            Err(error) if is_gone(&error) => {}
            Err(error) => {
                let why = said(&ReadError::from(error));
                return Err(format!("open file {file} of process {process} cannot be seen: {why}"));
            }
        }
    }
    Ok(())
}

fn is_ring(root: &Root, path: &str) -> Result<bool, String> {
    match root.link(path) {
        Ok(target) => Ok(target.contains("io_uring")),
        Err(ReadError::Missing) => Ok(false),
        Err(error) => Err(format!("{path} cannot be seen: {error}")),
    }
}

/// Paths of the files that an io_uring holds. Kernels up to 5.11 show the last name of each alone.
fn fixed_files(root: &Root, process: u32, file: &str) -> Result<Vec<String>, String> {
    for _ in 0..RING_READS {
        match root.read(&format!("/proc/{process}/fdinfo/{file}")) {
            Ok(text) => {
                if let Some(files) = parse_fixed_files(&text) {
                    return Ok(files);
                }
            }
            Err(ReadError::Missing) => return Ok(Vec::new()),
            Err(error) => {
                return Err(format!("files of the io_uring of process {process} cannot be seen: {error}"));
            }
        }
    }
    let program = root.line(&format!("/proc/{process}/comm")).unwrap_or_default();
    Err(format!(
        "files of the io_uring of process {process} ({program}) cannot be seen: the kernel does not list them"
    ))
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
/// for the process.
fn fixed_file<'a>(process: u32, reach: &'a Reach, file: &str) -> Option<&'a str> {
    let name = file.trim_end_matches(" (deleted)").rsplit('/').next()?;
    let there = || block::node(Path::new(&format!("/proc/{process}/root{file}"))).ok();
    reach.named(name).or_else(|| if file.starts_with('/') { reach.name(there()?) } else { None })
}

/// Reports the file below each mapping of a process. `known` are files that were seen in another one and are
/// no devices.
fn mappings(process: u32, known: &mut BTreeSet<Vec<u8>>, seen: &mut dyn FnMut(Node)) -> Result<(), String> {
    let unseen = |error: &io::Error| {
        format!("mappings of process {process} cannot be seen: {}", said(&ReadError::from(clone(error))))
    };
    let file = match File::open(format!("/proc/{process}/maps")) {
        Ok(file) => file,
        Err(error) if is_gone(&error) => return Ok(()),
        Err(error) => return Err(unseen(&error)),
    };
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(_) if line.len() > LINE_BYTES_MAX => {
                return Err(format!(
                    "mappings of process {process} cannot be seen: a line of {} bytes",
                    line.len()
                ));
            }
            Ok(_) => {}
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(unseen(&error)),
        }
        let Some((range, file)) = mapped_file(&line) else { continue };
        if known.contains(file) {
            continue;
        }
        match block::node(Path::new(&format!("/proc/{process}/map_files/{range}"))) {
            Ok(Node::Other) => _ = known.insert(file.to_vec()),
            Ok(node) => seen(node),
            // Unmapped meanwhile.
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(unseen(&error)),
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
