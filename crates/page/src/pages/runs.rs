//! All runs, each with the address of its overview.

use linerate_model::units;
use maud::html;

use crate::layout::{Body, Shown, commands};
use crate::link;

/// Rows of a page.
const ROWS_MAX: usize = 300;

pub(super) fn body(shown: &Shown<'_>) -> Body {
    let runs = &shown.view.runs;
    let markup = html! {
        h1 { (units::counted(runs.len(), "run")) }
        div.scroll { table.plain {
            thead { tr { th { "run" } th { "start, UTC" } th { "cluster" } th.n { "tests" } th { "result" } } }
            tbody {
                @for run in runs.iter().take(ROWS_MAX) {
                    tr {
                        td { @if run.finished && run.diagnosable { a href=(link::to("/", &[("run", &run.id)])) { (run.id) } } @else { (run.id) } }
                        td { (units::date_minute(run.start_ms)) }
                        td { (run.cluster) }
                        td.n { (run.samples) }
                        td { (if run.finished { run.headline.as_str() } else { "has not ended" }) }
                    }
                }
            }
        } }
        @if runs.len() > ROWS_MAX { p { "and " (runs.len() - ROWS_MAX) " older ones: `linerate runs` lists them" } }
        (commands(&[("linerate diff RUN RUN".to_owned(), "compares two runs")]))
    };
    Body::new("Runs", markup)
}
