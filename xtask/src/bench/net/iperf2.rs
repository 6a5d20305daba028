//! iperf 2, as its package ships it.

use anyhow::{Context as _, Result};

use super::contest::{Figures, Job};
use crate::bench::arena::{Arena, Cost, End, FAR};

const PORT: u16 = 5001;

/// The last line of the server's CSV report, and the CPU time of both ends.
fn transfer(arena: &Arena, job: Job, table: &str, more: &[&str]) -> Result<(Vec<f64>, Cost)> {
    let (far, seconds, streams) = (FAR.to_string(), job.seconds.to_string(), job.streams.to_string());
    let mut server_args = vec!["-s", "-y", "C", "-P", &streams];
    server_args.extend(more.iter().filter(|a| **a != "-b" && **a != "100G"));
    let mut server = arena.start(End::Far, "iperf", &server_args, "")?;
    server.listens(table, PORT)?;
    let mut args = vec!["-c", &far, "-t", &seconds, "-P", &streams, "-y", "C"];
    args.extend(more);
    let client = arena.start(End::Near, "iperf", &args, "")?.end()?;
    let server = server.stop()?;
    let line = server.stdout.lines().rfind(|l| l.contains(',')).context("the server reported nothing")?;
    let numbers = line.split(',').skip(5).map(|n| n.parse().unwrap_or(f64::NAN)).collect();
    Ok((numbers, Cost::of(&client, &server)))
}

// Fields from the sixth on: number, interval, bytes, bit/s, and for UDP jitter, lost, all.
fn bulk(arena: &Arena, job: Job, more: &[&str]) -> Result<Figures> {
    let (fields, cost) = transfer(arena, job, "tcp", more)?;
    let [_, _, bytes, bps, ..] = fields[..] else { anyhow::bail!("a report of {} fields", fields.len()) };
    Ok(Figures { bps: Some(bps), ..Figures::default() }.with_cost(cost, bytes))
}

/// TCP with its defaults.
pub(crate) fn tcp(arena: &Arena, job: Job) -> Result<Figures> {
    bulk(arena, job, &[])
}

/// TCP with writes of 1 MiB.
pub(crate) fn tcp_large(arena: &Arena, job: Job) -> Result<Figures> {
    bulk(arena, job, &["-l", "1M"])
}

/// UDP at a rate that no sender reaches.
pub(crate) fn udp(arena: &Arena, job: Job) -> Result<Figures> {
    let bytes = job.bytes.to_string();
    let (fields, cost) = transfer(arena, job, "udp", &["-u", "-l", &bytes, "-b", "100G"])?;
    let [_, _, _, _, _, lost, all, ..] = fields[..] else {
        anyhow::bail!("a report of {} fields", fields.len())
    };
    let delivered = all - lost;
    let (seconds, bytes) = (f64::from(job.seconds), delivered * f64::from(job.bytes));
    Ok(Figures {
        bps: Some(bytes * 8.0 / seconds),
        packets_per_s: Some(delivered / seconds),
        ..Figures::default()
    }
    .with_cost(cost, bytes))
}
