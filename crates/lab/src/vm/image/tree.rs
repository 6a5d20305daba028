//! The tree of the guests: programs with their libraries and modules with what they need, picked from the
//! unpacked packages.
//!
//! In: the unpacked packages. Out: a tree with one folder for programs and one for libraries, and the path of
//! the kernel. The loader of the packages lists the libraries that a program needs; nothing of the host is
//! used.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::contents::{FILES, MODULES, PROGRAMS};
use super::packages::run;
use super::systemd;
use crate::error::{LabError, Result};

const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const LOADER: &str = "ld-linux-x86-64.so.2";
/// Where programs lie in packages.
const PROGRAM_FOLDERS: [&str; 4] = ["usr/sbin", "sbin", "usr/bin", "bin"];
/// Needed by what comes from outside, not by any program here: the node program of a debug build.
const MORE_LIBRARIES: [&str; 5] = [LOADER, "libgcc_s.so.1", "libm.so.6", "libpthread.so.0", "libdl.so.2"];

/// Fills the tree; returns the kernel's path in the packages.
pub(super) fn fill(packages: &Path, root: &Path) -> Result<PathBuf> {
    let tree = Tree { packages, root };
    for folder in ["usr/bin", "usr/sbin", LIBRARIES, "etc/lvm", "etc/drbd.d", "root", "var/lib/drbd"] {
        tree.folder(folder)?;
    }
    for (link, target) in [
        ("bin", "usr/bin"),
        ("sbin", "usr/sbin"),
        ("lib", "usr/lib"),
        ("lib64", LIBRARIES),
        ("var/run", "/run"),
        ("var/lock", "/run/lock"),
    ] {
        tree.link(link, target)?;
    }
    tree.programs()?;
    tree.data()?;
    for (path, mode, text) in FILES {
        tree.write(path, text, *mode)?;
    }
    tree.modules(MODULES)
}

/// Fills the root file system with all that the packages hold, but for what the guests do not need, and
/// `first` with what finds it at boot; returns the kernel's path in the packages.
pub(super) fn fill_systemd(packages: &Path, first: &Path, root: &Path) -> Result<PathBuf> {
    let tree = Tree { packages, root };
    for folder in ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "var", "dev", "proc", "sys", "run", "tmp"] {
        tree.folder(folder)?;
    }
    for folder in ["bin", "sbin", "lib", "lib64"] {
        tree.link(folder, &format!("usr/{folder}"))?;
    }
    let kernel = tree.modules(systemd::MODULES)?;
    Tree { packages, root: first }.first_programs()?;
    for name in systemd::LEFT_OUT_FILES {
        let _ = fs::remove_dir_all(packages.join(name));
    }
    move_into(packages, root)?;
    for (link, target) in systemd::links() {
        let path = root.join(&link);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(LabError::at(format!("making {}", folder.display())))?;
        }
        tree.link(&link, &target)?;
    }
    for (path, mode, text) in systemd::FILES {
        if let Some((folder, _)) = path.rsplit_once('/') {
            tree.folder(folder)?;
        }
        tree.write(path, text, *mode)?;
    }
    Tree { packages: root, root }.compile_python();
    Ok(kernel)
}

/// Makes a drive with an ext4 of everything below a folder.
pub(super) fn file_system(root: &Path, drive: &Path) -> Result<()> {
    let step = || format!("making {}", drive.display());
    let _ = fs::remove_file(drive);
    let file = fs::File::create(drive).map_err(LabError::at(step()))?;
    file.set_len(systemd::ROOT_BYTES).map_err(LabError::at(step()))?;
    let tree = Tree { packages: root, root };
    let program = tree.program("mke2fs")?.1;
    let (from, to) = (root.display().to_string(), drive.display().to_string());
    // Never written, so never repaired.
    let words = ["-q", "-t", "ext4", "-O", "^has_journal", "-d", &from, &to];
    tree.with_loader(&[], &program, &words).map(drop)
}

/// Moves what is in a folder into another one, folder by folder; what is there by this name already stays.
fn move_into(from: &Path, to: &Path) -> Result<()> {
    let step = || format!("moving {}", from.display());
    for entry in fs::read_dir(from).map_err(LabError::at(step()))? {
        let entry = entry.map_err(LabError::at(step()))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let is_folder = entry.file_type().map_err(LabError::at(step()))?.is_dir();
        // The kernel is no part of the tree.
        if entry.file_name() == "boot" {
            continue;
        }
        if is_folder && target.is_dir() {
            move_into(&source, &target)?;
        } else if target.symlink_metadata().is_err() {
            fs::rename(&source, &target).map_err(LabError::at(step()))?;
        }
    }
    Ok(())
}

/// A program for which our files belong to root, as they will in the guest; ours alone sees it so.
fn as_root(program: &Path) -> Command {
    if linerate_sys::sandbox::is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("unshare");
    command.arg("--map-root-user").arg(program);
    command
}

struct Tree<'a> {
    packages: &'a Path,
    root: &'a Path,
}

impl Tree<'_> {
    fn folder(&self, name: &str) -> Result<()> {
        let path = self.root.join(name);
        fs::create_dir_all(&path).map_err(LabError::at(format!("making {}", path.display())))
    }

    fn link(&self, name: &str, target: &str) -> Result<()> {
        let path = self.root.join(name);
        symlink(target, &path).map_err(LabError::at(format!("making the link {}", path.display())))
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> Result<()> {
        let path = self.root.join(name);
        let written = fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)));
        written.map_err(LabError::at(format!("writing {}", path.display())))
    }

    fn copy(from: &Path, to: &Path) -> Result<()> {
        fs::copy(from, to).map(drop).map_err(LabError::at(format!(
            "copying {} to {}",
            from.display(),
            to.display()
        )))
    }

    /// Resolves the path of a file in the packages through links; absolute links begin at the root of the
    /// packages.
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let mut path = self.packages.join(path);
        for _ in 0..8 {
            let about = path.symlink_metadata().ok()?;
            if !about.is_symlink() {
                return about.is_file().then_some(path);
            }
            let target = fs::read_link(&path).ok()?;
            path = match target.strip_prefix("/") {
                Ok(inside) => self.packages.join(inside),
                Err(_) => path.parent()?.join(target),
            };
        }
        None
    }

    /// Folder in the guest and file in the packages of a program.
    fn program(&self, name: &str) -> Result<(&'static str, PathBuf)> {
        let of = |folder: &&str| self.resolve(&Path::new(folder).join(name));
        PROGRAM_FOLDERS
            .iter()
            .find_map(|folder| {
                Some((if folder.ends_with("sbin") { "usr/sbin" } else { "usr/bin" }, of(folder)?))
            })
            .ok_or_else(|| LabError::Unknown(format!("the packages of the guests hold no program {name}")))
    }

    fn programs(&self) -> Result<()> {
        let mut libraries: BTreeSet<String> = MORE_LIBRARIES.map(str::to_owned).into();
        for name in PROGRAMS {
            let (folder, from) = self.program(name)?;
            let own = from.file_name().unwrap_or_default().to_string_lossy();
            // Programs of many names (lvm, kmod) are one file and links.
            if own != *name && PROGRAMS.contains(&own.as_ref()) {
                self.link(&format!("{folder}/{name}"), &format!("/{}/{own}", self.program(&own)?.0))?;
            } else {
                Self::copy(&from, &self.root.join(folder).join(name))?;
                libraries.extend(self.libraries_of(&from)?);
            }
        }
        self.link("usr/bin/sh", "bash")?;
        for name in libraries {
            let from = self.library(&name)?;
            Self::copy(&from, &self.root.join(LIBRARIES).join(&name))?;
        }
        self.stand_ins()
    }

    fn library(&self, name: &str) -> Result<PathBuf> {
        ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"]
            .iter()
            .find_map(|folder| self.resolve(&Path::new(folder).join(name)))
            .ok_or_else(|| LabError::Unknown(format!("the packages of the guests hold no library {name}")))
    }

    /// Names of the libraries that a program loads, as the loader of the packages finds them there.
    fn libraries_of(&self, program: &Path) -> Result<Vec<String>> {
        // The path of its interpreter is near the beginning of a dynamic program; a static one has none and
        // needs nothing.
        let bytes = fs::read(program).map_err(LabError::at(format!("reading {}", program.display())))?;
        let head = bytes.get(..4096).unwrap_or(&bytes);
        if !head.windows(LOADER.len()).any(|window| window == LOADER.as_bytes()) {
            return Ok(Vec::new());
        }
        let text = self.with_loader(&["--list"], program, &[])?;
        let names = text.lines().filter_map(|line| Some(line.split_once(" => ")?.0.trim().to_owned()));
        Ok(names.filter(|name| !name.contains('/')).collect())
    }

    /// Hands a program of the packages to their own loader, with their libraries.
    fn with_loader(&self, options: &[&str], program: &Path, arguments: &[&str]) -> Result<String> {
        let paths = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"]
            .map(|f| self.packages.join(f).display().to_string());
        let mut command = as_root(&self.library(LOADER)?);
        command.args(["--library-path", &paths.join(":")]);
        command.args(options).arg(program).args(arguments);
        run(command, &program.display().to_string())
    }

    /// Makes what Python would make of its modules at every start, which takes an emulated CPU half a minute.
    fn compile_python(&self) {
        let Some(program) = self.resolve(Path::new("usr/bin/python3")) else { return };
        let Ok(loader) = self.library(LOADER) else { return };
        let libraries = self.root.join(LIBRARIES);
        let mut command = Command::new(loader);
        command.arg("--library-path").arg(libraries).arg(program).args(["-m", "compileall", "-q"]);
        // Files of the image have no times to compare.
        command.args(["--invalidation-mode", "unchecked-hash"]).arg(self.root.join("usr/lib"));
        command.env("PYTHONHOME", self.root.join("usr"));
        // Without it the guest is only slower; a few files are no Python of this version.
        let _ = run(command, "python3");
    }

    /// Busybox for every common program that is not here by itself.
    fn stand_ins(&self) -> Result<()> {
        let mut command = Command::new(self.program("busybox")?.1);
        command.arg("--list");
        for name in run(command, "busybox --list")?.lines() {
            let there = ["usr/bin", "usr/sbin"]
                .iter()
                .any(|f| self.root.join(f).join(name).symlink_metadata().is_ok());
            if !there {
                self.link(&format!("usr/bin/{name}"), "busybox")?;
            }
        }
        Ok(())
    }

    /// Files that programs need: those of drbdadm for 8.4, settings of LVM and of mke2fs.
    fn data(&self) -> Result<()> {
        self.folder("usr/lib/drbd")?;
        for name in ["drbdadm-84", "drbdsetup-84"] {
            let from = self
                .resolve(&Path::new("lib/drbd").join(name))
                .or_else(|| self.resolve(&Path::new("usr/lib/drbd").join(name)))
                .ok_or_else(|| LabError::Unknown(format!("the packages of the guests hold no {name}")))?;
            Self::copy(&from, &self.root.join("usr/lib/drbd").join(name))?;
        }
        for name in ["etc/lvm/lvm.conf", "etc/mke2fs.conf"] {
            if let Some(from) = self.resolve(Path::new(name)) {
                Self::copy(&from, &self.root.join(name))?;
            }
        }
        Ok(())
    }

    /// What mounts the root file system before systemd starts: a script, busybox, and modules in the order in
    /// which they are loaded.
    fn first_programs(&self) -> Result<()> {
        for folder in ["bin", "mod"] {
            self.folder(folder)?;
        }
        Self::copy(&self.program("busybox")?.1, &self.root.join("bin/busybox"))?;
        let from = self.packages_modules()?;
        let (needs, built_in) = indexes(&from)?;
        for (number, path) in wanted(systemd::FIRST_MODULES, &needs, &built_in)?.into_iter().enumerate() {
            Self::copy(&from.join(path), &self.root.join(format!("mod/{number:02}.ko")))?;
        }
        self.write("init", systemd::INIT, 0o755)
    }

    /// Folder of the modules of the newest kernel in the packages.
    fn packages_modules(&self) -> Result<PathBuf> {
        let folder = self.packages.join("lib/modules");
        let entries = fs::read_dir(&folder).map_err(LabError::at(format!("reading {}", folder.display())))?;
        let newest = entries.flatten().map(|e| e.path()).max();
        newest.ok_or_else(|| LabError::Unknown("the packages of the guests hold no kernel".into()))
    }

    /// Copies the modules and writes their indexes; returns the path of the kernel.
    fn modules(&self, names: &[&str]) -> Result<PathBuf> {
        let from = self.packages_modules()?;
        let version = from.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let depmod = self.program("depmod")?.1;
        let index = |root: &Path| {
            self.with_loader(&["--argv0", "depmod"], &depmod, &["-b", &root.display().to_string(), &version])
        };
        index(self.packages)?;
        let (needs, built_in) = indexes(&from)?;
        let to = format!("usr/lib/modules/{version}");
        self.folder(&to)?;
        for path in wanted(names, &needs, &built_in)? {
            let target = self.root.join(&to).join(path);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).map_err(LabError::at(format!("making {}", parent.display())))?;
            }
            Self::copy(&from.join(path), &target)?;
        }
        for name in ["modules.order", "modules.builtin", "modules.builtin.modinfo"] {
            let _ = fs::copy(from.join(name), self.root.join(&to).join(name));
        }
        index(self.root)?;
        let kernel = self.packages.join("boot").join(format!("vmlinuz-{version}"));
        let lacks = || LabError::Unknown(format!("the packages of the guests hold no kernel {version}"));
        kernel.is_file().then_some(kernel).ok_or_else(lacks)
    }
}

/// What modules need, and which are built in, as depmod and the kernel's package list them.
fn indexes(modules: &Path) -> Result<(String, String)> {
    let read = |name: &str| {
        let path = modules.join(name);
        fs::read_to_string(&path).map_err(LabError::at(format!("reading {}", path.display())))
    };
    Ok((read("modules.dep")?, read("modules.builtin")?))
}

/// Paths of the modules that are wanted and of those that they need, each behind what it needs, from the
/// index that depmod wrote.
fn wanted<'a>(names: &[&str], needs: &'a str, built_in: &str) -> Result<Vec<&'a str>> {
    let name_of = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or(path);
        file.split('.').next().unwrap_or(file).replace('-', "_")
    };
    let mut paths: Vec<&str> = Vec::new();
    for module in names {
        let module = module.replace('-', "_");
        let line =
            needs.lines().filter_map(|line| line.split_once(':')).find(|(path, _)| name_of(path) == module);
        match line {
            Some((path, others)) => {
                // The last one listed is loaded first.
                for path in others.split_ascii_whitespace().rev().chain([path]) {
                    if !paths.contains(&path) {
                        paths.push(path);
                    }
                }
            }
            None if built_in.lines().any(|path| name_of(path) == module) => {}
            None => {
                return Err(LabError::Unknown(format!("the kernel of the guests has no module {module}")));
            }
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn modules_come_with_what_they_need_and_a_missing_one_is_named() {
        let lines: Vec<String> =
            MODULES.iter().map(|m| format!("kernel/x/{m}.ko: kernel/y/base.ko\n")).collect();
        let mut needs = lines.concat();
        assert_eq!(wanted(MODULES, &needs, "").unwrap().len(), MODULES.len() + 1);
        needs = needs.replace("kernel/x/drbd.ko", "kernel/x/other.ko");
        assert!(wanted(MODULES, &needs, "").unwrap_err().to_string().contains("drbd"));
        assert!(wanted(MODULES, &needs, "kernel/x/drbd.ko\n").is_ok());
        let needs = "a/c.ko: a/b.ko a/a.ko\na/b.ko: a/a.ko\na/a.ko:\n";
        assert_eq!(wanted(&["b", "c"], needs, "").unwrap(), ["a/a.ko", "a/b.ko", "a/c.ko"]);
    }
}
