//! The kept set beside the facts of the last run. Files of hosts are read by `linerate drift` alone, so
//! whether a value survives a boot is not known here.

use linerate_model::drift::{DriftRow, DriftState};
use linerate_model::shell::word;
use linerate_report::{changes, names};
use maud::{Markup, html};

use crate::layout::{Body, Shown, commands};
use crate::view::DriftView;

/// Rows of a page.
const ROWS_MAX: usize = 300;

pub(super) fn body(shown: &Shown<'_>) -> Body {
    let again =
        (shown.on_hosts("linerate drift"), "reads the hosts now, and what their files give after a boot");
    let markup = match &shown.view.drift {
        DriftView::Absent(reason) => html! {
            h1 { "No kept set" }
            p { (reason) }
            (commands(&[(shown.on_hosts("linerate drift --init"), "writes one from the kept trials"), again]))
        },
        DriftView::Rows { file, rows } => {
            let drifted = rows.iter().filter(|row| row.state == DriftState::Drifted).count();
            html! {
                h1 { (drifted) " of " (rows.len()) " kept settings drifted" }
                p.small { (file) ", beside the facts of the newest run" @if let Some(run) = shown.view.run.as_ref() { " (" (run.row.id) ")" } }
                (table(shown, &rows.iter().collect::<Vec<_>>()))
                (commands(&[again, (shown.on_hosts("linerate drift --put-back"), "puts back what has the policy put-back")]))
            }
        }
    };
    Body::new("Drift", markup)
}

/// The kept settings of a host.
pub(super) fn of_host(shown: &Shown<'_>, name: &str) -> Markup {
    let DriftView::Rows { rows, .. } = &shown.view.drift else { return html! {} };
    let rows: Vec<&DriftRow> = rows.iter().filter(|row| row.kept.host == name).collect();
    html! {
        @if !rows.is_empty() {
            h2 { "Kept settings" }
            (table(shown, &rows))
            @if rows.iter().any(|row| row.state == DriftState::Drifted) {
                p { pre.cmd { code { (shown.on_hosts(&format!("linerate drift {} --put-back", word(name)))) } } }
            }
        }
    }
}

/// What drifted first.
fn table(shown: &Shown<'_>, rows: &[&DriftRow]) -> Markup {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| std::cmp::Reverse(row.state));
    html! {
        div.scroll { table.plain {
            thead { tr { th { "state" } th { "host" } th { "setting" } th { "kept" } th { "in force" } th { "changed" } } }
            tbody {
                @for row in rows.iter().take(ROWS_MAX) {
                    tr.suspect[row.state == DriftState::Drifted] {
                        td { (state(row)) }
                        td { (shown.host_link(&row.kept.host)) }
                        td { (names::setting(&row.kept.key)) }
                        td { (names::fact(&row.kept.value)) }
                        td { (row.now.as_ref().map_or_else(|| "absent".to_owned(), names::fact)) }
                        td { @if let Some(change) = &row.changed { (changes::clauses(change)[0]) } }
                    }
                }
            }
        } }
        @if rows.len() > ROWS_MAX { p { "and " (rows.len() - ROWS_MAX) " more" } }
    }
}

fn state(row: &DriftRow) -> String {
    match row.state {
        DriftState::Drifted => "drifted".to_owned(),
        DriftState::WillNotSurvive => "lost by a reboot".to_owned(),
        DriftState::Unreadable => format!("not read: {}", row.reason.as_deref().unwrap_or("unknown")),
        DriftState::Same => "in force".to_owned(),
    }
}
