//! Checks the knowledge against the programs: facts that a cause speaks of can be read, settings of a remedy
//! can be written, and what proves it exists.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::shell::target_debug;

/// Checks every cause and lists what does not hold.
pub(crate) fn check() -> Result<()> {
    let causes: Vec<Value> = serde_json::from_str(&program("linerate", &["knowledge", "--json"])?)?;
    let declared: Vec<Value> = serde_json::from_str(&program("linerate-node", &["declarations"])?)?;
    let faults = program("linerate-lab", &["faults"])?;
    let faults: Vec<&str> = faults.lines().filter_map(|l| l.split_whitespace().next()).collect();
    let pattern = |fact: &Value| fact["pattern"].as_str().unwrap_or_default().to_string();
    let readable: Vec<String> = declared.iter().map(pattern).collect();
    let writable: Vec<String> = declared.iter().filter(|f| f["setting"] == true).map(pattern).collect();
    let mut breaches = Vec::new();
    for cause in &causes {
        let id = cause["id"].as_str().unwrap_or_default();
        for test in ["indicators", "excludes"].iter().flat_map(|list| array(&cause[*list])) {
            if !any_matches(&test["keys"], &readable) && !is_imported(&test["keys"]) {
                breaches.push(format!("{id}: no node reads any of {}", test["keys"]));
            }
        }
        for set in array(&cause["remedy"]["set"]) {
            if !any_matches(&set["keys"], &writable) {
                breaches.push(format!("{id}: no node writes any of {}", set["keys"]));
            }
        }
        let proofs: Vec<&str> = array(&cause["proof"]).iter().filter_map(Value::as_str).collect();
        if proofs.is_empty() {
            breaches.push(format!("{id}: nothing proves it"));
        }
        for proof in proofs {
            let case = proof.strip_prefix("case:").unwrap_or(proof).trim();
            let fault = proof.strip_prefix("fault:").unwrap_or(proof).trim();
            if !faults.contains(&fault) && fs::metadata(format!("cases/{case}.toml")).is_err() {
                breaches.push(format!("{id}: neither a lab fault nor a case is called {proof}"));
            }
        }
    }
    ensure!(breaches.is_empty(), "knowledge:\n  {}", breaches.join("\n  "));
    println!("knowledge: {} causes, all readable, writable and proven", causes.len());
    Ok(())
}

/// Facts that no node reads, but `linerate diagnose` gives (`crates/import/src/formats/drbd.rs`,
/// `drbd_show.rs`, `gluster_log.rs`, `audit.rs`, `megaraid.rs`, `kernel_log.rs`, `lsusb.rs`, `sentences.rs`).
fn is_imported(keys: &Value) -> bool {
    let families = [
        "drbd.",
        "gluster.",
        "audit.",
        "raid.",
        "ata.",
        "usb.",
        "btrfs.",
        "request.",
        "zpool.",
        "socket.",
        "storage.",
        "sentence.",
        "cpu.quota.",
        "nic.*.wifi.",
    ];
    array(keys).iter().filter_map(Value::as_str).all(|key| families.iter().any(|f| key.starts_with(f)))
}

fn program(name: &str, args: &[&str]) -> Result<String> {
    let out = Command::new(target_debug().join(name))
        .args(args)
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    ensure!(
        out.status.success(),
        "{name} {} failed: {}",
        args.join(" "),
        String::from_utf8_lossy(&out.stderr)
    );
    Ok(String::from_utf8(out.stdout)?)
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn any_matches(keys: &Value, patterns: &[String]) -> bool {
    array(keys).iter().filter_map(Value::as_str).any(|key| patterns.iter().any(|p| overlap(key, p)))
}

/// Whether some key fits both patterns; `*` stands for any text without end.
fn overlap(a: &str, b: &str) -> bool {
    match (a.split_at_checked(1), b.split_at_checked(1)) {
        (None, _) | (_, None) => a.trim_start_matches('*').is_empty() && b.trim_start_matches('*').is_empty(),
        (Some(("*", rest)), Some((_, tail))) => overlap(rest, b) || overlap(a, tail),
        (Some((_, tail)), Some(("*", rest))) => overlap(a, rest) || overlap(tail, b),
        (Some((x, tail_a)), Some((y, tail_b))) => x == y && overlap(tail_a, tail_b),
    }
}
