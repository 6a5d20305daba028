//! Inventories: files in, checked [`linerate_model::inventory::Inventory`] out. One file per format, and one line for each in
//! [`reader::READERS`].

pub mod alike;
mod ansible;
mod ansible_ini;
mod ansible_yaml;
mod check;
mod docker;
pub mod draft;
mod drbd;
mod etc_hosts;
mod files;
mod host_list;
mod json;
mod kubernetes;
mod named;
pub mod place;
mod range;
pub mod reader;
pub mod seen;
mod slurm;
mod ssh_config;
mod toml;
pub mod write;
mod yaml;

use std::path::Path;

use linerate_model::inventory::{Endpoint, Host, Inventory, Layer, TransportSpec};

use crate::input;

pub use draft::Understood;
pub use named::{named, selected};

/// Longest problem that is printed, characters: it may quote a value of the file.
const PROBLEM_CHARS_MAX: usize = 600;
/// Longest word that is compared with the known ones, bytes: no name of ours is longer.
const WORD_BYTES_MAX: usize = 64;

/// An inventory that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "{file}:{line}: {}{}{}",
    input::cut(problem, PROBLEM_CHARS_MAX),
    if hint.is_empty() { "" } else { "\nhint: " },
    input::cut(hint, PROBLEM_CHARS_MAX)
)]
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

/// Reads and checks an inventory file of any format.
pub fn load(path: &Path) -> Result<Inventory, InventoryError> {
    let file = path.display().to_string();
    let understood = files::read(path, None)?;
    understood.into_inventory().map_err(|flaw| InventoryError {
        file,
        line: 0,
        problem: flaw.what,
        hint: flaw.hint,
    })
}

/// The same with only the hosts of these names; without names all of the file.
pub fn load_selected(path: &Path, names: &[String]) -> Result<Inventory, InventoryError> {
    selected(load(path)?, names, &path.display().to_string())
}

/// What a file says, read as the format of this name or as the one that it looks like; `-` is standard input.
pub fn understand(path: &Path, format: Option<&str>) -> Result<Understood, InventoryError> {
    files::read(path, format)
}

/// Checks the text of an inventory in our own format; `file` is for error texts only.
#[cfg(test)]
fn parse(file: &str, text: &str) -> Result<Inventory, InventoryError> {
    let source = reader::Source::alone(file, text);
    let understood =
        reader::READERS.iter().find(|r| r.name() == "toml").expect("it is in the list").read(&source)?;
    understood.into_inventory().map_err(|flaw| source.at(0, flaw))
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
            cache_dir: None,
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

/// What is wrong, without where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Thing and value seen.
    pub what: String,
    /// What to do; may be empty.
    pub hint: String,
}

impl Flaw {
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
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
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
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
mod format_tests;
#[cfg(test)]
mod tests;
