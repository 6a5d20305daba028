//! Settings that are worth a finding although nothing was measured of them: causes marked `static`.
//! Never for a host that a measured finding already speaks of, and never for differences that no cause knows.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Direction, Element, LayerScope, Response};

use crate::attribute::{self, Place, Scored, shape};
use crate::knowledge::{Cause, ElementKind, FactTest, Knowledge, LayerFit, Op};
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
    let ground = Ground::new(bench);
    let mut found = Vec::new();
    for cause in knowledge.causes().filter(|c| c.is_static) {
        if cause.symptom.elements.contains(&ElementKind::All) {
            found.extend(at(bench, &ground, cause, Element::All, Direction::Both, &|_| true));
            continue;
        }
        let group_only = cause.symptom.elements.iter().all(|e| e.is_group());
        let direction = direction_of(cause);
        if group_only {
            for group in inventory.groups.iter().filter(|g| g.machine.as_deref().is_some_and(|m| !covered(m)))
            {
                found.extend(at(
                    bench,
                    &ground,
                    cause,
                    Element::Group(group.name.clone()),
                    direction,
                    &|_| true,
                ));
            }
        } else {
            for host in inventory.hosts.iter().filter(|h| !h.endpoints.is_empty() && !covered(&h.name)) {
                found.extend(at(bench, &ground, cause, Element::Host(host.name.clone()), direction, &|h| {
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
    ground: &Ground<'_>,
    cause: &'k Cause,
    element: Element,
    direction: Direction,
    mine: &dyn Fn(&str) -> bool,
) -> Option<Wrong<'k>> {
    use linerate_model::inventory::Layer;
    let rows = ground.rows(&element, direction);
    let mut subjects = subjects(bench, &element, &rows);
    if element != Element::All && !matches!(element, Element::Group(_)) {
        subjects.suspects.retain(|h| mine(h));
    }
    let layer = match cause.symptom.layers {
        LayerFit::OverlayOnly => LayerScope::Only(Layer::Overlay),
        LayerFit::UnderlayOnly => LayerScope::Only(Layer::Underlay),
        _ => LayerScope::Any,
    };
    let mut place = Place {
        element: &element,
        direction,
        layer,
        responses: &[Response::Setting],
        shape: &ground.frame,
        subjects,
        has_twin: false,
    };
    // The values are looked at only where a fact is suspicious: of thousands of hosts nearly none.
    if !attribute::possible(&bench.facts, &place, cause) {
        return None;
    }
    let shape =
        looks_at_shape(cause).then(|| shape::of(&bench.cells, &bench.rows, &rows, &place.subjects.suspects));
    if let Some(shape) = &shape {
        place.shape = shape;
    }
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

/// Whether a cause asks for measured values at all; most settings speak for themselves.
fn looks_at_shape(cause: &Cause) -> bool {
    let asks = |tests: &[FactTest]| tests.iter().any(|t| t.op == Op::WindowBinds);
    !cause.shape.is_empty() || asks(&cause.betrays) || asks(&cause.excludes)
}

/// What is the same for every host, made once.
struct Ground<'b> {
    /// Rows in which a host sends, and in which it receives.
    of_host: BTreeMap<&'b str, [Vec<usize>; 2]>,
    all: Vec<usize>,
    frame: shape::Shape,
}

impl<'b> Ground<'b> {
    fn new<'a: 'b>(bench: &Bench<'a>) -> Self {
        let mut of_host: BTreeMap<&str, [Vec<usize>; 2]> = BTreeMap::new();
        for (i, row) in bench.rows.iter().enumerate() {
            let cell = &bench.cells[row.cell];
            of_host.entry(cell.from).or_default()[0].push(i);
            of_host.entry(cell.to).or_default()[1].push(i);
        }
        Self { of_host, all: (0..bench.rows.len()).collect(), frame: shape::frame(&bench.cells) }
    }

    /// The rows that a setting at a place may have harmed.
    fn rows(&self, element: &Element, direction: Direction) -> Vec<usize> {
        let Element::Host(host) = element else { return self.all.clone() };
        let Some([tx, rx]) = self.of_host.get(host.as_str()) else { return Vec::new() };
        match direction {
            Direction::Tx => tx.clone(),
            Direction::Rx => rx.clone(),
            Direction::Both => {
                let both: BTreeSet<usize> = tx.iter().chain(rx).copied().collect();
                both.into_iter().collect()
            }
        }
    }
}
