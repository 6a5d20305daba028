//! A series over time, with the changes of its level and of settings on the same axis: values in, SVG out,
//! for a page without scripts.

use std::fmt::Write;

use linerate_model::units::{self, MetricUnit};
use maud::{Markup, html};

use super::chart::{Axis, LEFT, frame, px};

/// Right edge of the plot.
const RIGHT: f64 = 660.0;
/// Upper and lower edge of the plot.
const TOP: f64 = 14.0;
const BOTTOM: f64 = 180.0;
/// Up to this many points each has a dot of its own.
const DOTS_MAX: usize = 100;

/// A moment of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimePoint {
    /// Unix milliseconds.
    pub at_ms: u64,
    /// What was measured; `None` where nothing was.
    pub value: Option<f64>,
}

/// Between which moments the level changed.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelBand {
    /// Last moment of the old level, Unix milliseconds.
    pub from_ms: u64,
    /// First moment of the new one.
    pub to_ms: u64,
    /// Whether the new one is worse.
    pub is_worse: bool,
    /// Both levels in words.
    pub text: String,
}

/// A setting that changed.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingFlag {
    /// When it was seen, Unix milliseconds.
    pub at_ms: u64,
    /// Setting and values.
    pub text: String,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// What the series is of.
    pub title: String,
    /// Of its values.
    pub unit: MetricUnit,
    /// In time order.
    pub points: Vec<TimePoint>,
    /// Changes of the level.
    pub bands: Vec<LevelBand>,
    /// Settings that changed.
    pub flags: Vec<SettingFlag>,
}

/// Moments as pixels.
#[derive(Debug, Clone, Copy)]
struct Time {
    first_ms: u64,
    span_ms: u64,
}

impl Time {
    fn of(points: &[TimePoint]) -> Option<Self> {
        let (first, last) = (points.first()?, points.last()?);
        Some(Self { first_ms: first.at_ms, span_ms: last.at_ms.saturating_sub(first.at_ms).max(1) })
    }

    fn x(self, at_ms: u64) -> f64 {
        let share = at_ms.saturating_sub(self.first_ms) as f64 / self.span_ms as f64;
        LEFT + share.clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    fn overlaps(self, band: &LevelBand) -> bool {
        band.to_ms >= self.first_ms && band.from_ms <= self.first_ms + self.span_ms
    }

    fn has(self, at_ms: u64) -> bool {
        (self.first_ms..=self.first_ms + self.span_ms).contains(&at_ms)
    }
}

/// The drawing; nothing where nothing was measured.
#[must_use]
pub fn draw(of: &Timeline) -> Markup {
    let values = || of.points.iter().filter_map(|point| point.value);
    let (Some(time), true) = (Time::of(&of.points), values().next().is_some()) else { return html! {} };
    let axis = Axis::new(values(), TOP, BOTTOM);
    let flags: Vec<&SettingFlag> = of.flags.iter().filter(|flag| time.has(flag.at_ms)).collect();
    html! {
        svg class="chart" viewBox="0 0 680 224" role="img" aria-label=(of.title) {
            @for band in of.bands.iter().filter(|band| time.overlaps(band)) {
                @let (from, to) = (time.x(band.from_ms), time.x(band.to_ms));
                rect class=(if band.is_worse { "moved worse" } else { "moved better" })
                    x=(px(from)) y=(px(TOP)) width=(px((to - from).max(2.0))) height=(px(BOTTOM - TOP)) {
                    title { (band.text) }
                }
            }
            (frame(axis, RIGHT, of.unit))
            @for line in lines(&of.points) {
                polyline class="line series" points=(path(&line, time, axis)) {}
            }
            @if of.points.len() <= DOTS_MAX {
                @for point in &of.points {
                    @if let Some(value) = point.value {
                        circle class="dot b" cx=(px(time.x(point.at_ms))) cy=(px(axis.y(value))) r="3" {
                            title { (units::date_minute(point.at_ms)) " UTC: " (units::value(value, of.unit)) }
                        }
                    }
                }
            }
            @for flag in &flags {
                @let x = time.x(flag.at_ms);
                line class="flag" x1=(px(x)) x2=(px(x)) y1=(px(TOP)) y2="188" {}
                path class="flag" d={ "M" (px(x)) " 186l5 9h-10z" } { title { (flag.text) } }
            }
            text class="tick" x=(px(LEFT)) y="214" { (units::date_minute(time.first_ms)) }
            text class="tick" x=(px(RIGHT)) y="214" text-anchor="end" { (units::date_minute(time.first_ms + time.span_ms)) " UTC" }
        }
    }
}

/// Stretches without a gap.
fn lines(points: &[TimePoint]) -> Vec<Vec<(u64, f64)>> {
    let stretches = points.split(|point| point.value.is_none());
    let stretch = |of: &[TimePoint]| of.iter().filter_map(|p| Some((p.at_ms, p.value?))).collect::<Vec<_>>();
    stretches.map(stretch).filter(|stretch| stretch.len() > 1).collect()
}

fn path(line: &[(u64, f64)], time: Time, axis: Axis) -> String {
    line.iter().fold(String::new(), |mut text, (at_ms, value)| {
        let _ = write!(text, "{},{} ", px(time.x(*at_ms)), px(axis.y(*value)));
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_levels_and_settings_share_one_axis() {
        let point = |at_ms, value| TimePoint { at_ms, value };
        let points = vec![
            point(1_000, Some(9e9)),
            point(2_000, Some(9e9)),
            point(3_000, None),
            point(4_000, Some(4e9)),
            point(5_000, Some(4e9)),
        ];
        let timeline = Timeline {
            title: "host <b>, what it receives".to_owned(),
            unit: MetricUnit::BitPerSecond,
            points,
            bands: vec![
                LevelBand { from_ms: 2_000, to_ms: 4_000, is_worse: true, text: "9 -> 4 Gbit/s".into() },
                LevelBand { from_ms: 7_000, to_ms: 8_000, is_worse: true, text: "much later".into() },
            ],
            flags: vec![
                SettingFlag { at_ms: 3_000, text: "ring 4096 -> 256".into() },
                SettingFlag { at_ms: 9_000, text: "later".into() },
            ],
        };
        let text = draw(&timeline).into_string();
        assert_eq!(text.matches("<polyline").count(), 2, "a gap is no line: {text}");
        assert!(text.contains("moved worse") && text.contains("ring 4096 -&gt; 256"), "{text}");
        assert!(!text.contains("later") && !text.contains("<b>"), "{text}");
        let at = |what: &str| text.find(what).unwrap();
        // The middle of the axis: between both levels.
        assert!(at("x1=\"378.0\"") > at("moved"), "{text}");
        let empty = Timeline { points: vec![point(1, None)], ..timeline };
        assert!(draw(&empty).into_string().is_empty());
    }
}
