//! One judged run: what was broken, what was said, whether that was right.
//!
//! In: the truth and a diagnosis. Out: a record that is one line of JSON. It never forgives: an error is a wrong verdict.

use std::path::Path;

use linerate_model::finding::{Diagnosis, Direction, Element, Finding};
use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
use crate::faults::Truth;
use crate::lab::Injected;

/// How many causes may be named until the right one.
const TOP: usize = 3;

/// What a finding said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// The first place.
    pub element: Option<Element>,
    /// Its direction.
    pub direction: Option<Direction>,
    /// Causes, most probable first.
    pub causes: Vec<String>,
    /// The verdict in words.
    pub sentence: String,
}

/// One judged run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Number in the plan.
    pub index: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Lab.
    pub lab: String,
    /// What was broken; nothing in a healthy run.
    pub fault: Option<String>,
    /// Where.
    pub place: String,
    /// What a verdict had to say.
    pub truth: Option<Truth>,
    /// The first finding names the right element and direction.
    pub exact: bool,
    /// Its first cause is the right one.
    pub top1: bool,
    /// One of its first three causes is.
    pub top3: bool,
    /// Findings about something that was not broken; in a healthy run every finding.
    pub false_alarms: usize,
    /// What was said, worst first.
    pub said: Vec<Said>,
    /// Duration of the survey.
    pub seconds: f64,
    /// Why there is no verdict.
    pub error: Option<String>,
}

impl Record {
    /// Compares a verdict with the truth.
    pub fn new(
        index: usize,
        seed: u64,
        lab: &str,
        injected: Option<&Injected>,
        verdict: std::result::Result<Diagnosis, String>,
        seconds: f64,
    ) -> Self {
        let (findings, error) = match verdict {
            Ok(diagnosis) => (diagnosis.findings, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let truth = injected.map(|i| i.truth.clone());
        let score = truth.as_ref().map(|t| Score::of(t, &findings)).unwrap_or_default();
        let wrong = |f: &&Finding| truth.as_ref().is_none_or(|t| !f.places.iter().any(|p| accepts(t, p)));
        Self {
            index,
            seed,
            lab: lab.into(),
            fault: injected.map(|i| i.fault.name().into()),
            place: injected.map(|i| i.place.to_string()).unwrap_or_default(),
            exact: score.exact,
            top1: score.top1,
            top3: score.top3,
            false_alarms: findings.iter().filter(wrong).count(),
            said: findings.iter().map(said).collect(),
            truth,
            seconds,
            error,
        }
    }

    /// Whether nothing about the verdict was wrong.
    pub fn right(&self) -> bool {
        let verdict = if self.fault.is_some() { self.exact && self.top1 } else { self.said.is_empty() };
        verdict && self.error.is_none() && self.false_alarms == 0
    }

    /// One line for the person who waits.
    pub fn line(&self) -> String {
        let what = match &self.fault {
            Some(fault) => format!("{fault} at {}", self.place),
            None => "healthy".into(),
        };
        let mark = |right: bool, name: &'static str| if right { name } else { "-" };
        let verdict = match (&self.error, &self.fault) {
            (Some(error), _) => format!("ERROR {}", error.lines().next().unwrap_or_default()),
            (None, Some(_)) => format!(
                "{:5} {:5} {:5}",
                mark(self.exact, "exact"),
                mark(self.top1, "top-1"),
                mark(self.top3, "top-3")
            ),
            (None, None) => format!("{:17}", mark(self.said.is_empty(), "quiet")),
        };
        let alarms =
            if self.false_alarms > 0 { format!("  {} false", self.false_alarms) } else { String::new() };
        let heard = if self.right() { String::new() } else { format!("  said: {}", self.heard()) };
        format!("{:10} {what:34} {verdict} {:5.1} s{alarms}{heard}", self.lab, self.seconds)
    }

    fn heard(&self) -> String {
        let one = |s: &Said| {
            let place = s.element.as_ref().map_or("nowhere".into(), |e| format!("{e:?}"));
            format!(
                "{place} {:?} {}",
                s.direction.unwrap_or_default(),
                s.causes.first().map_or("no cause", |c| c)
            )
        };
        if self.said.is_empty() {
            return "nothing".into();
        }
        self.said.iter().take(TOP).map(one).collect::<Vec<_>>().join("; ")
    }
}

#[derive(Default)]
struct Score {
    exact: bool,
    top1: bool,
    top3: bool,
}

impl Score {
    /// Only the first finding counts: what an operator reads first has to be right.
    fn of(truth: &Truth, findings: &[Finding]) -> Self {
        let Some(first) = findings.first() else { return Self::default() };
        let rank = first.causes.iter().position(|c| c.id == truth.cause);
        Self {
            exact: first.places.first().is_some_and(|p| accepts(truth, p)),
            top1: rank == Some(0),
            top3: rank.is_some_and(|r| r < TOP),
        }
    }
}

fn accepts(truth: &Truth, place: &linerate_model::finding::Place) -> bool {
    truth.accepts(&place.element, place.direction)
}

fn said(finding: &Finding) -> Said {
    let place = finding.places.first();
    Said {
        element: place.map(|p| p.element.clone()),
        direction: place.map(|p| p.direction),
        causes: finding.causes.iter().map(|c| c.id.clone()).collect(),
        sentence: finding.sentence.clone(),
    }
}

/// Reads the records of an earlier judgement; a line torn by a kill is skipped, and its run repeated.
pub fn load(path: &Path) -> Result<Vec<Record>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(LabError::at(format!("reading {}", path.display()))(error)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A record of a run in which everything was as these say.
    pub(crate) fn record(fault: Option<&str>, exact: bool, top1: bool, false_alarms: usize) -> Record {
        Record {
            index: 0,
            seed: 0,
            lab: "three".into(),
            fault: fault.map(Into::into),
            place: "node-1".into(),
            truth: None,
            exact,
            top1,
            top3: exact,
            false_alarms,
            said: Vec::new(),
            seconds: 10.0,
            error: None,
        }
    }

    #[test]
    fn only_the_first_finding_scores_and_others_are_false_alarms() {
        let finding = |host: &str, cause: &str| -> Finding {
            serde_json::from_value(serde_json::json!({
                "sentence": "s", "layer": "any", "responses": [], "expected": 1.0, "measured": 0.5, "unit": "share",
                "probability": 0.9, "places": [{"element": {"host": host}, "direction": "rx", "probability": 0.9}],
                "causes": [{"id": cause, "title": "", "probability": 1.0, "mechanism": "", "evidence": []}],
            }))
            .unwrap()
        };
        let truth =
            Truth { cause: "c".into(), accepted: vec![(Element::Host("a".into()), vec![Direction::Rx])] };
        let right = Score::of(&truth, &[finding("a", "c"), finding("b", "x")]);
        assert!(right.exact && right.top1 && right.top3);
        let wrong = Score::of(&truth, &[finding("b", "x"), finding("a", "c")]);
        assert!(!wrong.exact && !wrong.top1 && !wrong.top3);
        let diagnosis = Diagnosis { findings: vec![finding("a", "c")], ..Diagnosis::default() };
        let healthy = Record::new(0, 0, "three", None, Ok(diagnosis), 1.0);
        assert_eq!((healthy.false_alarms, healthy.right()), (1, false));
        assert!(!Record::new(0, 0, "three", None, Err("crashed".into()), 1.0).right());
    }
}
