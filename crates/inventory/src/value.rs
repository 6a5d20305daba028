//! Values that several tables of the TOML format have. A text with its position in, the value or a problem
//! out.

use ::toml::Spanned;
use linerate_model::day_hours::DayHours;

use super::error::{Problem, problem};
use linerate_input::quoted;

/// Hours such as `22:00-07:00`.
pub(super) fn hours(key: &str, text: &Spanned<String>) -> Result<DayHours, Problem> {
    let what = || format!("{key} is `{}`", quoted(text.get_ref()));
    let hint = "hours of the day in UTC, such as 22:00-07:00";
    DayHours::parse(text.get_ref()).ok_or_else(|| problem(text, what(), hint))
}

/// A time such as `500ms`, `20s`, `5m`, `12h`.
pub(super) fn millis(
    key: &str,
    text: Option<&Spanned<String>>,
    (default, least, most): (u64, u64, u64),
) -> Result<u64, Problem> {
    let Some(text) = text else { return Ok(default) };
    let word = text.get_ref().trim();
    let (number, unit) = word.split_at(word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len()));
    let each = match unit {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" | "min" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let value = number.parse::<u64>().ok().zip(each).and_then(|(number, each)| number.checked_mul(each));
    value.filter(|value| (least..=most).contains(value)).ok_or_else(|| {
        let what = format!("{key} is `{}`", quoted(word));
        problem(text, what, format!("{} s to {} s, such as 30s, 5m, 1h", least as f64 / 1e3, most / 1000))
    })
}
