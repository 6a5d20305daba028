//! The folders above a file: whether another user could replace something on the path to it.
//!
//! In: an absolute path of a folder. Out: its descriptor, or the folder above it that another user owns, can
//! write to or has redirected. The path is walked from the root by descriptors, so what was checked is what
//! is used. Nothing is created or changed.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crate::{at, process};

/// Mode bits with which users other than the owner may write.
pub const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;
/// Links on the path to a folder; as many as the kernel follows.
const LINKS_MAX: u32 = 40;

/// What is wrong with a folder on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderIssue {
    /// Its owner is another user.
    Owner,
    /// Other users may write in it.
    Mode,
    /// It is a symbolic link of another user.
    Link,
    /// It is not a folder.
    NotFolder,
}

/// A folder on the path that another user may replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchangeable {
    /// The folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub by: FolderIssue,
    /// Its owner.
    pub owner: u32,
    /// Its mode, without the kind of file.
    pub mode: u32,
}

impl Exchangeable {
    fn new(path: &Path, by: FolderIssue, meta: &Metadata) -> Self {
        Self { path: path.to_owned(), by, owner: meta.uid(), mode: mode(meta) }
    }

    /// The refusal behind an error of this module.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// What is wrong with the path, in words; `what` is in the folder.
    pub fn problem(&self, what: &str) -> String {
        let Self { owner, mode, .. } = self;
        match self.by {
            FolderIssue::Owner => {
                format!("is owned by uid {owner} (mode {mode:04o}), who may exchange {what} in it")
            }
            FolderIssue::Mode => format!(
                "is writable by other users (owner uid {owner}, mode {mode:04o}), who may exchange {what} in it"
            ),
            FolderIssue::Link => format!("is a symbolic link (owner uid {owner}, mode {mode:04o})"),
            FolderIssue::NotFolder => "is not a folder".to_owned(),
        }
    }
}

impl fmt::Display for Exchangeable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path.display(), self.problem("files"))
    }
}

impl std::error::Error for Exchangeable {}

/// Users who may exchange a folder: root, the effective user and, seen from inside a user namespace, users
/// outside it, who cannot be told apart there.
pub struct Trusted {
    outside: Option<u32>,
}

impl Trusted {
    /// As seen by this process.
    pub fn new() -> Self {
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        let is_whole = map.split_ascii_whitespace().eq(["0", "0", "4294967295"]);
        let overflow = || std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?.trim().parse().ok();
        Self { outside: if is_whole { None } else { overflow() } }
    }

    fn has(&self, user: u32) -> bool {
        user == 0 || user == process::effective_user() || self.outside == Some(user)
    }

    /// Others may exchange what is in a folder neither as its owner nor by its mode.
    ///
    /// # Errors
    /// An [`Exchangeable`].
    pub fn check(&self, path: &Path, meta: &Metadata) -> io::Result<()> {
        let refused = |by| Err(io::Error::other(Exchangeable::new(path, by, meta)));
        if !meta.is_dir() {
            refused(FolderIssue::NotFolder)
        } else if !self.has(meta.uid()) {
            refused(FolderIssue::Owner)
        } else if mode(meta) & WRITABLE_BY_OTHERS != 0 && mode(meta) & STICKY == 0 {
            refused(FolderIssue::Mode)
        } else {
            Ok(())
        }
    }

    /// The same, and others may make nothing in it.
    ///
    /// # Errors
    /// An [`Exchangeable`].
    pub fn check_closed(&self, path: &Path, meta: &Metadata) -> io::Result<()> {
        self.check(path, meta)?;
        if mode(meta) & WRITABLE_BY_OTHERS == 0 {
            return Ok(());
        }
        Err(io::Error::other(Exchangeable::new(path, FolderIssue::Mode, meta)))
    }
}

impl Default for Trusted {
    fn default() -> Self {
        Self::new()
    }
}

/// How far a path leads.
#[derive(Debug)]
pub struct PathExtent {
    /// The last folder that is there, for lookups.
    pub folder: File,
    /// Its path, without links.
    pub path: PathBuf,
    /// What is missing below it.
    pub missing: Vec<OsString>,
}

/// Walks to a folder, as far as it is there, and checks every one on the path. Links of trusted users are
/// followed.
///
/// # Errors
/// An [`Exchangeable`], or the kernel's refusal. A path that is not absolute.
pub fn reach(path: &Path, trusted: &Trusted) -> io::Result<PathExtent> {
    if !path.is_absolute() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path"));
    }
    let mut names: VecDeque<OsString> = path.components().filter_map(name_of).collect();
    let (mut folder, mut reached, mut links) = (at::root()?, PathBuf::from("/"), 0);
    trusted.check(&reached, &folder.metadata()?)?;
    while let Some(name) = names.pop_front() {
        if name == ".." {
            reached.pop();
            folder = at::lookup(&folder, &name)?;
            continue;
        }
        let here = reached.join(&name);
        let next = match at::lookup(&folder, &name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                names.push_front(name);
                break;
            }
            other => other?,
        };
        let meta = next.metadata()?;
        if !meta.is_symlink() {
            trusted.check(&here, &meta)?;
            (folder, reached) = (next, here);
            continue;
        }
        links += 1;
        if !trusted.has(meta.uid()) {
            return Err(io::Error::other(Exchangeable::new(&here, FolderIssue::Link, &meta)));
        }
        if links > LINKS_MAX {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        let target = at::target(&next)?;
        if target.is_absolute() {
            (folder, reached) = (at::root()?, PathBuf::from("/"));
        }
        for component in target.components().rev() {
            if let Some(name) = name_of(component) {
                names.push_front(name);
            }
        }
    }
    Ok(PathExtent { folder, path: reached, missing: names.into() })
}

fn name_of(component: Component<'_>) -> Option<OsString> {
    match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    }
}

fn mode(meta: &Metadata) -> u32 {
    meta.mode() & 0o7777
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn reached(path: &Path) -> io::Result<PathExtent> {
        reach(path, &Trusted::new())
    }

    #[test]
    fn the_way_ends_at_what_is_missing_and_own_links_are_followed() {
        let temporary = tempfile::tempdir().unwrap();
        let top = temporary.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("a/b")).unwrap();
        symlink("a/../a/b", top.join("link")).unwrap();
        let far = reached(&top.join("link/c/d")).unwrap();
        assert_eq!((far.path, far.missing), (top.join("a/b"), vec!["c".into(), "d".into()]));
        assert!(reached(&top.join("a")).unwrap().missing.is_empty());
        symlink("circle", top.join("circle")).unwrap();
        assert_eq!(reached(&top.join("circle")).unwrap_err().raw_os_error(), Some(libc::ELOOP));
        assert!(reached(Path::new("a")).is_err());
    }

    #[test]
    fn a_folder_that_others_may_exchange_is_named_with_owner_and_mode() {
        let temporary = tempfile::tempdir().unwrap();
        let open = temporary.path().join("open");
        fs::create_dir_all(open.join("inner")).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        let error = reached(&open.join("inner")).unwrap_err();
        let refused = Exchangeable::of(&error).unwrap();
        assert_eq!((&refused.path, refused.by, refused.mode), (&open, FolderIssue::Mode, 0o777));
        assert!(error.to_string().contains("mode 0777"), "{error}");
        // Sticky: others make things in it, and exchange nothing.
        fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
        let far = reached(&open).unwrap();
        assert!(Trusted::new().check_closed(&open, &far.folder.metadata().unwrap()).is_err());
        fs::write(open.join("file"), "").unwrap();
        let error = reached(&open.join("file")).unwrap_err();
        assert_eq!(Exchangeable::of(&error).unwrap().by, FolderIssue::NotFolder);
    }
}
