//! Links of the built pages: to files of the book that exist, and to suspects that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::links::resolve;

/// Each link of a built page that leads nowhere.
pub(super) fn breaches(built: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    collect(built, Path::new(""), &mut pages)?;
    let ids: BTreeMap<&Path, BTreeSet<&str>> =
        pages.iter().map(|(page, text)| (page.as_path(), values(text, "id").collect())).collect();
    let mut breaches = BTreeSet::new();
    for (page, text) in &pages {
        for link in values(text, "href").chain(values(text, "src")).filter(|link| !link.contains(':')) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() { page.clone() } else { resolve(page, file) };
            if !built.join(&path).exists() {
                breaches.insert(format!("{}: {link}: no such file", page.display()));
            } else if !anchor.is_empty() && !ids.get(path.as_path()).is_some_and(|ids| ids.contains(anchor)) {
                breaches.insert(format!("{}: {link}: no such suspect", page.display()));
            }
        }
    }
    Ok(breaches.into_iter().collect())
}

/// The pages below `built`; the one for addresses that do not exist is left out, as its links are absolute.
fn collect(built: &Path, folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<()> {
    for entry in fs::read_dir(built.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(built, &path, pages)?;
        } else if path.extension().is_some_and(|e| e == "html") && path != Path::new("404.html") {
            pages.insert(path.clone(), fs::read_to_string(built.join(&path))?);
        }
    }
    Ok(())
}

/// Values of an attribute.
fn values<'a>(text: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!(" {attribute}=\"");
    let parts: Vec<&str> = text.split(begin.as_str()).skip(1).collect();
    parts.into_iter().filter_map(|rest| rest.split('"').next())
}
