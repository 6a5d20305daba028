//! Sensitivity of the verdicts to the numbers of the reasoning: those that change when one number is halved
//! or doubled.
//!
//! In: the recorded cases, and kept runs where there are some. Out: a page of Markdown, one row for each
//! number. It judges no verdict: a changed one may be better.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use linerate_cases as case;
use linerate_diagnose::diagnose_with;
use linerate_diagnose::rules::{Rule, Rules};
use linerate_knowledge::Knowledge;
use linerate_lab::error::{LabError, Result};
use linerate_model::finding::{Diagnosis, Direction, Suspect};
use linerate_model::snapshot::Snapshot;

use crate::keep;

/// What a reader acts on: of each finding the first location and the first cause.
type Verdict = Vec<(Option<(Suspect, Direction)>, Option<String>)>;

fn verdict(diagnosis: &Diagnosis) -> Verdict {
    let finding = |f: &linerate_model::finding::Finding| {
        let location = f.places.first().map(|p| (p.suspect.clone(), p.direction));
        (location, f.causes.first().map(|c| c.id.clone()))
    };
    diagnosis.findings.iter().map(finding).collect()
}

/// How many verdicts change: with another number of findings, else another location, else another cause.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Effect {
    findings: usize,
    locations: usize,
    causes: usize,
    crashes: usize,
}

impl Effect {
    fn add(&mut self, before: &Verdict, after: Option<&Verdict>) {
        let Some(after) = after else {
            self.crashes += 1;
            return;
        };
        let location = |v: &Verdict| v.iter().map(|(location, _)| location.clone()).collect::<Vec<_>>();
        if before.len() != after.len() {
            self.findings += 1;
        } else if location(before) != location(after) {
            self.locations += 1;
        } else if before != after {
            self.causes += 1;
        }
    }

    fn text(self) -> String {
        let kinds = [(self.findings, "f"), (self.locations, "l"), (self.causes, "c"), (self.crashes, "!")];
        let shown: Vec<String> =
            kinds.iter().filter(|(n, _)| *n > 0).map(|(n, kind)| format!("{n} {kind}")).collect();
        if shown.is_empty() { "0".to_owned() } else { shown.join(", ") }
    }
}

/// The evidence with the verdicts by the numbers in force.
struct Evidence {
    snapshots: Vec<Snapshot>,
    verdicts: Vec<Verdict>,
    knowledge: Knowledge,
}

impl Evidence {
    fn read(kept: &[PathBuf]) -> Result<(Self, usize)> {
        let unknown = |error: &dyn std::fmt::Display| LabError::Unknown(error.to_string());
        let knowledge = Knowledge::builtin().map_err(|error| unknown(&error))?;
        let cases = case::builtin().map_err(|error| unknown(&error))?;
        let mut snapshots: Vec<Snapshot> = cases.into_iter().map(|(_, case)| case.snapshot).collect();
        let count = snapshots.len();
        keep::each(kept, &mut |_, snapshot| {
            snapshots.extend(snapshot);
            Ok(())
        })?;
        let by = |snapshot| verdict(&diagnose_with(snapshot, &knowledge, &Rules::DEFAULT));
        let verdicts = snapshots.iter().map(by).collect();
        Ok((Self { snapshots, verdicts, knowledge }, count))
    }

    fn effect(&self, rules: &Rules) -> Effect {
        let mut effect = Effect::default();
        for (snapshot, before) in self.snapshots.iter().zip(&self.verdicts) {
            let again = || verdict(&diagnose_with(snapshot, &self.knowledge, rules));
            effect.add(before, catch_unwind(AssertUnwindSafe(again)).ok().as_ref());
        }
        effect
    }
}

/// The page. `kept`: folders of runs as `run --keep` writes them.
///
/// # Errors
/// A kept run that cannot be read.
pub fn page(kept: &[PathBuf], progress: &mut dyn FnMut(&str)) -> Result<String> {
    let (evidence, cases) = Evidence::read(kept)?;
    let runs = evidence.snapshots.len() - cases;
    let list = Rules::DEFAULT.list();
    let (mut page, mut moving) = (String::new(), 0);
    for (stage, about) in Rules::STAGES {
        progress(stage);
        let _ = write!(
            page,
            "\n## {stage}\n\n{about}\n\n| number | value | unit | halved | doubled | meaning | source |\n\
             | --- | ---: | --- | --- | --- | --- | --- |\n"
        );
        for rule in list.iter().filter(|rule| rule.stage == *stage) {
            let [halved, doubled] = [0.5, 2.0].map(|by| varied(&evidence, rule, by));
            moving +=
                usize::from([&halved, &doubled].iter().any(|text| !["0", "="].contains(&text.as_str())));
            let Rule { name, value, unit, meaning, source, .. } = rule;
            let _ = writeln!(
                page,
                "| `{name}` | {value} | {unit} | {halved} | {doubled} | {meaning} | {source} |"
            );
        }
    }
    let numbers = list.len();
    Ok(format!(
        "<!-- Made by `cargo xtask rules`; do not edit. -->\n\n# Rules\n\n\
         Every number of the reasoning (`crates/diagnose/src/rules/`), and how many verdicts change when it is\n\
         halved and when it is doubled, of {cases} recorded cases and {runs} kept runs: `f` another number of\n\
         findings, else `l` another location of one, else `c` another first cause. `=`: rounding leaves it as it\n\
         is. A number without a source was chosen by its effect. {moving} of the {numbers} numbers change a\n\
         verdict; no evidence here holds the others where they are.\n{page}"
    ))
}

fn varied(evidence: &Evidence, rule: &Rule, by: f64) -> String {
    let rules = Rules::DEFAULT.scaled(rule, by);
    if rules == Rules::DEFAULT { "=".to_owned() } else { evidence.effect(&rules).text() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_decides_changes_verdicts_and_one_of_a_trial_does_not() {
        let (evidence, _) = Evidence::read(&[]).unwrap();
        assert_eq!(evidence.effect(&Rules::DEFAULT), Effect::default());
        let list = Rules::DEFAULT.list();
        let rule = |name: &str| list.iter().find(|rule| rule.name == name).unwrap();
        assert_ne!(varied(&evidence, rule("bad_share"), 2.0), "0");
        assert_eq!(varied(&evidence, rule("arm_min"), 2.0), "0");
        assert_eq!(varied(&evidence, rule("suspected"), 2.0), "=");
    }
}
