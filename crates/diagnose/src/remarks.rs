//! What a diagnosis knows beside its findings: facts of the headline, remarks, what was not used, what was
//! not seen. Pure.

use std::collections::BTreeMap;

use linerate_knowledge::Knowledge;
use linerate_model::fact::{Gap, HostFacts};
use linerate_model::finding::{Cell, Direction, Suspect};
use linerate_model::inventory::Layer;
use linerate_model::kind::TcpPlan;
use linerate_model::path_methods::{MethodPair, PathMethods};
use linerate_model::remark::{Overall, Refused, Remark, Repetition, Summary};
use linerate_model::sample::{Outcome, Sample};
use linerate_model::snapshot::Snapshot;

use crate::attribute::Judged;
use crate::context::Context;
use crate::evidence::{CellEvidence, Facts, is_own_failure};
use crate::rules::{NoteRules, Rules};
use crate::storage;

/// Most hosts with a remark on their formats.
const READ_MAX: usize = 4;

/// Facts of the headline beside the findings.
pub(crate) fn summary(context: &Context<'_>, report: &[Cell], judged: &[Judged<'_, '_>]) -> Summary {
    let rules = &context.facts.rules.notes;
    let shares: Vec<f64> = report.iter().filter(|c| !c.ceiling.is_guess()).filter_map(|c| c.share).collect();
    let snapshot = context.facts.snapshot;
    let overall = match crate::stats::median(&shares) {
        Some(share) if share >= rules.at_ceiling => Overall::AtCeiling(share),
        Some(share) => Overall::OfCeiling(share),
        None if !context.cells.is_empty() => Overall::NoCeiling,
        None if !snapshot.watched.is_empty() || !snapshot.stored.is_empty() => Overall::Counters,
        None if snapshot.storage.is_empty() => Overall::Nothing,
        None if snapshot.storage.iter().all(|figure| figure.busy.is_some()) => {
            Overall::Figures(snapshot.storage.len())
        }
        None => match &snapshot.storage[..] {
            [one] => Overall::Rate(one.bytes_per_s),
            all => Overall::Rates(all.len()),
        },
    };
    let untested = untested(context, judged);
    Summary { overall, fix: None, unmeasured: contended(&context.cells, rules), untested }
}

/// What is worth knowing of tests and is no finding.
pub(crate) fn of_tests(context: &Context<'_>, report: &[Cell], judged: &[Judged<'_, '_>]) -> Vec<Remark> {
    let rules = &context.facts.rules.notes;
    let mut remarks = Vec::new();
    for cell in
        report.iter().filter(|c| c.share.is_some_and(|s| s >= rules.at_ceiling) && !c.ceiling.is_guess())
    {
        let rate = cell.retransmits_per_s.filter(|r| *r >= rules.retransmits_min);
        if let Some((per_s, share)) =
            rate.zip(cell.share).filter(|_| report.len() <= rules.retransmit_cells_max)
        {
            let (from, to) = (cell.from.clone(), cell.to.clone());
            remarks.push(Remark::Retransmits { from, to, share, per_s });
        }
    }
    let ports = context.ports.guessed(report);
    remarks.extend((!ports.is_empty()).then_some(Remark::Ports(ports)));
    if judged.iter().all(|j| j.located.unconfirmed) {
        remarks.extend(lost_once(report, rules));
    }
    remarks.extend(judged.iter().filter(|j| j.located.unconfirmed).map(|j| suspicion(context, j)));
    remarks
}

/// A suspicion that was not confirmed. Where nothing speaks against it, what was read at the place may say
/// what it would be.
fn suspicion(context: &Context<'_>, judged: &Judged<'_, '_>) -> Remark {
    let (suspect, direction, _) = &judged.locations[0];
    let repetition = if is_contended(context, judged) {
        Repetition::Invalid
    } else if !is_untested(context, judged) {
        Repetition::Refuted
    } else if context.facts.snapshot.imported.is_some() {
        Repetition::MissingInImport
    } else {
        Repetition::Missing
    };
    let read = judged.causes.first().filter(|(scored, _)| !scored.hits.is_empty());
    let cause = read
        .filter(|_| repetition != Repetition::Refuted)
        .map(|(scored, _)| (scored.cause.title.clone(), scored.supports.clone()));
    Remark::Suspicion { at: (suspect.clone(), *direction), repetition, cause }
}

/// The samples that a located loss rests on.
fn samples<'b, 'a>(context: &'b Context<'a>, judged: &'b Judged<'_, '_>) -> impl Iterator<Item = &'a Sample> {
    let cells = judged.located.rows.iter().map(|row| &context.cells[context.rows[*row].cell]);
    cells.flat_map(|cell| cell.samples.iter().copied())
}

/// Whether a suspicion was never looked at again.
fn is_untested(context: &Context<'_>, judged: &Judged<'_, '_>) -> bool {
    judged.located.unconfirmed && !samples(context, judged).any(|s| s.test.second_stage)
}

/// Whether tests of a kind were repeated, and each of them was contended.
fn is_contended(context: &Context<'_>, judged: &Judged<'_, '_>) -> bool {
    let kind = |s: &Sample| (s.test.kind.name(), s.test.kind.get().is_some_and(TcpPlan::is_parallel));
    let again = |s: &&Sample| s.test.second_stage;
    let valid: Vec<_> = samples(context, judged).filter(again).map(kind).collect();
    let cells = judged.located.rows.iter().map(|row| &context.cells[context.rows[*row].cell]);
    let mut worthless = cells.flat_map(|cell| cell.worthless.iter().copied()).filter(again);
    worthless.any(|sample| !valid.contains(&kind(sample)))
}

/// What a sentence about a cluster in which nothing was found must not pass over: that nothing got through
/// once. A transfer that was slow once is a remark, for that happens in healthy clusters; of what others
/// measured it may be all that they ask about.
fn untested(context: &Context<'_>, judged: &[Judged<'_, '_>]) -> Vec<(Suspect, Direction)> {
    judged
        .iter()
        .filter(|j| is_untested(context, j))
        .filter(|j| {
            let is_dead = |s: &Sample| matches!(s.outcome, Outcome::NothingThrough { .. });
            context.facts.snapshot.imported.is_some() || samples(context, j).any(is_dead)
        })
        .map(|j| (j.locations[0].0.clone(), j.locations[0].1))
        .collect()
}

/// Pairs that lost datagrams where nothing else was found: too little to name a place, and not nothing.
fn lost_once(report: &[Cell], rules: &NoteRules) -> Vec<Remark> {
    let lossy = || report.iter().filter_map(|c| Some((c, c.loss.filter(|l| *l >= rules.loss_min)?)));
    let named = lossy().take(rules.lossy_pairs_max);
    let mut remarks: Vec<Remark> = named
        .map(|(c, loss)| Remark::LostOnce { from: c.from.clone(), to: c.to.clone(), layer: c.layer, loss })
        .collect();
    let more = lossy().count().saturating_sub(rules.lossy_pairs_max);
    remarks.extend((more > 0).then_some(Remark::MoreLost(more)));
    remarks
}

/// Front ends through which a download is slow, and that a round robin over them crosses hosts.
pub(crate) fn front_ends(facts: &Facts<'_>) -> Vec<Remark> {
    let snapshot = facts.snapshot;
    let mut remarks = Vec::new();
    for sample in &snapshot.samples {
        let Outcome::Measured(m) = &sample.outcome else { continue };
        let Some(tx) = m.tx.as_ref().filter(|t| !t.http.is_empty()) else { continue };
        let fronts = crate::front_ends::compare_with(&tx.http, &facts.rules.http);
        let slow: Vec<_> = fronts.iter().filter_map(|f| Some((f.name.clone(), f.slow?))).collect();
        if !slow.is_empty() {
            let fine = fronts.iter().filter(|f| f.slow.is_none()).map(|f| f.name.clone()).collect();
            let slow = slow.into_iter().map(|(name, slow)| (name, slow.step, slow.times)).collect();
            remarks.push(Remark::FrontEnds { slow, fine });
        }
        // Each front end is also a host on which the service may run.
        let hosts = fronts.iter().filter(|f| snapshot.inventory.host(&f.name).is_some()).count();
        if hosts >= facts.rules.notes.front_ends_min && hosts == fronts.len() {
            remarks.push(Remark::Crossing(hosts));
        }
    }
    remarks
}

/// What was read of the files of others, by host, for a verdict without anything else.
pub(crate) fn read(snapshot: &Snapshot, knowledge: &Knowledge) -> Vec<Remark> {
    let Some(imported) = &snapshot.imported else { return Vec::new() };
    let is_judged = |facts: &HostFacts| {
        facts
            .readings
            .keys()
            .chain(facts.counters.keys())
            .any(|key| knowledge.causes().any(|c| c.asks_for(key)))
    };
    // What names no host in its piece may belong to any.
    let is_judged = |host: &str| {
        let facts = snapshot.facts.get(host);
        facts.map_or_else(|| snapshot.facts.values().any(is_judged), is_judged)
    };
    let mut by_host: BTreeMap<&str, (Vec<String>, usize)> = BTreeMap::new();
    for piece in &imported.pieces {
        let (formats, readings) = by_host.entry(&piece.host).or_default();
        if !formats.contains(&piece.format) {
            formats.push(piece.format.clone());
        }
        *readings += piece.readings;
    }
    let remark = |(host, (formats, readings)): (&str, (Vec<String>, usize))| Remark::Read {
        host: host.to_owned(),
        formats,
        readings,
        is_judged: is_judged(host),
    };
    by_host.into_iter().take(snapshot.inventory.hosts.len().clamp(1, READ_MAX)).map(remark).collect()
}

/// What is no evidence: reads from memory, means of two levels, invalid tests.
pub(crate) fn not_used(snapshot: &Snapshot, report: &[Cell], rules: &Rules) -> Vec<Refused> {
    let mut refused = storage::cached(snapshot, &rules.disks);
    refused.extend(report.iter().filter_map(|c| {
        let levels = c.two_state_bps?;
        Some(Refused::Mean { from: c.from.clone(), to: c.to.clone(), layer: c.layer, levels })
    }));
    refused.extend(snapshot.samples.iter().filter_map(|s| match &s.outcome {
        Outcome::Invalid { reason } => Some(Refused::Test {
            kind: s.test.kind.name().to_owned(),
            from: s.test.from.clone(),
            to: s.test.to.clone(),
            reason: reason.clone(),
        }),
        _ => None,
    }));
    refused
}

/// That a survey was paced to a share of each link, and which speeds it had to assume.
pub(crate) fn paced(snapshot: &Snapshot) -> Option<Remark> {
    let announced = snapshot.announced.as_ref()?;
    let unknown: Vec<String> = announced.unknown().map(str::to_owned).collect();
    let assumed = (!unknown.is_empty()).then_some((unknown, announced.assumed_bps));
    Some(Remark::Paced { share: announced.pace?, assumed })
}

/// By which methods the transfers over fast paths were made, where not by the plain ones.
pub(crate) fn methods(snapshot: &Snapshot) -> Vec<Remark> {
    let plain = MethodPair::plain();
    let chosen = snapshot.methods.iter().filter(|chosen| chosen.methods != plain);
    let remark = |chosen: &PathMethods| {
        let reached = |methods: &MethodPair| {
            let own = chosen.turns.iter().filter(|t| t.send == methods.send && t.receive == methods.receive);
            crate::stats::median(&own.map(|turn| turn.bps).collect::<Vec<_>>())
        };
        let (class, methods) = (chosen.class, chosen.methods.clone());
        let (bps, plain_bps) = (reached(&methods)?, reached(&plain)?);
        Some(Remark::Methods { class, methods, bps, plain_bps })
    };
    chosen.filter_map(remark).collect()
}

/// What could not be seen: gaps, and tests that could not run.
pub(crate) fn blind(snapshot: &Snapshot) -> Vec<Gap> {
    let mut blind = snapshot.gaps.clone();
    for sample in &snapshot.samples {
        let reason = match &sample.outcome {
            Outcome::Gap { reason } => Some(reason),
            Outcome::NothingThrough { reason } if is_own_failure(sample) => Some(reason),
            _ => None,
        };
        if let Some(reason) = reason {
            let what = format!(
                "{} {} to {} ({})",
                sample.test.kind.name(),
                sample.test.from,
                sample.test.to,
                sample.test.layer
            );
            blind.push(Gap { what: what.into(), reason: reason.clone() });
        }
    }
    blind
}

/// Layers in which more pairs than [`NoteRules::invalid_max`] had transfers, but only worthless ones: so
/// many, of how
/// many.
fn contended(cells: &[CellEvidence<'_>], rules: &NoteRules) -> Vec<(Layer, usize, usize)> {
    let transfer = |s: &&&Sample| s.test.kind.is::<TcpPlan>();
    let mut layers: BTreeMap<Layer, (usize, usize)> = BTreeMap::new();
    for cell in cells {
        let tried = cell.samples.iter().chain(&cell.worthless).any(|s| transfer(&s));
        let counts = layers.entry(cell.layer).or_default();
        counts.1 += usize::from(tried);
        counts.0 += usize::from(tried && !cell.samples.iter().any(|s| transfer(&s)));
    }
    let many = |(without, of): &(usize, usize)| *without as f64 > rules.invalid_max * *of as f64;
    layers.into_iter().filter(|(_, counts)| many(counts)).map(|(layer, (w, of))| (layer, w, of)).collect()
}

#[cfg(test)]
mod tests {
    use linerate_knowledge::Knowledge;
    use linerate_model::plan::Test;

    use super::*;
    use linerate_model::kind::{TestKind, UdpPlan};

    fn transfer(from: &str, to: &str, outcome: Outcome) -> Sample {
        let test = Test {
            id: 1,
            serial: false,
            ..Test::new(from.into(), to.into(), Layer::Overlay, TcpPlan::single(500).into())
        };
        let (tx_counters, rx_counters) = (BTreeMap::new(), BTreeMap::new());
        Sample { test, start_ms: 0, outcome, tx_counters, rx_counters }
    }

    fn snapshot(contended: usize) -> Snapshot {
        let names = ["a", "b", "c", "d"];
        let mut snapshot = Snapshot::default();
        snapshot.inventory.hosts = names.iter().map(|name| host(name)).collect();
        for (number, (from, to)) in
            names.iter().flat_map(|f| names.iter().map(move |t| (f, t))).filter(|(f, t)| f != t).enumerate()
        {
            let outcome = if number < contended {
                Outcome::Invalid { reason: "waited for a CPU".into() }
            } else {
                Outcome::Measured(Box::new(linerate_model::sample::Measurement {
                    throughput_bps: Some(1e9),
                    ..Default::default()
                }))
            };
            snapshot.samples.push(transfer(from, to, outcome));
        }
        snapshot
    }

    /// One probe of one pair lost 9 in a thousand, and TCP is as fast there as elsewhere: no suspect can be
    /// named.
    #[test]
    fn loss_that_was_seen_once_is_a_note() {
        let mut snapshot = snapshot(0);
        let mut probe = |from: &str, to: &str, loss: f64| {
            let mut sample = transfer(from, to, Outcome::Gap { reason: String::new() });
            sample.test.kind = TestKind::from(UdpPlan::paced(2e8, 1200, 500));
            sample.outcome = Outcome::Measured(Box::new(linerate_model::sample::Measurement {
                loss: Some(loss),
                ..Default::default()
            }));
            snapshot.samples.push(sample);
        };
        probe("a", "b", 0.0089);
        probe("b", "a", 0.0005);
        let seen = crate::diagnose(&snapshot, &Knowledge::default());
        assert!(seen.findings.is_empty());
        let [Remark::LostOnce { from, to, layer, loss }, Remark::Suspicion { .. }] = &seen.remarks[..] else {
            panic!("{:?}", seen.remarks)
        };
        assert_eq!((from.as_str(), to.as_str(), *layer, *loss), ("a", "b", Layer::Overlay, 0.0089));
    }

    fn host(name: &str) -> linerate_model::inventory::Host {
        linerate_model::inventory::Host {
            name: name.into(),
            transport: linerate_model::inventory::TransportSpec::Local,
            groups: Vec::new(),
            endpoints: Vec::new(),
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        }
    }

    #[test]
    fn pairs_without_a_valid_transfer_are_not_called_healthy() {
        let knowledge = Knowledge::default();
        let seen = crate::diagnose(&snapshot(1), &knowledge);
        assert!(seen.summary.unmeasured.is_empty(), "{:?}", seen.summary);
        let half = crate::diagnose(&snapshot(7), &knowledge);
        assert!(half.findings.is_empty());
        assert_eq!(half.summary.unmeasured, [(Layer::Overlay, 7, 12)]);
    }
}
