//! The report as one HTML page: works offline, prints, follows the dark mode of the reader. Material in, a
//! page out. It loads nothing from anywhere, runs no script, and every name that came from a host is escaped.

use linerate_model::SCHEMA;
use linerate_model::finding::Diagnosis;
use linerate_model::printable::is_control;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::Trial;
use linerate_model::units;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::card::{self, Card, CardRow, RowStyle};
use super::grid::{self, Grid, GridMetric, SquareKind};
use super::material::{Format, Material};
use super::{chart, differ, names, text};

/// A page stays one that a browser opens at once, however large the cluster: at most so many findings, worst
/// pairs, remarks of a kind and groups.
const FINDINGS_MAX: usize = 50;
const WORST_MAX: usize = 100;
const LINES_MAX: usize = 200;
const GROUPS_MAX: usize = 60;
/// Differing facts that are listed.
const DIFFERENCES_MAX: usize = 60;
/// From this many hosts on the heat map is drawn small, with upright names.
const MANY: usize = 13;

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
        if snapshot.inventory.name.is_empty() { "cluster" } else { snapshot.inventory.name.as_str() };
    let healthy = diagnosis.findings.is_empty();
    // A page of single tests has no matrix to compare with.
    let single = super::single::is_single(snapshot);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Even if a name slipped through unescaped, nothing could be loaded and nothing would run.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (cluster) ": " (diagnosis.headline) }
                style { (PreEscaped(include_str!("html.css"))) }
            }
            body {
                main {
                    header class=(if healthy { "verdict good" } else { "verdict" }) {
                        p.over { "linerate, cluster " (cluster) @if snapshot.start_ms > 0 { ", " (units::date(snapshot.start_ms)) } }
                        h1 { (unbroken(&diagnosis.headline)) }
                        p.meta { (at_a_glance(snapshot, diagnosis, trials)) }
                    }
                    @if let Some(reveal) = reveal {
                        p.reveal { b { "What was broken: " } (reveal) }
                    }
                    @for grid in grid::grids(diagnosis, &snapshot.inventory) { (heat_map(&grid)) }
                    (findings(snapshot, diagnosis))
                    (trials_section(trials))
                    @if let Some(series) = chart::series(snapshot, diagnosis).filter(|_| !single) {
                        h2 { "Throughput over time" }
                        (series)
                    }
                    (super::disk_survey::section(snapshot, diagnosis))
                    (super::single::sections(snapshot))
                    (differences(snapshot, diagnosis))
                    (tests_and_gaps(snapshot, diagnosis))
                    (super::imported::section(snapshot))
                    @if !single { (how_to_read()) }
                    (about(snapshot, diagnosis))
                }
            }
        }
    }
    .into_string()
    .replace(|c: char| is_control(c) && c != '\n', "")
}

fn at_a_glance(snapshot: &Snapshot, diagnosis: &Diagnosis, trials: &[Trial]) -> String {
    let hosts = snapshot.inventory.hosts.iter().filter(|h| !h.endpoints.is_empty()).count();
    if super::single::is_single(snapshot) {
        let words = text::test_counts(snapshot)
            .iter()
            .map(|(kind, n)| format!("{kind}: {}", n[0]))
            .collect::<Vec<_>>();
        return words.join(" · ");
    }
    let pairs = diagnosis.cells.iter().filter(|c| c.throughput_bps.is_some()).count();
    let count =
        |n: usize, one: &str, many: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {many}") };
    let mut parts = vec![
        count(hosts, "host", "hosts"),
        count(pairs, "directed pair measured", "directed pairs measured"),
        count(diagnosis.findings.len(), "finding", "findings"),
    ];
    if !trials.is_empty() {
        parts.push(count(trials.len(), "trial", "trials"));
    }
    let blind = text::blind_spots(snapshot, diagnosis).len();
    if blind > 0 {
        parts.push(count(blind, "blind spot", "blind spots"));
    }
    parts.join(" · ")
}

fn heat_map(grid: &Grid) -> Markup {
    let many = grid.hosts.len() >= MANY;
    html! {
        section.map {
        h2 { (grid.title()) }
        @for line in &grid.ceilings { p.small { (card::sentence(line)) } }
        @if grid.hosts.len() > grid::PAGE_HOSTS_MAX { (worst_pairs(grid)) } @else { (squares(grid, many)) }
        (legend(grid))
        }
    }
}

/// Of a cluster that no matrix can show: the worst pairs.
fn worst_pairs(grid: &Grid) -> Markup {
    let worst = grid.worst();
    let bad = worst.iter().filter(|(_, _, s)| s.heat > 0).count();
    html! {
        p { (worst.len()) " pairs seen, " (bad) " of them below what they should reach. The worst:" }
        table.plain {
            thead { tr { th { "sender" } th { "receiver" } th.n { "value" } } }
            tbody {
                @for (r, c, square) in worst.iter().take(WORST_MAX) {
                    tr {
                        td { (grid.hosts[*r]) }
                        td { (grid.hosts[*c]) }
                        td class=(square_class(square)) title=(square.title) { (square.text) }
                    }
                }
            }
        }
    }
}

fn squares(grid: &Grid, many: bool) -> Markup {
    html! {
        div.scroll {
            table class=(if many { "heat many" } else { "heat" }) {
                caption { "Rows send, columns receive." }
                thead {
                    tr {
                        td {}
                        @for (host, short) in grid.hosts.iter().zip(&grid.short) { th.col scope="col" title=(host) { (names::host(short, 20)) } }
                    }
                }
                tbody {
                    @for i in 0..grid.hosts.len() {
                        tr {
                            th scope="row" title=(grid.hosts[i]) { (names::host(&grid.short[i], 24)) }
                            @for square in grid.row(i) {
                                td class=(square_class(&square)) title=(square.title) { (square.text) }
                            }
                            @if !grid.groups[i].is_empty() { td.grp { (grid.groups[i]) } }
                        }
                    }
                }
            }
        }
    }
}

fn square_class(square: &grid::Square) -> String {
    match square.kind {
        SquareKind::Itself => "itself".to_owned(),
        SquareKind::Unseen => "unseen".to_owned(),
        SquareKind::Dead | SquareKind::One => format!("h{}", square.heat),
        SquareKind::Two => format!("h{} two", square.heat),
    }
}

fn legend(grid: &Grid) -> Markup {
    html! {
        ul.legend {
            @if grid.metric == GridMetric::Share {
                @for (i, words) in grid::HEAT_WORDS.iter().enumerate() { li { i class=(format!("h{i}")) {} (words) } }
            } @else {
                li { i.h0 {} "as the good ones" }
                li { i.h3 {} "clearly worse" }
                li { i.h5 {} "worst" }
            }
            @if grid.has(SquareKind::Two) { li { i.two {} "jumps between two levels: both are shown" } }
            @if grid.has(SquareKind::Dead) { li { "0: nothing got through" } }
            @if grid.has(SquareKind::Unseen) { li { i.unseen {} "?: not seen" } }
        }
    }
}

fn findings(snapshot: &Snapshot, diagnosis: &Diagnosis) -> Markup {
    html! {
        @if !diagnosis.findings.is_empty() {
            h2 { (if diagnosis.findings.len() == 1 { "The finding" } else { "The findings, worst first" }) }
        }
        @for finding in diagnosis.findings.iter().take(FINDINGS_MAX) {
            article.card {
                p.over { (super::words::location(finding)) }
                (card_body(&card::finding(finding, &snapshot.inventory)))
            }
        }
        @if diagnosis.findings.len() > FINDINGS_MAX {
            p { "And " (diagnosis.findings.len() - FINDINGS_MAX) " more findings: linerate show --json has all." }
        }
    }
}

fn card_body(card: &Card) -> Markup {
    html! {
        h3 { (unbroken(&card.heading)) }
        dl.rows {
            @for row in &card.rows { dt { (row.label) } dd { (row_body(row)) } }
        }
    }
}

/// Numbers stay with their percent sign at the end of a line.
fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

fn row_body(row: &CardRow) -> Markup {
    html! {
        @match row.shape {
            RowStyle::Prose => { @for line in &row.lines { p { (unbroken(line)) } } }
            RowStyle::List if row.lines.len() == 1 => { p { (unbroken(&row.lines[0])) } }
            RowStyle::List => { ul { @for line in &row.lines { li { (unbroken(line)) } } } }
            RowStyle::Commands | RowStyle::Instruction => { pre { (row.lines.join("\n")) } }
        }
    }
}

fn trials_section(trials: &[Trial]) -> Markup {
    html! {
        @if !trials.is_empty() { h2 { "What was tried" } }
        @for trial in trials {
            article.card {
                (card_body(&card::trial(trial)))
                @if !trial.arms.is_empty() {
                    figure {
                        (chart::arms(trial))
                        figcaption {
                            "Each arm of the trial: hollow dots with the old values, filled dots (shaded) with the change"
                            @if trial.control.is_some() { ", grey squares the control pair" }
                            ". Dashed lines: the two medians."
                        }
                    }
                }
                @if trial.effect.is_some() {
                    figure {
                        (chart::effect(trial))
                        figcaption { "How many times better, with the interval that holds the truth in 95 of 100 trials; logarithmic." }
                    }
                }
            }
        }
    }
}

fn differences(snapshot: &Snapshot, diagnosis: &Diagnosis) -> Markup {
    let (rows, all) = differ::differences(snapshot, diagnosis, DIFFERENCES_MAX);
    let shown = |value: &str| if value.is_empty() { "(lacks it)".to_owned() } else { value.to_owned() };
    html! {
        @if !rows.is_empty() {
            h2 { "Settings that are not the same everywhere" }
            p.small { "In bold what a finding rests on. A difference alone proves nothing." }
            div.scroll {
                table.plain {
                    thead { tr { th { "setting" } th { "most hosts" } th { "others" } } }
                    tbody {
                        @for row in &rows {
                            tr.suspect[row.suspect] {
                                td { (names::setting(&row.key)) }
                                td { (shown(&row.most)) }
                                td {
                                    @for (i, (value, hosts)) in row.others.iter().enumerate() {
                                        @if i > 0 { br; }
                                        (shown(value)) " (" (names::list(hosts, 5)) ")"
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @if all > rows.len() { p.small { "And " (all - rows.len()) " more: linerate diff HOST HOST." } }
        }
    }
}

fn tests_and_gaps(snapshot: &Snapshot, diagnosis: &Diagnosis) -> Markup {
    let counts = text::test_counts(snapshot);
    let lists = [
        ("Tuning advice", text::advice(diagnosis)),
        ("Worth knowing", diagnosis.notes.clone()),
        ("Not used as evidence", diagnosis.refused.clone()),
        ("Not seen", text::blind_spots(snapshot, diagnosis)),
        ("Left out by the time budget", snapshot.left_out.clone()),
    ];
    html! {
        h2 { "Tests and gaps" }
        @if !counts.is_empty() {
            table.plain {
                thead {
                    tr { th { "test" } th.n { "run" } th.n { "measured" } th.n { "nothing got through" } th.n { "invalid" } th.n { "could not run" } }
                }
                tbody {
                    @for (kind, numbers) in &counts {
                        tr { td { (kind) } @for number in numbers { td.n { (number) } } }
                    }
                }
            }
        }
        @for (title, lines) in &lists {
            @if !lines.is_empty() {
                h3 { (title) }
                ul { @for line in text::some(lines, LINES_MAX) { li { (line) } } }
            }
        }
        @if lists.iter().all(|(_, lines)| lines.is_empty()) { p { "Everything that was planned was seen." } }
    }
}

fn how_to_read() -> Markup {
    html! {
        h2 { "How to read this" }
        p {
            "Each number of the matrix is one directed pair: the row sends, the column receives. It stands against its ceiling, "
            "the smallest of what the link, the shared uplink, the PCIe slot, the TCP window and one CPU core allow. A bad row is a "
            "sender, a bad column a receiver, a bad block a group. A finding names the smallest place that explains all bad cells, "
            "then the setting, driver or path there that explains the shape of the loss. Percentages of certainty come from comparing "
            "the explanations with each other: what nobody knows of is not among them. A trial measures with and without the change in "
            "turn, beside a pair that the change cannot touch, so that a quieter hour is not mistaken for a cure."
        }
    }
}

fn about(snapshot: &Snapshot, diagnosis: &Diagnosis) -> Markup {
    let inventory = &snapshot.inventory;
    html! {
        h2 { "About this run" }
        table.plain {
            tbody {
                tr { td { "run" } td { (snapshot.id) @if let Some(parent) = &snapshot.parent { ", follows " (parent) } } }
                tr { td { "started" } td { (units::date(snapshot.start_ms)) } }
                tr { td { "cluster" } td { (inventory.name) ", " (inventory.hosts.len()) " machines" } }
                tr {
                    td { "groups" }
                    td { @for (i, g) in inventory.groups.iter().take(GROUPS_MAX).enumerate() { @if i > 0 { "; " } (names::group(&g.name, inventory)) }
                    @if inventory.groups.len() > GROUPS_MAX { "; and " (inventory.groups.len() - GROUPS_MAX) " more" } }
                }
                tr { td { "facts" } td { (snapshot.facts.values().map(|f| f.readings.len()).sum::<usize>()) " read on " (snapshot.facts.len()) " machines" } }
                tr { td { "written by" } td { "linerate " (env!("CARGO_PKG_VERSION")) ", schema " (SCHEMA) ", diagnosis of run " (diagnosis.run) } }
            }
        }
    }
}
