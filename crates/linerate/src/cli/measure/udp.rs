//! `linerate measure udp`: loss, order, jitter and delay of datagrams at a rate, or how many get through.

use std::time::Duration;

use linerate_model::datagram::{Offload, UdpOptions};
use linerate_model::exit::ExitCode;
use linerate_model::kind::UdpPlan;

use crate::cli::{pair, quantity};

/// Rate of a flow that has none, bit/s.
const DEFAULT_BPS: f64 = 100e6;

/// Measure a UDP flow: packet loss, reordering, duplication, jitter, delay variation.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate measure udp -i cluster.toml arc-1 arc-3 --rate 200M\n  linerate measure udp -i cluster.toml arc-1 arc-3 --flat-out --size 64"
)]
pub(super) struct Args {
    #[command(flatten)]
    pair: pair::Pair,
    /// Payload rate, e.g. 50M, 2.5G
    #[arg(short = 'b', long, alias = "bitrate", value_parser = quantity::rate_or_none, default_value = "100M", conflicts_with = "flat_out")]
    rate: f64,
    /// Send as fast as possible (also -b 0)
    #[arg(long)]
    flat_out: bool,
    /// Payload size of a datagram, 32 to 65507
    #[arg(short = 'l', long, alias = "length", value_name = "BYTES", default_value_t = 1200, value_parser = clap::value_parser!(u16).range(32..=65_507))]
    size: u16,
    /// Duration of the flow
    #[arg(short, long, default_value = "2s", value_parser = quantity::duration)]
    time: Duration,
    /// Segmentation offload: `auto`, `send` (segmented by the kernel, received one by one), `off`
    #[arg(long, value_parser = ["auto", "send", "off"], default_value = "auto")]
    offload: String,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.time <= Duration::from_secs(60),
        "{} s is more than a flow may take\nhint: at most 60s",
        args.time.as_secs()
    );
    let offload = match args.offload.as_str() {
        "off" => Offload::Off,
        "send" => Offload::SendOnly,
        _ => Offload::Auto,
    };
    let flat_out = args.flat_out || args.rate == 0.0;
    args.pair.run(UdpPlan {
        rate_bps: if flat_out { DEFAULT_BPS } else { args.rate },
        payload_bytes: args.size,
        duration_ms: args.time.as_millis() as u32,
        options: UdpOptions { flat_out, offload },
    })
}
