//! `linerate knowledge test FILE`: is a cause of one's own sound, does it find what it says it finds, and
//! whose verdicts does it change? In: a file. Out: an account; the lab is started only when asked for.

use std::fs::DirBuilder;
use std::hash::{BuildHasher as _, RandomState};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use linerate_cases as case;
use linerate_knowledge::{CauseProof, Knowledge};
use linerate_model::exit::ExitCode;
use linerate_model::fact::Gap;
use linerate_model::finding::Diagnosis;
use linerate_model::verdict::{Verdict, VerdictItem};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::{open, out};
use linerate_fleet::programs::judge_program;
use linerate_input as input;

/// Most that the lab writes about its runs.
const RECORDS_BYTES_MAX: usize = 16 << 20;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  linerate knowledge test my-cause.toml --lab\n\nExit codes:\n  0    the file is valid, its proofs find the cause, and no recorded case loses its verdict\n  1    a proof does not find the cause, or a recorded case loses its verdict\n  2    the file is invalid; file, line and reason are printed"
)]
pub(super) struct Args {
    /// File with one cause, in the format of `knowledge/README.md`
    file: PathBuf,
    /// Also run the lab faults named as proof (starts virtual clusters; requires root or user namespaces)
    #[arg(long)]
    lab: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What came out.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Tested {
    id: String,
    title: String,
    cases: usize,
    changed: Vec<Change>,
    proofs: Vec<Proof>,
}

/// A case whose verdict is another one with the file.
#[derive(Debug, Serialize, JsonSchema)]
struct Change {
    case: String,
    before: String,
    after: String,
    /// What the case expects and does not get any more.
    broken: Vec<String>,
}

/// Something that should find the cause.
#[derive(Debug, Serialize, JsonSchema)]
struct Proof {
    name: String,
    /// Not known when the lab was not run.
    found: Option<bool>,
    #[serde(rename = "said")]
    shown: String,
}

pub(super) fn run(args: &Args, own: Option<&Path>) -> anyhow::Result<ExitCode> {
    let text = input::text(&args.file, input::KNOWLEDGE_BYTES_MAX)?;
    let name = args.file.display().to_string();
    let mut without = open::knowledge_with(own)?;
    let mut alone = Knowledge::default();
    alone.add(&name, &text)?;
    let cause = alone.causes().next().context("the file has no cause")?.clone();
    // A file that is already among the knowledge of the user is tested, not refused.
    without.remove(&cause.id);
    let mut with = without.clone();
    with.add(&name, &text)?;
    let mut tested = Tested {
        id: cause.id.clone(),
        title: cause.title.clone(),
        cases: 0,
        changed: Vec::new(),
        proofs: Vec::new(),
    };
    let mut cases = case::builtin()?;
    cases.extend(beside(&args.file)?);
    for (name, case) in &cases {
        tested.cases += 1;
        tested.changed.extend(changed(name, case, &without, &with));
    }
    for proof in &cause.proof {
        let (found, shown) = match proof {
            CauseProof::Case(name) => by_case(name, &cases, &with, &cause.id),
            CauseProof::Fault(_) => (None, "a fault of the lab; --lab runs it".to_owned()),
        };
        tested.proofs.push(Proof { name: proof.to_string(), found, shown });
    }
    if args.lab {
        by_lab(&mut tested, &args.file)?;
    }
    let fails = tested.proofs.iter().any(|p| p.found == Some(false))
        || tested.changed.iter().any(|c| !c.broken.is_empty());
    if args.json {
        out::document(summary(&tested), &tested)?;
    } else {
        out::print(&told(&tested))?;
    }
    Ok(if fails { ExitCode::Findings } else { ExitCode::Ok })
}

/// Proofs that do not find the cause, and cases that lose their verdict.
fn summary(tested: &Tested) -> Verdict {
    let proofs = tested.proofs.iter().filter(|proof| proof.found == Some(false));
    let proofs = proofs.map(|proof| {
        let sentence = format!("{} does not find {}: {}", proof.name, tested.id, proof.shown);
        VerdictItem::stated(None, &proof.name, sentence)
    });
    let broken = tested.changed.iter().filter(|change| !change.broken.is_empty());
    let broken = broken.map(|change| {
        let sentence = format!("{} loses its verdict: {}", change.case, change.broken.join("; "));
        VerdictItem::stated(None, &change.case, sentence)
    });
    let gap = |proof: &Proof| Gap { what: proof.name.clone().into(), reason: proof.shown.clone() };
    let unseen = tested.proofs.iter().filter(|proof| proof.found.is_none()).map(gap);
    Verdict::stating(proofs.chain(broken), unseen.collect())
}

/// Cases in the folder of the file, and in a folder `cases` there.
fn beside(file: &Path) -> anyhow::Result<Vec<(String, case::Case)>> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut cases = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder.join("cases")) else { return Ok(cases) };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "toml") {
            let text = input::text(&path, input::CASE_BYTES_MAX)?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            cases.push((name, case::parse(&path.display().to_string(), &text)?));
        }
    }
    cases.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(cases)
}

/// The verdict of a case in one line: places and first causes.
fn verdict(diagnosis: &Diagnosis) -> String {
    let causes = |i: usize| diagnosis.findings[i].causes.first().map_or("unknown", |c| c.id.as_str());
    let findings: Vec<String> = (0..diagnosis.findings.len())
        .map(|i| {
            let place = diagnosis.findings[i].places.first();
            let place = place.map_or(String::new(), |p| p.suspect.label(p.direction));
            format!("{place}: {}", causes(i))
        })
        .collect();
    if findings.is_empty() { diagnosis.headline.clone() } else { findings.join("; ") }
}

fn diagnosed(case: &case::Case, knowledge: &Knowledge) -> Diagnosis {
    linerate_report::words::written(case::diagnose(case, knowledge))
}

fn changed(name: &str, case: &case::Case, without: &Knowledge, with: &Knowledge) -> Option<Change> {
    let (before, after) = (diagnosed(case, without), diagnosed(case, with));
    let missed = case::check(case, &before);
    let broken: Vec<String> = case::check(case, &after).into_iter().filter(|w| !missed.contains(w)).collect();
    let (before, after) = (verdict(&before), verdict(&after));
    (before != after || !broken.is_empty()).then(|| Change { case: name.to_owned(), before, after, broken })
}

fn by_case(name: &str, cases: &[(String, case::Case)], with: &Knowledge, id: &str) -> (Option<bool>, String) {
    let Some((_, case)) = cases.iter().find(|(n, _)| n == name) else {
        let shown = "no such case: neither built in nor in a folder `cases` beside the file";
        return (Some(false), shown.to_owned());
    };
    let diagnosis = diagnosed(case, with);
    let found = diagnosis.findings.iter().any(|f| f.causes.first().is_some_and(|c| c.id == id));
    (Some(found), verdict(&diagnosis))
}

/// What `linerate-judge` writes about a run, as far as it is read here.
#[derive(serde::Deserialize)]
struct Judged {
    broken: Vec<Broken>,
    #[serde(default)]
    #[serde(rename = "said")]
    shown: Vec<Said>,
    error: Option<String>,
}

#[derive(serde::Deserialize)]
struct Broken {
    fault: String,
}

#[derive(serde::Deserialize)]
struct Said {
    causes: Vec<Id>,
    sentence: String,
}

#[derive(serde::Deserialize)]
struct Id {
    id: String,
}

impl Judged {
    fn is_of(&self, fault: &str) -> bool {
        self.broken.iter().any(|broken| broken.fault == fault)
    }

    fn names(&self, cause: &str) -> bool {
        self.shown.iter().any(|shown| shown.causes.first().is_some_and(|first| first.id == cause))
    }
}

/// A folder that this user alone can read and write. It is removed with what is in it when this is dropped.
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// Makes one under a name that others cannot foresee. What is there already is never taken.
    fn new(above: &Path) -> anyhow::Result<Self> {
        let random = RandomState::new().hash_one(std::process::id());
        let path = above.join(format!("linerate-knowledge-{random:016x}"));
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // What stays of it harms nothing.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs each fault once in a lab whose operator knows the file.
fn by_lab(tested: &mut Tested, file: &Path) -> anyhow::Result<()> {
    let faults: Vec<String> =
        tested.proofs.iter().filter(|p| p.found.is_none()).map(|p| p.name.clone()).collect();
    if faults.is_empty() {
        return Ok(());
    }
    let program = judge_program()?;
    let folder = PrivateFolder::new(&std::env::temp_dir())?;
    let records = folder.0.join("records");
    out::note(&format!("running {} in the lab, about a minute each …", faults.join(", ")));
    let status = Command::new(&program)
        .args(["run", "--healthy", "0", "--labs", "casebook-a", "--runs", &faults.len().to_string()])
        .arg("--faults")
        .arg(faults.join(","))
        .arg("--json")
        .arg(&records)
        .env("LINERATE_KNOWLEDGE", open::absolute(file))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    // Without a verdict there is no file; the error below says so.
    let text = if records.exists() { input::text(&records, RECORDS_BYTES_MAX)? } else { String::new() };
    let runs: Vec<Judged> =
        text.lines().map(serde_json::from_str).collect::<Result<_, _>>().with_context(|| {
            format!(
                "{} writes records that cannot be read\nhint: linerate-judge has to be of the same version",
                program.display()
            )
        })?;
    anyhow::ensure!(
        !runs.is_empty(),
        "the lab gave no verdict ({status})\nhint: `linerate lab faults` lists the faults"
    );
    for proof in tested.proofs.iter_mut().filter(|p| p.found.is_none()) {
        let Some(run) = runs.iter().find(|run| run.is_of(&proof.name)) else { continue };
        proof.found = Some(run.names(&tested.id));
        let shown = run.shown.first().map_or("nothing was found", |s| s.sentence.as_str());
        proof.shown = run.error.clone().unwrap_or_else(|| shown.to_owned());
    }
    Ok(())
}

fn told(tested: &Tested) -> String {
    let mut lines =
        vec![format!("{}: {}", tested.id, tested.title), "The file is sound.".to_owned(), String::new()];
    lines.push(match tested.changed.len() {
        1 => format!("{} cases: one verdict changes", tested.cases),
        changed => format!("{} cases: {changed} verdicts change", tested.cases),
    });
    for change in &tested.changed {
        lines.push(format!("  {}\n    before: {}\n    after:  {}", change.case, change.before, change.after));
        lines.extend(change.broken.iter().map(|b| format!("    WRONG:  {b}")));
    }
    lines.push(String::new());
    lines.push("Proofs:".to_owned());
    for proof in &tested.proofs {
        let mark = match proof.found {
            Some(true) => "found",
            Some(false) => "NOT FOUND",
            None => "not run",
        };
        lines.push(format!("  {}: {mark}: {}", proof.name, proof.shown));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_folder_of_the_lab_is_new_and_private() {
        let above = tempfile::tempdir().unwrap();
        let (one, other) =
            (PrivateFolder::new(above.path()).unwrap(), PrivateFolder::new(above.path()).unwrap());
        assert_ne!(one.0, other.0);
        let mode = std::fs::symlink_metadata(&one.0).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700);
        std::fs::write(one.0.join("records"), "").unwrap();
        let path = one.0.clone();
        drop(one);
        assert!(!path.exists() && other.0.exists());
        assert!(PrivateFolder::new(&above.path().join("absent")).is_err());
    }
}
