//! The script of the pages: TypeScript in, JavaScript out, by the compiler of the package `node-typescript`.
//! The result is committed, so that a build needs none.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::shell::sh;

const SOURCE: &str = "crates/page/src/assets/page.ts";
const COMPILED: &str = "crates/page/src/assets/page.js";
/// All that the compiler can see, for browsers of the last five years.
const OPTIONS: [&str; 10] = [
    "--strict",
    "--noUnusedLocals",
    "--noImplicitReturns",
    "--removeComments",
    "--newLine",
    "lf",
    "--target",
    "ES2020",
    "--lib",
    "ES2020,DOM,DOM.Iterable",
];

/// Compiles it; with `check` changes nothing, and fails where the committed one is another.
pub(crate) fn run(check: bool) -> Result<()> {
    let has_compiler = Command::new("tsc").arg("--version").output().is_ok_and(|o| o.status.success());
    if !has_compiler && check {
        println!("SKIPPED the script of the pages: no tsc (install the package node-typescript)");
        return Ok(());
    }
    let folder = Path::new("target/script");
    let out = folder.to_string_lossy();
    sh("tsc", &[&OPTIONS[..], &["--outDir", &*out, SOURCE]].concat())?;
    let new = fs::read_to_string(folder.join("page.js")).context("tsc wrote no page.js")?;
    if check {
        let old = fs::read_to_string(COMPILED)?;
        ensure!(old == new, "stale: {COMPILED}; run `cargo xtask script`");
    } else {
        fs::write(COMPILED, new)?;
        println!("wrote {COMPILED}");
    }
    Ok(())
}
