//! Downloads through front ends in words: medians and ranges of each step, and who is slow, where, how sure.

use std::fmt::Write;

use linerate_diagnose::front_ends::{self, FrontEnd};
use linerate_model::http::HttpStep;
use linerate_model::kind::HttpPlan;
use linerate_model::load::LoadReport;
use linerate_model::printable;
use linerate_model::sample::Sample;
use linerate_model::units;
use maud::{Markup, html};

use super::view::View;
use super::{names, words};

/// See the file's head.
#[derive(Debug)]
pub struct Http;

/// A column: as wide as two times and their dash.
const WIDTH: usize = 15;

fn cell(front: &FrontEnd, step: HttpStep) -> (String, String) {
    let Some(spread) = front.steps.iter().find(|s| s.step == step) else {
        return ("-".into(), String::new());
    };
    let words = |value: f64| match step {
        HttpStep::Rate => units::rate_cell(value),
        _ => units::duration_us(value * 1e3),
    };
    let range = format!("{}..{}", words(spread.range.0), words(spread.range.1)).replace(' ', "");
    (words(spread.median), range)
}

/// Who stands out, in words.
fn verdicts(fronts: &[FrontEnd]) -> Vec<String> {
    let mut lines = Vec::new();
    for front in fronts {
        let name = printable::clean(&front.name);
        let (all, failed) = front.downloads;
        if failed > 0 {
            let reason = front.failure.as_deref().unwrap_or("no reason");
            lines.push(format!("{name}: {failed} of {all} downloads failed: {}", printable::clean(reason)));
        }
        if let Some(slow) = &front.slow {
            let sure = match slow.sure {
                Some(p) => format!("{} sure", units::sure(p)),
                None => "measured too seldom to be sure; repeat with --repeat 5".to_owned(),
            };
            let what = match slow.step {
                HttpStep::Rate => "slower in the rate of the body".to_owned(),
                step => format!("slower in {}", words::step(step)),
            };
            lines
                .push(format!("{name} is {} times {what} than the best ({sure}).", units::short(slow.times)));
        }
    }
    if lines.is_empty() && fronts.len() > 1 {
        lines.push("No front end stands out.".to_owned());
    }
    lines
}

/// The steps of each front end: medians, below them the ranges. Empty where nothing was downloaded.
fn table(fronts: &[FrontEnd]) -> String {
    let mut out = String::new();
    let steps: Vec<HttpStep> = HttpStep::ALL
        .into_iter()
        .filter(|step| fronts.iter().any(|f| f.steps.iter().any(|s| s.step == *step)))
        .collect();
    if steps.is_empty() {
        return out;
    }
    let _ = write!(out, "{:<20}", "through");
    for step in &steps {
        let title = match step {
            HttpStep::Dns => "name",
            HttpStep::Connect => "connect",
            HttpStep::Tls => "TLS",
            HttpStep::FirstByte => "first byte",
            HttpStep::Rate => "bit/s",
        };
        let _ = write!(out, " {title:>WIDTH$}");
    }
    out.push('\n');
    for front in fronts {
        let cells: Vec<(String, String)> = steps.iter().map(|step| cell(front, *step)).collect();
        let _ = write!(out, "{:<20}", printable::clean(&names::cut(&front.name, 20)));
        for (median, _) in &cells {
            let _ = write!(out, " {median:>WIDTH$}");
        }
        let _ = write!(out, "\n{:<20}", format!("  {} times", front.downloads.0));
        for (_, range) in &cells {
            let _ = write!(out, " {range:>WIDTH$}");
        }
        out.push('\n');
    }
    out
}

impl View for Http {
    fn kind(&self) -> &'static str {
        "http"
    }

    fn headline(&self, _: &Sample, tx: &LoadReport, _: &LoadReport) -> String {
        let fronts = front_ends::compare(&tx.http);
        let failing = fronts.iter().find(|f| f.downloads.1 > 0).is_some();
        let slow: Vec<String> =
            fronts.iter().filter(|f| f.slow.is_some()).map(|f| printable::clean(&f.name)).collect();
        match (slow.as_slice(), failing) {
            ([], false) if fronts.len() > 1 => "no front end stands out".to_owned(),
            ([], false) => {
                let rate = fronts.first().map(|f| cell(f, HttpStep::Rate).0).unwrap_or_default();
                format!("downloaded at {rate}bit/s")
            }
            _ => verdicts(&fronts).into_iter().next().unwrap_or_default() + &others(slow.len()),
        }
    }

    fn text(&self, sample: &Sample, tx: &LoadReport, _: &LoadReport) -> String {
        let fronts = front_ends::compare(&tx.http);
        let mut out = table(&fronts);
        for line in verdicts(&fronts).into_iter().chain(remarks(sample, tx)) {
            out += &line;
            out.push('\n');
        }
        out
    }

    fn drawings(&self, tx: &LoadReport, _: &LoadReport) -> Markup {
        html! {
            div.scroll {
                table.plain {
                    thead { tr { th { "through" } th.n { "round" } th { "address" } th.n { "status" } th.n { "name" } th.n { "connect" } th.n { "TLS" }
                        th.n { "first byte" } th.n { "body" } th.n { "bytes" } th.n { "rate" } th { "ended" } } }
                    tbody {
                        @for f in &tx.http {
                            @let time = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| units::duration_us(ms * 1e3));
                            tr {
                                td { (f.via) } td.n { (f.repeat + 1) }
                                td { (f.address.map(|a| a.to_string()).unwrap_or_default()) }
                                td.n { (f.status.map(|s| s.to_string()).unwrap_or_default()) }
                                td.n { (time(f.dns_ms)) } td.n { (time(f.connect_ms)) } td.n { (time(f.tls_ms)) }
                                td.n { (time(f.first_byte_ms)) } td.n { (time(f.body_ms)) } td.n { (f.bytes) }
                                td.n { (f.rate_bps().map(units::rate).unwrap_or_default()) }
                                td { (f.error.as_deref().unwrap_or(if f.cut { "left, long enough" } else { "well" })) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn is_finding(&self, tx: &LoadReport, _: &LoadReport) -> bool {
        front_ends::compare(&tx.http).iter().any(|f| f.slow.is_some() || f.downloads.1 > 0)
    }
}

fn others(slow: usize) -> String {
    if slow > 1 { format!(" (and {} more)", slow - 1) } else { String::new() }
}

/// What a reader must know about the downloads as a whole.
fn remarks(sample: &Sample, tx: &LoadReport) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(plan) = sample.test.kind.get::<HttpPlan>() {
        if plan.insecure {
            lines.push(
                "Certificates were not verified (--insecure): the answers may come from anybody.".to_owned(),
            );
        }
        if tx.http.iter().any(|f| f.cut) {
            lines.push(format!("Bodies were left after {} bytes.", plan.max_bytes));
        }
    }
    if let Some(fetch) = tx.http.iter().find(|f| !f.redirects.is_empty()) {
        let to: Vec<String> = fetch.redirects.iter().map(|r| printable::clean(&names::cut(r, 70))).collect();
        lines.push(format!("Redirected to {}.", to.join(", then ")));
        let leaves = |url: &String| tx.http.iter().any(|f| f.tls.is_some()) && url.starts_with("http://");
        if fetch.redirects.iter().any(leaves) {
            lines.push("A redirect led from https to http.".to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use linerate_model::http::HttpFetch;

    use super::*;

    #[test]
    fn the_slow_front_end_is_named_within_100_columns() {
        let mut tx = LoadReport::default();
        for repeat in 0..5 {
            for (via, rate) in [("arc-1", 32e3), ("arc-2", 100e6), ("arc-3.a-long-name.example.org", 101e6)] {
                tx.http.push(HttpFetch {
                    via: via.into(),
                    repeat,
                    dns_ms: Some(2.0),
                    connect_ms: Some(0.4),
                    tls_ms: Some(3.2),
                    first_byte_ms: Some(1.25),
                    body_ms: Some(1e9 / rate),
                    bytes: 1_000_000,
                    status: Some(200),
                    ..HttpFetch::default()
                });
            }
        }
        let sample = super::super::view::tests_sample();
        let text = Http.text(&sample, &tx, &LoadReport::default());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("arc-1 is 3156 times slower in the rate of the body than the best"), "{text}");
        assert!(text.contains("sure"), "{text}");
        assert!(Http.is_finding(&tx, &LoadReport::default()));
        assert!(Http.headline(&sample, &tx, &LoadReport::default()).starts_with("arc-1 is"));
        assert!(Http.drawings(&tx, &LoadReport::default()).into_string().contains("arc-3"));
    }
}
