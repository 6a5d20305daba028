//! A latency test in words: percentiles per phase, what waking up costs, what load adds.

use std::fmt::Write;

use linerate_model::latency::{Carrier, LatencyResult, Waiting};
use linerate_model::load::LoadReport;
use linerate_model::printable::one_line;
use linerate_model::sample::Sample;
use linerate_model::units;
use maud::{Markup, html};

use super::distribution::{self, Line};
use super::view::View;

/// What a spinning figure is, and what it took.
const SPINNING: &str =
    "Spinning: each end kept one CPU fully busy; applications that sleep see the blocking figures.";

/// See the file's head.
#[derive(Debug)]
pub struct Latency;

fn at(result: &LatencyResult, share: f64) -> f64 {
    result.round_trip_ns.quantile(share).unwrap_or(0) as f64 / 1e3
}

/// What load adds to an RTT, in words, by the milliseconds added to the median and to the slowest of a
/// hundred. Interactive work notices 30 ms (a frame or two); storage and RPC inside a cluster notice one.
fn grade(added_p50_us: f64, added_p99_us: f64) -> &'static str {
    let worst = added_p50_us.max(added_p99_us / 3.0);
    match worst {
        w if w < 1e3 => "none: queues stay short",
        w if w < 5e3 => "little: inside a cluster it can be felt",
        w if w < 30e3 => "clear: requests wait behind bulk data",
        w if w < 100e3 => "much: people notice it",
        _ => "severe: the path stands still behind its queues",
    }
}

/// The result of another phase that differs from this one only by `change`.
fn other<'a>(
    results: &'a [LatencyResult],
    result: &LatencyResult,
    change: impl Fn(&mut linerate_model::latency::LatencyPhase),
) -> Option<&'a LatencyResult> {
    let mut phase = result.phase;
    change(&mut phase);
    results.iter().find(|r| r.phase == phase && r.round_trip_ns.count() > 0)
}

/// Idle phases with their loaded aliases.
fn aliases(results: &[LatencyResult]) -> Vec<(&LatencyResult, &LatencyResult)> {
    results
        .iter()
        .filter(|r| !r.phase.loaded && r.round_trip_ns.count() > 0)
        .filter_map(|idle| Some((idle, other(results, idle, |p| p.loaded = true)?)))
        .collect()
}

/// What load adds to median and 99th percentile, microseconds.
fn added(idle: &LatencyResult, loaded: &LatencyResult) -> (f64, f64) {
    let more = |share| (at(loaded, share) - at(idle, share)).max(0.0);
    (more(0.5), more(0.99))
}

fn sentences(results: &[LatencyResult]) -> Vec<String> {
    let mut lines = Vec::new();
    for result in results.iter().filter(|r| r.phase.waiting == Waiting::Blocking && !r.phase.loaded) {
        let Some(spinning) = other(results, result, |p| p.waiting = Waiting::Spinning) else { continue };
        let carrier = if result.phase.carrier == Carrier::Tcp { "TCP" } else { "UDP" };
        let gap = at(result, 0.5) - at(spinning, 0.5);
        if gap > 0.0 {
            lines.push(format!(
                "Waking up costs {} of a {carrier} RTT: {} blocking, {} spinning (p50).",
                units::duration_us(gap),
                units::duration_us(at(result, 0.5)),
                units::duration_us(at(spinning, 0.5))
            ));
        } else {
            lines.push(format!(
                "Spinning is no faster than blocking over {carrier}: the ends had no free CPU each to spin on."
            ));
        }
    }
    let blocking = |t: &(&LatencyResult, &LatencyResult)| t.0.phase.waiting == Waiting::Blocking;
    let mut compared = aliases(results);
    // A spinning end shares its CPUs with the load: what that costs says little about the path.
    if compared.iter().any(blocking) {
        compared.retain(blocking);
    }
    for (idle, loaded) in compared {
        let (half, tail) = added(idle, loaded);
        let phase = loaded.phase.to_string();
        lines.push(format!(
            "Load adds {} at p50 and {} at p99 ({}): {}.",
            units::duration_us(half),
            units::duration_us(tail),
            phase.trim_end_matches(", loaded"),
            grade(half, tail)
        ));
    }
    lines
}

impl View for Latency {
    fn kind(&self) -> &'static str {
        "latency"
    }

    fn headline(&self, _: &Sample, tx: &LoadReport, _: &LoadReport) -> String {
        let Some(first) = tx.latency.iter().find(|r| r.round_trip_ns.count() > 0) else {
            return "no request was answered".to_owned();
        };
        let mut words = format!(
            "an answer takes {} at p50, {} at p99 ({})",
            units::duration_us(at(first, 0.5)),
            units::duration_us(at(first, 0.99)),
            first.phase
        );
        if let Some((idle, loaded)) = aliases(&tx.latency).first() {
            let (half, tail) = added(idle, loaded);
            let _ = write!(
                words,
                "; load adds {} at p50, {} at p99",
                units::duration_us(half),
                units::duration_us(tail)
            );
        }
        words
    }

    fn text(&self, _: &Sample, tx: &LoadReport, _: &LoadReport) -> String {
        let mut out = format!(
            "{:<20} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>4}  {}\n",
            "phase", "per s", "min", "p50", "p90", "p99", "p99.9", "max", "lost", "load"
        );
        for r in &tx.latency {
            if let Some(why) = &r.refused {
                let _ = writeln!(out, "{:<20} refused, {}", r.phase.to_string(), one_line(why));
                continue;
            }
            let end = |ns: Option<u64>| units::duration_us(ns.unwrap_or(0) as f64 / 1e3);
            let _ = writeln!(
                out,
                "{:<20} {:>7.0} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>4}  {}",
                r.phase.to_string(),
                r.per_second(),
                end(r.round_trip_ns.min()),
                units::duration_us(at(r, 0.5)),
                units::duration_us(at(r, 0.9)),
                units::duration_us(at(r, 0.99)),
                units::duration_us(at(r, 0.999)),
                end(r.round_trip_ns.max()),
                r.lost,
                r.load_bps.map_or_else(String::new, |bps| units::rate_cell(bps) + "bit/s"),
            );
        }
        let spun = |r: &LatencyResult| r.phase.waiting == Waiting::Spinning && r.refused.is_none();
        if tx.latency.iter().any(spun) {
            out += SPINNING;
            out.push('\n');
        }
        for line in sentences(&tx.latency) {
            out += &line;
            out.push('\n');
        }
        out
    }

    fn drawings(&self, tx: &LoadReport, _: &LoadReport) -> Markup {
        html! {
            @for result in tx.latency.iter().filter(|r| r.refused.is_none()).filter(|r| !r.phase.loaded || other(&tx.latency, r, |p| p.loaded = false).is_none()) {
                @let loaded = other(&tx.latency, result, |p| p.loaded = true).filter(|_| !result.phase.loaded);
                @let phase = result.phase.to_string();
                @let title = phase.split(", ").next().unwrap_or_default();
                h3 { (title) }
                @let own = if result.phase.loaded { ("worst", "loaded") } else { ("healthy", "idle") };
                @let mut lines = vec![Line { class: own.0, name: own.1, of: &result.round_trip_ns }];
                @let mut courses = vec![(own, course(result))];
                @if let Some(loaded) = loaded {
                    @let () = lines.push(Line { class: "worst", name: "loaded", of: &loaded.round_trip_ns });
                    @let () = courses.push((("worst", "loaded"), course(loaded)));
                }
                (distribution::histograms(&lines, "RTTs"))
                @let drawn: Vec<Line<'_, [(f64, f64)]>> = courses.iter()
                    .map(|((class, name), points)| Line { class, name, of: points.as_slice() }).collect();
                (distribution::courses(&drawn, units::duration_us, "Mean RTT"))
            }
        }
    }

    fn is_finding(&self, tx: &LoadReport, _: &LoadReport) -> bool {
        tx.latency.iter().any(|r| r.round_trip_ns.count() == 0 && r.refused.is_none())
    }
}

fn course(result: &LatencyResult) -> Vec<(f64, f64)> {
    result.series.iter().map(|point| (point.at_ms, point.mean_us)).collect()
}

#[cfg(test)]
mod tests {
    use linerate_model::histogram::Histogram;
    use linerate_model::latency::LatencyPhase;

    use super::*;

    fn result(waiting: Waiting, loaded: bool, us: u64) -> LatencyResult {
        LatencyResult {
            phase: LatencyPhase { carrier: Carrier::Tcp, waiting, loaded },
            round_trip_ns: (0..1000).map(|n| us * 1000 + n).collect(),
            elapsed_s: 1.0,
            lost: 0,
            cpu_s: 0.1,
            load_bps: loaded.then_some(9.4e9),
            series: vec![],
            refused: None,
        }
    }

    #[test]
    fn waking_up_and_load_are_numbers() {
        let tx = LoadReport {
            latency: vec![
                result(Waiting::Blocking, false, 54),
                result(Waiting::Spinning, false, 7),
                result(Waiting::Blocking, true, 12_054),
            ],
            ..LoadReport::default()
        };
        let lines = sentences(&tx.latency);
        assert!(lines[0].starts_with("Waking up costs 46.9 us of a TCP RTT"), "{lines:?}");
        assert!(lines[1].starts_with("Load adds 12 ms at p50") && lines[1].contains("clear"), "{lines:?}");
        let sample = super::super::view::tests_sample();
        let text = Latency.text(&sample, &tx, &LoadReport::default());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("9.4Gbit/s") && text.contains("each end kept one CPU fully busy"));
        assert!(Latency.drawings(&tx, &LoadReport::default()).into_string().contains("area worst"));
        assert!(Latency.headline(&sample, &tx, &LoadReport::default()).contains("load adds 12 ms"));
    }

    #[test]
    fn a_refused_phase_is_named_and_no_finding() {
        let why = "sender: no free CPU to spin on: 0.3 of 2 idle, both ends here need 2";
        let refused = LatencyResult {
            round_trip_ns: Histogram::default(),
            refused: Some(why.to_owned()),
            ..result(Waiting::Spinning, false, 1)
        };
        let blocking = result(Waiting::Blocking, false, 54);
        let tx = LoadReport { latency: vec![blocking, refused], ..LoadReport::default() };
        let text = Latency.text(&super::super::view::tests_sample(), &tx, &LoadReport::default());
        assert!(text.contains(&format!("TCP spinning, idle   refused, {why}\n")), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(!text.contains("kept one CPU") && !Latency.is_finding(&tx, &LoadReport::default()));
        let drawn = Latency.drawings(&tx, &LoadReport::default()).into_string();
        assert!(drawn.contains("TCP blocking") && !drawn.contains("TCP spinning"));
    }

    #[test]
    fn grades_grow_with_what_is_added() {
        let grades = [0.0, 2e3, 10e3, 50e3, 500e3].map(|us| grade(us, us));
        let mut all = grades.to_vec();
        all.dedup();
        assert_eq!(all.len(), 5);
    }
}
