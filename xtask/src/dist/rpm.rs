//! An RPM, made by `rpmbuild` from a tree that is there already: nothing is compiled or stripped.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::release::{Release, Tree};
use crate::shell::sh;

/// Where RPM distributions have zsh's completions, and where the tree has them.
const ZSH: (&str, &str) = ("/usr/share/zsh/site-functions", "/usr/share/zsh/vendor-completions");

pub(super) fn pack(release: &Release, tree: &Tree) -> Result<()> {
    let (package, version) = (tree.package, &release.version);
    let top = release.file(&format!("rpm-{}-{}", package.name, tree.machine.name));
    fs::create_dir_all(&top)?;
    let root = fs::canonicalize(&tree.root)?;
    let mut files = Vec::new();
    list(&root, &root, &mut files)?;
    let files: Vec<String> =
        files.iter().map(|file| format!("%attr(-, root, root) {}\n", file.replace(ZSH.1, ZSH.0))).collect();
    let spec = format!(
        "Name: {name}\nVersion: {version}\nRelease: 1\nSummary: {summary}\n\
         License: Apache-2.0 OR MIT\nURL: https://github.com/linerate/linerate\nAutoReqProv: no\n{requires}\n\
         %description\n{description}\n\n\
         %install\ncp -a {root}/. %{{buildroot}}/\n\
         [ ! -d %{{buildroot}}{tree_zsh} ] || mv %{{buildroot}}{tree_zsh} %{{buildroot}}{zsh}\n\n\
         %files\n{files}",
        name = package.name,
        summary = package.summary,
        requires = package.rpm.replace("VERSION", version),
        description = package.description.join("\n"),
        root = root.display(),
        zsh = ZSH.0,
        tree_zsh = ZSH.1,
        files = files.concat(),
    );
    let file = top.join("package.spec");
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
    let name = format!("{}-{version}-1.{}.rpm", package.name, tree.machine.name);
    let made = top.join("RPMS").join(tree.machine.name).join(&name);
    fs::copy(&made, release.file(&name)).with_context(|| made.display().to_string())?;
    Ok(())
}

/// The files below a folder, by their path from the root.
fn list(root: &Path, folder: &Path, files: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(root, &path, files)?;
        } else {
            files.push(format!("/{}", path.strip_prefix(root)?.display()));
        }
    }
    files.sort();
    Ok(())
}
