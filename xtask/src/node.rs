//! Static builds of a program: one file per machine that needs nothing on the host it is copied to.
//!
//! What comes in: a machine as `uname -m` says it. What goes out: the program, and of the node also
//! `target/release/linerate-node-<machine>`, beside `linerate`, which copies it to hosts. What is missing
//! to build it is named with the commands that get it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::shell::{cargo, target, target_release};

/// A machine for which programs are built.
pub(crate) struct Machine {
    /// As `uname -m` says it.
    pub(crate) name: &'static str,
    /// Static glibc works everywhere; the node resolves no names of users or hosts, so that it loads nothing
    /// of the host's.
    triple: &'static str,
    /// C compiler and linker, where it is not the native one; with the packages that bring it.
    cross: Option<(&'static str, &'static str)>,
    /// Runs its programs on another machine; from the package qemu-user-static.
    emulator: &'static str,
}

const MACHINES: [Machine; 2] = [
    Machine {
        name: "x86_64",
        triple: "x86_64-unknown-linux-gnu",
        cross: Some(("x86_64-linux-gnu-gcc", "gcc-x86-64-linux-gnu")),
        emulator: "qemu-x86_64-static",
    },
    Machine {
        name: "aarch64",
        triple: "aarch64-unknown-linux-gnu",
        cross: Some(("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross")),
        emulator: "qemu-aarch64-static",
    },
];

/// The machine of this name.
pub(crate) fn machine(name: &str) -> Result<&'static Machine> {
    let names: Vec<&str> = MACHINES.iter().map(|m| m.name).collect();
    let known = MACHINES.iter().find(|m| m.name == name);
    known.with_context(|| format!("no machine `{name}`; known are {}", names.join(", ")))
}

/// The names of all machines.
pub(crate) fn names() -> Vec<String> {
    MACHINES.iter().map(|m| m.name.to_owned()).collect()
}

/// Builds the node for a machine, beside `linerate`.
pub(crate) fn run(name: &str) -> Result<()> {
    let machine = machine(name)?;
    let built = machine.build("linerate-node", &[], false)?;
    let placed = target_release().join(format!("linerate-node-{name}"));
    std::fs::create_dir_all(target_release())?;
    std::fs::copy(&built, &placed).with_context(|| format!("cannot copy {}", built.display()))?;
    println!("{}", placed.display());
    Ok(())
}

impl Machine {
    /// Whether it is this one.
    pub(crate) fn is_native(&self) -> bool {
        self.name == std::env::consts::ARCH
    }

    /// Builds a static program for it. Gives the file, which was seen to run where that is possible here.
    pub(crate) fn build(&self, package: &str, variables: &[(&str, &str)], is_debug: bool) -> Result<PathBuf> {
        let mut build = cargo();
        build.args(["build", "--locked", "-p", package, "--bin", package, "--target", self.triple]);
        if is_debug {
            // With the features of both programs, so that what they share is built once.
            build.args(["-p", "linerate", "-p", "linerate-node"]);
            build.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_DEV_STRIP", "symbols");
        } else {
            build.arg("--release");
        }
        build.envs(variables.iter().copied());
        let variable = self.triple.to_uppercase().replace('-', "_");
        if !self.is_native() {
            let missing = missing(self)?;
            ensure!(missing.is_empty(), "cannot build for {}:\n  {}", self.name, missing.join("\n  "));
            let (compiler, _) = self.cross.context("no cross compiler is known")?;
            build.env(format!("CARGO_TARGET_{variable}_LINKER"), compiler);
            build.env(format!("CC_{}", self.triple.replace('-', "_")), compiler);
        }
        build.env(format!("CARGO_TARGET_{variable}_RUSTFLAGS"), "-C target-feature=+crt-static");
        println!("$ cargo build -p {package} --target {} (static)", self.triple);
        ensure!(build.status()?.success(), "the build failed");
        let profile = if is_debug { "debug" } else { "release" };
        let built = target().join(self.triple).join(profile).join(package);
        check(&built, (!self.is_native()).then_some(self.emulator))?;
        Ok(built)
    }
}

/// What is not there, with the command that gets it.
fn missing(machine: &Machine) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let library = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim())
        .join("lib/rustlib")
        .join(machine.triple)
        .join("lib");
    if !library.is_dir() {
        missing.push(format!("the standard library: rustup target add {}", machine.triple));
    }
    if let Some((compiler, packages)) = machine.cross
        && Command::new(compiler).arg("--version").output().is_err()
    {
        missing.push(format!("the C compiler {compiler}, for one dependency: apt-get install {packages}"));
    }
    Ok(missing)
}

/// A static program has no interpreter, and it runs: by itself on its own machine, elsewhere where there is
/// an emulator.
fn check(placed: &std::path::Path, emulator: Option<&str>) -> Result<()> {
    let bytes = std::fs::read(placed)?;
    // The interpreter's path would be `/lib64/ld-linux-x86-64.so.2` or `/lib/ld-linux-aarch64.so.1`.
    let interpreter =
        |path: &[u8]| bytes.get(..4096).is_some_and(|head| head.windows(path.len()).any(|w| w == path));
    if interpreter(b"/ld-linux-") {
        bail!("{} is not static", placed.display());
    }
    let run = match emulator {
        None => Some(Command::new(placed)),
        Some(emulator) if Command::new(emulator).arg("--version").output().is_ok() => {
            let mut run = Command::new(emulator);
            run.arg(placed);
            Some(run)
        }
        Some(emulator) => {
            println!("not run: there is no {emulator} here (package qemu-user-static)");
            None
        }
    };
    if let Some(mut run) = run {
        ensure!(run.arg("--version").status()?.success(), "{} does not run", placed.display());
    }
    println!("{}: {:.1} MiB, static", placed.display(), bytes.len() as f64 / f64::from(1 << 20));
    Ok(())
}
