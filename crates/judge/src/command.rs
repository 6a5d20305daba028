//! The command `linerate-judge run`: its arguments, and what it does with them.
//!
//! In: arguments. Out: options for the judge, or kept runs judged again; tables as text, data and a picture.
//! It judges nothing itself.

use std::path::PathBuf;

use linerate_diagnose::rules::{CalibrationRules, Rules};
use linerate_knowledge::Knowledge;
use linerate_lab::error::{LabError, Result};
use linerate_model::exit::ExitCode;
use linerate_sys::interrupt::Interrupt;

use crate::options::JudgeOptions;
use crate::record::JudgedRun;
use crate::{fit, keep, leave_out, picture, reliability, run, simulate, table};

/// Options of `run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Number of runs with one fault.
    #[arg(long, default_value_t = 100)]
    runs: usize,
    /// Number of runs of healthy clusters; in every second one, a host has a benign difference.
    #[arg(long, default_value_t = 50)]
    healthy: usize,
    /// Number of runs with two faults on different machines.
    #[arg(long, value_name = "N", default_value_t = 0)]
    two: usize,
    /// Number of runs with three faults on different machines.
    #[arg(long, value_name = "N", default_value_t = 0)]
    three: usize,
    /// Number of runs with a fault and benign differences on the same hosts.
    #[arg(long, value_name = "N", default_value_t = 0)]
    benign: usize,
    /// Number of runs with an intermittent fault.
    #[arg(long, value_name = "N", default_value_t = 0)]
    flicker: usize,
    /// Number of runs with a fault drawn from the grammar, which no knowledge file was written for.
    #[arg(long, value_name = "N", default_value_t = 0)]
    grammar: usize,
    /// Number of runs with a drawn setting that harms nothing.
    #[arg(long, value_name = "N", default_value_t = 0)]
    harmless: usize,
    /// Seed; repeats the same faults at the same targets.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Labs to run on, in turn.
    #[arg(long, value_delimiter = ',', default_value = "two,three,casebook-a,twelve,twenty-four,mixed")]
    labs: Vec<String>,
    /// Inject only these faults.
    #[arg(long, value_delimiter = ',')]
    faults: Vec<String>,
    /// Time budget of each survey, one per lab in order, the last for all remaining labs; defaults to a
    /// budget by number of hosts.
    #[arg(long, value_delimiter = ',')]
    time: Vec<String>,
    /// Run only a part of the runs, e.g. 1/2 and 2/2 for two parallel judges; join their files and `--resume`
    /// the whole.
    #[arg(long, value_name = "K/N", default_value = "1/1", value_parser = part)]
    part: (usize, usize),
    /// Repeat a run, at most twice, if CPU steal on this machine exceeded this percentage during it.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    quiet: Option<f64>,
    /// Write one line of JSON per run to this file, when it ends.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Resume after the last run in this `--json` file.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    resume: Option<PathBuf>,
    /// Keep the snapshot and verdict of each wrong run in this folder.
    #[arg(long, value_name = "FOLDER")]
    keep_failures: Option<PathBuf>,
    /// Keep the snapshot and ground truth of each run in this folder, for `--again`.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Skip measuring: judge the runs kept by `--keep` in these folders with the current knowledge.
    #[arg(long, value_name = "FOLDER", value_delimiter = ',', conflicts_with_all = ["keep", "resume", "keep_failures"])]
    again: Vec<PathBuf>,
    /// With `--again`: print the calibration maps (score to probability) fitted to these runs, with all
    /// files and without those of their causes.
    #[arg(long, requires = "again")]
    fit: bool,
    /// With `--fit`: also fit on this number of simulated clusters, which inform about locations only.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "fit")]
    simulated: usize,
    /// Write the result tables as JSON to this file.
    #[arg(long, value_name = "FILE")]
    tables: Option<PathBuf>,
    /// Write a reliability diagram of the probabilities to this file (SVG).
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Transport to the hosts: netns, or ssh (a real sshd on each host; root only).
    #[arg(long, default_value = "netns")]
    via: String,
}

impl RunArgs {
    /// Whether clusters are to be built.
    pub fn measures(&self) -> bool {
        self.again.is_empty()
    }

    /// Builds clusters, breaks them and judges the verdicts.
    ///
    /// # Errors
    /// Nothing to judge, interrupted, a file that cannot be read or written.
    pub fn judge(
        self,
        root: bool,
        interrupt: &Interrupt,
        print: &mut dyn FnMut(&str),
        progress: &mut dyn FnMut(&str),
    ) -> Result<ExitCode> {
        if let Some(path) = self.json.as_ref().filter(|path| path.exists()) {
            return Err(LabError::Unknown(format!(
                "{} exists\nhint: --resume goes on with it",
                path.display()
            )));
        }
        let (tables, picture) = (self.tables, self.picture);
        let options = JudgeOptions {
            runs: self.runs,
            healthy: self.healthy,
            two: self.two,
            three: self.three,
            beside: self.benign,
            flicker: self.flicker,
            grammar: self.grammar,
            harmless: self.harmless,
            seed: self.seed,
            labs: self.labs,
            via: self.via,
            faults: self.faults,
            time: self.time,
            part: self.part,
            quiet: self.quiet.map(|percent| percent / 100.0),
            records: self.json.or(self.resume),
            failures: self.keep_failures,
            keep: self.keep,
            root,
        };
        let records = run::judge(&options, interrupt, progress)?;
        show(&records, tables, picture, print)
    }

    /// Judges kept runs again.
    ///
    /// # Errors
    /// A file that cannot be read or written.
    pub fn again(self, print: &mut dyn FnMut(&str), progress: &mut dyn FnMut(&str)) -> Result<ExitCode> {
        if self.fit {
            let raw = Rules { calibration: CalibrationRules::NONE, ..Rules::DEFAULT };
            let mut records = keep::again(&self.again, &raw, &mut |_| {})?;
            records.extend(leave_out::all(&self.again, &raw)?.into_iter().filter_map(|left| left.record));
            let knowledge = Knowledge::builtin().map_err(|error| LabError::Unknown(error.to_string()))?;
            records.extend(simulate::records(self.simulated, &knowledge, &raw));
            print(fit::fit(&records).trim_end());
            return Ok(ExitCode::Ok);
        }
        let records = keep::again(&self.again, &Rules::DEFAULT, progress)?;
        if let Some(path) = self.json {
            let lines: std::result::Result<Vec<String>, _> =
                records.iter().map(serde_json::to_string).collect();
            let lines = lines.map_err(|error| LabError::Unknown(error.to_string()))?;
            write(&path, &(lines.join("\n") + "\n"))?;
        }
        show(&records, self.tables, self.picture, print)
    }
}

fn show(
    records: &[JudgedRun],
    tables: Option<PathBuf>,
    picture: Option<PathBuf>,
    print: &mut dyn FnMut(&str),
) -> Result<ExitCode> {
    let (text, met) = table::table(records);
    print(text.trim_end());
    if let Some(path) = tables {
        let text = serde_json::to_string_pretty(&table::tables(records));
        write(&path, &text.map_err(|error| LabError::Unknown(error.to_string()))?)?;
    }
    if let Some(path) = picture {
        write(&path, &picture::picture(&reliability::bins(&reliability::claims(records))))?;
    }
    Ok(if met { ExitCode::Ok } else { ExitCode::Findings })
}

fn write(path: &std::path::Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(LabError::at(format!("writing {}", path.display())))
}

/// Reads a share of the CPU time in percent.
fn percent(text: &str) -> std::result::Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=100.0).contains(value));
    value.ok_or_else(|| "expected percent from 0 to 100, such as 5".into())
}

/// Reads `K/N`; gives the rest and the divisor.
fn part(text: &str) -> std::result::Result<(usize, usize), String> {
    let numbers =
        text.split_once('/').and_then(|(k, n)| Some((k.parse::<usize>().ok()?, n.parse::<usize>().ok()?)));
    match numbers {
        Some((k, n)) if (1..=n).contains(&k) => Ok((k - 1, n)),
        _ => Err("expected K/N with 1 <= K <= N, such as 1/2".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_number_from_0_to_100() {
        assert_eq!(["0", "5", "100"].map(percent), [Ok(0.0), Ok(5.0), Ok(100.0)]);
        for wrong in ["-1", "101", "nan", "inf", "", "5 %"] {
            assert!(percent(wrong).unwrap_err().contains("from 0 to 100"), "{wrong}");
        }
    }

    #[test]
    fn parts_count_from_one() {
        assert_eq!(part("2/3"), Ok((1, 3)));
        for wrong in ["0/2", "3/2", "1", "a/b"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }
}
