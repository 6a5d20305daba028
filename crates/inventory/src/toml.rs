//! The TOML format of inventories. Turns text into raw tables with positions, then checks them.

use linerate_model::inventory::Inventory;

use super::check;
use super::draft::Understood;
use super::error::{InventoryError, Problem, line_of, nearest};
use super::reader::{Reader, SourceText};
use super::tables::File;

/// The format.
pub(super) struct Toml;

impl Reader for Toml {
    fn name(&self) -> &'static str {
        "toml"
    }

    fn describes(&self) -> &'static str {
        "linerate's own, with [[host]] and [[group]]"
    }

    fn detects(&self, text: &str) -> bool {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        // Something of ours may stand before the first table: `name = "archive"`.
        let ours = |line: &str| line.split_once('=').is_some_and(|(_, value)| value.trim().starts_with('"'));
        lines.clone().any(|line| line.starts_with("[[")) || lines.next().is_some_and(ours)
    }

    fn read(&self, source: &SourceText<'_>) -> Result<Understood, InventoryError> {
        let inventory = parse(source.text).map_err(|problem| InventoryError {
            file: source.file.to_owned(),
            line: line_of(source.text, problem.at),
            problem: problem.what,
            hint: problem.hint,
        })?;
        Ok(Understood::ours(self.name(), inventory))
    }
}

/// Text to a checked inventory.
fn parse(text: &str) -> Result<Inventory, Problem> {
    let file: File = ::toml::from_str(text).map_err(|error| {
        let what = error.message().lines().next().unwrap_or("not TOML").to_owned();
        let hint = unknown_hint(&what);
        Problem { at: error.span().map_or(0, |s| s.start), what, hint }
    })?;
    check::checked(file)
}

/// A hint for the parser's "unknown field `x`, expected one of `a`, `b`".
fn unknown_hint(message: &str) -> String {
    let Some(rest) =
        message.strip_prefix("unknown field").or_else(|| message.strip_prefix("unknown variant"))
    else {
        return String::new();
    };
    let mut words = rest.split('`').skip(1).step_by(2);
    let word = words.next().unwrap_or_default();
    nearest(word, words).map_or(String::new(), |near| format!("did you mean `{near}`?"))
}
