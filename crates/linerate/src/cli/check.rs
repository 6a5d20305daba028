//! `linerate check`: this host through `linerate-node`, hosts over their sessions, and the checks installed
//! on hosts to run by themselves.

mod files;
mod hosts;
mod install;
mod uninstall;

use std::ffi::OsString;

use linerate_model::exit::ExitCode;

use super::hand_over;

/// Check hosts without load, for people, Slurm, Nagios; install that.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  linerate check                              this host, by linerate-node\n  linerate check --as nagios                  flags of linerate-node check; --list prints all checks\n  linerate check arc-1 arc-2                  over ssh; also -i FILE, --no-sudo, --json\n  linerate check install arc-1 arc-2          show what a timer on these hosts needs\n  linerate check install --yes arc-1 arc-2    install it\n  linerate check uninstall --yes arc-1 arc-2  undo that"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Hosts, or flags of linerate-node check for this host
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "HOST|FLAG")]
    words: Vec<OsString>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Install(install::Args),
    Uninstall(uninstall::Args),
}

/// Whether the words are flags for the node program, not hosts or where they are listed.
fn is_own(words: &[OsString]) -> bool {
    let first = words.first().map(|word| word.to_string_lossy());
    first.is_none_or(|first| {
        first.starts_with('-') && !["-i", "--inventory"].iter().any(|option| first.starts_with(option))
    })
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Some(Command::Install(args)) => install::run(args),
        Some(Command::Uninstall(args)) => uninstall::run(args),
        None if is_own(&args.words) => hand_over::to_node("check", &args.words),
        None => hosts::run(&args.words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_for_this_host_and_names_are_hosts() {
        let is_own = |line: &str| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            is_own(&words)
        };
        for line in ["", "--as nagios", "--list", "--help"] {
            assert!(is_own(line), "{line}");
        }
        for line in ["arc-1", "-i cluster.toml", "--inventory=c.toml", "arc-1 --json"] {
            assert!(!is_own(line), "{line}");
        }
    }
}
