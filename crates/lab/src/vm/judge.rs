//! `linerate-lab vm judge`: faults at random targets in guests, `linerate` as a black box, and its accuracy.
//!
//! In: how many runs of which faults, a seed. Out: a line per run and a table. It never helps `linerate`: all
//! that program gets is the inventory and ssh access.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use linerate_model::random::Random;
use linerate_sys::interrupt::Interrupt;
use serde::Serialize;

use super::faults;
use super::faults::fault::{DriveTarget, VmFault};
use super::lab::VmLab;
use super::stages::{Stage, StageVerdict};
use super::topology::VmTopology;
use crate::error::{LabError, Result};
use crate::operator::{Operator, OutputTo};

/// Timeout of one call of `linerate`.
const WITHIN: Duration = Duration::from_secs(300);

/// What to judge.
#[derive(Debug, Clone, clap::Args)]
pub struct GuestJudgeOptions {
    /// Number of runs with each fault.
    #[arg(long, default_value_t = 3)]
    pub runs: u32,
    /// Number of runs of each healthy stage.
    #[arg(long, default_value_t = 2)]
    pub healthy: u32,
    /// Inject only this fault; repeatable.
    #[arg(long = "fault", value_name = "NAME")]
    pub faults: Vec<String>,
    /// Seed; repeats the same targets and strengths.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print JSON, one line per run.
    #[arg(long)]
    pub json: bool,
}

/// A run and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuestRun {
    /// What was broken; `None` when nothing was.
    pub fault: Option<&'static str>,
    /// Where.
    #[serde(rename = "place")]
    pub target: Option<String>,
    /// The correct verdict.
    pub truth: Option<StageVerdict>,
    /// What `linerate` reported.
    #[serde(rename = "said")]
    pub verdicts: BTreeSet<StageVerdict>,
    /// Duration of the call of `linerate`, s.
    pub seconds: f64,
}

impl GuestRun {
    /// Whether exactly the truth was reported: all of it, and nothing else.
    pub fn exact(&self) -> bool {
        self.verdicts == self.truth.iter().cloned().collect()
    }

    /// As one line of text.
    pub fn line(&self) -> String {
        let fault = self.fault.unwrap_or("healthy");
        let target = self.target.as_deref().unwrap_or("-");
        let verdicts: Vec<String> = self.verdicts.iter().map(StageVerdict::to_string).collect();
        let verdicts = if verdicts.is_empty() { "nothing found".to_owned() } else { verdicts.join("; ") };
        let right = if self.exact() { "right" } else { "WRONG" };
        format!("{right}  {fault:14} {target:12} {:4.0} s  {verdicts}", self.seconds)
    }
}

/// Judges, passing each record to `report` as it comes, and returns all of them.
///
/// # Errors
/// A fault that does not exist, guests that do not come up, or an interruption.
pub fn judge(
    options: &GuestJudgeOptions,
    interrupt: &Interrupt,
    report: &mut dyn FnMut(&GuestRun),
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<GuestRun>> {
    let chosen: Vec<&'static dyn VmFault> = match options.faults.as_slice() {
        [] => faults::ALL.to_vec(),
        names => names.iter().map(|name| faults::find(name)).collect::<Result<_>>()?,
    };
    let mut stages: Vec<&'static dyn Stage> = Vec::new();
    for fault in &chosen {
        if stages.iter().all(|s| s.name() != fault.stage().name()) {
            stages.push(fault.stage());
        }
    }
    let mut random = Random(options.seed);
    let mut records = Vec::new();
    for stage in stages {
        let lab = VmLab::up(VmTopology::load(stage.lab())?, Some(interrupt), progress)?;
        progress(&format!("building the stage: {} …", stage.name()));
        stage.build(&lab)?;
        let scene = Scene {
            stage,
            lab: &lab,
            operator: Operator::with(lab.folder().join("data"), vec![lab.environment()])?,
            interrupt,
        };
        let mut keep = |record: GuestRun| {
            report(&record);
            records.push(record);
        };
        for _ in 0..options.healthy {
            keep(scene.run(None)?);
        }
        for fault in chosen.iter().filter(|f| f.stage().name() == stage.name()) {
            for _ in 0..options.runs {
                let targets = fault.targets(&lab.topology);
                let target = random
                    .pick(&targets)
                    .ok_or_else(|| LabError::Unknown(format!("{} has no target", fault.name())))?;
                keep(scene.run(Some((*fault, target, random.fraction())))?);
            }
        }
    }
    Ok(records)
}

/// A stage that is built.
struct Scene<'a> {
    stage: &'static dyn Stage,
    lab: &'a VmLab,
    operator: Operator,
    interrupt: &'a Interrupt,
}

impl Scene<'_> {
    fn run(&self, broken: Option<(&'static dyn VmFault, &DriveTarget, f64)>) -> Result<GuestRun> {
        if let Some((fault, target, strength)) = broken {
            fault.inject(self.lab, target, strength)?;
        }
        let begin = Instant::now();
        let ended =
            self.operator.run(&self.stage.question(self.lab), OutputTo::Captured, WITHIN, self.interrupt);
        let seconds = begin.elapsed().as_secs_f64();
        // Also after an error nothing stays broken.
        let healed = broken.map_or(Ok(()), |(fault, target, _)| fault.heal(self.lab, target));
        let ended = ended?;
        healed?;
        let verdicts = self.stage.answer(&ended.stdout).map_err(|error| {
            LabError::Unknown(format!(
                "{error}\nlinerate exited with {:?}: {}",
                ended.code,
                ended.stderr.trim()
            ))
        })?;
        let truth = broken.map(|(fault, target, _)| fault.truth(&self.lab.topology, target)).transpose()?;
        Ok(GuestRun {
            fault: broken.map(|(fault, _, _)| fault.name()),
            target: broken.map(|(_, target, _)| target.to_string()),
            truth,
            verdicts: verdicts.into_iter().collect(),
            seconds,
        })
    }
}

/// Accuracy table, as Markdown.
pub fn table(records: &[GuestRun]) -> String {
    let mut text =
        "| fault | runs | named | nothing else | s |\n| --- | --- | --- | --- | --- |\n".to_owned();
    let names: BTreeSet<Option<&str>> = records.iter().map(|r| r.fault).collect();
    for name in names {
        let of: Vec<&GuestRun> = records.iter().filter(|r| r.fault == name).collect();
        let named = of.iter().filter(|r| r.truth.iter().all(|t| r.verdicts.contains(t))).count();
        let exact = of.iter().filter(|r| r.exact()).count();
        let seconds = of.iter().map(|r| r.seconds).sum::<f64>() / of.len().max(1) as f64;
        let named = name.map_or("-".to_owned(), |_| named.to_string());
        // Writing into a `String` cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {named} | {exact} | {seconds:.0} |",
            name.unwrap_or("healthy"),
            of.len()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn record(fault: Option<&'static str>, devices: &[&str]) -> GuestRun {
        let of = |device: &str| StageVerdict {
            host: "store".into(),
            device: device.into(),
            what: "slow-among-equals".into(),
        };
        GuestRun {
            fault,
            target: fault.map(|_| "store/d8".into()),
            truth: fault.map(|_| of("sdh")),
            verdicts: devices.iter().map(|d| of(d)).collect(),
            seconds: 10.0,
        }
    }

    #[test]
    fn only_the_truth_and_nothing_else_is_right() {
        let records = [
            record(Some("slow-drive"), &["sdh"]),
            record(Some("slow-drive"), &["sdh", "sda"]),
            record(Some("slow-drive"), &["sdb"]),
            record(None, &[]),
            record(None, &["sda"]),
        ];
        assert_eq!(records.each_ref().map(GuestRun::exact), [true, false, false, true, false]);
        let text = table(&records);
        assert!(
            text.contains("| slow-drive | 3 | 2 | 1 | 10 |") && text.contains("| healthy | 2 | - | 1 | 10 |"),
            "{text}"
        );
        assert!(records[2].line().starts_with("WRONG  slow-drive"), "{}", records[2].line());
    }
}
