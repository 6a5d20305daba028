//! `linerate measure mtu`: the largest packet that arrives, in each direction.

use linerate_model::exit::ExitCode;
use linerate_model::kind::PathMtuPlan;

use crate::cli::pair;

/// Find the path MTU in each direction, and black holes.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate measure mtu -i cluster.toml arc-1 arc-3\n  linerate measure mtu -i cluster.toml arc-1 arc-3 --most 1500"
)]
pub(super) struct Args {
    #[command(flatten)]
    pair: pair::Pair,
    /// Smallest IP packet to try
    #[arg(long, value_name = "BYTES", default_value_t = 576, value_parser = clap::value_parser!(u32).range(128..=65_535))]
    least: u32,
    /// Largest IP packet to try
    #[arg(long, value_name = "BYTES", default_value_t = 9216, value_parser = clap::value_parser!(u32).range(128..=65_535))]
    most: u32,
    /// Number of probes per size
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=8))]
    tries: u8,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.least <= args.most,
        "the smallest packet, {}, is above the largest, {}\nhint: change --least or --most",
        args.least,
        args.most
    );
    args.pair.run(PathMtuPlan { least_bytes: args.least, most_bytes: args.most, tries: args.tries })
}
