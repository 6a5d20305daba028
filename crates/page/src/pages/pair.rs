//! A pair: both directions in each layer, the tests that were made, its series, and what was found.

use linerate_model::finding::{Cell, Suspect};
use linerate_model::sample::{Outcome, Sample};
use linerate_model::shell::word;
use linerate_model::units;
use linerate_report::grid::throughput_text;
use linerate_report::{inside, names};
use maud::{Markup, html};

use super::{alarms, findings, series};
use crate::layout::{Body, Shown, commands};
use crate::view::RunView;

/// Tests that are listed, the newest.
const SAMPLES_MAX: usize = 40;

pub(super) fn body(shown: &Shown<'_>) -> Body {
    let (Some(from), Some(to)) = (shown.query.get("from"), shown.query.get("to")) else {
        return Body::missing(
            "Pair",
            html! { h1 { "No pair is named" } p { a href=(shown.to("/matrix", &[])) { "Choose one in the matrix" } } },
        );
    };
    let title = format!("{from} to {to}");
    let above = |body: Body| body.below("Matrix", shown.to("/matrix", &[]));
    let Some(run) = shown.run else { return above(Body::missing(title, html! { h1 { "No finished run" } })) };
    let inventory = &run.snapshot.inventory;
    let cells: Vec<&Cell> = cells(run, from, to);
    if inventory.host(from).is_none() && inventory.host(to).is_none() && cells.is_empty() {
        return above(Body::missing(&title, html! { h1 { "No pair " (title) " in run " (run.row.id) } }));
    }
    let is_pair = |suspect: &Suspect| match suspect {
        Suspect::Pair(a, b) => (a == from && b == to) || (a == to && b == from),
        _ => false,
    };
    let found = findings::section(shown, &|item| findings::is_of_pair(shown, item, from, to));
    let markup = html! {
        h1 { (shown.host_link(from)) " to " (shown.host_link(to)) }
        p { a href=(shown.pair(to, from)) { "The other direction" } }
        (figures(&cells, from))
        @if !found.0.is_empty() { h2 { "Findings" } (found) }
        (alarms::of_pair(shown, from, to))
        (series::section(shown, &is_pair))
        (samples(run, from, to))
        (commands(&[
            (shown.on_hosts(&format!("linerate measure tcp {} {}", word(from), word(to))), "measures one transfer in detail"),
            (format!("linerate history {} {}", word(from), word(to)), "draws its series in the terminal"),
        ]))
    };
    above(Body::new(title.clone(), markup))
}

/// Both directions, the one that was asked for first.
fn cells<'r>(run: &'r RunView, from: &str, to: &str) -> Vec<&'r Cell> {
    let of = |a: &str, b: &str| {
        let cells = run.diagnosis.cells.iter().filter(|cell| cell.from == a && cell.to == b);
        cells.collect::<Vec<_>>()
    };
    [of(from, to), of(to, from)].concat()
}

fn figures(cells: &[&Cell], from: &str) -> Markup {
    let or_nothing = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    html! {
        @if cells.is_empty() { p { "This pair was not tested in this run." } } @else {
            div.scroll { table.plain {
                thead { tr {
                    th { "direction" } th { "layer" } th.n { "throughput" } th.n { "of ceiling" } th { "ceiling" } th.n { "loss" }
                    th.n { "RTT idle" } th.n { "RTT loaded" } th.n { "retransmits/s" } th.n { "CPU s/GB" }
                } }
                tbody {
                    @for cell in cells {
                        tr.suspect[cell.from == from] {
                            td { (cell.from) " to " (cell.to) }
                            td { (cell.layer) }
                            td.n { (throughput_text(cell)) }
                            td.n { (or_nothing(cell.share.map(|share| units::percent(share.min(1.0))))) }
                            td { (or_nothing(cell.ceiling.bps.map(units::rate))) " by " (names::binding(cell.ceiling.binding)) }
                            td.n { (or_nothing(cell.loss.map(units::percent_lost))) }
                            td.n { (or_nothing(cell.rtt_idle_us.map(units::duration_us))) }
                            td.n { (or_nothing(cell.rtt_loaded_us.map(units::duration_us))) }
                            td.n { (or_nothing(cell.retransmits_per_s.map(units::short))) }
                            td.n { (or_nothing(cell.cpu_s_per_gb.map(units::short))) }
                        }
                    }
                }
            } }
        }
    }
}

fn samples(run: &RunView, from: &str, to: &str) -> Markup {
    let of_pair = |sample: &&Sample| sample.test.from == from && sample.test.to == to;
    let samples: Vec<&Sample> = run.snapshot.samples.iter().filter(of_pair).collect();
    let last = samples.iter().rev().find_map(|sample| match &sample.outcome {
        Outcome::Measured(measured) => measured.tx.as_deref().filter(|tx| !tx.inside.is_empty()),
        _ => None,
    });
    html! {
        @if !samples.is_empty() {
            h2 { "Tests" }
            div.scroll { table.plain {
                thead { tr { th { "start, UTC" } th { "layer" } th { "kind" } th { "result" } } }
                tbody {
                    @for sample in samples.iter().rev().take(SAMPLES_MAX) {
                        tr {
                            td { (units::date(sample.start_ms)) }
                            td { (sample.test.layer) }
                            td { (sample.test.kind.name()) }
                            td { (result(sample)) }
                        }
                    }
                }
            } }
            @if samples.len() > SAMPLES_MAX { p.small { "and " (samples.len() - SAMPLES_MAX) " before" } }
        }
        @if let Some(tx) = last {
            h2 { "Inside the connections, as the sender's kernel saw them" }
            (inside::drawings(&tx.inside))
        }
    }
}

fn result(sample: &Sample) -> String {
    match &sample.outcome {
        Outcome::Measured(measured) => {
            measured.throughput_bps.map_or_else(|| "measured".to_owned(), units::rate)
        }
        Outcome::NothingThrough { .. } => "nothing got through".to_owned(),
        Outcome::Invalid { reason, .. } => format!("invalid: {reason}"),
        Outcome::Gap { reason } => format!("not measured: {reason}"),
    }
}
