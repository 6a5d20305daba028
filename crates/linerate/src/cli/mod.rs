//! The command line: one file per command. What comes in: arguments. What goes out: text through `report`, an
//! exit code of [`linerate_model::exit`]. Commands are thin: they load, call a room, print.

mod builds;
mod case;
mod choice;
mod clean;
mod completions;
mod connects;
mod demo;
mod diagnose;
mod diff;
mod disk;
mod drbd;
mod events;
mod facts;
mod hosts;
mod http;
mod import;
mod inventory;
mod iperf3;
mod keep;
mod knowledge;
mod lab;
mod latency;
mod man;
mod measure;
mod mtu;
mod open;
mod out;
mod pair;
mod place;
mod progress;
mod quantity;
mod report;
mod runs;
mod survey;
mod sweep;
mod targets;
mod trial;
mod udp;
mod undo;
mod via;
mod watcher;

use clap::{CommandFactory, Parser, Subcommand};
use linerate_model::exit::ExitCode;

/// Why is my network slower than my hardware, and what do I change?
#[derive(Debug, Parser)]
#[command(name = "linerate", version = VERSION, max_term_width = 110, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// With the commit and its date in a release build.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("LINERATE_COMMIT"));

const AFTER_HELP: &str = "\
Examples:
  linerate demo                             break a virtual cluster, diagnose it and fix it
  linerate survey arc-1 arc-2 arc-3         over ssh: measure pairs, read settings, name the root cause
  linerate survey -i cluster.toml           same, with an inventory
  linerate measure -i cluster.toml a b      measure one transfer in detail
  linerate diagnose mail.txt iperf3.json    diagnose output of other tools
  linerate try nic-gro-overlay --on vs-2    apply a fix, prove its effect, revert it
  linerate keep 20261121-083015-4f2a        persist a tried change

Exit codes:
  0    at ceiling, or done as asked
  1    there are findings, or the trial showed no improvement
  2    could not run: arguments, inventory, rights
  3    nothing found, but part of the cluster could not be seen
  4    a change was taken back
  5    a change could not be taken back
  130  interrupted; everything was cleaned up

Runs and trials are stored in LINERATE_DATA, or ~/.local/share/linerate.";

#[derive(Debug, Subcommand)]
enum Command {
    Survey(survey::Args),
    // Much larger than the others.
    Measure(Box<measure::Args>),
    Diagnose(diagnose::Args),
    Import(import::Args),
    Diff(diff::Args),
    Disk(disk::Args),
    Drbd(drbd::Args),
    Try(trial::Args),
    Keep(keep::Args),
    Undo(undo::Args),
    Runs(runs::Args),
    #[command(visible_alias = "show")]
    Report(report::Args),
    Facts(facts::Args),
    Inventory(inventory::Args),
    Latency(latency::Args),
    Udp(udp::Args),
    Mtu(mtu::Args),
    Connects(connects::Args),
    Http(http::Args),
    Knowledge(knowledge::Args),
    Case(case::Args),
    Iperf3(iperf3::Args),
    Lab(lab::Args),
    Clean(clean::Args),
    Demo(demo::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Parses the arguments, runs the command, words what went wrong.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; clap prints each to the stream it belongs to.
            let code = if error.use_stderr() { ExitCode::CouldNotRun } else { ExitCode::Ok };
            let _ = error.print();
            return code;
        }
    };
    let done = match cli.command {
        Command::Survey(args) => survey::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Diagnose(args) => diagnose::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Disk(args) => disk::run(&args),
        Command::Drbd(args) => drbd::run(&args),
        Command::Try(args) => trial::run(&args),
        Command::Keep(args) => keep::run(&args),
        Command::Undo(args) => undo::run(&args),
        Command::Runs(args) => runs::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Facts(args) => facts::run(&args),
        Command::Inventory(args) => inventory::run(&args),
        Command::Latency(args) => latency::run(&args),
        Command::Udp(args) => udp::run(&args),
        Command::Mtu(args) => mtu::run(&args),
        Command::Connects(args) => connects::run(&args),
        Command::Http(args) => http::run(&args),
        Command::Knowledge(args) => knowledge::run(&args),
        Command::Case(args) => case::run(&args),
        Command::Iperf3(args) => iperf3::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Clean(args) => clean::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
    };
    match done {
        Ok(code) => code,
        Err(error) if out::is_closed_pipe(&error) => ExitCode::Ok,
        Err(error) => {
            out::say_error(&error);
            ExitCode::CouldNotRun
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_names_every_exit_code() {
        for (code, meaning) in ExitCode::ALL {
            let line = format!("{:<5}{meaning}", *code as u8);
            assert!(AFTER_HELP.contains(&line), "{line}");
        }
    }
}

#[cfg(test)]
#[path = "printed_tests.rs"]
mod printed_tests;
