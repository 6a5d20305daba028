//! Verdicts on faults whose cause no file knows: all evidence is judged once for each cause, without its
//! file.
//!
//! In: kept runs, and the recorded cases. Out: for each fault whether its location is still right, whether
//! another cause is claimed instead, and whether the fact that indicates it is named; and records with
//! which probabilities are fitted. It changes no evidence.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use linerate_cases::{self as case, ExpectFinding};
use linerate_diagnose::diagnose_with;
use linerate_diagnose::rules::Rules;
use linerate_knowledge::Knowledge;
use linerate_lab::error::{LabError, Result};
use linerate_model::finding::{Clue, Diagnosis, Finding, Metric, RankedCause, Suspect};
use linerate_model::snapshot::Snapshot;

use crate::keep::{self, Kept};
use crate::record::{Broken, ClaimedFinding, JudgedRun};

/// A cause with this probability is claimed.
const CLAIMED: f64 = 0.7;

/// Where the evidence comes from. Numbers are chosen by the runs of odd seeds; the others are held out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EvidenceSource {
    OddSeed,
    EvenSeed,
    Case,
}

impl EvidenceSource {
    const ALL: [Self; 3] = [Self::OddSeed, Self::EvenSeed, Self::Case];

    fn words(self) -> &'static str {
        match self {
            Self::OddSeed => "kept runs, odd seeds",
            Self::EvenSeed => "kept runs, even seeds",
            Self::Case => "recorded cases",
        }
    }
}

/// One fault that was judged without the file of its cause.
#[derive(Debug, Clone)]
pub struct LeftOutFault {
    source: EvidenceSource,
    name: String,
    /// Whether the location is right with all files, and without this one.
    located: [bool; 2],
    /// The first finding in short.
    found: String,
    /// Another cause that is claimed instead.
    other: Option<(String, f64)>,
    /// Whether a fact that indicates the fault is named, where one does.
    named: Option<bool>,
    /// Whether a loss was measured: what only a setting shows cannot be found without its file.
    measured: bool,
    /// The verdict, to fit probabilities on; of kept runs.
    pub record: Option<JudgedRun>,
}

impl LeftOutFault {
    fn line(&self) -> Option<String> {
        let mut wrong = Vec::new();
        if self.measured && self.located == [true, false] {
            wrong.push("location lost".to_owned());
        }
        wrong.extend(self.other.as_ref().map(|(id, p)| format!("claims {id} with {:.0} %", 100.0 * p)));
        if self.named == Some(false) {
            wrong.push("difference not named".to_owned());
        }
        (!wrong.is_empty()).then(|| format!("{}: {}; found {}", self.name, wrong.join(", "), self.found))
    }
}

/// The cause that a finding claims, unless it is the right one or a difference that no file knows.
fn claimed(finding: &Finding, is_right: impl Fn(&str) -> bool) -> Option<(String, f64)> {
    let first = finding.causes.first()?;
    let counts = first.probability >= CLAIMED && !first.is_unknown_setting() && !is_right(&first.id);
    counts.then(|| (first.id.clone(), first.probability))
}

/// Keys of the facts that support the right cause of a measured loss between hosts, where they can differ:
/// not of all hosts at once, and not of storage, which has no peers.
fn indicating<'f>(
    findings: impl Iterator<Item = &'f Finding>,
    is_right: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    let measured = findings.filter(|f| !f.affected.is_empty() && f.responses != [Metric::Setting]);
    let here = measured.filter(|f| f.places.first().is_some_and(|p| p.suspect != Suspect::All));
    let right = here.filter_map(|f| f.causes.first()).filter(|c| is_right(&c.id));
    let read = right.flat_map(|cause| &cause.supports).filter_map(|clue| match clue {
        Clue::Read(hit) => Some(hit.key.clone()),
        _ => None,
    });
    read.collect()
}

/// Location and causes of the first finding.
fn short(findings: &[&Finding]) -> String {
    let Some(first) = findings.first() else { return "nothing".to_owned() };
    let at = first.places.first().map_or_else(String::new, |p| p.suspect.label(p.direction));
    let causes = first.causes.iter().map(|c| format!("{} {:.0} %", c.id, 100.0 * c.probability));
    format!("{at}: {}", causes.collect::<Vec<_>>().join(", "))
}

/// Whether findings name one of the facts, as a cause or as a difference.
fn names(findings: &[&Finding], keys: &BTreeSet<String>) -> bool {
    let unknown: BTreeSet<String> = keys.iter().map(|key| RankedCause::id_of_unknown(key)).collect();
    let is_named = |f: &&Finding| {
        f.benign.iter().any(|d| keys.contains(&d.key)) || f.causes.iter().any(|c| unknown.contains(&c.id))
    };
    findings.iter().any(is_named)
}

fn without(knowledge: &Knowledge, ids: impl IntoIterator<Item = String>) -> Knowledge {
    let mut rest = knowledge.clone();
    ids.into_iter().for_each(|id| rest.remove(&id));
    rest
}

/// A fault of a kept run. Of one fault only the first finding counts, as in [`JudgedRun`].
fn of_fault(
    kept: &Kept,
    fault: &Broken,
    snapshot: &Snapshot,
    knowledge: &Knowledge,
    rules: &Rules,
) -> LeftOutFault {
    let run = &kept.run;
    let rest = without(knowledge, std::iter::once(fault.truth.cause.clone()).chain(fault.also.clone()));
    let [full, left] = [knowledge, &rest].map(|k| diagnose_with(snapshot, k, rules));
    let is_at = |finding: &Finding, fault: &Broken| {
        let finding = ClaimedFinding::of(finding);
        if run.hosts == 2 { finding.among(&fault.truth) } else { finding.at(&fault.truth) }
    };
    let counted = if run.broken.len() == 1 { 1 } else { usize::MAX };
    let at = |diagnosis: &Diagnosis| diagnosis.findings.iter().take(counted).any(|f| is_at(f, fault));
    let is_of_another = |f: &Finding| run.broken.iter().any(|b| b != fault && is_at(f, b));
    let mine: Vec<&Finding> = left.findings.iter().filter(|f| !is_of_another(f)).collect();
    let keys = indicating(full.findings.iter().filter(|f| is_at(f, fault)), |id| fault.is_cause(id));
    let mut labeled = run.clone();
    labeled.broken = vec![Broken {
        also: keys.iter().map(|key| RankedCause::id_of_unknown(key)).collect(),
        ..fault.clone()
    }];
    let verdict = Diagnosis { findings: mine.iter().map(|f| (*f).clone()).collect(), ..left.clone() };
    LeftOutFault {
        source: if run.seed % 2 == 1 { EvidenceSource::OddSeed } else { EvidenceSource::EvenSeed },
        name: format!("run {} ({}), {} at {}", run.index, run.lab, fault.fault, fault.target),
        located: [at(&full), at(&left)],
        found: short(&mine),
        other: mine.iter().find_map(|f| claimed(f, |id| fault.is_cause(id))),
        named: (!keys.is_empty()).then(|| names(&mine, &keys)),
        measured: full.findings.iter().any(|f| is_at(f, fault) && !f.affected.is_empty()),
        record: Some(JudgedRun::new(labeled, Ok(&verdict), None, kept.seconds)),
    }
}

/// An expected finding of a case.
fn of_case(
    name: &str,
    snapshot: &Snapshot,
    expected: &[ExpectFinding],
    number: usize,
    knowledge: &Knowledge,
    rules: &Rules,
) -> Option<LeftOutFault> {
    let wanted = &expected[number];
    let id = wanted.causes.first().filter(|id| knowledge.get(id).is_some())?;
    let rest = without(knowledge, [id.clone()]);
    let [full, left] = [knowledge, &rest].map(|k| diagnose_with(snapshot, k, rules));
    let is_at = |f: &Finding| {
        let label = f.places.first().map(|p| p.suspect.label(p.direction));
        wanted.place.as_ref().is_none_or(|text| label.is_some_and(|l| l.contains(text.as_str())))
    };
    let others: Vec<&str> = (expected.iter().enumerate())
        .filter(|(at, _)| *at != number)
        .filter_map(|(_, e)| e.causes.first().map(String::as_str))
        .collect();
    let is_of_another = |f: &Finding| f.causes.first().is_some_and(|c| others.contains(&c.id.as_str()));
    let mine: Vec<&Finding> = left.findings.iter().filter(|f| !is_of_another(f)).collect();
    let keys = indicating(full.findings.iter(), |of| of == id);
    Some(LeftOutFault {
        source: EvidenceSource::Case,
        name: format!("case {name}, {id}"),
        located: [full.findings.iter().any(is_at), mine.iter().any(|f| is_at(f))],
        found: short(&mine),
        other: mine.iter().find_map(|f| claimed(f, |_| false)),
        named: (!keys.is_empty()).then(|| names(&mine, &keys)),
        measured: full.findings.iter().any(|f| is_at(f) && !f.affected.is_empty()),
        record: None,
    })
}

/// Every fault of the kept runs and of the recorded cases, without the file of its cause.
///
/// # Errors
/// A kept run that cannot be read.
pub fn all(kept: &[PathBuf], rules: &Rules) -> Result<Vec<LeftOutFault>> {
    let unknown = |error: &dyn std::fmt::Display| LabError::Unknown(error.to_string());
    let knowledge = Knowledge::builtin().map_err(|error| unknown(&error))?;
    let mut found = Vec::new();
    keep::each(kept, &mut |kept, snapshot| {
        let Some(snapshot) = snapshot else { return Ok(()) };
        let known = kept.run.broken.iter().filter(|b| knowledge.get(&b.truth.cause).is_some());
        found.extend(known.map(|fault| of_fault(&kept, fault, &snapshot, &knowledge, rules)));
        Ok(())
    })?;
    for (name, case) in case::builtin().map_err(|error| unknown(&error))? {
        let expected = &case.expect.finding;
        let of = |number| of_case(&name, &case.snapshot, expected, number, &knowledge, rules);
        found.extend((0..expected.len()).filter_map(of));
    }
    Ok(found)
}

/// The table as Markdown; what is wrong goes to `progress`, a line each.
pub fn table(found: &[LeftOutFault], progress: &mut dyn FnMut(&str)) -> String {
    found.iter().filter_map(LeftOutFault::line).for_each(|line| progress(&line));
    let mut text = format!(
        "| evidence without the file of its cause | faults | another cause with {:.0} % or more | with a measured loss, \
         located with all files | located without | indicated by a difference | and named |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        100.0 * CLAIMED
    );
    for source in EvidenceSource::ALL {
        let mine: Vec<&LeftOutFault> = found.iter().filter(|l| l.source == source).collect();
        let count = |test: &dyn Fn(&LeftOutFault) -> bool| mine.iter().filter(|l| test(l)).count();
        let (indicated, named) = (count(&|l| l.named.is_some()), count(&|l| l.named == Some(true)));
        if !mine.is_empty() {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {indicated} | {named} |",
                source.words(),
                mine.len(),
                count(&|l| l.other.is_some()),
                count(&|l| l.measured && l.located[0]),
                count(&|l| l.measured && l.located[1]),
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_with_a_cause_is_judged_without_it() {
        let found = all(&[], &Rules::DEFAULT).unwrap();
        let located = found.iter().filter(|l| l.located[0]).count();
        assert!(found.len() > 50 && located == found.len(), "{located} of {}", found.len());
        let text = table(&found, &mut |_| {});
        assert!(text.contains(&format!("| recorded cases | {} |", found.len())), "{text}");
        let claimed: Vec<&str> =
            found.iter().filter(|l| l.other.is_some()).map(|l| l.name.as_str()).collect();
        assert!(claimed.len() * 20 <= found.len(), "{claimed:?}");
        let (named, of) = (
            found.iter().filter(|l| l.named == Some(true)).count(),
            found.iter().filter(|l| l.named.is_some()).count(),
        );
        assert!(of > 20 && named * 5 >= of * 4, "{named} of {of}");
    }
}
