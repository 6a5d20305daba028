//! The page of every number of the reasoning, with the verdicts that change when it is halved or doubled.
//!
//! In: folders of kept runs, if any. Out: `docs/dev/rules.md`, made by `linerate-judge rules`. The effects
//! take
//! minutes, so that `docs --check` compares names, values and sources alone.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use linerate_diagnose::rules::Rules;

use crate::shell::{sh, target_debug};

const PAGE: &str = "docs/dev/rules.md";

/// Writes and prints the page; with `leave_out` prints the verdicts without the file of each cause instead.
pub(crate) fn run(kept: Option<&str>, leave_out: bool) -> Result<()> {
    sh("cargo", &["build", "--locked", "-p", "linerate-judge"])?;
    let mut command = Command::new(target_debug().join("linerate-judge"));
    command.arg("rules").args(kept.iter().flat_map(|folders| ["--kept", folders]));
    command.args(leave_out.then_some("--leave-out"));
    let out = command.stderr(std::process::Stdio::inherit()).output().context("cannot run linerate-judge")?;
    ensure!(out.status.success(), "linerate-judge rules failed");
    let page = String::from_utf8(out.stdout)?;
    print!("{page}");
    if !leave_out {
        fs::write(PAGE, page)?;
    }
    Ok(())
}

/// Fails where the page has other numbers than the program.
pub(crate) fn check() -> Result<()> {
    let page = fs::read_to_string(PAGE)?;
    // Cells of a row but the two effects.
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let shown: Vec<Vec<&str>> = rows
        .map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .map(|cells: Vec<&str>| [&cells[..3], &cells[5..]].concat())
        .collect();
    let list = Rules::DEFAULT.list();
    let names: Vec<String> = list.iter().map(|rule| format!("`{}`", rule.name)).collect();
    let today: Vec<Vec<&str>> = list
        .iter()
        .zip(&names)
        .map(|(rule, name)| vec![name.as_str(), &rule.value, rule.unit, rule.meaning, rule.source])
        .collect();
    ensure!(shown == today, "{PAGE} is not of today's numbers; run `cargo xtask rules`");
    Ok(())
}
