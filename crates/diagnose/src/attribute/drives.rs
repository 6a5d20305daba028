//! A drive that a survey measured slow becomes a finding of its own, with the causes that its own facts speak
//! for: its scheduler, its queue, its caches, its health, a limit on it.

use std::rc::Rc;

use linerate_knowledge::Knowledge;
use linerate_model::finding::{Direction, Finding, LayerScope, LossLocation, Metric, Suspect};

use super::finding::ranked;
use super::shape::Shape;
use super::{Peers, Subjects, SuspectContext, none_of_these, probabilities, rank, subjects};
use crate::calibrate::Calibration;
use crate::context::Context;
use crate::disks::{DriveState, SurveyedDrive, hosts_with_drives, surveyed_in};

/// A finding for each drive that is slower than its equals in every round.
pub(crate) fn of_drives(
    context: &Context<'_>,
    knowledge: &Knowledge,
    calibration: &Calibration,
) -> Vec<Finding> {
    let rules = context.facts.rules;
    let mut slow = surveyed_in(context.facts.snapshot);
    slow.retain(|drive| drive.state == DriveState::Slow && drive.rounds >= rules.disks.survey_rounds);
    if slow.is_empty() {
        return Vec::new();
    }
    // Hosts between which nothing was measured have drives all the same.
    let names = hosts_with_drives(context.facts.snapshot).map(|(host, _)| host.as_str());
    let fine = names.filter(|host| !slow.iter().any(|drive| drive.host == *host));
    let peers = Rc::new(Peers::new(fine.take(rules.attribute.peers_max).collect()));
    slow.iter().filter_map(|drive| of_drive(context, &peers, knowledge, calibration, drive)).collect()
}

fn of_drive<'a>(
    context: &Context<'a>,
    peers: &Rc<Peers<'a>>,
    knowledge: &Knowledge,
    calibration: &Calibration,
    drive: &SurveyedDrive,
) -> Option<Finding> {
    let rules = &context.facts.rules.merge;
    let (expected, measured) = drive.worst_bytes_per_s()?;
    let suspect = Suspect::Drive(drive.host.clone(), drive.device.clone());
    let shape = Shape::default();
    let subjects = Subjects { host_peers: Rc::clone(peers), ..subjects(context, &suspect, &[]) };
    let location = SuspectContext {
        suspect: &suspect,
        direction: Direction::Both,
        layer: LayerScope::Any,
        responses: &[Metric::Storage],
        shape: &shape,
        subjects: &subjects,
        has_alias: false,
    };
    let mut scored = rank(&context.facts, &location, knowledge);
    // Without a fact of the drive nothing speaks for a cause at this one.
    scored.retain(|scored| !scored.hits.is_empty());
    let scores: Vec<f64> = scored.iter().map(|s| s.score).collect();
    let each = scored.iter().map(|s| (s, s.score));
    let none = none_of_these(location.layer, each, &context.facts.rules.attribute);
    let shares = calibration.cause.shares(&probabilities(&scores, none));
    let causes = (scored.iter().zip(shares))
        .take(rules.causes_max)
        .map(|(scored, share)| ranked(&context.facts, &location, scored, share))
        .collect();
    Some(Finding {
        places: vec![LossLocation {
            suspect: suspect.clone(),
            direction: Direction::Both,
            probability: calibration.place.chance(1.0),
        }],
        responses: vec![Metric::Storage],
        expected,
        measured,
        unit: Metric::Storage.unit(),
        probability: rules.storage_finding,
        causes,
        rests_on: Some((drive.rounds, drive.rounds)),
        ..Finding::default()
    })
}
