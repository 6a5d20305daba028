//! `linerate-node load`, one process at each end, as it comes.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::contest::{Figures, Job};
use crate::bench::arena::{Arena, Cost, End, FAR, NEAR};

fn both_ends(arena: &Arena, kind: &Value, tuning: &Value) -> Result<(Value, Value, Cost)> {
    let program = crate::shell::target_release().join("linerate-node");
    let program = program.to_string_lossy();
    let spec = |role: Value, bind: std::net::Ipv4Addr| {
        let token = [7_u8; 16];
        let whole = json!({ "kind": kind, "role": role, "bind": bind, "token": token, "deadline_ms": 16_000, "same_host": true, "tuning": tuning });
        whole.to_string()
    };
    let receiver = arena.start(End::Far, &program, &["load"], &spec(json!("receiver"), FAR))?;
    let port = receiver.said("listening")?;
    let sender = json!({ "sender": { "peer": format!("{FAR}:{port}") } });
    let sender = arena.start(End::Near, &program, &["load"], &spec(sender, NEAR))?.end()?;
    let receiver = receiver.end()?;
    let report = |text: &str| -> Result<Value> {
        let line = text.lines().last().unwrap_or_default();
        serde_json::from_str(line).with_context(|| format!("no report: {line:?}"))
    };
    let (tx, rx) = (report(&sender.stdout)?, report(&receiver.stdout)?);
    for end in [&tx, &rx] {
        anyhow::ensure!(end["stopped"].is_null(), "stopped: {}", end["stopped"]);
    }
    Ok((tx, rx, Cost::of(&sender, &receiver)))
}

fn transfer(job: Job, duration_ms: u32) -> Value {
    json!({ "tcp": { "streams": job.streams, "duration_ms": duration_ms } })
}

/// Bulk TCP as a survey makes it: the same ways for every pair.
pub(crate) fn tcp_survey(arena: &Arena, job: Job) -> Result<Figures> {
    let (_, rx, cost) = both_ends(arena, &transfer(job, job.seconds * 1000), &json!({}))?;
    bulk(&rx, cost)
}

/// Bulk TCP as `linerate measure` makes it: the ways take turns first, the best pair of them is used. The
/// figures are those of the transfer alone, which is why the turns have processes of their own here.
pub(crate) fn tcp(arena: &Arena, job: Job) -> Result<Figures> {
    calibrated(arena, job, "chosen")
}

/// Bulk TCP as [`tcp`] makes it, but with the faster receive that copies every byte: what `linerate measure`
/// reports beside the methods it chose.
pub(crate) fn tcp_copying(arena: &Arena, job: Job) -> Result<Figures> {
    calibrated(arena, job, "copying")
}

/// Bulk TCP by the methods that a calibration marks with `mark`.
fn calibrated(arena: &Arena, job: Job, mark: &str) -> Result<Figures> {
    let (tx, _, _) =
        both_ends(arena, &transfer(job, 100), &json!({ "calibrate": true, "host_turns": true }))?;
    let turns = tx["calibration"].as_array().context("no calibration")?;
    let marked = turns.iter().filter(|turn| turn[mark] == true);
    let best = marked
        .max_by(|a, b| bps_of(a).total_cmp(&bps_of(b)))
        .with_context(|| format!("no turn is {mark}"))?;
    eprintln!("  {} > {}", best["send"], best["receive"]);
    let tuning = json!({ "send": best["send"], "receive": best["receive"] });
    let (_, rx, cost) = both_ends(arena, &transfer(job, job.seconds * 1000), &tuning)?;
    bulk(&rx, cost)
}

/// Rate of a turn, bit/s.
fn bps_of(turn: &Value) -> f64 {
    turn["bps"].as_f64().unwrap_or_default()
}

/// Bulk TCP by these methods.
pub(crate) fn fixed(arena: &Arena, job: Job, send: &str, receive: &str) -> Result<Figures> {
    let tuning = json!({ "send": send, "receive": receive });
    let (_, rx, cost) = both_ends(arena, &transfer(job, job.seconds * 1000), &tuning)?;
    bulk(&rx, cost)
}

fn bulk(rx: &Value, cost: Cost) -> Result<Figures> {
    let bytes = rx["bytes"].as_f64().context("no bytes")?;
    let elapsed_s = rx["elapsed_s"].as_f64().context("no time")?;
    Ok(Figures {
        bps: Some(bytes * 8.0 / elapsed_s),
        packets_per_s: rx["udp"]["datagrams"].as_f64().map(|n| n / elapsed_s),
        ..Figures::default()
    }
    .with_cost(cost, bytes))
}

fn flat_out(arena: &Arena, job: Job, offload: &str) -> Result<Figures> {
    let kind = json!({ "udp": {
        "rate_bps": 1e12, "payload_bytes": job.bytes, "duration_ms": job.seconds * 1000,
        "options": { "flat_out": true, "offload": offload },
    } });
    let (_, rx, cost) = both_ends(arena, &kind, &json!({}))?;
    bulk(&rx, cost)
}

/// UDP with the offloads that it chooses.
pub(crate) fn udp(arena: &Arena, job: Job) -> Result<Figures> {
    flat_out(arena, job, "auto")
}

/// UDP in trains that the kernel cuts, at the latest for the receiving socket; each datagram is read alone.
pub(crate) fn udp_send(arena: &Arena, job: Job) -> Result<Figures> {
    flat_out(arena, job, "send-only")
}

/// UDP, one write and one read for each datagram.
pub(crate) fn udp_plain(arena: &Arena, job: Job) -> Result<Figures> {
    flat_out(arena, job, "off")
}

fn requests(arena: &Arena, job: Job, carrier: &str, waiting: &str) -> Result<Figures> {
    let kind = json!({ "latency": {
        "phases": [{ "carrier": carrier, "waiting": waiting, "loaded": false }],
        "phase_ms": job.seconds * 1000, "payload_bytes": job.bytes, "load_streams": 1, "settle_ms": 0,
        "spins_on_free_cpus": true,
    } });
    let (tx, _, _) = both_ends(arena, &kind, &json!({}))?;
    let phase = &tx["latency"][0];
    let buckets = phase["round_trip_ns"]["buckets"].as_array().context("no histogram")?;
    // Pairs: empty buckets before, count.
    let answers: f64 = buckets.iter().skip(1).step_by(2).filter_map(Value::as_f64).sum();
    let elapsed_s = phase["elapsed_s"].as_f64().context("no time")?;
    Ok(Figures { transactions_per_s: Some(answers / elapsed_s), ..Figures::default() })
}

/// Over TCP, both ends asleep while they wait.
pub(crate) fn requests_tcp(arena: &Arena, job: Job) -> Result<Figures> {
    requests(arena, job, "tcp", "blocking")
}

/// Over UDP, both ends asleep while they wait.
pub(crate) fn requests_udp(arena: &Arena, job: Job) -> Result<Figures> {
    requests(arena, job, "udp", "blocking")
}

/// Over TCP, both ends looking all the time.
pub(crate) fn requests_tcp_spinning(arena: &Arena, job: Job) -> Result<Figures> {
    requests(arena, job, "tcp", "spinning")
}

/// Over UDP, both ends looking all the time.
pub(crate) fn requests_udp_spinning(arena: &Arena, job: Job) -> Result<Figures> {
    requests(arena, job, "udp", "spinning")
}
