//! JSON of iperf3 (`-J`), client or server: a value comes in, one transfer for each direction goes out.
//! `--json-stream` prints the same in parts, one on each line: `{"event":"interval","data":{…}}`.

use linerate_model::kind::TcpPlan;
use linerate_model::load::Interval;
use linerate_model::sample::Outcome;
use serde_json::Value;

use super::json::{self, list, number, text};
use super::transfer::Transfer;
use crate::context::Context;
use crate::ends;
use crate::limits::JsonParts;
use crate::reader::{Block, Reader};
use crate::sink::{Raw, Sink};

/// The format.
pub(crate) struct Iperf3Json;

impl Reader for Iperf3Json {
    fn name(&self) -> &'static str {
        "iperf3-json"
    }

    fn describes(&self) -> &'static str {
        "JSON of iperf3 (-J or --json-stream), client or server"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn takes_long_lines(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        json::has_keys(block, '{', &["\"start\"", "\"connected\""])
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        if let Some((value, lines)) = stream(block, out) {
            test(&value, block.at, out);
            return lines;
        }
        json::read(block, out, "iperf3", |value, out| {
            test(value, block.at, out);
        })
    }
}

/// Longest event: an interval of 128 streams has 40 kB.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// Name and data of one event of `--json-stream`.
fn event(line: &str) -> Option<(String, Value)> {
    if line.len() > EVENT_BYTES_MAX || !line.trim_start().starts_with('{') {
        return None;
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_str(line.trim()) else { return None };
    match fields.remove("event")? {
        Value::String(name) => Some((name, fields.remove("data").unwrap_or(Value::Null))),
        _ => None,
    }
}

/// The events that begin here as the value that `-J` would print, and how many lines they take; `None` where
/// none begins.
fn stream(block: &Block<'_>, out: &mut Sink) -> Option<(Value, usize)> {
    event(block.first())?;
    let mut whole = serde_json::Map::new();
    let mut intervals = Vec::new();
    let mut taken = 0;
    let mut parts = JsonParts::default();
    for (at, line) in block.lines.iter().enumerate() {
        if parts.add(line.as_bytes()).is_err() {
            break;
        }
        let Some((name, data)) = event(line) else {
            if line.trim().is_empty() {
                continue;
            }
            break;
        };
        // The next test begins.
        if name == "start" && whole.contains_key("start") {
            break;
        }
        if name == "interval" {
            intervals.push(data);
        } else {
            whole.insert(name, data);
        }
        taken = at + 1;
    }
    if !whole.contains_key("end") {
        out.note(format!(
            "{}: the JSON of iperf3 ends in the middle; what came before is used",
            block.at.file
        ));
        // Its last line may be half an event.
        let next = block.line(taken).trim();
        taken += usize::from(next.starts_with("{\"") && serde_json::from_str::<Value>(next).is_err());
    }
    whole.insert("intervals".to_owned(), Value::Array(intervals));
    Some((Value::Object(whole), taken.min(block.lines.len())))
}

/// A test whose server was out of reach.
pub(crate) fn unreachable(from: String, to: String, why: &str, context: &Context, out: &mut Sink) {
    out.sample(Raw {
        from,
        to,
        layer: context.layer(),
        kind: TcpPlan::single(0).into(),
        outcome: Outcome::NothingThrough { reason: why.to_owned() },
        flow: None,
        start_ms: 0,
        variant: None,
    });
}

fn test(value: &Value, context: &Context, out: &mut Sink) {
    let connected = list(value, &["start", "connected"]);
    let first = connected.first();
    let address = |key: &str| first.and_then(|c| text(c, &[key]));
    let peer = text(value, &["start", "connecting_to", "host"]);
    let named = peer.filter(|p| crate::context::is_host(p));
    let ends = match (address("local_host"), address("remote_host")) {
        (Some(local), Some(remote)) => {
            if let Some(name) = named {
                out.alias(remote, name);
            }
            ends::of_connection(context, out, local, remote)
        }
        _ => ends::of_command(context, named.or_else(|| context.command.value(&["-c"])), false),
    };
    let error = text(value, &["error"]);
    let Some((here, there)) = ends else {
        out.unread(0, error.map_or(ends::WHO.to_owned(), |e| format!("a test that did not run: {e}")));
        return;
    };
    if let Some(why) = error.filter(|_| list(value, &["intervals"]).is_empty()) {
        if why.contains("unable to connect") && !why.contains("refused") {
            unreachable(here, there, why, context, out);
        } else {
            out.unread(0, format!("a test that did not run: {why}"));
        }
        return;
    }
    let server = text(value, &["start", "accepted_connection", "host"]).is_some();
    let reverse = number(value, &["start", "test_start", "reverse"]).is_some_and(|r| r > 0.0);
    let both = number(value, &["start", "test_start", "bidir"]).is_some_and(|b| b > 0.0);
    // `reverse` is the client's word: the server sends. The server's own JSON has it too.
    let sends = server == reverse;
    let flow = |at: usize, sends: bool| {
        let c = connected.get(at)?;
        let local = format!(
            "{}:{}",
            crate::sink::plain_address(text(c, &["local_host"])?),
            number(c, &["local_port"])?
        );
        let remote = format!(
            "{}:{}",
            crate::sink::plain_address(text(c, &["remote_host"])?),
            number(c, &["remote_port"])?
        );
        Some(if sends { format!("{local}>{remote}") } else { format!("{remote}>{local}") })
    };
    for (suffix, sends, at) in [("", sends, 0), ("_bidir_reverse", !sends, 1)] {
        if !suffix.is_empty() && !both {
            continue;
        }
        let ends = if sends { (here.clone(), there.clone()) } else { (there.clone(), here.clone()) };
        let transfer = Transfer { ends, flow: flow(at, sends), ..transfer(value, suffix, sends) };
        if transfer.udp && transfer.received_bps.is_none() && transfer.datagrams.is_none() {
            out.unread(0, "a UDP sender does not know what arrived");
        } else {
            transfer.put(context, out);
        }
    }
}

/// Figures of one direction; `suffix` is what iperf3 adds to the names of the second one.
fn transfer(value: &Value, suffix: &str, sends: bool) -> Transfer {
    let sum = format!("sum{suffix}");
    let series: Vec<Interval> = list(value, &["intervals"])
        .iter()
        .filter(|i| i.get(&sum).and_then(|s| s.get("omitted")) != Some(&Value::Bool(true)))
        .filter_map(|interval| {
            let of_sum = |key: &str| number(interval, &[&sum, key]);
            let rtt = list(interval, &["streams"]).first().and_then(|s| number(s, &["rtt"]));
            Some(Interval {
                at_ms: of_sum("end")? * 1000.0,
                throughput_bps: of_sum("bits_per_second")?,
                rtt_us: rtt.unwrap_or(0.0),
                retransmits: of_sum("retransmits").unwrap_or(0.0).max(0.0) as u64,
                ..Interval::default()
            })
        })
        .collect();
    let udp = text(value, &["start", "test_start", "protocol"]) == Some("UDP");
    let (sent, received) = (format!("sum_sent{suffix}"), format!("sum_received{suffix}"));
    let of = |which: &str, key: &str| number(value, &["end", which, key]);
    let mean = || {
        let rates: Vec<f64> = series.iter().map(|i| i.throughput_bps).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    };
    let (mut sent_bps, mut received_bps) = (of(&sent, "bits_per_second"), of(&received, "bits_per_second"));
    if sent_bps.is_none() && received_bps.is_none() && !udp {
        // Cut short, or the end failed: the intervals still have this end's view.
        *(if sends { &mut sent_bps } else { &mut received_bps }) = mean();
    }
    let last = series.last().map_or(0.0, |i| i.at_ms / 1000.0);
    let seconds = of(&sent, "seconds").or_else(|| of(&received, "seconds")).unwrap_or(last);
    let rtts: Vec<f64> = list(value, &["end", "streams"])
        .iter()
        .filter_map(|s| number(s, &["sender", "mean_rtt"]))
        .filter(|us| *us > 0.0)
        .collect();
    let cpu =
        |key: &str| number(value, &["end", "cpu_utilization_percent", key]).map(|percent| percent / 100.0);
    let (host, remote) = (cpu("host_total"), cpu("remote_total"));
    // Old versions have the losses in `sum` alone.
    let lost = [received.as_str(), sum.as_str()].iter().find_map(|which| {
        Some((of(which, "lost_packets")?, of(which, "packets")?)).filter(|(_, all)| *all > 0.0)
    });
    Transfer {
        streams: number(value, &["start", "test_start", "num_streams"]).unwrap_or(1.0).clamp(1.0, 1000.0)
            as u16,
        seconds,
        sent_bps,
        received_bps,
        retransmits: of(&sent, "retransmits").filter(|r| *r >= 0.0),
        rtt_us: (!rtts.is_empty()).then(|| rtts.iter().sum::<f64>() / rtts.len() as f64),
        cpu: if suffix.is_empty() {
            if sends { (host, remote) } else { (remote, host) }
        } else {
            (None, None)
        },
        series,
        series_received: !sends,
        datagrams: lost.filter(|_| udp),
        udp,
        start_ms: number(value, &["start", "timestamp", "timesecs"])
            .map_or(0, |s| (s.max(0.0) * 1000.0) as u64),
        ..Transfer::default()
    }
}
