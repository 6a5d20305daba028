//! Time over tests, drawn as SVG with logarithmic axes, beside the line of tests times their logarithm.
//!
//! In: runs of several sizes. Out: a picture. It fits nothing: the line goes through the largest run.

use std::fmt::Write as _;

use super::SimulatedRun;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 60.0;

/// A logarithmic axis from one power of ten to another.
struct Axis {
    low: i32,
    high: i32,
    from: f64,
    to: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let logs: Vec<f64> = values.filter(|v| *v > 0.0).map(f64::log10).collect();
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low.is_finite() { (low.floor() as i32, high.ceil() as i32) } else { (0, 1) };
        Self { low, high: high.max(low + 1), from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value.max(1e-12).log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        self.from + share * (self.to - self.from)
    }
}

/// Draws the runs; nothing when there are none.
pub fn picture(runs: &[SimulatedRun]) -> String {
    let x = Axis::over(runs.iter().map(|r| r.tests as f64), LEFT, WIDTH - RIGHT);
    let y = Axis::over(runs.iter().map(|r| r.seconds), HEIGHT - BOTTOM, TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\">CPU seconds of a diagnosis over the number of tests</text>\n"
    );
    grid(&mut svg, &x, &y);
    line(&mut svg, runs, &x, &y);
    for run in runs {
        let (cx, cy) = (x.at(run.tests as f64), y.at(run.seconds));
        let _ = writeln!(
            svg,
            "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"4\" fill=\"#1f6fb2\"><title>{} hosts, {} tests: {:.3} s</title></circle>",
            run.hosts, run.tests, run.seconds
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">tests</text>\n</svg>",
        f64::midpoint(LEFT, WIDTH - RIGHT),
        HEIGHT - 14.0
    );
    svg
}

/// Powers of ten with their labels.
fn grid(svg: &mut String, x: &Axis, y: &Axis) {
    for power in x.low..=x.high {
        let at = x.at(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{:.1}\" stroke=\"#ddd\"/>",
            y.from
        );
        let label = thousands(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            y.from + 20.0
        );
    }
    for power in y.low..=y.high {
        let at = y.at(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>",
            x.to
        );
        let label = 10f64.powi(power);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label} s</text>",
            LEFT - 8.0,
            at + 4.0
        );
    }
}

/// What tests times their logarithm would take.
fn line(svg: &mut String, runs: &[SimulatedRun], x: &Axis, y: &Axis) {
    if let Some(last) = runs.iter().max_by_key(|r| r.tests).filter(|r| r.tests > 1) {
        let per = last.seconds / (last.tests as f64 * (last.tests as f64).ln());
        let mut points = String::new();
        for step in 0..=40 {
            let tests =
                10f64.powf(f64::from(x.low) + f64::from(x.high - x.low) * f64::from(step) / 40.0).max(2.0);
            let seconds = per * tests * tests.ln();
            if seconds >= 10f64.powi(y.low) && seconds <= 10f64.powi(y.high) {
                let _ = write!(points, "{:.1},{:.1} ", x.at(tests), y.at(seconds));
            }
        }
        let _ = writeln!(
            svg,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"#888\" stroke-dasharray=\"5 4\"/>"
        );
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#666\">dashed: tests x log(tests), through the largest run</text>",
            LEFT + 12.0,
            TOP + 18.0
        );
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_a_point_inside_the_picture() {
        let run = |hosts: usize, seconds: f64| SimulatedRun {
            hosts,
            faults: 1,
            lost: 0.5,
            rounds: 4,
            seed: 1,
            tests: hosts * 4,
            seconds,
            memory_mb: 1,
            scores: Vec::new(),
            missed: Vec::new(),
            wrong: Vec::new(),
            claims: Vec::new(),
        };
        let svg = picture(&[run(100, 0.01), run(10_000, 2.0)]);
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("10,000") && svg.contains("0.01 s") && svg.ends_with("</svg>\n"), "{svg}");
        assert!(picture(&[]).ends_with("</svg>\n"));
    }
}
