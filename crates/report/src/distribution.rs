//! Drawings of distributions and of values over time for the HTML report, as inline SVG. Values in, markup
//! out. No scripts, no fonts, no colours of its own (classes of the style sheet).

use std::fmt::Write;

use linerate_model::histogram::Histogram;
use linerate_model::units;
use maud::{Markup, html};

const LEFT: f64 = 96.0;
const RIGHT: f64 = 660.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 180.0;
/// Bars per decade: as fine as the eye separates on a few decades.
const PER_DECADE: f64 = 24.0;
/// Points per line.
const POINTS_MAX: usize = 300;

/// One line of a drawing: class of the style sheet (`healthy`, `worst`), words for the legend, content.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a, T: ?Sized> {
    /// Class.
    pub class: &'a str,
    /// For the legend.
    pub name: &'a str,
    /// What is drawn.
    pub of: &'a T,
}

/// The next round value whose quarters are round too.
pub(super) fn nice(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let step =
        [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 5.0, 6.0, 8.0, 10.0].into_iter().find(|s| s * power >= value);
    step.unwrap_or(10.0) * power
}

fn px(value: f64) -> String {
    format!("{value:.1}")
}

/// A logarithmic axis of nanoseconds over whole decades.
#[derive(Debug, Clone, Copy)]
struct Decades {
    low: f64,
    high: f64,
}

impl Decades {
    fn of<'a>(all: impl Iterator<Item = &'a Histogram>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for histogram in all {
            // One outlier of a million must not flatten the rest: it is in the table.
            let ends = (histogram.min(), histogram.quantile(0.9999));
            if let (Some(least), Some(most)) = ends {
                low = low.min(least.max(1) as f64);
                high = high.max(most.max(1) as f64);
            }
        }
        if low > high {
            return Self { low: 3.0, high: 4.0 };
        }
        // A tenth of a decade of room on both sides.
        let (low, high) = (low.log10() - 0.1, high.log10() + 0.1);
        Self { low, high: high.max(low + 0.5) }
    }

    fn x(self, ns: f64) -> f64 {
        let share = (ns.max(1.0).log10() - self.low) / (self.high - self.low);
        LEFT + share.clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    /// 1, 2 and 5 of each decade, or fewer where many decades are shown.
    fn ticks(self) -> Vec<f64> {
        let steps: &[f64] = if self.high - self.low < 3.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let first = self.low.floor() as i32;
        (first..=self.high.ceil() as i32)
            .flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)))
            .filter(|ns| (self.low..=self.high).contains(&ns.log10()))
            .collect()
    }
}

/// Share of the values per bar, as the outline of an area.
fn outline(histogram: &Histogram, axis: Decades) -> String {
    let bars = ((axis.high - axis.low) * PER_DECADE).ceil().max(1.0) as usize;
    let mut counts = vec![0.0_f64; bars];
    for (low, high, count) in histogram.buckets() {
        let middle = f64::midpoint(low.max(1) as f64, high.max(1) as f64).log10();
        let bar = ((middle - axis.low) * PER_DECADE).clamp(0.0, bars as f64 - 1.0) as usize;
        counts[bar] += count as f64;
    }
    let most = counts.iter().copied().fold(1e-9, f64::max);
    let mut text = format!("{},{} ", px(LEFT), px(BOTTOM));
    for (bar, count) in counts.iter().enumerate() {
        let y = px(BOTTOM - count / most * (BOTTOM - TOP));
        for edge in [bar, bar + 1] {
            let x = LEFT + (edge as f64 / PER_DECADE / (axis.high - axis.low)).min(1.0) * (RIGHT - LEFT);
            let _ = write!(text, "{},{y} ", px(x));
        }
    }
    let _ = write!(text, "{},{}", px(RIGHT), px(BOTTOM));
    text
}

fn words_ns(ns: u64) -> String {
    units::duration_us(ns as f64 / 1e3)
}

/// Distributions of durations (nanoseconds) beside each other, each scaled to its own highest bar, with
/// median and 99th percentile. `words` says what the values are.
pub fn histograms(lines: &[Line<'_, Histogram>], words: &str) -> Markup {
    let axis = Decades::of(lines.iter().map(|line| line.of));
    html! {
        figure {
            svg class="chart" viewBox="0 0 680 216" role="img" aria-label={ "Distribution of " (words) } {
                @for tick in axis.ticks() {
                    line class="grid" x1=(px(axis.x(tick))) x2=(px(axis.x(tick))) y1=(px(TOP)) y2=(px(BOTTOM)) {}
                    text class="tick" x=(px(axis.x(tick))) y="198" text-anchor="middle" { (units::duration_us(tick / 1e3)) }
                }
                @for line in lines.iter().filter(|line| line.of.count() > 0) {
                    polygon class=(format!("area {}", line.class)) points=(outline(line.of, axis)) {
                        title { (line.name) ": " (line.of.count()) " values" }
                    }
                    @for (share, class) in [(0.5, "median"), (0.99, "tail")] {
                        @if let Some(ns) = line.of.quantile(share) {
                            line class=(format!("mark-line {} {class}", line.class)) x1=(px(axis.x(ns as f64)))
                                x2=(px(axis.x(ns as f64))) y1=(px(TOP)) y2=(px(BOTTOM)) {}
                        }
                    }
                }
                line class="axis" x1=(px(LEFT)) x2=(px(RIGHT)) y1=(px(BOTTOM)) y2=(px(BOTTOM)) {}
            }
            figcaption {
                "Distribution of " (words) ", logarithmic: "
                @for (number, line) in lines.iter().enumerate() {
                    @if number > 0 { "; " }
                    span class=(format!("key {}", line.class)) {} " " (line.name)
                    @if let (Some(half), Some(tail)) = (line.of.quantile(0.5), line.of.quantile(0.99)) {
                        ", p50 " (words_ns(half)) " (solid), p99 " (words_ns(tail)) " (dashed)"
                    }
                }
                ". Each is as high as its highest bar."
            }
        }
    }
}

/// Values over time: milliseconds and value, as `shown`.
pub fn courses(lines: &[Line<'_, [(f64, f64)]>], shown: impl Fn(f64) -> String, words: &str) -> Markup {
    let all = || lines.iter().flat_map(|line| line.of.iter());
    let most = all().map(|p| p.1).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let most = if most > 0.0 { nice(most * 1.05) } else { 1.0 };
    let end_ms = all().map(|p| p.0).fold(1.0, f64::max);
    let y = |value: f64| BOTTOM - (value / most).clamp(0.0, 1.0) * (BOTTOM - TOP);
    let points = |list: &[(f64, f64)]| {
        let step = list.len().div_ceil(POINTS_MAX).max(1);
        let mut text = String::new();
        for chunk in list.chunks(step) {
            let high = chunk.iter().map(|p| p.1).fold(0.0, f64::max);
            let _ = write!(text, "{},{} ", px(LEFT + chunk[0].0 / end_ms * (RIGHT - LEFT)), px(y(high)));
        }
        text
    };
    html! {
        figure {
            svg class="chart" viewBox="0 0 680 216" role="img" aria-label={ (words) " over time" } {
                @for tick in (0..=4).map(|i| most * f64::from(i) / 4.0) {
                    line class="grid" x1=(px(LEFT)) x2=(px(RIGHT)) y1=(px(y(tick))) y2=(px(y(tick))) {}
                    text class="tick" x=(px(LEFT - 8.0)) y=(px(y(tick) + 4.0)) text-anchor="end" { (shown(tick)) }
                }
                @for line in lines {
                    polyline class=(format!("line {}", line.class)) points=(points(line.of)) {}
                }
                text class="tick" x=(px(LEFT)) y="200" { "0" }
                text class="tick" x=(px(RIGHT)) y="200" text-anchor="end" { (units::duration_us(end_ms * 1e3)) }
            }
            figcaption {
                (words) " over time: "
                @for (number, line) in lines.iter().enumerate() {
                    @if number > 0 { "; " }
                    span class=(format!("key {}", line.class)) {} " " (line.name)
                }
                "."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_drawn_inside_its_frame() {
        let idle: Histogram = (1..1000).map(|n| 50_000 + n * 10).collect();
        let loaded: Histogram = (1..1000).map(|n| 5_000_000 + n * 1000).collect();
        let lines = [
            Line { class: "healthy", name: "idle", of: &idle },
            Line { class: "worst", name: "loaded", of: &loaded },
        ];
        let page = histograms(&lines, "RTTs").into_string();
        assert!(
            page.contains("p50 54.9 us (solid)") && page.contains("1 ms") && page.contains("area worst"),
            "{page}"
        );
        let polygon = page.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        for point in polygon.split(' ').filter(|p| !p.is_empty()) {
            let (x, y) = point.split_once(',').unwrap();
            assert!(
                (LEFT..=RIGHT).contains(&x.parse().unwrap()) && (TOP..=BOTTOM).contains(&y.parse().unwrap())
            );
        }
        // Nothing to draw is no reason to fall over.
        let empty = Histogram::default();
        histograms(&[Line { class: "healthy", name: "idle", of: &empty }], "nothing");
        let of = &[][..];
        let pair = [Line { class: "healthy", name: "idle", of }, Line { class: "worst", name: "loaded", of }];
        let page = courses(&pair, units::duration_us, "RTT").into_string();
        assert!(page.contains("RTT over time: <span") && page.contains("idle; <span"), "{page}");
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Decades { low: 4.2, high: 6.1 };
        let ticks = axis.ticks();
        assert_eq!(ticks.len(), 6, "{ticks:?}");
        assert!(ticks.iter().all(|ns| (4.2..=6.1).contains(&ns.log10())));
    }
}
