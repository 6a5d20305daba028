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

/// Test durability across a power cut; count the damage left by earlier ones (--audit)
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    after_help = "Test a power cut from an operator's machine, which keeps the list of promises:\n  linerate disk durability write /mnt/test --on store-1     cut the host's power meanwhile\n  linerate disk durability check --promises FILE            after the host is back\n\nAudit a Hadoop data node or a Gluster brick for damage from earlier power cuts (read-only):\n  linerate disk durability --audit /data/1/dfs/dn --on dn-1\n\nExit codes: 0 all promised data is present, nothing is lost; 1 promised data or blocks are missing;\n3 the host was not restarted, or some data could not be read."
)]
pub(super) struct Args {
    /// Count empty and orphaned files in a Hadoop data node folder or in a Gluster brick
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
