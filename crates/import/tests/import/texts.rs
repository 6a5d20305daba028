//! Texts as people paste them (`cases/texts/`): how right the verdict on each is. The file has what is
//! reached, and a change must change it too, whether it makes one better or worse.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_import::Document;
use serde_json::Value;

use super::read_one;

/// A cause is claimed from here on.
const CLAIMED: f64 = 0.7;
/// A cause is called the most likely one from here on.
const LIKELY: f64 = 0.495;
/// One of so many commands must be the right one.
const ASKED_MAX: usize = 3;

struct Pasted {
    name: String,
    text: String,
    causes: Vec<String>,
    never: Vec<String>,
    asks: Vec<String>,
    contains: Vec<String>,
    unknown: bool,
    verdict: String,
}

fn texts(folder: &str) -> Vec<Pasted> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/texts").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    files.iter().map(|path| text(path)).collect()
}

fn text(path: &Path) -> Pasted {
    let table: toml::Table = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let expect = table["expect"].as_table().unwrap();
    let list = |name: &str| -> Vec<String> {
        let all = expect.get(name).and_then(|v| v.as_array()).cloned().unwrap_or_default();
        all.iter().map(|v| v.as_str().unwrap().to_owned()).collect()
    };
    Pasted {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        text: table["text"].as_str().unwrap().to_owned(),
        causes: list("causes"),
        never: list("never"),
        asks: list("asks"),
        contains: list("contains"),
        unknown: expect.get("unknown").and_then(toml::Value::as_bool).unwrap_or(false),
        verdict: expect.get("verdict").and_then(|v| v.as_str()).unwrap_or_default().to_owned(),
    }
}

/// Small letters, one blank between words.
fn plain(text: &str) -> String {
    text.split(|c: char| c.is_whitespace())
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase()
}

/// All texts of a value.
fn strings(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|v| strings(v, out)),
        Value::Object(all) => all.values().for_each(|v| strings(v, out)),
        _ => {}
    }
}

/// What the diagnosis contains, as its JSON has it.
struct Answer {
    written: String,
    asked: String,
    firsts: Vec<(String, f64)>,
    is_silent: bool,
}

fn answer(text: &Pasted) -> Answer {
    let snapshot = read_one(Document::new(format!("{}.txt", text.name), text.text.clone()));
    let is_read = snapshot.imported.as_ref().is_some_and(|i| !i.pieces.is_empty());
    let diagnosis = linerate_diagnose::diagnose(&snapshot, crate::knowledge());
    let diagnosis = serde_json::to_value(linerate_report::words::written(diagnosis)).unwrap();
    let findings = diagnosis["findings"].as_array().cloned().unwrap_or_default();
    let mut written = Vec::new();
    for part in ["headline", "notes", "refused", "remarks"] {
        strings(&diagnosis[part], &mut written);
    }
    let mut asked = Vec::new();
    let mut firsts = Vec::new();
    for finding in &findings {
        for part in ["sentence", "decide"] {
            strings(&finding[part], &mut written);
        }
        strings(&finding["decide"], &mut asked);
        if let Some(first) = finding["causes"].as_array().and_then(|causes| causes.first()) {
            firsts.push((first["id"].as_str().unwrap().to_owned(), first["probability"].as_f64().unwrap()));
        }
    }
    for missing in diagnosis["asked"].as_array().into_iter().flatten() {
        asked.push(missing["command"].as_str().unwrap_or_default().to_owned());
    }
    asked.truncate(ASKED_MAX);
    let is_empty = |part: &str| diagnosis[part].as_array().is_none_or(Vec::is_empty);
    let is_silent = !is_read || (findings.is_empty() && is_empty("notes") && is_empty("remarks"));
    Answer { written: plain(&written.join(" \n ")), asked: plain(&asked.join(" ; ")), firsts, is_silent }
}

fn verdict(text: &Pasted) -> &'static str {
    let answer = answer(text);
    let is_in = |list: &[String], id: &str| list.iter().any(|known| known == id);
    let is_wrong = |(id, p): &(String, f64)| {
        let claimed = *p >= CLAIMED && (!is_in(&text.causes, id) || is_in(&text.never, "*"));
        claimed || *p >= LIKELY && is_in(&text.never, id)
    };
    let is_written = |part: &String| answer.written.contains(&plain(part));
    let lost = text.contains.iter().filter(|part| !is_written(part)).count();
    if answer.firsts.iter().any(is_wrong) {
        return "wrong";
    }
    if answer.firsts.iter().any(|(id, _)| is_in(&text.causes, id)) {
        return if lost == 0 { "right" } else { "half" };
    }
    let may_ask = text.unknown || text.causes.is_empty();
    let asked = lost == 0 && text.asks.iter().any(|part| answer.asked.contains(&plain(part)));
    if may_ask && asked {
        return "asked";
    }
    if answer.is_silent && lost == text.contains.len() {
        return "silent";
    }
    if text.causes.is_empty() && text.asks.is_empty() && lost == 0 { "right" } else { "unknown" }
}

/// Wants the verdicts of the files of a folder.
fn holds(folder: &str) {
    let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
    let mut changed = Vec::new();
    for text in texts(folder) {
        let now = verdict(&text);
        *sums.entry(now).or_default() += 1;
        if now != text.verdict {
            changed.push(format!("{}: `{}` is now `{now}`", text.name, text.verdict));
        }
    }
    assert!(sums.values().sum::<usize>() >= 15, "{folder}: {sums:?}");
    assert!(changed.is_empty(), "{folder}: {sums:?}\n{}", changed.join("\n"));
}

#[test]
fn texts_of_the_casebook() {
    holds("casebook");
}

#[test]
fn texts_of_threads() {
    holds("threads");
}

#[test]
fn texts_kept_aside() {
    holds("aside");
}
