//! qperf, latency, as its package ships it. It prints half of the RTT.

use anyhow::{Context as _, Result};

use super::contest::{Figures, Job};
use crate::bench::arena::{Arena, End, FAR};

const PORT: u16 = 19_765;

fn latency(arena: &Arena, job: Job, test: &str) -> Result<Figures> {
    let (far, seconds, bytes) = (FAR.to_string(), job.seconds.to_string(), job.bytes.to_string());
    let mut server = arena.start(End::Far, "qperf", &[], "")?;
    server.listens("tcp", PORT)?;
    let args = [far.as_str(), "-t", &seconds, "-m", &bytes, "-u", "-uu", test];
    let client = arena.start(End::Near, "qperf", &args, "")?.end()?;
    server.stop()?;
    // "latency  =  27.3 us" with the unit that -u chose: seconds.
    let line = client.stdout.lines().find(|l| l.contains("latency")).context("no result")?;
    let mut words = line.split_whitespace().skip_while(|w| *w != "=").skip(1);
    let value: f64 = words.next().and_then(|w| w.replace(',', "").parse().ok()).context("no number")?;
    let unit = match words.next().unwrap_or("sec") {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        _ => 1.0,
    };
    Ok(Figures { transactions_per_s: Some(1.0 / (2.0 * value * unit)), ..Figures::default() })
}

/// Over TCP.
pub(crate) fn tcp(arena: &Arena, job: Job) -> Result<Figures> {
    latency(arena, job, "tcp_lat")
}

/// Over UDP.
pub(crate) fn udp(arena: &Arena, job: Job) -> Result<Figures> {
    latency(arena, job, "udp_lat")
}
