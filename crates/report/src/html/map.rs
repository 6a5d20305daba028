//! Matrices of a page: sorted by group, with the suspect in a bracket, and one legend for all. Cells and a
//! suspect in, markup out.

use std::collections::BTreeSet;

use linerate_model::finding::{Direction, LayerScope, LossLocation, Metric, Suspect};
use linerate_model::inventory::{GroupName, HostName, Inventory};
use linerate_model::verdict::{Verdict, VerdictItem, VerdictSubject};
use maud::{Markup, html};

use crate::grid::{self, Grid, GridMetric, Square, SquareKind};
use crate::heat::Heat;
use crate::{card, names};

/// From this many hosts on the matrix is drawn small, with upright names.
const MANY: usize = 13;
/// Worst pairs of a cluster that no matrix can show.
const WORST_MAX: usize = 100;
/// Of the body of a page at 1280 and 400 pixels, and of a character of a name: whether a matrix has to
/// scroll.
const WIDE_PX: usize = 1180;
const NARROW_PX: usize = 376;
const LETTER_PX: usize = 8;

/// The matrix in which the first finding shows: its number among all.
pub fn guilty(grids: &[Grid], verdict: &Verdict) -> usize {
    let loss = verdict.findings.first().and_then(|item| match &item.what {
        VerdictSubject::Loss(loss) => Some(loss),
        _ => None,
    });
    let rank = |grid: &Grid| {
        let is_of_layer = loss.is_none_or(|loss| match loss.layer {
            LayerScope::Only(layer) => layer == grid.layer,
            LayerScope::Any => true,
        });
        let shows = loss.is_some_and(|loss| grid.metric == GridMetric::Other(loss.metric));
        let is_throughput = matches!(grid.metric, GridMetric::Share | GridMetric::Rate);
        let bad = grid.tested.values().filter(|square| square.heat >= Heat::Bad).count();
        let low = grid.tested.values().filter(|square| square.heat == Heat::Low).count();
        (is_of_layer, shows, is_throughput, bad, low)
    };
    // Of equals the first.
    (0..grids.len()).rev().max_by_key(|i| rank(&grids[*i])).unwrap_or(0)
}

/// The squares that a bracket surrounds. Whether a square is one of them is computed from its two hosts: a
/// thousand hosts are a million squares, and a page with a picture draws none of them.
#[derive(Debug, Default)]
pub struct Bracket {
    area: Option<Area>,
    rows: BTreeSet<usize>,
    columns: BTreeSet<usize>,
}

/// The pairs that a location explains.
#[derive(Debug)]
struct Area {
    kind: AreaKind,
    tx: bool,
    rx: bool,
    /// Of each host: whether it is what the suspect names first, and second.
    named: Vec<(bool, bool)>,
}

#[derive(Debug, Clone, Copy)]
enum AreaKind {
    /// What the named ones send or receive.
    Ends,
    /// What leaves or enters the named ones.
    Border,
    /// From the first to the second.
    Between,
    /// Between the named ones and the others.
    Mixed,
}

impl Area {
    /// `None` for a bracket around everything: it marks nothing.
    fn of(location: &LossLocation, grid: &Grid, inventory: &Inventory) -> Option<Self> {
        let (tx, rx) = match location.direction {
            Direction::Tx => (true, false),
            Direction::Rx => (false, true),
            Direction::Both => (true, true),
        };
        let is_of_group = |host: &HostName, group: &GroupName| is_of_group(host, group, inventory);
        let of = |kind, named: &dyn Fn(&HostName) -> (bool, bool)| {
            Some(Self { kind, tx, rx, named: grid.hosts.iter().map(named).collect() })
        };
        match &location.suspect {
            Suspect::Host(name) | Suspect::Drive(name, _) => {
                of(AreaKind::Ends, &|host| (host == name, false))
            }
            Suspect::Group(group) => of(AreaKind::Border, &|host| (is_of_group(host, group), false)),
            Suspect::GroupToGroup(a, b) => {
                of(AreaKind::Between, &|host| (is_of_group(host, a), is_of_group(host, b)))
            }
            Suspect::Pair(a, b) => of(AreaKind::Between, &|host| (host == a, host == b)),
            Suspect::Mismatch(_, hosts) => of(AreaKind::Mixed, &|host| (hosts.contains(host), false)),
            Suspect::All => None,
        }
    }

    fn has(&self, row: usize, column: usize) -> bool {
        let (Some(from), Some(to)) = (self.named.get(row), self.named.get(column)) else { return false };
        if row == column {
            return false;
        }
        let is_end = (self.tx && from.0) || (self.rx && to.0);
        match self.kind {
            AreaKind::Ends => is_end,
            AreaKind::Border => from.0 != to.0 && is_end,
            AreaKind::Between => (from.0 && to.1) || (self.tx && self.rx && from.1 && to.0),
            AreaKind::Mixed => from.0 != to.0,
        }
    }

    fn is_empty(&self) -> bool {
        let hosts = self.named.len();
        !(0..hosts).any(|row| (0..hosts).any(|column| self.has(row, column)))
    }
}

impl Bracket {
    /// Of the most probable location of a finding.
    pub fn of(item: Option<&VerdictItem>, grid: &Grid, inventory: &Inventory) -> Self {
        let Some(VerdictSubject::Loss(loss)) = item.map(|item| &item.what) else { return Self::default() };
        if matches!(loss.layer, LayerScope::Only(layer) if layer != grid.layer) {
            return Self::default();
        }
        let mut bracket = Self::default();
        let Some(location) = loss.locations.first() else { return bracket };
        bracket.area = Area::of(location, grid, inventory).filter(|area| !area.is_empty());
        let (sends, receives) = ends(location);
        for (i, host) in grid.hosts.iter().enumerate() {
            let is_of = |names: &[&str]| names.iter().any(|n| is_member(host, n, inventory));
            bracket.rows.extend(is_of(&sends).then_some(i));
            bracket.columns.extend(is_of(&receives).then_some(i));
        }
        bracket
    }

    /// Classes of the edges of a square: where its neighbour is outside.
    fn edges(&self, row: usize, column: usize) -> String {
        let Some(area) = self.area.as_ref().filter(|area| area.has(row, column)) else {
            return String::new();
        };
        // The diagonal does not interrupt a bracket.
        let is_in = |r: Option<usize>, c: Option<usize>| match (r, c) {
            (Some(r), Some(c)) => area.has(r, c),
            _ => false,
        };
        let around = [
            (" bt", is_in(row.checked_sub(1), Some(column))),
            (" bb", is_in(Some(row + 1), Some(column))),
            (" bl", is_in(Some(row), column.checked_sub(1))),
            (" br", is_in(Some(row), Some(column + 1))),
        ];
        around.into_iter().filter(|(_, inside)| !inside).map(|(class, _)| class).collect()
    }
}

/// Names whose rows and whose columns are meant.
fn ends(location: &LossLocation) -> (Vec<&str>, Vec<&str>) {
    let one = match &location.suspect {
        Suspect::Host(name) | Suspect::Group(name) | Suspect::Drive(name, _) => vec![name.as_str()],
        Suspect::Mismatch(_, hosts) => hosts.iter().map(String::as_str).collect(),
        Suspect::Pair(from, to) | Suspect::GroupToGroup(from, to) => {
            return match location.direction {
                Direction::Both => (vec![from, to], vec![from, to]),
                _ => (vec![from], vec![to]),
            };
        }
        Suspect::All => Vec::new(),
    };
    match location.direction {
        Direction::Tx => (one, Vec::new()),
        Direction::Rx => (Vec::new(), one),
        Direction::Both => (one.clone(), one),
    }
}

fn is_member(host: &HostName, name: &str, inventory: &Inventory) -> bool {
    host == name || is_of_group(host, &name.to_owned(), inventory)
}

fn is_of_group(host: &str, group: &GroupName, inventory: &Inventory) -> bool {
    inventory.groups_of(host).iter().any(|of| of.name == *group)
}

/// The address of the page of a pair: sender, receiver.
pub type PairLink<'a> = &'a dyn Fn(&str, &str) -> String;

/// A matrix with its title.
pub(super) fn matrix(grid: &Grid, bracket: &Bracket) -> Markup {
    html! {
        @if grid.hosts.len() > grid::PAGE_HOSTS_MAX { (worst_pairs(grid, WORST_MAX, None)) }
        @else { (squares(grid, bracket, None)) }
    }
}

/// The worst pairs of a matrix, at most `most`.
pub fn worst_pairs(grid: &Grid, most: usize, link: Option<PairLink<'_>>) -> Markup {
    let worst = grid.worst();
    let bad = worst.iter().filter(|(_, _, s)| s.heat > Heat::Fine).count();
    html! {
        p { (worst.len()) " pairs seen, " (bad) " of them below what they should reach. The worst:" }
        div.scroll {
            table.plain {
                thead { tr { th { "sender" } th { "receiver" } th.n { "value" } } }
                tbody {
                    @for (r, c, square) in worst.iter().take(most) {
                        tr {
                            td { (grid.hosts[*r]) }
                            td { (grid.hosts[*c]) }
                            td class=(square_class(square)) title=(square.title) {
                                (linked(&square_text(square), link.map(|link| link(&grid.hosts[*r], &grid.hosts[*c]))))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Text that leads to a page, where there is one.
fn linked(text: &Markup, to: Option<String>) -> Markup {
    html! { @if let Some(to) = to { a href=(to) { (text) } } @else { (text) } }
}

/// Pixels that the matrix is wide, about.
fn width(grid: &Grid, cell: usize) -> usize {
    let longest = |names: &[String], most: usize| {
        names.iter().map(|n| n.chars().count()).max().unwrap_or(0).min(most) * LETTER_PX
    };
    let many = grid.hosts.len() >= MANY;
    let column = if many { cell } else { cell.max(longest(&grid.short, 20)) };
    longest(&grid.short, 24) + longest(&grid.groups, 16) + grid.hosts.len() * (column + 2)
}

/// All squares of a matrix as a table.
pub fn squares(grid: &Grid, bracket: &Bracket, link: Option<PairLink<'_>>) -> Markup {
    let many = grid.hosts.len() >= MANY;
    let (wide, narrow) =
        if many { (width(grid, 30), width(grid, 30)) } else { (width(grid, 58), width(grid, 36)) };
    // Where a group begins: a line before it.
    let begins = |i: usize| i > 0 && grid.groups[i] != grid.groups[i - 1];
    let named = |i: usize| !grid.groups[i].is_empty() && (i == 0 || begins(i));
    html! {
        p.hint.always[wide > WIDE_PX] hidden[wide <= WIDE_PX && narrow <= NARROW_PX] { "The matrix is wider than the page: scroll it sideways \u{2194}" }
        div.scroll tabindex="0" role="region" aria-label=(grid.title()) {
            table class=(if many { "heat many" } else { "heat" }) {
                caption { "Rows send, columns receive." }
                thead {
                    tr {
                        td {}
                        @for (i, (host, short)) in grid.hosts.iter().zip(&grid.short).enumerate() {
                            th.col.begins[begins(i)].suspect[bracket.columns.contains(&i)] scope="col" title=(host) { (names::host(short, 20)) }
                        }
                    }
                }
                tbody {
                    @for i in 0..grid.hosts.len() {
                        tr.begins[begins(i)] {
                            th.suspect[bracket.rows.contains(&i)] scope="row" title=(grid.hosts[i]) { (names::host(&grid.short[i], 24)) }
                            @for (j, square) in grid.row(i).iter().enumerate() {
                                @let edges = bracket.edges(i, j);
                                @let begin = if begins(j) { " begins" } else { "" };
                                @let to = link.filter(|_| i != j).map(|link| link(&grid.hosts[i], &grid.hosts[j]));
                                td class={ (square_class(square)) (edges) (begin) } title=(square.title) { (linked(&square_text(square), to)) }
                            }
                            @if named(i) { td.grp { (names::host(&grid.groups[i], 16)) } }
                        }
                    }
                }
            }
        }
    }
}

fn square_class(square: &Square) -> String {
    match square.kind {
        SquareKind::Itself => "itself".to_owned(),
        SquareKind::Unseen => "unseen".to_owned(),
        SquareKind::Dead | SquareKind::One => square.heat.name().to_owned(),
        SquareKind::Two => format!("{} two", square.heat.name()),
    }
}

/// The number, and the sign of its class: the page is read without colours too.
fn square_text(square: &Square) -> Markup {
    html! { (square.text) @if !square.heat.sign().is_empty() { i.sign { (square.heat.sign()) } } }
}

/// One legend for all matrices of a page.
pub fn legend(grid: &Grid, bracket: &Bracket) -> Markup {
    html! {
        ul.legend aria-label="Legend" {
            @for heat in Heat::ALL {
                li {
                    i class={ "box " (heat.name()) } { (heat.sign()) } b { (heat.name()) }
                    @if let Some(bounds) = bounds(grid, heat) { " " (bounds) }
                }
            }
            li { i.box.unseen { "?" } b { "not seen" } }
            @if grid.has(SquareKind::Two) { li { i.box.two {} "bimodal: both levels" } }
            @if bracket.area.is_some() { li { i.box.bracket {} "suspect" } }
        }
    }
}

/// What a class means where its bounds have a unit.
fn bounds(grid: &Grid, heat: Heat) -> Option<&'static str> {
    match grid.metric {
        GridMetric::Share if !grid.is_by_peers => Some(heat.of_ceiling()),
        GridMetric::Other(Metric::Loss) => Some(heat.of_loss()),
        _ => None,
    }
}

/// Title of a matrix.
pub fn title(grid: &Grid) -> String {
    card::sentence(&grid.title()).trim_end_matches('.').to_owned()
}
