//! House rules that no compiler checks: who may use whom, a purpose at the top of each file, files that one
//! reads in a sitting, names that say something.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::type_names::TypeNames;
use crate::{circles, prose, words};

/// Longest file in lines, tests included.
const LINES_MAX: usize = 800;
/// Largest `src` of a crate in lines, tests included.
const CRATE_LINES_MAX: usize = 20_000;
/// Names that say nothing about what is inside.
const NAMES_FORBIDDEN: [&str; 6] = ["utils", "util", "common", "helpers", "manager", "misc"];

/// Pages that map the tree.
const MAPS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// Checks all rules and lists every breach.
pub(crate) fn run() -> Result<()> {
    let mut breaches = Vec::new();
    for file in files("*.md")?
        .iter()
        .filter(|file| !file.starts_with("docs/reference/") && !file.contains("/golden/"))
    {
        let text = read(file)?;
        breaches.extend(wide(file, &text));
        if MAPS.contains(&file.as_str()) {
            let lost = paths(&text).filter(|path| fs::metadata(path).is_err());
            breaches.extend(lost.map(|path| format!("{file}: there is no {path}")));
        }
    }
    let mut crates: BTreeMap<String, usize> = BTreeMap::new();
    let mut names = TypeNames::default();
    for file in files("*.rs")? {
        let text = read(&file)?;
        breaches.extend(wide(&file, &text));
        if !text.starts_with("//!") {
            breaches.push(format!("{file}: does not start with //! and its purpose"));
        }
        names.read(&file, &text);
        let lines = text.lines().count();
        if lines > LINES_MAX {
            breaches.push(format!("{file}: {lines} lines, at most {LINES_MAX}"));
        }
        if let Some((name, _)) = file.split_once("/src/") {
            *crates.entry(name.to_owned()).or_default() += lines;
        }
        let stem = file.rsplit('/').next().and_then(|n| n.strip_suffix(".rs")).unwrap_or_default();
        if NAMES_FORBIDDEN.contains(&stem) {
            breaches.push(format!("{file}: the name says nothing about what is inside"));
        }
        if is_example(&text) {
            breaches.push(format!("{file}: an example in a comment, which nothing runs; write a test"));
        }
        if text.contains(concat!("#[", "ignore")) {
            breaches.push(format!("{file}: an ignored test; print SKIPPED with the reason instead"));
        }
    }
    let large = crates.iter().filter(|(_, lines)| **lines > CRATE_LINES_MAX);
    breaches.extend(large.map(|(name, lines)| format!("{name}: {lines} lines, at most {CRATE_LINES_MAX}")));
    breaches.extend(names.breaches());
    breaches.extend(dependency_breaches()?);
    breaches.extend(circles::breaches()?);
    breaches.extend(words::breaches()?);
    ensure!(breaches.is_empty(), "tidy:\n  {}", breaches.join("\n  "));
    println!("tidy: fine");
    Ok(())
}

/// Whether a comment has code that rustdoc would run: a block without a language, or of Rust.
fn is_example(text: &str) -> bool {
    let mut fences = text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("/// ```").or_else(|| line.strip_prefix("//! ```"))
    });
    // Every second one ends a block.
    std::iter::from_fn(|| {
        let begin = fences.next()?;
        fences.next();
        Some(begin)
    })
    .any(|language| !language.starts_with("text"))
}

fn read(file: &str) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {file}"))
}

/// Paths from the root that stand in backticks. A word in capitals stands for a name to choose.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let folders = ["cases/", "crates/", "docs/", "knowledge/", "labs/", "script/", "xtask/"];
    let is_path = move |quoted: &&str| {
        let is_chosen =
            |part: &str| part.starts_with(|c: char| c.is_ascii_uppercase()) && !part.contains('.');
        folders.iter().any(|folder| quoted.starts_with(folder))
            && !quoted.contains([' ', '*'])
            && !quoted.split('/').any(is_chosen)
    };
    text.split('`').skip(1).step_by(2).filter(is_path)
}

fn wide(file: &str, text: &str) -> Vec<String> {
    let lines = prose::wide_lines(file, text).into_iter();
    lines.map(|line| format!("{file}:{line}: prose wider than {} columns", prose::COLUMNS_MAX)).collect()
}

fn files(pattern: &str) -> Result<Vec<String>> {
    let out = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", pattern])
        .output()?;
    let files: Vec<String> = String::from_utf8_lossy(&out.stdout).lines().map(String::from).collect();
    ensure!(!files.is_empty(), "git lists no {pattern}: tidy needs a git checkout");
    Ok(files.into_iter().filter(|f| fs::metadata(f).is_ok()).collect())
}

/// Compares the manifests with the table "Who may use whom" of ARCHITECTURE.md.
fn dependency_breaches() -> Result<Vec<String>> {
    let page = fs::read_to_string("ARCHITECTURE.md")?;
    let section =
        page.split("## Who may use whom").nth(1).context("ARCHITECTURE.md lacks 'Who may use whom'")?;
    let mut allowed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in
        section.lines().skip_while(|l| !l.starts_with("| ---")).skip(1).take_while(|l| l.starts_with('|'))
    {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [names, uses] = cells[..] else { continue };
        let uses: BTreeSet<String> = uses
            .split(',')
            .map(str::trim)
            .filter(|u| !u.starts_with("nothing"))
            .map(|u| format!("linerate-{u}"))
            .collect();
        for name in names.split(',') {
            allowed.insert(name.trim().trim_matches('`').to_string(), uses.clone());
        }
    }
    let mut breaches = Vec::new();
    for entry in fs::read_dir("crates")? {
        let path = entry?.path().join("Cargo.toml");
        let manifest: toml::Table = toml::from_str(&fs::read_to_string(&path)?)?;
        let name = manifest["package"]["name"].as_str().unwrap_or_default().to_string();
        let used: BTreeSet<String> = manifest
            .get("dependencies")
            .and_then(|d| d.as_table())
            .map(|d| d.keys().filter(|k| k.starts_with("linerate")).cloned().collect())
            .unwrap_or_default();
        match allowed.get(&name) {
            None => {
                breaches.push(format!("{}: {name} is not in the table of ARCHITECTURE.md", path.display()));
            }
            Some(may) => {
                let extra = used.difference(may);
                breaches.extend(extra.map(|u| format!("{}: {name} may not use {u}", path.display())));
            }
        }
    }
    Ok(breaches)
}
