//! Lines of a log that point to a known cause: which words, which name, which cause. Counted since the last
//! call, and judged by how many there were within the window.

use super::super::growth::GrowthRule;
use super::super::kind::{Observation, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Threshold};
use super::super::settings::Settings;
use super::growing;

/// One kind of line.
pub(super) struct Sign {
    /// Subject of the check.
    pub(super) name: &'static str,
    /// Any of these, in lower case.
    pub(super) words: &'static [&'static str],
    /// File of `knowledge/`.
    pub(super) cause: Option<&'static str>,
}

/// How many lines of one kind within the window are bad.
pub(super) const LINES: Threshold = Threshold {
    name: "lines",
    default: 3.0,
    unit: "lines",
    meaning: "Lines of one kind within the window that are more than an incident.",
};
/// Of a line that is shown.
const TEXT_CHARS: usize = 120;

/// A row for each kind, with the number of these lines and the last of them.
pub(super) fn rows<'a>(signs: &[Sign], lines: impl Iterator<Item = &'a str>) -> Vec<Row> {
    let mut counts = vec![0_u32; signs.len()];
    let mut last = vec![String::new(); signs.len()];
    for line in lines {
        let lower = line.to_lowercase();
        let Some(at) = signs.iter().position(|sign| sign.words.iter().any(|words| lower.contains(words)))
        else {
            continue;
        };
        counts[at] += 1;
        last[at] = line.chars().filter(|c| !c.is_control()).take(TEXT_CHARS).collect();
    }
    let row = |((sign, count), line): ((&Sign, u32), String)| {
        Row::new(sign.name).value("new", f64::from(count)).word("line", line)
    };
    signs.iter().zip(counts).zip(last).map(row).collect()
}

/// Judges a row of [`rows`].
pub(super) fn judge(
    signs: &[Sign],
    row: &Row,
    past: &mut Past,
    now: Moment,
    window_s: u64,
    settings: &Settings,
) -> Observation {
    let events = past.tally(&row.subject, row.get("new").unwrap_or(0.0));
    let counted = Row::new(row.subject.clone()).value("events", events).value("traffic", now.up_s as f64);
    let rule = GrowthRule { window_s, events_min: settings.number(&LINES), share_min: 0.0 };
    match growing::judge(&counted, past, now, rule, "lines") {
        Err(first) => first,
        Ok((growth, mut seen)) if growth.is_bad => {
            seen.text = format!("{}: {}", seen.text, row.text("line"));
            seen.cause = signs.iter().find(|sign| sign.name == row.subject).and_then(|sign| sign.cause);
            seen
        }
        Ok((_, good)) => good,
    }
}
