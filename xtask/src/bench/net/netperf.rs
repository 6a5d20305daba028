//! netperf, as its package ships it (Debian: non-free).

use anyhow::{Context as _, Result};

use super::contest::{Figures, Job};
use crate::bench::arena::{Arena, Cost, End, FAR};

const PORT: u16 = 12_865;
/// Units of the result: 1e6 bit/s, transactions per second.
const MBIT: &str = "m";
const TRANSACTIONS: &str = "x";

/// The first line of numbers that it prints, and the cost of both ends.
fn test(arena: &Arena, job: Job, (name, unit): (&str, &str), more: &[&str]) -> Result<(Vec<f64>, Cost)> {
    let (far, seconds) = (FAR.to_string(), job.seconds.to_string());
    let mut server = arena.start(End::Far, "netserver", &["-D", "-4", "-L", &far], "")?;
    server.listens("tcp", PORT)?;
    let args = [&["-H", &far, "-4", "-t", name, "-l", &seconds, "-P", "0", "-f", unit, "--"], more].concat();
    let client = arena.start(End::Near, "netperf", &args, "")?.end()?;
    // Its child has ended with the test, and is counted with it.
    let server = server.stop()?;
    let line = client.stdout.lines().find(|line| !line.trim().is_empty()).context("no result")?;
    let numbers: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    Ok((numbers, Cost::of(&client, &server)))
}

/// TCP with its defaults, one stream. Fields: buffers of receiver and sender, bytes of a write, time, Mbit/s.
pub(crate) fn tcp(arena: &Arena, job: Job) -> Result<Figures> {
    let (numbers, cost) = test(arena, job, ("TCP_STREAM", MBIT), &[])?;
    let [_, _, _, seconds, mbit, ..] = numbers[..] else { anyhow::bail!("{} numbers", numbers.len()) };
    let bytes = mbit * 1e6 / 8.0 * seconds;
    Ok(Figures { bps: Some(mbit * 1e6), ..Figures::default() }.with_cost(cost, bytes))
}

/// Requests over TCP. Fields: buffers, bytes of request and answer, time, requests per second.
pub(crate) fn requests_tcp(arena: &Arena, job: Job) -> Result<Figures> {
    requests(arena, job, "TCP_RR")
}

/// Requests over UDP.
pub(crate) fn requests_udp(arena: &Arena, job: Job) -> Result<Figures> {
    requests(arena, job, "UDP_RR")
}

fn requests(arena: &Arena, job: Job, name: &str) -> Result<Figures> {
    let sizes = format!("{0},{0}", job.bytes);
    let (numbers, _) = test(arena, job, (name, TRANSACTIONS), &["-r", &sizes])?;
    let [.., per_s] = numbers[..] else { anyhow::bail!("no number") };
    Ok(Figures { transactions_per_s: Some(per_s), ..Figures::default() })
}
