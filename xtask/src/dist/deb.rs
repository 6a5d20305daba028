//! A Debian package, made by `dpkg-deb`. Programs are static: they depend on no library.

use std::fs;

use anyhow::{Result, bail};

use super::release::{Release, Tree};
use crate::shell::sh;

pub(super) fn pack(release: &Release, tree: &Tree) -> Result<()> {
    let architecture = match tree.machine.name {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("Debian's name of {other} is not known"),
    };
    let (package, version) = (tree.package, &release.version);
    let control = format!(
        "Package: {}\nVersion: {version}\nArchitecture: {architecture}\nSection: net\nPriority: optional\n\
         Maintainer: The linerate developers <linerate@users.noreply.github.com>\n{}\
         Homepage: https://github.com/linerate/linerate\nDescription: {}\n {}\n",
        package.name,
        package.debian.replace("VERSION", version),
        package.summary,
        package.description.join("\n ")
    );
    let folder = tree.root.join("DEBIAN");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("control"), control)?;
    let file = release.file(&format!("{}_{version}_{architecture}.deb", package.name));
    let (root, file) = (tree.root.display().to_string(), file.display().to_string());
    let packed = sh("dpkg-deb", &["--root-owner-group", "-Zxz", "--build", &root, &file]);
    fs::remove_dir_all(folder)?;
    packed
}
