//! Access to `/proc` and `/sys`: of the running machine, or of a recorded tree.
//!
//! In: paths such as `/proc/net/snmp`. Out: text, names or link targets, bounded in size, or a reason.
//! Answers of the kernel that are not files (netlink, ethtool) pass through [`Root::answer`] and are kept in
//! a tree as JSON below `linerate/`, so a recorded tree answers everything. It never panics on the content of
//! a tree, never leaves the tree, and never writes to a recorded one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::netlink::NetlinkError;

/// Largest file that is read.
pub const FILE_BYTES_MAX: u64 = 8 << 20;
/// Most names of a folder that are read.
pub const NAMES_MAX: usize = 65_536;
/// Largest recorded answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Folder of a tree that keeps what is no file.
const ANSWERS: &str = "linerate";
/// Name (below [`ANSWERS`]) of what the tree keeps in one file.
const NOTES: &str = "files";
/// Files up to this size are kept there.
const SMALL_BYTES: usize = 1024;

/// Why something could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// This kernel does not have it.
    #[error("this kernel does not have it")]
    Missing,
    /// Rights are lacking.
    #[error("permission denied")]
    Denied,
    /// Larger than what is read.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// Limit.
        limit: u64,
    },
    /// The path leads out of the tree.
    #[error("not a plain path below the root")]
    Path,
    /// The tree was recorded: nothing can be written.
    #[error("a recorded tree cannot be written")]
    Recorded,
    /// The tree was recorded without it.
    #[error("not in the recorded tree")]
    NotRecorded,
    /// The tree was recorded without this network namespace.
    #[error("the recorded tree does not have this namespace")]
    NoNamespace,
    /// What the tree has is no answer.
    #[error("the recorded answer is damaged: {0}")]
    Damaged(String),
    /// Anything else, in the words of the kernel.
    #[error("{0}")]
    Other(String),
}

impl From<NetlinkError> for ReadError {
    fn from(error: NetlinkError) -> Self {
        Self::Other(error.to_string())
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        // Files of a process that ended while they were open.
        if error.raw_os_error() == Some(libc::ESRCH) {
            return Self::Missing;
        }
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Other(strip_number(&error.to_string())),
        }
    }
}

/// Why a recording was not written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct RecordError {
    /// File of the tree.
    pub path: PathBuf,
    /// The kernel's answer.
    pub source: io::Error,
}

/// `Invalid argument (os error 22)` -> `invalid argument`.
fn strip_number(text: &str) -> String {
    let head = text.split(" (os error").next().unwrap_or(text);
    let mut chars = head.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// What a tree keeps in one file: a thousand small files would be a burden, links may not lead out of the
/// tree, and every file in a tree can be read. A tree of plain files needs none of it.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Notes {
    /// Path to content of small files.
    #[serde(default)]
    texts: BTreeMap<String, String>,
    /// Path to names in a folder.
    #[serde(default)]
    lists: BTreeMap<String, Vec<String>>,
    /// Path to link target.
    #[serde(default)]
    links: BTreeMap<String, String>,
    /// Path to reason why it could not be read.
    #[serde(default)]
    refused: BTreeMap<String, String>,
}

#[derive(Debug)]
enum Kind {
    Live,
    Recording { tree: PathBuf, notes: Mutex<Notes> },
    Recorded { tree: PathBuf, notes: Notes, writable: bool },
}

/// Where to read from.
#[derive(Debug)]
pub struct Root {
    kind: Kind,
}

impl Root {
    /// The running machine, as the calling thread sees it: network files come from the namespace of the
    /// thread.
    pub fn live() -> Self {
        Self { kind: Kind::Live }
    }

    /// A tree that [`Root::recording`] or a person made.
    pub fn recorded(tree: &Path) -> Self {
        let notes = read_json(&answer_path(tree, NOTES)).unwrap_or_default();
        Self { kind: Kind::Recorded { tree: tree.to_path_buf(), notes, writable: false } }
    }

    /// A tree whose files take what is written to them: for tests of settings that the machine at hand lacks.
    pub fn fixture(tree: &Path) -> Self {
        let notes = Notes::default();
        Self { kind: Kind::Recorded { tree: tree.to_path_buf(), notes, writable: true } }
    }

    /// The running machine; everything that is read is also written into `tree`. [`Root::finish`] ends it.
    pub fn recording(tree: &Path) -> Self {
        Self { kind: Kind::Recording { tree: tree.to_path_buf(), notes: Mutex::default() } }
    }

    /// Whether values come from the running machine and can be written.
    pub fn is_live(&self) -> bool {
        !matches!(self.kind, Kind::Recorded { .. })
    }

    /// Whether files take what is written to them.
    pub fn is_writable(&self) -> bool {
        !matches!(self.kind, Kind::Recorded { writable: false, .. })
    }

    /// Text of a file, lossy where it is not UTF-8, at most [`FILE_BYTES_MAX`].
    pub fn read(&self, path: &str) -> Result<String, ReadError> {
        check_path(path)?;
        match &self.kind {
            Kind::Live => read_bounded(Path::new(&live_path(path)), FILE_BYTES_MAX),
            Kind::Recording { tree, notes } => {
                let result = read_bounded(Path::new(&live_path(path)), FILE_BYTES_MAX);
                match &result {
                    Ok(text) if text.len() <= SMALL_BYTES => {
                        lock(notes).texts.insert(path.to_string(), text.clone());
                    }
                    Ok(text) => self.keep(&tree_path(tree, path), text.as_bytes()),
                    Err(error) => self.refuse(path, error),
                }
                result
            }
            Kind::Recorded { tree, notes, .. } => {
                refused(notes, path)?;
                if let Some(text) = notes.texts.get(path) {
                    return Ok(text.clone());
                }
                let file = tree_path(tree, path);
                // A pipe or a device in a stray tree would block the reader.
                if !fs::metadata(&file)?.is_file() {
                    return Err(ReadError::Missing);
                }
                read_bounded(&file, FILE_BYTES_MAX)
            }
        }
    }

    /// Whether a file may be run as a program, by anyone.
    pub fn is_executable(&self, path: &str) -> Result<bool, ReadError> {
        check_path(path)?;
        let file = match &self.kind {
            Kind::Live | Kind::Recording { .. } => PathBuf::from(live_path(path)),
            Kind::Recorded { tree, .. } => tree_path(tree, path),
        };
        let about = fs::metadata(file)?;
        Ok(about.is_file() && about.permissions().mode() & 0o111 != 0)
    }

    /// Text of a file without white space at both ends.
    pub fn line(&self, path: &str) -> Result<String, ReadError> {
        Ok(self.read(path)?.trim().to_string())
    }

    /// A file that holds one whole number.
    pub fn number(&self, path: &str) -> Result<i64, ReadError> {
        let text = self.line(path)?;
        text.parse().map_err(|_| ReadError::Other(format!("'{}' is not a whole number", shorten(&text))))
    }

    /// Names in a folder, sorted; names that are not UTF-8 are left out.
    pub fn list(&self, path: &str) -> Result<Vec<String>, ReadError> {
        check_path(path)?;
        match &self.kind {
            Kind::Live => list_bounded(Path::new(&live_path(path))),
            Kind::Recording { notes, .. } => {
                let result = list_bounded(Path::new(&live_path(path)));
                if let Ok(names) = &result {
                    lock(notes).lists.insert(path.to_string(), names.clone());
                }
                result
            }
            Kind::Recorded { tree, notes, .. } => match notes.lists.get(path) {
                Some(names) => Ok(names.clone()),
                None => list_bounded(&tree_path(tree, path)),
            },
        }
    }

    /// Target of a symbolic link, as text.
    pub fn link(&self, path: &str) -> Result<String, ReadError> {
        check_path(path)?;
        match &self.kind {
            Kind::Live => read_link(path),
            Kind::Recording { notes, .. } => {
                let target = read_link(path)?;
                lock(notes).links.insert(path.to_string(), target.clone());
                Ok(target)
            }
            Kind::Recorded { notes, .. } => notes.links.get(path).cloned().ok_or(ReadError::Missing),
        }
    }

    /// Last component of the target of a symbolic link: the name of a driver, of a PCI device.
    pub fn link_name(&self, path: &str) -> Result<String, ReadError> {
        let target = self.link(path)?;
        Ok(target.rsplit('/').next().unwrap_or_default().to_string())
    }

    /// Writes a file of `/proc` or `/sys` in one call. Refused on a recorded tree.
    pub fn write(&self, path: &str, text: &str) -> Result<(), ReadError> {
        check_path(path)?;
        let (target, is_plain) = match &self.kind {
            Kind::Recorded { writable: false, .. } => return Err(ReadError::Recorded),
            Kind::Recorded { tree, .. } => (tree_path(tree, path), true),
            Kind::Live | Kind::Recording { .. } => (PathBuf::from(live_path(path)), false),
        };
        // Never created, and truncated only where it is a plain file: a setting that does not exist must not
        // become one.
        let mut file = fs::OpenOptions::new().write(true).truncate(is_plain).open(target)?;
        Ok(file.write_all(text.as_bytes())?)
    }

    /// An answer of the kernel that is no file: asked on a running machine, taken from `linerate/<name>.json`
    /// in a tree.
    pub fn answer<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        ask: impl FnOnce() -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        match &self.kind {
            Kind::Live => ask(),
            Kind::Recording { tree, .. } => {
                let value = ask();
                if let Ok(value) = &value
                    && let Ok(text) = serde_json::to_string_pretty(value)
                {
                    self.keep(&answer_path(tree, name), text.as_bytes());
                }
                value
            }
            Kind::Recorded { tree, .. } => read_json(&answer_path(tree, name)),
        }
    }

    /// The root of a network namespace: for threads inside it on a running machine, its sub-tree in a
    /// recorded one.
    pub(crate) fn of_namespace(&self, path: &Path) -> Result<Self, ReadError> {
        Ok(match &self.kind {
            Kind::Live => Self::live(),
            Kind::Recording { tree, .. } => Self::recording(&namespace_tree(tree, path)),
            Kind::Recorded { tree, .. } => {
                let tree = namespace_tree(tree, path);
                if !tree.is_dir() {
                    return Err(ReadError::NoNamespace);
                }
                Self::recorded(&tree)
            }
        })
    }

    /// Puts other text in the place of what a recording read from a file: names that must not leave the host.
    pub fn replace(&self, path: &str, text: &str) {
        if let Kind::Recording { notes, .. } = &self.kind
            && let Some(kept) = lock(notes).texts.get_mut(path)
        {
            text.clone_into(kept);
        }
    }

    /// Ends a recording: writes what the tree keeps in one file. Does nothing on other roots.
    pub fn finish(&self) -> Result<(), RecordError> {
        let Kind::Recording { tree, notes } = &self.kind else { return Ok(()) };
        let path = answer_path(tree, NOTES);
        let write = || -> io::Result<()> {
            fs::create_dir_all(path.parent().unwrap_or(tree))?;
            fs::write(&path, serde_json::to_string_pretty(&*lock(notes))?)
        };
        write().map_err(|source| RecordError { path, source })
    }

    /// Notes a file in the tree of a recording; what cannot be written shows at [`Root::finish`] as a missing
    /// folder.
    fn keep(&self, file: &Path, content: &[u8]) {
        let write = || -> io::Result<()> {
            fs::create_dir_all(file.parent().unwrap_or(file))?;
            fs::write(file, content)
        };
        if let Err(error) = write() {
            self.refuse(&file.to_string_lossy(), &error.into());
        }
    }

    fn refuse(&self, path: &str, error: &ReadError) {
        if let Kind::Recording { notes, .. } = &self.kind
            && *error != ReadError::Missing
            // A folder is told by its list.
            && *error != ReadError::Other("is a directory".to_string())
        {
            lock(notes).refused.insert(path.to_string(), error.to_string());
        }
    }
}

fn lock(notes: &Mutex<Notes>) -> std::sync::MutexGuard<'_, Notes> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(notes: &Notes, path: &str) -> Result<(), ReadError> {
    match notes.refused.get(path).map(String::as_str) {
        None => Ok(()),
        Some("permission denied") => Err(ReadError::Denied),
        Some(reason) => Err(ReadError::Other(reason.to_string())),
    }
}

/// Only `/a/b/c`: names from the kernel or an operator must not lead elsewhere.
fn check_path(path: &str) -> Result<(), ReadError> {
    let plain = path.starts_with('/')
        && !path.contains('\0')
        && Path::new(path).components().all(|c| matches!(c, Component::RootDir | Component::Normal(_)));
    if plain { Ok(()) } else { Err(ReadError::Path) }
}

/// `/proc/net` and `/proc/self` show the first thread of a process, which may live in another network
/// namespace.
fn live_path(path: &str) -> String {
    for (shown, own) in [("/proc/net/", "/proc/thread-self/net/"), ("/proc/self/", "/proc/thread-self/")] {
        if let Some(rest) = path.strip_prefix(shown) {
            return format!("{own}{rest}");
        }
    }
    path.to_string()
}

fn tree_path(tree: &Path, path: &str) -> PathBuf {
    tree.join(path.trim_start_matches('/'))
}

fn answer_path(tree: &Path, name: &str) -> PathBuf {
    tree.join(ANSWERS).join(format!("{name}.json"))
}

fn namespace_tree(tree: &Path, namespace: &Path) -> PathBuf {
    let name = namespace.to_string_lossy().replace('%', "%25").replace('/', "%2F");
    tree.join(ANSWERS).join("netns").join(name)
}

fn read_link(path: &str) -> Result<String, ReadError> {
    Ok(fs::read_link(live_path(path))?.to_string_lossy().into_owned())
}

fn read_bounded(path: &Path, limit: u64) -> Result<String, ReadError> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLarge { limit });
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

fn list_bounded(path: &Path) -> Result<Vec<String>, ReadError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)?.take(NAMES_MAX) {
        if let Ok(name) = entry?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ReadError> {
    let is_file = fs::metadata(path).is_ok_and(|m| m.is_file());
    if !is_file {
        return Err(ReadError::NotRecorded);
    }
    let text = read_bounded(path, ANSWER_BYTES_MAX)?;
    serde_json::from_str(&text).map_err(|e| ReadError::Damaged(e.to_string()))
}

/// Start of a text for messages.
fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() > 40 {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_out_of_the_tree() {
        let root = Root::recorded(Path::new("/nonexistent"));
        for path in ["/proc/../etc/passwd", "proc/stat", "/proc/\0", "/.."] {
            assert_eq!(root.read(path), Err(ReadError::Path), "{path}");
        }
        assert_eq!(root.read("/proc/stat"), Err(ReadError::Missing));
        assert_eq!(root.write("/proc/sys/vm/swappiness", "1"), Err(ReadError::Recorded));
    }

    #[test]
    fn a_recording_reads_back_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let live = Root::recording(folder.path());
        let files = ["/proc/net/snmp", "/proc/sys/kernel/ostype"];
        let seen: Vec<_> = files.iter().map(|f| live.line(f)).collect();
        let names = live.list("/proc/sys/kernel/random").unwrap();
        let namespace = live.link("/proc/self/ns/net").unwrap();
        assert_eq!(live.answer("numbers", || Ok(vec![1, 2])), Ok(vec![1, 2]));
        live.finish().unwrap();
        let tree = Root::recorded(folder.path());
        assert_eq!(tree.line(files[1]), seen[1]);
        assert_eq!(tree.list("/proc/sys/kernel/random").unwrap(), names);
        assert_eq!(tree.link("/proc/self/ns/net").unwrap(), namespace);
        assert_eq!(tree.answer::<Vec<i32>>("numbers", || Err(ReadError::Denied)), Ok(vec![1, 2]));
        assert_eq!(tree.answer::<Vec<i32>>("others", || Ok(vec![])), Err(ReadError::NotRecorded));
    }

    #[test]
    fn words_of_the_kernel_lose_their_number() {
        assert_eq!(
            ReadError::from(io::Error::from_raw_os_error(libc::EINVAL)).to_string(),
            "invalid argument"
        );
    }
}
