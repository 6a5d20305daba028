//! Names that commands had in 0.1, taken for one release: the words are rewritten before they are parsed, so
//! that help, completions and pages know the present names alone.

use std::ffi::OsString;

/// Old words after the program's name, and those that stand for them now.
const RENAMED: &[(&[&str], &[&str])] = &[
    (&["latency"], &["measure", "latency"]),
    (&["udp"], &["measure", "udp"]),
    (&["mtu"], &["measure", "mtu"]),
    (&["connects"], &["measure", "connections"]),
    (&["http"], &["measure", "http"]),
    (&["disk", "bench"], &["measure", "disk"]),
    (&["import"], &["diagnose", "--save"]),
    (&["report"], &["show"]),
    (&["case", "record"], &["show", "--anonymize"]),
    (&["disk", "undo"], &["undo", "--volume"]),
    (&["disk", "builds"], &["undo", "--list"]),
    (&["drbd", "undo"], &["undo", "--replica"]),
];

/// Kinds of `measure`; without one it was TCP.
const KINDS: &[&str] =
    &["tcp", "udp", "latency", "mtu", "connections", "http", "disk", "help", "-h", "--help"];

/// The same call by present names.
pub(super) fn renamed(mut words: Vec<OsString>) -> Vec<OsString> {
    // `linerate help latency` asks for the same command.
    let first = if words.get(1).is_some_and(|word| word == "help") { 2 } else { 1 };
    let Some(after) = words.get(first..) else { return words };
    if after.first().is_some_and(|word| word == "measure") {
        let is_kind = |word: &OsString| KINDS.iter().any(|kind| word == kind);
        if first == 1 && !after.get(1).is_some_and(is_kind) {
            words.insert(first + 1, "tcp".into());
        }
        return words;
    }
    if after.iter().zip(["disk", "watch"]).filter(|(word, known)| word == known).count() == 2 {
        interval_of_watch(&mut words);
        return words;
    }
    let is_it = |(old, _): &&(&[&str], &[&str])| {
        after.len() >= old.len() && after.iter().zip(*old).all(|(word, old)| word == old)
    };
    if let Some((old, new)) = RENAMED.iter().find(is_it) {
        // An option is no part of a name that help is asked for.
        let new = new.iter().filter(|word| first == 1 || !word.starts_with('-')).map(OsString::from);
        words.splice(first..first + old.len(), new);
    }
    words
}

/// Commands that are taken and hidden, because another one does the same.
#[cfg(test)]
const HIDDEN: &[&str] = &["knowledge show", "knowledge list", "knowledge search"];

/// `-i` of `disk watch` was its interval where a number followed.
fn interval_of_watch(words: &mut [OsString]) {
    for at in 1..words.len() {
        let is_number = words[at].to_str().is_some_and(|word| word.parse::<f64>().is_ok());
        if is_number && words[at - 1] == "-i" {
            words[at - 1] = "-d".into();
        }
    }
}

/// Whether a command is written with a name of before.
#[cfg(test)]
pub(super) fn is_old(words: &str) -> bool {
    let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
    let named = words.iter().skip(1).take(2).map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ");
    HIDDEN.contains(&named.as_str()) || renamed(words.clone()) != words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(text: &str) -> String {
        let words = renamed(text.split(' ').map(OsString::from).collect());
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn old_names_become_present_ones() {
        for (old, new) in [
            ("linerate latency a b --tcp", "linerate measure latency a b --tcp"),
            ("linerate measure a b", "linerate measure tcp a b"),
            ("linerate measure -i f a b", "linerate measure tcp -i f a b"),
            ("linerate measure udp a b", "linerate measure udp a b"),
            ("linerate measure --help", "linerate measure --help"),
            ("linerate connects --help", "linerate measure connections --help"),
            ("linerate help connects", "linerate help measure connections"),
            ("linerate help import", "linerate help diagnose"),
            ("linerate import - --json", "linerate diagnose --save - --json"),
            ("linerate case record x -o f", "linerate show --anonymize x -o f"),
            ("linerate disk bench", "linerate measure disk"),
            ("linerate disk watch -i f", "linerate disk watch -i f"),
            ("linerate disk watch a -i 0.5 -c 1", "linerate disk watch a -d 0.5 -c 1"),
            ("linerate survey latency", "linerate survey latency"),
            ("linerate", "linerate"),
        ] {
            assert_eq!(now(old), new);
        }
        assert!(
            is_old("linerate report 1") && is_old("linerate measure a b") && is_old("linerate disk undo x")
        );
        assert!(!is_old("linerate show 1") && !is_old("linerate measure tcp a b"));
    }
}
