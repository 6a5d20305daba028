//! What every kind of package needs: the version, the folder, the tree of one machine, and a tar of it that
//! is the same twice.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::package::Package;
use crate::node::Machine;
use crate::shell::{output, sh, target, workspace};

/// What a version is packed from.
pub(super) struct Release {
    /// As in `Cargo.toml`.
    pub(super) version: String,
    /// Time of the commit, seconds since 1970: what is packed twice is the same twice.
    pub(super) time_s: u64,
    /// Where everything goes.
    pub(super) folder: PathBuf,
}

/// A package for a machine, with the folder that has what is installed there, laid out as in `/`.
pub(super) struct Tree {
    pub(super) package: &'static Package,
    pub(super) machine: &'static Machine,
    pub(super) root: PathBuf,
}

impl Release {
    /// Of this checkout; empties the folder.
    pub(super) fn new() -> Result<Self> {
        let manifest: toml::Table = toml::from_str(&fs::read_to_string(workspace().join("Cargo.toml"))?)?;
        let version = manifest["workspace"]["package"]["version"].as_str().context("no version")?.to_owned();
        let folder = target().join("dist");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let time_s = output("git", &["log", "-1", "--format=%ct"])?.trim().parse()?;
        Ok(Self { version, time_s, folder })
    }

    /// A file of this release.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Packs `what` in a folder; the same files give the same bytes.
pub(super) fn tar(release: &Release, folder: &Path, what: &str, archive: &Path) -> Result<()> {
    let (time, folder) = (format!("--mtime=@{}", release.time_s), folder.display().to_string());
    let owner = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"];
    let archive = archive.display().to_string();
    let mut arguments = owner.to_vec();
    arguments.extend([
        time.as_str(),
        "--use-compress-program=gzip -9n",
        "-cf",
        &archive,
        "-C",
        &folder,
        what,
    ]);
    sh("tar", &arguments)
}
