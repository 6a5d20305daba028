//! What is handed to users: `linerate` and `linerate-lab`, each as one static file for each machine, packed
//! as people install it.
//!
//! What comes in: the checkout. What goes out, in `target/dist/`: for each program and machine a tar.gz, a
//! Debian package and an RPM; of `linerate` an OCI image archive and a list of what is linked (CycloneDX);
//! checksums. The next kind of package is one file in `dist/` and one line in [`PACKERS`].

mod check;
mod contents;
mod deb;
mod oci;
mod package;
mod release;
mod rpm;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::node::{self, Machine};
use crate::shell::sh;

use package::{PACKAGES, Package};
use release::{Release, Tree, tar};

/// Packs a tree.
type Packer = fn(&Release, &Tree) -> Result<()>;

const PACKERS: [Packer; 3] = [tarball, deb::pack, rpm::pack];

/// Builds and packs for these machines; then, where asked, installs and tries what was packed for this one.
pub(crate) fn run(names: &[String], is_debug: bool, is_checked: bool) -> Result<()> {
    let machines = names.iter().map(|name| node::machine(name)).collect::<Result<Vec<_>>>()?;
    let release = Release::new()?;
    let carried = carry(&machines, &release, is_debug)?;
    let mut trees = Vec::new();
    for package in &PACKAGES {
        trees.extend(self::trees(&release, package, &machines, &carried, is_debug)?);
    }
    for tree in &trees {
        for pack in PACKERS {
            pack(&release, tree)?;
        }
    }
    let production: Vec<&Tree> = trees.iter().filter(|tree| tree.package.name == "linerate").collect();
    oci::pack(&release, &production)?;
    sbom::write(&release)?;
    checksums(&release)?;
    if is_checked { check::run(&release) } else { Ok(()) }
}

/// Builds the node program for each machine and packs it. Gives the folder that `linerate` carries.
fn carry(machines: &[&'static Machine], release: &Release, is_debug: bool) -> Result<PathBuf> {
    let folder = release.file("carry");
    fs::create_dir_all(&folder)?;
    for machine in machines {
        let built = machine.build("linerate-node", &[], is_debug)?;
        let copy = folder.join(format!("linerate-node-{}", machine.name));
        fs::copy(built, &copy)?;
        sh("gzip", &["-9n", &copy.display().to_string()])?;
    }
    Ok(folder)
}

/// Builds a program for each machine, `linerate` with the node programs in it, and lays its packages out.
fn trees(
    release: &Release,
    package: &'static Package,
    machines: &[&'static Machine],
    carried: &Path,
    is_debug: bool,
) -> Result<Vec<Tree>> {
    let carried = fs::canonicalize(carried)?.display().to_string();
    let mut programs = Vec::new();
    for machine in machines {
        programs.push((*machine, machine.build(package.name, &[("LINERATE_CARRY", &carried)], is_debug)?));
    }
    let native = programs.iter().find(|(machine, _)| machine.is_native());
    let (_, native) =
        native.context("the pages are printed by the program itself: build this machine too")?;
    let pages = contents::Pages::of(release, package, native)?;
    let lay_out = |(machine, program): &(&'static Machine, PathBuf)| {
        contents::lay_out(release, package, machine, program, &pages)
    };
    programs.iter().map(lay_out).collect()
}

/// The tree of one machine, for people who install nothing: what is in `usr` is in one folder.
fn tarball(release: &Release, tree: &Tree) -> Result<()> {
    let name = format!("{}-{}-{}", tree.package.name, release.version, tree.machine.name);
    let archive = release.file(&format!("{name}.tar.gz"));
    let flat = release.file(&name);
    fs::create_dir_all(&flat)?;
    let from = tree.root.join("usr");
    let program = format!("bin/{}", tree.package.name);
    let parts = [program.as_str(), "share/man", "share/doc", "share/bash-completion", "share/zsh"];
    for part in parts.into_iter().filter(|part| from.join(part).exists()) {
        let to = flat.join(part.trim_start_matches("bin/"));
        fs::create_dir_all(to.parent().context("a part has a folder")?)?;
        sh("cp", &["-a", &from.join(part).display().to_string(), &to.display().to_string()])?;
    }
    tar(release, &release.folder, &name, &archive)
}

/// `SHA256SUMS`, as `sha256sum --check` reads it.
fn checksums(release: &Release) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(&release.folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(
                entry
                    .file_name()
                    .into_string()
                    .map_err(|name| anyhow::anyhow!("odd name {}", name.display()))?,
            );
        }
    }
    names.sort();
    ensure!(!names.is_empty(), "nothing was packed");
    let mut command = std::process::Command::new("sha256sum");
    let out = command.args(&names).current_dir(&release.folder).output()?;
    ensure!(out.status.success(), "sha256sum failed");
    fs::write(release.file("SHA256SUMS"), &out.stdout)?;
    for name in &names {
        let bytes = fs::metadata(release.file(name))?.len();
        println!("{name}: {:.1} MB", bytes as f64 / 1e6);
    }
    Ok(())
}
