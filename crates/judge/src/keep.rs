//! Evidence of runs, kept to be judged again by a later build: a diagnosis is a pure function of the
//! snapshot, so nothing has to be measured for it.
//!
//! In: a run with its truth, and the file that the survey wrote. Out: two files of the same name, `.run.json`
//! and `.snapshot.json.gz`; and later records as of a judgement. It never changes what was kept.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use linerate_diagnose::diagnose_with;
use linerate_diagnose::rules::Rules;
use linerate_knowledge::Knowledge;
use linerate_lab::error::{LabError, Result};
use linerate_model::snapshot::Snapshot;
use linerate_report::words::written;
use serde::{Deserialize, Serialize};

use crate::record::{JudgedRun, LabeledRun};

/// What is kept beside the snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// What was done.
    #[serde(flatten)]
    pub run: LabeledRun,
    /// Duration of the survey.
    pub seconds: f64,
    /// Why there is no snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

const RUN: &str = ".run.json";
const SNAPSHOT: &str = ".snapshot.json.gz";

/// Keeps a run. The snapshot comes first: a run without one is a failure.
pub fn keep(folder: &Path, kept: &Kept, snapshot: &Path) -> Result<()> {
    let step = || format!("keeping a run in {}", folder.display());
    let name = format!("{:04}-{:016x}", kept.run.index, kept.run.seed);
    let write = || {
        std::fs::create_dir_all(folder)?;
        if snapshot.is_file() {
            let file = BufWriter::new(File::create(folder.join(format!("{name}{SNAPSHOT}")))?);
            let mut packed = GzEncoder::new(file, Compression::default());
            std::io::copy(&mut File::open(snapshot)?, &mut packed)?;
            packed.finish()?.flush()?;
        }
        std::fs::write(folder.join(format!("{name}{RUN}")), serde_json::to_vec_pretty(kept)?)
    };
    write().map_err(LabError::at(step()))
}

/// Every kept run of the folders, in order of folder and name, with the snapshot where there is one.
pub fn each(folders: &[PathBuf], see: &mut dyn FnMut(Kept, Option<Snapshot>) -> Result<()>) -> Result<()> {
    for folder in folders {
        let step = || format!("reading kept runs in {}", folder.display());
        let entries = std::fs::read_dir(folder).map_err(LabError::at(step()))?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                entry.ok()?.file_name().into_string().ok()?.strip_suffix(RUN).map(String::from)
            })
            .collect();
        names.sort();
        if names.is_empty() {
            return Err(LabError::Unknown(format!(
                "no kept run in {}\nhint: `linerate-judge run --keep FOLDER` keeps them",
                folder.display()
            )));
        }
        for name in names {
            let path = folder.join(format!("{name}{RUN}"));
            let text = std::fs::read(&path).map_err(LabError::at(format!("reading {}", path.display())))?;
            let kept: Kept = serde_json::from_slice(&text).map_err(|e| unreadable(&path, &e))?;
            let path = folder.join(format!("{name}{SNAPSHOT}"));
            let snapshot = path.is_file().then(|| unpack(&path)).transpose()?;
            see(kept, snapshot)?;
        }
    }
    Ok(())
}

fn unpack(path: &Path) -> Result<Snapshot> {
    let step = || format!("reading {}", path.display());
    let file = File::open(path).map_err(LabError::at(step()))?;
    let mut text = Vec::new();
    GzDecoder::new(BufReader::new(file)).read_to_end(&mut text).map_err(LabError::at(step()))?;
    serde_json::from_slice(&text).map_err(|e| unreadable(path, &e))
}

fn unreadable(path: &Path, error: &serde_json::Error) -> LabError {
    LabError::Unknown(format!("{}: {error}\nhint: move this run out of the folder", path.display()))
}

/// Judges all kept runs with the present knowledge and reasoning.
pub fn again(folders: &[PathBuf], rules: &Rules, report: &mut dyn FnMut(&str)) -> Result<Vec<JudgedRun>> {
    let knowledge = Knowledge::builtin().map_err(|error| LabError::Unknown(error.to_string()))?;
    let mut records = Vec::new();
    each(folders, &mut |kept, snapshot| {
        let diagnosis = snapshot.as_ref().map(|s| written(diagnose_with(s, &knowledge, rules)));
        let reason = kept.error.as_deref().unwrap_or("no snapshot").to_owned();
        let verdict = diagnosis.as_ref().ok_or(reason.as_str());
        let inventory = snapshot.as_ref().map(|s| &s.inventory);
        let record = JudgedRun::new(kept.run, verdict, inventory, kept.seconds);
        if !record.right() {
            report(&format!("{:4}  {}", record.run.index + 1, record.line()));
        }
        records.push(record);
        Ok(())
    })?;
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RunCategory;

    #[test]
    fn a_kept_run_comes_back_as_it_was_and_one_without_snapshot_is_a_failure() {
        let folder = linerate_lab::folder::LabFolder::create().unwrap();
        let kept = folder.path().join("kept");
        let world = crate::simulate::draw(
            crate::simulate::ClusterSize { hosts: 6, faults: 0, rounds: 4, lost: 0.5 },
            &crate::simulate::Nature::default(),
            3,
        );
        let file = folder.path().join("snapshot.json");
        std::fs::write(&file, serde_json::to_vec(&world.snapshot).unwrap()).unwrap();
        let run = |index| Kept {
            run: LabeledRun {
                index,
                seed: 7,
                lab: "three".into(),
                hosts: 6,
                case: RunCategory::Healthy,
                ..LabeledRun::default()
            },
            seconds: 3.0,
            error: (index == 1).then(|| "crashed".into()),
        };
        keep(&kept, &run(0), &file).unwrap();
        keep(&kept, &run(1), &folder.path().join("missing")).unwrap();
        let mut seen = Vec::new();
        each(std::slice::from_ref(&kept), &mut |kept, snapshot| {
            seen.push((kept, snapshot));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen[0].0, run(0));
        // The last digit of a rate may differ after a text.
        let samples = |s: &Snapshot| s.samples.iter().map(|s| s.test.clone()).collect::<Vec<_>>();
        assert!(seen[0].1.as_ref().map(samples) == Some(samples(&world.snapshot)) && seen[1].1.is_none());
        let records = again(&[kept], &Rules::DEFAULT, &mut |_| {}).unwrap();
        assert!(records[0].error.is_none() && !records[1].right());
        assert!(each(&[folder.path().into()], &mut |_, _| Ok(())).is_err());
    }
}
