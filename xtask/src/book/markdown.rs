//! Links of Markdown files: to files that exist, to headings that are there, and each page in the summary.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::links::resolve;

const SUMMARY: &str = "docs/SUMMARY.md";

/// Each link that leads nowhere, and each page of the book that the summary lacks.
pub(super) fn breaches(pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut listed = BTreeSet::new();
    for (page, text) in pages {
        for link in links(text).map(|(from, to)| &text[from..to]).filter(|link| is_local(link)) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() { page.clone() } else { resolve(page, file) };
            if !pages.contains_key(&path) && !path.exists() {
                breaches.push(format!("{}: {link}: no such file", page.display()));
            } else if !anchor.is_empty() && !pages.get(&path).is_some_and(|t| anchors(t).contains(anchor)) {
                breaches.push(format!("{}: {link}: no such heading", page.display()));
            }
            if page == Path::new(SUMMARY) {
                listed.insert(path);
            }
        }
    }
    for page in pages.keys().filter(|p| p.starts_with("docs") && *p != Path::new(SUMMARY)) {
        if !listed.contains(page) {
            breaches.push(format!("{}: not in {SUMMARY}", page.display()));
        }
    }
    breaches
}

/// The text with links from `docs/` to files outside it as addresses below `repository`.
pub(super) fn with_outside_links(page: &Path, text: &str, repository: &str) -> String {
    let mut out = String::new();
    let mut done = 0;
    for (from, to) in links(text) {
        let link = &text[from..to];
        let path = resolve(page, link);
        if is_local(link) && !link.starts_with('#') && !path.starts_with("docs") {
            out.push_str(&text[done..from]);
            out.push_str(repository);
            out.push_str(&path.to_string_lossy());
            done = to;
        }
    }
    out.push_str(&text[done..]);
    out
}

fn is_local(link: &str) -> bool {
    !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:")
}

/// Where the targets of inline links and images begin and end.
fn links(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let prose = without_code(text);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = prose[at..].find("](").map(|i| at + i + 2) {
        let Some(end) = prose[start..].find([')', ' ', '\n']).map(|i| start + i) else { break };
        found.push((start, end));
        at = end;
    }
    found.into_iter()
}

/// The text with spaces in place of code, so that positions stay.
fn without_code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fenced = false;
    let mut in_span = false;
    for line in text.split_inclusive('\n') {
        let fence = line.trim_start().starts_with("```");
        let code = fence || fenced || (line.starts_with("    ") && !in_span);
        fenced ^= fence;
        if line.trim().is_empty() {
            in_span = false;
        }
        for c in line.chars() {
            in_span ^= c == '`' && !code;
            let shown = c == '\n' || !(code || in_span || c == '`');
            if shown { out.push(c) } else { out.extend(std::iter::repeat_n(' ', c.len_utf8())) }
        }
    }
    out
}

/// Anchors of the headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        let title = line.trim_start_matches('#');
        if fenced || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let id = anchor(title.trim());
        let before = seen.entry(id.clone()).or_default();
        anchors.insert(if *before == 0 { id } else { format!("{id}-{before}") });
        *before += 1;
    }
    anchors
}

fn anchor(title: &str) -> String {
    title
        .chars()
        .filter_map(|c| match c {
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
            c if c.is_whitespace() => Some('-'),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(files: &[(&str, &str)]) -> BTreeMap<PathBuf, String> {
        files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect()
    }

    #[test]
    fn links_to_missing_files_and_headings_are_breaches() {
        let found = breaches(&pages(&[
            ("README.md", "# A `b`: c\n[1](#a-b-c) [2](#d) [3](nothing.md) [4](https://nowhere.example/x#y)"),
            ("Other.md", "`[5](nothing.md)`\n\n    [6](nothing.md)\n\n```\n[7](nothing.md)\n```\n"),
        ]));
        assert_eq!(found, ["README.md: #d: no such heading", "README.md: nothing.md: no such file"]);
    }

    #[test]
    fn a_page_outside_the_summary_is_a_breach() {
        let found = breaches(&pages(&[("docs/SUMMARY.md", "- [a](book.toml)"), ("docs/b.md", "# B")]));
        assert!(found.contains(&"docs/b.md: not in docs/SUMMARY.md".to_owned()), "{found:?}");
    }

    #[test]
    fn only_links_that_leave_the_book_become_addresses() {
        let text = "[a](../../cases/a.toml), [b](../reference/b.md#c), [d](#e), ![f](f.svg)";
        let staged = with_outside_links(Path::new("docs/guide/x.md"), text, "https://r/");
        let want = "[a](https://r/cases/a.toml), [b](../reference/b.md#c), [d](#e), ![f](f.svg)";
        assert_eq!(staged, want);
    }

    #[test]
    fn equal_headings_have_numbered_anchors() {
        let found: Vec<String> =
            anchors("# A_b\n## What: `x` - y\n```\n# code\n```\n## A_b\n").into_iter().collect();
        assert_eq!(found, ["a_b", "a_b-1", "what-x---y"]);
    }
}
