//! `linerate drbd …`: replicated block devices, from nothing to a failover and back. One file per command
//! beside this one.

mod bench;
mod failover;
mod moves;
mod plan;
mod repair;
mod status;
mod up;
mod verify;
mod wait;

use linerate_model::exit::ExitCode;

/// Manage DRBD replicas: plan, build, check, verify, fail over, repair, benchmark
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Plan(plan::Args),
    Up(up::Args),
    Status(status::Args),
    Verify(verify::Args),
    Failover(failover::Args),
    Repair(repair::Args),
    Bench(bench::Args),
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Plan(args) => plan::run(args),
        Command::Up(args) => up::run(args),
        Command::Status(args) => status::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Failover(args) => failover::run(args),
        Command::Repair(args) => repair::run(args),
        Command::Bench(args) => bench::run(args),
    }
}
