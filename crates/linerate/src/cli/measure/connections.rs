//! `linerate measure connections`: connections set up per second.

use std::time::Duration;

use linerate_model::exit::ExitCode;
use linerate_model::kind::ConnectsPlan;

use crate::cli::{pair, quantity};

/// Measure the connection rate: connections per second, one byte each.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate measure connections -i cluster.toml arc-1 arc-3\n  linerate measure connections local local --parallel 4"
)]
pub(super) struct Args {
    #[command(flatten)]
    pair: pair::Pair,
    /// Number of concurrent connections
    #[arg(short = 'P', long, alias = "streams", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=32))]
    parallel: u16,
    /// Total number of connections, at most 20000
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    count: u32,
    /// Time limit
    #[arg(short, long, default_value = "2s", value_parser = quantity::duration)]
    time: Duration,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.time <= Duration::from_secs(60),
        "{} s is more than this may take\nhint: at most 60s",
        args.time.as_secs()
    );
    args.pair.run(ConnectsPlan {
        parallel: args.parallel,
        duration_ms: args.time.as_millis() as u32,
        count_max: args.count,
    })
}
