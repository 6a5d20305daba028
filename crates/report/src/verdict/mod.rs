//! The verdict of a diagnosis: made here once, as facts, for the end of a screen and for `summary` in JSON. A
//! diagnosis with the inventory of its run comes in; `lines.rs` has the four lines of each finding.

pub(crate) mod command;
mod first_line;
mod lines;
mod outcome;
mod sign;

pub use lines::{FINDINGS_MAX, text};
pub(crate) use lines::{LabelledLine, effect_text, finding_lines, harmless_text, not_seen, same_as};
pub use outcome::{of_drives, of_replicas, of_trials};

use std::collections::BTreeSet;

use linerate_knowledge::features::is_specific;
use linerate_knowledge::keys::nic_of;
use linerate_model::change::Remedy;
use linerate_model::difference::Difference;
use linerate_model::fact_change::FactChange;
use linerate_model::finding::{Clue, Diagnosis, Finding, Metric, RankedCause, Suspect, TermName};
use linerate_model::imported::Missing;
use linerate_model::remark::Remark;
use linerate_model::snapshot::Snapshot;
use linerate_model::verdict::{
    Certainty, HostCommand, LossBasis, Unseen, Verdict, VerdictCause, VerdictFix, VerdictItem, VerdictLoss,
    VerdictSubject,
};

use command::Shell;

/// Causes below this are not named where the cause is unknown.
const NAMED_MIN: f64 = 0.1;

/// The verdict of a run.
#[must_use]
pub fn of(snapshot: &Snapshot, diagnosis: &Diagnosis) -> Verdict {
    let shell = Shell::of(snapshot);
    let mut findings: Vec<VerdictItem> =
        diagnosis.findings.iter().map(|finding| item(finding, snapshot, diagnosis, &shell)).collect();
    let signs = diagnosis.remarks.iter().filter(|remark| remark.suspects());
    // What a finding has located is more than the symptom.
    let signs = signs.filter(|remark| findings.is_empty() || is_beside(remark));
    let signs: Vec<VerdictItem> =
        sign::together(signs).into_iter().map(|of| sign::item(of, &shell)).collect();
    findings.extend(signs);
    let findings = both_sides(findings);
    let overall = findings.is_empty().then_some(diagnosis.summary.overall);
    let further = diagnosis.asked.iter().skip(1).filter(|_| overall.is_some());
    Verdict {
        findings,
        overall,
        effect: diagnosis.summary.fix.and_then(|_| effect(diagnosis)),
        harmless: harmless(diagnosis),
        unseen: Unseen {
            paced: diagnosis.remarks.iter().find_map(Remark::pace),
            pairs: diagnosis.summary.unmeasured.clone(),
            untested: diagnosis.summary.untested.clone(),
            gaps: gaps(snapshot, diagnosis),
            asked: diagnosis.asked.first().map(|missing| asked(snapshot, missing)),
            asked_then: further.map(|missing| asked(snapshot, missing)).collect(),
            unread_lines: snapshot.imported.as_ref().map_or(0, |imported| imported.unread_lines),
        },
    }
}

/// What was read of one replica on both of its sides is one item.
fn both_sides(items: Vec<VerdictItem>) -> Vec<VerdictItem> {
    let mut all: Vec<VerdictItem> = Vec::new();
    for item in items {
        let Some((id, key)) = replica(&item) else {
            all.push(item);
            continue;
        };
        let Some(first) = all.iter_mut().find(|other| replica(other) == Some((id, key))) else {
            all.push(item);
            continue;
        };
        if let (Some(cause), Some(more)) = (&mut first.cause, item.cause) {
            cause.evidence.extend(more.evidence);
        }
        if let (VerdictSubject::Loss(loss), VerdictSubject::Loss(more)) = (&mut first.what, item.what) {
            loss.locations.extend(more.locations);
        }
    }
    all
}

/// Cause and key of an item of a replica that was only read.
fn replica(item: &VerdictItem) -> Option<(&str, &str)> {
    let VerdictSubject::Loss(loss) = &item.what else { return None };
    let cause = item.cause.as_ref().filter(|_| loss.basis == LossBasis::Reading)?;
    let hit = cause.evidence.iter().find_map(|clue| match clue {
        Clue::Read(hit) => Some(hit),
        _ => None,
    })?;
    hit.key.starts_with("drbd.").then_some((cause.id.as_str(), hit.key.as_str()))
}

/// Whether a sign is of something else than what a finding has located.
fn is_beside(sign: &Remark) -> bool {
    matches!(sign, Remark::FrontEnds { .. } | Remark::Outlier(_))
}

/// What imported evidence lacks; `NIC` becomes the name of it where the hosts of the command have one only.
fn asked(snapshot: &Snapshot, missing: &Missing) -> Missing {
    let is_named =
        |host: &str| missing.command.split(|c: char| c.is_whitespace() || c == ',').any(|w| w == host);
    let facts = snapshot.facts.iter().filter(|(host, _)| is_named(host));
    let nics = facts.flat_map(|(_, facts)| facts.readings.keys()).filter_map(|key| nic_of(key));
    let nics: BTreeSet<&str> = nics.collect();
    let mut asked = missing.clone();
    if let (Some(nic), 1) = (nics.first(), nics.len()) {
        asked.command = asked.command.replace("NIC", &nic.replace('/', "."));
    }
    asked
}

/// What could not be seen beside pairs.
fn gaps(snapshot: &Snapshot, diagnosis: &Diagnosis) -> Vec<linerate_model::fact::Gap> {
    // What imported evidence lacks is asked for.
    let lacking = snapshot.imported.as_ref().map(|i| &i.missing[..]).unwrap_or_default();
    let is_pairs = |gap: &linerate_model::fact::Gap| {
        diagnosis.summary.unmeasured.iter().map(super::words::unmeasured).any(|own| own.what == gap.what)
    };
    let gaps = diagnosis.blind.iter().filter(|gap| !is_pairs(gap));
    gaps.filter(|gap| lacking.iter().all(|missing| missing.what != gap.what.to_string())).cloned().collect()
}

fn effect(diagnosis: &Diagnosis) -> Option<Difference> {
    diagnosis.remarks.iter().find_map(|remark| match remark {
        Remark::Compared(difference @ Difference::Effect { .. }) => Some(difference.clone()),
        _ => None,
    })
}

/// Differences that no cause explains, each setting of each host once; one that the other layer would need is
/// not harmless while the layer is not known.
fn harmless(diagnosis: &Diagnosis) -> usize {
    let all = diagnosis.findings.iter().flat_map(|finding| &finding.benign);
    let judged = all.filter(|one| !one.is_of_layer);
    judged.map(|one| (one.host.as_str(), one.key.as_str())).collect::<BTreeSet<_>>().len()
}

fn item(finding: &Finding, snapshot: &Snapshot, diagnosis: &Diagnosis, shell: &Shell<'_>) -> VerdictItem {
    let cause = finding.causes.first().filter(|cause| cause.probability >= NAMED_MIN);
    let certainty = cause.map_or(Certainty::Unknown, |cause| certainty(cause, finding));
    let remedy = cause.and_then(|cause| cause.remedy.as_ref());
    // Without a cause there is nothing to fix, only something to find out.
    let fix = remedy.filter(|_| certainty > Certainty::Unknown).map(fix);
    let next = finding.next.clone().filter(|_| certainty < Certainty::Likely);
    let check = cause.and_then(|cause| check(cause, shell)).or_else(|| again(finding, shell));
    VerdictItem {
        what: VerdictSubject::Loss(Box::new(loss(finding, diagnosis))),
        cause: cause.map(|cause| VerdictCause {
            id: cause.id.clone(),
            title: title(cause),
            certainty,
            evidence: clearest_first(&cause.supports),
            changed: changed(cause, snapshot),
        }),
        check,
        fix,
        next,
    }
}

/// Readings of the cause's own setting, then what measures its mechanism, then that something is lost.
fn clearest_first(supports: &[Clue]) -> Vec<Clue> {
    let mut clues = supports.to_vec();
    clues.sort_by_key(|clue| match clue {
        Clue::Read(_) => 0,
        Clue::Measured { name, .. } if is_specific(name) => 1,
        Clue::Measured { .. } | Clue::AlsoOn(_) => 2,
    });
    clues
}

/// The newest change of a fact that speaks for a cause: only one that made the value which was read.
fn changed(cause: &RankedCause, snapshot: &Snapshot) -> Option<FactChange> {
    let is_read = |change: &&FactChange| {
        cause.supports.iter().any(|clue| {
            matches!(clue, Clue::Read(hit) if hit.host == change.host && hit.key == change.key
                && change.to.as_ref() == Some(&hit.value))
        })
    };
    snapshot.changes.iter().filter(is_read).max_by_key(|change| change.seen_ms).cloned()
}

/// How certain it is that the finding is one and that this is its cause: the lesser of both. A cause without
/// anything that was read or measured is no more than possible.
pub(crate) fn certainty(cause: &RankedCause, finding: &Finding) -> Certainty {
    let certainty = Certainty::of(cause.probability.min(finding.probability));
    if cause.supports.is_empty() && cause.evidence.is_empty() {
        certainty.min(Certainty::Possible)
    } else {
        certainty
    }
}

fn title(cause: &RankedCause) -> String {
    let title = if cause.short.is_empty() { &cause.title } else { &cause.short };
    title.trim_end_matches('.').to_owned()
}

fn loss(finding: &Finding, diagnosis: &Diagnosis) -> VerdictLoss {
    let is_of = |cell: &&linerate_model::finding::Cell| {
        finding.affected.iter().any(|(from, to)| *from == cell.from && *to == cell.to)
    };
    let mut cells = diagnosis.cells.iter().filter(is_of).peekable();
    let by_peers = cells.peek().is_some()
        && cells.all(|cell| cell.ceiling.bps.is_none() || cell.ceiling.binding == TermName::Peers);
    let basis = match (finding.was_only_read(), by_peers) {
        (true, _) => LossBasis::Reading,
        (_, true) => LossBasis::Peers,
        _ => LossBasis::Ceiling,
    };
    VerdictLoss {
        locations: locations(finding, diagnosis),
        layer: finding.layer,
        metric: finding.responses.first().copied().unwrap_or_default(),
        measured: finding.measured,
        expected: finding.expected,
        basis,
        is_dead: finding.nothing_gets_through(),
        affected: finding.affected.len(),
        tested: finding.tested,
        pair: finding.affected.first().cloned(),
        read_on: finding.read_on,
        intermittent: finding.intermittent,
        replica: finding.replica.clone(),
        certainty: Certainty::of(finding.probability),
    }
}

/// Where it may be. Between two hosts that the pair or every pair is meant only repeats that it is one of
/// the two.
fn locations(finding: &Finding, diagnosis: &Diagnosis) -> Vec<linerate_model::finding::LossLocation> {
    let hosts = diagnosis.cells.iter().flat_map(|cell| [cell.from.as_str(), cell.to.as_str()]);
    let are_two = hosts.collect::<BTreeSet<_>>().len() == 2;
    let is_exact = |suspect: &Suspect| !are_two || !matches!(suspect, Suspect::Pair(..) | Suspect::All);
    let all = finding.places.iter().enumerate().filter(|(i, at)| *i == 0 || is_exact(&at.suspect));
    all.map(|(_, at)| at.clone()).collect()
}

/// The command that shows a cause: that of its file, else the one that reads what was read.
fn check(cause: &RankedCause, shell: &Shell<'_>) -> Option<HostCommand> {
    let runs = |remedy: &&Remedy| !remedy.host.is_empty() || remedy.check.starts_with("linerate ");
    let own = cause.remedy.as_ref().filter(|remedy| !remedy.check.is_empty()).filter(runs);
    let own = own.map(|remedy| shell.on(&remedy.host, &remedy.check));
    own.or_else(|| {
        cause.supports.iter().find_map(|clue| match clue {
            Clue::Read(hit) => Some(shell.reads(&hit.host, &hit.key)),
            _ => None,
        })
    })
}

/// The test that shows a loss once more.
fn again(finding: &Finding, shell: &Shell<'_>) -> Option<HostCommand> {
    let (from, to) = finding.affected.first()?;
    let test = match finding.responses.first()? {
        Metric::Loss | Metric::Reordering | Metric::Stalls => "udp",
        Metric::RttIdle | Metric::RttLoaded => "latency",
        Metric::PathMtu => "mtu",
        Metric::Storage | Metric::Setting => return None,
        _ => "tcp",
    };
    Some(shell.own(&["measure", test, from, to]))
}

fn fix(remedy: &Remedy) -> VerdictFix {
    let hosts = remedy.hosts();
    let trial = match hosts.as_slice() {
        [] => None,
        [host] => Some(command::own(&["try", &remedy.id, "--on", host]).command),
        _ => Some(command::own(&["try", &remedy.id]).command),
    };
    let by_hand = if remedy.by_hand.is_empty() {
        format!("by hand: {}", command::own(&["explain", &remedy.id]).command)
    } else {
        first_line::by_hand(&remedy.by_hand, &remedy.host)
    };
    VerdictFix { trial, hosts, by_hand, risk: remedy.risk, risk_text: remedy.risk_text.clone() }
}
