//! Inventories: files in, checked [`linerate_model::inventory::Inventory`] out. One file per format.

mod check;
mod named;
mod toml;

use std::path::{Path, PathBuf};

use linerate_model::inventory::{Endpoint, Host, Inventory, Layer, TransportSpec};

pub use named::named;

/// An inventory that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}: {problem}{}{hint}", if hint.is_empty() { "" } else { "\nhint: " })]
pub struct InventoryError {
    /// File.
    pub file: String,
    /// Line, 1-based; 0 when the file as a whole is meant.
    pub line: usize,
    /// What is wrong: thing and value seen.
    pub problem: String,
    /// What to do; may be empty.
    pub hint: String,
}

/// Reads and checks an inventory file.
pub fn load(path: &Path) -> Result<Inventory, InventoryError> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| InventoryError {
        file: file.clone(),
        line: 0,
        problem: format!("cannot be read: {error}"),
        hint: "name the inventory with -i; `docs/guide` shows one".to_owned(),
    })?;
    let mut inventory = parse(&file, &text)?;
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    // A relative path in the file is meant from the file.
    inventory.disturbances = inventory.disturbances.map(|p| folder.join(p));
    Ok(inventory)
}

/// Checks the text of an inventory; `file` is for error texts only.
pub fn parse(file: &str, text: &str) -> Result<Inventory, InventoryError> {
    toml::parse(text).map_err(|problem| InventoryError {
        file: file.to_owned(),
        line: line_of(text, problem.at),
        problem: problem.what,
        hint: problem.hint,
    })
}

/// The machine that this program runs on, alone: for `linerate facts localhost` without an inventory.
pub fn localhost() -> Inventory {
    Inventory {
        name: "localhost".to_owned(),
        hosts: vec![Host {
            name: "localhost".to_owned(),
            transport: TransportSpec::Local,
            groups: Vec::new(),
            endpoints: Vec::new(),
            state_dir: None,
            etc_dir: None,
        }],
        ..Inventory::default()
    }
}

/// The machine that this program runs on as both ends, over loopback: host `local`.
pub fn loopback() -> Inventory {
    let mut inventory = localhost();
    "loopback".clone_into(&mut inventory.name);
    for host in &mut inventory.hosts {
        "local".clone_into(&mut host.name);
        host.endpoints = vec![Endpoint {
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            layer: Layer::Underlay,
            netns: None,
            link_bps: None,
        }];
    }
    inventory
}

/// What is wrong and at which byte of the text.
struct Problem {
    at: usize,
    what: String,
    hint: String,
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|b| *b == b'\n').count()
}

/// The known word that is nearest to `word`, when it is near enough to be a slip.
fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).clamp(1, 3);
    known.into_iter().map(|k| (distance(word, k), k)).filter(|(d, _)| *d <= limit).min().map(|(_, k)| k)
}

fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(near) = nearest(word, known.clone()) {
        return format!("did you mean `{near}`?");
    }
    let all: Vec<&str> = known.into_iter().take(12).collect();
    if all.is_empty() { String::new() } else { format!("known are: {}", all.join(", ")) }
}

/// Levenshtein distance, in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
