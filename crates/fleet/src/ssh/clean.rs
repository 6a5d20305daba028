//! Removes from a host what was copied there.
//!
//! What comes in: a host that is reached over ssh. What goes out: each file that was removed, and each that
//! was not, with the host's words.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use linerate_model::inventory::SshSpec;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::timeout;

use super::talk::{SshError, Talk, TalkError};
use super::{CLEAN, command};
use crate::pipes::{Pipes, escaped};

/// Longest wait for each line of the host.
const WAIT: Duration = Duration::from_secs(30);
/// How long the session may take to end.
const END_WAIT: Duration = Duration::from_secs(2);
/// Files that a host may name before it is not believed any more.
const FILES_MAX: usize = 10_000;

/// What became of the files of a host.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Cleaned {
    /// Removed paths with their sizes in bytes; folders have 0.
    pub removed: Vec<(String, u64)>,
    /// Why something is still there.
    pub kept: Vec<String>,
}

/// Cleans one host: the folder that the inventory names, or every one that is tried where it names none.
pub async fn clean(spec: &SshSpec, cache_dir: Option<&Path>) -> Result<Cleaned, SshError> {
    let argv: Vec<OsString> = command(spec, CLEAN);
    let mut pipes = Pipes::start(&argv).map_err(SshError::from)?;
    let cleaned = lines(&mut pipes, cache_dir).await;
    match cleaned {
        Ok(cleaned) => {
            let _ = pipes.end(String::new(), END_WAIT).await;
            Ok(cleaned)
        }
        Err(error) => Err(SshError::end(error, &mut pipes, spec, END_WAIT).await),
    }
}

async fn lines(pipes: &mut Pipes, cache_dir: Option<&Path>) -> Result<Cleaned, TalkError> {
    let mut talk = Talk::begin(pipes, 0, cache_dir).await?;
    let mut cleaned = Cleaned::default();
    while cleaned.removed.len() + cleaned.kept.len() < FILES_MAX {
        let line = timeout(WAIT, talk.line()).await;
        let (what, rest) = line.map_err(|_| TalkError::Late { what: "did not answer", wait: WAIT })??;
        match what.as_str() {
            "removed" => {
                let (size, path) = rest.split_once(' ').unwrap_or(("0", &rest));
                cleaned.removed.push((escaped(path), size.trim().parse().unwrap_or_default()));
            }
            "kept" => cleaned.kept.push(escaped(&rest)),
            "done" => return Ok(cleaned),
            _ => return Err(TalkError::NotCleaned(escaped(&what), escaped(&rest))),
        }
    }
    Err(TalkError::Files(FILES_MAX))
}
