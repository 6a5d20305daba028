//! The TOML format of inventories. Turns text into raw tables with positions, then checks them.

use linerate_model::inventory::Inventory;

use super::check;
use super::draft::Understood;
use super::error::{InventoryError, Problem, nearest};
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
        let inventory =
            parse(source.text).map_err(|problems| InventoryError::all(source.file, source.text, problems))?;
        Ok(Understood::ours(self.name(), inventory))
    }
}

/// Lines with something wrong that the parser is led past.
const LINES_LEFT_OUT_MAX: usize = 50;

/// Text to a checked inventory, or everything that is wrong with it.
fn parse(text: &str) -> Result<Inventory, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut left = text.to_owned();
    // The parser ends at its first error: the line of a value or key that is wrong is left out, and the rest
    // is read again. A text that is no TOML cannot be read any further.
    while problems.len() < LINES_LEFT_OUT_MAX {
        let error = match ::toml::from_str::<File>(&left) {
            Ok(file) if problems.is_empty() => return check::checked(file),
            Ok(file) => {
                problems.extend(check::checked(file).err().into_iter().flatten());
                break;
            }
            Err(error) => error,
        };
        let is_toml = left.parse::<::toml::Table>().is_ok();
        if !is_toml && !problems.is_empty() {
            break;
        }
        let at = error.span().map_or(0, |span| span.start);
        let what = error.message().lines().next().unwrap_or("not TOML").to_owned();
        let hint = unknown_hint(&what);
        problems.push(Problem { at, what, hint });
        match without_line(&left, at).filter(|_| is_toml) {
            Some(rest) => left = rest,
            None => break,
        }
    }
    problems.sort_by_key(|problem| problem.at);
    Err(problems)
}

/// The text with blanks instead of the `key = value` at this byte; `None` where there is none.
fn without_line(text: &str, at: usize) -> Option<String> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |more| at + more);
    let line = text[start..end].trim();
    let is_pair = line.contains('=') && !line.starts_with(['[', '#']);
    is_pair.then(|| format!("{}{}{}", &text[..start], " ".repeat(end - start), &text[end..]))
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
