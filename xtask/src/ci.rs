//! The steps of CI, in order. A step that cannot run here is said aloud and fails where CI can run it.

use anyhow::Result;

use crate::shell::{cargo, install, sh};
use crate::test_programs::Choice;
use crate::{book, docs, knowledge, script, tests, tidy};

/// Runs all steps; stops at the first that fails.
pub(crate) fn run(skip_tests: bool) -> Result<()> {
    sh("cargo", &["fmt", "--all", "--", "--check"])?;
    tidy::run()?;
    sh("cargo", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    if !skip_tests {
        tests::run(Choice { filter: None, is_quick: false })?;
    }
    docs_build()?;
    licences()?;
    docs::run(true)?;
    knowledge::check()?;
    script::run(true)?;
    book::run()?;
    node_dependencies()
}

fn docs_build() -> Result<()> {
    println!("$ RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --locked");
    let status = cargo()
        .args(["doc", "--workspace", "--no-deps", "--locked", "--quiet"])
        .env("RUSTDOCFLAGS", "-Dwarnings")
        .status()?;
    anyhow::ensure!(status.success(), "cargo doc failed");
    Ok(())
}

/// Licences, sources and doubled crates. The advisory database comes from the network and is checked by the
/// public workflow.
fn licences() -> Result<()> {
    let there = cargo().args(["deny", "--version"]).output().is_ok_and(|o| o.status.success());
    if !there {
        install(&["cargo-deny"])?;
    }
    sh("cargo", &["deny", "--locked", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"])
}

/// The node program goes to every host: how many crates it links is printed where everybody sees it.
fn node_dependencies() -> Result<()> {
    let out = cargo()
        .args(["tree", "-p", "linerate-node", "-e", "normal", "--prefix", "none", "--locked"])
        .output()?;
    let text = String::from_utf8_lossy(&out.stdout);
    let crates: std::collections::BTreeSet<&str> =
        text.lines().filter_map(|l| l.split_whitespace().next()).collect();
    println!("linerate-node links {} crates", crates.len());
    Ok(())
}
