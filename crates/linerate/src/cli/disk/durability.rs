//! `linerate disk durability …`: what a power cut leaves of files, and what earlier ones have left. One file
//! per command beside this one.

mod audit;
mod check;
mod clean;
mod host;
mod patterns;
mod write;

use std::path::PathBuf;

use linerate_model::exit::ExitCode;

/// Write records that are looked for after a power cut; count what earlier ones have left (--audit)
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    after_help = "A power cut, from the desk of an operator (the list of promises stays there):\n  linerate disk durability write /mnt/test --on store-1     cut its power while this runs\n  linerate disk durability check --promises FILE            when it is back\n\nWhat earlier ones have left in a data node of Hadoop or a brick of Gluster (nothing is changed):\n  linerate disk durability --audit /data/1/dfs/dn --on dn-1\n\nExit codes: 0 all that was promised is there, nothing is lost; 1 promised data, or blocks, are gone;\n3 the host was not restarted, or not everything could be read."
)]
pub(super) struct Args {
    /// Count empty and orphaned files in the data folder of a Hadoop data node, or in a Gluster brick
    #[arg(long, value_name = "DIR")]
    audit: Option<PathBuf>,
    #[command(flatten)]
    how: audit::How,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Write(write::Args),
    Check(check::Args),
    Clean(clean::Args),
    Patterns(patterns::Args),
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match (&args.command, &args.audit) {
        (Some(Command::Write(args)), _) => write::run(args),
        (Some(Command::Check(args)), _) => check::run(args),
        (Some(Command::Clean(args)), _) => clean::run(args),
        (Some(Command::Patterns(args)), _) => patterns::run(args),
        (None, Some(folder)) => audit::run(folder, &args.how),
        (None, None) => anyhow::bail!(
            "nothing is asked\nhint: `linerate disk durability --help` lists the commands; --audit DIR counts what power cuts have left"
        ),
    }
}
