//! `linerate measure tcp`: one bulk transfer over TCP or its relatives, with everything that it shows.

use std::time::Duration;

use linerate_model::exit::ExitCode;
use linerate_model::kind::TcpPlan;
use linerate_model::tuning::{Pin, Protocol, Tuning};

use crate::cli::{pair, quantity};

/// Measure one bulk transfer in detail: I/O methods in turn, CPU, connection state.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate measure tcp -i cluster.toml arc-1 arc-2\n  linerate measure tcp -i cluster.toml arc-1 arc-2 -P 4 --both-ways --time 5s\n  linerate measure tcp local --verify"
)]
// Flags of a command line.
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Args {
    #[command(flatten)]
    pair: pair::Pair,
    /// Parallel streams, 1 to 512
    #[arg(short = 'P', long, alias = "parallel", default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    streams: u16,
    /// Duration, e.g. 10s
    #[arg(short, long, default_value = "5s", value_parser = quantity::duration)]
    time: Duration,
    /// Leave so much at the beginning out of the figures; the transfer lasts as much longer
    #[arg(short = 'O', long, value_name = "TIME", value_parser = quantity::duration)]
    omit: Option<Duration>,
    /// Run as many streams in the reverse direction at the same time
    #[arg(long, alias = "bidir")]
    both_ways: bool,
    /// Congestion control algorithm of the senders, e.g. bbr
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    /// Differentiated services code point (DSCP), 0 to 63
    #[arg(long, value_name = "CODE", hide_short_help = true)]
    dscp: Option<u8>,
    /// Maximum segment size (MSS)
    #[arg(short = 'M', long, alias = "set-mss", value_name = "BYTES", value_parser = quantity::bytes)]
    mss: Option<u32>,
    /// Socket buffer size at both ends, instead of autotuning
    #[arg(short, long, value_name = "BYTES", value_parser = quantity::bytes)]
    window: Option<u32>,
    /// Maximum rate of one stream, e.g. 2.5G (bit/s)
    #[arg(short = 'b', long = "bitrate", alias = "pacing", value_name = "RATE", value_parser = quantity::rate)]
    pacing: Option<f64>,
    /// Send small segments immediately (TCP_NODELAY)
    #[arg(short = 'N', long)]
    no_delay: bool,
    /// Use Multipath TCP
    #[arg(long, group = "protocol")]
    mptcp: bool,
    /// Use UNIX sockets: the limit of one host without a network
    #[arg(long, group = "protocol", hide_short_help = true)]
    unix: bool,
    /// Use VSOCK to the receiver with this context identifier
    #[arg(long, group = "protocol", value_name = "CID", hide_short_help = true)]
    vsock: Option<u32>,
    /// Copy every byte at the receiver and compare the checksums of both ends
    #[arg(long)]
    verify: bool,
    /// Send method instead of the best one: write, write-4m, sendfile, zerocopy, splice
    #[arg(long, value_name = "METHOD", hide_short_help = true)]
    technique: Option<String>,
    /// Receive method instead of the best one: truncate, truncate-beside, read, read-beside
    #[arg(long, value_name = "METHOD", hide_short_help = true)]
    receive: Option<String>,
    /// Skip trying the methods before the test
    #[arg(long, hide_short_help = true)]
    no_calibration: bool,
    /// Pin the threads at both ends to these CPUs, e.g. 0,2,4; `none` leaves it to the scheduler
    #[arg(long, value_name = "CPUS", value_parser = pin)]
    pin: Option<Pin>,
    /// Samples of each connection's state per second, 1/s to 100/s
    #[arg(long, default_value = "50/s", value_name = "RATE", value_parser = samples, hide_short_help = true)]
    samples: u16,
    /// Size of a write
    #[arg(short = 'l', long, alias = "length", value_name = "BYTES", value_parser = quantity::bytes, hide_short_help = true)]
    write: Option<u32>,
}

fn samples(text: &str) -> Result<u16, String> {
    let rate = quantity::per_s(text)?;
    let fits = u16::try_from(rate).ok().filter(|rate| *rate <= SAMPLES_MAX);
    fits.ok_or_else(|| format!("{text} is out of range\nhint: 1/s to {SAMPLES_MAX}/s"))
}

fn pin(text: &str) -> Result<Pin, String> {
    if text == "none" {
        return Ok(Pin::None);
    }
    let cpus: Result<Vec<u32>, _> = text.split(',').map(str::parse).collect();
    cpus.map(Pin::Cpus).map_err(|_| format!("`{text}` is no list of CPUs\nhint: such as 0,2,4 or none"))
}

impl Args {
    fn omit(&self) -> Duration {
        self.omit.unwrap_or_default()
    }

    fn tuning(&self) -> Tuning {
        let protocol = match (self.mptcp, self.unix, self.vsock) {
            (true, _, _) => Protocol::Mptcp,
            (_, true, _) => Protocol::Unix,
            (_, _, Some(cid)) => Protocol::Vsock { cid },
            _ => Protocol::Tcp,
        };
        Tuning {
            protocol,
            congestion: self.congestion.clone(),
            dscp: self.dscp,
            mss: self.mss,
            window_bytes: self.window,
            pacing_bps: self.pacing,
            bytes_max: None,
            no_delay: self.no_delay,
            both_ways: self.both_ways,
            verify: self.verify,
            send: self.technique.clone(),
            receive: self.receive.clone(),
            calibrate: !self.no_calibration,
            host_turns: false,
            pin: self.pin.clone().unwrap_or_default(),
            sample_hz: self.samples,
            write_bytes: self.write,
            omit_ms: self.omit().as_millis() as u32,
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.time <= TIME_MAX,
        "{} s are too long for one test\nhint: at most {} s",
        args.time.as_secs(),
        TIME_MAX.as_secs()
    );
    anyhow::ensure!(
        args.omit() <= args.time,
        "{} ms are left out of {} ms\nhint: -O at most as long as --time",
        args.omit().as_millis(),
        args.time.as_millis()
    );
    let whole = args.time + args.omit();
    let plan = TcpPlan { streams: args.streams, duration_ms: whole.as_millis() as u32 };
    args.pair.run_tuned(plan.into(), &args.tuning())
}

/// Most samples of a connection per second.
const SAMPLES_MAX: u16 = 100;

/// Every load is bounded.
const TIME_MAX: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Whole {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn options_become_a_tuning() {
        let line = "measure local --mptcp -C bbr -w 4M -b 2.5G -O 2 --verify --pin 0,1";
        let whole = <Whole as clap::Parser>::try_parse_from(line.split(' ')).unwrap();
        let tuning = whole.args.tuning();
        assert_eq!((tuning.protocol, tuning.congestion.as_deref()), (Protocol::Mptcp, Some("bbr")));
        assert_eq!((tuning.window_bytes, tuning.pacing_bps), (Some(4 << 20), Some(2.5e9)));
        assert_eq!(tuning.omit_ms, 2000);
        assert_eq!((tuning.pin, tuning.calibrate, tuning.verify), (Pin::Cpus(vec![0, 1]), true, true));
        assert!(<Whole as clap::Parser>::try_parse_from(["m", "local", "--mptcp", "--unix"]).is_err());
        assert!(pin("1,x").is_err() && pin("none") == Ok(Pin::None));
    }
}
