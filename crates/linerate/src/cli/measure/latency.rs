//! `linerate measure latency`: how long an answer takes, idle and loaded.

use std::time::Duration;

use linerate_model::exit::ExitCode;
use linerate_model::kind::LatencyPlan;
use linerate_model::latency::{Carrier, LatencyPhase, Waiting};

use crate::cli::{pair, quantity};

/// Measure latency between two hosts: TCP and UDP histograms, idle and under load.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate measure latency -i cluster.toml arc-1 arc-3 --under-load\n  linerate measure latency local local --tcp --spin"
)]
// Flags of a command line are what they are.
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Args {
    #[command(flatten)]
    pair: pair::Pair,
    /// Measure only TCP
    #[arg(long, conflicts_with = "udp")]
    tcp: bool,
    /// Measure only UDP
    #[arg(long)]
    udp: bool,
    /// Measure only spinning: both ends busy-poll instead of sleeping; refused where no CPU is free for it
    #[arg(long, conflicts_with = "block")]
    spin: bool,
    /// Measure only blocking: both ends sleep until the kernel wakes them
    #[arg(long)]
    block: bool,
    /// Also measure while TCP streams run from FROM to TO, to show queueing delay
    #[arg(long)]
    under_load: bool,
    /// Number of load streams
    #[arg(short = 'P', long, alias = "parallel", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    streams: u16,
    /// Payload of a request and its response; at least 32 for datagrams
    #[arg(short = 'l', long, alias = "length", value_name = "BYTES", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1200))]
    size: u16,
    /// Duration of each phase
    #[arg(short, long, default_value = "1s", value_parser = quantity::duration)]
    time: Duration,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.time <= Duration::from_secs(60),
        "{} s is more than a phase may take\nhint: at most 60s",
        args.time.as_secs()
    );
    let carriers = [(Carrier::Tcp, !args.udp), (Carrier::Udp, !args.tcp)];
    let waitings = [(Waiting::Blocking, !args.spin), (Waiting::Spinning, !args.block)];
    let mut phases = Vec::new();
    for loaded in [false, true].into_iter().take(1 + usize::from(args.under_load)) {
        for (carrier, _) in carriers.into_iter().filter(|(_, wanted)| *wanted) {
            for (waiting, _) in waitings.into_iter().filter(|(_, wanted)| *wanted) {
                phases.push(LatencyPhase { carrier, waiting, loaded });
            }
        }
    }
    args.pair.run(LatencyPlan {
        phases,
        phase_ms: args.time.as_millis() as u32,
        payload_bytes: args.size,
        load_streams: args.streams,
        settle_ms: 700,
        spins_on_free_cpus: true,
    })
}
