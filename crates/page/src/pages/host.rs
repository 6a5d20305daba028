//! A host: what was found of it, how it does in both directions, its series, and in what it differs; and the
//! list of all hosts.

use linerate_model::finding::{Cell, Suspect};
use linerate_model::inventory::Layer;
use linerate_model::shell::word;
use linerate_model::units;
use linerate_report::differ::{self, FactDifference};
use linerate_report::grid::throughput_text;
use linerate_report::{changes, names};
use maud::{Markup, html};

use super::{alarms, drift, drops, findings, series, trials};
use crate::layout::{Body, Shown, commands};
use crate::link;
use crate::view::RunView;

/// Rows of the parts of a page; the rest is counted.
const SETTINGS_MAX: usize = 30;
const CHANGES_MAX: usize = 15;
/// Hosts of a list on one page.
const HOSTS_MAX: usize = 2000;

/// All hosts, with their groups and how many findings speak of them.
pub(super) fn list(shown: &Shown<'_>) -> Body {
    let Some(run) = shown.run else { return Body::new("Hosts", html! { h1 { "No finished run" } }) };
    let mut counts = std::collections::BTreeMap::new();
    for host in run.verdict.findings.iter().flat_map(|item| findings::hosts(shown, item)) {
        *counts.entry(host).or_insert(0_usize) += 1;
    }
    let hosts = &run.snapshot.inventory.hosts;
    let markup = html! {
        h1 { (units::counted(hosts.len(), "host")) }
        div.scroll { table.plain {
            thead { tr { th { "host" } th { "groups" } th.n { "facts" } th.n { "findings" } } }
            tbody {
                @for host in hosts.iter().take(HOSTS_MAX) {
                    tr {
                        td { (shown.host_link(&host.name)) }
                        td { (host.groups.join(", ")) }
                        td.n { (run.snapshot.facts.get(&host.name).map_or(0, |facts| facts.readings.len())) }
                        td.n { @if let Some(count) = counts.get(&host.name) { b { (count) } } }
                    }
                }
            }
        } }
        @if hosts.len() > HOSTS_MAX { p { "and " (hosts.len() - HOSTS_MAX) " more" } }
    };
    Body::new("Hosts", markup)
}

pub(super) fn body(shown: &Shown<'_>) -> Body {
    let Some(name) = shown.query.get("name") else { return list(shown) };
    let above = |body: Body| body.below("Hosts", shown.to("/hosts", &[]));
    let Some(run) = shown.run else { return above(Body::missing(name, html! { h1 { "No finished run" } })) };
    if !run.has_host(name) {
        return above(Body::missing(name, html! { h1 { "No host " (name) " in run " (run.row.id) } }));
    }
    let markup = html! {
        h1 { (name) }
        (groups(run, name))
        (found(shown, name))
        (alarms::of_host(shown, name))
        (directions(shown, run, name))
        (series::section(shown, &|suspect| *suspect == Suspect::Host(name.to_owned())))
        (changed(shown, name))
        (dropped(shown, name))
        (differences(run, name))
        (drift::of_host(shown, name))
        (trials::of_host(shown, name))
        (unseen(run, name))
        (commands(&[
            (shown.on_hosts(&format!("linerate facts {}", word(name))), "prints its settings as they are now"),
            (format!("linerate changes {}", word(name)), "lists what changed on it"),
            (format!("linerate history {}", word(name)), "draws its series in the terminal"),
        ]))
    };
    above(Body::new(name, markup))
}

fn groups(run: &RunView, name: &str) -> Markup {
    let inventory = &run.snapshot.inventory;
    let groups: Vec<String> =
        inventory.groups_of(name).iter().map(|group| names::group(&group.name, inventory)).collect();
    html! { @if !groups.is_empty() { p.small { "In " (groups.join("; ")) } } }
}

fn found(shown: &Shown<'_>, name: &str) -> Markup {
    let section =
        findings::section(shown, &|item| findings::hosts(shown, item).iter().any(|host| host == name));
    html! {
        @if section.0.is_empty() { p { "No finding speaks of this host." } } @else { h2 { "Findings" } (section) }
    }
}

/// How it does as sender and as receiver in each layer: its partners, worst first.
fn directions(shown: &Shown<'_>, run: &RunView, name: &str) -> Markup {
    let mut layers: Vec<Layer> = run.diagnosis.cells.iter().map(|cell| cell.layer).collect();
    layers.sort_unstable();
    layers.dedup();
    let of = |layer: Layer, is_sender: bool| -> Vec<&Cell> {
        let own =
            |cell: &&Cell| cell.layer == layer && (if is_sender { &cell.from } else { &cell.to }) == name;
        let mut cells: Vec<&Cell> = run.diagnosis.cells.iter().filter(own).collect();
        let share = |cell: &Cell| cell.share.or(cell.throughput_bps).unwrap_or(f64::MAX);
        cells.sort_by(|a, b| share(a).total_cmp(&share(b)));
        cells
    };
    html! {
        h2 { "Directions" }
        @for layer in layers {
            @for (is_sender, verb) in [(true, "sends"), (false, "receives")] {
                @let cells = of(layer, is_sender);
                @if !cells.is_empty() { (direction(shown, &cells, is_sender, &format!("{layer}: what it {verb}"))) }
            }
        }
    }
}

/// The worst partners of a direction, and the median of all.
fn direction(shown: &Shown<'_>, cells: &[&Cell], is_sender: bool, title: &str) -> Markup {
    const PARTNERS_MAX: usize = 8;
    // Worst first; what was not seen comes last.
    let seen = cells.iter().filter(|cell| cell.throughput_bps.is_some()).count();
    let median = seen
        .checked_sub(1)
        .map_or_else(String::new, |last| format!(", median {}", throughput_text(cells[last / 2])));
    html! {
        h3 { (title) }
        p.small { (units::counted(cells.len(), "pair")) (median) }
        div.scroll { table.plain {
            thead { tr { th { (if is_sender { "to" } else { "from" }) } th.n { "throughput" } th.n { "of ceiling" } th { "ceiling" } } }
            tbody {
                @for cell in cells.iter().take(PARTNERS_MAX) {
                    tr {
                        td { a href=(shown.to("/pair", &[("from", &cell.from), ("to", &cell.to)])) { (if is_sender { &cell.to } else { &cell.from }) } }
                        td.n { (throughput_text(cell)) }
                        td.n { (cell.share.map_or_else(String::new, |share| units::percent(share.min(1.0)))) }
                        td { (names::binding(cell.ceiling.binding)) }
                    }
                }
            }
        } }
    }
}

fn dropped(shown: &Shown<'_>, name: &str) -> Markup {
    let dropped = drops::of_hosts(shown, &[name.to_owned()]);
    html! { @if !dropped.0.is_empty() { h2 { "Drops" } (dropped) } }
}

fn changed(shown: &Shown<'_>, name: &str) -> Markup {
    let log = shown.view.changes.changes.iter().filter(|one| one.change.host == name);
    let all: Vec<_> = log.collect();
    html! {
        h2 { "Changes" }
        @if all.is_empty() { p { "No setting of it changed in the last 30 days." } }
        ul.plainlist {
            @for one in all.iter().take(CHANGES_MAX) { li { (changes::in_short(&one.change)) ", " (changes::between(&one.change)) } }
        }
        @if all.len() > CHANGES_MAX { p { a href=(link::to("/changes", &[("host", name)])) { "All " (all.len()) " changes" } } }
    }
}

fn differences(run: &RunView, name: &str) -> Markup {
    let (rows, all) = differ::of_host(&run.snapshot, &run.diagnosis, name, SETTINGS_MAX);
    let own = |row: &FactDifference| {
        row.others
            .iter()
            .find(|(_, hosts)| hosts.iter().any(|of| of == name))
            .map_or("", |(value, _)| value)
            .to_owned()
    };
    let shown = |value: &str| if value.is_empty() { "(lacks it)".to_owned() } else { value.to_owned() };
    html! {
        @if !rows.is_empty() {
            h2 { "Settings that differ" }
            p.small { "In bold what a finding rests on. A difference alone proves nothing." }
            div.scroll { table.plain {
                thead { tr { th { "setting" } th { "here" } th { "most of its kind" } } }
                tbody {
                    @for row in &rows { tr.suspect[row.suspect] { td { (names::setting(&row.key)) } td { (shown(&own(row))) } td { (shown(&row.most)) } } }
                }
            } }
            @if all > rows.len() { p.small { "and " (all - rows.len()) " more" } }
        }
    }
}

fn unseen(run: &RunView, name: &str) -> Markup {
    let gaps = run.snapshot.facts.get(name).map_or(&[][..], |facts| &facts.gaps);
    html! {
        @if !gaps.is_empty() {
            details.section {
                summary { "Not read (" (gaps.len()) ")" }
                ul { @for gap in gaps { li { (gap.what.to_string()) ": " (gap.reason) } } }
            }
        }
    }
}
