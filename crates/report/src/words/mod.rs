//! What a diagnosis says, in sentences: the one place in which its facts become words for people. A diagnosis
//! comes in, the same with its texts goes out; `--json` and the store get these beside the facts.

mod advice;
mod cause;
mod ceiling;
mod diff;
mod finding;
mod headline;
mod remark;
mod trial;

pub use diff::{RunDifference, difference};
pub use finding::{location, loss};
pub(crate) use remark::step;

use linerate_knowledge::Knowledge;
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
        finding.decide = finding::next_test(finding);
        finding.sentence = finding::sentence(finding);
    }
    for advice in &mut diagnosis.advice {
        advice.sentence = advice::sentence(advice);
    }
    diagnosis.headline = headline::of(&diagnosis);
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
}
