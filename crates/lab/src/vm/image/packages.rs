//! Packages of the distribution, downloaded and unpacked into folders of ours as on a machine that has
//! nothing installed.
//!
//! In: names. Out: a tree with all files of these packages and of what they depend on. It runs none of their
//! scripts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{LabError, Result};

/// Of these only programs in their language would be of use, and the guests have none.
pub(super) const LEFT_OUT: &[&str] = &["perl", "libperl", "python", "libpython"];

/// Downloads packages and their dependencies as Debian archives into a folder.
pub(super) fn download(names: &[&str], archives: &Path) -> Result<()> {
    let step = |path: &Path| format!("making {}", path.display());
    let partial = archives.join("partial");
    fs::create_dir_all(&partial).map_err(LabError::at(step(&partial)))?;
    // A list of installed packages with nothing in it: everything that is needed comes along.
    let status = archives.join("status");
    fs::write(&status, "").map_err(LabError::at(step(&status)))?;
    let option = |name: &str, value: &Path| format!("{name}={}", value.display());
    let mut command = Command::new("apt-get");
    command.args([
        "-o",
        &option("Dir::State::status", &status),
        "-o",
        &option("Dir::Cache::archives", archives),
    ]);
    // No lock of the host's, no cache of the host's, no change of user: the folder is ours.
    for fixed in
        ["Debug::NoLocking=1", "Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache=", "APT::Sandbox::User="]
    {
        command.args(["-o", fixed]);
    }
    command.args(["--no-install-recommends", "--download-only", "-qq", "-y", "install"]).args(names);
    run(command, "apt-get").map(drop).map_err(|error| match error {
        LabError::Command { command, message } => LabError::Command {
            command,
            message: format!(
                "{message}\nhint: the lists of packages may be old or missing: apt-get update, as root"
            ),
        },
        other => other,
    })
}

/// Unpacks every archive of a folder but those whose names begin so.
pub(super) fn unpack(archives: &Path, to: &Path, left_out: &[&str]) -> Result<()> {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).map_err(LabError::at(format!("making {}", to.display())))?;
    let mut all: Vec<PathBuf> = fs::read_dir(archives)
        .map_err(LabError::at(format!("reading {}", archives.display())))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "deb") && !is_left_out(path, left_out))
        .collect();
    all.sort();
    for archive in all {
        let mut command = Command::new("dpkg-deb");
        command.arg("--extract").arg(archive).arg(to);
        run(command, "dpkg-deb")?;
    }
    Ok(())
}

fn is_left_out(archive: &Path, left_out: &[&str]) -> bool {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    left_out.iter().any(|start| name.starts_with(start))
}

/// Runs a program to its end; gives what it printed.
pub(super) fn run(mut command: Command, name: &str) -> Result<String> {
    let output = command.output().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => LabError::Unknown(format!(
            "program {name} is missing\nhint: the guests are made of the packages of Debian or Ubuntu"
        )),
        _ => LabError::Kernel { step: format!("running {name}"), source },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::Command { command: name.to_owned(), message })
}
