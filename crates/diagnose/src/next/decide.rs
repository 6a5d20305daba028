//! The second stage: what to measure next when the evidence so far leaves alternatives or rests on single
//! tests. Judged places come in, serial tests and what they would decide go out.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Metric, NextTest, Suspect};
use linerate_model::inventory::Layer;
use linerate_model::kind::{TcpPlan, TestKind, UdpPlan};
use linerate_model::plan::Test;

use crate::attribute::{Judged, alias};
use crate::context::Context;
use crate::evidence::{CellEvidence, is_of_probes, is_small};
use crate::rules::Rules;

/// Tests that would tell the alternatives apart or confirm weak evidence, without numbers; empty when nothing
/// is open.
pub(crate) fn tests(context: &Context<'_>, judged: &Judged<'_, '_>) -> Vec<Test> {
    let rules = &context.facts.rules.next;
    let mut wanted: Vec<Test> = Vec::new();
    // Of two hosts there is no third one to measure against, and one more look at the same pair says the same
    // again, unless that is what there is to ask; what tells causes apart is another kind of test.
    let others = context.facts.snapshot.inventory.hosts.iter().filter(|h| !h.endpoints.is_empty()).count()
        > rules.partner_hosts_min;
    let weak = judged.located.unconfirmed || judged.located.score < rules.weak;
    if weak && judged.responses.iter().any(|r| is_of_probes(*r)) {
        wanted.extend(probes(context, judged));
    }
    if weak && (others || judged.located.unconfirmed) {
        wanted.extend(again(context, judged));
    }
    if others && is_open(judged, rules.open) {
        wanted.extend(partners(context, judged));
    }
    wanted.extend(settling(context, judged));
    wanted.retain(|t| !already(context, t));
    let mut tests = Vec::new();
    add_new(&mut tests, wanted);
    tests.truncate(rules.tests_max);
    tests
}

/// Adds those that are not the same look at the same pair as one that is there.
pub(crate) fn add_new(tests: &mut Vec<Test>, more: Vec<Test>) {
    for test in more {
        let is_same = |t: &Test| {
            (&t.from, &t.to, t.layer, &t.kind, t.repeat)
                == (&test.from, &test.to, test.layer, &test.kind, test.repeat)
        };
        if !tests.iter().any(is_same) {
            tests.push(test);
        }
    }
}

/// Whether places with different cells remain, and the first is less probable than `sure`.
pub(crate) fn is_open(judged: &Judged<'_, '_>, sure: f64) -> bool {
    let mine = judged.located.column.cells();
    judged.locations.len() > 1
        && judged.locations[0].2 < sure
        && judged.located.alternatives.iter().any(|(c, _)| c.cells() != mine)
}

/// Tests of which a value is missing that tells a possible cause from the others: what many streams get, and
/// what becomes of small datagrams.
fn settling(context: &Context<'_>, judged: &Judged<'_, '_>) -> Vec<Test> {
    let rules = &context.facts.rules.next;
    if judged.causes.first().is_none_or(|(_, probability)| *probability >= rules.open) {
        return Vec::new();
    }
    let possible = || judged.causes.iter().filter(|(_, probability)| *probability >= rules.possible);
    let missing = |name: &str| {
        let asked = |(scored, _): &(crate::attribute::Scored<'_>, f64)| {
            scored.cause.shape.iter().any(|test| test.value == name)
        };
        judged.shape.get(name).is_none() && possible().any(asked)
    };
    let (streams, small) = (missing("streams_gain"), missing("small_loss"));
    let cells: BTreeSet<usize> = judged.located.rows.iter().map(|row| context.rows[*row].cell).collect();
    let crossing = cells.into_iter().map(|i| &context.cells[i]).filter(|c| c.kind.shared_groups == 0);
    let mut tests = Vec::new();
    for cell in crossing.take(rules.deciding_cells) {
        let mut add =
            |kind| tests.extend(repeats(cell.from, cell.to, cell.layer, &kind, rules.deciding_repeats));
        // The shorter one first: a survey that is short of time has at least that.
        if let Some(kind) = small_datagrams(cell.throughput_bps, cell.rules).filter(|_| small) {
            add(kind);
        }
        if streams {
            add(TcpPlan { streams: rules.streams, duration_ms: rules.duration_ms }.into());
        }
    }
    tests
}

/// Twice as many packets a second as TCP had, in datagrams that are so small that they ask for a third of the
/// bytes.
fn small_datagrams(tcp_bps: Option<f64>, rules: &Rules) -> Option<TestKind> {
    let next = &rules.next;
    let (small_per_s, bytes) = (next.small_per_s_min..next.small_per_s_max, rules.evidence.small_payload_max);
    let per_s = next.small_factor * tcp_bps? / 8.0 / rules.attribute.segment_bytes;
    let rate_bps = per_s * 8.0 * f64::from(bytes);
    small_per_s.contains(&per_s).then(|| UdpPlan::paced(rate_bps, bytes, next.small_ms).into())
}

/// What lost or reordered datagrams again, in turns with what shares an end with it: what is intermittent
/// is there in one turn and not in the next, and the ends show where it is.
fn probes(context: &Context<'_>, judged: &Judged<'_, '_>) -> Vec<Test> {
    let rules = &context.facts.rules.next;
    let rows = judged.located.rows.iter().map(|row| &context.rows[*row]).filter(|r| is_of_probes(r.response));
    let bad: BTreeSet<usize> = rows.map(|row| row.cell).collect();
    let bad: Vec<&CellEvidence<'_>> =
        bad.iter().take(rules.probed_max).map(|cell| &context.cells[*cell]).collect();
    let mut looked_at = bad.clone();
    for cell in &bad {
        let alike = |c: &&CellEvidence<'_>| c.kind == cell.kind && !bad.iter().any(|b| std::ptr::eq(*b, *c));
        let beside = || context.cells.iter().filter(alike);
        looked_at.extend(beside().filter(|c| c.to == cell.to).take(rules.partners));
        looked_at.extend(beside().filter(|c| c.from == cell.from).take(rules.partners));
    }
    let mut seen: BTreeSet<(Layer, &str, &str)> = BTreeSet::new();
    looked_at.retain(|c| seen.insert((c.layer, c.from, c.to)));
    let probe = |cell: &CellEvidence<'_>| {
        let mut kinds = cell.samples.iter().map(|s| &s.test.kind);
        kinds.find(|kind| kind.name() == "udp" && !cell.is_small(kind)).cloned()
    };
    let of_cell = |cell: &&CellEvidence<'_>| {
        let kind = probe(cell).or_else(|| bad.iter().find_map(|bad| probe(bad)))?;
        Some(repeats(cell.from, cell.to, cell.layer, &kind, rules.repeats))
    };
    let mut tests: Vec<Test> = looked_at.iter().filter_map(of_cell).flatten().collect();
    tests.sort_by_key(|test| test.repeat);
    tests
}

/// The bad cells again.
fn again(context: &Context<'_>, judged: &Judged<'_, '_>) -> Vec<Test> {
    let rules = &context.facts.rules.next;
    let mut cells: Vec<usize> = Vec::new();
    for row in &judged.located.rows {
        let cell = context.rows[*row].cell;
        if !cells.contains(&cell) {
            cells.push(cell);
        }
        if cells.len() == rules.cells_max {
            break;
        }
    }
    let kinds = |response: &Metric| match response {
        Metric::Loss | Metric::Reordering | Metric::Stalls => "udp",
        Metric::RttIdle => "rtt",
        Metric::PathMtu => "mtu",
        _ => "tcp",
    };
    let wanted: BTreeSet<&str> = judged.responses.iter().take(rules.metrics_max).map(kinds).collect();
    let mut tests = Vec::new();
    for cell in cells {
        let cell = &context.cells[cell];
        for name in &wanted {
            // As it was measured before: a transfer inside a machine may be too short for a path with a
            // delay.
            let kinds = cell.samples.iter().chain(context.cells.iter().flat_map(|c| &c.samples));
            let kind = kinds
                .map(|s| &s.test.kind)
                .find(|k| k.name() == *name && !k.get().is_some_and(TcpPlan::is_parallel));
            if let Some(kind) = kind {
                tests.extend(repeats(cell.from, cell.to, cell.layer, kind, rules.repeats - 1));
            }
        }
    }
    tests
}

/// The suspected against known-good partners in other groups, both directions, one and many streams.
fn partners(context: &Context<'_>, judged: &Judged<'_, '_>) -> Vec<Test> {
    let rules = &context.facts.rules.next;
    let inventory = &context.facts.snapshot.inventory;
    let Some(suspected) = representative(context, &judged.locations[0].0) else { return Vec::new() };
    let blamed: BTreeSet<String> =
        judged.locations.iter().filter_map(|(suspect, _, _)| representative(context, suspect)).collect();
    let own: Vec<&str> = inventory.groups_of(&suspected).iter().map(|g| g.name.as_str()).collect();
    let good = inventory.hosts.iter().filter(|h| {
        !h.endpoints.is_empty()
            && !blamed.contains(&h.name)
            && !inventory.groups_of(&h.name).iter().any(|g| own.contains(&g.name.as_str()))
    });
    let layer =
        judged.located.rows.first().map_or(Layer::Underlay, |r| context.cells[context.rows[*r].cell].layer);
    let duration_ms = context
        .cells
        .iter()
        .flat_map(|c| &c.samples)
        .filter_map(|s| s.test.kind.get::<TcpPlan>())
        .map(|tcp| tcp.duration_ms)
        .max()
        .unwrap_or(rules.duration_ms);
    let mut tests = Vec::new();
    for partner in good.take(rules.partners) {
        for (from, to) in [(&suspected, &partner.name), (&partner.name, &suspected)] {
            for streams in [1, rules.streams] {
                let kind = TcpPlan { streams, duration_ms }.into();
                tests.extend(repeats(from, to, layer, &kind, rules.repeats));
            }
        }
    }
    tests
}

/// A host with endpoints that stands for a suspect.
fn representative(context: &Context<'_>, suspect: &Suspect) -> Option<String> {
    match suspect {
        Suspect::Host(h) | Suspect::Pair(h, _) | Suspect::Drive(h, _) => Some(h.clone()),
        Suspect::Group(g) | Suspect::GroupToGroup(g, _) => {
            context.facts.members(g).first().map(|h| h.name.clone())
        }
        Suspect::Mismatch(_, hosts) => hosts.first().cloned(),
        Suspect::All => None,
    }
}

fn repeats(from: &str, to: &str, layer: Layer, kind: &TestKind, count: u16) -> Vec<Test> {
    (0..count)
        .map(|i| Test {
            repeat: 100 + i,
            second_stage: true,
            ..Test::new(from.to_owned(), to.to_owned(), layer, kind.clone())
        })
        .collect()
}

/// Whether the second stage has already measured this.
fn already(context: &Context<'_>, test: &Test) -> bool {
    context.facts.snapshot.samples.iter().any(|s| {
        let t = &s.test;
        t.second_stage
            && t.from == test.from
            && t.to == test.to
            && t.layer == test.layer
            && same(&t.kind, &test.kind, context.facts.rules)
    })
}

fn same(a: &TestKind, b: &TestKind, rules: &Rules) -> bool {
    let streams = |kind: &TestKind| kind.get::<TcpPlan>().map(|tcp| tcp.streams);
    let is_small = |kind| is_small(kind, &rules.evidence);
    a.name() == b.name() && streams(a) == streams(b) && is_small(a) == is_small(b)
}

/// The measurement that would decide what is open; `None` when nothing is.
pub(crate) fn next(context: &Context<'_>, judged: &Judged<'_, '_>) -> Option<NextTest> {
    let (suspect, _, _) = judged.locations.first()?;
    if judged.located.unconfirmed {
        return Some(NextTest::Repeat);
    }
    if judged.shape.two_hosts {
        return Some(NextTest::ThirdHost);
    }
    if !is_open(judged, context.facts.rules.next.certain) {
        return None;
    }
    let Suspect::Group(group) = suspect else { return Some(NextTest::Partners) };
    let senders: BTreeMap<&str, Option<String>> = judged
        .subjects
        .senders
        .iter()
        .map(|h| match alias(&context.facts, &Suspect::Host((*h).to_owned())) {
            Some(Suspect::Group(g)) => (*h, Some(g)),
            _ => (*h, None),
        })
        .collect();
    let senders = senders.into_iter().map(|(host, group)| (host.to_owned(), group)).collect();
    Some(NextTest::FurtherGroup { group: group.clone(), senders })
}
