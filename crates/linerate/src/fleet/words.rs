//! What nodes say in words: reasons, errors, hints. They become parts of our sentences, so each of them stays on one line and has
//! nothing that acts on a terminal. Values of facts are data and are left as they are; whoever prints one escapes it.
//!
//! What comes in: an event of a node. What goes out: the same event.

use linerate_model::load::LoadReport;
use linerate_wire::message::Event;

use crate::report::names::one_line;

pub(super) fn on_one_line(mut event: Event) -> Event {
    match &mut event {
        Event::Failed { error, hint, .. } => [error, hint].into_iter().for_each(tame),
        Event::LoadDone { report, .. } => tame_report(report),
        Event::Facts(facts) => {
            facts.gaps.iter_mut().flat_map(|gap| [&mut gap.what, &mut gap.reason]).for_each(tame);
        }
        Event::Journals(entries) => {
            entries.iter_mut().flat_map(|entry| [&mut entry.trial, &mut entry.state]).for_each(tame);
        }
        Event::Hello(_)
        | Event::Heartbeat
        | Event::Listening { .. }
        | Event::Changed { .. }
        | Event::Kept { .. }
        | Event::Done => {}
    }
    event
}

fn tame(text: &mut String) {
    if text.chars().any(crate::report::names::acts) {
        *text = one_line(text);
    }
}

/// A report may hold one of the other direction, and that one of the first again, as deep as JSON is read.
fn tame_report(report: &mut LoadReport) {
    let mut next = Some(report);
    while let Some(report) = next {
        report.stopped.iter_mut().chain(report.tcp.as_mut().map(|tcp| &mut tcp.congestion)).for_each(tame);
        next = report.back.as_deref_mut();
    }
}
