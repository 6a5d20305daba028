//! The file of an agent: whose agent it is, whom it dials, and the key that its host shares with the
//! operator, who keeps the same file.
//!
//! In: a text. Out: the checked file, or the first flaw with its line; and back. No I/O. A flaw never quotes
//! the key.

use std::fmt::Write as _;
use std::net::SocketAddr;

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use crate::sealed::AgentKey;

/// Longest file, bytes.
pub const AGENT_FILE_BYTES_MAX: usize = 16 << 10;
/// Most addresses of operators.
const OPERATORS_MAX: usize = 8;
/// Longest name of a host, bytes: the limit of inventories.
const NAME_BYTES_MAX: usize = 64;

/// See the head of this module's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    /// Name of the host in the inventory.
    pub name: String,
    /// Whom to dial, in this order.
    pub operators: Vec<SocketAddr>,
    /// The key of this host alone.
    pub key: AgentKey,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {what}")]
pub struct AgentFileError {
    /// Line, 1-based.
    pub line: usize,
    /// Thing, value and limit; never the key.
    pub what: String,
}

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: Spanned<String>,
    operators: Spanned<Vec<Spanned<String>>>,
    key: Spanned<String>,
}

impl AgentFile {
    /// Reads a text.
    ///
    /// # Errors
    /// The first flaw.
    pub fn parse(text: &str) -> Result<Self, AgentFileError> {
        let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        let flaw = |at: usize, what: String| AgentFileError { line: line(at), what };
        let raw: Raw = toml::from_str(text).map_err(|error| {
            // The parser's own text shows the line, which may be that of the key.
            flaw(error.span().map_or(0, |span| span.start), what_is_wrong(error.message()))
        })?;
        let name = raw.name.get_ref();
        let fits = !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
        if !fits {
            let what = format!("name has {} bytes or control characters; 1 to {NAME_BYTES_MAX}", name.len());
            return Err(flaw(raw.name.span().start, what));
        }
        let operators = raw.operators.get_ref();
        if operators.is_empty() || operators.len() > OPERATORS_MAX {
            let what = format!("operators has {} addresses; 1 to {OPERATORS_MAX}", operators.len());
            return Err(flaw(raw.operators.span().start, what));
        }
        let address = |text: &Spanned<String>| {
            let parsed = text.get_ref().parse().ok().filter(|address: &SocketAddr| address.port() != 0);
            let what = "an operator that is no address with a port, such as \"10.0.0.9:9442\"";
            parsed.ok_or_else(|| flaw(text.span().start, what.to_owned()))
        };
        let key = AgentKey::of_hex(raw.key.get_ref());
        let digits = 2 * AgentKey::BYTES;
        Ok(Self {
            operators: operators.iter().map(address).collect::<Result<_, _>>()?,
            key: key.ok_or_else(|| {
                flaw(raw.key.span().start, format!("key is not {digits} hexadecimal digits"))
            })?,
            name: name.clone(),
        })
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let operators: Vec<String> = self.operators.iter().map(|one| quoted(&one.to_string())).collect();
        let mut text = String::from(
            "# Secret: the key of this host. /etc/linerate/agent.toml there, 0600, owned by root.\n",
        );
        // Writing into a `String` cannot fail.
        let _ = writeln!(text, "name = {}", quoted(&self.name));
        let _ = writeln!(text, "operators = [{}]", operators.join(", "));
        let _ = writeln!(text, "key = {}", quoted(&self.key.hex()));
        text
    }
}

/// The parser's message without what it quotes: a value may be a key on the wrong line.
fn what_is_wrong(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let known = ["missing field `name`", "missing field `operators`", "missing field `key`"];
    if let Some(missing) = known.into_iter().find(|known| first.starts_with(known)) {
        return missing.to_owned();
    }
    if first.starts_with("unknown field") {
        return "unknown field; known: name, operators, key".to_owned();
    }
    "not TOML with the texts name and key and the list operators".to_owned()
}
