//! The node program that is copied to a host to stay there, and removed again.
//!
//! In: a path and a hash. Out: a program of this user, which no one else can write, in a folder that no one
//! else can write. It copies only itself, and removes only what has the hash.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use linerate_sys::root::Root;
use sha2::{Digest as _, Sha256};

use linerate_facts::change::host::{ChangingHost as _, RealHost};

/// This program.
pub(super) const OWN: &str = "/proc/self/exe";
/// Mode of what is run, and of its folder.
const PROGRAM_MODE: u32 = 0o755;

/// SHA-256 of this program, hexadecimal.
pub(super) fn own_hash() -> io::Result<String> {
    hash(Path::new(OWN))
}

fn hash(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut part = vec![0; 1 << 20];
    loop {
        match file.read(&mut part)? {
            0 => break,
            read => hash.update(&part[..read]),
        }
    }
    Ok(hash.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing into a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Makes a file one that can be run, or a folder one that can be entered.
pub(super) fn executable(path: &Path) -> io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(PROGRAM_MODE))
}

/// Makes what is missing of a folder, open to all who may run the program, whatever the umask.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        make_folder(above)?;
    }
    std::fs::create_dir(folder)?;
    executable(folder)
}

/// Copies this program to a path in one step, when it has this hash.
pub(super) fn copy(path: &Path, sha256: &str) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("a path without a folder"))?;
    make_folder(folder)?;
    RealHost::new(Root::live()).check_closed(folder)?;
    let fresh = path.with_extension(std::process::id().to_string());
    let fill = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        io::copy(&mut File::open(OWN)?, &mut file)?;
        file.set_permissions(Permissions::from_mode(PROGRAM_MODE))?;
        file.flush()?;
        file.sync_all()?;
        if hash(&fresh)? != sha256 {
            return Err(io::Error::other("this node program has another hash than the one to be installed"));
        }
        std::fs::rename(&fresh, path)?;
        File::open(folder)?.sync_all()
    };
    fill().inspect_err(|_| {
        let _ = std::fs::remove_file(&fresh);
    })
}

/// Whether a plain file, which is no link, is the program with this hash.
pub(super) fn is_there(path: &Path, sha256: &str) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file()) && hash(path).is_ok_and(|now| now == sha256)
}

/// Why a copy cannot be removed; one that is gone can.
pub(super) fn changed(path: &Path, sha256: &str) -> Option<String> {
    match hash(path) {
        Ok(now) if now == sha256 => None,
        Ok(_) => Some(format!("{} was written by another program since this build", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(format!("cannot read {}: {error}", path.display())),
    }
}

/// Removes a copy.
pub(super) fn remove(path: &Path, sha256: &str) -> Result<(), String> {
    if let Some(why) = changed(path, sha256) {
        return Err(why);
    }
    let removed = RealHost::new(Root::live()).remove(path);
    removed.map_err(|error| format!("cannot remove {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_itself_is_copied_and_only_its_copy_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sbin/linerate-node");
        let sha256 = own_hash().unwrap();
        assert!(copy(&path, &"0".repeat(64)).is_err());
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 0, "nothing is left");
        copy(&path, &sha256).unwrap();
        assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o7777, PROGRAM_MODE);
        assert_eq!(hash(&path).unwrap(), sha256);
        assert!(is_there(&path, &sha256) && !is_there(&path, &"0".repeat(64)));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(!is_there(&link, &sha256), "a link may lead elsewhere next time");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, PROGRAM_MODE);
        std::fs::write(&path, "theirs").unwrap();
        assert!(remove(&path, &sha256).unwrap_err().contains("another program"));
        assert!(path.exists());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(remove(&path, &sha256), Ok(()), "gone already");
        std::fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o777)).unwrap();
        assert!(copy(&path, &sha256).is_err(), "others could exchange it");
    }
}
