//! `ss -ti`: the kernel's view of connections. Each that moved data is a test without a rate of its own, with
//! its RTT, its segment size and what it waited for. A table of two lines per connection comes in, samples go
//! out.

use linerate_model::kind::{TcpPlan, TestKind};
use linerate_model::load::{LoadReport, TcpEnd};
use linerate_model::sample::{Measurement, Outcome};

use crate::ends;
use crate::reader::{Block, Reader};
use crate::sink::{Raw, Sink};
use crate::units::leading;

/// The format.
pub(crate) struct Ss;

/// Connections that sent less than this are not significant, bytes.
const SENT_MIN: f64 = 1e6;

/// `ESTAB 0 0 10.0.0.1:5201 10.0.0.2:44520`: local and remote with their ports.
fn peers(line: &str) -> Option<(&str, &str)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|w| w.bytes().all(|b| b.is_ascii_digit()))?;
    let known =
        ["tcp", "ESTAB", "ESTABLISHED", "CLOSE-WAIT", "FIN-WAIT-1", "FIN-WAIT-2", "LAST-ACK", "SYN-SENT"];
    if at > 0 && !known.contains(&words[0]) || words.get(at + 1)?.parse::<u64>().is_err() {
        return None;
    }
    let (local, remote) = (words.get(at + 2)?, words.get(at + 3)?);
    (split(local).is_some() && split(remote).is_some()).then_some((local, remote))
}

fn split(end: &str) -> Option<(&str, &str)> {
    end.rsplit_once(':')
        .filter(|(a, p)| !a.is_empty() && (p.parse::<u16>().is_ok() || p.chars().all(char::is_alphanumeric)))
}

fn is_inside(line: &str) -> bool {
    line.starts_with([' ', '\t']) && line.contains("rto:") && line.contains("cwnd:")
}

impl Reader for Ss {
    fn name(&self) -> &'static str {
        "ss"
    }

    fn describes(&self) -> &'static str {
        "ss -ti: the inside of connections"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first();
        line.starts_with("State ") && line.contains("Recv-Q")
            || peers(line).is_some() && is_inside(block.line(1))
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut at = 0;
        let mut taken = 0;
        while at < block.lines.len() {
            let line = block.line(at);
            if line.starts_with("State ") || line.trim().is_empty() {
                at += 1;
            } else if peers(line).is_some() {
                let inside = block.line(at + 1);
                if is_inside(inside) {
                    connection(line, inside, block, out);
                    at += 2;
                } else {
                    out.unread(at, "a connection without its inside: `ss -ti` prints it");
                    at += 1;
                }
            } else {
                break;
            }
            taken = at;
        }
        taken
    }
}

/// `key:value` among the words.
fn value<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    line.split_whitespace().find_map(|w| w.strip_prefix(key)?.strip_prefix(':'))
}

/// Microseconds of `1524ms`, `0.9`, `12us`.
fn us(text: &str) -> Option<f64> {
    let number = leading(text)?;
    Some(if text.ends_with("us") { number } else { number * 1000.0 })
}

/// Words in front of the name of the congestion control.
const FLAGS: [&str; 5] = ["ts", "sack", "ecn", "ecnseen", "fastopen"];

/// Name of the congestion control: the first word that is neither a flag nor a value such as `skmem:(r0,…)`;
/// empty if there is none.
fn congestion(inside: &str) -> &str {
    inside
        .split_whitespace()
        .take_while(|word| !word.starts_with("wscale:") && !word.starts_with("rto:"))
        .find(|word| !FLAGS.contains(word) && !word.contains([':', '(', '<']))
        .unwrap_or_default()
}

fn connection(line: &str, inside: &str, block: &Block<'_>, out: &mut Sink) {
    let Some((local, remote)) = peers(line) else { return };
    let (Some((local, local_port)), Some((remote, remote_port))) = (split(local), split(remote)) else {
        return;
    };
    let Some((from, to)) = ends::of_connection(block.at, out, local, remote) else {
        // Connections of a host to itself are no evidence.
        return;
    };
    let number = |key: &str| value(inside, key).and_then(leading);
    let sent = number("bytes_sent").or_else(|| number("bytes_acked"));
    if sent.is_none_or(|sent| sent < SENT_MIN) {
        return;
    }
    let rtt_us = number("rtt").map(|ms| ms * 1000.0);
    let retransmits = value(inside, "retrans").and_then(|v| leading(v.rsplit('/').next()?)).unwrap_or(0.0);
    let busy_us = value(inside, "busy").and_then(us).unwrap_or(0.0);
    let shift = |part: Option<&str>| part.and_then(|p| p.parse().ok()).unwrap_or(0);
    let wscale = value(inside, "wscale").map_or((0, 0), |v| {
        let mut parts = v.split(',');
        // Ours is what the far end uses to send; `ss` prints the peer's first.
        let (theirs, ours) = (shift(parts.next()), shift(parts.next()));
        (ours, theirs)
    });
    let mss = number("mss").unwrap_or(0.0);
    let tcp = TcpEnd {
        rtt_min_us: number("minrtt").map_or(0.0, |ms| ms * 1000.0),
        retransmits: retransmits as u64,
        busy_us: busy_us as u64,
        rwnd_limited_us: value(inside, "rwnd_limited").and_then(us).unwrap_or(0.0) as u64,
        sndbuf_limited_us: value(inside, "sndbuf_limited").and_then(us).unwrap_or(0.0) as u64,
        reord_seen: number("reord_seen").unwrap_or(0.0) as u64,
        dsack_dups: number("dsack_dups").unwrap_or(0.0) as u64,
        mss: mss as u32,
        congestion: congestion(inside).to_owned(),
        wscale,
        unacked_bytes_max: (number("unacked").unwrap_or(0.0) * mss) as u64,
        snd_wnd_max: number("snd_wnd").unwrap_or(0.0) as u64,
        ..TcpEnd::default()
    };
    let seconds = busy_us / 1e6;
    let report = LoadReport {
        bytes: sent.unwrap_or(0.0) as u64,
        elapsed_s: seconds,
        tcp: Some(tcp),
        ..LoadReport::default()
    };
    let measured = Measurement {
        rtt_loaded_us: rtt_us.filter(|us| *us > 0.0),
        retransmits_per_s: (seconds > 0.5).then(|| retransmits / seconds),
        tx: Some(Box::new(report)),
        ..Measurement::default()
    };
    let plain = crate::sink::plain_address;
    let kind = TestKind::from(TcpPlan::single((seconds * 1000.0).clamp(0.0, 4e9) as u32));
    out.sample(Raw {
        from,
        to,
        layer: block.at.layer(),
        kind,
        outcome: Outcome::Measured(Box::new(measured)),
        flow: Some(format!("{}:{local_port}>{}:{remote_port}", plain(local), plain(remote))),
        start_ms: 0,
        variant: None,
    });
}
