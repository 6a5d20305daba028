//! The report as one HTML page: works offline, prints, follows the dark mode of the reader. Material in, a
//! page out. It loads nothing from anywhere, runs no script, and every name that came from a host is escaped.
//!
//! The first screen (`first.rs`, `map.rs`) answers what is wrong, what to type and what is proven; all else
//! is closed until it is opened (`closed.rs`). To add a section: one function there and one line in
//! `sections`.

pub mod closed;
pub mod first;
pub mod map;
#[cfg(test)]
mod palette;

use linerate_model::finding::Diagnosis;
use linerate_model::printable::is_control;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::Trial;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::grid::{self, Grid};
use super::material::{Format, Material};
use super::names::unbroken;
use super::{card, single, verdict};
use linerate_model::verdict::Verdict;

/// The style sheet, for light, dark and paper.
pub const STYLE: &str = include_str!("style.css");

/// `linerate show RUN --html`.
#[derive(Debug)]
pub struct Html;

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn extension(&self) -> &'static str {
        "html"
    }

    fn render(&self, m: &Material<'_>) -> String {
        page(m.snapshot, m.diagnosis, m.trials, m.reveal)
    }
}

/// The whole page. `reveal` is what the lab had broken.
pub fn page(snapshot: &Snapshot, diagnosis: &Diagnosis, trials: &[Trial], reveal: Option<&str>) -> String {
    let cluster =
        if snapshot.inventory.name.is_empty() { "linerate" } else { snapshot.inventory.name.as_str() };
    let verdict = verdict::of(snapshot, diagnosis);
    let grids: Vec<Grid> = grid::grids(diagnosis, &snapshot.inventory)
        .iter()
        .map(|grid| grid.by_group(&snapshot.inventory))
        .collect();
    let guilty = map::guilty(&grids, &verdict);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Even if a name slipped through unescaped, nothing could be loaded and nothing would run.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (cluster) ": " (first::title(snapshot, diagnosis, &verdict)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (first::screen(snapshot, diagnosis, &verdict, trials, reveal, &|_| html! {}))
                    @if let Some(grid) = grids.get(guilty) { (first_map(snapshot, grid, &verdict)) }
                    @else { (beside(&verdict)) }
                    // Of single tests the tables are the answer.
                    (single::sections(snapshot))
                    (closed::sections(&closed::Contents { snapshot, diagnosis, trials, grids: &grids, guilty, verdict: &verdict }))
                }
            }
        }
    }
    .into_string()
    .replace(|c: char| is_control(c) && c != '\n', "")
}

/// The matrix in which the first finding shows, and beside it how to read it and what is missing.
fn first_map(snapshot: &Snapshot, grid: &Grid, verdict: &Verdict) -> Markup {
    let bracket = map::Bracket::of(verdict.findings.first(), grid, &snapshot.inventory);
    html! {
        section.map id="matrix" {
            h2 { (map::title(grid)) }
            (map::legend(grid, &bracket))
            div.sides {
                div.side { (map::matrix(grid, &bracket)) }
                aside {
                    @for line in &grid.ceilings { p.small { (unbroken(&card::sentence(line))) } }
                    (beside(verdict))
                }
            }
        }
    }
}

/// What stands below the findings on a terminal.
fn beside(verdict: &Verdict) -> Markup {
    html! {
        @if let Some(text) = verdict::not_seen(&verdict.unseen) { p.small { b { "Not seen: " } (unbroken(&text)) } }
        @for missing in &verdict.unseen.asked_then {
            p.small { b { "Then: " } (unbroken(&format!("{}: {}", missing.what, missing.command))) }
        }
        @if let Some(text) = verdict::harmless_text(verdict) { p.small { (text) ": " a href="#evidence" { "evidence" } } }
    }
}
