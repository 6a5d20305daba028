//! Lab files: found by name, read, checked.
//!
//! In: the name of a lab that comes with the program, or a path. Out: the lab, with all its names checked, or
//! what is wrong with it and in which file. The type of a lab defines its contents.

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::{LabError, Result};

/// A device name holds 15 bytes, and a host's port is called `p-<host>`; a drive's serial number is shown up
/// to 20.
const NAME_BYTES_MAX: usize = 12;

/// A kind of lab.
pub(crate) trait LabFile: DeserializeOwned {
    /// The labs that come with the program, by name.
    const BUILT_IN: &'static [(&'static str, &'static str)];

    /// Checks it.
    fn check(&self) -> std::result::Result<(), String>;
}

/// Reads a lab: a file, or the name of one that comes with the program.
pub(crate) fn load<T: LabFile>(lab: &str) -> Result<T> {
    let path = Path::new(lab);
    if let Some((_, text)) = T::BUILT_IN.iter().find(|(name, _)| *name == lab) {
        return parse(text, path);
    }
    let text = std::fs::read_to_string(path).map_err(|error| {
        let names: Vec<&str> = T::BUILT_IN.iter().map(|(name, _)| *name).collect();
        LabError::BadLab { path: path.into(), what: format!("{error}; built in are: {}", names.join(", ")) }
    })?;
    parse(&text, path)
}

/// Reads the text of a lab file.
pub(crate) fn parse<T: LabFile>(text: &str, path: &Path) -> Result<T> {
    let bad = |what: String| LabError::BadLab { path: path.into(), what };
    let lab: T = toml::from_str(text).map_err(|error| bad(error.to_string()))?;
    lab.check().map_err(bad)?;
    Ok(lab)
}

/// Whether this is a valid name of a machine or drive.
pub(crate) fn check_name(name: &str) -> std::result::Result<(), String> {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !name.starts_with('-');
    if fits {
        Ok(())
    } else {
        Err(format!("name {name:?}: 1 to {NAME_BYTES_MAX} letters, digits and dashes wanted, no dash first"))
    }
}
