//! Whether probabilities are calibrated: of the statements with 80 to 90 %, are 80 to 90 % right?
//!
//! In: records of statements and the truth. Out: a table with counts and intervals, the same as data, and the
//! points of a picture. It leaves no finding out.

use std::fmt::Write as _;

use serde::Serialize;

use crate::record::{ClaimedFinding, JudgedRun};

/// What a probability was given for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimSubject {
    /// That something is wrong at one of the locations of a finding.
    Finding,
    /// That it is the first of the locations, if something is wrong there.
    #[serde(rename = "place")]
    Location,
    /// That it is the first of the causes, if the location is right.
    Cause,
    /// All of it: the product of the three.
    Verdict,
}

impl ClaimSubject {
    /// All, in the order of the table.
    pub const ALL: [Self; 4] = [Self::Finding, Self::Location, Self::Cause, Self::Verdict];

    /// For tables.
    pub fn words(self) -> &'static str {
        match self {
            Self::Finding => "something is wrong there",
            Self::Location => "the location, if so",
            Self::Cause => "the cause, if the location is right",
            Self::Verdict => "the whole verdict",
        }
    }
}

/// One statement with its probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbabilityClaim {
    /// What about.
    pub about: ClaimSubject,
    /// Its reported probability.
    pub probability: f64,
    /// Whether it was true.
    pub right: bool,
}

/// Lower ends of the rows; the last row ends at 1.
pub const EDGES: [f64; 6] = [0.0, 0.5, 0.6, 0.7, 0.8, 0.9];

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bin {
    /// What about.
    pub about: ClaimSubject,
    /// From this probability.
    pub from: f64,
    /// To this.
    pub to: f64,
    /// Statements.
    pub count: usize,
    /// Of these: true.
    pub right: usize,
    /// Mean reported probability.
    #[serde(rename = "said")]
    pub mean_probability: f64,
    /// 95 % interval of the share that is true.
    pub interval: (f64, f64),
}

/// Every statement of the records.
pub fn claims(records: &[JudgedRun]) -> Vec<ProbabilityClaim> {
    let mut claims = Vec::new();
    for record in records {
        for finding in &record.findings {
            of_finding(record, finding, &mut claims);
        }
    }
    claims
}

fn of_finding(record: &JudgedRun, finding: &ClaimedFinding, claims: &mut Vec<ProbabilityClaim>) {
    let broken = &record.run.broken;
    let real = broken.iter().any(|b| finding.among(&b.truth));
    let location = finding.locations.first().map_or(0.0, |p| p.probability);
    let cause = finding.causes.first();
    let cause_p = cause.map_or(0.0, |c| c.probability);
    let here = broken.iter().filter(|b| finding.at(&b.truth));
    let is_cause = here.clone().any(|b| cause.is_some_and(|c| b.is_cause(&c.id)));
    let at = here.count() > 0;
    claims.push(ProbabilityClaim {
        about: ClaimSubject::Finding,
        probability: finding.probability,
        right: real,
    });
    if real {
        claims.push(ProbabilityClaim { about: ClaimSubject::Location, probability: location, right: at });
    }
    if at && cause.is_some() {
        claims.push(ProbabilityClaim { about: ClaimSubject::Cause, probability: cause_p, right: is_cause });
    }
    claims.push(ProbabilityClaim {
        about: ClaimSubject::Verdict,
        probability: finding.probability * location * cause_p,
        right: is_cause,
    });
}

/// The rows that have statements.
pub fn bins(claims: &[ProbabilityClaim]) -> Vec<Bin> {
    let mut bins = Vec::new();
    for about in ClaimSubject::ALL {
        for (i, from) in EDGES.iter().enumerate() {
            let to = EDGES.get(i + 1).copied().unwrap_or(1.0);
            let inside = |c: &&ProbabilityClaim| {
                c.about == about && c.probability >= *from && (c.probability < to || i + 1 == EDGES.len())
            };
            let mine: Vec<&ProbabilityClaim> = claims.iter().filter(inside).collect();
            let right = mine.iter().filter(|c| c.right).count();
            if !mine.is_empty() {
                bins.push(Bin {
                    about,
                    from: *from,
                    to,
                    count: mine.len(),
                    right,
                    mean_probability: mine.iter().map(|c| c.probability).sum::<f64>() / mine.len() as f64,
                    interval: wilson(right, mine.len()),
                });
            }
        }
    }
    bins
}

/// The interval of a share that `right` of `count` stand for, at 95 % (Wilson 1927).
pub fn wilson(right: usize, count: usize) -> (f64, f64) {
    /// Quantile of the normal distribution.
    const Z: f64 = 1.96;
    if count == 0 {
        return (0.0, 1.0);
    }
    let (n, share) = (count as f64, right as f64 / count as f64);
    let bottom = 1.0 + Z * Z / n;
    let middle = (share + Z * Z / (2.0 * n)) / bottom;
    let half = Z / bottom * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// The table as Markdown; empty without statements.
pub fn table(claims: &[ProbabilityClaim]) -> String {
    let bins = bins(claims);
    if bins.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "| probability of | reported | statements | mean reported | right | 95 % interval |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for bin in bins {
        let _ = writeln!(
            text,
            "| {} | {:.0} to {:.0} % | {} | {:.0} % | {:.0} % | {:.0} to {:.0} % |",
            bin.about.words(),
            100.0 * bin.from,
            100.0 * bin.to,
            bin.count,
            100.0 * bin.mean_probability,
            100.0 * bin.right as f64 / bin.count as f64,
            100.0 * bin.interval.0,
            100.0 * bin.interval.1
        );
    }
    for about in ClaimSubject::ALL {
        if let Some((brier, off, count)) = summary(claims, about) {
            let _ = write!(
                text,
                "\n{}: {count} statements, reported and true differ by {:.1} % on average, Brier score {brier:.3}.",
                about.words(),
                100.0 * off
            );
        }
    }
    text + "\n"
}

/// Brier score, and the mean distance of reported and true over the rows of the table, weighted with their
/// statements.
fn summary(claims: &[ProbabilityClaim], about: ClaimSubject) -> Option<(f64, f64, usize)> {
    let mine: Vec<ProbabilityClaim> = claims.iter().filter(|c| c.about == about).copied().collect();
    let count = mine.len();
    let truth = |c: &ProbabilityClaim| f64::from(u8::from(c.right));
    let brier = mine.iter().map(|c| (c.probability - truth(c)).powi(2)).sum::<f64>() / count as f64;
    let away = |b: &Bin| (b.mean_probability * b.count as f64 - b.right as f64).abs();
    let off = bins(&mine).iter().map(away).sum::<f64>() / count as f64;
    (count > 0).then_some((brier, off, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_wilson() {
        // Worked example: 8 of 10 give 0.490 to 0.943.
        let (low, high) = wilson(8, 10);
        assert!((low - 0.490).abs() < 0.002 && (high - 0.943).abs() < 0.002, "{low} {high}");
        assert_eq!(wilson(0, 0), (0.0, 1.0));
        let (low, high) = wilson(20, 20);
        assert!(low > 0.8 && high <= 1.0);
    }

    #[test]
    fn statements_fall_into_rows_by_probability() {
        let claim = |probability, right| ProbabilityClaim { about: ClaimSubject::Cause, probability, right };
        let all =
            [claim(0.85, true), claim(0.85, false), claim(1.0, true), claim(0.5, true), claim(0.1, false)];
        let bins = bins(&all);
        let found: Vec<(f64, usize, usize)> = bins.iter().map(|b| (b.from, b.count, b.right)).collect();
        assert_eq!(found, [(0.0, 1, 0), (0.5, 1, 1), (0.8, 2, 1), (0.9, 1, 1)]);
        let text = table(&all);
        assert!(
            text.contains("| the cause, if the location is right | 80 to 90 % | 2 | 85 % | 50 % |"),
            "{text}"
        );
        assert!(table(&[]).is_empty());
    }
}
