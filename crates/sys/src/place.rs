//! Network namespaces by name: `pid:1234`, `container:NAME`, `netns:PATH`, a path, or a name of `ip netns`.
//!
//! In: a root and a text. Out: the path of the namespace, or the error and what exists instead; work can also
//! be run with the root of the namespace. It starts no program and queries no daemon: containers are found by
//! the files of docker, podman and containerd, and by the control groups of processes.

mod containers;
mod error;
mod listed;

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::netns;
use crate::root::{ReadError, Root};
pub use error::PlaceError;

/// Folders in which programs keep namespaces by name.
const FOLDERS: [&str; 2] = ["/run/netns", "/run/docker/netns"];

/// The path of the namespace that a text means on this host.
pub fn resolve(root: &Root, place: &Path) -> Result<PathBuf, PlaceError> {
    let text = place.to_str().ok_or(PlaceError::NotText)?;
    if let Some(pid) = text.strip_prefix("pid:") {
        return of_process(root, pid);
    }
    if let Some(name) = text.strip_prefix("container:") {
        return containers::find(root, name).and_then(|pid| of_process(root, &pid.to_string()));
    }
    let text = text.strip_prefix("netns:").unwrap_or(text);
    if text.contains('/') {
        // `/proc/17/fd/9` is no plain file, so that whether it exists is left to opening it.
        return Ok(PathBuf::from(text));
    }
    named(root, text)
}

/// Runs `work` with the root of a network namespace: on a thread of its own inside the namespace on a running
/// machine, with the sub-tree of the namespace in a recorded one. `work` also gets the reason why `/sys` is
/// not that of the namespace, where it is not.
pub fn in_namespace<T: Send>(
    root: &Root,
    path: &Path,
    work: impl FnOnce(&Root, Option<String>) -> T + Send,
) -> Result<T, PlaceError> {
    let inner = root.of_namespace(path)?;
    if !inner.is_live() {
        return Ok(work(&inner, None));
    }
    // Never through a recording: what engines keep about containers has secrets in it.
    let found = resolve(&Root::live(), path)?;
    let file = File::open(&found).map_err(|source| PlaceError::Open { path: found, source })?;
    let run = || {
        let sysfs_gap = netns::enter_file_with_sysfs(&file)
            .map_err(|source| PlaceError::Enter { path: path.to_owned(), source })?;
        let result = work(&inner, sysfs_gap);
        inner.finish()?;
        Ok(result)
    };
    std::thread::scope(|scope| scope.spawn(run).join().map_err(|_| PlaceError::Panicked)?)
}

/// A name in one of the folders.
fn named(root: &Root, name: &str) -> Result<PathBuf, PlaceError> {
    let mut known = Vec::new();
    for folder in FOLDERS {
        let names = root.list(folder).unwrap_or_default();
        if names.iter().any(|n| n == name) {
            return Ok(Path::new(folder).join(name));
        }
        known.extend(names);
    }
    Err(PlaceError::NoName { name: name.to_owned(), known })
}

/// The namespace of a process, checked by its link.
fn of_process(root: &Root, pid: &str) -> Result<PathBuf, PlaceError> {
    let digits = !pid.is_empty() && pid.len() <= 10 && pid.bytes().all(|b| b.is_ascii_digit());
    if !digits {
        return Err(PlaceError::NotAnId(pid.to_owned()));
    }
    let path = format!("/proc/{pid}/ns/net");
    let (link, pid) = (root.link(&path), pid.to_owned());
    link.map(|_| PathBuf::from(path)).map_err(|error| match error {
        ReadError::Missing => PlaceError::NoProcess(pid),
        ReadError::Denied => PlaceError::Denied(pid),
        source => PlaceError::Process { pid, source },
    })
}

#[cfg(test)]
mod tests;
