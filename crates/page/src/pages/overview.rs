//! The first page: alarms, the verdict of the last run, what changed, and the matrix in which it shows.

use linerate_model::printable::one_line;
use linerate_model::units;
use linerate_report::html::{closed, first};
use linerate_report::{changes, history};
use maud::{Markup, html};

use super::{alarms, findings, matrix};
use crate::layout::{Body, Shown, commands};
use crate::link;

/// Changes of settings and of levels that are listed.
const CHANGES_MAX: usize = 8;
/// Changes of settings up to this age, milliseconds: 24 h.
const RECENT_MS: u64 = 86_400_000;

pub(super) fn body(shown: &Shown<'_>) -> Body {
    let Some(run) = shown.run else { return no_run(shown) };
    let trials: Vec<_> = shown.view.trials.iter().filter(|trial| trial.run == run.row.id).cloned().collect();
    let id = &run.row.id;
    let markup = html! {
        @if alarms::is_any_open(shown) { (alarms::recent(shown)) }
        (first::screen(&run.snapshot, &run.diagnosis, &run.verdict, &trials, None, &|item| findings::more(shown, item)))
        @if !alarms::is_any_open(shown) { (alarms::recent(shown)) }
        (changed(shown))
        (matrix::first(shown))
        (closed::section("evidence", &format!("Evidence ({})", run.diagnosis.findings.len()), &closed::findings(&run.snapshot, &run.diagnosis)))
        (commands(&[
            (format!("linerate show {id}"), "prints this run; with --html it writes one file"),
            (shown.on_hosts("linerate survey"), "measures again"),
        ]))
    };
    Body::new(first::title(&run.snapshot, &run.diagnosis, &run.verdict), markup)
}

fn no_run(shown: &Shown<'_>) -> Body {
    let is_quiet = shown.view.is_watched && !alarms::is_any_open(shown);
    let has_changed = !shown.view.changes.changes.is_empty();
    // Where a watch has reported its inventory, the command runs as it stands.
    let inventory =
        shown.view.alarms.iter().map(|one| one.inventory.as_str()).find(|found| !found.is_empty());
    let survey = format!("linerate survey {}", inventory.unwrap_or("HOST HOST"));
    let markup = html! {
        @if is_quiet { h1 { "No open alarm" } }
        (alarms::recent(shown))
        @if shown.view.is_watched {
            @if !is_quiet { h1 { "No finished survey" } }
            p { "A watch has measured; no survey has compared all pairs yet." }
        } @else {
            h1 { "No finished run" }
            p { "Nothing was measured yet, or no run came to its end." }
        }
        @if shown.view.is_watched || has_changed { (changed(shown)) }
        (commands(&[(survey, "measures all pairs and names what is slow")]))
    };
    Body::new(if is_quiet { "No open alarm" } else { "No finished run" }, markup)
}

/// Settings that changed in the last 24 hours, and levels that moved.
fn changed(shown: &Shown<'_>) -> Markup {
    let since_ms = shown.now_ms.saturating_sub(RECENT_MS);
    let log = &shown.view.changes.changes;
    let recent: Vec<_> = log.iter().filter(|one| one.change.seen_ms >= since_ms).collect();
    let over = &shown.view.over_time;
    html! {
        section id="changed" {
            h2 { "What changed" }
            @if recent.is_empty() && over.moved.is_empty() {
                p {
                    "No setting changed in the last 24 hours"
                    @if !over.surveys.is_empty() { ", and no level moved over " (units::counted(over.surveys.len(), "survey")) }
                    "."
                }
            }
            ul.plainlist {
                @for one in over.moved.iter().take(CHANGES_MAX) {
                    @let series = &over.series[one.series];
                    li {
                        b { (if one.is_worse { "Worse" } else { "Better" }) } ": "
                        (matrix::suspect_link(shown, &series.suspect, &one_line(&series.suspect.label(series.direction))))
                        ", " (series.metric.label()) ", " (series.layer) ": " (history::levels(series, one))
                        ", between " (units::date_minute(over.at_ms(one.last))) " and " (units::date_minute(over.at_ms(one.first))) " UTC"
                    }
                }
                @for one in recent.iter().take(CHANGES_MAX) {
                    li { (shown.host_link(&one.change.host)) " " (changes::of_host(&one.change)) ", " (changes::between(&one.change)) }
                }
            }
            @let rest = recent.len().saturating_sub(CHANGES_MAX) + over.moved.len().saturating_sub(CHANGES_MAX);
            p { a href=(link::to("/changes", &[])) { @if rest > 0 { (rest) " more changes" } @else { "All changes" } } }
        }
    }
}
