//! Program `linerate-judge`: the command line of the judge.
//!
//! In: arguments. Out: tables; exit codes of `linerate_model::exit`. It never does the work itself.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode as Code;

use clap::{Parser, Subcommand};
use linerate_diagnose::rules::Rules;
use linerate_judge::{command, keep, leave_out, over_time, reliability, rules, simulate};
use linerate_lab::error::{LabError, Result};
use linerate_lab::lab::prepare;
use linerate_model::exit::ExitCode;
use linerate_sys::sandbox;

/// Measure linerate's accuracy: virtual clusters with known faults, kept runs, simulations.
#[derive(Debug, Parser)]
#[command(name = "linerate-judge", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Inject faults at random targets and report linerate's accuracy.
    Run {
        #[command(flatten)]
        wanted: Box<command::RunArgs>,
    },
    /// Simulate large clusters; report accuracy and time of finding bad receivers.
    Simulate {
        #[command(flatten)]
        wanted: simulate::command::SimulateArgs,
    },
    /// Draw clusters over weeks; report which changes are found, and how many that were not made.
    History {
        #[command(flatten)]
        wanted: over_time::OverTimeArgs,
    },
    /// Halve and double every number of the reasoning; count the verdicts that change, as Markdown.
    Rules {
        /// Also use the runs kept by `run --keep` in these folders.
        #[arg(long, value_name = "FOLDER", value_delimiter = ',')]
        kept: Vec<PathBuf>,
        /// Instead judge all evidence once for each cause, without its file; report what is claimed then.
        #[arg(long)]
        leave_out: bool,
    },
}

/// Prints a line of the result. The reader may have closed the pipe; the work continues.
fn print(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints the progress of a long command.
fn progress(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn main() -> Code {
    let failed = match run(Arguments::parse().command) {
        Ok(code) => return code.into(),
        Err(error) => error,
    };
    progress(&format!("linerate-judge: {failed}"));
    match failed {
        LabError::Interrupted => ExitCode::Interrupted.into(),
        _ => ExitCode::CouldNotRun.into(),
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run { wanted } if !wanted.measures() => wanted.again(&mut print, &mut progress),
        Command::Run { wanted } => {
            let root = sandbox::is_root();
            let interrupt = prepare()?;
            wanted.judge(root, &interrupt, &mut print, &mut progress)
        }
        Command::Simulate { wanted } => simulate::command::run(&wanted, &mut print, &mut progress),
        Command::History { wanted } => {
            over_time::run(&wanted, &mut print);
            Ok(ExitCode::Ok)
        }
        Command::Rules { kept, leave_out: true } => {
            let found = leave_out::all(&kept, &Rules::DEFAULT)?;
            print(leave_out::table(&found, &mut progress).trim_end());
            let mut records = keep::again(&kept, &Rules::DEFAULT, &mut |_| {})?;
            records.extend(found.into_iter().filter_map(|left| left.record));
            print(&format!("\n{}", reliability::table(&reliability::claims(&records)).trim_end()));
            Ok(ExitCode::Ok)
        }
        Command::Rules { kept, leave_out: false } => {
            print(rules::page(&kept, &mut progress)?.trim_end());
            Ok(ExitCode::Ok)
        }
    }
}
