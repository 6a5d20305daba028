//! Requests to a disk against fio with the same features: io_uring, memory and file that the kernel knows
//! beforehand, the same depth and size. What is compared is requests per CPU second: the difference of two
//! runs of different length, so that starting and filling cancel. The contenders take turns within each
//! round, and the ratio is that of the same round.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use linerate_sys::spawn;
use serde_json::{Value, json};

use super::{stats, table};
use crate::shell::{sh, target_release};

/// Options of the benchmark.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Rounds; each contender has one turn in each.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Folder for the file; it should be on a disk.
    #[arg(long = "in", default_value = "/var/tmp")]
    folder: PathBuf,
    /// A block device to read as well, such as a zram with something in it.
    #[arg(long)]
    device: Option<PathBuf>,
    /// Seconds of the long run; the short one takes one.
    #[arg(long, default_value_t = 4)]
    seconds: u32,
    /// Only cases whose name contains this.
    #[arg(long)]
    only: Option<String>,
}

/// Size of the file.
const FILE_BYTES: u64 = 512 << 20;

/// Between two looks at a program that ends.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What is asked of both.
struct Case {
    name: String,
    path: PathBuf,
    reads: bool,
    random: bool,
    block_bytes: u32,
    depth: u16,
    /// fio without its clock, so without any latency; ours measures it always.
    fast: bool,
    batch: u16,
}

/// What a run did.
#[derive(Clone, Copy)]
struct Run {
    requests: f64,
    cpu_s: f64,
    seconds: f64,
}

/// Builds the node program optimised, has fio installed, and compares.
pub(super) fn run(options: &Options) -> Result<()> {
    ensure!(options.seconds >= 2 && options.rounds > 0, "two seconds and one round are needed");
    if Command::new("fio").arg("--version").output().is_err() {
        sh("apt-get", &["install", "--yes", "--no-install-recommends", "fio"])?;
    }
    sh("cargo", &["build", "--release", "--locked", "-p", "linerate-node"])?;
    let file = Scratch::new(&options.folder)?;
    let mut rows = Vec::new();
    for case in cases(options, &file.0) {
        if options.only.as_ref().is_some_and(|only| !case.name.contains(only)) {
            continue;
        }
        rows.push(compare(options, &case)?);
        println!("{}", rows.last().map(|row| row.join("  ")).unwrap_or_default());
    }
    let head = ["case", "linerate k/CPU s", "fio k/CPU s", "ratio", "wall linerate k/s", "wall fio k/s"];
    println!("\n{}", table::markdown(&head, &rows));
    println!(
        "ratio: requests per CPU second of linerate over those of fio in the same round; median (smallest-largest)"
    );
    Ok(())
}

fn cases(options: &Options, file: &Path) -> Vec<Case> {
    let case = |name: &str, path: &Path, reads, random, block_bytes, depth| Case {
        name: name.to_owned(),
        path: path.to_owned(),
        reads,
        random,
        block_bytes,
        depth,
        fast: false,
        batch: 1,
    };
    let mut all = vec![
        case("file, random read 4k x32", file, true, true, 4096, 32),
        case("file, random read 4k x1", file, true, true, 4096, 1),
        case("file, random write 4k x32", file, false, true, 4096, 32),
        case("file, seq read 128k x8", file, true, false, 128 << 10, 8),
    ];
    if let Some(device) = &options.device {
        all.push(case("device, random read 4k x32", device, true, true, 4096, 32));
        all.push(case("device, random read 4k x1", device, true, true, 4096, 1));
        all.push(Case {
            fast: true,
            batch: 16,
            ..case(
                "device, random read 4k x32, batches of 16, fio without latency",
                device,
                true,
                true,
                4096,
                32,
            )
        });
    }
    all
}

fn compare(options: &Options, case: &Case) -> Result<Vec<String>> {
    let (mut ours, mut theirs, mut walls) = (Vec::new(), Vec::new(), (Vec::new(), Vec::new()));
    for round in 0..options.rounds {
        // Who begins changes with the round.
        let (mine, other) = if round % 2 == 0 {
            let mine = both(options, case, linerate)?;
            (mine, both(options, case, fio)?)
        } else {
            let other = both(options, case, fio)?;
            (both(options, case, linerate)?, other)
        };
        ours.push(Some(mine.requests / mine.cpu_s / 1e3));
        theirs.push(Some(other.requests / other.cpu_s / 1e3));
        walls.0.push(mine.requests / mine.seconds / 1e3);
        walls.1.push(other.requests / other.seconds / 1e3);
    }
    let cell = |values: &[Option<f64>]| table::cell(stats::spread(values.iter().flatten().copied()));
    Ok(vec![
        case.name.clone(),
        cell(&ours),
        cell(&theirs),
        table::cell(stats::paired(&ours, &theirs)),
        table::cell(stats::spread(walls.0)),
        table::cell(stats::spread(walls.1)),
    ])
}

/// What a long run did beyond a short one.
fn both(options: &Options, case: &Case, one: fn(&Case, u32) -> Result<Run>) -> Result<Run> {
    let (short, long) = (one(case, 1)?, one(case, options.seconds)?);
    let run = Run {
        requests: long.requests - short.requests,
        cpu_s: long.cpu_s - short.cpu_s,
        seconds: long.seconds - short.seconds,
    };
    ensure!(
        run.requests > 0.0 && run.cpu_s > 0.0,
        "{}: the long run did no more than the short one",
        case.name
    );
    Ok(run)
}

fn linerate(case: &Case, seconds: u32) -> Result<Run> {
    let target = if case.reads {
        json!({ "existing": { "path": case.path } })
    } else {
        let folder = case.path.parent().context("the file has a folder")?;
        json!({ "folder": { "path": folder, "bytes": FILE_BYTES } })
    };
    let phase = json!({
        "random": case.random, "reads": if case.reads { 100 } else { 0 }, "block_bytes": case.block_bytes,
        "depth": case.depth, "threads": 1, "direct": true, "batch": case.batch,
    });
    let token = [7_u8; 16];
    let spec = json!({
        "kind": { "disk": { "target": target, "phases": [phase], "phase_ms": seconds * 1000, "way": "io_uring" } },
        "role": { "sender": { "peer": "127.0.0.1:1" } }, "bind": "127.0.0.1", "token": token,
        "deadline_ms": 120_000,
    });
    let program = target_release().join("linerate-node");
    let (said, cpu_s) = ended(Command::new(program).arg("load"), &spec.to_string())?;
    let report: Value = serde_json::from_str(said.trim()).context("linerate-node printed no report")?;
    ensure!(report["stopped"].is_null(), "linerate-node stopped: {}", report["stopped"]);
    let phase = &report["disk"]["phases"][0];
    let count = |way: &str| phase[way]["requests"].as_f64().unwrap_or(0.0);
    let elapsed = phase["elapsed_s"].as_f64().context("no time")?;
    Ok(Run { requests: count("read") + count("write"), cpu_s, seconds: elapsed })
}

fn fio(case: &Case, seconds: u32) -> Result<Run> {
    let order = match (case.random, case.reads) {
        (true, true) => "randread",
        (true, false) => "randwrite",
        (false, true) => "read",
        (false, false) => "write",
    };
    let mut command = Command::new("fio");
    command
        .args([
            "--name=a",
            "--ioengine=io_uring",
            "--direct=1",
            "--fixedbufs=1",
            "--registerfiles=1",
            "--thread=1",
        ])
        .args([
            "--time_based=1",
            "--invalidate=0",
            "--norandommap=1",
            "--randrepeat=1",
            "--output-format=json",
        ])
        .arg(format!("--rw={order}"))
        .arg(format!("--bs={}", case.block_bytes))
        .arg(format!("--iodepth={}", case.depth))
        .arg(format!("--runtime={seconds}"));
    if case.reads {
        command.arg(format!("--filename={}", case.path.display())).arg("--readonly");
    } else {
        let folder = case.path.parent().context("the file has a folder")?;
        command.arg(format!("--directory={}", folder.display())).arg(format!("--size={FILE_BYTES}"));
        command.args(["--overwrite=1", "--unlink=1"]);
    }
    if case.fast {
        command.args(["--gtod_reduce=1"]);
    }
    if case.batch > 1 {
        let batch = case.batch;
        command.args([
            format!("--iodepth_batch={batch}"),
            format!("--iodepth_batch_complete_min={batch}"),
            format!("--iodepth_batch_complete_max={}", case.depth),
        ]);
    }
    let (said, cpu_s) = ended(&mut command, "")?;
    // fio may put remarks before its JSON.
    let start = said.find('{').context("fio printed no JSON")?;
    let report: Value =
        serde_json::from_str(said.get(start..).unwrap_or_default()).context("fio printed no JSON")?;
    let job = &report["jobs"][0];
    ensure!(job["error"] == 0, "fio failed: {}", job["error"]);
    let way = if case.reads { "read" } else { "write" };
    let number = |key: &str| job[way][key].as_f64().with_context(|| format!("fio said no {key}"));
    Ok(Run { requests: number("total_ios")?, cpu_s, seconds: number("runtime")? / 1e3 })
}

/// Runs a program with this on its stdin; what it printed, and the CPU time of all its threads as the kernel
/// counts it.
fn ended(command: &mut Command, stdin: &str) -> Result<(String, f64)> {
    let what = format!("{command:?}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {what}"))?;
    child.stdin.take().context("stdin is a pipe")?.write_all(stdin.as_bytes())?;
    let mut said = String::new();
    child.stdout.take().context("stdout is a pipe")?.read_to_string(&mut said)?;
    // It closed its output, so that it ends now.
    let (status, cost) = loop {
        if let Some(end) = spawn::try_wait_cost(&child)? {
            break end;
        }
        std::thread::sleep(LOOK_AGAIN);
    };
    ensure!(status.success(), "{what}: {status}: {said}");
    Ok((said, cost.as_secs_f64()))
}

/// A file full of chance, gone at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(folder: &Path) -> Result<Self> {
        let path = folder.join(format!("linerate-xtask-bench-{}", std::process::id()));
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
        let scratch = Self(path);
        let mut source = std::fs::File::open("/dev/urandom")?.take(FILE_BYTES);
        std::io::copy(&mut source, &mut file)?;
        file.sync_all()?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
