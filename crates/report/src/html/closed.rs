//! The sections of a page that are closed until they are opened, each with an anchor. Material in, markup
//! out.

use linerate_model::SCHEMA;
use linerate_model::finding::Diagnosis;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::Trial;
use linerate_model::units;
use linerate_model::verdict::Verdict;
use maud::{Markup, html};

use super::map;
use crate::card::{self, Card, CardRow, RowStyle};
use crate::grid::Grid;
use crate::names::unbroken;
use crate::{chart, differ, disk_survey, imported, names, single, text};

/// A page stays one that a browser opens at once, however large the cluster: at most so many findings,
/// remarks of a kind and groups.
const FINDINGS_MAX: usize = 50;
const LINES_MAX: usize = 200;
const GROUPS_MAX: usize = 60;
/// Differing facts that are listed.
const DIFFERENCES_MAX: usize = 60;

/// What the sections are made of.
#[derive(Debug)]
pub(super) struct Contents<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) diagnosis: &'a Diagnosis,
    pub(super) trials: &'a [Trial],
    pub(super) grids: &'a [Grid],
    /// The matrix of the first screen.
    pub(super) guilty: usize,
    pub(super) verdict: &'a Verdict,
}

/// All of them, in order; those without content are left out.
pub(super) fn sections(of: &Contents<'_>) -> Markup {
    let (snapshot, diagnosis) = (of.snapshot, of.diagnosis);
    let is_single = single::is_single(snapshot);
    let remarks = [
        ("advice", "Tuning advice", text::advice(diagnosis)),
        ("notes", "Worth knowing", disk_survey::other_notes(snapshot, &diagnosis.notes)),
        ("unseen", "Not seen", text::blind_spots(snapshot, diagnosis)),
        ("unused", "Tests not used as evidence", diagnosis.refused.clone()),
        ("left-out", "Left out by the time budget", snapshot.left_out.clone()),
    ];
    let series = chart::series(snapshot, diagnosis).filter(|_| !is_single);
    let (differing, all) = differ::differences(snapshot, diagnosis, DIFFERENCES_MAX);
    html! {
        div.more {
            (section("evidence", &counted("Evidence", diagnosis.findings.len()), &findings(snapshot, diagnosis)))
            (section("trials", &counted("Trials", of.trials.len()), &trials(of.trials)))
            (section("matrices", &counted("Other matrices", of.grids.len().saturating_sub(1)), &matrices(of)))
            (section("charts", "Throughput over time", &series.unwrap_or_default()))
            (section("drives", "Drives", &disk_survey::section(snapshot, diagnosis)))
            (section("settings", &counted("Settings that differ", all), &differences(&differing, all)))
            @for (id, title, lines) in &remarks {
                (section(id, &counted(title, lines.len()), &list(lines)))
            }
            (section("tests", "Tests", &tests(snapshot)))
            (section("read", "What was read", &imported::section(snapshot)))
            @if !is_single { (section("how-to-read", "How to read this page", &how_to_read())) }
            (section("about", "About this run", &about(snapshot, diagnosis)))
        }
    }
}

fn counted(title: &str, count: usize) -> String {
    format!("{title} ({count})")
}

/// A closed section. The anchor is inside: a browser opens a section to show what a link leads to.
pub fn section(id: &str, title: &str, content: &Markup) -> Markup {
    html! {
        @if !content.0.is_empty() {
            details.section {
                summary { (title) a.anchor href={ "#" (id) } aria-label={ "Link to " (title) } { "#" } }
                div.content id=(id) { (content) }
            }
        }
    }
}

fn list(lines: &[String]) -> Markup {
    html! {
        @if !lines.is_empty() { ul { @for line in text::some(lines, LINES_MAX) { li { (unbroken(&line)) } } } }
    }
}

fn matrices(of: &Contents<'_>) -> Markup {
    let others = of.grids.iter().enumerate().filter(|(i, _)| *i != of.guilty);
    html! {
        @for (_, grid) in others {
            @let bracket = map::Bracket::of(of.verdict.findings.first(), grid, &of.snapshot.inventory);
            section.map {
                h3 { (map::title(grid)) }
                (map::matrix(grid, &bracket))
                @for line in &grid.ceilings { p.small { (unbroken(&card::sentence(line))) } }
            }
        }
    }
}

/// The cards of all findings.
pub fn findings(snapshot: &Snapshot, diagnosis: &Diagnosis) -> Markup {
    let findings = &diagnosis.findings;
    html! {
        @for finding in findings.iter().take(FINDINGS_MAX) {
            article.card {
                p.over { (crate::words::location(finding)) }
                (card_body(&card::finding(finding, &snapshot.inventory)))
            }
        }
        @if findings.len() > FINDINGS_MAX {
            p { "And " (findings.len() - FINDINGS_MAX) " more findings: linerate show --json has all." }
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

/// The cards of trials, with what they measured.
pub fn trials(trials: &[Trial]) -> Markup {
    html! {
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

/// Facts that differ between hosts.
pub fn differences(rows: &[differ::FactDifference], all: usize) -> Markup {
    let shown = |value: &str| if value.is_empty() { "(lacks it)".to_owned() } else { value.to_owned() };
    html! {
        @if !rows.is_empty() {
            p.small {
                @if rows.iter().any(|row| row.suspect) { "In bold what a finding rests on. " }
                "A difference alone proves nothing."
            }
            div.scroll {
                table.plain {
                    thead { tr { th { "setting" } th { "most hosts" } th { "others" } } }
                    tbody {
                        @for row in rows {
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

fn tests(snapshot: &Snapshot) -> Markup {
    let counts = text::test_counts(snapshot);
    html! {
        @if !counts.is_empty() {
            div.scroll { table.plain {
                thead {
                    tr { th { "test" } th.n { "run" } th.n { "measured" } th.n { "nothing got through" } th.n { "invalid" } th.n { "could not run" } }
                }
                tbody {
                    @for (kind, numbers) in &counts {
                        tr { td { (kind) } @for number in numbers { td.n { (number) } } }
                    }
                }
            } }
        }
    }
}

fn how_to_read() -> Markup {
    html! {
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
