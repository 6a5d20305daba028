//! Settings that are worth a finding although nothing was measured of them: causes marked `static`.
//! Never for a host that a measured finding already speaks of, and never for differences that no cause knows.

use linerate_model::finding::{Direction, Element, LayerScope, Response};

use crate::attribute::{self, Place, Scored, shape};
use crate::knowledge::{Cause, ElementKind, Knowledge, LayerFit};
use crate::places::{Bench, subjects};

/// A setting that is wrong at a place.
pub(crate) struct Wrong<'k> {
    /// Where.
    pub element: Element,
    /// Direction of its harm.
    pub direction: Direction,
    /// Layers of its harm.
    pub layer: LayerScope,
    /// The cause with its evidence.
    pub scored: Scored<'k>,
}

/// All wrong settings of hosts and machines that `covered` does not name.
pub(crate) fn wrong<'k>(
    bench: &Bench<'_>,
    knowledge: &'k Knowledge,
    covered: &dyn Fn(&str) -> bool,
) -> Vec<Wrong<'k>> {
    let inventory = &bench.facts.snapshot.inventory;
    let mut found = Vec::new();
    for cause in knowledge.causes().filter(|c| c.is_static) {
        if cause.symptom.elements.contains(&ElementKind::All) {
            found.extend(at(bench, cause, Element::All, Direction::Both, &|_| true));
            continue;
        }
        let group_only = cause.symptom.elements.iter().all(|e| e.is_group());
        let direction = direction_of(cause);
        if group_only {
            for group in inventory.groups.iter().filter(|g| g.machine.as_deref().is_some_and(|m| !covered(m)))
            {
                found.extend(at(bench, cause, Element::Group(group.name.clone()), direction, &|_| true));
            }
        } else {
            for host in inventory.hosts.iter().filter(|h| !h.endpoints.is_empty() && !covered(&h.name)) {
                found.extend(at(bench, cause, Element::Host(host.name.clone()), direction, &|h| {
                    h == host.name
                }));
            }
        }
    }
    found.sort_by(|a, b| b.scored.score.total_cmp(&a.scored.score));
    found
}

fn direction_of(cause: &Cause) -> Direction {
    match cause.symptom.elements.first() {
        Some(ElementKind::HostTx | ElementKind::GroupTx) => Direction::Tx,
        Some(ElementKind::HostRx | ElementKind::GroupRx) => Direction::Rx,
        _ => Direction::Both,
    }
}

/// The cause at one element; only facts of the hosts that `mine` accepts count.
fn at<'k>(
    bench: &Bench<'_>,
    cause: &'k Cause,
    element: Element,
    direction: Direction,
    mine: &dyn Fn(&str) -> bool,
) -> Option<Wrong<'k>> {
    use linerate_model::inventory::Layer;
    let rows: Vec<usize> = bench
        .rows
        .iter()
        .enumerate()
        .filter(|(_, r)| match (&element, direction) {
            (Element::Host(h), Direction::Tx) => bench.cells[r.cell].from == h,
            (Element::Host(h), Direction::Rx) => bench.cells[r.cell].to == h,
            (Element::Host(h), Direction::Both) => {
                bench.cells[r.cell].from == h || bench.cells[r.cell].to == h
            }
            _ => true,
        })
        .map(|(i, _)| i)
        .collect();
    let mut subjects = subjects(bench, &element, &rows);
    if element != Element::All && !matches!(element, Element::Group(_)) {
        subjects.suspects.retain(|h| mine(h));
    }
    let shape = shape::of(&bench.cells, &bench.rows, &rows, &subjects.suspects);
    let layer = match cause.symptom.layers {
        LayerFit::OverlayOnly => LayerScope::Only(Layer::Overlay),
        LayerFit::UnderlayOnly => LayerScope::Only(Layer::Underlay),
        _ => LayerScope::Any,
    };
    let place = Place {
        element: &element,
        direction,
        layer,
        responses: &[Response::Setting],
        shape: &shape,
        subjects,
        has_twin: false,
    };
    let scored = attribute::score(&bench.facts, &place, cause)?;
    // What stands for every host has to be found on most of them.
    let everywhere = element != Element::All || {
        let hosts: std::collections::BTreeSet<&str> = scored.hits.iter().map(|h| h.host.as_str()).collect();
        hosts.len() * 2
            > bench.facts.snapshot.inventory.hosts.iter().filter(|h| !h.endpoints.is_empty()).count()
    };
    // Without a fact there is no wrong setting.
    (everywhere && !scored.hits.is_empty() && scored.score > 0.5).then_some(Wrong {
        element,
        direction,
        layer,
        scored,
    })
}
