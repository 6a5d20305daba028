//! A UDP flow in words: what arrived, in which order, how late.

use std::fmt::Write;

use linerate_model::histogram::Histogram;
use linerate_model::load::{Interval, LoadReport, TestKind};
use linerate_model::sample::Sample;
use maud::{Markup, html};

use super::distribution::{self, Line};
use super::single::View;
use super::units;

/// See the file's head.
#[derive(Debug)]
pub struct Udp;

/// What both ends counted.
struct Counts {
    sent: u64,
    received: u64,
    /// By the receiver's own socket.
    dropped: u64,
    lost: u64,
}

fn counts(tx: &LoadReport, rx: &LoadReport) -> Counts {
    let (sent, got) = (tx.udp.unwrap_or_default(), rx.udp.unwrap_or_default());
    let missing = sent.datagrams.saturating_sub(got.datagrams);
    let dropped = got.kernel_drops.unwrap_or(0).min(missing);
    Counts { sent: sent.datagrams, received: got.datagrams, dropped, lost: missing - dropped }
}

fn share(part: u64, of: u64) -> String {
    let percent = part as f64 / of.max(1) as f64 * 100.0;
    if part == 0 { "0 %".to_owned() } else { format!("{} %", units::short(percent)) }
}

fn rate(report: &LoadReport) -> f64 {
    if report.elapsed_s > 0.0 { report.bytes as f64 * 8.0 / report.elapsed_s } else { 0.0 }
}

fn per_second(count: u64, report: &LoadReport) -> f64 {
    if report.elapsed_s > 0.0 { count as f64 / report.elapsed_s } else { 0.0 }
}

impl View for Udp {
    fn kind(&self) -> &'static str {
        "udp"
    }

    fn headline(&self, _: &Sample, tx: &LoadReport, rx: &LoadReport) -> String {
        let c = counts(tx, rx);
        format!(
            "{} delivered, {} datagrams per second, {} lost on the path",
            units::rate(rate(rx)),
            units::short(per_second(c.received, rx)),
            share(c.lost, c.sent)
        )
    }

    fn text(&self, sample: &Sample, tx: &LoadReport, rx: &LoadReport) -> String {
        let c = counts(tx, rx);
        let mut out = String::new();
        let payload =
            if let TestKind::Udp { payload_bytes, .. } = sample.test.kind { payload_bytes } else { 0 };
        let mut row = |name: &str, value: String| {
            let _ = writeln!(out, "{name:<24}  {value}");
        };
        row("sent", format!("{} datagrams of {payload} bytes, {}", c.sent, units::rate(rate(tx))));
        row(
            "received",
            format!(
                "{} datagrams, {}, {} per second",
                c.received,
                units::rate(rate(rx)),
                units::short(per_second(c.received, rx))
            ),
        );
        row("lost on the path", format!("{} ({})", c.lost, share(c.lost, c.sent)));
        let got = rx.udp.unwrap_or_default();
        if got.kernel_drops.is_some() {
            let dropped = format!("{} ({}): its socket was full", c.dropped, share(c.dropped, c.sent));
            row("dropped by the receiver", dropped);
        }
        // What other tools measured has no account of the flow.
        let is_ours = rx.udp_flow.is_some();
        if is_ours {
            row("out of order", format!("{} ({})", got.reordered, share(got.reordered, got.datagrams)));
            row("twice", format!("{} ({})", got.duplicates, share(got.duplicates, got.datagrams)));
        }
        let flow = rx.udp_flow.clone().unwrap_or_default();
        if let Some((most, end)) = flow.jitter_us {
            // Below the resolution of the clocks.
            let words = |us: f64| if us < 0.01 { "0 us".to_owned() } else { units::duration_us(us) };
            row("jitter (RFC 3550)", format!("{}, at most {}", words(end), words(most)));
        }
        if let Some(delay) = &flow.delay_change_ns
            && let [Some(half), Some(tail), Some(most)] =
                [delay.quantile(0.5), delay.quantile(0.99), delay.max()]
        {
            let words = |ns: u64| units::duration_us(ns as f64 / 1e3);
            row(
                "delay above the least",
                format!("p50 {}, p99 {}, max {}", words(half), words(tail), words(most)),
            );
        }
        if let Some(longest) = flow.gaps.as_ref().and_then(Histogram::max) {
            row("longest gap", format!("{longest} datagrams in a row"));
        }
        let out_flow = tx.udp_flow.clone().unwrap_or_default();
        if out_flow.skipped > 0 {
            row("left out", format!("{}: the sender was late", out_flow.skipped));
        }
        if is_ours {
            row("carried", carried(&out_flow, &flow));
        }
        if is_ours || tx.cpu_s + rx.cpu_s > 0.0 {
            row("CPU", format!("sender {:.2} s, receiver {:.2} s", tx.cpu_s, rx.cpu_s));
        }
        out
    }

    fn drawings(&self, tx: &LoadReport, rx: &LoadReport) -> Markup {
        let points = |series: &[Interval]| -> Vec<(f64, f64)> {
            series.iter().map(|i| (i.at_ms, i.throughput_bps)).collect()
        };
        let (sent, received) = (points(&tx.series), points(&rx.series));
        let delay = rx.udp_flow.as_ref().and_then(|flow| flow.delay_change_ns.as_ref());
        html! {
            @if let Some(delay) = delay {
                (distribution::histograms(
                    &[Line { class: "healthy", name: "all datagrams", of: delay }],
                    "one-way delay above the fastest datagram",
                ))
            }
            (distribution::courses(
                &[
                    Line { class: "worst", name: "sent", of: sent.as_slice() },
                    Line { class: "healthy", name: "received", of: received.as_slice() },
                ],
                "bit/s",
                "Payload",
            ))
        }
    }

    fn is_finding(&self, tx: &LoadReport, rx: &LoadReport) -> bool {
        let flat_out = tx.udp_flow.as_ref().is_some_and(|flow| flow.train > 4);
        let c = counts(tx, rx);
        // A sender that sends flat out overruns every path: that is no fault of it.
        !flat_out && c.lost > 0
    }
}

/// In which units the datagrams went through the kernels: a rate of datagrams that were never cut is no rate of packets.
fn carried(tx: &linerate_model::datagram::UdpFlow, rx: &linerate_model::datagram::UdpFlow) -> String {
    match (&tx.offload, &rx.offload) {
        (Some(_), Some(_)) => {
            format!("trains of {} (GSO), read in {} pieces (GRO): no rate of packets", tx.train, rx.units)
        }
        (Some(_), None) => format!("trains of {} (GSO), read one by one", tx.train),
        _ => format!("one by one, bursts of at most {}", tx.train),
    }
}
