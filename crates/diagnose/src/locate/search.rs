//! Greedy search with re-scoring over the hypotheses, jointly in all responses: a column has one price and
//! gains in every value that it explains, so responses that agree on a suspect strengthen it.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::Metric;
use linerate_model::inventory::{Inventory, Layer};
use linerate_model::sample::{Outcome, Sample};

use super::column::Column;
use super::contended::Contended;
use super::join::join;
use super::located::Located;
use super::queue::Queue;
use crate::evidence::{CellEvidence, Kind, is_of_probes, two_hosts};
use crate::metrics::{Row, are_confirmed, are_refuted, effect};
use crate::rules::{LocateRules, Rules};
use crate::stats::{median, student_t_log_density};

/// The rows with an index by cell, so that a narrow column does not look at all of them.
struct Table<'t, 'a> {
    rules: &'t LocateRules,
    rows: &'t [Row],
    cells: &'t [CellEvidence<'a>],
    by_cell: Vec<Vec<usize>>,
    /// Columns of which a cell is a part.
    touching: Vec<Vec<usize>>,
    contended: Option<Contended>,
    two_hosts: bool,
}

impl<'t, 'a> Table<'t, 'a> {
    fn new(
        hosts: usize,
        columns: &[Column],
        rows: &'t [Row],
        cells: &'t [CellEvidence<'a>],
        rules: &'t LocateRules,
    ) -> Self {
        let mut by_cell = vec![Vec::new(); cells.len()];
        for (i, row) in rows.iter().enumerate() {
            by_cell[row.cell].push(i);
        }
        let mut touching = vec![Vec::new(); cells.len()];
        for (i, column) in columns.iter().enumerate() {
            for cell in column.parts.iter().flatten() {
                touching[*cell].push(i);
            }
        }
        let contended = Contended::of(hosts, rows, rules);
        Self { rules, rows, cells, by_cell, touching, contended, two_hosts: two_hosts(cells) }
    }

    /// All columns that share a cell with these, in their order.
    fn near(&self, cells: &BTreeSet<usize>) -> BTreeSet<usize> {
        cells.iter().flat_map(|cell| self.touching[*cell].iter().copied()).collect()
    }
}

/// What a column would explain.
#[derive(Debug, Clone, Default)]
struct Fit {
    score: f64,
    gains: BTreeMap<Metric, f64>,
    /// Row and its shift.
    shifts: Vec<(usize, f64)>,
}

/// Rows of the values that follow from other losses count less than those that are the loss itself.
fn weight(response: Metric, rules: &LocateRules) -> f64 {
    match response {
        Metric::Retransmits => rules.weight_retransmits,
        Metric::RttIdle => rules.weight_rtt_idle,
        Metric::CpuCost => rules.weight_cpu_cost,
        _ => 1.0,
    }
}

/// A value that follows from another loss rather than being one.
fn secondary(response: Metric) -> bool {
    !matches!(response, Metric::Throughput)
}

/// The suspects that explain the rows, strongest first, and the log odds that one needs which is bad at
/// times: alone, and beside others.
pub(super) fn search(
    inventory: &Inventory,
    cells: &[CellEvidence<'_>],
    columns: &[Column],
    rows: &[Row],
    rules: &Rules,
) -> (Vec<Located>, [f64; 2]) {
    let (all, rules) = (rules, &rules.locate);
    let mut residual: Vec<f64> = rows.iter().map(|r| r.y).collect();
    let mut alive = vec![true; rows.len()];
    let mut found: Vec<Located> = Vec::new();
    let mut doubted: Vec<Located> = Vec::new();
    let table = Table::new(inventory.hosts.len(), columns, rows, cells, rules);
    // Thousands of hosts are thousands of chances that several of a host's tests were contended.
    let accept_more = rules.accept_more
        + rules.accept_growth * (inventory.hosts.len() as f64 / rules.accept_growth_hosts).max(1.0).ln();
    let accept_first = if two_hosts(cells) { rules.accept_two_hosts } else { rules.accept };
    let common = common(columns, &table, &mut residual, &mut alive);
    let mut fits: Vec<Fit> = columns.iter().map(|c| fit(c, &table, &residual, &alive)).collect();
    let mut queue = Queue::default();
    for (i, fit) in fits.iter().enumerate() {
        queue.put(i, fit.score);
    }
    let most = rules.findings_max + inventory.hosts.len() / rules.hosts_per_finding;
    while found.len() < most {
        let Some(best) = queue.take(|i| fits[i].score) else { break };
        let first = found.is_empty() && common.is_none() && table.contended.is_none();
        let needed = if first { accept_first } else { accept_more };
        if fits[best].score < needed {
            queue.put(best, fits[best].score);
            break;
        }
        // In a large cluster something else disturbs many single tests: they must not keep the search from
        // going on.
        let mine = fits[best].shifts.iter().map(|(row, _)| *row).collect();
        if doubted.len() >= rules.doubted_max && is_unconfirmed(&columns[best], &mine, &table) {
            continue;
        }
        let located = accept(best, columns, &fits, &table, &residual, &alive);
        let before = (residual.clone(), alive.clone());
        for (row, shift) in &fits[best].shifts {
            // Bad cells scatter with the size of their loss: what is left of it is no loss of its own.
            residual[*row] = (residual[*row] - rules.explained_factor * shift).max(0.0);
            // What is dead tells nothing more.
            if rows[*row].y > all.metrics.dead || rows[*row].response != Metric::Throughput {
                alive[*row] = false;
            }
        }
        let covered = columns[best].cells();
        for (i, row) in rows.iter().enumerate().filter(|(_, r)| secondary(r.response)) {
            let follows = covered.contains(&row.cell)
                || (!located.unconfirmed && columns[best].touches(inventory, &cells[row.cell]));
            alive[i] &= !follows || columns[best].suspect == linerate_model::finding::Suspect::All;
        }
        if located.unconfirmed {
            doubted.push(located);
        } else {
            found.push(located);
        }
        // Only hypotheses about cells in which something changed fit otherwise than before.
        let changed: BTreeSet<usize> = (0..rows.len())
            .filter(|i| before.0[*i].to_bits() != residual[*i].to_bits() || before.1[*i] != alive[*i])
            .flat_map(|i| table.touching[rows[i].cell].iter().copied())
            .collect();
        for column in changed {
            fits[column] = fit(&columns[column], &table, &residual, &alive);
            queue.put(column, fits[column].score);
        }
    }
    let suspected = suspicions(&mut queue, columns, &fits, &table, &residual, &alive);
    doubted.extend(suspected.into_iter().map(|s| proven(s, &found, inventory, &table)));
    let mut found = join(found, columns, rows, all);
    found.extend(common);
    found.extend(doubted);
    let accept = [if table.contended.is_some() { accept_more } else { rules.accept }, accept_more];
    (found, accept)
}

/// What lost something where no loss was found, strongest first: too little to believe, and too much to pass
/// over without a repetition. Healthy probes lose no datagram at all; between two hosts a transfer has to be
/// slow twice.
fn suspicions(
    queue: &mut Queue,
    columns: &[Column],
    fits: &[Fit],
    table: &Table<'_, '_>,
    residual: &[f64],
    alive: &[bool],
) -> Vec<Located> {
    let mut suspected: Vec<Located> = Vec::new();
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    while suspected.len() < table.rules.suspicions_max {
        let Some(best) = queue.take(|i| fits[i].score) else { break };
        if fits[best].score < table.rules.suspected {
            break;
        }
        let mine: BTreeSet<usize> = fits[best].shifts.iter().map(|(row, _)| *row).collect();
        let twice = mine.iter().any(|row| table.cells[table.rows[*row].cell].rates.len() > 1);
        let is_loss =
            |r: &Metric| is_of_probes(*r) || (*r == Metric::Throughput && (!table.two_hosts || twice));
        if fits[best].gains.keys().any(is_loss) && mine.is_disjoint(&taken) {
            let located = accept(best, columns, fits, table, residual, alive);
            suspected.push(Located { unconfirmed: true, ..located });
            taken.extend(mine);
        }
    }
    suspected
}

/// A suspicion that repetitions confirmed on the one way that it is about, at whose ends nothing else was
/// found: a further finding needs more only because what remains of the first looks like others.
fn proven(suspicion: Located, found: &[Located], inventory: &Inventory, table: &Table<'_, '_>) -> Located {
    let cells = || suspicion.rows.iter().map(|row| &table.cells[table.rows[*row].cell]);
    let ways: BTreeSet<(&str, &str)> = cells().map(|c| (c.from.min(c.to), c.from.max(c.to))).collect();
    let said: Vec<&Row> = suspicion.rows.iter().map(|row| &table.rows[*row]).collect();
    let is_apart = |f: &Located| !cells().any(|cell| f.column.touches(inventory, cell));
    // Of two hosts there are few values, however often they were repeated.
    let needed = if table.two_hosts { table.rules.suspected } else { table.rules.accept };
    let is_proven = suspicion.score >= needed
        && ways.len() == 1
        && are_confirmed(&said, table.cells)
        && found.iter().all(is_apart);
    Located { unconfirmed: !is_proven, ..suspicion }
}

/// What is missing in all cells of a kind, before the differences between them are looked at: mostly `all`,
/// unless a suspect passes through all of them.
fn common(
    columns: &[Column],
    table: &Table<'_, '_>,
    residual: &mut [f64],
    alive: &mut [bool],
) -> Option<Located> {
    let (rows, cells) = (table.rows, table.cells);
    if rows.iter().all(|r| r.common == 0.0) {
        return None;
    }
    let fits: Vec<Fit> = columns.iter().map(|c| fit(c, table, residual, alive)).collect();
    let kinds: BTreeSet<Kind> = rows.iter().filter(|r| r.common > 0.0).map(|r| r.kind).collect();
    let whole: BTreeSet<usize> = (0..cells.len()).filter(|i| kinds.contains(&cells[*i].kind)).collect();
    let best = (0..columns.len())
        .filter(|i| fits[*i].score >= table.rules.accept && columns[*i].cells().is_superset(&whole))
        .max_by(|a, b| fits[*a].score.total_cmp(&fits[*b].score))?;
    let mut located = accept(best, columns, &fits, table, residual, alive);
    located.alternatives.retain(|(column, _)| column.cells().is_superset(&whole));
    for (i, row) in rows.iter().enumerate() {
        residual[i] = (residual[i] - row.common).max(0.0);
    }
    for (row, _) in fits[best].shifts.iter().filter(|(row, _)| rows[*row].common == 0.0) {
        alive[*row] = false;
    }
    Some(located)
}

/// Gain of one part of a column in one response and kind.
fn part_gain(indices: &[usize], table: &Table<'_, '_>, residual: &[f64]) -> Option<(f64, Vec<(usize, f64)>)> {
    let (rows, rules) = (table.rows, table.rules);
    let bad = indices.iter().filter(|i| residual[**i] >= rows[**i].effect_min);
    let bad: Vec<f64> = bad.map(|i| residual[*i]).collect();
    if (bad.len() as f64) < rules.bad_share * indices.len() as f64 {
        return None;
    }
    let shift = median(&bad)?;
    let mut gain = 0.0;
    let mut shifts = Vec::new();
    for i in indices {
        let (y, sigma) = (residual[*i], rows[*i].sigma);
        // Bad cells scatter with the size of their loss; of few cells the size is hardly known, so that
        // cutting a suspect into its paths does not look like a better explanation.
        let wide = sigma.max(shift * (rules.wide_base + rules.wide_few / indices.len() as f64));
        let healthy = match table.contended.filter(|_| rows[*i].response == Metric::Throughput) {
            Some(contended) => contended.log_density(y, sigma, rules.degrees_of_freedom),
            None => student_t_log_density(y, sigma, rules.degrees_of_freedom),
        };
        let step = student_t_log_density(y - shift, wide, rules.degrees_of_freedom) - healthy;
        gain += weight(rows[*i].response, rules) * step;
        if y >= rules.mild_share * rows[*i].effect_min {
            shifts.push((*i, shift));
        }
    }
    gain -= rules.size_penalty * ((indices.len() + 1) as f64).ln();
    (gain > 0.0).then_some((gain, shifts))
}

/// What one part of a column explains.
#[derive(Default)]
struct PartFit {
    total: f64,
    gains: BTreeMap<Metric, f64>,
    shifts: Vec<(usize, f64)>,
}

fn fit_part(part: &[usize], table: &Table<'_, '_>, residual: &[f64], alive: &[bool]) -> PartFit {
    // Most parts of a large cluster are healthy: nothing gains there, whatever the rest says.
    let is_bad = |i: &&usize| alive[**i] && residual[**i] >= table.rows[**i].effect_min;
    if !part.iter().flat_map(|cell| &table.by_cell[*cell]).any(|i| is_bad(&i)) {
        return PartFit::default();
    }
    let mut slots: BTreeMap<(Metric, Kind), Vec<usize>> = BTreeMap::new();
    for i in part.iter().flat_map(|cell| &table.by_cell[*cell]).filter(|i| alive[**i]) {
        slots.entry((table.rows[*i].response, table.rows[*i].kind)).or_default().push(*i);
    }
    let mut fit = PartFit::default();
    let mut clean: Vec<Layer> = Vec::new();
    let mut gained: BTreeSet<Layer> = BTreeSet::new();
    let few = table.contended.is_some() && few_are_bad(&slots, table, residual);
    for ((response, kind), indices) in &slots {
        match part_gain(indices, table, residual).filter(|_| !few || *response != Metric::Throughput) {
            Some((gain, shifts)) => {
                fit.total += gain;
                *fit.gains.entry(*response).or_insert(0.0) += gain;
                fit.shifts.extend(shifts);
                gained.insert(kind.layer);
            }
            None if !secondary(*response) => clean.push(kind.layer),
            None => {}
        }
    }
    // A kind of traffic that should suffer too and does not speaks mildly against the column. Of two hosts
    // there is so little evidence that a layer which loses nothing must not outvote the one that does: only
    // one layer may be bad.
    let counts = |layer: &&Layer| !table.two_hosts || gained.contains(*layer);
    fit.total -= table.rules.clean_layer * clean.iter().filter(counts).count() as f64;
    fit
}

/// Whether less than the share that is asked of each kind of traffic is bad in all of them together: in a
/// large cluster a single test of one kind says nothing against several of the other.
fn few_are_bad(
    slots: &BTreeMap<(Metric, Kind), Vec<usize>>,
    table: &Table<'_, '_>,
    residual: &[f64],
) -> bool {
    let rows = table.rows;
    let transfers = || slots.iter().filter(|((r, _), _)| *r == Metric::Throughput).flat_map(|(_, i)| i);
    let bad = transfers().filter(|i| residual[**i] >= rows[**i].effect_min).count();
    (bad as f64) < table.rules.bad_share * transfers().count() as f64
}

fn fit(column: &Column, table: &Table<'_, '_>, residual: &[f64], alive: &[bool]) -> Fit {
    let nothing = Fit { score: f64::NEG_INFINITY, ..Fit::default() };
    let parts: Vec<PartFit> = column.parts.iter().map(|p| fit_part(p, table, residual, alive)).collect();
    // Every part has to gain, and in the same value, or it is not this column: what follows from a loss in
    // one direction is no loss in the other.
    let gains =
        |part: &PartFit, r: &Metric| part.gains.get(r).is_some_and(|gain| *gain > table.rules.part_min);
    let shared = |r: &Metric| *r != Metric::Retransmits && parts.iter().all(|p| gains(p, r));
    if parts.iter().any(|p| p.total <= table.rules.part_min)
        || !parts.iter().flat_map(|p| p.gains.keys()).any(shared)
    {
        return nothing;
    }
    let mut total =
        Fit { score: -column.penalty - table.rules.second_part * (parts.len() - 1) as f64, ..Fit::default() };
    for part in parts {
        total.score += part.total;
        for (response, gain) in part.gains {
            *total.gains.entry(response).or_insert(0.0) += gain;
        }
        total.shifts.extend(part.shifts);
    }
    total
}

/// The chosen column with what else could explain the same rows.
fn accept(
    best: usize,
    columns: &[Column],
    fits: &[Fit],
    table: &Table<'_, '_>,
    residual: &[f64],
    alive: &[bool],
) -> Located {
    let mine: BTreeSet<usize> = fits[best].shifts.iter().map(|(row, _)| *row).collect();
    let overlap = |i: usize| {
        let theirs = fits[i].shifts.iter().filter(|(row, _)| mine.contains(row)).count();
        theirs as f64 >= table.rules.overlap_min * mine.len() as f64
    };
    let limit = fits[best].score - table.rules.ambiguous;
    // Of two hosts several suspects harm the same two paths: what was measured speaks for each of them alike.
    let covered = columns[best].cells();
    let score = |i: usize| {
        if table.two_hosts && columns[i].cells() == covered {
            return Some(fits[best].score + columns[best].penalty - columns[i].penalty);
        }
        Some(fits[i].score).filter(|score| *score >= limit && overlap(i))
    };
    // What explains the same rows shares a cell with it: of thousands of hosts all others need no look.
    let near = table.near(&covered);
    let mut alternatives: Vec<(Column, f64)> = near
        .iter()
        .filter(|i| **i != best)
        .filter_map(|i| Some((columns[*i].clone(), score(*i).filter(|s| *s >= limit)?)))
        .collect();
    alternatives.extend(several(best, &near, columns, fits, table, residual, alive));
    alternatives.sort_by(|a, b| b.1.total_cmp(&a.1));
    alternatives.truncate(table.rules.alternatives_max);
    let mut gains: Vec<(Metric, f64)> = fits[best].gains.iter().map(|(r, g)| (*r, *g)).collect();
    gains.sort_by(|a, b| b.1.total_cmp(&a.1));
    Located {
        column: columns[best].clone(),
        score: fits[best].score,
        gains,
        unconfirmed: is_unconfirmed(&columns[best], &mine, table),
        rows: mine.into_iter().collect(),
        alternatives,
        values: None,
    }
}

/// Two or three paths that together explain the rows as well as the chosen column: the senders instead of the
/// receiver.
fn several(
    best: usize,
    near: &BTreeSet<usize>,
    columns: &[Column],
    fits: &[Fit],
    table: &Table<'_, '_>,
    residual: &[f64],
    alive: &[bool],
) -> Vec<(Column, f64)> {
    let rules = table.rules;
    let mine = columns[best].cells();
    let pairs: BTreeSet<(&str, &str)> =
        mine.iter().map(|i| (table.cells[*i].from, table.cells[*i].to)).collect();
    if pairs.len() < rules.several_pairs_min {
        return Vec::new();
    }
    let mut candidates: Vec<usize> = near
        .iter()
        .copied()
        .filter(|i| *i != best && fits[*i].score > 0.0 && columns[*i].suspect != columns[best].suspect)
        .filter(|i| {
            let cells = columns[*i].cells();
            let half = columns[best]
                .parts
                .iter()
                .any(|p| p.len() == cells.len() && p.iter().all(|c| cells.contains(c)));
            cells.is_subset(&mine) && cells.len() < mine.len() && !half
        })
        .collect();
    candidates.sort_by(|a, b| fits[*b].score.total_cmp(&fits[*a].score));
    let (mut residual, mut alive) = (residual.to_vec(), alive.to_vec());
    let (mut set, mut total) = (Vec::new(), 0.0);
    for _ in 0..2 {
        let next = candidates
            .iter()
            .map(|i| (*i, fit(&columns[*i], table, &residual, &alive)))
            .max_by(|a, b| a.1.score.total_cmp(&b.1.score));
        let Some((i, fit)) = next.filter(|(_, f)| f.score > 0.0) else { break };
        total += fit.score + columns[i].penalty - rules.several;
        set.push(columns[i].clone());
        for (row, shift) in fit.shifts {
            residual[row] = (residual[row] - shift).max(0.0);
            alive[row] = false;
        }
    }
    // One suspect is preferred to several that do the same.
    let total = total.min(fits[best].score - rules.several_below);
    if set.len() > 1 && total >= fits[best].score - rules.several_ambiguous {
        set.into_iter().map(|c| (c, total)).collect()
    } else {
        Vec::new()
    }
}

/// One or two cells could be chance: they count when repeats agree, or when there is nothing else to measure.
fn is_unconfirmed(column: &Column, mine: &BTreeSet<usize>, table: &Table<'_, '_>) -> bool {
    let (rows, cells, rules) = (table.rows, table.cells, table.rules);
    let affected: BTreeSet<(&str, &str)> =
        mine.iter().map(|r| (cells[rows[*r].cell].from, cells[rows[*r].cell].to)).collect();
    let directed = affected.len() == 1;
    let is_pair = matches!(column.suspect, linerate_model::finding::Suspect::Pair(..));
    let said: Vec<&Row> = mine.iter().map(|r| &rows[*r]).collect();
    if two_hosts(cells) || !(directed || is_pair) {
        return are_refuted(&said, cells);
    }
    let mut evidence: Vec<&CellEvidence<'_>> = Vec::new();
    for row in mine {
        let cell = &cells[rows[*row].cell];
        if !evidence.iter().any(|c| std::ptr::eq(*c, cell)) {
            evidence.push(cell);
        }
    }
    let confirmed = are_confirmed(&said, cells);
    // So large a loss in each of two transfers is no chance.
    let twice = |row: &Row| {
        let rates = &cells[row.cell].rates;
        let is_collapsed = |rate: &f64| {
            effect(row.response, *rate, row.expected, &cells[row.cell].rules.metrics) >= rules.collapsed
        };
        row.response == Metric::Throughput && rates.len() >= 2 && rates.iter().all(is_collapsed)
    };
    let collapsed = mine.iter().any(|r| twice(&rows[*r]));
    // Several tests in which nothing at all got through are repetitions of each other, whatever their kind;
    // that others got through says that it comes and goes.
    let dead = |sample: &&&Sample| matches!(sample.outcome, Outcome::NothingThrough { .. });
    let dead_again = evidence.iter().flat_map(|c| &c.samples).filter(dead).count() >= rules.dead_tests_min;
    !(confirmed || collapsed || dead_again)
}
