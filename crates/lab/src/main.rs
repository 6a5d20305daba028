//! Program `linerate-lab`: the command line of the lab.
//!
//! In: arguments. Out: a running lab, a judgement, a demonstration; exit codes of `linerate_model::exit`. It never does
//! the work itself.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;
use std::process::ExitCode as Code;

use clap::{Parser, Subcommand};
use linerate_lab::control::{self, Request};
use linerate_lab::error::{LabError, Result};
use linerate_lab::lab::Lab;
use linerate_lab::topology::Topology;
use linerate_lab::{faults, folder, namespace, supervisor};
use linerate_model::exit::ExitCode;
use linerate_sys::interrupt::Interrupt;
use linerate_sys::sandbox;

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
            println!("{}", answer.text.trim_end());
            return Ok(ExitCode::Ok);
        }
        Err(LabError::Unknown(answer.text))
    }
}

fn main() -> Code {
    let arguments = Arguments::parse();
    match run(arguments.command) {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("linerate-lab: {error}");
            ExitCode::CouldNotRun.into()
        }
    }
}

fn run(command: Do) -> Result<ExitCode> {
    match command {
        Do::Up { lab, background: true } => {
            println!("{}", supervisor::start_in_background(&lab)?.trim_end());
            Ok(ExitCode::Ok)
        }
        Do::Up { lab, background: false } => up(&lab),
        Do::Break { fault, at, seed, which } => {
            which.ask(&Request::Break { fault, at, seed: seed.unwrap_or_else(random_seed) })
        }
        Do::Heal(which) => which.ask(&Request::Heal),
        Do::Down(which) => which.ask(&Request::Down),
        Do::Status(which) => which.ask(&Request::Status),
        Do::Faults => {
            for fault in faults::ALL {
                let root = if fault.needs_root() { " (root only)" } else { "" };
                println!("{:25} {}{root}", fault.name(), fault.summary());
            }
            Ok(ExitCode::Ok)
        }
    }
}

/// Rights, signals and programs: what every command needs that builds a cluster. Must run before any thread starts.
fn prepare() -> Result<Interrupt> {
    if !sandbox::is_root() {
        sandbox::become_root_of_a_new_world().map_err(|source| LabError::NoRights { source })?;
    }
    let interrupt = Interrupt::new().map_err(LabError::at("blocking the stop signals"))?;
    namespace::check_programs()?;
    Ok(interrupt)
}

fn up(lab: &str) -> Result<ExitCode> {
    let topology = Topology::load(lab)?;
    let user_namespace = !sandbox::is_root();
    let interrupt = prepare()?;
    let mut lab = Lab::up(topology)?;
    if user_namespace {
        println!(
            "this lab belongs to you alone; enter it with: nsenter --preserve-credentials -U -n -m -t {}",
            std::process::id()
        );
    }
    let by_signal = supervisor::serve(&mut lab, &interrupt)?;
    Ok(if by_signal { ExitCode::Interrupted } else { ExitCode::Ok })
}

fn random_seed() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
