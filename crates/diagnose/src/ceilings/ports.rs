//! Two or more speeds of ports in one cluster, seen from throughput alone: where nobody told the speed of a
//! link, hosts that all reach the speed of a slower kind of port, with everyone and both ways, are taken for
//! hosts with such ports and not for a loss.
//!
//! In: cells. Out: what each of them can reach given the ports at its ends, and the classes; nothing where
//! no such classes are plain.

use std::collections::BTreeMap;

use linerate_model::finding::Cell;
use linerate_model::inventory::Layer;
use linerate_model::remark::PortClass;

use crate::evidence::CellEvidence;
use crate::rules::CeilingRules;
use crate::stats::median;

/// Hosts that are taken for having ports of one speed.
struct Class<'a> {
    layer: Layer,
    /// What they reach, bit/s.
    bps: f64,
    /// Speed of such a port, bit/s; the fastest ones may be limited by something else.
    link_bps: Option<f64>,
    hosts: Vec<&'a str>,
}

/// Speeds of ports as they seem from throughput.
#[derive(Default)]
pub(crate) struct Ports<'a> {
    classes: Vec<Class<'a>>,
    /// By layer and the place of a host in the inventory.
    bps: BTreeMap<(Layer, usize), f64>,
}

impl<'a> Ports<'a> {
    /// What is seen in these cells; nothing in most clusters.
    pub(crate) fn seen(cells: &[CellEvidence<'a>], rules: &CeilingRules) -> Self {
        let mut ports = Self::default();
        let mut by_layer: BTreeMap<Layer, Vec<(&CellEvidence<'a>, f64)>> = BTreeMap::new();
        for (cell, bps) in cells.iter().filter_map(|c| Some((c, c.throughput_bps.filter(|b| *b > 0.0)?))) {
            by_layer.entry(cell.layer).or_default().push((cell, bps));
        }
        for (layer, measured) in by_layer {
            let Some(classes) = classes(&measured, rules) else { continue };
            for class in &classes {
                ports.bps.extend(class.hosts.iter().map(|(place, _)| ((layer, *place), class.bps)));
                let link_bps = link(class.bps, rules);
                let hosts = class.hosts.iter().map(|(_, name)| *name).collect();
                ports.classes.push(Class { layer, bps: class.bps, link_bps, hosts });
            }
        }
        ports
    }

    /// What a cell reaches with the ports at its ends.
    pub(crate) fn of(&self, cell: &CellEvidence<'_>) -> Option<f64> {
        let end = |place: usize| self.bps.get(&(cell.layer, place)).copied();
        Some(end(cell.ends[0])?.min(end(cell.ends[1])?))
    }

    /// What was taken for ports; nothing where the links are known. `report`: the cells with their ceilings.
    pub(crate) fn guessed(&self, report: &[Cell]) -> Vec<PortClass> {
        let unknown = |layer: Layer| report.iter().any(|c| c.layer == layer && c.ceiling.is_guess());
        let class = |class: &Class<'_>| PortClass {
            hosts: class.hosts.iter().map(|host| (*host).to_owned()).collect(),
            bps: class.bps,
            link_bps: class.link_bps,
        };
        self.classes.iter().filter(|c| unknown(c.layer)).map(class).collect()
    }
}

/// The speed of the port with which a healthy transfer reaches this.
fn link(bps: f64, rules: &CeilingRules) -> Option<f64> {
    let share = rules.link_share_min..=rules.link_share_max;
    rules.link_speeds_bps.into_iter().find(|link| share.contains(&(bps / link)))
}

/// A class while it is looked for: hosts by their places in the inventory and names.
struct Found<'a> {
    bps: f64,
    hosts: Vec<(usize, &'a str)>,
}

/// The classes of one layer, the slowest first; `None` where the cells are not those of a few speeds of
/// ports.
fn classes<'a>(measured: &[(&CellEvidence<'a>, f64)], rules: &CeilingRules) -> Option<Vec<Found<'a>>> {
    let mut found = apart(measured, rules)?;
    let class_of: BTreeMap<usize, usize> = found
        .iter()
        .enumerate()
        .flat_map(|(at, class)| class.hosts.iter().map(move |(place, _)| (*place, at)))
        .collect();
    let slower_end = |cell: &CellEvidence<'_>| class_of[&cell.ends[0]].min(class_of[&cell.ends[1]]);
    let mut values = vec![Vec::new(); found.len()];
    for (cell, bps) in measured {
        values[slower_end(cell)].push(*bps);
    }
    let fastest = found.len() - 1;
    for (at, (class, values)) in found.iter_mut().zip(&values).enumerate() {
        class.bps = median(values)?;
        link(class.bps, rules).or((at == fastest).then_some(class.bps))?;
    }
    let fits = |(cell, bps): &&(&CellEvidence<'_>, f64)| {
        let expected = found[slower_end(cell)].bps;
        bps / expected <= rules.class_fit && expected / bps <= rules.class_fit
    };
    let fitting = measured.iter().filter(fits).count();
    (fitting as f64 >= rules.class_fit_min * measured.len() as f64).then_some(found)
}

/// Hosts by the best that they reach, cut where it jumps.
fn apart<'a>(measured: &[(&CellEvidence<'a>, f64)], rules: &CeilingRules) -> Option<Vec<Found<'a>>> {
    // The two best of each host: a single one may be chance, and two fast hosts among slow ones have no
    // third.
    let mut best: BTreeMap<usize, (&str, [f64; 2])> = BTreeMap::new();
    for (cell, bps) in measured {
        for (place, name) in cell.ends.into_iter().zip([cell.from, cell.to]) {
            let (_, [first, second]) = best.entry(place).or_insert((name, [0.0; 2]));
            (*first, *second) = (first.max(*bps), second.max(first.min(*bps)));
        }
    }
    let mut hosts: Vec<(f64, (usize, &str))> =
        best.into_iter().map(|(place, (name, [_, second]))| (second, (place, name))).collect();
    hosts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all = hosts.len();
    let mut found: Vec<Found<'_>> = Vec::new();
    let mut before = 0.0;
    for (bps, host) in hosts {
        match found.last_mut() {
            Some(class) if bps < rules.class_ratio_min * before => class.hosts.push(host),
            _ => found.push(Found { bps, hosts: vec![host] }),
        }
        before = bps;
    }
    let slower = all - found.last()?.hosts.len();
    let plain = found.len() > 1
        && found.iter().all(|class| class.hosts.len() >= rules.class_hosts_min)
        && slower as f64 >= rules.class_slower_min * all as f64;
    plain.then_some(found)
}
