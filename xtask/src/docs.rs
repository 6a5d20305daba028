//! Makes `docs/reference/` from the programs themselves: commands, exit codes, facts, causes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use linerate_model::exit::ExitCode;
use serde_json::Value;

use crate::target_debug;

const NOTE: &str = "<!-- Made by `cargo xtask docs`; do not edit. -->\n\n";

/// Writes the pages, or with `check` fails when one would change.
pub(crate) fn run(check: bool) -> Result<()> {
    let pages = [
        ("exit-codes.md", exit_codes()),
        ("commands.md", commands()?),
        ("facts.md", facts()?),
        ("causes.md", causes()?),
    ];
    let mut stale = Vec::new();
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

/// The help of the program and of every subcommand it lists, two levels deep.
fn commands() -> Result<String> {
    let mut page = format!("{NOTE}# Commands\n");
    let mut todo: Vec<(&str, Vec<String>)> = vec![("linerate", vec![]), ("linerate-lab", vec![])];
    while let Some((name, path)) = (!todo.is_empty()).then(|| todo.remove(0)) {
        let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
        args.push("--help");
        let help = program(name, &args)?;
        let title = if path.is_empty() { name.to_string() } else { format!("{name} {}", path.join(" ")) };
        let _ = write!(page, "\n## {title}\n\n```text\n{}\n```\n", help.trim_end());
        if path.is_empty() {
            for sub in subcommands(&help) {
                todo.push((name, vec![sub]));
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

fn causes() -> Result<String> {
    let causes: Vec<Value> = serde_json::from_str(&program("linerate", &["knowledge", "--json"])?)?;
    let mut page = format!("{NOTE}# Causes\n\n{} causes; each is one file in `knowledge/`.\n", causes.len());
    for cause in &causes {
        let text = |key: &str| cause[key].as_str().unwrap_or_default().trim().to_string();
        let _ = write!(page, "\n## {}\n\n{}\n\n{}\n\n", text("id"), text("title"), text("mechanism"));
        for (label, key) in [
            ("Remedy", "title"),
            ("By hand", "instruction"),
            ("Survives a reboot by", "persistence"),
            ("Risk", "risk_text"),
        ] {
            if let Some(line) = cause["remedy"][key].as_str().filter(|l| !l.trim().is_empty()) {
                let _ = writeln!(page, "- {label}: {}", line.trim().replace('\n', " "));
            }
        }
        let proofs: Vec<&str> =
            cause["proof"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let _ = writeln!(page, "- Proven by: {}", proofs.join(", "));
        for source in cause["sources"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let _ = writeln!(page, "- Source: {source}");
        }
    }
    Ok(page)
}
