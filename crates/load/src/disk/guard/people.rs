//! Checks by what programs do with a device: file systems in any mount namespace, swap, programs that have it open.

use std::collections::BTreeSet;
use std::path::Path;

use linerate_sys::block::{self, Kind};
use linerate_sys::procfs;
use linerate_sys::root::ReadError;

use super::{Candidate, Check};

/// Processes that are looked at.
const PROCESSES_MAX: usize = 100_000;
/// Open files of a process that are looked at.
const FILES_MAX: usize = 65_536;

/// Processes by number.
fn processes(candidate: &Candidate<'_>) -> Result<Vec<u32>, String> {
    let names = candidate.seen("/proc", "processes")?;
    let all: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    if all.len() > PROCESSES_MAX {
        return Err(format!("{} processes are more than can be looked at", all.len()));
    }
    Ok(all)
}

/// Where a device is mounted, in any namespace in which a process is.
pub(super) fn mounted_at(
    candidate: &Candidate<'_>,
    number: &str,
    name: &str,
) -> Result<Option<String>, String> {
    let mut seen = BTreeSet::new();
    for process in processes(candidate)? {
        // Thousands of processes have the same namespace; of one whose namespace cannot be read, the mounts are read all the same.
        if let Ok(namespace) = candidate.root.link(&format!("/proc/{process}/ns/mnt"))
            && !seen.insert(namespace)
        {
            continue;
        }
        let text = match candidate.root.read(&format!("/proc/{process}/mountinfo")) {
            Ok(text) => text,
            // It ended, or is a zombie.
            Err(ReadError::Missing | ReadError::Other(_)) => continue,
            Err(error) => return Err(format!("mounts of process {process} cannot be seen: {error}")),
        };
        let device = format!("/dev/{name}");
        // btrfs and ZFS have numbers without a driver; then the source tells.
        let found = procfs::mounts(&text)
            .into_iter()
            .find(|m| m.number == number || m.source == device || is_same(candidate, &m.source, number));
        if let Some(mount) = found {
            return Ok(Some(format!("{} (seen by process {process})", mount.point)));
        }
    }
    Ok(None)
}

/// Whether a source of a mount is a link to the device (`/dev/disk/by-uuid/…`).
fn is_same(candidate: &Candidate<'_>, source: &str, number: &str) -> bool {
    candidate.root.is_live()
        && source.starts_with("/dev/")
        && matches!(block::kind(Path::new(source)), Ok(Kind::Device(n)) if n.to_string() == number)
}

/// It, or the drive that it is a part of, is mounted.
pub(super) struct Mounted;

impl Check for Mounted {
    fn name(&self) -> &'static str {
        "mounted"
    }

    fn look(&self, candidate: &Candidate<'_>) -> Result<(), String> {
        let mut all = vec![(candidate.number.to_string(), candidate.name.clone())];
        if let Some(whole) = &candidate.whole {
            let folder = format!("/sys/block/{whole}/dev");
            let number = candidate.root.line(&folder).map_err(|e| format!("{folder}: {e}"))?;
            all.push((number, whole.clone()));
        } else {
            for part in candidate.partitions(&candidate.name)? {
                let folder = format!("{}/{part}/dev", candidate.folder);
                let number = candidate.root.line(&folder).map_err(|e| format!("{folder}: {e}"))?;
                all.push((number, part));
            }
        }
        for (number, name) in all {
            if let Some(point) = mounted_at(candidate, &number, &name)? {
                return Err(format!("{name} is mounted on {point}"));
            }
        }
        Ok(())
    }
}

/// Whether the kernel swaps to it.
pub(super) fn is_swap(candidate: &Candidate<'_>, name: &str) -> Result<bool, String> {
    let text = match candidate.root.read("/proc/swaps") {
        Ok(text) => text,
        // A kernel without swap has no such file.
        Err(ReadError::Missing) => return Ok(false),
        Err(error) => return Err(format!("swap cannot be seen: {error}")),
    };
    let device = format!("/dev/{name}");
    let number = (name == candidate.name).then(|| candidate.number.to_string());
    Ok(text.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().next()).any(|source| {
        source == device || number.as_ref().is_some_and(|number| is_same(candidate, source, number))
    }))
}

/// The kernel swaps to it.
pub(super) struct Swap;

impl Check for Swap {
    fn name(&self) -> &'static str {
        "swap"
    }

    fn look(&self, candidate: &Candidate<'_>) -> Result<(), String> {
        let mut names = vec![candidate.name.clone()];
        if candidate.whole.is_none() {
            names.extend(candidate.partitions(&candidate.name)?);
        }
        for name in names {
            if is_swap(candidate, &name)? {
                return Err(format!("the kernel swaps to {name}"));
            }
        }
        Ok(())
    }
}

/// A program has it open: a virtual machine or a database on the bare device does not tell the kernel that it is alone.
pub(super) struct Opened;

impl Check for Opened {
    fn name(&self) -> &'static str {
        "open"
    }

    fn look(&self, candidate: &Candidate<'_>) -> Result<(), String> {
        // A recorded tree has no open files.
        if !candidate.root.is_live() {
            return Ok(());
        }
        for process in processes(candidate)? {
            let folder = format!("/proc/{process}/fd");
            let files = match candidate.root.list(&folder) {
                Ok(files) => files,
                Err(ReadError::Denied) => {
                    return Err(format!("open files of process {process} cannot be seen: this needs root"));
                }
                // It ended meanwhile.
                Err(_) => continue,
            };
            for file in files.iter().take(FILES_MAX) {
                let kind = block::kind(Path::new(&format!("{folder}/{file}")));
                if matches!(kind, Ok(Kind::Device(number)) if number == candidate.number) {
                    let who = candidate.root.line(&format!("/proc/{process}/comm")).unwrap_or_default();
                    return Err(format!("process {process} ({who}) has it open"));
                }
            }
        }
        Ok(())
    }
}
