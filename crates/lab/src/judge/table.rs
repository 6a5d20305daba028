//! The table of a judgement, ready for the README.
//!
//! In: records. Out: Markdown, and whether the demands are met. It leaves no run out.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::record::Record;

const EXACT_MIN: f64 = 0.95;
const TOP1_MIN: f64 = 0.80;
const TOP3_MIN: f64 = 0.95;
const FALSE_ALARM_MAX: f64 = 0.02;

#[derive(Default)]
struct Row {
    runs: usize,
    exact: usize,
    top1: usize,
    top3: usize,
    extra: usize,
    seconds: Vec<f64>,
}

impl Row {
    fn add(&mut self, record: &Record) {
        self.runs += 1;
        self.exact += usize::from(record.exact);
        self.top1 += usize::from(record.top1);
        self.top3 += usize::from(record.top3);
        self.extra += usize::from(record.false_alarms > 0);
        self.seconds.push(record.seconds);
    }

    fn write(&self, text: &mut String, name: &str) {
        let percent = |n: usize| if self.runs == 0 { 0.0 } else { 100.0 * n as f64 / self.runs as f64 };
        let _ = writeln!(
            text,
            "| {name} | {} | {:.0} % | {:.0} % | {:.0} % | {} | {:.0} |",
            self.runs,
            percent(self.exact),
            percent(self.top1),
            percent(self.top3),
            self.extra,
            median(&self.seconds)
        );
    }

    fn share(&self, count: usize) -> f64 {
        if self.runs == 0 { 1.0 } else { count as f64 / self.runs as f64 }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// The table, and whether all demands are met.
pub fn table(records: &[Record]) -> (String, bool) {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let (mut all, mut healthy) = (Row::default(), Row::default());
    for record in records {
        match &record.fault {
            Some(fault) => {
                rows.entry(fault).or_default().add(record);
                all.add(record);
            }
            None => healthy.add(record),
        }
    }
    let mut text = String::from(
        "| fault | runs | exact element | top-1 cause | top-3 cause | runs with extra findings | seconds |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for (fault, row) in &rows {
        row.write(&mut text, fault);
    }
    all.write(&mut text, "**all**");
    // A run that could not say anything is no proof of quiet.
    let alarmed = records.iter().filter(|r| r.fault.is_none() && !r.right()).count();
    let _ = writeln!(
        text,
        "\nHealthy clusters: {} runs, {alarmed} with a false alarm ({:.0} %), {:.0} s each.",
        healthy.runs,
        100.0 * if healthy.runs == 0 { 0.0 } else { alarmed as f64 / healthy.runs as f64 },
        median(&healthy.seconds)
    );
    let quiet = healthy.runs == 0 || alarmed as f64 / healthy.runs as f64 <= FALSE_ALARM_MAX;
    let met = all.share(all.exact) >= EXACT_MIN
        && all.share(all.top1) >= TOP1_MIN
        && all.share(all.top3) >= TOP3_MIN
        && quiet;
    let _ = writeln!(
        text,
        "Demanded: exact 95 %, top-1 80 %, top-3 95 %, false alarms at most 2 %: {}.",
        if met { "met" } else { "not met" }
    );
    (text, met)
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    #[test]
    fn counts_and_judges() {
        let good: Vec<_> = (0..20).map(|_| record(Some("loss-rx"), true, true, 0)).collect();
        let (text, met) = table(&good);
        assert!(met && text.contains("| loss-rx | 20 | 100 % | 100 % | 100 % | 0 | 10 |"), "{text}");
        let mut bad = good.clone();
        bad.push(record(Some("tso-off"), false, false, 1));
        bad.push(record(Some("tso-off"), false, false, 0));
        assert!(!table(&bad).1, "20 of 22 exact are below 95 %");
        let mut alarmed = good;
        alarmed.push(record(None, false, false, 1));
        let (text, met) = table(&alarmed);
        assert!(!met && text.contains("1 runs, 1 with a false alarm"), "{text}");
    }
}
