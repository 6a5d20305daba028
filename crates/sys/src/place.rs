//! Network namespaces by the names that people have for them: `pid:1234`, `container:NAME`, `netns:PATH`, a path, or what `ip netns`
//! calls it.
//!
//! In: a root and a text. Out: the path of the namespace, or what is wrong and what exists instead. It starts no program and asks no
//! daemon: containers are found by the files that docker, podman and containerd keep, and by the control groups of processes.

mod containers;

use std::path::{Path, PathBuf};

use crate::root::{ReadError, Root};

/// Folders in which programs keep namespaces by name.
const FOLDERS: [&str; 2] = ["/run/netns", "/run/docker/netns"];
/// Names that an error lists.
const LISTED_MAX: usize = 12;

/// The path of the namespace that a text means on this host.
pub fn resolve(root: &Root, place: &Path) -> Result<PathBuf, String> {
    let Some(text) = place.to_str() else { return Err("is not text".to_owned()) };
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

/// A name in one of the folders.
fn named(root: &Root, name: &str) -> Result<PathBuf, String> {
    let mut known = Vec::new();
    for folder in FOLDERS {
        let names = root.list(folder).unwrap_or_default();
        if names.iter().any(|n| n == name) {
            return Ok(Path::new(folder).join(name));
        }
        known.extend(names);
    }
    Err(format!("no namespace is called `{name}`; {}", listed("there are", &known)))
}

/// The namespace of a process, looked at through its link.
fn of_process(root: &Root, pid: &str) -> Result<PathBuf, String> {
    let digits = !pid.is_empty() && pid.len() <= 10 && pid.bytes().all(|b| b.is_ascii_digit());
    if !digits {
        return Err(format!("`{pid}` is no process id: a number such as pid:1234"));
    }
    let path = format!("/proc/{pid}/ns/net");
    match root.link(&path) {
        Ok(_) => Ok(PathBuf::from(path)),
        Err(ReadError::Missing) => Err(format!("no process has the id {pid}; it may have ended")),
        Err(ReadError::Denied) => {
            Err(format!("the namespace of process {pid} may not be looked at: needs root"))
        }
        Err(error) => Err(format!("process {pid}: {error}")),
    }
}

/// `there are: a, b and 3 more`.
fn listed(head: &str, names: &[String]) -> String {
    if names.is_empty() {
        return format!("{head} none");
    }
    let mut list = names[..names.len().min(LISTED_MAX)].join(", ");
    if names.len() > LISTED_MAX {
        list = format!("{list} and {} more", names.len() - LISTED_MAX);
    }
    format!("{head}: {list}")
}

#[cfg(test)]
mod tests;
