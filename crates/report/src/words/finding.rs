//! One finding in a sentence: where, how much, the confidence, why, what else, what to try, what it risks.

use std::fmt::Write as _;

use linerate_model::finding::{
    Direction, Finding, LayerScope, Metric, NextTest, RankedCause, ReplicaLoss, ReplicaPattern, Suspect,
};
use linerate_model::units::{factor, percent, percent_lost, short, sure, value};
use linerate_model::verdict::Certainty;

/// Causes and places below this are not worth a word.
const POSSIBLE: f64 = 0.05;
/// What nothing read supports is worth a try from here on; a guess is not.
const WORTH_A_TRY: f64 = 0.5;
/// Readings that are quoted.
const EVIDENCE_MAX: usize = 3;
/// Fewer bad tests than one in so many are worth a word.
const MINORITY: usize = 4;

/// Where a finding is, with its layer.
pub fn location(finding: &Finding) -> String {
    let Some(place) = finding.places.first() else { return "not localised".to_owned() };
    let name = match (&place.suspect, finding.read_on) {
        _ if !finding.was_only_read() => place.suspect.label(place.direction),
        // What stands for every pair stands for the hosts.
        (Suspect::All, Some((of, hosts))) if of < hosts => format!("{of} of {hosts} hosts"),
        (Suspect::All, Some((_, hosts))) => format!("all {hosts} hosts"),
        (Suspect::All, None) => "most hosts".to_owned(),
        (Suspect::Host(host), _) if place.direction == Direction::Both => format!("host {host}"),
        (suspect, _) => suspect.label(place.direction),
    };
    match finding.layer {
        LayerScope::Any => name,
        LayerScope::Only(layer) => format!("{name} in the {layer} only"),
    }
}

/// How much is lost.
pub fn loss(finding: &Finding) -> String {
    let primary = finding.responses.first().copied().unwrap_or_default();
    let (name, unit) = (primary.label(), primary.unit());
    let (measured, expected) = (value(finding.measured, unit), value(finding.expected, unit));
    let both = format!("{name} {measured} instead of {expected}");
    match primary {
        Metric::Throughput if finding.nothing_gets_through() => {
            format!("nothing gets through, {expected} expected")
        }
        _ if finding.nothing_gets_through() => "nothing gets through".to_owned(),
        Metric::Throughput | Metric::Storage if finding.expected > 0.0 => {
            let lost = (1.0 - finding.measured / finding.expected).clamp(0.0, 1.0);
            format!("{both}, {} lost", percent_lost(lost))
        }
        Metric::TwoState => {
            format!("throughput jumps between {expected} and {measured} (never a mean of the two)")
        }
        Metric::PathMtu => {
            format!("packets above {measured} do not arrive, although {expected} should fit")
        }
        Metric::TcpOptions => {
            "new connections go without an option of TCP that both ends have switched on".to_owned()
        }
        Metric::Setting if !finding.affected.is_empty() => format!(
            "the host was held back during {measured} of the tests there, which made many of them worthless"
        ),
        Metric::Setting => "what was read there is wrong or differs; no loss was measured of it".to_owned(),
        Metric::RttIdle | Metric::RttLoaded | Metric::CpuCost | Metric::Retransmits
            if finding.expected > 0.0 =>
        {
            format!("{both}, {} times as much", factor(finding.measured / finding.expected))
        }
        _ => both,
    }
}

/// All of it.
pub(super) fn sentence(finding: &Finding) -> String {
    let mut text = String::new();
    if let Some(replica) = &finding.replica {
        let what = match replica.pattern {
            ReplicaPattern::Write => "replication",
            ReplicaPattern::RandomWrite => "random writes replicated",
            ReplicaPattern::Resync => "resync",
        };
        let _ = write!(text, "{what} over {}: ", replica.transport);
    }
    let _ = write!(text, "{}: {}", location(finding), loss(finding));
    if !finding.affected.is_empty() && finding.tested > 1 {
        let _ = write!(text, " (on {} of {} pairs)", finding.affected.len(), finding.tested);
    }
    let _ = write!(text, ". Confidence {}{}. ", sure(finding.probability), minority(finding));
    let others = finding.places.iter().skip(1).filter(|p| p.probability >= POSSIBLE);
    let others: Vec<String> = others.map(|p| p.suspect.label(p.direction)).collect();
    if !others.is_empty() {
        let _ = write!(text, "The same evidence would fit {}. ", others.join("; or "));
    }
    text += &causes(finding);
    let supported = |c: &&RankedCause| !c.evidence.is_empty() || c.probability >= WORTH_A_TRY;
    let cause = finding.causes.first().filter(supported);
    if let Some(remedy) = cause.and_then(|c| c.remedy.as_ref()) {
        let _ = write!(text, " To try: {}; risk: {}.", remedy.title, remedy.risk);
    }
    if let Some(decide) = &finding.decide {
        let _ = write!(text, " To settle it: {decide}.");
    }
    if finding.intermittent {
        text += " It comes and goes: other tests there were good.";
    }
    text + &finding.at_rest.as_ref().map_or(String::new(), super::remark::at_rest)
}

/// What a finding rests on, where most tests there were good.
fn minority(finding: &Finding) -> String {
    match finding.rests_on {
        Some((bad, valid)) if bad * MINORITY < valid => {
            format!(": {bad} of {valid} valid tests there show it")
        }
        _ => String::new(),
    }
}

fn causes(finding: &Finding) -> String {
    let Some((first, others)) = finding.causes.split_first() else {
        return "No known cause fits.".to_owned();
    };
    let how = match Certainty::of(first.probability.min(finding.probability)) {
        Certainty::Unknown => "Perhaps",
        Certainty::Possible => "Possibly",
        Certainty::Likely => "Most likely",
        Certainty::Certain => "Certainly",
    };
    let mut text = format!("{how} ({}): {}", sure(first.probability), first.title);
    if !first.evidence.is_empty() {
        let quoted = first.evidence.iter().take(EVIDENCE_MAX).cloned().collect::<Vec<_>>();
        let _ = write!(text, " [{}]", quoted.join("; "));
    }
    text += ".";
    let others = others.iter().filter(|c| c.probability >= POSSIBLE);
    let others: Vec<String> = others.map(|c| format!("{} ({})", c.title, sure(c.probability))).collect();
    if !others.is_empty() {
        let _ = write!(text, " It could also be: {}.", others.join("; "));
    }
    text
}

/// Adds the figures of a replica to the evidence of each cause.
pub(super) fn add_figures_of_replica(finding: &mut Finding) {
    let lines = finding.replica.as_ref().map_or(Vec::new(), |loss| of_replica(loss, finding.measured));
    for cause in &mut finding.causes {
        let new = lines.iter().filter(|line| !cause.evidence.contains(line)).cloned().collect::<Vec<_>>();
        cause.evidence.extend(new);
    }
}

fn of_replica(loss: &ReplicaLoss, reached: f64) -> Vec<String> {
    let mb = |bytes: f64| format!("{} MB/s", short(bytes / 1e6));
    let (disk, transport) = (loss.disk_bytes_per_s, loss.transport_bytes_per_s);
    let (name, own) = (&loss.transport, mb(reached));
    let lines = match loss.pattern {
        ReplicaPattern::Write => [
            disk.map(|disk| format!("the local disk writes {}", mb(disk))),
            transport.map(|transport| format!("the transport {name} carries {}", mb(transport))),
            disk.zip(transport).map(|(disk, transport)| {
                let (disk, transport) = (percent(reached / disk), percent(reached / transport));
                format!("replicated over {name}: {own}, {disk} of the disk and {transport} of the transport")
            }),
        ],
        ReplicaPattern::RandomWrite => [
            disk.map(|disk| format!("the local disk writes {} at random", mb(disk))),
            loss.sequential_share.map(|share| {
                format!("sequential writes reach {} of the slower of disk and transport", percent(share))
            }),
            disk.map(|disk| {
                format!("replicated random writes: {own}, {} of the disk", percent(reached / disk))
            }),
        ],
        ReplicaPattern::Resync => [
            transport.map(|transport| format!("the transport carries {}", mb(transport))),
            disk.map(|disk| format!("the local disk writes {}", mb(disk))),
            Some(format!("the resync runs at {own}")),
        ],
    };
    lines.into_iter().flatten().collect()
}

/// The measurement that would decide what is open.
pub(super) fn next_test(finding: &Finding) -> Option<String> {
    let place = finding.places.first()?;
    let suspect = place.suspect.label(place.direction);
    Some(match finding.next.as_ref()? {
        NextTest::Repeat => "repeat the tests of this pair three times with nothing else running".to_owned(),
        NextTest::ThirdHost => "measure both hosts against a third one: the slow end stays slow".to_owned(),
        NextTest::FurtherGroup { group, senders } => {
            let one = |(host, group): &(String, Option<String>)| match group {
                Some(group) => format!("{host} on {group}"),
                None => host.clone(),
            };
            let senders = senders.iter().map(one).collect::<Vec<_>>().join(" and ");
            format!(
                "measure from a host in a further group (another machine than those of {senders}) to a host of {group}: \
                 if that is slow too, it is {suspect}; if it is fast, it is the senders {senders}"
            )
        }
        NextTest::Partners => format!(
            "measure {suspect} against two partners in other groups that are fine, both directions, alone, three times"
        ),
    })
}
