//! Joins where and why: every location that explains the losses nearly as well as the best is asked for its
//! causes, and the two answers are weighed together. Located columns come in, judged locations go out.

use std::collections::{BTreeMap, BTreeSet};

use linerate_knowledge::{Knowledge, SuspectKind};
use linerate_model::finding::{BenignDifference, Direction, FactHit, LayerScope, Metric, Suspect};
use linerate_model::inventory::Layer;

use crate::attribute::shape::{self, Shape};
use crate::attribute::{self, Peers, Scored, Subjects, SuspectContext};
use crate::context::Context;
use crate::evidence::{CellEvidence, Facts};
use crate::locate::{Column, Located};
use crate::metrics::{Row, are_confirmed};
use crate::other_traffic;
use crate::rules::AttributeRules;
use crate::stats::median;

/// A location with its probability.
pub(crate) type Weighed = (Suspect, Direction, f64);

/// A located loss with locations and causes.
pub(crate) struct Judged<'a, 'k> {
    /// What the localisation said.
    pub located: Located,
    /// Suspects, most probable first.
    pub locations: Vec<Weighed>,
    /// Which layers.
    pub layer: LayerScope,
    /// Responses, strongest first.
    pub responses: Vec<Metric>,
    /// Measured values at the best location.
    pub shape: Shape,
    /// Hosts whose facts count there.
    pub subjects: Subjects<'a>,
    /// Causes with their probabilities, most probable first.
    pub causes: Vec<(Scored<'k>, f64)>,
    /// Differences there that no cause explains, with their probabilities.
    pub differences: Vec<(BenignDifference, f64)>,
}

/// Weighs the locations and causes of a located loss.
pub(crate) fn judge<'a, 'k>(
    context: &Context<'a>,
    located: Located,
    knowledge: &'k Knowledge,
) -> Judged<'a, 'k> {
    let rules = &context.facts.rules.attribute;
    let layer = layer_scope(context, &located);
    let mut responses: Vec<Metric> = located.gains.iter().map(|(r, _)| *r).collect();
    // Two levels outrank the lower of them as a throughput, and what is lost outranks what was agreed.
    responses.sort_by_key(|r| (*r == Metric::TcpOptions, *r != Metric::TwoState));
    let mut columns = vec![(located.column.clone(), located.score)];
    for (column, score) in &located.alternatives {
        if !columns.iter().any(|(c, _)| is_alias(&context.facts, c, column)) {
            columns.push((column.clone(), *score));
        }
    }
    columns.extend(only_pair(context, &columns));
    let by_evidence = columns.len();
    columns.extend(common_ends(context, &located, &columns));
    let mut weighed: Vec<(usize, f64, Vec<Scored<'k>>)> = Vec::new();
    let mut contexts = Vec::new();
    for (i, (column, score)) in columns.iter().enumerate() {
        let subjects = subjects(context, &column.suspect, &located.rows);
        let members = member_suspects(context, &column.suspect);
        let shape = shape_at(context, &located, &members);
        let location = SuspectContext {
            suspect: &column.suspect,
            direction: column.direction,
            layer,
            responses: &responses,
            shape: &shape,
            subjects: &subjects,
            has_alias: alias(&context.facts, &column.suspect).is_some(),
        };
        let mut ranked = attribute::rank(&context.facts, &location, knowledge);
        ranked.retain(|s| !s.cause.is_independent());
        if i >= by_evidence {
            // Only what was read on that host speaks for it.
            ranked.retain(|s| s.hits.iter().any(|hit| Suspect::Host(hit.host.clone()) == column.suspect));
        }
        let total = total_weight(layer, &ranked, i < by_evidence, rules);
        weighed.push((i, score + total.ln(), ranked));
        contexts.push((shape, subjects));
    }
    weighed.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (best, top, _) = &weighed[0];
    let sum: f64 = weighed.iter().map(|(_, s, _)| (s - top).exp()).sum();
    let mut locations: Vec<Weighed> = weighed
        .iter()
        .map(|(i, s, _)| (columns[*i].0.suspect.clone(), columns[*i].0.direction, (s - top).exp() / sum))
        .collect();
    let mut causes = merge_causes(&columns, &weighed);
    let (shape, subjects) = contexts.swap_remove(*best);
    let differences = compete(context, &subjects, &shape, layer, &mut causes, knowledge);
    settle(&context.facts, &mut locations, &causes);
    narrow(context, &mut locations, &causes);
    let mut located = located;
    let none = 1.0 - causes.iter().map(|c| c.1).chain(differences.iter().map(|d| d.1)).sum::<f64>();
    let likely = causes.first().is_some_and(|(_, probability)| *probability >= rules.explains_min * none);
    located.unconfirmed |= !likely && responses.iter().copied().all(follows_from_a_loss);
    located.unconfirmed |=
        contradicts_the_overlay(context, &located, layer) && causes.iter().all(|(s, _)| s.hits.is_empty());
    Judged { located, locations, layer, responses, shape, subjects, causes, differences }
}

/// Whether a way loses plain traffic while the tunnel that goes the same way has all of its rate: a contended
/// test more often than a network, until a repetition says the same.
fn contradicts_the_overlay(context: &Context<'_>, located: &Located, layer: LayerScope) -> bool {
    let is_way = matches!(located.column.suspect, Suspect::Pair(..) | Suspect::GroupToGroup(..));
    let bad: Vec<&Row> = located.rows.iter().map(|row| &context.rows[*row]).collect();
    is_way && layer == LayerScope::Only(Layer::Underlay) && !are_confirmed(&bad, &context.cells)
}

/// Values that follow from a loss and come by themselves too: a datagram that is late, a queue that is longer
/// than others, CPU time on a busy machine. Without a loss, and without a cause that is known to do just
/// that, they are no finding.
fn follows_from_a_loss(response: Metric) -> bool {
    matches!(response, Metric::Stalls | Metric::RttLoaded | Metric::Retransmits | Metric::CpuCost)
}

/// Hosts that every bad path of a pair, or between two groups, shares. A mild fault shows only towards the
/// fastest peers: then the loss looks like that of a path, and a setting on the host that all of it begins or
/// ends at explains more.
fn common_ends(context: &Context<'_>, located: &Located, columns: &[(Column, f64)]) -> Vec<(Column, f64)> {
    let (best, score) = &columns[0];
    if context.measured.len() < 3 || !matches!(best.suspect, Suspect::Pair(..) | Suspect::GroupToGroup(..)) {
        return Vec::new();
    }
    let cells: Vec<_> = located.rows.iter().map(|r| &context.cells[context.rows[*r].cell]).collect();
    let Some(first) = cells.first() else { return Vec::new() };
    let mut found = Vec::new();
    for host in [first.from, first.to] {
        let direction = if cells.iter().all(|c| c.from == host) {
            Direction::Tx
        } else if cells.iter().all(|c| c.to == host) {
            Direction::Rx
        } else if cells.iter().all(|c| c.from == host || c.to == host) {
            Direction::Both
        } else {
            continue;
        };
        let suspect = Suspect::Host(host.to_owned());
        if !columns.iter().any(|(c, _)| c.suspect == suspect && c.direction == direction) {
            let parts = located.column.parts.clone();
            found.push((
                Column { suspect, direction, parts, ..best.clone() },
                score - context.facts.rules.attribute.others_are_fine,
            ));
        }
    }
    found
}

/// Of two hosts every pair is the one pair: under that name other causes are possible, such as a filter
/// between them.
fn only_pair(context: &Context<'_>, columns: &[(Column, f64)]) -> Option<(Column, f64)> {
    let [a, b] = context.measured[..] else { return None };
    let suspect = Suspect::Pair(a.to_owned(), b.to_owned());
    let is_pair = |c: &Column| c.suspect == suspect && c.direction == Direction::Both;
    let (all, score) = columns.iter().find(|(c, _)| c.suspect == Suspect::All)?;
    let pair = Column { suspect: suspect.clone(), direction: Direction::Both, ..all.clone() };
    (!columns.iter().any(|(c, _)| is_pair(c))).then_some((pair, *score))
}

/// Weight of all causes of a suspect; one whose cause no file knows is possible where it was located.
fn total_weight(
    layer: LayerScope,
    ranked: &[Scored<'_>],
    may_be_unknown: bool,
    rules: &AttributeRules,
) -> f64 {
    let none = attribute::none_of_these(layer, std::iter::empty(), rules);
    ranked.iter().map(|s| s.score.exp()).sum::<f64>() + if may_be_unknown { none.exp() } else { 0.0 }
}

/// The shape of what was located, seen from suspects.
fn shape_at(context: &Context<'_>, located: &Located, members: &[&str]) -> Shape {
    let mut shape = shape::of(&context.facts, &context.cells, &context.rows, &located.rows, members);
    shape.intermittent = located.values.is_some();
    let bad: BTreeSet<usize> = located.rows.iter().map(|row| context.rows[*row].cell).collect();
    let bad = bad.iter().map(|cell| &context.cells[*cell]);
    if let Some(share) = other_traffic::share(&context.facts, bad, members) {
        shape.set("others_share", share);
    }
    shape
}

/// Lets the differences that no cause explains compete with the causes.
fn compete(
    context: &Context<'_>,
    subjects: &Subjects<'_>,
    shape: &Shape,
    layer: LayerScope,
    causes: &mut [(Scored<'_>, f64)],
    knowledge: &Knowledge,
) -> Vec<(BenignDifference, f64)> {
    let rules = context.facts.rules;
    let each = causes.iter().map(|(scored, score)| (scored, *score));
    let none = attribute::none_of_these(layer, each, &rules.attribute);
    let mut scores: Vec<f64> = causes.iter().map(|(_, score)| *score).collect();
    let alone = attribute::probabilities(&scores, none);
    let listed = || causes.iter().zip(&alone).filter(|(_, p)| **p >= rules.merge.explained_min);
    let explained: Vec<&FactHit> = listed().flat_map(|((scored, _), _)| &scored.hits).collect();
    let accompanying: Vec<String> =
        listed().flat_map(|((scored, _), _)| &scored.cause.accompanies).cloned().collect();
    let found =
        attribute::unexplained(&context.facts, subjects, shape, layer, knowledge, &explained, &accompanying);
    scores.extend(found.iter().map(|unexplained| unexplained.score.unwrap_or(f64::NEG_INFINITY)));
    let shares = attribute::probabilities(&scores, none);
    let (of_causes, of_differences) = shares.split_at(causes.len());
    for ((_, score), share) in causes.iter_mut().zip(of_causes) {
        *score = *share;
    }
    found.into_iter().map(|unexplained| unexplained.difference).zip(of_differences.iter().copied()).collect()
}

/// Causes with their log odds: a cause has the weight of all suspects at which it is possible.
fn merge_causes<'k>(
    columns: &[(Column, f64)],
    weighed: &[(usize, f64, Vec<Scored<'k>>)],
) -> Vec<(Scored<'k>, f64)> {
    let best_column = weighed.iter().map(|(i, _, _)| columns[*i].1).fold(f64::NEG_INFINITY, f64::max);
    let mut by_id: BTreeMap<&str, (Scored<'k>, f64)> = BTreeMap::new();
    for (i, _, ranked) in weighed {
        let location = columns[*i].1 - best_column;
        for scored in ranked {
            let weight = (scored.score + location).exp();
            by_id
                .entry(&scored.cause.id)
                .and_modify(|(kept, total)| {
                    if scored.score + location > kept.score {
                        *kept = Scored { score: scored.score + location, ..scored.clone() };
                    }
                    *total += weight;
                })
                .or_insert_with(|| (Scored { score: scored.score + location, ..scored.clone() }, weight));
        }
    }
    let mut causes: Vec<(Scored<'k>, f64)> = by_id.into_values().collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cause.id.cmp(&b.0.cause.id)));
    for (_, weight) in &mut causes {
        *weight = weight.ln();
    }
    causes
}

/// The leading cause says what kind of suspect it sits in: a host and its group of one are the same location,
/// and a cause that harms both directions is not a cause of one only because the other was too weak to see.
fn settle(facts: &Facts<'_>, locations: &mut Vec<Weighed>, causes: &[(Scored<'_>, f64)]) {
    let Some((cause, probability)) = causes.first() else { return };
    let rules = &facts.rules.attribute;
    let (suspect, direction, _) = &mut locations[0];
    let kind = SuspectKind::of(suspect, *direction);
    let other_name = cause.native == kind.alias() || cause.native == kind.alias().widened();
    if let Some(other) =
        alias(facts, suspect).filter(|_| other_name && cause.native.is_group() != kind.is_group())
    {
        *suspect = other;
    }
    let kind = SuspectKind::of(suspect, *direction);
    if cause.native != kind
        && cause.native == kind.widened()
        && (*probability > rules.direction_min || !cause.hits.is_empty())
    {
        *direction = Direction::Both;
    }
    if let Some(pattern) = &cause.cause.mismatch
        && *probability > rules.mismatch_min
        && let Some(key) =
            cause.hits.iter().map(|h| &h.key).find(|k| linerate_knowledge::keys::pattern_fits(pattern, k))
    {
        let hosts: BTreeSet<String> = cause.hits.iter().map(|h: &FactHit| h.host.clone()).collect();
        let before = (suspect.clone(), *direction, locations[0].2 * rules.mismatch_rest);
        let mismatch = Suspect::Mismatch(key.clone(), hosts.into_iter().collect());
        locations[0] = (mismatch, Direction::Both, locations[0].2 * rules.mismatch_share);
        locations.insert(1, before);
    }
}

/// Values that datagrams show, each for the direction in which they go.
fn is_one_way(response: Metric) -> bool {
    matches!(response, Metric::Loss | Metric::Reordering | Metric::Stalls)
}

/// The direction of a location that seems to suffer in both, where the hook of a rule or datagrams show it:
/// what holds packets back in one direction also holds the acknowledgements of the other back, so that TCP
/// suffers in both.
fn narrow(context: &Context<'_>, locations: &mut Vec<Weighed>, causes: &[(Scored<'_>, f64)]) {
    let Some((cause, probability)) = causes.first() else { return };
    let symptom = &cause.cause.symptom;
    let response = symptom.responses.first().copied().filter(|r| is_one_way(*r));
    // Whether datagrams suffer on a way, if any were sent on it. What another finding has explained suffers
    // all the same.
    let suffers = |suspect: &Suspect, direction: Direction| {
        let response = response?;
        let crossing = |row: &&Row| {
            let cell = &context.cells[row.cell];
            row.response == response && context.passes(suspect, direction, cell.from, cell.to)
        };
        let mut all = context.rows.iter().filter(crossing).peekable();
        all.peek()?;
        Some(all.any(|row| row.y >= row.effect_min))
    };
    let decides = *probability > context.facts.rules.attribute.direction_min;
    for (suspect, direction, _) in locations.iter_mut().filter(|p| p.1 == Direction::Both) {
        let only = match (suffers(suspect, Direction::Rx), suffers(suspect, Direction::Tx)) {
            (Some(true), Some(false)) => Some(Direction::Rx),
            (Some(false), Some(true)) => Some(Direction::Tx),
            _ => None,
        };
        let only = cause.direction_of_hooks().or(only).filter(|_| decides);
        let Some(only) = only.or_else(|| slow_direction(context, suspect)) else { continue };
        let kind = SuspectKind::of(suspect, only);
        if symptom.suspects.contains(&kind) || symptom.suspects.contains(&kind.alias()) {
            *direction = only;
        }
    }
    // The same location may have stood beside it with this direction.
    let mut merged: Vec<Weighed> = Vec::new();
    for location in locations.drain(..) {
        match merged.iter_mut().find(|m| m.0 == location.0 && m.1 == location.1) {
            Some(same) => same.2 += location.2,
            None => merged.push(location),
        }
    }
    merged.sort_by(|a, b| b.2.total_cmp(&a.2));
    *locations = merged;
}

/// The direction in which transfers are far too slow while most of those of the other one are not.
fn slow_direction(context: &Context<'_>, suspect: &Suspect) -> Option<Direction> {
    let far_off = context.facts.rules.attribute.slow_direction_min;
    let lost = |direction: Direction| {
        let rows = context.rows.iter().filter(|row| row.response == Metric::Throughput).filter(|row| {
            let cell = &context.cells[row.cell];
            context.passes(suspect, direction, cell.from, cell.to)
        });
        median(&rows.map(|row| row.y / row.effect_min).collect::<Vec<_>>())
    };
    match (lost(Direction::Rx)?, lost(Direction::Tx)?) {
        (rx, tx) if rx < 1.0 && tx >= far_off => Some(Direction::Tx),
        (rx, tx) if tx < 1.0 && rx >= far_off => Some(Direction::Rx),
        _ => None,
    }
}

/// The group of which a host is the only member, or the only member of a group.
pub(crate) fn alias(facts: &Facts<'_>, suspect: &Suspect) -> Option<Suspect> {
    match suspect {
        Suspect::Host(host) => facts
            .snapshot
            .inventory
            .groups_of(host)
            .into_iter()
            .find(|g| facts.members(&g.name).len() == 1)
            .map(|g| Suspect::Group(g.name.clone())),
        Suspect::Group(group) => match facts.members(group) {
            [only] => Some(Suspect::Host(only.name.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// Whether two columns are the same location under two names.
fn is_alias(facts: &Facts<'_>, a: &Column, b: &Column) -> bool {
    a.direction == b.direction && alias(facts, &a.suspect).as_ref() == Some(&b.suspect)
}

/// The one layer that suffers while another one was measured on the same pairs and is fine; in the values in
/// which the loss is clearest.
fn layer_scope(context: &Context<'_>, located: &Located) -> LayerScope {
    let covered = located.column.cells();
    let strongest = located.gains.first().map(|(r, _)| *r);
    let rows = || {
        context
            .rows
            .iter()
            .enumerate()
            .filter(|(_, r)| covered.contains(&r.cell) && Some(r.response) == strongest)
    };
    let mine: BTreeSet<usize> = located.rows.iter().copied().collect();
    let mut bad: BTreeMap<Layer, Vec<f64>> = BTreeMap::new();
    for (_, row) in rows().filter(|(i, _)| mine.contains(i)) {
        bad.entry(context.cells[row.cell].layer).or_default().push(row.y);
    }
    // Beside a layer that has collapsed, a little missing in the other is not the same loss.
    let worst = bad.values().filter_map(|ys| median(ys)).fold(0.0, f64::max);
    bad.retain(|_, ys| median(ys).is_some_and(|y| y >= context.facts.rules.attribute.same_loss_min * worst));
    let mut others: BTreeMap<Layer, Vec<f64>> = BTreeMap::new();
    for (_, row) in rows() {
        let layer = context.cells[row.cell].layer;
        if !bad.contains_key(&layer) {
            others.entry(layer).or_default().push(row.y - row.effect_min);
        }
    }
    // What another finding explains is no healthy layer.
    let is_fine = |excess: &Vec<f64>| median(excess).is_some_and(|excess| excess < 0.0);
    match bad.keys().next() {
        Some(only) if bad.len() == 1 && others.values().any(is_fine) => LayerScope::Only(*only),
        _ => LayerScope::Any,
    }
}

/// Hosts with endpoints that the suspect speaks of, for counters.
fn member_suspects<'a>(context: &Context<'a>, suspect: &Suspect) -> Vec<&'a str> {
    let inventory = &context.facts.snapshot.inventory;
    let hosts = |test: &dyn Fn(&str) -> bool| -> Vec<&'a str> {
        inventory.hosts.iter().map(|h| h.name.as_str()).filter(|h| test(h)).collect()
    };
    let members = |group: &str| context.facts.members(group).iter().map(|h| h.name.as_str());
    match suspect {
        Suspect::Host(h) | Suspect::Drive(h, _) => {
            inventory.host(h).map(|h| h.name.as_str()).into_iter().collect()
        }
        Suspect::Group(g) => members(g).collect(),
        Suspect::GroupToGroup(a, b) => members(a).chain(members(b)).collect(),
        Suspect::Pair(a, b) => hosts(&|x| x == a || x == b),
        Suspect::Mismatch(_, list) => hosts(&|x| list.iter().any(|l| l == x)),
        // Imported evidence may be facts alone, of hosts between which no test ran.
        Suspect::All if context.measured.is_empty() => hosts(&|x| !context.machines.contains(&x)),
        Suspect::All => Vec::new(),
    }
}

/// Whose facts are looked at for a suspect.
pub(crate) fn subjects<'a>(context: &Context<'a>, suspect: &Suspect, bad_rows: &[usize]) -> Subjects<'a> {
    let inventory = &context.facts.snapshot.inventory;
    let of_groups = |groups: &[&String]| -> Vec<&'a str> {
        groups.iter().filter_map(|g| inventory.group(g)?.machine.as_deref()).collect()
    };
    let (mut suspects, mine): (Vec<&'a str>, Vec<&'a str>) = match suspect {
        Suspect::All => (context.measured.clone(), context.machines.clone()),
        Suspect::Group(g) => (of_groups(&[g]), of_groups(&[g])),
        Suspect::GroupToGroup(a, b) => (of_groups(&[a, b]), of_groups(&[a, b])),
        _ => {
            let hosts = member_suspects(context, suspect);
            let under = hosts.iter().flat_map(|h| context.facts.machines_of(h)).map(String::as_str).collect();
            (hosts, under)
        }
    };
    if suspects.is_empty() || alias(&context.facts, suspect).is_some() {
        suspects.extend(member_suspects(context, suspect));
        suspects.extend(&mine);
    }
    let mut seen = BTreeSet::new();
    suspects.retain(|s| seen.insert(*s));
    // By their locations, for thousands of hosts are asked one by one.
    let ends = |end: fn(&CellEvidence<'a>) -> (usize, &'a str)| -> Vec<&'a str> {
        let cells = bad_rows.iter().map(|r| &context.cells[context.rows[*r].cell]);
        let mut ends: Vec<(usize, &str)> = cells.map(end).collect();
        ends.sort_unstable_by_key(|(location, _)| *location);
        ends.dedup_by_key(|(location, _)| *location);
        ends.into_iter().map(|(_, name)| name).collect()
    };
    let (senders, receivers) = (ends(|c| (c.ends[0], c.from)), ends(|c| (c.ends[1], c.to)));
    let way_back = |c: &CellEvidence<'_>| {
        [c.to] == senders[..] && [c.from] == receivers[..] && c.measured().next().is_some()
    };
    Subjects {
        host_peers: Peers::without(&context.usual_peers[0], |h| seen.contains(h)),
        machine_peers: Peers::without(&context.usual_peers[1], |m| seen.contains(m) || mine.contains(&m)),
        way_back_is_fine: context.measured.len() == 2 && context.cells.iter().any(way_back),
        senders,
        receivers,
        machines: mine,
        suspects,
    }
}
