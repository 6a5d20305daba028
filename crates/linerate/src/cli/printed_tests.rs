//! Commands of `linerate` that texts print to be typed: each has to be one that the command line takes.

use std::path::{Path, PathBuf};

use clap::Parser;

use super::Cli;

/// Mentions of a command that are no command to type: a name in a sentence, a text of the help, another
/// topic's placeholder.
const MENTIONS: &[&str] =
    &["clean", "diff", "disk durability write", "disk undo", "drbd up", "inventory", "survey", "try", "undo"];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn files(folder: &Path, end: &str, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, end, all);
        } else if path.extension().is_some_and(|e| e == end) {
            all.push(path);
        }
    }
}

/// What stands between backticks and begins with `linerate `.
fn commands(text: &str) -> Vec<&str> {
    let starts = text.match_indices("`linerate ");
    starts.filter_map(|(at, _)| text[at + 1..].split_once('`').map(|(command, _)| command)).collect()
}

/// Fills in what a text leaves to its moment: `{host}`, `{}`, `{0}`.
fn filled(command: &str) -> String {
    let mut filled = String::new();
    let mut rest = command;
    while let Some((before, hole)) = rest.split_once('{') {
        filled += before;
        filled += "1";
        rest = hole.split_once('}').map_or("", |(_, after)| after);
    }
    filled + rest
}

/// Whether the command line takes it; help counts.
fn is_taken(command: &str) -> Result<(), String> {
    let words = filled(command);
    let name = words.trim_start_matches("linerate ").to_owned();
    if MENTIONS.contains(&name.as_str()) {
        return Ok(());
    }
    if super::old::is_old(&words) {
        return Err(format!("`{command}`: this name is one of before"));
    }
    match Cli::try_parse_from(words.split_whitespace()) {
        Err(error) if error.use_stderr() => Err(format!("`{command}`: {error}")),
        _ => Ok(()),
    }
}

#[test]
fn every_command_of_the_knowledge_runs_as_it_is_printed() {
    let mut all = Vec::new();
    files(&folder("knowledge"), "toml", &mut all);
    let mut seen = 0;
    for file in all {
        let text = std::fs::read_to_string(&file).unwrap();
        for command in commands(&text) {
            seen += 1;
            is_taken(command).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
        // A check is a command as a whole, and so is what a topic asks for.
        let whole = ["check = \"linerate ", "commands = [\"linerate ", "commands = [\"by eye: linerate "];
        let command = |line: &str| {
            let rest = whole.iter().find_map(|head| line.strip_prefix(head))?;
            rest.split('"').next().map(str::to_owned)
        };
        for command in text.lines().filter_map(command) {
            seen += 1;
            is_taken(&format!("linerate {command}"))
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
        // Outside of backticks nothing can be checked.
        let bare = whole.iter().fold(text.replace("`linerate ", ""), |text, head| text.replace(head, ""));
        assert!(!bare.contains("linerate "), "{}: a command without backticks", file.display());
    }
    assert!(seen >= 3, "only {seen} commands were found");
}

#[test]
fn every_command_of_a_hint_runs_as_it_is_printed() {
    let mut all = Vec::new();
    for name in [
        "linerate",
        "diagnose",
        "import",
        "load",
        "node",
        "page",
        "report",
        "storage",
        "store",
        "fleet",
        "inventory",
    ] {
        files(&folder(&format!("crates/{name}/src")), "rs", &mut all);
    }
    let mut wrong = Vec::new();
    let mut seen = 0;
    for file in all.iter().filter(|file| !file.ends_with("printed_tests.rs")) {
        let text = std::fs::read_to_string(file).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for command in commands(line) {
                seen += 1;
                let place = file.strip_prefix(folder("crates")).unwrap_or(file).display().to_string();
                wrong.extend(is_taken(command).err().map(|error| format!("{place}: {error}")));
            }
        }
    }
    assert!(seen > 40, "only {seen} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_command_that_lacks_its_hosts_is_noticed() {
    assert_eq!(commands("see `linerate drbd status {hosts}` and `ls`"), ["linerate drbd status {hosts}"]);
    assert_eq!(filled("linerate show {0} --html -o {path}"), "linerate show 1 --html -o 1");
    assert!(is_taken("linerate drbd status {hosts}").is_ok());
    assert!(is_taken("linerate drbd verify").is_err() && is_taken("linerate nonsense").is_err());
    assert!(is_taken("linerate report").is_err(), "names of before are in no hint");
}
