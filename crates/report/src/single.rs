//! Single tests that somebody asked for, as text and as markup. Samples in, words out.
//!
//! To add a kind of test: one file with a [`View`], one line in [`VIEWS`].

use std::fmt::Write;

use linerate_diagnose::disks;
use linerate_model::exit::ExitCode;
use linerate_model::kind::DiskPlan;
use linerate_model::load::LoadReport;
use linerate_model::printable;
use linerate_model::sample::{Outcome, Sample};
use linerate_model::snapshot::Snapshot;
use maud::{Markup, html};

use super::heat::Style;
use super::view::{View, pair};
use super::wrap::wrap;
use super::{bench, connects, http, latency, path_mtu, transfer, udp};

/// All views.
pub static VIEWS: &[&dyn View] = &[
    &transfer::Transfer,
    &latency::Latency,
    &udp::Udp,
    &path_mtu::PathMtuView,
    &connects::Connects,
    &http::Http,
    &bench::Bench,
];

fn view(sample: &Sample) -> Option<&'static dyn View> {
    VIEWS.iter().copied().find(|view| view.kind() == sample.test.kind.name())
}

/// Both reports of a test that ran.
fn ends(sample: &Sample) -> Result<(LoadReport, LoadReport), &str> {
    match &sample.outcome {
        Outcome::Measured(m) => {
            Ok((m.tx.as_deref().cloned().unwrap_or_default(), m.rx.as_deref().cloned().unwrap_or_default()))
        }
        Outcome::NothingThrough { reason } | Outcome::Invalid { reason } | Outcome::Gap { reason } => {
            Err(reason)
        }
    }
}

/// The samples of a run of single tests; none of a survey.
fn samples(snapshot: &Snapshot) -> &[Sample] {
    // Imported evidence has values only, no reports of the ends.
    let told = |s: &Sample| !matches!(&s.outcome, Outcome::Measured(m) if m.tx.is_none());
    let shown = |s: &Sample| s.test.serial && view(s).is_some() && told(s);
    // Tests of disks have the facts of their devices with them; otherwise facts are those of a survey.
    let disks = snapshot.samples.iter().all(|s| s.test.kind.is::<DiskPlan>());
    // Drives that were surveyed have a table of their own.
    let survey = snapshot.samples.iter().any(disks::is_of_survey);
    let single = !survey && (snapshot.facts.is_empty() || disks) && snapshot.samples.iter().all(shown);
    if single { &snapshot.samples } else { &[] }
}

/// Whether a run consists of single tests.
pub fn is_single(snapshot: &Snapshot) -> bool {
    !samples(snapshot).is_empty()
}

/// One sentence for all samples: that of the first which shows something wrong, else of the first.
pub fn headline(samples: &[Sample]) -> String {
    let words = |sample: &Sample| match (ends(sample), view(sample)) {
        (Ok((tx, rx)), Some(view)) => format!("{}: {}", view.title(sample), view.headline(sample, &tx, &rx)),
        (Err(reason), Some(view)) => format!("{}: {}", view.title(sample), printable::without_hint(reason).0),
        (Ok(_), None) => pair(sample),
        (Err(reason), None) => format!("{}: {}", pair(sample), printable::without_hint(reason).0),
    };
    let chosen = samples.iter().find(|s| is_wrong(s)).or_else(|| samples.first());
    chosen.map_or_else(|| "nothing was tested".to_owned(), words)
}

/// The run in a line.
#[must_use]
pub fn disks_headline(snapshot: &Snapshot) -> String {
    match snapshot.samples.as_slice() {
        [] => "no disk was measured".to_owned(),
        [one] => headline(std::slice::from_ref(one)),
        [first, rest @ ..] => {
            let first = headline(std::slice::from_ref(first));
            format!("disks of {} hosts; {first}", rest.len() + 1)
        }
    }
}

fn is_wrong(sample: &Sample) -> bool {
    ends(sample).map_or(true, |(tx, rx)| view(sample).is_some_and(|view| view.is_finding(&tx, &rx)))
}

/// What the command that asked returns. A test that could not run, or that is worthless, is no finding.
pub fn exit_code(samples: &[Sample]) -> ExitCode {
    let unseen = |s: &&Sample| matches!(s.outcome, Outcome::Gap { .. } | Outcome::Invalid { .. });
    let blind = samples.iter().filter(unseen).count();
    if samples.iter().any(|s| !unseen(&s) && is_wrong(s)) {
        ExitCode::Findings
    } else if blind == samples.len() {
        ExitCode::CouldNotRun
    } else if blind > 0 {
        ExitCode::PartlyBlind
    } else {
        ExitCode::Ok
    }
}

/// The tables of a run of single tests; empty for a survey. Without details each table ends with how many
/// lines these are.
pub fn tables(snapshot: &Snapshot, with_details: bool, style: Style) -> String {
    let mut out = String::new();
    let headline = headline(samples(snapshot));
    for sample in samples(snapshot) {
        if let Err(reason) = ends(sample)
            && let (_, Some(hint)) = printable::without_hint(reason)
        {
            out += &lines(&format!("hint: {hint}"), style);
        }
        let (Ok((tx, rx)), Some(view)) = (ends(sample), view(sample)) else { continue };
        let facts = snapshot.facts.get(&sample.test.from);
        let mut text = view.text_on(sample, (&tx, &rx), facts);
        let details = view.details(sample, &tx);
        if with_details {
            text += &details;
        } else if !details.is_empty() {
            let _ = writeln!(text, "`-v` prints {} lines more", details.lines().count());
        }
        out.push('\n');
        if snapshot.samples.len() > 1 {
            out += &style.bold(&view.title(sample));
            out.push('\n');
        }
        for line in text.lines().filter(|line| line.is_empty() || !headline.ends_with(line)) {
            out += &lines(line, style);
        }
        let stopped =
            tx.stopped.iter().map(|r| ("sender", r)).chain(rx.stopped.iter().map(|r| ("receiver", r)));
        for (end, reason) in stopped {
            let _ = writeln!(out, "The {end} ended early: {}", printable::lines_of_error(reason));
        }
    }
    out
}

/// A line as it is printed: sentences are wrapped, tables keep their columns.
fn lines(line: &str, style: Style) -> String {
    if line.contains("  ") {
        return format!("{}\n", line.trim_end());
    }
    wrap(line, style.width).into_iter().fold(String::new(), |text, part| text + &part + "\n")
}

/// The same for a page, with drawings.
pub fn sections(snapshot: &Snapshot) -> Markup {
    html! {
        @for sample in samples(snapshot) {
            @if let (Ok((tx, rx)), Some(view)) = (ends(sample), view(sample)) {
                h2 { (view.title(sample)) }
                @let facts = snapshot.facts.get(&sample.test.from);
                @let text = view.text_on(sample, (&tx, &rx), facts) + &view.details(sample, &tx);
                pre.wide { (text.trim_end()) }
                div.scroll { (view.drawings(&tx, &rx)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use linerate_model::kind::TestKind;

    /// Kinds that only a survey has: its matrix shows them.
    const IN_MATRIX: [&str; 2] = ["rtt", "mtu"];

    #[test]
    fn every_kind_of_test_has_one_view() {
        let mut shown: Vec<&str> = VIEWS.iter().map(|view| view.kind()).chain(IN_MATRIX).collect();
        let mut names = TestKind::names();
        shown.sort_unstable();
        names.sort_unstable();
        assert_eq!(shown, names);
    }
}
