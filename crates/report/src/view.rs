//! How one kind of test is shown. One file per kind; the list is in `single`.

use linerate_model::fact::HostFacts;
use linerate_model::load::LoadReport;
use linerate_model::printable;
use linerate_model::sample::Sample;
use maud::Markup;

use super::names;

/// How one kind of test is shown.
pub trait View: Sync {
    /// Name of the kind.
    fn kind(&self) -> &'static str;
    /// Who was tested, for a heading.
    fn title(&self, sample: &Sample) -> String {
        pair(sample)
    }
    /// The most important in one sentence; `tx` and `rx` are what both ends reported.
    fn headline(&self, sample: &Sample, tx: &LoadReport, rx: &LoadReport) -> String;
    /// Tables and sentences, at most 100 columns.
    fn text(&self, sample: &Sample, tx: &LoadReport, rx: &LoadReport) -> String;
    /// The same for a kind that says more when it knows the facts of the host; `ends` is what both ends
    /// reported.
    fn text_on(&self, sample: &Sample, ends: (&LoadReport, &LoadReport), _: Option<&HostFacts>) -> String {
        self.text(sample, ends.0, ends.1)
    }
    /// Every turn, every probe: lines below the text, where they are asked for.
    fn details(&self, _: &Sample, _: &LoadReport) -> String {
        String::new()
    }
    /// Drawings.
    fn drawings(&self, tx: &LoadReport, rx: &LoadReport) -> Markup;
    /// Whether it shows something that is wrong.
    fn is_finding(&self, tx: &LoadReport, rx: &LoadReport) -> bool;
}

/// Both ends of a test, for a heading.
pub(super) fn pair(sample: &Sample) -> String {
    format!(
        "{} to {}",
        printable::clean(&sample.test.from),
        printable::clean(&names::cut(&sample.test.to, 60))
    )
}

/// A sample for the tests of the views.
#[cfg(test)]
pub(crate) fn tests_sample() -> Sample {
    use linerate_model::kind::UdpPlan;
    use linerate_model::plan::Test;
    let test = Test {
        id: 1,
        ..Test::new(
            "a".into(),
            "b".into(),
            linerate_model::inventory::Layer::Underlay,
            UdpPlan::paced(1e8, 1200, 1000).into(),
        )
    };
    Sample::new(test, 0, linerate_model::sample::Outcome::Gap { reason: "not run".into() })
}
