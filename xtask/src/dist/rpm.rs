//! An RPM, made by `rpmbuild` from a tree that is there already: nothing is compiled or stripped.

use std::fs;

use anyhow::{Context as _, Result};

use super::release::{Release, Tree};
use crate::shell::sh;

pub(super) fn pack(release: &Release, tree: &Tree) -> Result<()> {
    let top = release.file(&format!("rpm-{}", tree.machine.name));
    fs::create_dir_all(&top)?;
    let root = fs::canonicalize(&tree.root)?.display().to_string();
    let spec = format!(
        "Name: linerate\nVersion: {version}\nRelease: 1\nSummary: Finds why a cluster is slower than its hardware\n\
         License: Apache-2.0 OR MIT\nURL: https://github.com/linerate/linerate\nAutoReqProv: no\n\n\
         %description\nMeasures all pairs of hosts and all disks against what the hardware can do,\n\
         reads the settings, names the root cause, and tries the fix reversibly.\n\n\
         %install\ncp -a {root}/. %{{buildroot}}/\nmkdir -p %{{buildroot}}/usr/share/zsh/site-functions\n\
         mv %{{buildroot}}/usr/share/zsh/vendor-completions/_linerate %{{buildroot}}/usr/share/zsh/site-functions/\n\
         rmdir %{{buildroot}}/usr/share/zsh/vendor-completions\n\n\
         %files\n%attr(-, root, root) /usr/bin/linerate\n%attr(-, root, root) /usr/share/man/man1/linerate.1*\n\
         %attr(-, root, root) /usr/share/doc/linerate\n\
         %attr(-, root, root) /usr/share/bash-completion/completions/linerate\n\
         %attr(-, root, root) /usr/share/zsh/site-functions/_linerate\n\
         %attr(-, root, root) /usr/share/fish/vendor_completions.d/linerate.fish\n",
        version = release.version
    );
    let file = top.join("linerate.spec");
    fs::write(&file, spec)?;
    let top = fs::canonicalize(&top)?;
    let defines = [
        format!("_topdir {}", top.display()),
        "_build_id_links none".to_owned(),
        "debug_package %{nil}".to_owned(),
        "__os_install_post %{nil}".to_owned(),
    ];
    let machine = format!("{}-linux", tree.machine.name);
    let mut arguments = vec!["-bb", "--quiet", "--target", &machine];
    for define in &defines {
        arguments.extend(["--define", define]);
    }
    let file = file.display().to_string();
    arguments.push(&file);
    sh("rpmbuild", &arguments)?;
    let name = format!("linerate-{}-1.{}.rpm", release.version, tree.machine.name);
    let made = top.join("RPMS").join(tree.machine.name).join(&name);
    fs::copy(&made, release.file(&name)).with_context(|| made.display().to_string())?;
    Ok(())
}
