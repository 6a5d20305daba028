//! What a diagnosis says beside its findings: the headline, notes, what was not used, what was not seen.
//! Pure.

use std::collections::BTreeMap;

use linerate_model::fact::Gap;
use linerate_model::finding::{Cell, Finding};
use linerate_model::inventory::Layer;
use linerate_model::kind::TcpPlan;
use linerate_model::sample::{Outcome, Sample};
use linerate_model::snapshot::Snapshot;

use crate::attribute::Judged;
use crate::context::Context;
use crate::evidence::CellEvidence;
use crate::evidence::Facts;
use crate::rules::{NoteRules, Rules};
use crate::{storage, words};

/// The most important in one sentence.
pub(crate) fn headline(
    context: &Context<'_>,
    report: &[Cell],
    judged: &[Judged<'_, '_>],
    findings: &[Finding],
) -> String {
    if let Some((first, others)) = findings.split_first() {
        return format!("{}{}", place_and_cause(first), also(others));
    }
    let rules = &context.facts.rules.notes;
    let shares: Vec<f64> = report.iter().filter(|c| !c.ceiling.is_guess()).filter_map(|c| c.share).collect();
    let words = match crate::stats::median(&shares) {
        Some(share) if share >= rules.at_ceiling => {
            format!("at ceiling: {} % of it", (share * 100.0).min(100.0).floor())
        }
        Some(share) => format!("nothing stands out: {} of the ceiling", words::percent(share)),
        None if context.cells.is_empty() && crate::together::any(context.facts.snapshot) => {
            let said = crate::together::notes(&context.facts).into_iter().next();
            said.unwrap_or_else(|| "no pair was measured, and no counters move together".to_owned())
        }
        None if context.cells.is_empty() => {
            storage::headline(context.facts.snapshot, &context.facts.rules.disks)
        }
        None => {
            let ports = context.ports.words(report).map_or(String::new(), |words| format!("; {words}"));
            format!("nothing stands out among the peers; no ceiling is known{ports}")
        }
    };
    let unseen = contended(&context.cells, rules);
    let unseen: Vec<String> =
        unseen.iter().map(|(layer, w, of)| format!("{w} of {of} pairs ({layer})")).collect();
    let words = if unseen.is_empty() {
        words
    } else {
        format!("{words}, as far as it was seen; contended in every transfer: {}", unseen.join(", "))
    };
    words + &untested(context, judged)
}

/// Sentences are made by the numbers in force.
pub(crate) const RULES: &NoteRules = &Rules::DEFAULT.notes;

fn place_and_cause(finding: &Finding) -> String {
    let what = match finding.causes.first() {
        None => "no known cause fits".to_owned(),
        Some(cause) if cause.probability < RULES.likely => {
            format!("the cause is not known; perhaps {} ({})", cause.title, words::percent(cause.probability))
        }
        Some(cause) => cause.title.clone(),
    };
    let words = if finding.was_only_read() { words::read_at } else { words::place };
    let place = finding.places.first().map_or(String::new(), |p| words(&p.suspect, p.direction));
    format!("{place}{}: {what}", words::layer(finding.layer))
}

/// Findings after the first: one in full, for who reads only the headline must not repair the half; of more
/// the number.
fn also(others: &[Finding]) -> String {
    match others {
        [] => String::new(),
        [one] => format!("; and {}", place_and_cause(one)),
        [one, rest @ ..] => format!("; and {} (and {} more)", place_and_cause(one), rest.len()),
    }
}

/// What is worth knowing and is no finding.
pub(crate) fn notes(context: &Context<'_>, report: &[Cell], judged: &[Judged<'_, '_>]) -> Vec<String> {
    let rules = &context.facts.rules.notes;
    let mut notes = Vec::new();
    for cell in
        report.iter().filter(|c| c.share.is_some_and(|s| s >= rules.at_ceiling) && !c.ceiling.is_guess())
    {
        let rate = cell.retransmits_per_s.filter(|r| *r >= rules.retransmits_min);
        if let Some((rate, share)) =
            rate.zip(cell.share).filter(|_| report.len() <= rules.retransmit_cells_max)
        {
            notes.push(format!(
                "{} to {}: {} of the ceiling, so its {} retransmits per second do not matter",
                cell.from,
                cell.to,
                words::percent(share),
                words::digits(rate)
            ));
        }
    }
    notes.extend(context.ports.words(report).map(|words| {
        format!("{words}; no link speed was read, so `ethtool` of a NIC of each tells whether it is what it should be")
    }));
    if judged.iter().all(|j| j.located.unconfirmed) {
        notes.extend(lost_once(report, rules));
    }
    notes.extend(judged.iter().filter(|j| j.located.unconfirmed).map(|j| suspicion(context, j)));
    notes
}

/// A suspicion that was not confirmed. Where nothing speaks against it, what was read at the place may say
/// what it would be.
fn suspicion(context: &Context<'_>, judged: &Judged<'_, '_>) -> String {
    let (suspect, direction, _) = &judged.places[0];
    let place = words::place(suspect, *direction);
    let outcome = if is_contended(context, judged) {
        "and its repetition was contended; survey again when the hosts are idle"
    } else if is_untested(context, judged) && context.facts.snapshot.imported.is_some() {
        "and not repeated; measure that again before you believe it"
    } else if is_untested(context, judged) {
        "and not tested again; a survey that has more time repeats it"
    } else {
        return format!("{place}: suspected once and not confirmed by a repetition");
    };
    let read = judged.causes.first().filter(|(scored, _)| !scored.hits.is_empty());
    let cause = read.map_or(String::new(), |(scored, _)| {
        format!(". What would explain it: {} [{}]", scored.cause.title, scored.evidence.join("; "))
    });
    format!("{place}: suspected once {outcome}{cause}")
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
/// once. A transfer that was slow once is a note, for that happens in healthy clusters; of what others
/// measured it may be all that they ask about.
fn untested(context: &Context<'_>, judged: &[Judged<'_, '_>]) -> String {
    let places: Vec<String> = judged
        .iter()
        .filter(|j| is_untested(context, j))
        .filter(|j| {
            let is_dead = |s: &Sample| matches!(s.outcome, Outcome::NothingThrough { .. });
            context.facts.snapshot.imported.is_some() || samples(context, j).any(is_dead)
        })
        .map(|j| words::place(&j.places[0].0, j.places[0].1))
        .collect();
    match places.as_slice() {
        [] => String::new(),
        [one] => format!("; suspected and not tested again: {one}"),
        [one, rest @ ..] => format!("; suspected and not tested again: {one} (and {} more)", rest.len()),
    }
}

/// Pairs that lost datagrams where nothing else was found: too little to name a place, and not nothing.
fn lost_once(report: &[Cell], rules: &NoteRules) -> Vec<String> {
    let lossy = || report.iter().filter_map(|c| Some((c, c.loss.filter(|l| *l >= rules.loss_min)?)));
    let mut notes: Vec<String> = lossy()
        .take(rules.lossy_pairs_max)
        .map(|(c, loss)| {
            format!(
                "{} to {} ({}): {} of the datagrams of a probe were lost, and nothing else points to it; survey again to see whether it comes back",
                c.from,
                c.to,
                c.layer,
                words::percent(loss)
            )
        })
        .collect();
    let more = lossy().count().saturating_sub(rules.lossy_pairs_max);
    if more > 0 {
        notes.push(format!("{more} more pairs lost datagrams in a probe"));
    }
    notes
}

/// Front ends through which a download is slow, and what a round robin over them means.
pub(crate) fn front_ends(facts: &Facts<'_>) -> Vec<String> {
    let snapshot = facts.snapshot;
    let mut notes = Vec::new();
    for sample in &snapshot.samples {
        let Outcome::Measured(m) = &sample.outcome else { continue };
        let Some(tx) = m.tx.as_ref().filter(|t| !t.http.is_empty()) else { continue };
        let fronts = crate::front_ends::compare_with(&tx.http, &facts.rules.http);
        let slow: Vec<String> = fronts
            .iter()
            .filter_map(|f| {
                let slow = f.slow?;
                Some(format!("{} ({} {} worse)", f.name, slow.step.words(), words::ratio(slow.times)))
            })
            .collect();
        if !slow.is_empty() {
            let fine: Vec<&str> =
                fronts.iter().filter(|f| f.slow.is_none()).map(|f| f.name.as_str()).collect();
            notes.push(format!(
                "downloads are slow through {}; fine through {}",
                slow.join(", "),
                fine.join(", ")
            ));
        }
        // Each front end is also a host on which the service may run.
        let hosts = fronts.iter().filter(|f| snapshot.inventory.host(&f.name).is_some()).count();
        if hosts >= facts.rules.notes.front_ends_min && hosts == fronts.len() {
            notes.push(format!(
                "requests in turn over {hosts} front ends, one of which has the service, cross to another host in {} of the cases: \
                 that is structure, no fault",
                words::percent(1.0 - 1.0 / hosts as f64)
            ));
        }
    }
    notes
}

/// Means that must not be used because the series has two states.
fn two_state_notes(report: &[Cell]) -> Vec<String> {
    report
        .iter()
        .filter_map(|c| c.two_state_bps.map(|levels| (c, levels)))
        .map(|(c, (high, low))| {
            format!(
                "{} to {} ({}): the mean throughput, for it jumps between {} and {}",
                c.from,
                c.to,
                c.layer,
                words::bps(high),
                words::bps(low)
            )
        })
        .collect()
}

/// What is no evidence, and why.
pub(crate) fn refused(snapshot: &Snapshot, report: &[Cell], rules: &Rules) -> Vec<String> {
    let mut refused = storage::refused(snapshot, &rules.disks);
    refused.extend(two_state_notes(report));
    refused.extend(snapshot.samples.iter().filter_map(|s| match &s.outcome {
        Outcome::Invalid { reason } => {
            Some(format!("{} {} to {}: {reason}", s.test.kind.name(), s.test.from, s.test.to))
        }
        _ => None,
    }));
    refused
}

/// What could not be seen: gaps, tests that could not run, and layers of which too many pairs have no valid
/// transfer.
pub(crate) fn blind(snapshot: &Snapshot, cells: &[CellEvidence<'_>], rules: &Rules) -> Vec<Gap> {
    let mut blind = snapshot.gaps.clone();
    for sample in &snapshot.samples {
        if let Outcome::Gap { reason } = &sample.outcome {
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
    blind.extend(contended(cells, &rules.notes).into_iter().map(|(layer, without, of)| Gap {
        what: format!("the throughput of {without} of {of} pairs ({layer})").into(),
        reason: "each of their transfers was contended; survey again when the hosts are idle".to_owned(),
    }));
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
            from: from.into(),
            to: to.into(),
            layer: Layer::Overlay,
            kind: TcpPlan::single(500).into(),
            repeat: 0,
            serial: false,
            second_stage: false,
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

    /// One probe of one pair lost 9 in a thousand, and TCP is as fast there as elsewhere: no place can be
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
        let notes: Vec<&String> = seen.notes.iter().filter(|note| note.contains("datagrams")).collect();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("a to b (overlay): 0.8"), "{notes:?}");
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
        assert!(seen.blind.is_empty() && !seen.headline.contains("seen"), "{}", seen.headline);
        let half = crate::diagnose(&snapshot(7), &knowledge);
        assert!(half.findings.is_empty());
        assert!(
            half.headline.ends_with("contended in every transfer: 7 of 12 pairs (overlay)"),
            "{}",
            half.headline
        );
        assert_eq!(half.blind.len(), 1);
        assert_eq!(half.blind[0].what.to_string(), "the throughput of 7 of 12 pairs (overlay)");
    }
}
