//! No bytes make the readers panic, and every line is accounted for.

use linerate_import::{Document, ImportOptions, formats, read};
use proptest::prelude::*;

use super::files;

/// Names that bring a command with them, as files of people do.
const NAMES: [&str; 5] =
    ["x", "ethtool_-k_em1", "ethtool-S-em1.txt", "proc/net/softnet_stat", "arc-1-to-arc-2.json"];

/// Blanks of more than one byte, letters of two and four, numbers beyond every type, signs that end words.
const ODD: [&str; 16] = [
    "\u{a0}",
    "\u{85}",
    "\u{3000}",
    "¡",
    "µ",
    "😀",
    "\0",
    "  ",
    "\t",
    "-",
    "18446744073709551616",
    "9e999",
    "%",
    ": ",
    "\"",
    "\n",
];

fn fixtures() -> Vec<Vec<u8>> {
    let mut todo = vec![files()];
    let mut found = Vec::new();
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            let mut inner: Vec<_> = std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()).collect();
            inner.sort();
            todo.extend(inner);
        } else {
            found.push(std::fs::read(path).unwrap());
        }
    }
    found
}

/// Reads as it is, and in every format by force; the account must fit the text.
fn check(bytes: &[u8], name: &str) {
    let every = formats().map(|(format, _)| Some(format.to_owned())).chain([None]);
    for format in every {
        let options = ImportOptions { format, host: Some("h".to_owned()), ..ImportOptions::default() };
        let snapshot = read(&[Document::new(name, bytes)], &options);
        let imported = snapshot.imported.as_ref().unwrap();
        let unread: u64 = imported.unread.iter().map(|u| u.lines as u64).sum();
        assert!(unread <= imported.unread_lines);
        for sample in &snapshot.samples {
            assert!(snapshot.inventory.host(&sample.test.from).is_some(), "{sample:?}");
            assert!(snapshot.inventory.host(&sample.test.to).is_some(), "{sample:?}");
        }
        // It can be stored and read again.
        let text = serde_json::to_string(&snapshot).unwrap();
        serde_json::from_str::<linerate_model::snapshot::Snapshot>(&text).unwrap();
    }
}

#[test]
fn every_fixture_in_every_format() {
    for (number, bytes) in fixtures().iter().enumerate() {
        check(bytes, NAMES[number % NAMES.len()]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600), name in 0..NAMES.len()) {
        check(&bytes, NAMES[name]);
    }

    /// A real text with one thing in it that no tool wrote, as it is and in pieces.
    #[test]
    fn odd_words_in_fixtures(index in any::<prop::sample::Index>(), parts_with_odd in proptest::collection::vec((0.0..1.0_f64, 0..ODD.len()), 1..12)) {
        let all = fixtures();
        let mut bytes = index.get(&all).clone();
        bytes.truncate(4000);
        for (part, odd) in parts_with_odd {
            let at = (part * bytes.len() as f64) as usize;
            bytes.splice(at..at, ODD[odd].bytes());
        }
        check(&bytes, "x");
    }

    /// Pieces of real texts in another order, cut anywhere, with a byte changed.
    #[test]
    fn torn_fixtures(picks in proptest::collection::vec((any::<prop::sample::Index>(), 0.0..1.0_f64, 0.0..1.0_f64, any::<u8>()), 1..4)) {
        let all = fixtures();
        let mut bytes = Vec::new();
        for (index, from, to, byte) in picks {
            let one = index.get(&all);
            let at = |part: f64| (part * one.len() as f64) as usize;
            let (from, to) = (at(from.min(to)), at(from.max(to)));
            let mut piece = one[from..to.min(from + 4000)].to_vec();
            if let Some(last) = piece.last_mut() {
                *last = byte;
            }
            bytes.extend(piece);
        }
        check(&bytes, "x");
    }
}
