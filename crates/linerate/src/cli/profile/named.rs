//! Profiles by their names, or in a file.

use std::path::Path;

use linerate_input as input;
use linerate_knowledge::profile::{Profile, Profiles};

/// The built-in ones.
pub(super) fn builtin() -> anyhow::Result<Profiles> {
    Profiles::builtin().map_err(|error| anyhow::anyhow!("the built-in profiles do not load: {error}"))
}

/// A profile of this name, or in this file.
pub(in crate::cli) fn find(name: &str) -> anyhow::Result<Profile> {
    if Path::new(name).extension().is_some_and(|end| end == "toml") {
        let text = input::text(Path::new(name), input::KNOWLEDGE_BYTES_MAX)?;
        return Ok(Profiles::default().add(name, &text)?.clone());
    }
    let found = builtin()?.get(name).cloned();
    found.ok_or_else(|| anyhow::anyhow!("no profile {name}\nhint: `linerate profile list` lists them"))
}
