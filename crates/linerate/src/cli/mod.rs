//! The command line: one file per command. What comes in: arguments. What goes out: text through `report`, an
//! exit code of [`linerate_model::exit`]. Commands are thin: they load, call a room, print.

mod builds;
mod case;
mod changes;
mod check;
mod choice;
mod clean;
mod completions;
mod demo;
mod diagnose;
mod diff;
mod disk;
mod documents;
mod drain;
mod drbd;
mod drift;
mod drops;
mod events;
mod explain;
mod facts;
mod hand_over;
mod history;
mod hosts;
mod import;
mod inventory;
mod iperf3;
mod keep;
mod knowledge;
mod lab;
mod man;
mod measure;
mod numbered;
mod old;
mod open;
mod out;
mod pair;
mod place;
mod profile;
mod progress;
mod quantity;
mod resume;
mod rollout;
mod runs;
mod schema;
mod sequence;
mod serve;
mod show;
mod survey;
mod sweep;
mod targets;
mod trial;
mod undo;
mod usual;
mod via;
mod watch;
mod watcher;

use std::fmt::Write as _;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use linerate_model::exit::ExitCode;

/// Find why a Linux cluster's network or disks are slower than the hardware, and prove the fix.
#[derive(Debug, Parser)]
#[command(
    name = "linerate",
    version = VERSION,
    max_term_width = 100,
    after_help = AFTER_HELP,
    after_long_help = AFTER_LONG_HELP,
    disable_help_subcommand = true
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// With the commit and its date in a release build.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("LINERATE_COMMIT"));

const AFTER_HELP: &str = "\
Start: `linerate survey HOST HOST`; without a cluster `linerate demo` (package linerate-lab).";

const AFTER_LONG_HELP: &str = "\
Examples:
  linerate demo                             break a virtual cluster, diagnose it and fix it
                                            (needs the package linerate-lab)
  linerate survey arc-1 arc-2 arc-3         over ssh: measure pairs, read settings, name the root cause
  linerate survey -i cluster.toml           same, with an inventory
  linerate measure tcp arc-1 arc-2          measure one transfer in detail
  linerate diagnose mail.txt iperf3.json    diagnose output of other tools
  linerate try nic-gro-overlay --on vs-2    apply a fix, prove its effect, revert it
  linerate keep 20261121-083015-4f2a        persist a tried change
  linerate undo                             list what can be undone

Other programs: linerate iperf3, linerate lab, linerate demo; linerate man; linerate knowledge test.

Exit codes:
  0    at ceiling, or done as asked
  1    there are findings, or the trial showed no improvement
  2    could not run: arguments, inventory, rights
  3    nothing found, but part of the cluster could not be seen
  4    a change was taken back
  5    a change could not be taken back
  130  interrupted; everything was cleaned up

Files:
  LINERATE_DATA, or ~/.local/share/linerate    runs and trials
  LINERATE_STORE, or ~/.config/linerate/config.toml    a PostgreSQL store
  LINERATE_INVENTORY, or ./cluster.toml, or ~/.config/linerate/cluster.toml    inventory without -i";

/// The commands in the order of the help. One that is in no group is hidden.
const GROUPS: &[(&str, &[&str])] = &[
    ("Find", &["survey", "diagnose"]),
    ("Prove", &["try", "keep", "undo", "profile", "rollout"]),
    ("Look", &["show", "serve", "runs", "history", "diff", "changes", "facts", "explain"]),
    ("Measure", &["measure", "disk", "drbd"]),
    ("Watch", &["watch", "drops", "check", "drift", "drain", "resume"]),
    ("Setup", &["inventory", "clean", "completions"]),
];

#[derive(Debug, Subcommand)]
enum Command {
    Survey(survey::Args),
    Diagnose(diagnose::Args),
    Try(trial::Args),
    Keep(keep::Args),
    Drift(drift::Args),
    Undo(undo::Args),
    Profile(profile::Args),
    Rollout(Box<rollout::Args>),
    Show(show::Args),
    Serve(serve::Args),
    Runs(runs::Args),
    History(history::Args),
    Diff(diff::Args),
    Changes(changes::Args),
    Facts(facts::Args),
    Explain(explain::Args),
    Measure(measure::Args),
    Disk(disk::Args),
    Drbd(drbd::Args),
    Watch(watch::Args),
    Drops(drops::Args),
    Check(check::Args),
    Drain(drain::Args),
    Resume(resume::Args),
    Inventory(inventory::Args),
    Clean(clean::Args),
    Completions(completions::Args),
    Knowledge(knowledge::Args),
    Iperf3(iperf3::Args),
    Lab(lab::Args),
    Demo(demo::Args),
    Man(man::Args),
    Schema(schema::Args),
}

/// The command line with its commands in groups.
fn command() -> clap::Command {
    let mut command = Cli::command();
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let is_shown = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    for name in names.iter().filter(|name| !is_shown(name)) {
        command = command.mut_subcommand(name, |sub| sub.hide(true));
    }
    let mut groups = String::from("\n");
    for (heading, names) in GROUPS {
        let _ = writeln!(groups, "{heading}");
        for name in *names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let _ = writeln!(groups, "  {name:<12} {}", about.map(ToString::to_string).unwrap_or_default());
        }
    }
    // Help and version in one line: a screen has no more.
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n{groups}Options: -h, --help, -V, --version{{after-help}}"
    ))
}

/// Parses the arguments, runs the command, words what went wrong.
pub fn main() -> ExitCode {
    let words = old::renamed(std::env::args_os().collect());
    let parsed = command().try_get_matches_from(words).and_then(|found| Cli::from_arg_matches(&found));
    let cli = match parsed {
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
        Command::Diagnose(args) => diagnose::run(&args),
        Command::Try(args) => trial::run(&args),
        Command::Keep(args) => keep::run(&args),
        Command::Drift(args) => drift::run(&args),
        Command::Undo(args) => undo::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Rollout(args) => rollout::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Runs(args) => runs::run(&args),
        Command::History(args) => history::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Changes(args) => changes::run(&args),
        Command::Facts(args) => facts::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Disk(args) => disk::run(&args),
        Command::Drbd(args) => drbd::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Drops(args) => drops::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Drain(args) => drain::run(&args),
        Command::Resume(args) => resume::run(&args),
        Command::Inventory(args) => inventory::run(&args),
        Command::Clean(args) => clean::run(&args),
        Command::Completions(args) => completions::run(&args, command()),
        Command::Knowledge(args) => knowledge::run(&args),
        Command::Iperf3(args) => iperf3::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Man(args) => man::run(&args, command()),
        Command::Schema(args) => schema::run(&args),
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
        command().debug_assert();
    }

    #[test]
    fn the_help_names_every_exit_code() {
        for (code, meaning) in ExitCode::ALL {
            let line = format!("{:<5}{meaning}", *code as u8);
            assert!(AFTER_LONG_HELP.contains(&line), "{line}");
        }
    }
}

#[cfg(test)]
#[path = "help_tests.rs"]
mod help_tests;

#[cfg(test)]
#[path = "printed_tests.rs"]
mod printed_tests;
