//! Circles in a graph of numbers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Who uses whom.
pub(super) type Graph = BTreeMap<usize, BTreeSet<usize>>;

/// All strongly connected components of more than one member, the largest first.
pub(super) fn components(graph: &Graph) -> Vec<BTreeSet<usize>> {
    let reached: BTreeMap<usize, BTreeSet<usize>> =
        graph.keys().map(|start| (*start, reach(graph, *start).into_keys().collect())).collect();
    let mut found: Vec<BTreeSet<usize>> = Vec::new();
    for (start, others) in &reached {
        if found.iter().any(|c| c.contains(start)) {
            continue;
        }
        let component: BTreeSet<usize> = others
            .iter()
            .filter(|o| reached.get(o).is_some_and(|back| back.contains(start)))
            .copied()
            .collect();
        if component.len() > 1 {
            found.push(component);
        }
    }
    found.sort_by_key(|c| std::cmp::Reverse(c.len()));
    found
}

/// One of the shortest circles among these members, in order; the first uses the second, the last the first.
pub(super) fn shortest(graph: &Graph, members: &BTreeSet<usize>) -> Vec<usize> {
    let inside: Graph = members
        .iter()
        .map(|m| (*m, graph.get(m).into_iter().flatten().filter(|o| members.contains(o)).copied().collect()))
        .collect();
    let circles = members.iter().filter_map(|start| {
        let before = reach(&inside, *start);
        let mut circle = vec![*start];
        let mut at = *before.get(start)?;
        while at != *start {
            circle.push(at);
            at = *before.get(&at)?;
        }
        circle[1..].reverse();
        Some(circle)
    });
    circles.min_by_key(Vec::len).unwrap_or_default()
}

/// All that can be reached from here, each with the member before it on a shortest way.
fn reach(graph: &Graph, start: usize) -> BTreeMap<usize, usize> {
    let mut before = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(at) = next.pop_front() {
        for other in graph.get(&at).into_iter().flatten() {
            if !before.contains_key(other) {
                before.insert(*other, at);
                next.push_back(*other);
            }
        }
    }
    before
}
