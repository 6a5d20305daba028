//! Program `linerate-lab`: the command line of the lab.
//!
//! In: arguments. Out: a running lab, a judgement, a demonstration; exit codes of `linerate_model::exit`. It never does
//! the work itself.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode as Code;

use clap::{Parser, Subcommand};
use linerate_lab::control::{self, Request};
use linerate_lab::error::{LabError, Result};
use linerate_lab::lab::Lab;
use linerate_lab::topology::Topology;
use linerate_lab::{demo, faults, folder, judge, namespace, simulate, supervisor, way};
use linerate_model::exit::ExitCode;
use linerate_sys::interrupt::Interrupt;
use linerate_sys::{sandbox, tap};

/// Virtual clusters in network namespaces, with faults whose truth is known.
#[derive(Debug, Parser)]
#[command(name = "linerate-lab", version)]
struct Arguments {
    #[command(subcommand)]
    command: Do,
}

#[derive(Debug, Subcommand)]
enum Do {
    /// Build a virtual cluster and keep it running.
    Up {
        /// Lab file, or the name of a built-in lab: casebook-a, three, twelve, far.
        #[arg(long, default_value = "casebook-a")]
        lab: String,
        /// Return when the cluster is ready; `down` ends it.
        #[arg(long)]
        background: bool,
        #[command(flatten)]
        way: By,
    },
    /// Put a fault into the running lab.
    Break {
        /// Name of the fault; `faults` lists them.
        fault: String,
        /// Host, hypervisor, or pair of hosts `a:b`; a random place when absent.
        #[arg(long)]
        at: Option<String>,
        /// Repeats the same choice.
        #[arg(long)]
        seed: Option<u64>,
        #[command(flatten)]
        which: Which,
    },
    /// Undo all faults of the running lab.
    Heal(Which),
    /// End the running lab.
    Down(Which),
    /// Show the running lab.
    Status(Which),
    /// List the faults.
    Faults,
    /// Put faults at random places and see how often linerate is right.
    Judge {
        /// Runs with a fault.
        #[arg(long, default_value_t = 100)]
        runs: usize,
        /// Runs of healthy clusters.
        #[arg(long, default_value_t = 50)]
        healthy: usize,
        /// Repeats the same faults at the same places.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Labs, in turn.
        #[arg(long, value_delimiter = ',', default_value = "three,casebook-a,twelve")]
        labs: Vec<String>,
        #[command(flatten)]
        way: By,
        /// Only these faults.
        #[arg(long, value_delimiter = ',')]
        faults: Vec<String>,
        /// Time budget of each survey: one for each lab in its order, the last for all further ones.
        #[arg(long, value_delimiter = ',', default_value = "22s,22s,36s")]
        time: Vec<String>,
        /// Only a part of the runs, such as 1/2 and 2/2 for two judges at once; join their files and `--resume` the whole.
        #[arg(long, value_name = "K/N", default_value = "1/1", value_parser = part)]
        part: (usize, usize),
        /// Write one line of JSON per run to this file, as each ends.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Go on where this file of `--json` ends.
        #[arg(long, value_name = "FILE", conflicts_with = "json")]
        resume: Option<PathBuf>,
        /// Keep snapshot and verdict of every wrong run in this folder.
        #[arg(long, value_name = "FOLDER")]
        keep_failures: Option<PathBuf>,
    },
    /// Draw large clusters that do not exist, and see how well and how fast bad receivers are found in them.
    Simulate(Simulate),
    /// Show everything once: a broken cluster, the verdict, the remedy, the proof, the truth.
    Demo {
        /// Repeats the same fault at the same place.
        #[arg(long)]
        seed: Option<u64>,
        /// This fault instead of a random one.
        #[arg(long)]
        fault: Option<String>,
        /// Here instead of at a random place.
        #[arg(long, requires = "fault")]
        at: Option<String>,
        /// Where the HTML report goes.
        #[arg(long, value_name = "FILE", default_value = "linerate-demo.html")]
        report: PathBuf,
        /// Time budget of each of the two surveys.
        #[arg(long, default_value = "30s")]
        time: String,
        /// Lab file, or the name of a built-in lab.
        #[arg(long, default_value = "casebook-a")]
        lab: String,
        #[command(flatten)]
        way: By,
    },
}

#[derive(Debug, clap::Args)]
struct By {
    /// How linerate reaches the hosts: netns, or ssh (a real sshd on each host; root only).
    #[arg(long, default_value = "netns")]
    via: String,
}

#[derive(Debug, clap::Args)]
struct Simulate {
    /// Hosts; several sizes, separated by commas, one after the other.
    #[arg(long, value_delimiter = ',', default_value = "10000")]
    hosts: Vec<usize>,
    /// Bad receivers among them.
    #[arg(long, default_value_t = 50)]
    faults: usize,
    /// Tests that each host sends, and receives.
    #[arg(long, default_value_t = 4)]
    rounds: usize,
    /// Percentage of the throughput that is lost at a bad receiver.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=99))]
    lost: u8,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Clusters of each size, each with the next seed.
    #[arg(long, default_value_t = 1)]
    repeat: u64,
    /// Ask the other methods as well.
    #[arg(long)]
    compare: bool,
    /// Print JSON, one line for each cluster.
    #[arg(long)]
    json: bool,
    /// Instead: print what the noise is like in this snapshot of a healthy cluster (`linerate survey --snapshot FILE`); may be given
    /// several times.
    #[arg(long, value_name = "FILE")]
    noise_of: Vec<PathBuf>,
    /// Draw time over tests into this file (SVG).
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Folder of the lab, when more than one is running.
    #[arg(long)]
    folder: Option<PathBuf>,
}

impl Which {
    fn ask(&self, request: &Request) -> Result<ExitCode> {
        let folder = self.folder.clone().map_or_else(folder::running, Ok)?;
        let answer = control::ask(&folder, request)?;
        if answer.done {
            say(answer.text.trim_end());
            return Ok(ExitCode::Ok);
        }
        Err(LabError::Unknown(answer.text))
    }
}

/// Prints a line. Whoever started this may have stopped reading; the work goes on all the same.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Tells how far a long command is.
fn progress(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn warn(error: &LabError) {
    progress(&format!("linerate-lab: {error}"));
}

fn main() -> Code {
    let arguments = Arguments::parse();
    match run(arguments.command) {
        Ok(code) => code.into(),
        Err(LabError::Interrupted) => {
            warn(&LabError::Interrupted);
            ExitCode::Interrupted.into()
        }
        Err(error) => {
            warn(&error);
            ExitCode::CouldNotRun.into()
        }
    }
}

fn run(command: Do) -> Result<ExitCode> {
    match command {
        Do::Up { lab, background: true, way } => {
            say(supervisor::start_in_background(&lab, &way.via)?.trim_end());
            Ok(ExitCode::Ok)
        }
        Do::Up { lab, background: false, way } => up(&lab, &way.via),
        Do::Break { fault, at, seed, which } => {
            which.ask(&Request::Break { fault, at, seed: seed.unwrap_or_else(random_seed) })
        }
        Do::Heal(which) => which.ask(&Request::Heal),
        Do::Down(which) => which.ask(&Request::Down),
        Do::Status(which) => which.ask(&Request::Status),
        Do::Faults => {
            for fault in faults::ALL {
                let root = if fault.needs_root() { " (root only)" } else { "" };
                say(&format!("{:25} {}{root}", fault.name(), fault.summary()));
            }
            Ok(ExitCode::Ok)
        }
        Do::Judge { runs, healthy, seed, labs, way, faults, time, part, json, resume, keep_failures } => {
            let fresh = json.as_ref().filter(|path| path.exists());
            if let Some(path) = fresh {
                return Err(LabError::Unknown(format!(
                    "{} exists\nhint: --resume goes on with it",
                    path.display()
                )));
            }
            judge_runs(&judge::Options {
                runs,
                healthy,
                seed,
                labs,
                via: way.via,
                faults,
                time,
                part,
                records: json.or(resume),
                failures: keep_failures,
                root: sandbox::is_root(),
            })
        }
        Do::Simulate(wanted) => simulate_all(&wanted),
        Do::Demo { seed, fault, at, report, time, lab, way } => {
            let seed = seed.unwrap_or_else(|| random_seed() % 1_000_000);
            let (via, root) = (way.via, sandbox::is_root());
            let options = demo::Options { lab, seed, via, fault, at, report, time, root };
            let interrupt = prepare()?;
            demo::demo(&options, &interrupt)
        }
    }
}

fn noise_of(files: &[PathBuf]) -> Result<ExitCode> {
    let mut snapshots = Vec::new();
    for path in files {
        let text = std::fs::read(path).map_err(LabError::at(format!("reading {}", path.display())))?;
        let snapshot = serde_json::from_slice(&text).map_err(|error| {
            LabError::Unknown(format!(
                "{}: {error}\nhint: `linerate survey --snapshot FILE` writes one",
                path.display()
            ))
        })?;
        snapshots.push(snapshot);
    }
    let Some(noise) = simulate::noise::of(&snapshots) else {
        return Err(LabError::Unknown("no transfer was measured twice between the same ends".into()));
    };
    say(&format!(
        "{} transfers: scale {:.3}, disturbed {:.1} % by {:.2} on average, hosts {:.3}; could not run {:.2} %",
        noise.tests,
        noise.test_sigma,
        100.0 * noise.disturbed,
        noise.disturbance,
        noise.host_sigma,
        100.0 * noise.refused
    ));
    Ok(ExitCode::Ok)
}

fn simulate_all(wanted: &Simulate) -> Result<ExitCode> {
    if !wanted.noise_of.is_empty() {
        return noise_of(&wanted.noise_of);
    }
    let knowledge =
        linerate_diagnose::Knowledge::builtin().map_err(|error| LabError::Unknown(error.to_string()))?;
    let mut runs = Vec::new();
    for hosts in &wanted.hosts {
        // More bad hosts than this are no exception any more.
        if wanted.faults * 4 > *hosts || *hosts > simulate::HOSTS_MAX || !(1..=64).contains(&wanted.rounds) {
            return Err(LabError::Unknown(format!(
                "{} bad of {hosts} hosts, {} rounds: at most a quarter may be bad, at most {} hosts, 1 to 64 rounds",
                wanted.faults,
                wanted.rounds,
                simulate::HOSTS_MAX
            )));
        }
        let size = simulate::Size {
            hosts: *hosts,
            faults: wanted.faults,
            rounds: wanted.rounds,
            lost: f64::from(wanted.lost) / 100.0,
        };
        for seed in wanted.seed..wanted.seed.saturating_add(wanted.repeat) {
            progress(&format!("{hosts} hosts, seed {seed}"));
            let run = simulate::run(size, seed, &knowledge, wanted.compare);
            if wanted.json {
                say(&serde_json::to_string(&run).map_err(|error| LabError::Unknown(error.to_string()))?);
            }
            runs.push(run);
        }
    }
    if !wanted.json {
        say(simulate::table(&runs).trim_end());
        if wanted.compare {
            say(&format!("\n{}", simulate::legend().trim_end()));
        }
    }
    if let Some(path) = &wanted.plot {
        std::fs::write(path, simulate::picture(&runs))
            .map_err(LabError::at(&format!("writing {}", path.display())))?;
    }
    Ok(ExitCode::Ok)
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

fn judge_runs(options: &judge::Options) -> Result<ExitCode> {
    let interrupt = prepare()?;
    let records = judge::judge(options, &interrupt, &mut progress)?;
    let (table, met) = judge::table::table(&records);
    say(&table);
    Ok(if met { ExitCode::Ok } else { ExitCode::Findings })
}

/// Rights, signals and programs: what every command needs that builds a cluster. Must run before any thread starts.
fn prepare() -> Result<Interrupt> {
    if !sandbox::is_root() {
        sandbox::become_root_of_a_new_world().map_err(|source| LabError::NoRights { source })?;
    }
    let interrupt = Interrupt::new().map_err(LabError::at("blocking the stop signals"))?;
    namespace::check_programs()?;
    tap::is_usable().map_err(|source| LabError::NoTun { source })?;
    Ok(interrupt)
}

fn up(lab: &str, via: &str) -> Result<ExitCode> {
    let topology = Topology::load(lab)?;
    let user_namespace = !sandbox::is_root();
    let interrupt = prepare()?;
    let mut lab = Lab::up_via(topology, way::find(via)?)?;
    if user_namespace {
        say(&format!(
            "this lab belongs to you alone; enter it with: nsenter --preserve-credentials -U -n -m -t {}",
            std::process::id()
        ));
    }
    let by_signal = supervisor::serve(&mut lab, &interrupt)?;
    Ok(if by_signal { ExitCode::Interrupted } else { ExitCode::Ok })
}

fn random_seed() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
