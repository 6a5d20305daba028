//! Spans of time in which somebody else knows that measurements were contended.
//!
//! What comes in: the file that the inventory names, one JSON object a line. What goes out: spans. A missing
//! file has no spans; a line that is not understood (half written, or imported) is passed over: it is read
//! again after the next round.

use linerate_model::kind::{TcpPlan, TestKind};
use std::path::Path;

use serde::Deserialize;

use linerate_input as input;

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
    path.and_then(|p| input::bytes(p, input::CASE_BYTES_MAX).ok())
        .map_or(Vec::new(), |bytes| parse(&String::from_utf8_lossy(&bytes)))
}

fn parse(text: &str) -> Vec<Span> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Share of a transfer that may be contended: its throughput is less by as much at most, which is as exact as
/// it is on a quiet machine.
const SHARE_MAX: f64 = 0.03;

/// From this share of its path's rate on a transfer has filled it, whatever happened meanwhile: headers take
/// 6 % of a frame, with a tunnel 9.
///
/// Nothing else that was contended shows anything: a transfer of which packets came late may stand still for
/// several times as long, so that a tenth of the rate on a healthy path is no rarity.
const PATH_FILLED: f64 = 0.88;

/// Whether a transfer shows what it should although it was contended.
#[must_use]
pub fn leaves(throughput_bps: f64, path_bps: f64) -> bool {
    throughput_bps >= PATH_FILLED * path_bps
}

/// What spoiled a test between the two moments. A transfer bears short spans; what is lost, late or asked
/// once does not.
pub fn harm<'s>(spans: &'s [Span], begin_ms: u64, end_ms: u64, kind: &TestKind) -> Option<&'s Span> {
    let mut met: Vec<&Span> =
        spans.iter().filter(|s| s.from_ms <= end_ms && s.to_ms >= begin_ms && s.from_ms <= s.to_ms).collect();
    let span = *met.first()?;
    met.sort_by_key(|span| span.from_ms);
    let (mut contended_ms, mut until_ms) = (0, begin_ms);
    for span in met {
        let (from_ms, to_ms) = (span.from_ms.max(until_ms), span.to_ms.min(end_ms));
        contended_ms += to_ms.saturating_sub(from_ms);
        until_ms = until_ms.max(to_ms);
    }
    // What took less than a millisecond lay in a span as a whole.
    let all_ms = end_ms.saturating_sub(begin_ms);
    let share = if all_ms == 0 { 1.0 } else { contended_ms as f64 / all_ms as f64 };
    let bears = kind.is::<TcpPlan>() && share <= SHARE_MAX;
    (!bears).then_some(span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::kind::{RttPlan, UdpPlan};
    use proptest::prelude::*;

    #[test]
    fn spans_are_read_and_half_lines_passed_over() {
        let spans =
            parse("{\"from_ms\":10,\"to_ms\":20,\"reason\":\"late\"}\nnonsense\n{\"from_ms\":30,\"to_m");
        assert_eq!(spans.len(), 1);
        let probe = TestKind::from(RttPlan { count: 6 });
        assert!(harm(&spans, 0, 9, &probe).is_none() && harm(&spans, 21, 30, &probe).is_none());
        assert_eq!(harm(&spans, 15, 90, &probe).map(|span| span.reason.as_str()), Some("late"));
        assert!(read(Some(Path::new("/nonexistent/file"))).is_empty());
    }

    #[test]
    fn a_transfer_bears_short_spans_and_a_probe_none() {
        let span = |from_ms, to_ms| Span { from_ms, to_ms, reason: String::new() };
        let transfer = TestKind::from(TcpPlan::single(1000));
        // 30 ms together, told twice.
        let short = [span(2000, 2010), span(1995, 2010), span(2500, 2515)];
        assert!(harm(&short, 1500, 2600, &transfer).is_none());
        assert!(harm(&short, 1500, 2600, &TestKind::from(UdpPlan::paced(1e6, 1200, 1000))).is_some());
        let more = [span(2000, 2020), span(2500, 2520)];
        assert!(harm(&more, 1500, 2600, &transfer).is_some());
        assert!(harm(&[span(0, 1600)], 1500, 2600, &transfer).is_some(), "only what lies in it");
        assert!(harm(&[span(0, 1510)], 1500, 2600, &transfer).is_none());
        assert!(harm(&[span(9, 3)], 0, 10, &transfer).is_none(), "ends before it begins");
    }

    #[test]
    fn only_a_transfer_that_filled_its_path_shows_it_all_the_same() {
        assert!(leaves(188e6, 200e6) && leaves(180e6, 200e6));
        assert!(!leaves(150e6, 200e6) && !leaves(18e6, 200e6), "it may have stood still because of it");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}") {
            parse(&text);
        }
    }
}
