//! A diagnosis in sentences: the words of the long report, of HTML and of JSON. A diagnosis comes
//! in, the same with its texts goes out; `--json` and the store get these beside the facts. The line that a
//! user reads first: `verdict/first_line.rs`.

mod advice;
mod announced;
mod cause;
mod ceiling;
mod diff;
pub mod disks;
pub mod drbd;
mod finding;
mod headline;
pub(crate) mod outlier;
mod remark;
mod symptom;
mod trial;
pub mod volumes;

pub use announced::announced;
pub(crate) use diff::verdict as verdict_of_fix;
pub use diff::{RunDifference, difference, quoted};
pub use finding::{location, loss};
pub use headline::whole;
pub(crate) use remark::{note, pace, slow_writes, step, unmeasured};

use linerate_knowledge::Knowledge;
use linerate_model::fact::Gap;
use linerate_model::finding::{Diagnosis, Metric};
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::{Arm, EffectSize};

/// What is wrong in this snapshot, where and why, with all texts.
#[must_use]
pub fn diagnose(snapshot: &Snapshot, knowledge: &Knowledge) -> Diagnosis {
    written(linerate_diagnose::diagnose(snapshot, knowledge))
}

/// The diagnosis with all its texts.
#[must_use]
pub fn written(mut diagnosis: Diagnosis) -> Diagnosis {
    for term in diagnosis.cells.iter_mut().flat_map(|cell| &mut cell.ceiling.terms) {
        if let Some(basis) = &term.basis {
            term.why = ceiling::why(basis);
        }
    }
    for finding in &mut diagnosis.findings {
        finding.causes.iter_mut().for_each(cause::write);
        for difference in &mut finding.benign {
            cause::benign(difference).clone_into(&mut difference.why);
        }
        finding::add_figures_of_replica(finding);
        finding.decide = finding::next_test(finding);
        finding.sentence = finding::sentence(finding);
    }
    diagnosis.advice.iter_mut().for_each(advice::write);
    diagnosis.headline = headline::of(&diagnosis);
    let blind = diagnosis.summary.unmeasured.iter().map(remark::unmeasured);
    let blind: Vec<Gap> = blind.filter(|gap| !diagnosis.blind.contains(gap)).collect();
    diagnosis.blind.extend(blind);
    diagnosis.notes = diagnosis.remarks.iter().map(remark::note).collect();
    diagnosis.refused = diagnosis.not_used.iter().map(remark::refused).collect();
    diagnosis
}

/// The effect of a change, from its arms in any order, with its sentence.
#[must_use]
pub fn effect(arms: &[Arm], response: Metric, seed: u64) -> EffectSize {
    let mut size = linerate_diagnose::trial::effect(arms, response, seed);
    size.sentence = trial::sentence(&size, response);
    size
}

#[cfg(test)]
mod tests {
    use linerate_model::advice::{Advice, Reason};
    use linerate_model::inventory::Layer;
    use linerate_model::remark::Summary;

    use super::*;

    #[test]
    fn what_an_older_version_stored_keeps_its_texts() {
        let old = r#"{"schema":1,"run":"r","headline":"h","cells":[],"notes":["n"],"refused":["r"],
            "findings":[{"sentence":"s","places":[{"suspect":"all","direction":"both","probability":0.9}],"layer":"any",
            "responses":["setting"],"expected":1.0,"measured":1.0,"unit":"share","probability":0.9,"causes":[],
            "decide":"d"}],
            "advice":[{"advised":"leave","about":"retransmits","sentence":"a"}]}"#;
        let old: Diagnosis = serde_json::from_str(old).unwrap();
        let finding = &old.findings[0];
        assert_eq!((old.headline.as_str(), finding.sentence.as_str()), ("h", "s"));
        assert_eq!((finding.decide.as_deref(), location(finding).as_str()), (Some("d"), "most hosts"));
        assert_eq!((&old.notes[..], &old.refused[..]), (&["n".to_owned()][..], &["r".to_owned()][..]));
        assert_eq!(old.advice[0].sentence, "a");
    }

    #[test]
    fn what_is_written_twice_stays_as_it_is() {
        let summary = Summary { unmeasured: vec![(Layer::Overlay, 7, 12)], ..Summary::default() };
        let reason = Reason::Drops { host: "a".to_owned(), per_test: 40.0, others: 0 };
        let advice = r#"[{"advised":"leave","about":"drop counters","sentence":""}]"#;
        let mut advice: Vec<Advice> = serde_json::from_str(advice).unwrap();
        advice[0].reason = Some(reason);
        let once = written(Diagnosis { summary, advice, ..Diagnosis::default() });
        assert_eq!(once.blind[0].what.to_string(), "the throughput of 7 of 12 pairs (overlay)");
        assert!(once.advice[0].references[0].starts_with("Red Hat"), "{:?}", once.advice);
        assert_eq!(written(once.clone()), once);
    }
}
