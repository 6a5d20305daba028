//! Drawings for the HTML report, as inline SVG: the arms of a trial, the effect with its interval, and
//! throughput over time. Values in, markup out. No scripts, no fonts, no colours of its own (classes of the
//! style sheet).

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use linerate_model::finding::{Cell, Diagnosis};
use linerate_model::inventory::{HostName, Layer};
use linerate_model::kind::TcpPlan;
use linerate_model::load::{Interval, LoadReport};
use linerate_model::sample::{Outcome, Sample};
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::Trial;
use linerate_model::units::{self, MetricUnit};
use maud::{Markup, html};

use super::distribution::nice;
use super::inside;

/// Left edge of every plot: room for the labels of the axis.
pub(crate) const LEFT: f64 = 96.0;
/// Points per line: more than one per pixel cannot be seen.
const POINTS_MAX: usize = 300;

/// A linear map from values to pixels, 0 at the bottom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    top_value: f64,
    top: f64,
    bottom: f64,
}

impl Axis {
    pub(crate) fn new(values: impl Iterator<Item = f64>, top: f64, bottom: f64) -> Self {
        let most = values.filter(|v| v.is_finite()).fold(0.0, f64::max);
        Self { top_value: if most > 0.0 { nice(most * 1.05) } else { 1.0 }, top, bottom }
    }

    pub(crate) fn y(self, value: f64) -> f64 {
        let share = (value / self.top_value).clamp(0.0, 1.0);
        self.bottom - share * (self.bottom - self.top)
    }

    fn ticks(self) -> Vec<f64> {
        (0..=4).map(|i| self.top_value * f64::from(i) / 4.0).collect()
    }
}

pub(crate) fn px(value: f64) -> String {
    format!("{value:.1}")
}

pub(crate) fn frame(axis: Axis, right: f64, unit: MetricUnit) -> Markup {
    html! {
        @for tick in axis.ticks() {
            line class="grid" x1=(px(LEFT)) x2=(px(right)) y1=(px(axis.y(tick))) y2=(px(axis.y(tick))) {}
            text class="tick" x=(px(LEFT - 8.0)) y=(px(axis.y(tick) + 4.0)) text-anchor="end" { (units::value(tick, unit)) }
        }
    }
}

/// Dots of all arms: A hollow, B filled; the control as small squares.
pub fn arms(trial: &Trial) -> Markup {
    let unit = trial.response.unit();
    let axis = Axis::new(trial.arms.iter().flat_map(|a| [a.value, a.control]).flatten(), 14.0, 190.0);
    let right = 660.0;
    let step = (right - LEFT) / trial.arms.len().max(1) as f64;
    let x = |i: usize| LEFT + step * (i as f64 + 0.5);
    html! {
        svg class="chart" viewBox="0 0 680 232" role="img" aria-label="Every measurement of the trial, in order of time" {
            (frame(axis, right, unit))
            @if let Some(e) = &trial.effect {
                line class="before" x1=(px(LEFT)) x2=(px(right)) y1=(px(axis.y(e.before))) y2=(px(axis.y(e.before))) {}
                line class="after" x1=(px(LEFT)) x2=(px(right)) y1=(px(axis.y(e.after))) y2=(px(axis.y(e.after))) {}
            }
            @for (i, arm) in trial.arms.iter().enumerate() {
                @let state = if arm.changed { "B" } else { "A" };
                @if arm.changed {
                    rect class="band" x=(px(x(i) - step / 2.0)) y="14" width=(px(step)) height="176" {}
                }
                @if let Some(v) = arm.control {
                    rect class="control" x=(px(x(i) + 8.0)) y=(px(axis.y(v) - 3.5)) width="7" height="7" {
                        title { "arm " (i + 1) ", control: " (units::value(v, unit)) }
                    }
                }
                @if let Some(v) = arm.value {
                    circle class=(if arm.changed { "dot b" } else { "dot a" }) cx=(px(x(i) - 6.0)) cy=(px(axis.y(v))) r="6" {
                        title { "arm " (i + 1) " (" (state) "): " (units::value(v, unit)) }
                    }
                } @else {
                    text class="tick" x=(px(x(i) - 6.0)) y=(px(axis.bottom - 4.0)) text-anchor="middle" { "×" }
                }
                text class="tick" x=(px(x(i))) y="207" text-anchor="middle" { (state) }
            }
            text class="tick" x=(px(f64::midpoint(LEFT, right))) y="226" text-anchor="middle" {
                "order of time: A with the old values, B with the change"
            }
        }
    }
}

/// The same on one line each, for a first screen: hollow as it was, filled with the change. Logarithmic where
/// the values span a decade.
pub fn strip(trial: &Trial) -> Markup {
    let unit = trial.response.unit();
    let values = trial.arms.iter().filter_map(|arm| arm.value).filter(|v| v.is_finite() && *v >= 0.0);
    let (low, high) = values.fold((f64::MAX, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
    if high <= 0.0 {
        return html! {};
    }
    let floor = low.max(high / 1e4);
    let is_log = high / floor >= 10.0;
    let (left, right) = (12.0, 388.0);
    let x = |v: f64| {
        let share = if is_log { (v.max(floor) / floor).ln() / (high / floor).ln() } else { v / high };
        left + share.clamp(0.0, 1.0) * (right - left)
    };
    html! {
        svg class="chart strip" viewBox="0 0 400 62" role="img" aria-label="Every measurement of the trial" {
            @for y in [12.0, 34.0] { line class="grid" x1=(px(left)) x2=(px(right)) y1=(px(y)) y2=(px(y)) {} }
            @for arm in &trial.arms {
                @if let Some(v) = arm.value {
                    circle class=(if arm.changed { "dot b" } else { "dot a" }) cx=(px(x(v))) cy=(if arm.changed { "34" } else { "12" }) r="6" {
                        title { (if arm.changed { "changed: " } else { "as it was: " }) (units::value(v, unit)) }
                    }
                }
            }
            text class="tick" x=(px(left - 8.0)) y="58" text-anchor="start" { (units::value(if is_log { floor } else { 0.0 }, unit)) }
            text class="tick" x=(px(right + 8.0)) y="58" text-anchor="end" { (units::value(high, unit)) @if is_log { ", logarithmic" } }
        }
    }
}

/// The ratio after / before with its interval, beside the control's, on a logarithmic scale around "no
/// change".
pub fn effect(trial: &Trial) -> Markup {
    let Some(e) = &trial.effect else { return html! {} };
    let mut bars = vec![("changed pair", e.ratio, e.interval, "b")];
    if trial.control.is_some() {
        bars.push(("control pair", e.control_ratio, e.control_interval, "control"));
    }
    let logs = bars
        .iter()
        .flat_map(|b| [b.1, b.2.0, b.2.1])
        .filter(|v| *v > 0.0 && v.is_finite())
        .map(|v| v.log2().abs());
    let reach = logs.fold(0.2_f64, f64::max).min(20.0) * 1.1;
    let (middle, half) = (378.0, 230.0);
    let x = |ratio: f64| {
        let log = if ratio > 0.0 { ratio.log2() } else { -reach };
        middle + (log / reach).clamp(-1.0, 1.0) * half
    };
    let height = 36.0 + 34.0 * bars.len() as f64;
    html! {
        svg class="chart" viewBox=(format!("0 0 680 {height}")) role="img" aria-label="Effect with its 95 % interval" {
            line class="axis" x1=(px(middle)) x2=(px(middle)) y1="8" y2=(px(height - 22.0)) {}
            text class="tick" x=(px(middle)) y=(px(height - 6.0)) text-anchor="middle" { "no change" }
            text class="tick" x=(px(middle - half)) y=(px(height - 6.0)) text-anchor="start" { "← worse" }
            text class="tick" x=(px(middle + half)) y=(px(height - 6.0)) text-anchor="end" { "better →" }
            @for (i, (name, ratio, interval, class)) in bars.into_iter().enumerate() {
                @let y = 24.0 + 34.0 * i as f64;
                text class="tick" x=(px(LEFT + 12.0)) y=(px(y + 4.0)) text-anchor="end" { (name) }
                line class=(format!("bar {class}")) x1=(px(x(interval.0))) x2=(px(x(interval.1))) y1=(px(y)) y2=(px(y)) {}
                circle class=(format!("mark {class}")) cx=(px(x(ratio))) cy=(px(y)) r="6" {
                    title { "× " (units::factor(ratio)) ", 95 % between " (units::factor(interval.0)) " and " (units::factor(interval.1)) }
                }
                text class="value" x="672" y=(px(y + 4.0)) text-anchor="end" { "× " (units::factor(ratio)) }
            }
        }
    }
}

/// A measured series with its pair.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    sample: &'a Sample,
    series: &'a [Interval],
    cell: Option<&'a Cell>,
}

/// Throughput over time of the worst pair and of a healthy pair of the same layer, and the inside of the
/// worst pair's connections; nothing when no series was kept.
pub fn series(snapshot: &Snapshot, diagnosis: &Diagnosis) -> Option<Markup> {
    let mut cells: Cells<'_> = HashMap::new();
    for cell in &diagnosis.cells {
        cells.entry((&cell.from, &cell.to, cell.layer)).or_insert(cell);
    }
    let lines: Vec<Line<'_>> = snapshot.samples.iter().filter_map(|s| line(s, &cells)).collect();
    let share = |l: &Line<'_>| {
        let cell = l.cell?;
        match (cell.two_state_bps, cell.ceiling.bps) {
            (Some((a, b)), Some(c)) => Some(a.min(b) / c),
            _ => cell.share,
        }
    };
    let affected: &[(HostName, HostName)] = diagnosis.findings.first().map_or(&[], |f| &f.affected);
    let affected: BTreeSet<(&str, &str)> = affected.iter().map(|(f, t)| (f.as_str(), t.as_str())).collect();
    let sick = |l: &Line<'_>| affected.contains(&(l.sample.test.from.as_str(), l.sample.test.to.as_str()));
    let worst = lines
        .iter()
        .filter(|l| affected.is_empty() || sick(l))
        .min_by(|a, b| share(a).unwrap_or(1.0).total_cmp(&share(b).unwrap_or(1.0)))?;
    let layer: Layer = worst.sample.test.layer;
    let healthy = lines
        .iter()
        .filter(|l| l.sample.test.layer == layer && !sick(l) && l.sample.test.id != worst.sample.test.id)
        .max_by(|a, b| {
            // A pair with the same kind of ceiling compares best.
            let like =
                |l: &Line<'_>| l.cell.map(|c| c.ceiling.binding) == worst.cell.map(|c| c.ceiling.binding);
            like(a).cmp(&like(b)).then(share(a).unwrap_or(0.0).total_cmp(&share(b).unwrap_or(0.0)))
        });
    let inside = sender(worst.sample).map_or_else(Markup::default, |tx| inside::drawings(&tx.inside));
    Some(html! {
        (draw_series(worst, healthy, layer))
        @if !inside.0.is_empty() {
            h3 { "Inside the connections of the worst pair, as the sender's kernel saw them" }
            (inside)
        }
    })
}

fn sender(sample: &Sample) -> Option<&LoadReport> {
    if let Outcome::Measured(measured) = &sample.outcome { measured.tx.as_deref() } else { None }
}

/// Cells of the matrix by pair and layer.
type Cells<'a> = HashMap<(&'a str, &'a str, Layer), &'a Cell>;

fn line<'a>(sample: &'a Sample, cells: &Cells<'a>) -> Option<Line<'a>> {
    let Outcome::Measured(m) = &sample.outcome else { return None };
    let kept = |end: &'a Option<Box<LoadReport>>| end.as_ref().map(|r| r.series.as_slice());
    let series = [kept(&m.rx), kept(&m.tx)].into_iter().flatten().find(|s| s.len() > 1)?;
    if !sample.test.kind.is::<TcpPlan>() {
        return None;
    }
    let test = &sample.test;
    let cell = cells.get(&(test.from.as_str(), test.to.as_str(), test.layer)).copied();
    Some(Line { sample, series, cell })
}

fn draw_series(worst: &Line<'_>, healthy: Option<&Line<'_>>, layer: Layer) -> Markup {
    let both: Vec<(&str, &Line<'_>)> =
        std::iter::once(("worst", worst)).chain(healthy.map(|l| ("healthy", l))).collect();
    let values = both.iter().flat_map(|(_, l)| l.series.iter().map(|i| i.throughput_bps));
    let axis = Axis::new(values, 14.0, 180.0);
    let end_ms = both.iter().filter_map(|(_, l)| l.series.last()).map(|i| i.at_ms).fold(1.0, f64::max);
    let right = 660.0;
    let levels = worst.cell.and_then(|c| c.two_state_bps);
    let name = |l: &Line<'_>| format!("{} to {}", l.sample.test.from, l.sample.test.to);
    html! {
        figure {
            svg class="chart" viewBox="0 0 680 216" role="img"
                aria-label={ "Throughput over time, " (layer) ": " (name(worst)) @if let Some(h) = healthy { " and " (name(h)) } } {
                (frame(axis, right, MetricUnit::BitPerSecond))
                @if let Some((a, b)) = levels {
                    @for level in [a, b] {
                        line class="level" x1=(px(LEFT)) x2=(px(right)) y1=(px(axis.y(level))) y2=(px(axis.y(level))) {}
                    }
                }
                @for (class, l) in both.iter().rev() {
                    polyline class=(format!("line {class}")) points=(points(l.series, axis, end_ms, right)) {}
                }
                text class="tick" x=(px(LEFT)) y="200" { "0" }
                text class="tick" x=(px(right)) y="200" text-anchor="end" { (units::duration_us(end_ms * 1000.0)) }
            }
            figcaption {
                "One transfer each, " (layer) ": " span.key.worst {} " worst pair, " (name(worst))
                @if let Some(h) = healthy { "; " span.key.healthy {} " healthy pair, " (name(h)) }
                ". The start-up is shown here and left out of the figures."
                @if let Some((a, b)) = levels {
                    " It jumps between two levels, " (units::rate(a.max(b))) " and " (units::rate(a.min(b)))
                    " (dashed). The two are never averaged."
                }
            }
        }
    }
}

/// Points of a line; several intervals that share a pixel are drawn as their lowest and highest, so that no
/// jump is lost.
fn points(series: &[Interval], axis: Axis, end_ms: f64, right: f64) -> String {
    let per_point = series.len().div_ceil(POINTS_MAX).max(1);
    let mut text = String::new();
    for chunk in series.chunks(per_point) {
        let x = LEFT + (chunk[0].at_ms / end_ms).clamp(0.0, 1.0) * (right - LEFT);
        let low = chunk.iter().map(|i| i.throughput_bps).fold(f64::INFINITY, f64::min);
        let high = chunk.iter().map(|i| i.throughput_bps).fold(0.0, f64::max);
        let _ = write!(text, "{},{} ", px(x), px(axis.y(high)));
        if low < high {
            let _ = write!(text, "{},{} ", px(x), px(axis.y(low)));
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_round_numbers() {
        assert!((nice(187e6) - 200e6).abs() < 1.0);
        assert!((nice(9.9e9) - 10e9).abs() < 1.0);
        assert!((nice(0.031) - 0.032).abs() < 1e-9);
    }

    #[test]
    fn long_series_keep_their_jumps() {
        let series: Vec<Interval> = (0..3000)
            .map(|i| Interval {
                at_ms: f64::from(i),
                throughput_bps: if i == 1501 { 0.0 } else { 1e9 },
                ..Interval::default()
            })
            .collect();
        let axis = Axis::new([1e9].into_iter(), 0.0, 100.0);
        let text = points(&series, axis, 3000.0, 600.0);
        assert!(text.split(' ').count() <= 2 * POINTS_MAX);
        assert!(text.contains(",100.0"), "the single dip must be drawn");
    }
}
