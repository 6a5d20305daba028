//! Connections per second in words.

use std::fmt::Write;

use linerate_model::histogram::Histogram;
use linerate_model::load::LoadReport;
use linerate_model::printable;
use linerate_model::sample::Sample;
use linerate_model::units;
use maud::{Markup, html};

use super::distribution::{self, Line};
use super::view::View;

/// See the file's head.
#[derive(Debug)]
pub struct Connects;

fn per_second(tx: &LoadReport) -> f64 {
    let done = tx.connects.as_ref().map_or(0, |c| c.done);
    if tx.elapsed_s > 0.0 { done as f64 / tx.elapsed_s } else { 0.0 }
}

impl View for Connects {
    fn kind(&self) -> &'static str {
        "connects"
    }

    fn headline(&self, _: &Sample, tx: &LoadReport, _: &LoadReport) -> String {
        format!("{} connections per second", units::short(per_second(tx)))
    }

    fn text(&self, _: &Sample, tx: &LoadReport, rx: &LoadReport) -> String {
        let mut out = String::new();
        let Some(sent) = &tx.connects else { return out };
        let _ = writeln!(
            out,
            "{:<24}  {} in {}, {} per second",
            "connections",
            sent.done,
            units::duration_us(tx.elapsed_s * 1e6),
            units::short(per_second(tx))
        );
        let seen = rx.connects.as_ref().map_or(0, |c| c.done);
        let _ = writeln!(out, "{:<24}  {seen}", "answered by the receiver");
        let reason =
            sent.first_failure.as_deref().map(|r| format!(": {}", printable::clean(r))).unwrap_or_default();
        let _ = writeln!(out, "{:<24}  {}{reason}", "failed", sent.failed);
        for (name, times) in [("until connected", &sent.connect_ns), ("until answered", &sent.whole_ns)] {
            let at = |share: f64| units::duration_us(times.quantile(share).unwrap_or(0) as f64 / 1e3);
            let _ = writeln!(out, "{name:<24}  p50 {}, p99 {}, max {}", at(0.5), at(0.99), at(1.0));
        }
        out
    }

    fn drawings(&self, tx: &LoadReport, _: &LoadReport) -> Markup {
        let draw = |connected: &Histogram, answered: &Histogram| {
            let lines = [
                Line { class: "healthy", name: "until connected", of: connected },
                Line { class: "worst", name: "until answered", of: answered },
            ];
            distribution::histograms(&lines, "times of a connection")
        };
        html! {
            @if let Some(c) = &tx.connects { (draw(&c.connect_ns, &c.whole_ns)) }
        }
    }

    fn is_finding(&self, tx: &LoadReport, _: &LoadReport) -> bool {
        tx.connects.as_ref().is_none_or(|c| c.failed > 0)
    }
}
