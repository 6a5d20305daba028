//! nuttcp, as its package ships it.

use anyhow::{Context as _, Result};

use super::contest::{Figures, Job};
use crate::bench::arena::{Arena, Cost, End, FAR};

const PORT: u16 = 5000;

fn transfer(arena: &Arena, job: Job, more: &[&str]) -> Result<(impl Fn(&str) -> Option<f64> + use<>, Cost)> {
    let mut server = arena.start(End::Far, "nuttcp", &["-S", "-1", "--nofork"], "")?;
    server.listens("tcp", PORT)?;
    let (far, seconds) = (FAR.to_string(), format!("-T{}", job.seconds));
    let streams = format!("-N{}", job.streams);
    let mut args = vec!["-fparse", &seconds];
    if job.streams > 1 {
        args.push(&streams);
    }
    args.extend(more);
    args.push(&far);
    let client = arena.start(End::Near, "nuttcp", &args, "")?.end()?;
    let server = server.stop()?;
    let cost = Cost::of(&client, &server);
    let text = client.stdout;
    let value = move |key: &str| {
        text.split_whitespace().find_map(|w| w.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
    };
    Ok((value, cost))
}

/// TCP with writes of 1 MiB.
pub(crate) fn tcp(arena: &Arena, job: Job) -> Result<Figures> {
    let (value, cost) = transfer(arena, job, &["-l1m"])?;
    let megabytes: f64 = value("megabytes").context("no megabytes")?;
    let mbit: f64 = value("rate_Mbps").context("no rate")?;
    Ok(Figures { bps: Some(mbit * 1e6), ..Figures::default() }.with_cost(cost, megabytes * 1_048_576.0))
}

/// UDP without a limit of the rate.
pub(crate) fn udp(arena: &Arena, job: Job) -> Result<Figures> {
    let length = format!("-l{}", job.bytes);
    let (value, cost) = transfer(arena, job, &["-u", "-Ru", &length])?;
    let (dropped, all): (f64, f64) =
        (value("drop").context("no drops")?, value("pkt").context("no packets")?);
    let seconds: f64 = value("real_seconds").context("no time")?;
    let delivered = all - dropped;
    let bytes = delivered * f64::from(job.bytes);
    Ok(Figures {
        bps: Some(bytes * 8.0 / seconds),
        packets_per_s: Some(delivered / seconds),
        ..Figures::default()
    }
    .with_cost(cost, bytes))
}
