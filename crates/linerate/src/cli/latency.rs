//! `linerate latency`: how long an answer takes, idle and loaded.

use std::time::Duration;

use linerate_model::exit::ExitCode;
use linerate_model::latency::{Carrier, LatencyPlan, Phase, Waiting};
use linerate_model::load::TestKind;

use super::{pair, survey};

/// Requests and answers between two hosts: histograms over TCP and UDP, idle and under load.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate latency -i cluster.toml arc-1 arc-3 --under-load\n  linerate latency local local --tcp --spin"
)]
// Flags of a command line are what they are.
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Args {
    #[command(flatten)]
    pair: pair::Pair,
    /// Only over TCP
    #[arg(long, conflicts_with = "udp")]
    tcp: bool,
    /// Only over UDP
    #[arg(long)]
    udp: bool,
    /// Only spinning: both ends look all the time instead of sleeping
    #[arg(long, conflicts_with = "block")]
    spin: bool,
    /// Only blocking: both ends sleep until the kernel wakes them
    #[arg(long)]
    block: bool,
    /// Also while TCP streams run from FROM to TO: what the queues on the way add
    #[arg(long)]
    under_load: bool,
    /// Streams of that load
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    streams: u16,
    /// Payload of a request and its answer; datagrams have at least 32
    #[arg(long, value_name = "BYTES", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1200))]
    size: u16,
    /// Time of each phase
    #[arg(short, long, default_value = "1s", value_parser = survey::duration)]
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
                phases.push(Phase { carrier, waiting, loaded });
            }
        }
    }
    args.pair.run(TestKind::Latency(LatencyPlan {
        phases,
        phase_ms: args.time.as_millis() as u32,
        payload_bytes: args.size,
        load_streams: args.streams,
        settle_ms: 700,
    }))
}
