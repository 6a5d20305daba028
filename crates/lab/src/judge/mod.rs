//! `linerate-lab judge`: faults at random places, `linerate` as a black box, and how often it was right.
//!
//! In: how many runs, which labs and faults, a seed. Out: one record per run as it ends, and a table. It never helps
//! `linerate`: all that program gets is the inventory.

pub mod record;
pub mod table;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use linerate_model::finding::Diagnosis;
use linerate_sys::interrupt::Interrupt;
use serde::Deserialize;

use crate::error::{LabError, Result};
use crate::faults::{self, Fault};
use crate::lab::Lab;
use crate::operator::{Ended, Operator, Output};
use crate::random::Random;
use crate::topology::Topology;
use crate::way;
use record::Record;

/// What to judge.
#[derive(Debug, Clone)]
pub struct Options {
    /// Runs with a fault.
    pub runs: usize,
    /// Runs without.
    pub healthy: usize,
    /// Repeats everything.
    pub seed: u64,
    /// Labs, in turn.
    pub labs: Vec<String>,
    /// How the hosts are reached.
    pub via: String,
    /// Names of faults; all that this machine can show when empty.
    pub faults: Vec<String>,
    /// Time budget of a survey, as `linerate survey --time` takes it: one for each lab in its order, the last for all further ones.
    pub time: Vec<String>,
    /// Only the runs whose number leaves this rest (first) when divided by the second: several judges share the work, and one
    /// that resumes their joined records prints the whole.
    pub part: (usize, usize),
    /// Records go here, one line each; runs that it already holds are not repeated.
    pub records: Option<PathBuf>,
    /// Evidence of wrong verdicts goes here.
    pub failures: Option<PathBuf>,
    /// Whether faults that need root can be used.
    pub root: bool,
}

/// One run to come.
#[derive(Clone)]
struct Job {
    index: usize,
    lab: String,
    time: String,
    fault: Option<&'static dyn Fault>,
    seed: u64,
}

/// Judges, telling `tell` a line per run, and returns all records.
pub fn judge(options: &Options, interrupt: &Interrupt, tell: &mut dyn FnMut(&str)) -> Result<Vec<Record>> {
    let jobs = plan(options)?;
    let mut records = match &options.records {
        Some(path) => record::load(path)?,
        None => Vec::new(),
    };
    let total = jobs.len();
    for job in jobs {
        let same = |r: &&Record| r.index == job.index && r.seed == job.seed && r.fault == job.fault_name();
        if records.iter().any(|r| same(&r)) || job.index % options.part.1.max(1) != options.part.0 {
            continue;
        }
        let record = run(options, &job, interrupt)?;
        tell(&format!("{:3}/{total}  {}", job.index + 1, record.line()));
        if let Some(path) = &options.records {
            append(path, &record)?;
        }
        records.push(record);
    }
    records.sort_by_key(|r| r.index);
    Ok(records)
}

impl Job {
    fn fault_name(&self) -> Option<String> {
        self.fault.map(|f| f.name().to_owned())
    }
}

/// Every fault equally often, in random order, healthy runs in between, labs in turn.
fn plan(options: &Options) -> Result<Vec<Job>> {
    let wanted: Vec<&'static dyn Fault> = if options.faults.is_empty() {
        let can = |f: &&&'static dyn Fault| (options.root || !f.needs_root()) && f.unavailable().is_none();
        faults::ALL.iter().filter(can).copied().collect()
    } else {
        options.faults.iter().map(|name| faults::find(name)).collect::<Result<_>>()?
    };
    if options.labs.is_empty() || options.time.is_empty() || (wanted.is_empty() && options.runs > 0) {
        return Err(LabError::Unknown("nothing to judge: no lab or no fault".into()));
    }
    let mut random = Random::new(options.seed);
    let mut deck: Vec<Option<&'static dyn Fault>> = Vec::new();
    while deck.len() < options.runs {
        let mut round = wanted.clone();
        random.shuffle(&mut round);
        deck.extend(round.into_iter().take(options.runs - deck.len()).map(Some));
    }
    deck.extend(std::iter::repeat_n(None, options.healthy));
    random.shuffle(&mut deck);
    let job = |(index, fault): (usize, Option<&'static dyn Fault>)| Job {
        index,
        lab: options.labs[index % options.labs.len()].clone(),
        time: options.time[(index % options.labs.len()).min(options.time.len() - 1)].clone(),
        fault,
        seed: options.seed.wrapping_mul(1_000_003).wrapping_add(index as u64),
    };
    Ok(deck.into_iter().enumerate().map(job).collect())
}

/// What `linerate survey --json` prints, as far as the judge needs it.
#[derive(Deserialize)]
struct Page {
    diagnosis: Diagnosis,
}

fn run(options: &Options, job: &Job, interrupt: &Interrupt) -> Result<Record> {
    let mut lab = Lab::up_via(Topology::load(&job.lab)?, way::find(&options.via)?)?;
    if let Some(fault) = job.fault {
        lab.inject(fault, None, job.seed)?;
    }
    let operator = Operator::find(&lab)?;
    let snapshot = lab.folder.path().join("snapshot.json");
    let inventory = lab.reached.inventory.clone();
    let arguments = [
        "survey".as_ref(),
        "-i".as_ref(),
        inventory.as_os_str(),
        "--time".as_ref(),
        job.time.as_ref(),
        "--json".as_ref(),
        "--quiet".as_ref(),
        "--snapshot".as_ref(),
        snapshot.as_os_str(),
    ];
    let start = Instant::now();
    // The budget is a wish: repetitions of disturbed tests come on top. Ten times as long is a failure of its own.
    let within = Duration::from_secs(180);
    let ended = match operator.run(&arguments, Output::Captured, within, interrupt) {
        Ok(ended) => ended,
        Err(LabError::Interrupted) => return Err(LabError::Interrupted),
        Err(error) => Ended { stderr: error.to_string(), ..Ended::default() },
    };
    let seconds = start.elapsed().as_secs_f64();
    let verdict = match serde_json::from_str::<Page>(&ended.stdout) {
        Ok(page) => Ok(page.diagnosis),
        Err(error) => Err(format!("exit code {:?}, {error}; {}", ended.code, ended.stderr.trim())),
    };
    let record = Record::new(job.index, job.seed, &job.lab, lab.injected().first(), verdict, seconds);
    if let Some(folder) = options.failures.as_deref().filter(|_| !record.right()) {
        keep_evidence(folder, &record, &ended, &snapshot)?;
    }
    Ok(record)
}

fn append(path: &Path, record: &Record) -> Result<()> {
    let step = || format!("writing {}", path.display());
    let mut line = serde_json::to_vec(record).map_err(|e| LabError::at(step())(e.into()))?;
    line.push(b'\n');
    let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(LabError::at(step()))?;
    file.write_all(&line).map_err(LabError::at(step()))
}

/// Everything that is needed to find out why a verdict was wrong.
fn keep_evidence(folder: &Path, record: &Record, ended: &Ended, snapshot: &Path) -> Result<()> {
    let step = || format!("keeping evidence in {}", folder.display());
    let name = format!("run-{:03}-{}", record.index, record.fault.as_deref().unwrap_or("healthy"));
    let write = || {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join(format!("{name}.diagnosis.json")), &ended.stdout)?;
        std::fs::write(folder.join(format!("{name}.record.json")), serde_json::to_vec_pretty(record)?)?;
        std::fs::write(folder.join(format!("{name}.stderr.txt")), &ended.stderr)?;
        if snapshot.is_file() {
            std::fs::copy(snapshot, folder.join(format!("{name}.snapshot.json")))?;
        }
        Ok(())
    };
    write().map_err(LabError::at(step()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_plan_is_fair_and_repeatable() {
        let options = Options {
            runs: 46,
            healthy: 5,
            seed: 3,
            labs: vec!["three".into(), "twelve".into()],
            via: "netns".into(),
            faults: Vec::new(),
            time: vec!["15s".into()],
            part: (0, 1),
            records: None,
            failures: None,
            root: false,
        };
        let names = |o: &Options| {
            plan(o).unwrap().iter().map(|j| (j.lab.clone(), j.fault_name())).collect::<Vec<_>>()
        };
        assert_eq!(names(&options), names(&options));
        assert_ne!(names(&options), names(&Options { seed: 4, ..options.clone() }));
        let mut counts = BTreeMap::new();
        for (_, fault) in names(&options) {
            *counts.entry(fault).or_insert(0) += 1;
        }
        assert_eq!(counts.remove(&None), Some(5));
        assert!(counts.values().all(|n| (2..=3).contains(n)), "{counts:?}");
        assert!(!counts.contains_key(&Some("cpu-starved".into())), "it needs root");
    }
}
