//! The matrix of a run by layer, metric and direction: a table where it fits a page, else a picture in which
//! each square leads to its pair, with the worst pairs and hosts beside it.

use std::sync::Arc;

use linerate_model::finding::Suspect;
use linerate_model::inventory::Layer;
use linerate_model::units;
use linerate_report::grid::{self, Grid, GridMetric};
use linerate_report::heat::Heat;
use linerate_report::html::{STYLE, map};
use linerate_store::RunRow;
use maud::{Markup, html};

use crate::layout::{Body, Shown};
use crate::link::{self, Query};
use crate::picture::{self, COLOURS};
use crate::view::RunView;

/// Up to this many hosts the matrix is a table: 1,024 links in about 9 kB compressed.
const TABLE_HOSTS_MAX: usize = 32;
/// Pairs and hosts that are listed beside a picture.
const WORST_MAX: usize = 20;
/// Surveys that the same matrix can be seen of.
const TIMES_MAX: usize = 8;
/// Of the body of a page at 1280 and 400 pixels: whether a picture has to scroll.
const WIDE_PX: usize = 1180;
const NARROW_PX: usize = 376;

/// How hosts are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Groups,
    Sends,
    Receives,
}

impl Order {
    const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Groups, "", "by group"),
        (Self::Sends, "sends", "worst senders first"),
        (Self::Receives, "receives", "worst receivers first"),
    ];

    fn of(query: &Query) -> Self {
        let wanted = query.get("sort").unwrap_or_default();
        Self::ALL.into_iter().find(|(_, name, _)| *name == wanted).map_or(Self::Groups, |(order, ..)| order)
    }
}

/// The name of a metric in an address.
fn name(metric: GridMetric) -> String {
    match metric {
        GridMetric::Share | GridMetric::Rate => "throughput".to_owned(),
        GridMetric::Other(metric) => metric.label().replace(' ', "-"),
    }
}

/// The layer and metric that a query asks for; without one those in which the first finding shows.
fn chosen(run: &RunView, query: &Query) -> Option<(Layer, GridMetric)> {
    let choices = grid::choices(&run.diagnosis);
    let fits = |(layer, metric): &&(Layer, GridMetric)| {
        query.get("layer").is_some_and(|text| text == layer.to_string())
            && query.get("metric").is_none_or(|text| text == name(*metric))
    };
    choices.iter().find(fits).copied().or_else(|| run.first_grid())
}

/// The matrix that a query asks for, in its order.
pub(crate) fn sorted_grid(run: &RunView, query: &Query) -> Option<Arc<Grid>> {
    let (layer, metric) = chosen(run, query)?;
    let grid = run.grid(layer, metric)?;
    let order = Order::of(query);
    if order == Order::Groups {
        return Some(grid);
    }
    let effects = effects(&grid);
    let mut numbers: Vec<usize> = (0..grid.hosts.len()).collect();
    let of = |i: &usize| if order == Order::Sends { effects[*i].sends } else { effects[*i].receives };
    numbers.sort_by(|a, b| of(b).unwrap_or(-1.0).total_cmp(&of(a).unwrap_or(-1.0)).then(a.cmp(b)));
    Some(Arc::new(grid.ordered(&numbers)))
}

/// How bad a host is in both directions: the median of its squares, 0 good to 1 dead.
#[derive(Debug, Clone, Copy)]
struct HostEffect {
    sends: Option<f64>,
    receives: Option<f64>,
}

fn effects(grid: &Grid) -> Vec<HostEffect> {
    let count = grid.hosts.len();
    let (mut sends, mut receives) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for (r, c, square) in grid.worst() {
        sends[r].push(square.effect);
        receives[c].push(square.effect);
    }
    // Worst first.
    let median = |of: &Vec<f64>| of.get(of.len() / 2).copied();
    let both = sends.iter().zip(&receives);
    both.map(|(s, r)| HostEffect { sends: median(s), receives: median(r) }).collect()
}

pub(super) fn body(shown: &Shown<'_>) -> Body {
    let Some(run) = shown.run else { return Body::new("Matrix", html! { h1 { "No finished run" } }) };
    let Some(grid) = sorted_grid(run, shown.query) else {
        return Body::new("Matrix", html! { h1 { "No matrix" } p { "This run measured no pairs." } });
    };
    let bracket = map::Bracket::of(run.verdict.findings.first(), &grid, &run.snapshot.inventory);
    let markup = html! {
        h1 { (map::title(&grid)) }
        (choices(shown, run, &grid))
        (times(shown, run, &grid))
        (map::legend(&grid, &bracket))
        (drawn(shown, &grid, &bracket))
        @for line in &grid.ceilings { p.small { (line) } }
        (hosts(shown, &grid))
    };
    Body::new("Matrix", markup)
}

/// The matrix of the first page: that in which the first finding shows.
pub(super) fn first(shown: &Shown<'_>) -> Markup {
    let Some(run) = shown.run else { return html! {} };
    let Some(grid) = sorted_grid(run, &Query::default()) else { return html! {} };
    let bracket = map::Bracket::of(run.verdict.findings.first(), &grid, &run.snapshot.inventory);
    html! {
        section.map id="matrix" {
            h2 { a href=(shown.to("/matrix", &[])) { (map::title(&grid)) } }
            (map::legend(&grid, &bracket))
            (drawn(shown, &grid, &bracket))
        }
    }
}

fn drawn(shown: &Shown<'_>, grid: &Grid, bracket: &map::Bracket) -> Markup {
    let layer = grid.layer.to_string();
    let link = |from: &str, to: &str| shown.to("/pair", &[("from", from), ("to", to), ("layer", &layer)]);
    html! {
        @if grid.hosts.len() <= TABLE_HOSTS_MAX { (map::squares(grid, bracket, Some(&link))) } @else {
            (drawing(shown, grid))
            h3 { "Worst pairs" }
            (map::worst_pairs(grid, WORST_MAX, Some(&link)))
        }
    }
}

/// The picture, whose squares lead to their pairs: the browser sends the point that was clicked.
fn drawing(shown: &Shown<'_>, grid: &Grid) -> Markup {
    let (layer, metric) = (grid.layer.to_string(), name(grid.metric));
    let sort = shown.query.get("sort").unwrap_or_default();
    let of = |path: &str, theme: &str| {
        shown.to(path, &[("layer", &layer), ("metric", &metric), ("sort", sort), ("theme", theme)])
    };
    let point = |path: &str| format!("{}&at=", of(path, ""));
    let side = grid.hosts.len() * picture::scale(grid.hosts.len());
    html! {
        p.hint.always[side > WIDE_PX] hidden[side <= NARROW_PX] { "The matrix is wider than the page: scroll it sideways \u{2194}" }
        div.scroll tabindex="0" role="region" aria-label=(grid.title()) {
            a.picture href=(point("/matrix/pair")) data-cell=(point("/matrix/cell")) data-hosts=(grid.hosts.len()) {
                picture {
                    source srcset=(of("/matrix/picture", "dark")) media="(prefers-color-scheme: dark)";
                    img src=(of("/matrix/picture", "light")) width=(side) height=(side) ismap
                        alt={ (map::title(grid)) ": " (grid.hosts.len()) " hosts, rows send, columns receive; the worst pairs are listed below" };
                }
            }
        }
        p.small id="cell" role="status" aria-live="polite" { "Rows send, columns receive. A click on a square shows its pair." }
    }
}

/// Layers, metrics and orders as links.
fn choices(shown: &Shown<'_>, run: &RunView, grid: &Grid) -> Markup {
    let sort = shown.query.get("sort").unwrap_or_default();
    let of = |layer: Layer, metric: GridMetric, sort: &str| {
        shown.to("/matrix", &[("layer", &layer.to_string()), ("metric", &name(metric)), ("sort", sort)])
    };
    let order = Order::of(shown.query);
    html! {
        p.choices {
            @for (layer, metric) in grid::choices(&run.diagnosis) {
                @let is_this = layer == grid.layer && metric == grid.metric;
                a href=(of(layer, metric, sort)) aria-current=[is_this.then_some("true")] { (layer) ": " (name(metric).replace('-', " ")) }
            }
        }
        p.choices {
            @for (one, sort, words) in Order::ALL {
                a href=(of(grid.layer, grid.metric, sort)) aria-current=[(one == order).then_some("true")] { (words) }
            }
        }
    }
}

/// The same matrix of the surveys around this one; newer ones first.
fn times(shown: &Shown<'_>, run: &RunView, grid: &Grid) -> Markup {
    let is_other = |row: &&RunRow| row.finished && row.diagnosable && row.cluster == run.row.cluster;
    let all: Vec<&RunRow> = shown.view.runs.iter().filter(is_other).collect();
    let own = all.iter().position(|row| row.id == run.row.id).unwrap_or(0);
    let first = own.saturating_sub(TIMES_MAX / 2).min(all.len().saturating_sub(TIMES_MAX));
    let (layer, metric) = (grid.layer.to_string(), name(grid.metric));
    let sort = shown.query.get("sort").unwrap_or_default();
    let of = |row: &RunRow| {
        link::to("/matrix", &[("layer", &layer), ("metric", &metric), ("sort", sort), ("run", &row.id)])
    };
    html! {
        p.choices {
            @for row in all.iter().skip(first).take(TIMES_MAX) {
                a href=(of(row)) aria-current=[(row.id == run.row.id).then_some("true")] {
                    (units::date_minute(row.start_ms))
                }
            }
            @if all.len() > TIMES_MAX { a href="/runs" { "All " (all.len()) " runs" } }
        }
    }
}

/// The worst hosts in both directions.
fn hosts(shown: &Shown<'_>, grid: &Grid) -> Markup {
    let effects = effects(grid);
    let worst = |i: &usize| {
        let of = effects[*i];
        of.sends.unwrap_or(0.0).max(of.receives.unwrap_or(0.0))
    };
    let mut numbers: Vec<usize> = (0..grid.hosts.len()).collect();
    numbers.sort_by(|a, b| worst(b).total_cmp(&worst(a)));
    let square = |effect: Option<f64>| match effect {
        None => html! { td.unseen { "?" } },
        Some(effect) => {
            let heat = Heat::of(effect);
            html! { td class=(heat.name()) { (heat.name()) @if !heat.sign().is_empty() { " " i.sign { (heat.sign()) } } } }
        }
    };
    html! {
        h2 { "Hosts" }
        table.plain {
            caption { "The median of the squares of each host, worst first." }
            thead { tr { th { "host" } th.n { "sends" } th.n { "receives" } } }
            tbody {
                @for i in numbers.into_iter().take(WORST_MAX) {
                    tr { td { (shown.host_link(&grid.hosts[i])) } (square(effects[i].sends)) (square(effects[i].receives)) }
                }
            }
        }
        @if grid.hosts.len() > WORST_MAX { p { a href=(shown.to("/hosts", &[])) { "All " (grid.hosts.len()) " hosts" } } }
    }
}

/// A suspect as a link to its page, where it has one.
pub(super) fn suspect_link(shown: &Shown<'_>, suspect: &Suspect, text: &str) -> Markup {
    let to = match suspect {
        Suspect::Host(host) | Suspect::Drive(host, _) => Some(shown.host(host)),
        Suspect::Pair(from, to) => Some(shown.pair(from, to)),
        _ => None,
    };
    html! { @if let Some(to) = to { a href=(to) { (text) } } @else { (text) } }
}

/// The page of the square that was clicked: of a pair or, on the diagonal, of a host; without a point the
/// matrix itself.
pub(crate) fn page_at(shown: &Shown<'_>) -> Option<String> {
    let run = shown.run?;
    let grid = sorted_grid(run, shown.query)?;
    let layer = grid.layer.to_string();
    let Some((row, column)) = square_at(&grid, shown.query) else {
        return Some(shown.to("/matrix", &[("layer", &layer), ("metric", &name(grid.metric))]));
    };
    let (from, to) = (&grid.hosts[row], &grid.hosts[column]);
    Some(if row == column {
        shown.host(from)
    } else {
        shown.to("/pair", &[("from", from), ("to", to), ("layer", &layer)])
    })
}

/// The square at a point in words.
pub(crate) fn cell(run: &RunView, query: &Query) -> Option<String> {
    let grid = sorted_grid(run, query)?;
    let (row, column) = square_at(&grid, query)?;
    Some(grid.square(row, column).title)
}

fn square_at(grid: &Grid, query: &Query) -> Option<(usize, usize)> {
    let (x, y) = query.point()?;
    let scale = picture::scale(grid.hosts.len());
    let (row, column) = (y / scale, x / scale);
    (row < grid.hosts.len() && column < grid.hosts.len()).then_some((row, column))
}

/// The colours of the style sheet for a picture: the four classes, what was not seen, a host with itself.
pub(crate) fn colours(is_dark: bool) -> [[u8; 3]; COLOURS] {
    let mode = STYLE.split(":root{").nth(if is_dark { 2 } else { 1 }).unwrap_or_default();
    ["fine", "low", "worse", "dead", "paper", "rule"].map(|name| {
        let text = mode.split_once(&format!("--{name}:#")).map_or("", |(_, rest)| rest);
        let part = |at: usize| text.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
        [0, 2, 4].map(|at| part(at).unwrap_or(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_colours_of_pictures_are_those_of_the_style_sheet() {
        let (light, dark) = (colours(false), colours(true));
        assert_eq!(light[1], [0xf6, 0xd8, 0x77]);
        assert_eq!(dark[3], [0xff, 0xb0, 0xa8]);
        assert!(light.iter().chain(&dark).all(|colour| *colour != [0, 0, 0]), "{light:?} {dark:?}");
    }
}
