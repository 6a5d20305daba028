//! Makes `docs/reference/` from the programs themselves: commands, exit codes, facts, causes; and what
//! `docs/SUMMARY.md` lists of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use linerate_model::exit::ExitCode;
use serde_json::Value;

use crate::shell::{sh, target_debug};

const NOTE: &str = "<!-- Made by `cargo xtask docs`; do not edit. -->\n\n";

/// Writes the pages, or with `check` fails when one would change.
pub(crate) fn run(check: bool) -> Result<()> {
    // Programs of an older state would describe that.
    sh("cargo", &["build", "--locked", "-p", "linerate", "-p", "linerate-node", "-p", "linerate-lab"])?;
    let mut pages = vec![
        ("exit-codes.md".to_owned(), exit_codes()),
        ("commands.md".to_owned(), commands()?),
        ("facts.md".to_owned(), facts()?),
    ];
    let causes: Vec<Value> = serde_json::from_str(&program("linerate", &["knowledge", "list", "--json"])?)?;
    pages.extend(cause_pages(&causes)?);
    pages.push(("../SUMMARY.md".to_owned(), summary(&causes)?));
    let mut stale = Vec::new();
    for path in gone(&pages)? {
        if check {
            stale.push(path.display().to_string());
        } else {
            fs::remove_file(&path)?;
            println!("removed {}", path.display());
        }
    }
    fs::create_dir_all("docs/reference/causes")?;
    for (name, text) in pages {
        let path = Path::new("docs/reference").join(name);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if check {
            stale.push(path.display().to_string());
        } else {
            fs::write(&path, text)?;
            println!("wrote {}", path.display());
        }
    }
    ensure!(stale.is_empty(), "stale: {}; run `cargo xtask docs`", stale.join(", "));
    Ok(())
}

/// Pages of causes that there are no more.
fn gone(pages: &[(String, String)]) -> Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir("docs/reference/causes") else { return Ok(Vec::new()) };
    let mut gone = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = format!("causes/{}", path.file_name().unwrap_or_default().to_string_lossy());
        if !pages.iter().any(|(page, _)| *page == name) {
            gone.push(path);
        }
    }
    gone.sort();
    Ok(gone)
}

fn program(name: &str, args: &[&str]) -> Result<String> {
    let out = Command::new(target_debug().join(name))
        .args(args)
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .output()
        .with_context(|| format!("cannot run {name}; `cargo build --workspace` first"))?;
    ensure!(
        out.status.success(),
        "{name} {} failed:\n{}",
        args.join(" "),
        String::from_utf8_lossy(&out.stderr)
    );
    Ok(String::from_utf8(out.stdout)?)
}

fn exit_codes() -> String {
    let mut page = format!("{NOTE}# Exit codes\n\n| code | meaning |\n| --- | --- |\n");
    for (code, meaning) in ExitCode::ALL {
        let _ = writeln!(page, "| {} | {meaning} |", *code as u8);
    }
    page
}

/// The help of the program, of every subcommand it lists, and of theirs.
fn commands() -> Result<String> {
    let mut page = format!("{NOTE}# Commands\n");
    let mut todo: Vec<(&str, Vec<String>)> = vec![("linerate", vec![]), ("linerate-lab", vec![])];
    while let Some((name, path)) = (!todo.is_empty()).then(|| todo.remove(0)) {
        let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
        args.push("--help");
        let help = program(name, &args)?;
        let title = if path.is_empty() { name.to_string() } else { format!("{name} {}", path.join(" ")) };
        let _ = write!(page, "\n## {title}\n\n```text\n{}\n```\n", help.trim_end());
        if path.len() < 2 {
            for sub in subcommands(&help) {
                todo.push((name, path.iter().cloned().chain([sub]).collect()));
            }
        }
    }
    Ok(page)
}

fn subcommands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|l| !l.starts_with("Commands:"))
        .skip(1)
        .take_while(|l| !l.is_empty())
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .filter(|n| !matches!(*n, "help" | "lab" | "demo"))
        .map(String::from)
        .collect()
}

fn facts() -> Result<String> {
    let declared: Vec<Value> = serde_json::from_str(&program("linerate-node", &["declarations"])?)?;
    let mut page = format!(
        "{NOTE}# Facts and settings\n\n| key | unit | setting | meaning |\n| --- | --- | --- | --- |\n"
    );
    for fact in &declared {
        let text = |key: &str| fact[key].as_str().unwrap_or_default().replace('|', "\\|");
        let setting = if fact["setting"].as_bool() == Some(true) { "yes" } else { "" };
        let _ =
            writeln!(page, "| `{}` | {} | {setting} | {} |", text("pattern"), text("unit"), text("meaning"));
    }
    Ok(page)
}

/// The summary of the book with the causes listed by area.
fn summary(causes: &[Value]) -> Result<String> {
    let mut areas: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for cause in causes {
        let text = |key: &str| cause[key].as_str().unwrap_or_default();
        areas.entry(text("area")).or_default().insert(text("id"));
    }
    let mut list = String::new();
    for (area, ids) in areas {
        let _ = writeln!(list, "- [{area}]()");
        for id in ids {
            let _ = writeln!(list, "  - [{id}](reference/causes/{id}.md)");
        }
    }
    with_part(&fs::read_to_string("docs/SUMMARY.md")?, "Causes by area", &list)
}

/// The summary with another list below the heading of a part.
fn with_part(summary: &str, part: &str, list: &str) -> Result<String> {
    let heading = format!("\n# {part}\n");
    let (before, rest) =
        summary.split_once(&heading).with_context(|| format!("docs/SUMMARY.md has no part `{part}`"))?;
    let after = rest.find("\n# ").map_or("", |at| &rest[at..]);
    Ok(format!("{before}{heading}\n{list}{after}"))
}

/// One page for each cause, and an index by symptom.
fn cause_pages(causes: &[Value]) -> Result<Vec<(String, String)>> {
    let mut pages = vec![("causes/README.md".to_owned(), index(causes))];
    for cause in causes {
        let id = cause["id"].as_str().unwrap_or_default();
        let page = program("linerate", &["knowledge", "show", id, "--markdown"])?;
        pages.push((format!("causes/{id}.md"), format!("{NOTE}{page}")));
    }
    Ok(pages)
}

/// Names of responses in the files, with what a person would call them.
const SYMPTOMS: [(&str, &str); 11] = [
    ("throughput", "throughput below what the hardware carries"),
    ("loss", "datagrams are lost"),
    ("retransmits", "segments are sent again"),
    ("rtt-idle", "slow answers on an idle path"),
    ("rtt-loaded", "slow answers under load"),
    ("reordering", "packets out of order"),
    ("cpu-cost", "much CPU for each gigabyte"),
    ("path-mtu", "large packets do not arrive"),
    ("two-state", "throughput jumps between two levels"),
    ("storage", "disks and replication slower than their parts"),
    ("setting", "a setting or counter alone is worth a word"),
];

fn index(causes: &[Value]) -> String {
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().trim().to_string();
    let mut page = format!(
        "{NOTE}# Causes\n\n{} causes; each is one file in `knowledge/`, and all about it on a page of its own. The same in a terminal:\n`linerate knowledge list`, `search WORDS`, `show ID`.\n",
        causes.len()
    );
    for (name, meaning) in SYMPTOMS {
        let list = |cause: &&Value, at: &str| {
            cause["symptom"][at].as_array().into_iter().flatten().any(|v| v.as_str() == Some(name))
        };
        let shown: Vec<&Value> = causes.iter().filter(|c| list(c, "responses")).collect();
        if shown.is_empty() {
            continue;
        }
        let _ = write!(page, "\n## {meaning}\n\n| cause | where | what |\n| --- | --- | --- |\n");
        for cause in shown {
            let places: Vec<&str> = cause["symptom"]["elements"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let id = text(cause, "id");
            let title = text(cause, "title").replace('|', "\\|").replace('_', "\\_");
            let _ = writeln!(page, "| [{id}]({id}.md) | {} | {title} |", places.join(", "));
        }
    }
    page
}
