//! `linerate measure`: one bulk transfer over TCP or its relatives, with everything that it shows.

use std::time::Duration;

use linerate_model::exit::ExitCode;
use linerate_model::kind::TcpPlan;
use linerate_model::tuning::{Pin, Protocol, Tuning};

use super::survey::duration;
use super::{pair, quantity};

/// Measure one bulk transfer in detail: I/O methods in turn, CPU, connection state.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate measure -i cluster.toml arc-1 arc-2\n  linerate measure -i cluster.toml arc-1 arc-2 --streams 4 --both-ways --time 5s\n  linerate measure local --verify"
)]
// Flags of a command line.
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Args {
    #[command(flatten)]
    pair: pair::Pair,
    /// Parallel streams, 1 to 512
    #[arg(short = 'P', long, default_value_t = 1, value_name = "N")]
    streams: u16,
    /// Duration, e.g. 10s
    #[arg(short, long, default_value = "5s", value_parser = duration)]
    time: Duration,
    /// Run as many streams in the reverse direction at the same time
    #[arg(long)]
    both_ways: bool,
    /// Congestion control algorithm of the senders, e.g. bbr
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Differentiated services code point (DSCP), 0 to 63
    #[arg(long, value_name = "CODE")]
    dscp: Option<u8>,
    /// Maximum segment size (MSS)
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes)]
    mss: Option<u32>,
    /// Socket buffer size at both ends, instead of autotuning
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes)]
    window: Option<u32>,
    /// Maximum rate of one stream, e.g. 2.5G (bit/s)
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
    pacing: Option<f64>,
    /// Send small segments immediately (TCP_NODELAY)
    #[arg(long)]
    no_delay: bool,
    /// Use Multipath TCP
    #[arg(long, group = "protocol")]
    mptcp: bool,
    /// Use UNIX sockets: the limit of one host without a network
    #[arg(long, group = "protocol")]
    unix: bool,
    /// Use VSOCK to the receiver with this context identifier
    #[arg(long, group = "protocol", value_name = "CID")]
    vsock: Option<u32>,
    /// Copy every byte at the receiver and compare the checksums of both ends
    #[arg(long)]
    verify: bool,
    /// Send method instead of the best one: write, write-4m, sendfile, zerocopy, splice
    #[arg(long, value_name = "WAY")]
    technique: Option<String>,
    /// Receive method instead of the best one: truncate, truncate-beside, read
    #[arg(long, value_name = "WAY")]
    receive: Option<String>,
    /// Skip trying the methods before the test
    #[arg(long)]
    no_calibration: bool,
    /// Pin the threads at both ends to these CPUs, e.g. 0,2,4; `none` leaves it to the scheduler
    #[arg(long, value_name = "CPUS", value_parser = pin)]
    pin: Option<Pin>,
    /// Samples of each connection's state per second, 1 to 100
    #[arg(long, default_value_t = 50, value_name = "HZ")]
    samples: u16,
    /// Size of a write
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes)]
    write: Option<u32>,
}

fn pin(text: &str) -> Result<Pin, String> {
    if text == "none" {
        return Ok(Pin::None);
    }
    let cpus: Result<Vec<u32>, _> = text.split(',').map(str::parse).collect();
    cpus.map(Pin::Cpus).map_err(|_| format!("`{text}` is no list of CPUs\nhint: such as 0,2,4 or none"))
}

impl Args {
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
            no_delay: self.no_delay,
            both_ways: self.both_ways,
            verify: self.verify,
            send: self.technique.clone(),
            receive: self.receive.clone(),
            calibrate: !self.no_calibration,
            pin: self.pin.clone().unwrap_or_default(),
            sample_hz: self.samples,
            write_bytes: self.write,
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
    let plan = TcpPlan { streams: args.streams, duration_ms: args.time.as_millis() as u32 };
    args.pair.run_tuned(plan.into(), &args.tuning())
}

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
        let line = "measure local --mptcp --congestion bbr --window 4M --pacing 2.5G --verify --pin 0,1";
        let whole = <Whole as clap::Parser>::try_parse_from(line.split(' ')).unwrap();
        let tuning = whole.args.tuning();
        assert_eq!(tuning.protocol, Protocol::Mptcp);
        assert_eq!((tuning.window_bytes, tuning.pacing_bps), (Some(4 << 20), Some(2.5e9)));
        assert_eq!((tuning.pin, tuning.calibrate, tuning.verify), (Pin::Cpus(vec![0, 1]), true, true));
        assert!(<Whole as clap::Parser>::try_parse_from(["m", "local", "--mptcp", "--unix"]).is_err());
        assert!(pin("1,x").is_err() && pin("none") == Ok(Pin::None));
    }
}
