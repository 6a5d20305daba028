//! One judged run: the fault, the findings, whether they were right.
//!
//! In: the truth and a diagnosis. Out: a record that is one line of JSON. It never forgives: an error is a
//! wrong verdict.

use std::path::Path;

use linerate_lab::error::{LabError, Result};
use linerate_lab::faults::fault::Truth;
use linerate_model::finding::{Diagnosis, Finding, LossLocation};
use linerate_model::inventory::Inventory;
use serde::{Deserialize, Serialize};

use crate::guess::{Guess, guesses};

/// How many causes may be named until the right one.
const TOP: usize = 3;

/// Sorts of runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunCategory {
    /// One fault.
    #[default]
    One,
    /// One fault, and benign differences on the same hosts.
    Beside,
    /// Two faults on different machines.
    Two,
    /// Three of them.
    Three,
    /// One fault, present for seconds and absent for seconds.
    #[serde(rename = "comes-and-goes")]
    Intermittent,
    /// One fault that was drawn from the grammar.
    Drawn,
    /// Something harmless that was drawn from it.
    DrawnHarmless,
    /// Nothing is broken.
    Healthy,
    /// Nothing is broken, and one host has benign differences.
    HealthyBeside,
}

impl RunCategory {
    /// For tables.
    pub fn words(self) -> &'static str {
        match self {
            Self::One => "one fault",
            Self::Beside => "one fault, harmless differences on the same host",
            Self::Two => "two faults at once",
            Self::Three => "three faults at once",
            Self::Intermittent => "an intermittent fault",
            Self::Drawn => "a fault drawn from the grammar",
            Self::DrawnHarmless => "something harmless drawn from the grammar",
            Self::Healthy => "healthy",
            Self::HealthyBeside => "healthy, harmless differences on one host",
        }
    }
}

/// Something that was broken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Broken {
    /// Name of the fault.
    pub fault: String,
    /// Where.
    #[serde(rename = "place")]
    pub target: String,
    /// The correct verdict.
    pub truth: Truth,
    /// Other causes that are right here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Beginnings of keys of facts that reveal it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signs: Vec<String>,
}

impl Broken {
    /// Whether this is its cause, or another name for it.
    pub fn is_cause(&self, id: &str) -> bool {
        self.truth.cause == id || self.also.iter().any(|also| also == id)
    }
}

/// A run and the truth about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LabeledRun {
    /// Number in the plan.
    pub index: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Lab.
    pub lab: String,
    /// Hosts in it.
    pub hosts: usize,
    /// What sort of run.
    pub case: RunCategory,
    /// What was broken; nothing in a healthy run.
    pub broken: Vec<Broken>,
    /// Benign differences.
    #[serde(default)]
    pub different: Vec<String>,
    /// What was drawn, where it harms nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harmless: Option<Broken>,
}

/// A cause as reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimedCause {
    /// Id.
    pub id: String,
    /// Its probability, if the location is right.
    pub probability: f64,
}

/// A finding as reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimedFinding {
    /// Probability that something is wrong there.
    pub probability: f64,
    /// Locations, most probable first.
    #[serde(rename = "places")]
    pub locations: Vec<LossLocation>,
    /// Causes, most probable first.
    pub causes: Vec<ClaimedCause>,
    /// The verdict in words.
    pub sentence: String,
    /// Keys of facts in which the suspect differs, and of those that speak for the causes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

impl ClaimedFinding {
    pub(crate) fn of(finding: &Finding) -> Self {
        let cause = |c: &linerate_model::finding::RankedCause| ClaimedCause {
            id: c.id.clone(),
            probability: c.probability,
        };
        Self {
            probability: finding.probability,
            locations: finding.places.clone(),
            causes: finding.causes.iter().map(cause).collect(),
            sentence: finding.sentence.clone(),
            differs: finding.benign.iter().map(|difference| difference.key.clone()).collect(),
        }
    }

    /// Whether the first location is the one of this truth.
    pub fn at(&self, truth: &Truth) -> bool {
        self.locations.first().is_some_and(|p| truth.accepts(&p.suspect, p.direction))
    }

    /// Whether one of the locations is.
    pub fn among(&self, truth: &Truth) -> bool {
        self.locations.iter().any(|p| truth.accepts(&p.suspect, p.direction))
    }

    /// How many causes come before the right one.
    fn rank(&self, broken: &Broken) -> Option<usize> {
        self.causes.iter().position(|c| broken.is_cause(&c.id))
    }
}

/// One judged run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedRun {
    /// What was done.
    #[serde(flatten)]
    pub run: LabeledRun,
    /// The first finding names the right suspect and direction. Of several faults: each is named so by one of
    /// the findings. Among two hosts: it is one of the locations that the evidence cannot separate.
    pub exact: bool,
    /// Its first cause is the right one.
    pub top1: bool,
    /// One of its first three causes is.
    pub top3: bool,
    /// Findings about something that was not broken; in a healthy run every finding.
    pub false_alarms: usize,
    /// Findings, worst first.
    #[serde(rename = "said")]
    pub findings: Vec<ClaimedFinding>,
    /// Guesses of other methods.
    #[serde(default)]
    pub guesses: Vec<Guess>,
    /// Duration of the survey.
    pub seconds: f64,
    /// Why there is no verdict.
    pub error: Option<String>,
}

impl JudgedRun {
    /// Compares a verdict with the truth. `inventory`: for the other methods.
    pub fn new(
        run: LabeledRun,
        verdict: std::result::Result<&Diagnosis, &str>,
        inventory: Option<&Inventory>,
        seconds: f64,
    ) -> Self {
        let (findings, error) = match verdict {
            Ok(diagnosis) => (diagnosis.findings.iter().map(ClaimedFinding::of).collect(), None),
            Err(error) => (Vec::new(), Some(error.to_owned())),
        };
        let guesses = match (verdict, inventory) {
            (Ok(diagnosis), Some(inventory)) => {
                let truths: Vec<&Truth> = run.broken.iter().map(|b| &b.truth).collect();
                guesses(inventory, diagnosis, &truths)
            }
            _ => Vec::new(),
        };
        let score = Score::of(&run, &findings);
        let wrong = |s: &&ClaimedFinding| !run.broken.iter().any(|b| s.among(&b.truth));
        Self {
            exact: score.exact,
            top1: score.top1,
            top3: score.top3,
            false_alarms: findings.iter().filter(wrong).count(),
            findings,
            guesses,
            seconds,
            error,
            run,
        }
    }

    /// Names of what was broken, joined; nothing for a healthy run.
    pub fn fault(&self) -> Option<String> {
        let names: Vec<&str> = self.run.broken.iter().map(|b| b.fault.as_str()).collect();
        (!names.is_empty()).then(|| names.join(" + "))
    }

    /// Whether nothing about the verdict was wrong.
    pub fn right(&self) -> bool {
        let verdict =
            if self.run.broken.is_empty() { self.findings.is_empty() } else { self.exact && self.top1 };
        verdict && self.error.is_none() && self.false_alarms == 0
    }

    /// One line of progress.
    pub fn line(&self) -> String {
        let broken: Vec<String> =
            self.run.broken.iter().map(|b| format!("{} at {}", b.fault, b.target)).collect();
        let what = match self.run.case {
            RunCategory::One | RunCategory::Two | RunCategory::Three | RunCategory::Drawn => {
                broken.join(" + ")
            }
            RunCategory::Beside => format!("{} (+ harmless)", broken.join(" + ")),
            RunCategory::Intermittent => format!("{} (intermittent)", broken.join(" + ")),
            RunCategory::DrawnHarmless => format!("harmless: {}", self.run.different.join(", ")),
            RunCategory::Healthy => "healthy".into(),
            RunCategory::HealthyBeside => "healthy (+ harmless)".into(),
        };
        let mark = |right: bool, name: &'static str| if right { name } else { "-" };
        let verdict = match &self.error {
            Some(error) => format!("ERROR {}", error.lines().next().unwrap_or_default()),
            None if self.run.broken.is_empty() => format!("{:17}", mark(self.findings.is_empty(), "quiet")),
            None => format!(
                "{:5} {:5} {:5}",
                mark(self.exact, "exact"),
                mark(self.top1, "top-1"),
                mark(self.top3, "top-3")
            ),
        };
        let alarms =
            if self.false_alarms > 0 { format!("  {} false", self.false_alarms) } else { String::new() };
        let reported = if self.right() { String::new() } else { format!("  found: {}", self.reported()) };
        format!("{:10} {what:34} {verdict} {:5.1} s{alarms}{reported}", self.run.lab, self.seconds)
    }

    fn reported(&self) -> String {
        let one = |s: &ClaimedFinding| {
            let location = s
                .locations
                .first()
                .map_or("nowhere".into(), |p| format!("{:?} {:?}", p.suspect, p.direction));
            format!("{location} {}", s.causes.first().map_or("no cause", |c| &c.id))
        };
        if self.findings.is_empty() {
            return "nothing".into();
        }
        self.findings.iter().take(TOP).map(one).collect::<Vec<_>>().join("; ")
    }
}

#[derive(Default)]
struct Score {
    exact: bool,
    top1: bool,
    top3: bool,
}

impl Score {
    /// Of one fault only the first finding counts: what an operator reads first has to be right. Of several,
    /// each needs a finding.
    fn of(run: &LabeledRun, findings: &[ClaimedFinding]) -> Self {
        let one = |finding: &ClaimedFinding, broken: &Broken| {
            let (rank, truth) = (finding.rank(broken), &broken.truth);
            // Between two hosts the evidence cannot separate sender, receiver and path: the truth has to be
            // among the locations.
            let exact = if run.hosts == 2 { finding.among(truth) } else { finding.at(truth) };
            Self { exact, top1: rank == Some(0), top3: rank.is_some_and(|r| r < TOP) }
        };
        match run.broken.as_slice() {
            [] => Self::default(),
            [broken] => findings.first().map(|s| one(s, broken)).unwrap_or_default(),
            several => {
                let mut all = Self { exact: true, top1: true, top3: true };
                for broken in several {
                    let scores = findings.iter().map(|s| one(s, broken)).filter(|s| s.exact);
                    let best = scores.max_by_key(|s| (s.top1, s.top3)).unwrap_or_default();
                    all.exact &= best.exact;
                    all.top1 &= best.top1;
                    all.top3 &= best.top3;
                }
                all
            }
        }
    }
}

/// Reads the records of an earlier judgement; a line torn by a kill is skipped, and its run repeated.
pub fn load(path: &Path) -> Result<Vec<JudgedRun>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(LabError::at(format!("reading {}", path.display()))(error)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use linerate_model::finding::{Direction, Suspect};

    use super::*;

    /// A record for tests of tables.
    pub(crate) fn record(fault: Option<&str>, exact: bool, top1: bool, false_alarms: usize) -> JudgedRun {
        let truth = Truth::at(Suspect::Host("a".into()), Direction::Rx, "c");
        let broken = fault.map(|fault| Broken {
            fault: fault.into(),
            target: "a".into(),
            truth,
            also: Vec::new(),
            signs: Vec::new(),
        });
        JudgedRun {
            run: LabeledRun {
                lab: "three".into(),
                hosts: 3,
                case: if fault.is_some() { RunCategory::One } else { RunCategory::Healthy },
                broken: broken.into_iter().collect(),
                ..LabeledRun::default()
            },
            exact,
            top1,
            top3: exact,
            false_alarms,
            findings: Vec::new(),
            guesses: Vec::new(),
            seconds: 10.0,
            error: None,
        }
    }

    fn finding(host: &str, cause: &str) -> Finding {
        serde_json::from_value(serde_json::json!({
            "sentence": "s", "layer": "any", "responses": [], "expected": 1.0, "measured": 0.5, "unit": "share",
            "probability": 0.9, "places": [{"suspect": {"host": host}, "direction": "rx", "probability": 0.9}],
            "causes": [{"id": cause, "title": "", "probability": 1.0, "mechanism": "", "evidence": []}],
        }))
        .unwrap()
    }

    fn judged(run: &LabeledRun, findings: Vec<Finding>) -> JudgedRun {
        JudgedRun::new(run.clone(), Ok(&Diagnosis { findings, ..Diagnosis::default() }), None, 1.0)
    }

    #[test]
    fn only_the_first_finding_scores_and_others_are_false_alarms() {
        let one = record(Some("f"), true, true, 0).run;
        let right = judged(&one, vec![finding("a", "c"), finding("b", "x")]);
        assert!(right.exact && right.top1 && right.top3);
        assert_eq!((right.false_alarms, right.right()), (1, false));
        let wrong = judged(&one, vec![finding("b", "x"), finding("a", "c")]);
        assert!(!wrong.exact && !wrong.top1 && !wrong.top3);
        let healthy = judged(&record(None, true, true, 0).run, vec![finding("a", "c")]);
        assert_eq!((healthy.false_alarms, healthy.right()), (1, false));
        assert!(!JudgedRun::new(healthy.run, Err("crashed"), None, 1.0).right());
    }

    #[test]
    fn of_two_faults_both_have_to_be_found_in_any_order() {
        let mut run = record(Some("f"), true, true, 0).run;
        let truth = Truth::at(Suspect::Host("b".into()), Direction::Rx, "d");
        run.broken.push(Broken {
            fault: "g".into(),
            target: "b".into(),
            truth,
            also: Vec::new(),
            signs: Vec::new(),
        });
        let both = judged(&run, vec![finding("b", "d"), finding("a", "c")]);
        assert!(both.right() && both.fault().as_deref() == Some("f + g"));
        let half = judged(&run, vec![finding("b", "d")]);
        assert!(!half.exact && !half.top1);
        let mixed_up = judged(&run, vec![finding("b", "c"), finding("a", "d")]);
        assert!(mixed_up.exact && !mixed_up.top1);
    }

    #[test]
    fn between_two_hosts_the_right_one_has_to_be_among_what_is_offered() {
        let mut run = record(Some("f"), true, true, 0).run;
        let mut unsure = finding("b", "c");
        unsure.places.extend(finding("a", "c").places);
        assert!(!judged(&run, vec![unsure.clone()]).exact);
        run.hosts = 2;
        assert!(judged(&run, vec![unsure]).right());
        assert!(!judged(&run, vec![finding("b", "c")]).exact);
    }
}
