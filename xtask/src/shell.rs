//! What all tasks need of the machine: the folders of the checkout, a command run to its end, who runs it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// How variables begin in which `cargo run` describes the program that it runs.
const OF_THIS_PROGRAM: [&str; 2] = ["CARGO_MANIFEST_", "CARGO_PKG_"];

/// The root of the checkout.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_path_buf()
}

/// Where cargo puts debug programs.
pub(crate) fn target_debug() -> PathBuf {
    target().join("debug")
}

/// Where cargo puts optimised programs.
pub(crate) fn target_release() -> PathBuf {
    target().join("release")
}

/// Where cargo puts everything.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}

/// A program, without the variables that `cargo run` gave this one. Build scripts that read those would run
/// again with every `cargo` of a task, and with every one that is typed after it, and what depends on them
/// would be compiled each time.
fn fresh(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| OF_THIS_PROGRAM.iter().any(|start| name.starts_with(start))) {
            command.env_remove(name);
        }
    }
    command
}

/// Cargo, as if it were typed.
pub(crate) fn cargo() -> Command {
    fresh("cargo")
}

/// Runs a program to its end; fails with its command line when it fails.
pub(crate) fn sh(program: &str, args: &[&str]) -> Result<()> {
    println!("$ {program} {}", args.join(" "));
    let status = fresh(program).args(args).status().with_context(|| format!("cannot run {program}"))?;
    ensure!(status.success(), "`{program} {}` failed: {status}", args.join(" "));
    Ok(())
}

/// Installs a program that is run once: optimising it would take longer than that saves. What several of them
/// need is compiled once.
pub(crate) fn install(program: &[&str]) -> Result<()> {
    let folder = target().join("tools");
    let how = ["--locked", "--quiet", "--debug", "--target-dir", &folder.to_string_lossy()];
    sh("cargo", &[&["install"], program, &how].concat())
}

/// Runs a program to its end and gives what it printed; fails with its command line when it fails.
pub(crate) fn output(program: &str, args: &[&str]) -> Result<String> {
    let out = fresh(program).args(args).output().with_context(|| format!("cannot run {program}"))?;
    let errors = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "`{program} {}` failed: {}\n{errors}", args.join(" "), out.status);
    String::from_utf8(out.stdout).with_context(|| format!("{program} printed no text"))
}

/// Whether the effective user is root.
pub(crate) fn am_root() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|s| s.lines().any(|l| l.starts_with("Uid:\t0\t")))
}
