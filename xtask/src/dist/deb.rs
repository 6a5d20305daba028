//! A Debian package, made by `dpkg-deb`. It depends on nothing: the program is static.

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
    let control = format!(
        "Package: linerate\nVersion: {}\nArchitecture: {architecture}\nSection: net\nPriority: optional\n\
         Maintainer: The linerate developers <linerate@users.noreply.github.com>\n\
         Suggests: openssh-client\n\
         Homepage: https://github.com/linerate/linerate\n\
         Description: finds why a cluster is slower than its hardware, and proves the fix\n \
         Measures all pairs of hosts and all disks against what the hardware can do,\n \
         reads the settings, names the root cause, and tries the fix reversibly.\n",
        release.version
    );
    let folder = tree.root.join("DEBIAN");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("control"), control)?;
    let package = release.file(&format!("linerate_{}_{architecture}.deb", release.version));
    let (root, package) = (tree.root.display().to_string(), package.display().to_string());
    let packed = sh("dpkg-deb", &["--root-owner-group", "-Zxz", "--build", &root, &package]);
    fs::remove_dir_all(folder)?;
    packed
}
