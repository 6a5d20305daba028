//! One bulk transfer in words: what came through, what it cost, what held it up, which ways were tried; drawn
//! over time.

use std::collections::BTreeSet;
use std::fmt::Write;

use linerate_model::kind::TcpPlan;
use linerate_model::load::{Interval, LoadReport, TransferMethod, Turn};
use linerate_model::printable::without_hint;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::tuning::TURN_MS;
use linerate_model::units;
use maud::{Markup, html};

use super::distribution::{self, Line};
use super::host_cpu;
use super::inside;
use super::spark;
use super::view::View;
use super::wrap::wrap;

/// Columns of the small picture of the series.
const SPARK_COLUMNS: usize = 60;
/// Columns of what stands beside a name, so that a line has at most 100.
const VALUE_COLUMNS: usize = 86;

/// See the file's head.
#[derive(Debug)]
pub struct Transfer;

impl View for Transfer {
    fn kind(&self) -> &'static str {
        "tcp"
    }

    fn headline(&self, sample: &Sample, tx: &LoadReport, rx: &LoadReport) -> String {
        let mut words = throughput(measurement(sample), tx);
        if let Some(back) = &tx.back {
            let _ = write!(words, ", back {}", units::rate(mean_bps(back)));
        }
        let gigabytes = gigabytes(rx, tx);
        if gigabytes > 0.0 {
            let _ = write!(words, ", {} CPU s/GB", units::short((tx.cpu_s + rx.cpu_s) / gigabytes));
        }
        words
    }

    fn text(&self, sample: &Sample, tx: &LoadReport, rx: &LoadReport) -> String {
        let mut text = String::new();
        let streams = sample.test.kind.get::<TcpPlan>().map_or(1, |plan| plan.streams);
        line(&mut text, "streams", &streams.to_string());
        line(&mut text, "throughput", &throughput(measurement(sample), tx));
        line(&mut text, "", &sparkline(&rx.series));
        if let Some(back) = &tx.back {
            line(&mut text, "back", &units::rate(mean_bps(back)));
            line(&mut text, "", &sparkline(&back.series));
        }
        line(&mut text, "CPU", &cost(tx, rx));
        line(&mut text, "whole hosts", &host_cpu::words(tx, rx, gigabytes(rx, tx)));
        if let (Some(send), Some(receive)) = (&tx.way, &rx.way) {
            line(&mut text, "moved by", &format!("{} > {}", way(send), way(receive)));
        }
        line(&mut text, "held up by", &held_up(tx, streams));
        line(&mut text, "connection", &connection(measurement(sample), tx, rx));
        line(&mut text, "bytes", &bytes(tx, rx));
        line(&mut text, "copied", &copied(&tx.calibration));
        text
    }

    fn details(&self, _: &Sample, tx: &LoadReport) -> String {
        turns(&tx.calibration)
    }

    fn drawings(&self, tx: &LoadReport, rx: &LoadReport) -> Markup {
        let points = |series: &[Interval]| -> Vec<(f64, f64)> {
            series.iter().map(|i| (i.at_ms, i.throughput_bps)).collect()
        };
        let there = points(&rx.series);
        let back = points(tx.back.as_ref().map_or(&[], |back| &back.series));
        let mut lines = vec![Line { class: "healthy", name: "received", of: there.as_slice() }];
        if !back.is_empty() {
            lines.push(Line { class: "worst", name: "back", of: back.as_slice() });
        }
        html! {
            (distribution::courses(&lines, units::rate, "Throughput"))
            (inside::drawings(&tx.inside))
        }
    }

    fn is_finding(&self, _: &LoadReport, _: &LoadReport) -> bool {
        // What a path should carry is a survey's question.
        false
    }
}

fn measurement(sample: &Sample) -> Option<&Measurement> {
    if let Outcome::Measured(measured) = &sample.outcome { Some(measured) } else { None }
}

fn mean_bps(report: &LoadReport) -> f64 {
    if report.elapsed_s > 0.0 { report.bytes as f64 * 8.0 / report.elapsed_s } else { 0.0 }
}

/// Payload of both directions.
fn gigabytes(rx: &LoadReport, tx: &LoadReport) -> f64 {
    (rx.bytes + tx.back.as_ref().map_or(0, |back| back.bytes)) as f64 / 1e9
}

fn line(text: &mut String, name: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    for (number, part) in wrap(value, VALUE_COLUMNS).iter().enumerate() {
        let name = if number == 0 { name } else { "" };
        let _ = writeln!(text, "{name:<12}  {part}");
    }
}

fn throughput(measured: Option<&Measurement>, tx: &LoadReport) -> String {
    let rate = measured.and_then(|m| m.throughput_bps).map_or("unknown".to_owned(), units::rate);
    match tx.started_ms {
        Some(ms) if ms > 0.0 => {
            format!("{rate} (slow start of {} left out)", units::duration_us(ms * 1e3))
        }
        _ => rate,
    }
}

/// The series as a row of bars, from 0 to its largest value.
pub fn sparkline(series: &[Interval]) -> String {
    let most = series.iter().map(|i| i.throughput_bps).fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let columns = series.len().min(SPARK_COLUMNS);
    let bars = (0..columns).map(|column| {
        let (from, to) = (column * series.len() / columns, (column + 1) * series.len() / columns);
        let part = &series[from..to.max(from + 1)];
        let mean = part.iter().map(|i| i.throughput_bps).sum::<f64>() / part.len() as f64;
        spark::bar(mean, most)
    });
    format!("{} (top: {})", bars.collect::<String>(), units::rate(most))
}

fn cost(tx: &LoadReport, rx: &LoadReport) -> String {
    let gigabytes = gigabytes(rx, tx);
    // What others measured has no CPU time when their tool does not tell it; no transfer costs none.
    if gigabytes <= 0.0 || tx.cpu_s + rx.cpu_s <= 0.0 {
        return String::new();
    }
    let mut text = format!(
        "{} s/GB sender + {} s/GB receiver",
        units::short(tx.cpu_s / gigabytes),
        units::short(rx.cpu_s / gigabytes)
    );
    let waited = tx.wait_s + rx.wait_s;
    if waited > 0.05 * tx.elapsed_s.max(0.1) {
        let _ =
            write!(text, "; waited for a CPU: {} s + {} s", units::short(tx.wait_s), units::short(rx.wait_s));
    }
    text
}

fn way(way: &TransferMethod) -> String {
    let mut text = way.name.clone();
    if way.pages != "plain" {
        let _ = write!(text, " ({} pages)", way.pages);
    }
    if !way.cpus.is_empty() {
        let cpus: Vec<String> = way.cpus.iter().map(u32::to_string).collect();
        let _ = write!(text, " on CPUs {}", cpus.join(","));
    }
    if !way.remark.is_empty() {
        let _ = write!(text, " ({})", way.remark);
    }
    text
}

/// Shares of the time of all streams, from the sender's kernel.
fn held_up(tx: &LoadReport, streams: u16) -> String {
    let Some(end) = tx.tcp.as_ref().filter(|end| end.busy_us > 0 && tx.elapsed_s > 0.0) else {
        return String::new();
    };
    let busy = end.busy_us as f64;
    let all = (tx.elapsed_s * 1e6 * f64::from(streams.max(1))).max(busy);
    let (window, buffer) = (end.rwnd_limited_us as f64, end.sndbuf_limited_us as f64);
    let path = (busy - window - buffer).max(0.0);
    let shares = [
        ("congestion window and path", path),
        ("the receiver's window", window),
        ("the send buffer", buffer),
        ("nothing to send", all - busy),
    ];
    let words = shares.iter().map(|(name, us)| format!("{name} {}", units::percent(us / all)));
    words.collect::<Vec<_>>().join(", ")
}

fn connection(measured: Option<&Measurement>, tx: &LoadReport, rx: &LoadReport) -> String {
    let Some(end) = &tx.tcp else { return String::new() };
    let mut parts = Vec::new();
    if let Some(us) = measured.and_then(|m| m.rtt_loaded_us) {
        parts.push(format!("RTT {} under load", units::duration_us(us)));
    }
    if end.rtt_min_us > 0.0 {
        parts.push(format!("least {}", units::duration_us(end.rtt_min_us)));
    }
    if !end.congestion.is_empty() {
        parts.push(end.congestion.clone());
    }
    if end.mss > 0 {
        parts.push(format!("segments of {} bytes", end.mss));
    }
    parts.push(format!("{} retransmitted", end.retransmits));
    let counts = [
        ("reordered", end.reord_seen),
        ("sent twice", end.dsack_dups),
        ("dropped by the receiver's sockets", rx.socket_drops.unwrap_or(0)),
    ];
    parts.extend(counts.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{n} {name}")));
    parts.join(", ")
}

fn bytes(tx: &LoadReport, rx: &LoadReport) -> String {
    // An end that reported nothing has neither bytes nor a time.
    let is_seen = |end: &LoadReport| end.bytes > 0 || end.elapsed_s > 0.0;
    let mut text = if !is_seen(rx) {
        format!("{} sent; the receiver's count is not seen", tx.bytes)
    } else if !is_seen(tx) {
        format!("{} received; the sender's count is not seen", rx.bytes)
    } else if tx.bytes == rx.bytes {
        format!("{} at both ends", tx.bytes)
    } else {
        format!("{} sent, {} received", tx.bytes, rx.bytes)
    };
    if let Some(streams) = tx.verified_streams {
        let _ = write!(text, "; equal checksums: {streams} streams");
    }
    if let Some(reason) = tx.stopped.as_ref().or(rx.stopped.as_ref()) {
        let _ = write!(text, "; ended early: {}", without_hint(reason).0);
    }
    text
}

/// Medians of the turns of one kind: rate, CPU of sender and receiver per gigabyte.
fn medians<'a>(turns: impl Iterator<Item = &'a Turn>) -> Option<[f64; 3]> {
    let turns: Vec<&Turn> = turns.filter(|turn| turn.failed.is_none() && turn.bps > 0.0).collect();
    let longest = turns.iter().map(|turn| turn.turn_ms).max()?;
    let median = |of: fn(&Turn) -> f64| {
        let mut values: Vec<f64> = turns.iter().filter(|t| t.turn_ms == longest).map(|t| of(t)).collect();
        values.sort_by(f64::total_cmp);
        f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
    };
    Some([median(|t| t.bps), median(|t| t.tx_s_per_gb), median(|t| t.rx_s_per_gb)])
}

/// What the faster receive that copies reaches, beside the one that was used, which discards in the kernel.
fn copied(turns: &[Turn]) -> String {
    let used = medians(turns.iter().filter(|turn| turn.chosen));
    let methods: BTreeSet<&str> = turns.iter().filter(|t| t.copying).map(|t| t.receive.as_str()).collect();
    let of = |method| medians(turns.iter().filter(|turn| turn.copying && turn.receive == method));
    let copying = methods.iter().filter_map(|method| Some((of(*method)?, *method)));
    let fastest = copying.max_by(|(a, _), (b, _)| a[0].total_cmp(&b[0]));
    let (Some([used, ..]), Some(([bps, tx, rx], method))) = (used, fastest) else { return String::new() };
    format!(
        "{} where the receiver copies every byte as applications do (`{method}`), {} s/GB sender + {} s/GB \
         receiver: {} of the discarding receive in turns of the same length",
        units::rate(bps),
        units::short(tx),
        units::short(rx),
        units::percent(bps / used)
    )
}

fn turns(turns: &[Turn]) -> String {
    if turns.is_empty() {
        return String::new();
    }
    let mut text = "Methods in turn (* used, c copies; CPU: sender + receiver, whole hosts):\n".to_owned();
    for turn in turns {
        let mark = match (turn.chosen, turn.copying) {
            (true, _) => '*',
            (_, true) => 'c',
            _ => ' ',
        };
        let host = turn.host_s_per_gb.map_or(String::new(), |s| format!(", {}", units::short(s)));
        let ms = if turn.turn_ms > 0 { turn.turn_ms } else { TURN_MS };
        let figures = match &turn.failed {
            Some(reason) => reason.clone(),
            None => format!(
                "{ms:>4} ms {:>13}   {} + {}{host} CPU s/GB",
                units::rate(turn.bps),
                units::short(turn.tx_s_per_gb),
                units::short(turn.rx_s_per_gb)
            ),
        };
        let _ = writeln!(text, "{mark} {:<10}{:<16}{figures}", turn.send, turn.receive);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::inventory::Layer;
    use linerate_model::load::{HostCpu, TcpEnd};
    use linerate_model::plan::Test;

    fn report() -> LoadReport {
        let point = |i: u32| Interval {
            at_ms: f64::from(i) * 20.0,
            throughput_bps: f64::from(i) * 1e9,
            ..Interval::default()
        };
        LoadReport {
            bytes: 2_000_000_000,
            elapsed_s: 1.0,
            cpu_s: 0.2,
            wait_s: 0.3,
            series: (1..=8).map(point).collect(),
            way: Some(TransferMethod {
                name: "zerocopy".into(),
                pages: "huge".into(),
                cpus: vec![0, 2],
                remark: "the kernel copied after all".into(),
                ..TransferMethod::default()
            }),
            tcp: Some(TcpEnd {
                busy_us: 900_000,
                rwnd_limited_us: 100_000,
                sndbuf_limited_us: 300_000,
                retransmits: 7,
                mss: 1448,
                congestion: "cubic".into(),
                ..TcpEnd::default()
            }),
            started_ms: Some(40.0),
            host_cpu: Some(HostCpu { busy_s: 0.8, softirq_s: 0.4, capacity_s: 2.0, ..HostCpu::default() }),
            verified_streams: Some(1),
            calibration: vec![
                Turn {
                    send: "write".into(),
                    receive: "truncate".into(),
                    bps: 9e9,
                    tx_s_per_gb: 0.1,
                    rx_s_per_gb: 0.05,
                    host_s_per_gb: Some(0.4),
                    turn_ms: 300,
                    chosen: true,
                    ..Turn::default()
                },
                Turn {
                    send: "zerocopy".into(),
                    receive: "truncate".into(),
                    failed: Some("not here".into()),
                    ..Turn::default()
                },
                Turn {
                    send: "write".into(),
                    receive: "read".into(),
                    bps: 4.5e9,
                    tx_s_per_gb: 0.2,
                    rx_s_per_gb: 0.25,
                    turn_ms: 300,
                    copying: true,
                    ..Turn::default()
                },
                Turn {
                    send: "write".into(),
                    receive: "read-beside".into(),
                    bps: 3e9,
                    turn_ms: 300,
                    copying: true,
                    ..Turn::default()
                },
            ],
            ..LoadReport::default()
        }
    }

    fn sample() -> Sample {
        let test = Test {
            id: 1,
            ..Test::new("a".into(), "b".into(), Layer::Underlay, TcpPlan::single(1000).into())
        };
        let measured = Measurement {
            throughput_bps: Some(16e9),
            tx: Some(Box::new(report())),
            rx: Some(Box::new(report())),
            ..Measurement::default()
        };
        Sample::new(test, 0, Outcome::Measured(Box::new(measured)))
    }

    #[test]
    fn everything_that_a_transfer_shows_is_told() {
        let sample = sample();
        let text = Transfer.text(&sample, &report(), &report()) + &Transfer.details(&sample, &report());
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
        for part in [
            "streams       1\n",
            "16 Gbit/s (slow start of 40 ms left out)",
            "▂▃▄▅▅▆▇█ (top: 8 Gbit/s)",
            "0.1 s/GB sender + 0.1 s/GB receiver; waited for a CPU: 0.3 s + 0.3 s",
            "zerocopy (huge pages) on CPUs 0,2 (the kernel copied after all)",
            "congestion window and path 50 %, the receiver's window 10 %, the send buffer 30 %,",
            "nothing to send 10 %",
            "7 retransmitted",
            "2000000000 at both ends; equal checksums: 1 streams",
            "whole hosts   0.4 s/GB (softirq 0.2) sender + 0.4 s/GB (softirq 0.2) receiver\n",
            "copied        4.5 Gbit/s where the receiver copies every byte as applications do (`read`),",
            "sender + 0.25 s/GB receiver: 50 % of the discarding receive",
            "* write     truncate         300 ms      9 Gbit/s   0.1 + 0.05, 0.4 CPU s/GB",
            "c write     read             300 ms    4.5 Gbit/s   0.2 + 0.25 CPU s/GB",
            "not here",
        ] {
            assert!(text.contains(part), "{part}\nin\n{text}");
        }
    }

    #[test]
    fn nothing_is_drawn_where_nothing_came() {
        assert_eq!(sparkline(&[]), "");
        assert_eq!(sparkline(&[Interval::default()]), "");
        let many = vec![Interval { throughput_bps: 1e9, ..Interval::default() }; 1000];
        assert_eq!(sparkline(&many).chars().filter(|c| *c == '█').count(), SPARK_COLUMNS);
    }
}
