//! `linerate disk …`: what concerns block devices. One file per command beside this one.

mod durability;
pub(super) mod hosts;
mod plan;
mod survey;
mod watch;

use linerate_model::exit::ExitCode;

/// Monitor and compare drives, plan and build volumes, test durability across power loss
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Watch(watch::Args),
    Survey(Box<survey::Args>),
    Durability(durability::Args),
    Plan(Box<plan::Args>),
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Watch(args) => watch::run(args),
        Command::Survey(args) => survey::run(args),
        Command::Durability(args) => durability::run(args),
        Command::Plan(args) => plan::run(args),
    }
}
