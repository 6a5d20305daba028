//! Program `linerate-lab`: the command line of the lab.
//!
//! In: arguments. Out: a running lab, a demonstration; exit codes of `linerate_model::exit`. It never does
//! the work itself.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode as Code;

use clap::{Parser, Subcommand};
use linerate_lab::control::{self, LabRequest};
use linerate_lab::error::{LabError, Result};
use linerate_lab::lab::{Lab, prepare};
use linerate_lab::topology::Topology;
use linerate_lab::{access, demo, faults, folder, supervisor, vm};
use linerate_model::exit::ExitCode;
use linerate_sys::sandbox;

/// Run virtual clusters in network namespaces and inject known faults.
#[derive(Debug, Parser)]
#[command(name = "linerate-lab", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a virtual cluster and keep it running.
    Up {
        /// Lab file, or the name of a built-in lab: two, three, casebook-a, twelve, twenty-four, mixed, far.
        #[arg(long, default_value = "casebook-a")]
        lab: String,
        /// Return when the cluster is ready; stop it with `down`.
        #[arg(long)]
        background: bool,
        #[command(flatten)]
        transport: Transport,
    },
    /// Inject a fault into the running lab.
    Break {
        /// Fault name, as listed by `faults`.
        fault: String,
        /// Fault target: host, hypervisor, or pair of hosts `a:b`; defaults to a random target.
        #[arg(long)]
        at: Option<String>,
        /// Seed of the random target; repeats the same choice.
        #[arg(long)]
        seed: Option<u64>,
        #[command(flatten)]
        which: Which,
    },
    /// Undo all faults of the running lab.
    Heal(Which),
    /// Stop the running lab.
    Down(Which),
    /// Show the state of the running lab.
    Status(Which),
    /// List the faults.
    Faults,
    /// Run emulated machines with injected drive and link faults.
    Vm(vm::command::Args),
    /// Demonstrate a full cycle: a broken cluster, the verdict, the fix, the proof, the actual fault.
    Demo {
        /// Seed; repeats the same fault at the same target.
        #[arg(long)]
        seed: Option<u64>,
        /// Inject a random fault at a random target.
        #[arg(long, conflicts_with = "fault")]
        random: bool,
        /// Inject this fault instead of the default, receive offload of a hypervisor.
        #[arg(long)]
        fault: Option<String>,
        /// Inject the fault at this target instead of a random one.
        #[arg(long, requires = "fault")]
        at: Option<String>,
        /// Output file of the HTML report.
        #[arg(long, value_name = "FILE", default_value = "linerate-demo.html")]
        report: PathBuf,
        /// Time budget of each of the two surveys.
        #[arg(long, default_value = "30s")]
        time: String,
        /// Lab file, or the name of a built-in lab.
        #[arg(long, default_value = demo::STORY_LAB)]
        lab: String,
        #[command(flatten)]
        transport: Transport,
    },
}

#[derive(Debug, clap::Args)]
struct Transport {
    /// Transport to the hosts: netns, or ssh (a real sshd on each host; root only).
    #[arg(long, default_value = "netns")]
    via: String,
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Folder of the lab; required if more than one is running.
    #[arg(long)]
    folder: Option<PathBuf>,
}

impl Which {
    fn ask(&self, request: &LabRequest) -> Result<ExitCode> {
        let folder = self.folder.clone().map_or_else(folder::running, Ok)?;
        let answer = control::ask(&folder, request)?;
        if answer.done {
            print(answer.text.trim_end());
            return Ok(ExitCode::Ok);
        }
        Err(LabError::Unknown(answer.text))
    }
}

/// Prints a line. The reader may have closed the pipe; the work continues.
fn print(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints the progress of a long command.
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

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Up { lab, background: true, transport } => {
            print(
                supervisor::start_in_background(&["up", "--lab", &lab, "--via", &transport.via])?.trim_end(),
            );
            Ok(ExitCode::Ok)
        }
        Command::Up { lab, background: false, transport } => up(&lab, &transport.via),
        Command::Break { fault, at, seed, which } => {
            which.ask(&LabRequest::Break { fault, at, seed: seed.unwrap_or_else(random_seed) })
        }
        Command::Heal(which) => which.ask(&LabRequest::Heal),
        Command::Down(which) => which.ask(&LabRequest::Down),
        Command::Status(which) => which.ask(&LabRequest::Status),
        Command::Faults => {
            for fault in faults::ALL {
                let root = if fault.about().needs_root { " (root only)" } else { "" };
                print(&format!("{:25} {}{root}", fault.about().name, fault.about().summary));
            }
            Ok(ExitCode::Ok)
        }
        Command::Vm(args) => vm::command::run(args, &mut print, &mut progress),
        Command::Demo { seed, random, fault, at, report, time, lab, transport } => {
            let seed = seed.unwrap_or_else(|| random_seed() % 1_000_000);
            let (via, root) = (transport.via, sandbox::is_root());
            let options = demo::DemoOptions { lab, seed, via, random, fault, at, report, time, root };
            let interrupt = prepare()?;
            demo::demo(&options, &interrupt)
        }
    }
}

fn up(lab: &str, via: &str) -> Result<ExitCode> {
    let topology = Topology::load(lab)?;
    let user_namespace = !sandbox::is_root();
    let interrupt = prepare()?;
    let mut lab = Lab::up_via(topology, access::find(via)?)?;
    if user_namespace {
        print(&format!(
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
