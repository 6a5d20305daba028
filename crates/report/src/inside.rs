//! What went on inside the connections of a transfer, drawn over time: RTT, congestion window,
//! retransmissions, what held them up. Packed readings in, drawings out.

use linerate_model::inside::{Packed, Reading};
use linerate_model::units;
use maud::{Markup, html};

use super::distribution::{self, Line};

/// Points in time of a drawing: as many as a screen shows apart.
const POINTS: usize = 240;
/// A share of the time below which being held up is not drawn.
const HELD_MIN: f64 = 0.01;

/// All streams at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Moment {
    at_ms: f64,
    /// Smoothed RTT: mean of the streams and the slowest since the moment before, microseconds.
    rtt_us: (f64, f64),
    /// Sum of the congestion windows, segments.
    cwnd: f64,
    /// Segments retransmitted so far.
    retransmits: f64,
    /// Shares of the time since the moment before, mean of the streams.
    held_by_window: f64,
    held_by_buffer: f64,
}

/// Drawings of everything that changed; nothing where the kernel said nothing.
pub fn drawings(packed: &[Packed]) -> Markup {
    let streams: Vec<Vec<Reading>> = packed.iter().filter_map(Packed::unpack).collect();
    let damaged = packed.len() - streams.len();
    let course = course(&streams);
    let many = streams.len() > 1;
    let values = |value: fn(&Moment) -> f64| -> Vec<(f64, f64)> {
        course.iter().map(|moment| (moment.at_ms, value(moment))).collect()
    };
    let (mean, worst) = (values(|m| m.rtt_us.0), values(|m| m.rtt_us.1));
    let (window, again) = (values(|m| m.cwnd), values(|m| m.retransmits));
    let (by_window, by_buffer) = (values(|m| m.held_by_window), values(|m| m.held_by_buffer));
    let mut rtts = vec![Line { class: "healthy", name: "mean of the streams", of: mean.as_slice() }];
    if many {
        rtts.insert(0, Line { class: "worst", name: "slowest stream", of: worst.as_slice() });
    } else {
        rtts[0].name = "smoothed by the kernel";
    }
    let held = [
        Line { class: "worst", name: "by the receiver's window", of: by_window.as_slice() },
        Line { class: "healthy", name: "by the send buffer", of: by_buffer.as_slice() },
    ];
    let all_streams = if many { "all streams" } else { "the stream" };
    let one = |class, of| [Line { class, name: all_streams, of }];
    let is_held = by_window.iter().chain(&by_buffer).any(|point| point.1 >= HELD_MIN);
    html! {
        @if damaged > 0 {
            p.small { (damaged) " of " (packed.len()) " series of readings are damaged and not drawn." }
        }
        @let segments = |count: f64| format!("{} segments", units::short(count));
        @if course.len() > 1 {
            (distribution::courses(&rtts, units::duration_us, "RTT"))
            (distribution::courses(&one("healthy", window.as_slice()), segments, "Congestion window"))
            @if again.iter().any(|point| point.1 > 0.0) {
                (distribution::courses(&one("worst", again.as_slice()), segments, "Retransmitted so far"))
            }
            @if is_held {
                (distribution::courses(&held, units::percent, "Share of the time that the sender was held up"))
            }
        }
    }
}

/// The streams side by side at common times.
fn course(streams: &[Vec<Reading>]) -> Vec<Moment> {
    let longest = streams.iter().map(Vec::len).max().unwrap_or(0);
    let ends = streams.iter().filter_map(|list| list.last()).map(|reading| reading.at_us);
    let Some(end_us) = ends.max().filter(|&us| us > 0) else { return Vec::new() };
    let points = longest.min(POINTS) as u64;
    (1..=points)
        .map(|number| {
            // Times of a damaged file may be anything.
            let at = |number| (u128::from(end_us) * u128::from(number) / u128::from(points)) as u64;
            moment(streams, at(number - 1), at(number))
        })
        .filter(|moment| moment.rtt_us.0 > 0.0)
        .collect()
}

fn moment(streams: &[Vec<Reading>], from_us: u64, to_us: u64) -> Moment {
    let mut sum = Moment { at_ms: to_us as f64 / 1e3, ..Moment::default() };
    let mut known = 0.0;
    for list in streams {
        let (first, last) =
            [from_us, to_us].map(|us| list.partition_point(|reading| reading.at_us <= us)).into();
        let Some(now) = last.checked_sub(1).and_then(|at| list.get(at)) else { continue };
        // Counts since the connection was made: what a calibration did before the first reading is not drawn.
        let Some(base) = list.first() else { continue };
        let before = first.checked_sub(1).and_then(|at| list.get(at)).unwrap_or(base);
        let since = list.get(first..last).unwrap_or_default();
        let slowest = since.iter().map(|reading| reading.rtt_us).max().unwrap_or(now.rtt_us);
        let time_us = now.at_us.saturating_sub(before.at_us).max(1) as f64;
        let share = |now: u64, before: u64| (now.saturating_sub(before) as f64 / time_us).min(1.0);
        known += 1.0;
        sum.rtt_us.0 += now.rtt_us as f64;
        sum.rtt_us.1 = sum.rtt_us.1.max(slowest as f64);
        sum.cwnd += now.cwnd as f64;
        sum.retransmits += now.retransmits.saturating_sub(base.retransmits) as f64;
        sum.held_by_window += share(now.rwnd_limited_us, before.rwnd_limited_us);
        sum.held_by_buffer += share(now.sndbuf_limited_us, before.sndbuf_limited_us);
    }
    if known > 0.0 {
        sum.rtt_us.0 /= known;
        sum.held_by_window /= known;
        sum.held_by_buffer /= known;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(rtt_us: u64, window_share_percent: u64, again_at_us: u64) -> Vec<Reading> {
        (1..=100)
            .map(|i| Reading {
                at_us: i * 20_000,
                rtt_us,
                cwnd: 10,
                retransmits: u64::from(i * 20_000 >= again_at_us) * 3,
                rwnd_limited_us: i * 20_000 * window_share_percent / 100,
                ..Reading::default()
            })
            .collect()
    }

    #[test]
    fn streams_are_put_side_by_side() {
        let course = course(&[stream(100, 0, 1_000_000), stream(300, 50, u64::MAX)]);
        assert_eq!(course.len(), 100);
        let (first, last) = (course[0], course[99]);
        assert_eq!((first.rtt_us, first.cwnd, first.retransmits), ((200.0, 300.0), 20.0, 0.0));
        assert!((last.held_by_window - 0.25).abs() < 1e-9 && last.held_by_buffer == 0.0);
        assert!(first.held_by_window.abs() < 1e-9, "nothing is known of the time before");
        assert_eq!((last.at_ms, last.retransmits), (2000.0, 3.0));
    }

    #[test]
    fn what_did_not_happen_is_not_drawn() {
        let quiet = drawings(&[Packed::pack(&stream(100, 0, u64::MAX))]).into_string();
        assert!(quiet.contains("RTT over time") && quiet.contains("Congestion window"));
        assert!(!quiet.contains("Retransmitted") && !quiet.contains("held up"), "{quiet}");
        let held = [Packed::pack(&stream(100, 40, 500_000)), Packed::pack(&stream(500, 0, 0))];
        let held = drawings(&held).into_string();
        assert!(
            held.contains("Retransmitted")
                && held.contains("held up over time: ")
                && held.contains("slowest")
        );
        assert_eq!(drawings(&[]).into_string(), "");
    }

    #[test]
    fn damaged_readings_are_said() {
        let damaged: Packed = serde_json::from_str("\"AAA\"").unwrap();
        assert!(damaged.unpack().is_none());
        let page = drawings(&[damaged, Packed::pack(&stream(100, 0, u64::MAX))]).into_string();
        assert!(page.contains("1 of 2 series of readings are damaged") && page.contains("RTT"));
    }
}
