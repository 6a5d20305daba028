//! The table of what power cuts leave: file systems, kinds of drives and patterns of writing, made with real
//! cuts in an emulated guest.
//!
//! In: the VM lab, programs of now. Out: Markdown on stdout, the report of every check as a line of JSON in a
//! file. Nothing of this machine is touched; the guest's drive is a file in the lab's folder.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use linerate_lab::vm::disk::{Cache, Keep};
use linerate_lab::vm::lab::VmLab;
use linerate_lab::vm::topology::VmTopology;
use linerate_model::durability::{DurabilityReport, Fate, PatternFate, Promised};

use crate::shell::{cargo, target_debug};

/// The drive is large enough for every pattern, and small enough to be made anew in a moment.
const LAB: &str = "name = \"vm-durability\"\n[[guest]]\nname = \"one\"\nmemory_mib = 384\n[[guest.drives]]\nname = \"test\"\nsize_mib = 512\n";
const FILESYSTEMS: [(&str, &[&str]); 3] = [
    ("xfs", &["mkfs.xfs", "-q", "-f"]),
    ("ext4", &["mkfs.ext4", "-q", "-F"]),
    ("btrfs", &["mkfs.btrfs", "-q", "-f"]),
];
/// Longest time for the records of a case under emulation.
const CASE_MAX: Duration = Duration::from_secs(180);

/// A kind of drive and of cut.
struct Cut {
    name: &'static str,
    words: &'static str,
    cache: Cache,
    keep: Keep,
}

const CUTS: [Cut; 4] = [
    Cut {
        name: "machine",
        words: "the machine dies, the drive keeps its power: every write that it acknowledged is there",
        cache: Cache::None,
        keep: Keep::All,
    },
    Cut {
        name: "cache",
        words: "the drive has a volatile cache and does what it is asked: what was not flushed is gone",
        cache: Cache::Volatile,
        keep: Keep::Nothing,
    },
    Cut {
        name: "order",
        words: "the same, and a random half of what was not flushed is there: writes reached the medium in another order",
        cache: Cache::Volatile,
        keep: Keep::Half,
    },
    Cut {
        name: "lying",
        words: "the drive acknowledges flushes and does not do them; a random half is there",
        cache: Cache::Lying,
        keep: Keep::Half,
    },
];

/// Makes the table, of one file system where only one is wanted.
pub(crate) fn run(records: u32, seed: u64, only: Option<&str>, reports: &Path) -> Result<()> {
    let known = FILESYSTEMS.map(|(name, _)| name);
    if let Some(unknown) = only.filter(|only| !known.contains(only)) {
        bail!("{unknown} is not in the table; known are {}", known.join(", "));
    }
    if let Some(reason) = linerate_lab::vm::missing() {
        bail!("no guests can be had: {reason}");
    }
    let built = cargo().args(["build", "--quiet", "-p", "linerate", "-p", "linerate-node"]).status()?;
    ensure!(built.success(), "the programs do not build");
    let topology = VmTopology::parse(LAB, Path::new("vm-durability"))?;
    let mut lab = VmLab::up(topology, None, &mut |line| eprintln!("{line}"))?;
    let node = lighter(lab.folder());
    let mut text = String::new();
    for cut in &CUTS {
        let _ = writeln!(text, "- **{}**: {}", cut.name, cut.words);
    }
    fs::write(reports, "")?;
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    for (number, (filesystem, make)) in FILESYSTEMS.iter().enumerate().filter(|(_, (name, _))| wanted(name)) {
        let mut cases = Vec::new();
        for (at, cut) in CUTS.iter().enumerate() {
            let began = Instant::now();
            let seed = seed + (number * CUTS.len() + at) as u64;
            let case = case(&mut lab, &node, (filesystem, make), cut, records, seed);
            let case = case.with_context(|| format!("{filesystem}, {}", cut.name))?;
            let line = match &case {
                Ok(report) => {
                    serde_json::json!({ "filesystem": filesystem, "cut": cut.name, "seed": seed, "report": report })
                }
                Err(why) => {
                    serde_json::json!({ "filesystem": filesystem, "cut": cut.name, "seed": seed, "failed": why })
                }
            };
            let before = fs::read_to_string(reports)?;
            fs::write(reports, format!("{before}{line}\n"))?;
            eprintln!("{filesystem}, {}: {:.0} s", cut.name, began.elapsed().as_secs_f64());
            cases.push((cut, case));
        }
        text.push_str(&table(filesystem, &cases));
    }
    print!("{text}");
    Ok(())
}

/// The node program without what only debuggers read.
fn lighter(folder: &Path) -> PathBuf {
    let (node, light) = (target_debug().join("linerate-node"), folder.join("linerate-node"));
    let stripped = Command::new("strip").arg("-o").arg(&light).arg(&node).status();
    if stripped.is_ok_and(|status| status.success()) { light } else { node }
}

fn linerate(lab: &VmLab, node: &Path) -> Command {
    let (variable, value) = lab.environment();
    let mut command = Command::new(target_debug().join("linerate"));
    command.args(["disk", "durability"]).env(variable, value).env("LINERATE_NODE", node);
    command.env("LINERATE_DATA", lab.folder().join("data"));
    command
}

/// A child that ends with its case, also when that failed.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One file system, one cut. The inner error is the file system's: it could not be mounted any more.
fn case(
    lab: &mut VmLab,
    node: &Path,
    (filesystem, make): (&str, &[&str]),
    cut: &Cut,
    records: u32,
    seed: u64,
) -> Result<std::result::Result<Box<DurabilityReport>, String>> {
    let drive = lab.guest("one")?.drive("test1")?.clone();
    drive.behave(|b| b.cache = Cache::None)?;
    lab.exec("one", &["modprobe", filesystem])?;
    lab.exec("one", &[make, &["/dev/sda"][..]].concat())?;
    lab.exec("one", &["mount", "-t", filesystem, "/dev/sda", "/mnt"])?;
    lab.exec("one", &["sync"])?;
    drive.behave(|b| b.cache = cut.cache)?;
    let list = lab.folder().join(format!("{filesystem}-{}.jsonl", cut.name));
    let inventory = lab.inventory();
    let write = linerate(lab, node)
        .args([
            "write",
            "/mnt/test",
            "--on",
            "one",
            "--rate",
            "400",
            "--time",
            "120",
            "--files",
            "40",
            "--records",
        ])
        .arg((records * 2).to_string())
        .arg("-i")
        .arg(&inventory)
        .arg("--promises")
        .arg(&list)
        .stderr(Stdio::null())
        .spawn()?;
    let mut write = Ends(write);
    let begun = Instant::now();
    while promised(&list) < records {
        ensure!(begun.elapsed() < CASE_MAX, "{} of {records} records in {CASE_MAX:?}", promised(&list));
        ensure!(write.0.try_wait()?.is_none(), "writing ended after {} records", promised(&list));
        std::thread::sleep(Duration::from_millis(20));
    }
    lab.power_cut("one", cut.keep, seed)?;
    // It hears of the loss by itself.
    write.0.wait()?;
    drive.behave(|b| b.cache = Cache::None)?;
    lab.boot("one")?;
    lab.exec("one", &["modprobe", filesystem])?;
    if let Err(error) = lab.exec("one", &["mount", "-t", filesystem, "/dev/sda", "/mnt"]) {
        return Ok(Err(error.to_string()));
    }
    let output = linerate(lab, node)
        .args(["check", "--json", "--on", "one", "-i"])
        .arg(&inventory)
        .arg("--promises")
        .arg(&list)
        .output()?;
    lab.exec("one", &["umount", "/mnt"])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match serde_json::from_slice(&output.stdout) {
        Ok(report) => Ok(Ok(Box::new(report))),
        // A folder that had been synchronised and is gone.
        Err(_) => Ok(Err(said)),
    }
}

/// Records that a list promises by now.
fn promised(list: &Path) -> u32 {
    let text = fs::read_to_string(list).unwrap_or_default();
    let number = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        u32::try_from(line.get("promised")?.as_u64()?).ok()
    };
    text.lines().rev().find_map(number).unwrap_or(0)
}

type Case<'a> = (&'a Cut, std::result::Result<Box<DurabilityReport>, String>);

fn table(filesystem: &str, cases: &[Case<'_>]) -> String {
    let names: Vec<&str> = cases.iter().map(|(cut, _)| cut.name).collect();
    let mut text = format!("\n## {filesystem}\n\n| pattern | promised | {} |\n", names.join(" | "));
    let _ = writeln!(text, "| --- | --- |{}", " --- |".repeat(cases.len()));
    let Some(first) = cases.iter().find_map(|(_, case)| case.as_ref().ok()) else { return text };
    for (at, pattern) in first.patterns.iter().enumerate() {
        let cell = |(_, case): &Case<'_>| match case {
            Ok(report) => report.patterns.get(at).map_or_else(String::new, cell),
            Err(_) => "**unusable**".to_owned(),
        };
        let promised = match pattern.pattern.promised {
            Promised::Nothing => "nothing",
            Promised::Content => "data",
            Promised::All => "all",
        };
        let cells: Vec<String> = cases.iter().map(cell).collect();
        let _ = writeln!(text, "| {} | {promised} | {} |", pattern.pattern.name, cells.join(" | "));
    }
    for (cut, case) in cases {
        if let Err(why) = case {
            let _ = writeln!(
                text,
                "\n{}: {}",
                cut.name,
                why.lines().find(|line| line.starts_with("error")).unwrap_or(why)
            );
        }
    }
    text
}

/// `all 60`, or the losses of a pattern; in bold what had been promised.
fn cell(pattern: &PatternFate) -> String {
    let count = |fate: &Fate| pattern.fates.get(fate).copied().unwrap_or(0);
    let words = |fate: Fate| format!("{fate:?}").to_lowercase().replace("namelost", "no name");
    let losses: Vec<String> = Fate::LOSSES
        .into_iter()
        .filter(|fate| count(fate) > 0)
        .map(|fate| format!("{} {}", words(fate), count(&fate)))
        .collect();
    if losses.is_empty() {
        return format!("all {}", pattern.files);
    }
    let text = format!("{} of {}", losses.join(", "), pattern.files);
    if pattern.broken > 0 { format!("**{text}**") } else { text }
}
