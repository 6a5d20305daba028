//! `linerate disk …`: what concerns block devices. One file per command beside this one.

mod bench;
mod builds;
mod durability;
mod hosts;
mod plan;
mod survey;
mod undo;
mod watch;

use linerate_model::exit::ExitCode;

/// Monitor, survey and benchmark block devices, plan volumes, and test durability across power loss.
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
    Builds(builds::Args),
    Undo(undo::Args),
    // Much larger than the others.
    Bench(Box<bench::Args>),
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Watch(args) => watch::run(args),
        Command::Survey(args) => survey::run(args),
        Command::Durability(args) => durability::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Builds(args) => builds::run(args),
        Command::Undo(args) => undo::run(args),
        Command::Bench(args) => bench::run(args),
    }
}
