//! Packets that hosts drop, as `linerate drops` counted them last: which hosts drop the same, who drops what
//! and why, and what TCP sends again.

use std::collections::BTreeSet;

use linerate_history::{DropsRecord, Recorded as _};
use linerate_model::drops::{DropReport, DropRow, HostDrops};
use linerate_model::inventory::HostName;
use linerate_model::units;
use linerate_report::drops as words;
use maud::{Markup, html};

use crate::layout::{Body, Shown, commands};
use crate::link;

/// Rows of the parts of the page; the rest is counted.
const ROWS_MAX: usize = 300;

pub(super) fn body(shown: &Shown<'_>) -> Body {
    let all = &shown.view.drops;
    let again = |command: String| commands(&[(command, "counts again")]);
    let asked = shown.query.get("id");
    let Some(one) = all.iter().find(|one| asked.is_none_or(|id| one.id() == id)) else {
        let title = if asked.is_some() { "No such count of drops" } else { "No drops counted yet" };
        let markup = html! { h1 { (title) } (again(shown.on_hosts("linerate drops"))) };
        let is_missing = asked.is_some();
        return if is_missing { Body::missing(title, markup) } else { Body::new("Drops", markup) };
    };
    let report = &one.report;
    let bad = report.hosts.iter().filter(|host| host.rows.iter().any(|row| !row.is_harmless())).count();
    let checks: Vec<(String, String)> = words::checks(report);
    let markup = html! {
        h1 {
            @if bad == 0 { "No drops but harmless ones" }
            @else {
                (units::counted(bad, "host")) (if bad == 1 { " drops" } else { " drop" }) " packets that are not harmless"
            }
        }
        p.small {
            "Counted " (units::date_minute(one.start_ms)) " UTC for " (units::span_s(report.seconds))
            " on " (units::counted(report.hosts.len(), "host"))
            @if !one.cluster.is_empty() { " of " (one.cluster) }
        }
        (same(shown, report))
        (dropped(shown, report))
        (resent(shown, report))
        (unseen(report))
        @if !checks.is_empty() {
            section.commands {
                h2 { "Next" }
                @for (host, check) in &checks { p { span.on { "on " (host) ": " } pre.cmd { code { (check) } } } }
            }
        }
        (again(one.command.clone()))
        (earlier(all, one))
    };
    Body::new("Drops", markup)
}

/// Which hosts drop the same packets, and what only they have.
fn same(shown: &Shown<'_>, report: &DropReport) -> Markup {
    html! {
        @if !report.groups.is_empty() {
            h2 { "Hosts that drop the same" }
            @for group in &report.groups {
                article.card {
                    p { b { (words::same(group)) } }
                    p.small { @for host in &group.hosts { (shown.host_link(host)) " " } }
                    @if !group.shared.is_empty() {
                        p { "Only they have:" }
                        ul.plainlist { @for fact in &group.shared { li { (fact) } } }
                        p.small { "A fact splits the hosts so by chance: " (units::percent(group.shared_by_chance)) }
                    }
                }
            }
        }
    }
}

/// Rows of all hosts: what is not harmless, and the rest closed.
fn dropped(shown: &Shown<'_>, report: &DropReport) -> Markup {
    let rows = report.hosts.iter().flat_map(|host| host.rows.iter().map(move |row| (&host.host, row)));
    let (harmless, others): (Vec<_>, Vec<_>) = rows.partition(|(_, row)| row.is_harmless());
    html! {
        @if !others.is_empty() { h2 { "Who drops what" } (table(shown, &others, report.seconds)) }
        @if !harmless.is_empty() {
            details.section {
                summary { "Harmless drops (" (harmless.len()) ")" }
                (table(shown, &harmless, report.seconds))
            }
        }
    }
}

fn table(shown: &Shown<'_>, rows: &[(&HostName, &DropRow)], seconds: f64) -> Markup {
    html! {
        div.scroll { table.plain {
            thead { tr {
                th { "host" } th { "reason" } th { "packets of" }
                th.n { "packets" } th.n { "a second" } th { "meaning" }
            } }
            tbody {
                @for (host, row) in rows.iter().take(ROWS_MAX) {
                    tr.suspect[!row.is_harmless()] {
                        td { (shown.host_link(host)) }
                        td { (words::short(&row.reason)) }
                        td {
                            (row.ether_type.map_or_else(String::new, words::protocol)) " "
                            (row.device.as_deref().unwrap_or_default())
                        }
                        td.n { (row.packets) }
                        td.n { (units::short(row.packets as f64 / seconds.max(f64::MIN_POSITIVE))) }
                        td { (row.class.as_ref().map_or("", |class| class.title.as_str())) }
                    }
                }
            }
        } }
        @if rows.len() > ROWS_MAX { p { "and " (rows.len() - ROWS_MAX) " more" } }
    }
}

/// What TCP sent again.
fn resent(shown: &Shown<'_>, report: &DropReport) -> Markup {
    let hosts: Vec<&HostDrops> = report.hosts.iter().filter(|host| host.resent.again > 0).collect();
    html! {
        @if !hosts.is_empty() {
            h2 { "Sent again by TCP" }
            @if let Some(most) = &report.resent_to { p { b { (words::resent_to(most)) } } }
            div.scroll { table.plain {
                thead { tr {
                    th { "host" } th.n { "segments" } th.n { "of" }
                    th.n { "a gigabyte" } th.n { "had arrived" } th { "most to" }
                } }
                tbody {
                    @for host in hosts.iter().take(ROWS_MAX) {
                        tr {
                            td { (shown.host_link(&host.host)) }
                            td.n { (host.resent.again) }
                            td.n { (host.resent.sent) }
                            td.n { (host.resent.per_gigabyte.map_or_else(String::new, units::short)) }
                            td.n { (host.resent.needless) }
                            td {
                                @if let Some(row) = host.resent.rows.first() {
                                    @if let Some(name) = &row.host { (shown.host_link(name)) } @else { (row.peer) }
                                    ", " (row.kind.word()) ": " (row.segments)
                                }
                            }
                        }
                    }
                }
            } }
            @if hosts.len() > ROWS_MAX { p { "and " (hosts.len() - ROWS_MAX) " more hosts" } }
        }
    }
}

/// Where the kernel's reasons are not known, what was not seen, and the cost.
fn unseen(report: &DropReport) -> Markup {
    let alone: Vec<_> =
        report.hosts.iter().filter_map(|host| Some((&host.host, host.counters_alone.as_ref()?))).collect();
    html! {
        @if !alone.is_empty() || !report.gaps.is_empty() {
            details.section {
                summary { "Not seen (" (alone.len() + report.gaps.len()) ")" }
                ul {
                    @for (host, reason) in alone {
                        li { (host) ": counters alone, without the kernel's reasons: " (reason) }
                    }
                    @for gap in &report.gaps { li { (gap.what.to_string()) ": " (gap.reason) } }
                }
            }
        }
        @if let Some(cost) = words::cost(report) { p.small { (cost) } }
    }
}

/// Counts before and after this one.
fn earlier(all: &[DropsRecord], one: &DropsRecord) -> Markup {
    html! {
        @if all.len() > 1 {
            h2 { "Other times" }
            p.choices {
                @for other in all {
                    @let is_shown = other.start_ms == one.start_ms;
                    a href=(link::to("/drops", &[("id", &other.id())])) aria-current=[is_shown.then_some("true")] {
                        (units::date_minute(other.start_ms))
                    }
                }
            }
        }
    }
}

/// What these hosts dropped when it was counted last, without what is harmless.
pub(super) fn of_hosts(shown: &Shown<'_>, hosts: &[HostName]) -> Markup {
    let wanted: BTreeSet<&HostName> = hosts.iter().collect();
    let is_of = |one: &&DropsRecord| one.report.hosts.iter().any(|host| wanted.contains(&host.host));
    let Some(one) = shown.view.drops.iter().find(is_of) else { return html! {} };
    let of = one.report.hosts.iter().filter(|host| wanted.contains(&host.host));
    let rows = of.flat_map(|host| host.rows.iter().map(move |row| (&host.host, row)));
    let rows: Vec<_> = rows.filter(|(_, row)| !row.is_harmless()).collect();
    html! {
        @if !rows.is_empty() {
            p.small {
                "Dropped " (units::date_minute(one.start_ms)) " UTC, counted for "
                (units::span_s(one.report.seconds)) ": "
                a href=(link::to("/drops", &[("id", &one.id())])) { "all of it" }
            }
            (table(shown, &rows, one.report.seconds))
        }
    }
}
