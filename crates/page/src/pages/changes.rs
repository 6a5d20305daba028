//! Changes of settings and of levels in one list, newest first: what moved stands beside what was changed.

use linerate_model::fact::FactValue;
use linerate_model::fact_change::SeenBy;
use linerate_model::units;
use linerate_report::{changes, history, names};
use linerate_store::LoggedChange;
use maud::{Markup, html};

use super::matrix::suspect_link;
use crate::layout::{Body, Shown, commands};
use crate::link;

/// Rows of a page.
const ROWS_MAX: usize = 300;

pub(super) fn body(shown: &Shown<'_>) -> Body {
    let host = shown.query.get("host");
    let key = shown.query.get("key").unwrap_or_default();
    let log = shown.view.changes.changes.iter().map(|one| (one.change.seen_ms, setting(shown, one), one));
    let is_wanted = |one: &LoggedChange| {
        host.is_none_or(|host| one.change.host == host) && one.change.key.starts_with(key)
    };
    let mut rows: Vec<(u64, Markup)> =
        log.filter(|(.., one)| is_wanted(one)).map(|(at_ms, row, _)| (at_ms, row)).collect();
    if key.is_empty() {
        rows.extend(levels(shown, host));
    }
    rows.sort_by_key(|(at_ms, _)| std::cmp::Reverse(*at_ms));
    let title = host.map_or_else(|| "Changes".to_owned(), |host| format!("Changes on {host}"));
    let unlisted: u64 = shown
        .view
        .changes
        .unlisted
        .iter()
        .filter(|one| host.is_none_or(|host| one.host == host))
        .map(|one| one.count)
        .sum();
    let markup = html! {
        h1 { (title) }
        p.small {
            "Settings of the last 30 days by the readings of hosts, and levels that moved between surveys of the last 90 days."
            @if host.is_some() || !key.is_empty() { " " a href="/changes" { "All hosts and settings" } }
        }
        @if rows.is_empty() { p { "Nothing changed." } } @else {
            div.scroll { table.plain {
                thead { tr { th { "when, UTC" } th { "where" } th { "what" } th { "from, to" } th { "by" } } }
                tbody { @for (_, row) in rows.iter().take(ROWS_MAX) { (row) } }
            } }
        }
        @if rows.len() > ROWS_MAX { p { "and " (rows.len() - ROWS_MAX) " older ones" } }
        @if unlisted > 0 { p.small { (unlisted) " more changes were only counted." } }
        (commands(&[
            ("linerate changes --since 30d".to_owned(), "prints the same list of settings"),
            (shown.on_hosts("linerate changes --follow"), "reports changes as they happen"),
        ]))
    };
    Body::new(title, markup)
}

fn setting(shown: &Shown<'_>, one: &LoggedChange) -> Markup {
    let change = &one.change;
    let value = |value: &Option<FactValue>| value.as_ref().map_or_else(|| "absent".to_owned(), names::fact);
    html! {
        tr {
            td { (changes::between(change)) }
            td { (shown.host_link(&change.host)) }
            td { a href=(link::to("/changes", &[("key", &change.key)])) { (names::setting(&change.key)) } }
            td { (value(&change.from)) " \u{2192} " (value(&change.to)) }
            td {
                @match (&change.who, &change.seen_by) {
                    (Some(who), _) => (who),
                    (None, SeenBy::Run(run)) => { "seen by run " a href=(link::to("/", &[("run", run)])) { (run) } }
                    (None, other) => { "seen by " (other.name()) }
                }
            }
        }
    }
}

/// Levels that moved, of a host and its pairs or of all.
fn levels<'s>(shown: &'s Shown<'_>, host: Option<&'s str>) -> impl Iterator<Item = (u64, Markup)> + 's {
    use linerate_model::finding::Suspect;
    let over = &shown.view.over_time;
    let is_wanted = move |suspect: &Suspect| match (host, suspect) {
        (None, _) => true,
        (Some(host), Suspect::Host(of)) => host == of,
        (Some(host), Suspect::Pair(a, b)) => host == a || host == b,
        _ => false,
    };
    let moved = over.moved.iter().filter(move |one| is_wanted(&over.series[one.series].suspect));
    moved.map(move |one| {
        let series = &over.series[one.series];
        let (last, first) = (over.at_ms(one.last), over.at_ms(one.first));
        let row = html! {
            tr.suspect {
                td { "between " (units::date_minute(last)) " and " (units::date_minute(first)) " UTC" }
                td { (suspect_link(shown, &series.suspect, &series.suspect.label(series.direction))) }
                td { (series.metric.label()) ", " (series.layer) }
                td { (if one.is_worse { "worse: " } else { "better: " }) (history::levels(series, one)) }
                td { "measured" }
            }
        };
        (first, row)
    })
}
