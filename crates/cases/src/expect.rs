//! What a case expects of the diagnosis, and where the two differ.

use linerate_model::finding::{Diagnosis, Finding};
use serde::Deserialize;

/// Expectations; what is not given is not checked.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Texts that the headline contains.
    #[serde(default)]
    pub headline: Vec<String>,
    /// Number of findings at most.
    #[serde(default)]
    pub findings_max: Option<usize>,
    /// Texts that one of the notes contains.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Texts that one of the refused pieces of evidence contains.
    #[serde(default)]
    pub refused: Vec<String>,
    /// Texts that one of the pieces of advice contains.
    #[serde(default)]
    pub advice: Vec<String>,
    /// All cells with a ceiling lie between these shares of it.
    #[serde(default)]
    pub shares: Option<(f64, f64)>,
    /// Findings in their order.
    #[serde(default)]
    pub finding: Vec<ExpectFinding>,
}

/// Expectations of one finding.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectFinding {
    /// Text that the first place contains, such as `group vs-4, what it receives`.
    #[serde(default)]
    pub place: Option<String>,
    /// Texts that other places contain.
    #[serde(default)]
    pub or_place: Vec<String>,
    /// Least probability of the first place.
    #[serde(default)]
    pub place_at_least: Option<f64>,
    /// Causes in their order.
    #[serde(default)]
    pub causes: Vec<String>,
    /// Causes that must not be the first.
    #[serde(default)]
    pub not_first: Vec<String>,
    /// Number of affected ordered pairs.
    #[serde(default)]
    pub affected: Option<usize>,
    /// Keys that must be listed as benign.
    #[serde(default)]
    pub benign: Vec<String>,
    /// Texts in the measurement that would decide.
    #[serde(default)]
    pub decide: Vec<String>,
    /// Texts in the instruction of the first remedy.
    #[serde(default)]
    pub remedy: Vec<String>,
    /// Texts in the sentence.
    #[serde(default)]
    pub sentence: Vec<String>,
    /// Expected and measured value of the finding, within 5 %, in the unit of the finding.
    #[serde(default)]
    pub values: Option<(f64, f64)>,
}

/// The differences.
pub(super) fn check(expect: &Expect, diagnosis: &Diagnosis) -> Vec<String> {
    let mut wrong = Vec::new();
    missing(&mut wrong, "headline", &expect.headline, std::slice::from_ref(&diagnosis.headline));
    missing(&mut wrong, "notes", &expect.notes, &diagnosis.notes);
    missing(&mut wrong, "refused", &expect.refused, &diagnosis.refused);
    let advice: Vec<String> = diagnosis.advice.iter().map(|a| a.sentence.clone()).collect();
    missing(&mut wrong, "advice", &expect.advice, &advice);
    if expect.findings_max.is_some_and(|max| diagnosis.findings.len() > max) {
        let said: Vec<&str> = diagnosis.findings.iter().map(|f| f.sentence.as_str()).collect();
        wrong.push(format!("{} findings: {}", said.len(), said.join(" | ")));
    }
    if let Some((low, high)) = expect.shares {
        for cell in diagnosis.cells.iter().filter(|c| c.share.is_some_and(|s| s < low || s > high)) {
            wrong.push(format!(
                "{} to {}: share {:?} outside {low} to {high}",
                cell.from, cell.to, cell.share
            ));
        }
    }
    for (number, wanted) in expect.finding.iter().enumerate() {
        match diagnosis.findings.get(number) {
            Some(finding) => check_finding(&mut wrong, number + 1, wanted, finding),
            None => wrong.push(format!("finding {} is missing", number + 1)),
        }
    }
    wrong
}

fn missing(wrong: &mut Vec<String>, what: &str, wanted: &[String], texts: &[String]) {
    for text in wanted.iter().filter(|w| !texts.iter().any(|t| t.contains(w.as_str()))) {
        wrong.push(format!("{what}: `{text}` is missing in: {}", texts.join(" | ")));
    }
}

fn check_finding(wrong: &mut Vec<String>, number: usize, wanted: &ExpectFinding, finding: &Finding) {
    let places: Vec<String> = finding.places.iter().map(|p| p.suspect.label(p.direction)).collect();
    let ids: Vec<String> = finding.causes.iter().map(|c| c.id.clone()).collect();
    let mut say = |text: String| wrong.push(format!("finding {number}: {text}"));
    if let Some(place) = &wanted.place
        && !places.first().is_some_and(|p| p.contains(place.as_str()))
    {
        say(format!("place `{place}` expected, found {places:?}"));
    }
    for other in wanted.or_place.iter().filter(|o| !places.iter().skip(1).any(|p| p.contains(o.as_str()))) {
        say(format!("alternative place `{other}` is missing in {places:?}"));
    }
    let sure = finding.places.first().map_or(0.0, |p| p.probability);
    if wanted.place_at_least.is_some_and(|p| sure < p) {
        say(format!("place with probability {sure:.2} only"));
    }
    if !ids.starts_with(&wanted.causes) {
        say(format!("causes {:?} expected, found {ids:?}", wanted.causes));
    }
    if let Some(id) = ids.first().filter(|id| wanted.not_first.contains(id)) {
        say(format!("{id} must not be first"));
    }
    if wanted.affected.is_some_and(|n| n != finding.affected.len()) {
        say(format!("{} affected pairs: {:?}", finding.affected.len(), finding.affected));
    }
    for key in wanted.benign.iter().filter(|k| !finding.benign.iter().any(|i| i.key == **k)) {
        say(format!("{key} is not listed as benign"));
    }
    if let Some((expected, measured)) = wanted.values {
        let near = |a: f64, b: f64| (a - b).abs() <= 0.05 * b.abs();
        if !near(finding.expected, expected) || !near(finding.measured, measured) {
            say(format!("values {} and {}", finding.expected, finding.measured));
        }
    }
    let remedy = finding
        .causes
        .first()
        .and_then(|c| c.remedy.as_ref())
        .map_or(String::new(), |r| r.instruction.clone());
    let mut texts = Vec::new();
    missing(&mut texts, "decide", &wanted.decide, &[finding.decide.clone().unwrap_or_default()]);
    missing(&mut texts, "remedy", &wanted.remedy, &[remedy]);
    missing(&mut texts, "sentence", &wanted.sentence, std::slice::from_ref(&finding.sentence));
    texts.into_iter().for_each(say);
}
