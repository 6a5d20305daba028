//! The words that go: how often each stands in the project, compared with the table of `docs/STYLE.md`.
//!
//! A word is found in any spelling: `way_back`, `WayBack` and "way back" are the same two words.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Where the table is.
const PAGE: &str = "docs/STYLE.md";
/// What is read.
const FILES: [&str; 3] = ["*.rs", "*.md", "*.toml"];
/// What is not: the page itself, and what `cargo xtask docs` writes.
const LEFT_OUT: [&str; 3] = [PAGE, "docs/reference/", "cases/texts/"];

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    /// Each in lower case, its words apart.
    words: Vec<Vec<String>>,
    /// How often all of them may stand there.
    left: usize,
}

impl Row {
    fn name(&self) -> String {
        self.words.first().map(|word| word.join(" ")).unwrap_or_default()
    }
}

/// Lines for `tidy`: rows whose count differs from what the files hold.
pub(crate) fn breaches() -> Result<Vec<String>> {
    let rows = rows(&fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?)?;
    let mut counts = vec![0; rows.len()];
    for file in files()? {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
        for (count, more) in counts.iter_mut().zip(counted(&rows, &text)) {
            *count += more;
        }
    }
    let differs = rows.iter().zip(counts).filter(|(row, count)| row.left != *count);
    Ok(differs
        .map(|(row, count)| {
            let name = row.name();
            if count > row.left {
                format!("{PAGE}: `{name}` stands {count} times, at most {}: write another word", row.left)
            } else {
                format!("{PAGE}: `{name}` stands only {count} times: lower its {} to that", row.left)
            }
        })
        .collect())
}

fn files() -> Result<Vec<String>> {
    let out = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .args(FILES)
        .output()
        .context("cannot run git")?;
    let listed = String::from_utf8_lossy(&out.stdout);
    let files: Vec<String> = listed
        .lines()
        .filter(|file| !LEFT_OUT.iter().any(|out| file.starts_with(out)) && fs::metadata(file).is_ok())
        .map(String::from)
        .collect();
    ensure!(!files.is_empty(), "git lists no files: tidy needs a git checkout");
    Ok(files)
}

/// The table below the heading "Words".
fn rows(page: &str) -> Result<Vec<Row>> {
    let table = page.split("\n## Words\n").nth(1).with_context(|| format!("{PAGE} lacks '## Words'"))?;
    let rows = table.lines().filter(|line| line.starts_with("| `")).map(row).collect::<Result<Vec<_>>>()?;
    ensure!(!rows.is_empty(), "{PAGE}: no words in the table");
    Ok(rows)
}

fn row(line: &str) -> Result<Row> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [words, _, left] = cells[..] else { anyhow::bail!("{PAGE}: three columns wanted: {line}") };
    let words = words.split('`').skip(1).step_by(2).map(words_of).collect();
    let left = left.parse().with_context(|| format!("{PAGE}: `{left}` is not a count: {line}"))?;
    Ok(Row { words, left })
}

/// How often each row's words stand in a text; a word that begins another one of its row is counted once.
fn counted(rows: &[Row], text: &str) -> Vec<usize> {
    let mut first: BTreeMap<&str, Vec<(usize, &[String])>> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        for word in &row.words {
            let Some(begin) = word.first() else { continue };
            first.entry(begin).or_default().push((index, word));
        }
    }
    let mut counts = vec![0; rows.len()];
    for line in text.lines() {
        let words = words_of(line);
        for (at, word) in words.iter().enumerate() {
            for (index, wanted) in first.get(word.as_str()).into_iter().flatten() {
                counts[*index] += usize::from(words[at..].starts_with(wanted));
            }
        }
    }
    counts
}

/// The words of a line in lower case: letters in a row, cut where a capital follows a small letter.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut small = false;
    for c in line.chars() {
        if !word.is_empty() && (!c.is_alphabetic() || small && c.is_uppercase()) {
            words.push(std::mem::take(&mut word));
        }
        small = c.is_lowercase();
        if c.is_alphabetic() {
            word.extend(c.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Style\n| `not`, counted | x | 9 |\n\n## Words\n\n| word | write | left |\n| --- | --- | ---: |\n\
                        | `way`, `ways` | path | 3 |\n| `way back` | undo | 1 |\n";

    #[test]
    fn words_are_counted_in_any_spelling() {
        let rows = rows(PAGE).unwrap();
        assert_eq!(
            rows.iter().map(|row| (row.name(), row.left)).collect::<Vec<_>>(),
            [("way".into(), 3), ("way back".into(), 1)]
        );
        let text = "fn way_back(ways: WayBack) // no way: always, HTTPWay\nTwo ways back";
        assert_eq!(counted(&rows, text), [5, 2]);
        assert_eq!(words_of("HTTPWay x2y"), ["httpway", "x", "y"]);
    }

    #[test]
    fn tables_that_cannot_be_read_are_named() {
        assert!(rows("# Style").unwrap_err().to_string().contains("lacks"));
        assert!(rows("x\n## Words\n").unwrap_err().to_string().contains("no words"));
        assert!(row("| `a` | b | many |").unwrap_err().to_string().contains("`many` is not a count"));
        assert!(row("| `a` | b |").unwrap_err().to_string().contains("three columns"));
    }
}
