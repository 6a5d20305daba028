//! Where the texts of inventories come from: a file, standard input, and the files that `~/.ssh/config`
//! includes. The only file of this module that opens anything.

use std::path::{Path, PathBuf};

use super::draft::Understood;
use super::error::{Flaw, InventoryError};
use super::reader::{SourceText, TEXT_BYTES_MAX};
use super::readers::{READERS, understand};
use super::{confusables, ssh_config};
use linerate_input::{self as input, InputError};

/// Files of a folder that an `Include` with a wildcard reads.
const FOLDER_MAX: usize = 10_000;

/// Reads a file, or standard input for `-`.
pub(super) fn read(path: &Path, format: Option<&str>) -> Result<Understood, InventoryError> {
    let stdin = path == Path::new("-");
    let file = if stdin { "standard input".to_owned() } else { path.display().to_string() };
    let text = if stdin {
        input::stdin(TEXT_BYTES_MAX).and_then(|bytes| input::to_text(path, bytes))
    } else {
        text_of(path)
    };
    let text = text.map_err(|InputError { problem, hint, .. }| {
        let hint = if hint.is_empty() {
            "`linerate inventory FILE` shows what is understood of a list of hosts".to_owned()
        } else {
            hint
        };
        InventoryError::new(file.clone(), 0, Flaw::new(format!("cannot be read: {problem}"), hint))
    })?;
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    let include = |pattern: &str| included(&folder, pattern);
    let known_to_ssh = home().is_some_and(|home| {
        let own = home.join(".ssh/config").canonicalize();
        own.is_ok_and(|own| path.canonicalize().is_ok_and(|path| path == own))
    });
    let source = SourceText { file: &file, text: &text, include: &include, known_to_ssh };
    // A file of ours that is still empty or broken at its first line is best judged by our own reader.
    let named = path.extension().is_some_and(|e| e == "toml");
    let recognised = READERS.iter().any(|reader| reader.detects(&text));
    let format = format.or((named && !recognised).then_some("toml"));
    let mut understood = understand(&source, format)?;
    // A relative path in the file is meant from the file.
    understood.disturbances = understood.disturbances.map(|p| folder.join(p));
    let names = understood.hosts.iter().map(|host| host.name.as_str());
    let groups = understood.groups.iter().map(|group| group.name.as_str());
    understood.notes.extend(confusables::remarks(names.chain(groups)));
    Ok(understood)
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

fn text_of(path: &Path) -> Result<String, InputError> {
    input::text(path, TEXT_BYTES_MAX)
}

/// The files of an `Include`, in the order of their names: `~/` is the home folder, a relative path begins
/// beside the file, and the last part may have wildcards.
fn included(folder: &Path, pattern: &str) -> Result<Vec<(String, String)>, String> {
    let path = match pattern.strip_prefix("~/") {
        Some(rest) => home().ok_or("HOME is not set")?.join(rest),
        None => folder.join(pattern),
    };
    let last = path.file_name().and_then(|name| name.to_str()).ok_or("not a file name")?;
    let mut paths = vec![path.clone()];
    if last.contains(['*', '?']) {
        let parent = path.parent().unwrap_or(folder);
        let entries = std::fs::read_dir(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
        let fits = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            !name.starts_with('.') && ssh_config::like(last.as_bytes(), name.as_bytes()) && path.is_file()
        };
        paths = entries.take(FOLDER_MAX).flatten().map(|entry| entry.path()).filter(fits).collect();
        paths.sort();
    }
    let read =
        |path: PathBuf| Ok((path.display().to_string(), text_of(&path).map_err(|error| error.problem)?));
    paths.into_iter().map(read).collect()
}
