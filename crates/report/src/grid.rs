//! The matrix of a layer, ready to be drawn: a diagnosis in, squares with short text, a heat and a full
//! sentence out. Text, HTML and Markdown draw the same squares. Never averages two levels, never hides an
//! unseen cell.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use linerate_model::finding::{Cell, Diagnosis, Metric, TermName};
use linerate_model::inventory::{HostName, Inventory, Layer};
use linerate_model::units;

use super::heat::Heat;
use super::names;

/// Up to this many hosts a page draws the whole matrix; beyond, it lists the worst pairs and hosts.
pub const PAGE_HOSTS_MAX: usize = 100;

/// What the squares show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridMetric {
    /// Throughput in percent of the ceiling.
    Share,
    /// Throughput, where no ceiling is known.
    Rate,
    /// Another response, in its unit.
    Other(Metric),
}

/// What a square is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SquareKind {
    /// A host with itself.
    Itself,
    /// Not seen.
    Unseen,
    /// Nothing got through.
    Dead,
    /// One value.
    One,
    /// Two levels.
    Two,
}

/// One square of the matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Square {
    /// What it is.
    pub kind: SquareKind,
    /// At most nine characters.
    pub text: String,
    /// How bad it is.
    pub heat: Heat,
    /// The whole truth about the pair, one line.
    pub title: String,
    /// 0 good to 1 dead, for sorting.
    pub effect: f64,
}

/// A matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Layer.
    pub layer: Layer,
    /// What the squares show.
    pub metric: GridMetric,
    /// Hosts in the order of the inventory.
    pub hosts: Vec<HostName>,
    /// The same without the domain that they share.
    pub short: Vec<String>,
    /// The direct groups of each host, for the margin.
    pub groups: Vec<String>,
    /// Squares of the pairs that were tested, by row (sends) and column (receives): of thousands of hosts
    /// that is a small part of the matrix.
    pub tested: BTreeMap<(usize, usize), Square>,
    /// All its ceilings are what comparable pairs reach: the squares show rates.
    pub is_by_peers: bool,
    /// One line per binding term of the ceilings.
    pub ceilings: Vec<String>,
    /// The least share of a ceiling, where every pair has one that is more than what its peers reach.
    pub least_share: Option<f64>,
}

impl Grid {
    /// Title: `underlay: throughput in percent of the ceiling`.
    pub fn title(&self) -> String {
        let what = match self.metric {
            GridMetric::Share if self.is_by_peers => {
                format!("{} in bit/s (no ceiling is known)", Metric::Throughput.label())
            }
            GridMetric::Share => format!("{} in percent of the ceiling", Metric::Throughput.label()),
            GridMetric::Rate => format!("{} in bit/s (no ceiling is known)", Metric::Throughput.label()),
            GridMetric::Other(r) => match r {
                Metric::Loss => format!("{}, in percent", r.label()),
                Metric::CpuCost => format!("{}, seconds of both ends per gigabyte", r.label()),
                Metric::Retransmits => format!("{} per second", r.label()),
                other => other.label().to_owned(),
            },
        };
        format!("{}: {what}", self.layer)
    }

    /// Whether every pair was measured and is fine.
    pub fn is_fine(&self) -> bool {
        let is_fine = |square: &Square| square.kind == SquareKind::One && square.heat == Heat::Fine;
        !self.has(SquareKind::Unseen) && self.tested.values().all(is_fine)
    }

    /// All of it in a line, where every pair is fine: `overlay: all 30 pairs are fine too, …`.
    pub fn fine_line(&self) -> String {
        let least = self.least_share.map_or(String::new(), |share| {
            format!(", the lowest at {} % of its ceiling", percent_of_ceiling(share))
        });
        format!("{}: all {} pairs are fine too{least}", self.layer, self.tested.len())
    }

    /// The square of a row and column.
    pub fn square(&self, row: usize, column: usize) -> Square {
        let (from, to) = (&self.hosts[row], &self.hosts[column]);
        match self.tested.get(&(row, column)) {
            _ if row == column => blank(SquareKind::Itself, "-", format!("{from} itself")),
            None => blank(SquareKind::Unseen, "?", format!("{from} to {to}: not tested")),
            Some(square) => square.clone(),
        }
    }

    /// A row of the matrix.
    pub fn row(&self, row: usize) -> Vec<Square> {
        (0..self.hosts.len()).map(|column| self.square(row, column)).collect()
    }

    /// The squares that were measured, worst first: row, column, square.
    pub fn worst(&self) -> Vec<(usize, usize, &Square)> {
        let mut seen: Vec<(usize, usize, &Square)> = self
            .tested
            .iter()
            .map(|((r, c), s)| (*r, *c, s))
            .filter(|(r, c, s)| r != c && s.kind != SquareKind::Unseen)
            .collect();
        seen.sort_by(|a, b| b.2.effect.total_cmp(&a.2.effect));
        seen
    }

    /// The same matrix with the hosts of a group beside each other, groups in the order of the inventory.
    #[must_use]
    pub fn by_group(&self, inventory: &Inventory) -> Self {
        let number =
            |group: &str| inventory.groups.iter().position(|g| g.name == group).unwrap_or(usize::MAX);
        let mut order: Vec<usize> = (0..self.hosts.len()).collect();
        order.sort_by_key(|i| (number(&self.groups[*i]), self.groups[*i].clone(), *i));
        self.ordered(&order)
    }

    /// The same matrix with its hosts in another order: their numbers, each once.
    #[must_use]
    pub fn ordered(&self, order: &[usize]) -> Self {
        let mut at = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            at[*old] = new;
        }
        let sorted = |of: &[String]| order.iter().map(|i| of[*i].clone()).collect::<Vec<_>>();
        Self {
            hosts: sorted(&self.hosts),
            short: sorted(&self.short),
            groups: sorted(&self.groups),
            tested: self.tested.iter().map(|((r, c), square)| ((at[*r], at[*c]), square.clone())).collect(),
            ..self.clone()
        }
    }

    /// Whether some square has this kind.
    pub fn has(&self, kind: SquareKind) -> bool {
        let pairs = self.hosts.len() * self.hosts.len().saturating_sub(1);
        match kind {
            SquareKind::Itself => !self.hosts.is_empty(),
            SquareKind::Unseen if self.tested.len() < pairs => true,
            _ => self.tested.values().any(|s| s.kind == kind),
        }
    }
}

/// Metrics beside throughput that a matrix can show.
const OTHERS: [Metric; 5] =
    [Metric::Loss, Metric::CpuCost, Metric::RttIdle, Metric::RttLoaded, Metric::Retransmits];

/// All matrices that can be drawn: each layer with the metrics that it has.
pub fn choices(diagnosis: &Diagnosis) -> Vec<(Layer, GridMetric)> {
    let has = |layer: Layer, metric: GridMetric| {
        diagnosis.cells.iter().any(|cell| cell.layer == layer && number(cell, metric).is_some())
    };
    let others = |layer: Layer| OTHERS.into_iter().map(move |metric| (layer, GridMetric::Other(metric)));
    layers(diagnosis)
        .into_iter()
        .flat_map(|layer| {
            let others = others(layer).filter(|(layer, metric)| has(*layer, *metric));
            std::iter::once((layer, first_metric(diagnosis, layer))).chain(others).collect::<Vec<_>>()
        })
        .collect()
}

fn layers(diagnosis: &Diagnosis) -> Vec<Layer> {
    let mut layers: Vec<Layer> = diagnosis.cells.iter().map(|c| c.layer).collect();
    layers.sort_unstable();
    layers.dedup();
    layers
}

/// What the first matrix of a layer shows: throughput, or idle RTTs where nothing but those was read.
fn first_metric(diagnosis: &Diagnosis, layer: Layer) -> GridMetric {
    let any = |is: fn(&Cell) -> bool| diagnosis.cells.iter().any(|c| c.layer == layer && is(c));
    if !any(|c| c.throughput_bps.is_some()) && any(|c| c.rtt_idle_us.is_some()) {
        return GridMetric::Other(Metric::RttIdle);
    }
    if any(|c| c.ceiling.bps.is_some()) { GridMetric::Share } else { GridMetric::Rate }
}

/// All matrices worth drawing: throughput of every layer, and every other response in which a finding shows.
pub fn grids(diagnosis: &Diagnosis, inventory: &Inventory) -> Vec<Grid> {
    let mut grids = Vec::new();
    for layer in layers(diagnosis) {
        let metric = first_metric(diagnosis, layer);
        grids.extend(grid(diagnosis, inventory, layer, metric));
        for response in OTHERS.into_iter().filter(|other| metric != GridMetric::Other(*other)) {
            let first = |f: &linerate_model::finding::Finding| f.responses.first() == Some(&response);
            if diagnosis.findings.iter().any(first) {
                grids.extend(grid(diagnosis, inventory, layer, GridMetric::Other(response)));
            }
        }
    }
    grids
}

/// One matrix; `None` when no cell of it has a value of that metric.
pub fn grid(diagnosis: &Diagnosis, inventory: &Inventory, layer: Layer, metric: GridMetric) -> Option<Grid> {
    let cells: Vec<&Cell> = diagnosis.cells.iter().filter(|c| c.layer == layer).collect();
    if matches!(metric, GridMetric::Other(_)) && !cells.iter().any(|c| number(c, metric).is_some()) {
        return None;
    }
    let hosts = hosts_of(&cells, inventory);
    let typical = typical(&cells, metric);
    let numbers: HashMap<&str, usize> = hosts.iter().enumerate().map(|(i, h)| (h.as_str(), i)).collect();
    let mut tested = BTreeMap::new();
    for cell in &cells {
        let pair = (numbers[cell.from.as_str()], numbers[cell.to.as_str()]);
        tested.entry(pair).or_insert_with(|| square(cell, metric, typical));
    }
    let groups = hosts
        .iter()
        .map(|h| inventory.host(h).map_or(String::new(), |h| h.groups.first().cloned().unwrap_or_default()))
        .collect();
    let ceilings = if metric == GridMetric::Share { ceiling_lines(&cells) } else { Vec::new() };
    let short = names::without_domain(&hosts);
    let is_share = metric == GridMetric::Share
        && cells.iter().all(|cell| cell.ceiling.bps.is_some() && !is_by_peers(cell));
    let shares = cells.iter().filter_map(|cell| number(cell, metric));
    let least_share = shares.min_by(f64::total_cmp).filter(|_| is_share);
    let is_by_peers = cells.iter().all(|cell| is_by_peers(cell) || cell.ceiling.bps.is_none());
    Some(Grid { layer, metric, hosts, short, groups, tested, is_by_peers, ceilings, least_share })
}

/// Hosts that occur in a cell, in the order of the inventory; hosts it does not name come last.
fn hosts_of(cells: &[&Cell], inventory: &Inventory) -> Vec<HostName> {
    let mut hosts: Vec<HostName> = cells.iter().flat_map(|c| [c.from.clone(), c.to.clone()]).collect();
    hosts.sort();
    hosts.dedup();
    let positions: HashMap<&str, usize> =
        inventory.hosts.iter().enumerate().rev().map(|(i, h)| (h.name.as_str(), i)).collect();
    hosts.sort_by_key(|h| positions.get(h.as_str()).copied().unwrap_or(usize::MAX));
    hosts
}

fn blank(kind: SquareKind, text: &str, title: String) -> Square {
    Square { kind, text: text.to_owned(), heat: Heat::Fine, title, effect: 0.0 }
}

/// The number that a metric shows of a cell.
fn number(cell: &Cell, metric: GridMetric) -> Option<f64> {
    match metric {
        GridMetric::Share => cell.share.or_else(|| Some(cell.throughput_bps? / cell.ceiling.bps?)),
        GridMetric::Rate => cell.throughput_bps,
        GridMetric::Other(Metric::Loss) => cell.loss,
        GridMetric::Other(Metric::CpuCost) => cell.cpu_s_per_gb,
        GridMetric::Other(Metric::RttIdle) => cell.rtt_idle_us,
        GridMetric::Other(Metric::RttLoaded) => cell.rtt_loaded_us,
        GridMetric::Other(Metric::Retransmits) => cell.retransmits_per_s,
        GridMetric::Other(_) => None,
    }
}

/// What the good half of the cells reaches: the quartile on the good side, as measure for heat without a
/// ceiling.
fn typical(cells: &[&Cell], metric: GridMetric) -> f64 {
    let mut seen: Vec<f64> =
        cells.iter().filter_map(|c| number(c, metric)).filter(|v| v.is_finite()).collect();
    seen.sort_by(f64::total_cmp);
    let good = if metric == GridMetric::Rate { 3 } else { 1 };
    seen.get(seen.len() * good / 4).copied().unwrap_or(0.0)
}

fn square(cell: &Cell, metric: GridMetric, typical: f64) -> Square {
    let title = title(cell);
    let throughput = matches!(metric, GridMetric::Share | GridMetric::Rate);
    if throughput && let Some((high, low)) = cell.two_state_bps.map(|(a, b)| (a.max(b), a.min(b))) {
        let full = cell.ceiling.bps.filter(|_| metric == GridMetric::Share);
        let percent_of = full.filter(|_| !is_by_peers(cell));
        let shown = |v: f64| percent_of.map_or_else(|| units::rate_cell(v), |c| percent_of_ceiling(v / c));
        let effect = (1.0 - low / full.unwrap_or(high).max(1.0)).clamp(0.0, 1.0);
        let text = format!("{}|{}", shown(high), shown(low));
        return Square { kind: SquareKind::Two, text, heat: Heat::of(effect), title, effect };
    }
    if throughput && cell.throughput_bps.is_some_and(|v| v <= 0.0) {
        return Square { kind: SquareKind::Dead, text: "0".to_owned(), heat: Heat::Dead, title, effect: 1.0 };
    }
    // What comparable pairs reach is no ceiling: a share of it would claim too much.
    let by_peers = metric == GridMetric::Share && is_by_peers(cell);
    let Some(value) = number(cell, metric) else {
        // Seen, but its ceiling is not known: the rate itself is still worth showing.
        return match cell.throughput_bps.filter(|_| throughput) {
            Some(bps) => Square {
                kind: SquareKind::One,
                text: units::rate_cell(bps),
                heat: Heat::Fine,
                title,
                effect: 0.0,
            },
            None => blank(SquareKind::Unseen, "?", title),
        };
    };
    let effect = effect(value, metric, typical);
    let text = match cell.throughput_bps.filter(|_| by_peers) {
        Some(bps) => units::rate_cell(bps),
        None => shown(value, metric),
    };
    Square { kind: SquareKind::One, text, heat: Heat::of(effect), title, effect }
}

/// Whether the only ceiling of a pair is what comparable ones reach.
fn is_by_peers(cell: &Cell) -> bool {
    cell.ceiling.binding == TermName::Peers
}

fn shown(value: f64, metric: GridMetric) -> String {
    match metric {
        GridMetric::Share => percent_of_ceiling(value),
        GridMetric::Other(Metric::Loss) => units::percent_number(value),
        GridMetric::Rate => units::rate_cell(value),
        GridMetric::Other(Metric::RttIdle | Metric::RttLoaded) => units::duration_us(value).replace(' ', ""),
        GridMetric::Other(_) => units::short(value),
    }
}

/// What is above its ceiling is at its ceiling; the rate stands in the title of the square.
fn percent_of_ceiling(share: f64) -> String {
    units::percent_number(share.min(1.0))
}

/// 0 good to 1 dead.
fn effect(value: f64, metric: GridMetric, typical: f64) -> f64 {
    let raw = match metric {
        GridMetric::Share => 1.0 - value,
        GridMetric::Rate => 1.0 - value / typical.max(1.0),
        // 1 % of loss already breaks TCP, 5 % everything.
        GridMetric::Other(Metric::Loss) => (value / 0.05).sqrt(),
        // Retransmits below 5 per second do no harm, whatever the others have.
        GridMetric::Other(Metric::Retransmits) => (value / typical.max(5.0)).max(1.0).log2() / 4.0,
        // Sixteen times the typical cost or time is as bad as it gets.
        GridMetric::Other(_) => (value / typical.max(f64::MIN_POSITIVE)).max(1.0).log2() / 4.0,
    };
    if raw.is_finite() { raw.clamp(0.0, 1.0) } else { 0.0 }
}

/// The throughput of a pair in words.
#[must_use]
pub fn throughput_text(cell: &Cell) -> String {
    match (cell.two_state_bps, cell.throughput_bps) {
        (Some((a, b)), _) => {
            format!("jumps between {} and {}", units::rate(a.max(b)), units::rate(a.min(b)))
        }
        (None, None) => "throughput not seen".to_owned(),
        (None, Some(v)) if v <= 0.0 => "nothing got through".to_owned(),
        (None, Some(v)) => units::rate(v),
    }
}

/// Everything that is known about a pair, one line.
fn title(cell: &Cell) -> String {
    let mut text = format!("{} to {}, {}: {}", cell.from, cell.to, cell.layer, throughput_text(cell));
    if let Some(bps) = cell.ceiling.bps {
        let _ =
            write!(text, "; ceiling {} set by {}", units::rate(bps), names::binding(cell.ceiling.binding));
    }
    let metrics = [
        (Metric::Loss, cell.loss),
        (Metric::RttIdle, cell.rtt_idle_us),
        (Metric::RttLoaded, cell.rtt_loaded_us),
        (Metric::Retransmits, cell.retransmits_per_s),
        (Metric::CpuCost, cell.cpu_s_per_gb),
    ];
    for (metric, value) in metrics.into_iter().filter_map(|(metric, value)| Some((metric, value?))) {
        let _ = write!(text, "; {} {}", metric.label(), units::value(value, metric.unit()));
    }
    text
}

/// One line per binding term: `ceiling 187 Mbit/s, set by the shared uplink (200 Mbit/s x …): 24 pairs`.
fn ceiling_lines(cells: &[&Cell]) -> Vec<String> {
    let mut terms: Vec<TermName> = cells.iter().map(|c| c.ceiling.binding).collect();
    terms.sort_unstable();
    terms.dedup();
    let mut lines: Vec<(usize, String)> = terms
        .into_iter()
        .filter_map(|term| {
            let mut bound: Vec<(&Cell, f64)> = cells
                .iter()
                .filter(|c| c.ceiling.binding == term)
                .filter_map(|c| c.ceiling.bps.map(|b| (*c, b)))
                .collect();
            bound.sort_by(|a, b| a.1.total_cmp(&b.1));
            let (low, high) = (bound.first()?, bound.last()?);
            let rate = if high.1 > low.1 * 1.05 {
                format!("{} to {}", units::rate(low.1), units::rate(high.1))
            } else {
                units::rate(high.1)
            };
            let why = low.0.ceiling.terms.iter().find(|t| t.name == term).map_or("", |t| t.why.as_str());
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            let pairs = units::counted(bound.len(), "pair");
            let line = match term {
                TermName::Peers => format!("comparable pairs reach {rate}: {pairs}"),
                _ => format!("ceiling {rate}, set by {}{why}: {pairs}", names::binding(term)),
            };
            Some((bound.len(), line))
        })
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.0));
    lines.into_iter().map(|line| line.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Heat::{Bad, Dead, Fine, Low};

    fn cell(share: Option<f64>) -> Cell {
        Cell {
            from: "a".into(),
            to: "b".into(),
            layer: Layer::Underlay,
            throughput_bps: share.map(|s| s * 1e9),
            two_state_bps: None,
            loss: None,
            rtt_idle_us: None,
            rtt_loaded_us: None,
            retransmits_per_s: None,
            cpu_s_per_gb: None,
            ceiling: linerate_model::finding::Ceiling {
                bps: Some(1e9),
                binding: TermName::Link,
                terms: Vec::new(),
            },
            share,
        }
    }

    #[test]
    fn dead_unseen_and_two_states_are_told_apart() {
        assert_eq!(square(&cell(Some(0.0)), GridMetric::Share, 0.0).kind, SquareKind::Dead);
        assert_eq!(square(&cell(None), GridMetric::Share, 0.0).text, "?");
        let mut two = cell(Some(0.6));
        two.two_state_bps = Some((0.24e9, 0.95e9));
        let square = square(&two, GridMetric::Share, 0.0);
        assert_eq!((square.kind, square.text.as_str(), square.heat), (SquareKind::Two, "95|24", Bad));
        assert!(square.title.contains("jumps between 950 Mbit/s and 240 Mbit/s"));
    }

    #[test]
    fn what_peers_reach_is_a_rate() {
        let mut cell = cell(Some(0.3));
        cell.ceiling.binding = TermName::Peers;
        let square = square(&cell, GridMetric::Share, 0.0);
        assert_eq!((square.text.as_str(), square.heat), ("300M", Bad));
    }

    #[test]
    fn heat_follows_the_share() {
        let heats: Vec<Heat> = [1.4, 0.99, 0.8, 0.6, 0.3, 0.1, 0.001]
            .iter()
            .map(|s| square(&cell(Some(*s)), GridMetric::Share, 0.0).heat)
            .collect();
        assert_eq!(heats, [Fine, Fine, Low, Low, Bad, Bad, Dead]);
        assert_eq!(square(&cell(Some(1.4)), GridMetric::Share, 0.0).text, "100");
    }

    #[test]
    fn odd_numbers_do_no_harm() {
        for share in [f64::NAN, f64::INFINITY, -1.0] {
            let square = square(&cell(Some(share)), GridMetric::Share, 0.0);
            assert!((0.0..=1.0).contains(&square.effect));
        }
    }
}
