//! sockperf, ping-pong, as its package ships it.

use anyhow::{Context as _, Result};

use super::contest::{Figures, Job};
use crate::bench::arena::{Arena, End, FAR};

const PORT: u16 = 11_111;

fn ping_pong(arena: &Arena, job: Job, tcp: bool) -> Result<Figures> {
    let (far, seconds, bytes) = (FAR.to_string(), job.seconds.to_string(), job.bytes.to_string());
    let mut server_args = vec!["sr", "-i", &far];
    let mut args = vec!["pp", "-i", &far, "-t", &seconds, "-m", &bytes];
    if tcp {
        server_args.push("--tcp");
        args.push("--tcp");
    }
    let mut server = arena.start(End::Far, "sockperf", &server_args, "")?;
    server.listens(if tcp { "tcp" } else { "udp" }, PORT)?;
    let client = arena.start(End::Near, "sockperf", &args, "")?.end()?;
    server.stop()?;
    // "[Valid Duration] RunTime=0.550 sec; SentMessages=9876; ReceivedMessages=9876"
    let line = client.stdout.lines().find(|l| l.contains("Valid Duration")).context("no result")?;
    let value = |key: &str| -> Option<f64> {
        let rest = &line[line.find(key)? + key.len()..];
        rest.split([' ', ';', '\u{1b}']).next()?.parse().ok()
    };
    let (answers, time_s) =
        (value("ReceivedMessages=").context("no count")?, value("RunTime=").context("no time")?);
    Ok(Figures { transactions_per_s: Some(answers / time_s), ..Figures::default() })
}

/// Over TCP.
pub(crate) fn tcp(arena: &Arena, job: Job) -> Result<Figures> {
    ping_pong(arena, job, true)
}

/// Over UDP.
pub(crate) fn udp(arena: &Arena, job: Job) -> Result<Figures> {
    ping_pong(arena, job, false)
}
