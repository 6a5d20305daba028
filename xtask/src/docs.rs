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
    // Programs of an older state would describe that. Built as the tests have them: with other features all
    // of them would be compiled once more.
    sh("cargo", &["test", "--workspace", "--no-run", "--locked", "--quiet"])?;
    let mut pages = vec![
        ("reference/exit-codes.md".to_owned(), exit_codes()),
        ("reference/facts.md".to_owned(), facts()?),
    ];
    pages.extend(schemas()?);
    let commands = commands()?;
    let causes: Vec<Value> = serde_json::from_str(&program("linerate", &["explain", "--json"])?)?;
    pages.extend(cause_pages(&causes)?);
    pages.push(("SUMMARY.md".to_owned(), summary(&commands, &causes)?));
    pages.extend(commands);
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
    fs::create_dir_all("docs/reference/commands")?;
    for (name, text) in pages {
        let path = Path::new("docs").join(name);
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
    crate::rules::check()?;
    ensure!(stale.is_empty(), "stale: {}; run `cargo xtask docs`", stale.join(", "));
    Ok(())
}

/// Pages of commands and causes that no longer exist.
fn gone(pages: &[(String, String)]) -> Result<Vec<PathBuf>> {
    let mut gone = Vec::new();
    for folder in ["causes", "commands"] {
        let Ok(entries) = fs::read_dir(Path::new("docs/reference").join(folder)) else { continue };
        for entry in entries {
            let path = entry?.path();
            let name =
                format!("reference/{folder}/{}", path.file_name().unwrap_or_default().to_string_lossy());
            if !pages.iter().any(|(page, _)| *page == name) {
                gone.push(path);
            }
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

/// The JSON schemas of all documents, and the page that lists them.
fn schemas() -> Result<Vec<(String, String)>> {
    let mut page = format!(
        "{NOTE}# JSON schemas\n\nWhat commands print with `--json`, by JSON Schema 2020-12: [schemas.json](schemas.json), each document \
         below\n`$defs`. `linerate schema NAME` prints one by itself. Within a minor version keys are added and never \
         removed:\nignore those that you do not know.\n\n| document | commands |\n| --- | --- |\n"
    );
    for line in program("linerate", &["schema", "--list"])?.lines() {
        let (name, of) = line.split_once(' ').context("a document without its commands")?;
        let _ = writeln!(page, "| `{name}` | {} |", of.trim());
    }
    let all = program("linerate", &["schema"])?;
    page += "\nEach has its verdict as [`summary`](../guide/programs.md), but for those in which nothing is judged:\n\n";
    page += "| document | reason |\n| --- | --- |\n";
    let documents: serde_json::Value = serde_json::from_str(&all)?;
    for (name, schema) in documents["$defs"].as_object().into_iter().flatten() {
        let comment = schema["$comment"].as_str().and_then(|text| text.strip_prefix("no `summary`: "));
        if let Some(reason) = comment {
            let _ = writeln!(page, "| `{name}` | {reason} |");
        }
    }
    Ok(vec![("reference/schemas.json".to_owned(), all), ("reference/schemas.md".to_owned(), page)])
}

fn exit_codes() -> String {
    let mut page = format!("{NOTE}# Exit codes\n\n| code | meaning |\n| --- | --- |\n");
    for (code, meaning) in ExitCode::ALL {
        let _ = writeln!(page, "| {} | {meaning} |", *code as u8);
    }
    page
}

/// Commands that the help does not list, and that have a page.
const HIDDEN: [&str; 4] = ["iperf3", "knowledge", "man", "schema"];

/// A page for each command with the help of its subcommands, and one that lists them.
fn commands() -> Result<Vec<(String, String)>> {
    let overview = program("linerate", &["--help"])?;
    let mut names = in_groups(&overview);
    ensure!(!names.is_empty(), "the help of linerate lists no commands");
    names.extend(HIDDEN.map(str::to_owned));
    let mut index = format!("{NOTE}# Commands\n\n```text\n{}\n```\n\n", overview.trim_end());
    let mut pages = Vec::new();
    for name in &names {
        let mut page = NOTE.to_owned();
        help(&mut page, "linerate", std::slice::from_ref(name), 1)?;
        let _ = writeln!(index, "- [linerate {name}]({name}.md)");
        pages.push((format!("reference/commands/{name}.md"), page));
    }
    for (name, page_name, also) in [
        ("linerate-lab", "lab", ", also `linerate lab` and `linerate demo`"),
        ("linerate-judge", "judge", ""),
    ] {
        let mut page = NOTE.to_owned();
        help(&mut page, name, &[], 1)?;
        let _ = writeln!(index, "- [{name}]({page_name}.md){also}");
        pages.push((format!("reference/commands/{page_name}.md"), page));
    }
    pages.insert(0, ("reference/commands/README.md".to_owned(), index));
    Ok(pages)
}

/// The help of a command, then that of its subcommands below headings of their own.
fn help(page: &mut String, name: &str, path: &[String], level: usize) -> Result<()> {
    let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
    args.push("--help");
    let help_text = program(name, &args)?;
    args.pop();
    args.insert(0, name);
    if level > 1 {
        page.push('\n');
    }
    let marks = "#".repeat(level);
    let _ = write!(page, "{marks} {}\n\n```text\n{}\n```\n", args.join(" "), help_text.trim_end());
    if path.len() < 2 {
        for sub in subcommands(&help_text) {
            help(page, name, &[path, &[sub]].concat(), level + 1)?;
        }
    }
    Ok(())
}

/// Commands of the overview, which stand below headings of their own.
fn in_groups(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|l| !l.starts_with("Usage:"))
        .take_while(|l| !l.starts_with("Options:"))
        .filter_map(|l| l.strip_prefix("  ")?.split_whitespace().next())
        .map(String::from)
        .collect()
}

fn subcommands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|l| !l.starts_with("Commands:"))
        .skip(1)
        .take_while(|l| !l.is_empty())
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .filter(|n| *n != "help")
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

/// The summary of the book with the commands, and the causes by area.
fn summary(commands: &[(String, String)], causes: &[Value]) -> Result<String> {
    let mut by_command = String::new();
    for (path, text) in commands {
        let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default();
        let title = if title == "Commands" { "All commands" } else { title };
        let _ = writeln!(by_command, "- [{title}]({path})");
    }
    let mut areas: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for cause in causes {
        let text = |key: &str| cause[key].as_str().unwrap_or_default();
        areas.entry(text("area")).or_default().insert(text("id"));
    }
    let mut by_area = String::new();
    for (area, ids) in areas {
        let _ = writeln!(by_area, "- [{area}]()");
        for id in ids {
            let _ = writeln!(by_area, "  - [{id}](reference/causes/{id}.md)");
        }
    }
    let summary = with_part(&fs::read_to_string("docs/SUMMARY.md")?, "Reference by command", &by_command)?;
    with_part(&summary, "Causes by area", &by_area)
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
    let mut pages = vec![("reference/causes/README.md".to_owned(), index(causes))];
    for cause in causes {
        let id = cause["id"].as_str().unwrap_or_default();
        let page = program("linerate", &["explain", id, "--md"])?;
        pages.push((format!("reference/causes/{id}.md"), format!("{NOTE}{page}")));
    }
    Ok(pages)
}

/// Metrics by their names in the files, and as headings.
const SYMPTOMS: [(&str, &str); 11] = [
    ("throughput", "throughput below what the hardware carries"),
    ("loss", "packet loss"),
    ("retransmits", "retransmissions"),
    ("rtt-idle", "high RTT on an idle path"),
    ("rtt-loaded", "high RTT under load"),
    ("reordering", "reordering"),
    ("cpu-cost", "high CPU cost per gigabyte"),
    ("path-mtu", "large packets do not arrive"),
    ("two-state", "bimodal throughput"),
    ("storage", "disks and replication slower than their parts"),
    ("setting", "a wrong setting or counter, without a measured loss"),
];

fn index(causes: &[Value]) -> String {
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().trim().to_string();
    let mut page = format!(
        "{NOTE}# Causes\n\n{} causes by symptom. Each is one file in `knowledge/` and one page here. In a terminal: `linerate explain`,\n`linerate explain --search WORD`, `linerate explain ID`.\n",
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
            let places: Vec<&str> = cause["symptom"]["suspects"]
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
