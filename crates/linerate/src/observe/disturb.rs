//! Spans of time in which somebody else knows that measurements were disturbed.
//!
//! What comes in: the file that the inventory names, one JSON object a line. What goes out: spans. A missing file has no spans;
//! a line that is not understood (half written, or foreign) is passed over: it is read again after the next round.

use std::path::Path;

use serde::Deserialize;

/// One span, Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Span {
    /// Begin.
    pub from_ms: u64,
    /// End.
    pub to_ms: u64,
    /// Who says so and why.
    #[serde(default)]
    pub reason: String,
}

/// All spans of a file.
pub fn read(path: Option<&Path>) -> Vec<Span> {
    path.and_then(|p| std::fs::read(p).ok())
        .map_or(Vec::new(), |bytes| parse(&String::from_utf8_lossy(&bytes)))
}

fn parse(text: &str) -> Vec<Span> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The first span that overlaps the time between the two moments.
pub fn overlap(spans: &[Span], begin_ms: u64, end_ms: u64) -> Option<&Span> {
    spans.iter().find(|s| s.from_ms <= end_ms && s.to_ms >= begin_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_are_read_and_half_lines_passed_over() {
        let spans =
            parse("{\"from_ms\":10,\"to_ms\":20,\"reason\":\"late\"}\nnonsense\n{\"from_ms\":30,\"to_m");
        assert_eq!(spans.len(), 1);
        assert!(overlap(&spans, 0, 9).is_none() && overlap(&spans, 21, 30).is_none());
        assert_eq!(overlap(&spans, 15, 90).map(|s| s.reason.as_str()), Some("late"));
        assert!(read(Some(Path::new("/nonexistent/file"))).is_empty());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}") {
            parse(&text);
        }
    }
}
