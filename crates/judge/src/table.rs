//! The tables of a judgement, ready for the README.
//!
//! In: records. Out: Markdown, the same as data, and whether the demands are met. It leaves no run out.

use std::collections::BTreeMap;
use std::fmt::Write;

use linerate_diagnose::stats::median;
use serde::Serialize;

use crate::record::{JudgedRun, RunCategory};
use crate::reliability::{self, Bin, wilson};
use crate::{compare, drawn};

const EXACT_MIN: f64 = 0.97;
const TOP1_MIN: f64 = 0.90;
const TOP3_MIN: f64 = 0.98;
const FALSE_ALARM_MAX: f64 = 0.01;
const BOTH_MIN: f64 = 0.90;

/// Counts of some runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CountsRow {
    /// Which runs.
    pub name: String,
    /// How many.
    pub runs: usize,
    /// Of these: the exact suspect.
    pub exact: usize,
    /// The right cause first.
    pub top1: usize,
    /// The right cause among three.
    pub top3: usize,
    /// With findings beside the true ones.
    pub extra: usize,
    /// Median duration of a survey.
    pub seconds: f64,
}

impl CountsRow {
    fn of<'r>(name: &str, records: impl Iterator<Item = &'r JudgedRun>) -> Self {
        let records: Vec<&JudgedRun> = records.collect();
        let count = |pick: fn(&JudgedRun) -> bool| records.iter().filter(|r| pick(r)).count();
        Self {
            name: name.to_owned(),
            runs: records.len(),
            exact: count(|r| r.exact),
            top1: count(|r| r.top1),
            top3: count(|r| r.top3),
            extra: count(|r| r.false_alarms > 0),
            seconds: median(&records.iter().map(|r| r.seconds).collect::<Vec<_>>()).unwrap_or(0.0),
        }
    }

    fn write(&self, text: &mut String) {
        let percent = |n: usize| 100.0 * n as f64 / self.runs.max(1) as f64;
        let _ = writeln!(
            text,
            "| {} | {} | {:.0} % | {:.0} % | {:.0} % | {} | {:.0} |",
            self.name,
            self.runs,
            percent(self.exact),
            percent(self.top1),
            percent(self.top3),
            self.extra,
            self.seconds
        );
    }

    fn reaches(&self, count: usize, least: f64) -> bool {
        self.runs == 0 || count as f64 / self.runs as f64 >= least
    }
}

/// All results of a judgement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tables {
    /// Runs with one fault, by fault.
    pub faults: Vec<CountsRow>,
    /// The same by lab.
    pub labs: Vec<CountsRow>,
    /// By sort of run, for all that have a fault.
    pub cases: Vec<CountsRow>,
    /// All runs with one steady fault.
    pub all: CountsRow,
    /// Healthy runs by lab; `exact` counts the quiet ones.
    pub healthy: Vec<CountsRow>,
    /// Faults drawn from the grammar.
    pub drawn: Option<drawn::DrawnRow>,
    /// Reliability of the probabilities.
    pub reliability: Vec<Bin>,
    /// Other methods on the same runs.
    pub methods: Vec<compare::ComparisonRow>,
    /// Whether all demands are met.
    pub met: bool,
}

/// Counts.
pub fn tables(records: &[JudgedRun]) -> Tables {
    let steady = |r: &&JudgedRun| matches!(r.run.case, RunCategory::One | RunCategory::Beside);
    let by = |name: &dyn Fn(&JudgedRun) -> String, wanted: &dyn Fn(&&JudgedRun) -> bool| -> Vec<CountsRow> {
        let mut groups: BTreeMap<String, Vec<&JudgedRun>> = BTreeMap::new();
        for record in records.iter().filter(|r| wanted(r)) {
            groups.entry(name(record)).or_default().push(record);
        }
        groups.into_iter().map(|(name, list)| CountsRow::of(&name, list.into_iter())).collect()
    };
    let lab = |r: &JudgedRun| format!("{} ({} hosts)", r.run.lab, r.run.hosts);
    let is_healthy = |r: &&JudgedRun| {
        r.run.broken.is_empty() && matches!(r.run.case, RunCategory::Healthy | RunCategory::HealthyBeside)
    };
    let mut healthy = by(&lab, &is_healthy);
    for row in &mut healthy {
        // A run without a verdict is no proof of quiet.
        row.exact = records.iter().filter(|r| is_healthy(r) && lab(r) == row.name && r.right()).count();
    }
    let cases: Vec<CountsRow> = [
        RunCategory::One,
        RunCategory::Beside,
        RunCategory::Two,
        RunCategory::Three,
        RunCategory::Intermittent,
    ]
    .into_iter()
    .map(|case| CountsRow::of(case.words(), records.iter().filter(move |r| r.run.case == case)))
    .filter(|row| row.runs > 0)
    .collect();
    let all = CountsRow::of("**all**", records.iter().filter(steady));
    let (healthy_runs, quiet) = healthy.iter().fold((0, 0), |(n, q), row| (n + row.runs, q + row.exact));
    let two = cases.iter().find(|row| row.name == RunCategory::Two.words());
    let met = all.reaches(all.exact, EXACT_MIN)
        && all.reaches(all.top1, TOP1_MIN)
        && all.reaches(all.top3, TOP3_MIN)
        && (healthy_runs == 0 || (healthy_runs - quiet) as f64 / healthy_runs as f64 <= FALSE_ALARM_MAX)
        && two.is_none_or(|row| row.reaches(row.exact, BOTH_MIN));
    Tables {
        faults: by(&|r| r.fault().unwrap_or_default(), &steady),
        labs: by(&lab, &steady),
        cases,
        all,
        healthy,
        drawn: drawn::row(records),
        reliability: reliability::bins(&reliability::claims(records)),
        methods: compare::rows(records),
        met,
    }
}

/// The tables as text, and whether all demands are met.
pub fn table(records: &[JudgedRun]) -> (String, bool) {
    let tables = tables(records);
    let mut text = String::new();
    section(&mut text, "fault", &tables.faults, Some(&tables.all));
    section(&mut text, "lab", &tables.labs, None);
    if tables.cases.len() > 1 {
        section(&mut text, "sort of run", &tables.cases, None);
    }
    let (healthy_runs, quiet) =
        tables.healthy.iter().fold((0, 0), |(n, q), row| (n + row.runs, q + row.exact));
    let (low, high) = wilson(healthy_runs - quiet, healthy_runs);
    let _ = write!(
        text,
        "Healthy clusters: {healthy_runs} runs, {} with a false alarm ({:.1} %, 95 % interval {:.1} to {:.1} %)",
        healthy_runs - quiet,
        100.0 * (healthy_runs - quiet) as f64 / healthy_runs.max(1) as f64,
        100.0 * low,
        100.0 * high,
    );
    for row in &tables.healthy {
        let _ = write!(text, "; {}: {} of {} quiet", row.name, row.exact, row.runs);
    }
    text.push_str(".\n");
    let _ = writeln!(
        text,
        "Demanded: exact 97 %, top-1 90 %, top-3 98 %, false alarms at most 1 %, both of two faults 90 %: {}.",
        if tables.met { "met" } else { "not met" }
    );
    for more in
        [drawn::table(records), reliability::table(&reliability::claims(records)), compare::table(records)]
    {
        if !more.is_empty() {
            let _ = write!(text, "\n{more}");
        }
    }
    (text, tables.met)
}

fn section(text: &mut String, what: &str, rows: &[CountsRow], all: Option<&CountsRow>) {
    let _ = writeln!(
        text,
        "| {what} | runs | exact suspect | top-1 cause | top-3 cause | runs with extra findings | seconds |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    for row in rows.iter().chain(all) {
        row.write(text);
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn counts_and_judges() {
        let good: Vec<_> = (0..40).map(|_| record(Some("loss-rx"), true, true, 0)).collect();
        let (text, met) = table(&good);
        assert!(met && text.contains("| loss-rx | 40 | 100 % | 100 % | 100 % | 0 | 10 |"), "{text}");
        let mut bad = good.clone();
        bad.push(record(Some("tso-off"), false, false, 1));
        bad.push(record(Some("tso-off"), false, false, 0));
        assert!(!table(&bad).1, "40 of 42 exact are below 97 %");
        let mut alarmed = good.clone();
        alarmed.push(record(None, false, false, 1));
        let (text, met) = table(&alarmed);
        assert!(!met && text.contains("1 runs, 1 with a false alarm"), "{text}");
        let mut two = good;
        two.push(record(Some("loss-rx"), false, true, 0));
        two[40].run.case = RunCategory::Two;
        let (text, met) = table(&two);
        assert!(!met && text.contains("| two faults at once | 1 | 0 %"), "{text}");
    }
}
