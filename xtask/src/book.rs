//! Builds `docs/` as a book with mdBook, and checks every link and anchor: those of all Markdown files as
//! GitHub shows them, and those of the built pages. No network is used but to install mdBook.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::shell::{install, sh, target};

mod html;
mod links;
mod markdown;

/// The version that CI builds with.
const MDBOOK: &str = "0.4.52";
/// Files of the checkout that are not pages of the book.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// Checks the Markdown, builds the book below the target folder, checks the built pages.
pub(crate) fn run() -> Result<()> {
    let pages = pages()?;
    let breaches = markdown::breaches(&pages);
    ensure!(breaches.is_empty(), "links:\n  {}", breaches.join("\n  "));
    needs_mdbook()?;
    let (source, built) = (target().join("book-source"), target().join("book"));
    stage(&pages, &source)?;
    sh("mdbook", &["build", &source.to_string_lossy(), "--dest-dir", &built.to_string_lossy()])?;
    let breaches = html::breaches(&built)?;
    ensure!(breaches.is_empty(), "links of the book:\n  {}", breaches.join("\n  "));
    println!("book: {}", built.join("index.html").display());
    Ok(())
}

/// All Markdown files of the checkout with their text.
fn pages() -> Result<BTreeMap<PathBuf, String>> {
    let mut pages = BTreeMap::new();
    for path in files(&["*.md"])? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        pages.insert(path, text);
    }
    Ok(pages)
}

/// Files that git knows, or would add, and that exist.
fn files(patterns: &[&str]) -> Result<Vec<PathBuf>> {
    let out = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "--"])
        .args(patterns)
        .output()?;
    let files: BTreeSet<PathBuf> = String::from_utf8_lossy(&out.stdout).lines().map(PathBuf::from).collect();
    ensure!(!files.is_empty(), "git lists no files: the book needs a git checkout");
    Ok(files.into_iter().filter(|f| f.is_file()).collect())
}

/// Copies `docs/` to `source`; links to files outside it lead to the repository.
fn stage(pages: &BTreeMap<PathBuf, String>, source: &Path) -> Result<()> {
    if source.exists() {
        fs::remove_dir_all(source)?;
    }
    for path in files(&["docs"])? {
        let to = source.join(path.strip_prefix("docs")?);
        fs::create_dir_all(to.parent().context("a file has a folder")?)?;
        match pages.get(&path) {
            Some(text) => fs::write(to, markdown::with_outside_links(&path, text, REPOSITORY))?,
            None => fs::copy(&path, to).map(drop)?,
        }
    }
    Ok(())
}

/// Installs mdBook unless a version with the same first two numbers is there.
fn needs_mdbook() -> Result<()> {
    let series = MDBOOK.rsplit_once('.').map_or(MDBOOK, |(series, _)| series);
    let found = Command::new("mdbook").arg("--version").output().is_ok_and(|out| {
        String::from_utf8_lossy(&out.stdout).trim().starts_with(&format!("mdbook v{series}."))
    });
    if found {
        return Ok(());
    }
    install(&["mdbook", "--version", MDBOOK, "--no-default-features"])
}
