//! What nodes say in words: reasons, errors, hints. They become parts of our sentences, so each of them stays
//! on one line, its hint on the next, and has nothing that acts on a terminal. Values of facts are data and
//! are left as they are; whoever prints one escapes it.
//!
//! What comes in: an event of a node. What goes out: the same event.

use linerate_model::audit::{AuditPart, EXAMPLES_MAX};
use linerate_model::durability::{DurabilityAnswer, FileState, FolderLocation, Pattern};
use linerate_model::load::LoadReport;
use linerate_model::printable;
use linerate_model::printable::one_line;
use linerate_wire::message::Event;

pub(super) fn on_one_line(mut event: Event) -> Event {
    match &mut event {
        Event::Failed { error, hint, .. } => [error, hint].into_iter().for_each(tame),
        Event::LoadDone { report, .. } => tame_report(report),
        Event::Facts(facts) => {
            facts.gaps.iter_mut().flat_map(|gap| [gap.what.name_mut(), &mut gap.reason]).for_each(tame);
        }
        Event::Noticed(notices) => {
            for notice in notices {
                tame(&mut notice.about);
                let writer = notice.writer.as_mut();
                writer.into_iter().flat_map(|w| w.name.iter_mut().chain(&mut w.unit)).for_each(tame);
            }
        }
        Event::Journals(entries) => {
            for entry in entries {
                tame(&mut entry.trial);
            }
        }
        Event::Durability(answer) => tame_answer(answer),
        Event::Audit(part) => tame_part(part),
        // What a program printed is data and has lines; its errors become sentences.
        Event::Seen(seen) => tame(&mut seen.err),
        Event::Planned { files } => files.iter_mut().flat_map(|file| &mut file.lines).for_each(tame),
        Event::Unbuilt { lines } => lines.iter_mut().for_each(tame),
        Event::Builds(entries) => entries.iter_mut().for_each(|entry| tame(&mut entry.build)),
        Event::Hello(_)
        | Event::Listening { .. }
        | Event::Probed(_)
        | Event::Changed { .. }
        | Event::Kept { .. }
        | Event::Done => {}
    }
    event
}

fn tame(text: &mut String) {
    if text.chars().any(printable::is_control) {
        *text = one_line(text);
    }
}

fn tame_part(part: &mut AuditPart) {
    part.gaps.iter_mut().flat_map(|gap| [gap.what.name_mut(), &mut gap.reason]).for_each(tame);
    // Names of classes are ours: what else is called by control characters is not shown.
    part.classes.retain(|name, _| !name.chars().any(printable::is_control));
    for class in part.classes.values_mut() {
        tame(&mut class.words);
        class.examples.truncate(EXAMPLES_MAX);
        class.examples.iter_mut().for_each(tame);
    }
}

fn tame_answer(answer: &mut DurabilityAnswer) {
    let place = |place: &mut FolderLocation| {
        let texts = [&mut place.filesystem, &mut place.source, &mut place.mount, &mut place.options];
        texts.into_iter().chain([&mut place.boot, &mut place.device]).chain(&mut place.run).for_each(tame);
    };
    let known = |patterns: &mut [Pattern]| {
        patterns.iter_mut().flat_map(|p| [&mut p.name, &mut p.doing, &mut p.calls]).for_each(tame);
    };
    match answer {
        DurabilityAnswer::Patterns(patterns) => known(patterns),
        DurabilityAnswer::Prepared { place: its, patterns } => {
            place(its);
            known(patterns);
        }
        DurabilityAnswer::Place(its) => place(its),
        DurabilityAnswer::Written { error, .. } => error.iter_mut().for_each(tame),
        DurabilityAnswer::Seen(files) => files.iter_mut().for_each(|file| {
            if let FileState::Corrupt { what, .. } = &mut file.state {
                tame(what);
            }
        }),
        DurabilityAnswer::Cleaned { left, .. } => left.iter_mut().for_each(tame),
    }
}

/// A report may hold one of the other direction, and that one of the first again, as deep as JSON is read.
fn tame_report(report: &mut LoadReport) {
    let mut next = Some(report);
    while let Some(report) = next {
        report.stopped.iter_mut().for_each(|error| *error = printable::lines_of_error(error));
        report.tcp.iter_mut().for_each(|tcp| tame(&mut tcp.congestion));
        next = report.back.as_deref_mut();
    }
}
