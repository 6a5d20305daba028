//! Checks by what the kernel does with a device for programs: file systems in any mount namespace, swap, NVMe
//! targets.

use std::collections::BTreeSet;
use std::path::Path;

use linerate_sys::block::{self, FileKind};
use linerate_sys::procfs;
use linerate_sys::root::ReadError;

use super::candidate::{Candidate, Check};
use super::error::WriteRefusal;
use super::programs::{processes, tasks};

/// Where a device is mounted, as a reason, in any namespace in which a process is.
pub(super) fn mounted_at(
    candidate: &Candidate<'_>,
    number: &str,
    name: &str,
) -> Result<Option<WriteRefusal>, WriteRefusal> {
    let mut seen = BTreeSet::new();
    let device = format!("/dev/{name}");
    for process in processes(candidate.root)? {
        // A thread may have a namespace of its own, and the main one may have ended before the others.
        for task in tasks(candidate.root, process)? {
            let folder = task.folder();
            // Thousands of processes have the same namespace; of one whose namespace cannot be read, the
            // mounts are read all the same.
            let namespace = candidate.root.link(&format!("{folder}/ns/mnt")).ok();
            if namespace.as_ref().is_some_and(|namespace| seen.contains(namespace)) {
                continue;
            }
            let text = match candidate.root.read(&format!("{folder}/mountinfo")) {
                Ok(text) => text,
                Err(ReadError::Missing) => continue,
                Err(_) if task.has_ended(candidate.root) => continue,
                Err(error) => {
                    return Err(WriteRefusal::unseen(format!("mounts of process {process}"), error));
                }
            };
            // Only now: the process could have ended before its mounts were read.
            seen.extend(namespace);
            // btrfs and ZFS have numbers without a driver; then the source decides.
            let found = procfs::mounts(&text)
                .into_iter()
                .find(|m| m.number == number || m.source == device || is_same(candidate, &m.source, number));
            if let Some(mount) = found {
                let (name, point) = (name.to_owned(), mount.point);
                return Ok(Some(WriteRefusal::Mounted { name, point, process }));
            }
        }
    }
    Ok(None)
}

/// Whether a source of a mount is a link to the device (`/dev/disk/by-uuid/…`).
pub(super) fn is_same(candidate: &Candidate<'_>, source: &str, number: &str) -> bool {
    candidate.root.is_live()
        && source.starts_with("/dev/")
        && matches!(block::kind(Path::new(source)), Ok(FileKind::Device(n)) if n.to_string() == number)
}

/// It, or the drive that it is a part of, is mounted.
pub(super) struct Mounted;

impl Check for Mounted {
    fn name(&self) -> &'static str {
        "mounted"
    }

    fn run(&self, candidate: &Candidate<'_>) -> Result<(), WriteRefusal> {
        for (number, name) in candidate.family()? {
            if let Some(mounted) = mounted_at(candidate, &number, &name)? {
                return Err(mounted);
            }
        }
        Ok(())
    }
}

/// Whether the kernel swaps to it.
pub(super) fn is_swap(candidate: &Candidate<'_>, name: &str) -> Result<bool, WriteRefusal> {
    let text = match candidate.root.read("/proc/swaps") {
        Ok(text) => text,
        // A kernel without swap has no such file.
        Err(ReadError::Missing) => return Ok(false),
        Err(error) => return Err(WriteRefusal::unseen("swap", error)),
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

    fn run(&self, candidate: &Candidate<'_>) -> Result<(), WriteRefusal> {
        let mut names = vec![candidate.name.clone()];
        if candidate.whole.is_none() {
            names.extend(candidate.partitions(&candidate.name)?);
        }
        for name in names {
            if is_swap(candidate, &name)? {
                return Err(WriteRefusal::Swap(name));
            }
        }
        Ok(())
    }
}

/// The kernel exports it over NVMe-oF: its target opens a device without `O_EXCL`.
pub(super) struct Exported;

/// Where the NVMe target of the kernel is set up.
const TARGETS: &str = "/sys/kernel/config/nvmet/subsystems";

impl Check for Exported {
    fn name(&self) -> &'static str {
        "exported"
    }

    fn run(&self, candidate: &Candidate<'_>) -> Result<(), WriteRefusal> {
        match candidate.root.list(TARGETS) {
            // No target, or no configfs.
            Err(ReadError::Missing) => return Ok(()),
            Err(error) => {
                return Err(WriteRefusal::unseen("NVMe targets", WriteRefusal::file(TARGETS)(error)));
            }
            Ok(_) => {}
        }
        let family = candidate.family()?;
        for subsystem in candidate.seen(TARGETS, "NVMe targets")? {
            let spaces = format!("{TARGETS}/{subsystem}/namespaces");
            for space in candidate.seen(&spaces, "what an NVMe target exports")? {
                let file = format!("{spaces}/{space}/device_path");
                let path = candidate.root.line(&file).map_err(WriteRefusal::file(&file))?;
                let is_it = |(number, name): &(String, String)| {
                    path == format!("/dev/{name}") || is_same(candidate, &path, number)
                };
                if family.iter().any(is_it) {
                    return Err(WriteRefusal::Exported(subsystem));
                }
            }
        }
        Ok(())
    }
}
