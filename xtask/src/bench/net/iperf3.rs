//! iperf3, as its package ships it.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::contest::{Figures, Job};
use crate::bench::arena::{Arena, Cost, End, FAR};

const PORT: u16 = 5201;

fn client(arena: &Arena, job: Job, program: &str, more: &[&str]) -> Result<(Value, Cost)> {
    let mut server = arena.start(End::Far, program, &["-s", "-1"], "")?;
    server.listens("tcp", PORT)?;
    let (far, seconds, streams) = (FAR.to_string(), job.seconds.to_string(), job.streams.to_string());
    let mut args = vec!["-c", &far, "-J", "-t", &seconds, "-P", &streams];
    args.extend(more);
    let client = arena.start(End::Near, program, &args, "")?.end()?;
    let server = server.end()?;
    let report: Value = serde_json::from_str(&client.stdout).context("iperf3 printed no JSON")?;
    anyhow::ensure!(report["error"].is_null(), "{}", report["error"]);
    let cost = Cost::of(&client, &server);
    Ok((report, cost))
}

fn transfer(arena: &Arena, job: Job, more: &[&str]) -> Result<Figures> {
    let (report, cost) = client(arena, job, "iperf3", more)?;
    let sum = &report["end"]["sum_received"];
    let bytes = sum["bytes"].as_f64().context("no bytes")?;
    Ok(Figures { bps: sum["bits_per_second"].as_f64(), ..Figures::default() }.with_cost(cost, bytes))
}

/// TCP with its defaults.
pub(crate) fn tcp(arena: &Arena, job: Job) -> Result<Figures> {
    transfer(arena, job, &[])
}

/// TCP with writes of 1 MiB: its best setting on this path.
pub(crate) fn tcp_large(arena: &Arena, job: Job) -> Result<Figures> {
    transfer(arena, job, &["-l", "1M"])
}

/// TCP by `sendfile`.
pub(crate) fn tcp_sendfile(arena: &Arena, job: Job) -> Result<Figures> {
    transfer(arena, job, &["-Z", "-l", "1M"])
}

/// UDP without a limit of the rate.
pub(crate) fn udp(arena: &Arena, job: Job) -> Result<Figures> {
    datagrams(arena, job, "iperf3", &[])
}

/// The same in trains that the kernels cut and glue (`--gsro`).
pub(crate) fn udp_gso(arena: &Arena, job: Job) -> Result<Figures> {
    datagrams(arena, job, "iperf3-gso", &["--gsro"])
}

fn datagrams(arena: &Arena, job: Job, program: &str, more: &[&str]) -> Result<Figures> {
    let bytes = job.bytes.to_string();
    let arguments = [&["-u", "-b", "0", "-l", &bytes], more].concat();
    let (report, cost) = client(arena, job, program, &arguments)?;
    let sum = &report["end"]["sum"];
    let number = |key: &str| sum[key].as_f64().with_context(|| format!("no {key}"));
    let delivered = number("packets")? - number("lost_packets")?;
    let seconds = number("seconds")?;
    let bytes = delivered * f64::from(job.bytes);
    Ok(Figures {
        bps: Some(bytes * 8.0 / seconds),
        packets_per_s: Some(delivered / seconds),
        ..Figures::default()
    }
    .with_cost(cost, bytes))
}
