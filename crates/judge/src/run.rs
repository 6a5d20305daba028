//! `linerate-judge run`: faults at random targets, `linerate` as a black box, and its accuracy.
//!
//! In: how many runs of which sort, which labs and faults, a seed. Out: one record per run as it ends, and
//! tables. It never helps `linerate`: all that program gets is the inventory.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use linerate_knowledge::Knowledge;
use linerate_lab::access;
use linerate_lab::error::{LabError, Result};
use linerate_lab::grammar::effect::Strength;
use linerate_lab::grammar::fault::DrawnFault;
use linerate_lab::lab::Lab;
use linerate_lab::operator::{Ended, Operator, OutputTo};
use linerate_lab::topology::Topology;
use linerate_model::finding::Diagnosis;
use linerate_model::random::Random;
use linerate_model::snapshot::Snapshot;
use linerate_sys::cpu::cpu_ticks;
use linerate_sys::interrupt::Interrupt;
use serde::Deserialize;

use crate::keep::Kept;
use crate::options::JudgeOptions;
use crate::plan::{Job, plan};
use crate::record::{Broken, JudgedRun, LabeledRun, RunCategory};
use crate::{benign, keep, plan, record, stolen};

/// Judges, passing a line per run to `report`, and returns all records.
pub fn judge(
    options: &JudgeOptions,
    interrupt: &Interrupt,
    report: &mut dyn FnMut(&str),
) -> Result<Vec<JudgedRun>> {
    let jobs = plan(options)?;
    let mut records = match &options.records {
        Some(path) => record::load(path)?,
        None => Vec::new(),
    };
    let total = jobs.len();
    for job in jobs {
        let same =
            |r: &JudgedRun| r.run.index == job.index && r.run.seed == job.seed && r.run.case == job.case;
        if records.iter().any(same) || job.index % options.part.1.max(1) != options.part.0 {
            continue;
        }
        let number = format!("{:3}/{total}", job.index + 1);
        let record = quiet_run(options, &job, interrupt, &mut |why| report(&format!("{number}  {why}")))?;
        report(&format!("{number}  {}", record.line()));
        if let Some(path) = &options.records {
            append(path, &record)?;
        }
        records.push(record);
    }
    records.sort_by_key(|r| r.run.index);
    Ok(records)
}

/// Attempts of a run; the last one counts whatever the steal.
const TRIES: usize = 3;

/// Repeats a run with too much steal, within the limit of attempts.
fn quiet_run(
    options: &JudgeOptions,
    job: &Job,
    interrupt: &Interrupt,
    report: &mut dyn FnMut(&str),
) -> Result<JudgedRun> {
    let mut tries = 1;
    loop {
        let quiet = options.quiet.filter(|_| tries < TRIES).unwrap_or(f64::INFINITY);
        match run(options, job, interrupt, quiet)? {
            Made::Counts(record) => return Ok(*record),
            Made::HeldUp(stolen) => report(&format!(
                "{:10} again: {:.0} % of the CPU time was stolen from this machine",
                job.lab,
                100.0 * stolen
            )),
        }
        tries += 1;
    }
}

/// A run that was made.
enum Made {
    Counts(Box<JudgedRun>),
    /// Share of the CPU time that was stolen.
    HeldUp(f64),
}

/// What `linerate survey --json` prints, as far as the judge needs it.
#[derive(Deserialize)]
struct Page {
    diagnosis: Diagnosis,
}

/// How a survey of a broken cluster ended.
#[derive(Default)]
struct Surveyed {
    ended: Ended,
    seconds: f64,
    snapshot: Option<PathBuf>,
}

fn run(options: &JudgeOptions, job: &Job, interrupt: &Interrupt, quiet: f64) -> Result<Made> {
    let before = cpu_ticks(Path::new("/"));
    let topology = Topology::load(&job.lab)?;
    let mut truth = LabeledRun {
        index: job.index,
        seed: job.seed,
        lab: job.lab.clone(),
        hosts: topology.hosts().len(),
        case: job.case,
        ..LabeledRun::default()
    };
    // The lab lives until all evidence is read.
    let mut lab = None;
    let surveyed = match surveyed(options, job, topology, &mut truth, &mut lab, interrupt) {
        Err(LabError::Interrupted) => return Err(LabError::Interrupted),
        // A run that could not be made ends none of the hundreds that follow; it counts as a wrong verdict.
        Err(error) => {
            Surveyed { ended: Ended { stderr: error.to_string(), ..Ended::default() }, ..Surveyed::default() }
        }
        Ok(surveyed) => surveyed,
    };
    let stolen = stolen::between(&before, &cpu_ticks(Path::new("/")));
    if stolen > quiet {
        return Ok(Made::HeldUp(stolen));
    }
    let ended = &surveyed.ended;
    let verdict = serde_json::from_str::<Page>(&ended.stdout)
        .map_err(|error| format!("exit code {:?}, {error}; {}", ended.code, ended.stderr.trim()));
    let evidence: Option<Snapshot> =
        surveyed.snapshot.as_ref().and_then(|path| serde_json::from_slice(&std::fs::read(path).ok()?).ok());
    let record = JudgedRun::new(
        truth,
        verdict.as_ref().map(|page| &page.diagnosis).map_err(String::as_str),
        evidence.as_ref().map(|s| &s.inventory),
        surveyed.seconds,
    );
    let nothing = PathBuf::new();
    let snapshot = surveyed.snapshot.as_ref().unwrap_or(&nothing);
    if let Some(folder) = &options.keep {
        let kept = Kept { run: record.run.clone(), seconds: record.seconds, error: record.error.clone() };
        keep::keep(folder, &kept, snapshot)?;
    }
    if let Some(folder) = options.failures.as_deref().filter(|_| !record.right()) {
        keep_evidence(folder, &record, ended, snapshot)?;
    }
    Ok(Made::Counts(Box::new(record)))
}

/// Builds the cluster, breaks it, surveys it. After a failure the truth holds the faults injected so far.
fn surveyed(
    options: &JudgeOptions,
    job: &Job,
    topology: Topology,
    truth: &mut LabeledRun,
    running: &mut Option<Lab>,
    interrupt: &Interrupt,
) -> Result<Surveyed> {
    let lab = running.insert(Lab::up_via(topology, access::find(&options.via)?)?);
    let mut hosts = std::collections::BTreeSet::new();
    for (fault, target) in &job.faults {
        let injected = lab.inject(*fault, Some(&target.to_string()), job.seed)?;
        // An intermittent fault is also right under this name.
        let also = (job.case == RunCategory::Intermittent).then(|| "capacity-flapping".to_owned());
        truth.broken.push(Broken {
            fault: fault.about().name.to_owned(),
            target: target.to_string(),
            truth: injected.truth.clone(),
            also: also.into_iter().collect(),
            signs: Vec::new(),
        });
        hosts.extend(plan::touched(&lab.cluster.topology, target));
    }
    match job.case {
        RunCategory::Drawn => truth
            .broken
            .push(drawn(lab.inject_drawn(job.seed, Strength::Clear)?, Flicker::new(job).is_some())?),
        RunCategory::DrawnHarmless => {
            let drawn = drawn(lab.inject_drawn(job.seed, Strength::None)?, false)?;
            truth.different.push(drawn.fault.clone());
            truth.harmless = Some(drawn);
        }
        _ => {}
    }
    if job.case == RunCategory::HealthyBeside {
        let all = lab.cluster.topology.hosts();
        hosts.extend(Random(job.seed).pick(&all).map(|h| h.name.clone()));
    }
    if matches!(job.case, RunCategory::Beside | RunCategory::HealthyBeside) {
        truth.different = lab.differ(|damage| benign::differ(damage, &hosts, job.seed))?;
    }
    survey(job, lab, interrupt)
}

/// What is right about a drawn fault: every cause of its kind of mechanism.
fn drawn(drawn: &DrawnFault, is_intermittent: bool) -> Result<Broken> {
    let knowledge = Knowledge::builtin().map_err(|error| LabError::Unknown(error.to_string()))?;
    let is_kind = |area: &str| drawn.mechanism.areas().contains(&area);
    let kin = knowledge.causes().filter(|cause| is_kind(&cause.area));
    let often = if is_intermittent { " (intermittent)" } else { "" };
    Ok(Broken {
        fault: format!("{}{often}", drawn.summary),
        target: drawn.ends.0.clone(),
        truth: drawn.truth.clone(),
        also: kin.map(|cause| cause.id.clone()).collect(),
        signs: drawn.signs.clone(),
    })
}

fn survey(job: &Job, lab: &mut Lab, interrupt: &Interrupt) -> Result<Surveyed> {
    let operator = Operator::find(lab)?;
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
    // The budget is a spec: repetitions of contended tests come on top. Ten times as long is a failure of its
    // own.
    let within = Duration::from_secs(300);
    let mut flicker = Flicker::new(job);
    let mut meanwhile = || flicker.as_mut().map_or(Ok(()), |flicker| flicker.tick(lab));
    let ended = operator.run_while(&arguments, OutputTo::Captured, within, interrupt, &mut meanwhile)?;
    Ok(Surveyed {
        ended,
        seconds: start.elapsed().as_secs_f64(),
        snapshot: Some(snapshot).filter(|s| s.is_file()),
    })
}

/// Suspends and restores the faults, each for two to five seconds.
struct Flicker {
    random: Random,
    next: Instant,
    is_in: bool,
}

impl Flicker {
    fn new(job: &Job) -> Option<Self> {
        let mut random = Random(job.seed);
        let next = Instant::now() + Self::pause(&mut random);
        // A quarter of the drawn faults is intermittent.
        let is_intermittent = job.case == RunCategory::Drawn && job.seed % 4 == 3;
        (job.case == RunCategory::Intermittent || is_intermittent).then_some(Self {
            random,
            next,
            is_in: true,
        })
    }

    fn pause(random: &mut Random) -> Duration {
        Duration::from_millis(2000 + random.below(3000) as u64)
    }

    fn tick(&mut self, lab: &mut Lab) -> Result<()> {
        if Instant::now() < self.next {
            return Ok(());
        }
        self.is_in = !self.is_in;
        self.next = Instant::now() + Self::pause(&mut self.random);
        if self.is_in { lab.put_in_again() } else { lab.take_out() }
    }
}

fn append(path: &Path, record: &JudgedRun) -> Result<()> {
    let step = || format!("writing {}", path.display());
    let mut line = serde_json::to_vec(record).map_err(|e| LabError::at(step())(e.into()))?;
    line.push(b'\n');
    let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(LabError::at(step()))?;
    file.write_all(&line).map_err(LabError::at(step()))
}

/// Keeps everything needed to analyse a wrong verdict.
fn keep_evidence(folder: &Path, record: &JudgedRun, ended: &Ended, snapshot: &Path) -> Result<()> {
    let step = || format!("keeping evidence in {}", folder.display());
    let name = format!(
        "run-{:03}-{}",
        record.run.index,
        record.fault().unwrap_or("healthy".into()).replace(" + ", "-")
    );
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
