//! A UDP flow in words: what arrived, in which order, how late.

use std::fmt::Write;

use linerate_model::histogram::Histogram;
use linerate_model::kind::UdpPlan;
use linerate_model::load::{Interval, LoadReport};
use linerate_model::sample::Sample;
use linerate_model::units;
use maud::{Markup, html};

use super::distribution::{self, Line};
use super::host_cpu;
use super::view::View;
use super::wrap::wrap;

/// Columns of what stands beside a name, so that a line has at most 100.
const VALUE_COLUMNS: usize = 74;

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

/// Rows about the CPU of the whole hosts; none where an end does not report it.
fn whole_hosts(tx: &LoadReport, rx: &LoadReport) -> Vec<(&'static str, String)> {
    let lines = wrap(&host_cpu::words(tx, rx, rx.bytes as f64 / 1e9), VALUE_COLUMNS);
    let names = std::iter::once("CPU of the whole hosts").chain(std::iter::repeat(""));
    names.zip(lines.into_iter().filter(|line| !line.is_empty())).collect()
}

fn share(part: u64, of: u64) -> String {
    let percent = part as f64 / of.max(1) as f64 * 100.0;
    if part == 0 { "0 %".to_owned() } else { format!("{} %", units::short(percent)) }
}

fn rate(report: &LoadReport) -> f64 {
    if report.elapsed_s > 0.0 { report.bytes as f64 * 8.0 / report.elapsed_s } else { 0.0 }
}

/// What the test asked for; a test of another kind is not shown here.
fn plan(sample: &Sample) -> UdpPlan {
    sample.test.kind.get().copied().unwrap_or(UdpPlan::paced(0.0, 0, 0))
}

/// Share of the rate from which it counts as reached: the last burst may be missing.
const REACHED: f64 = 0.995;

/// Whether the sender itself is why less was sent: it left datagrams out because it was late.
fn is_late(sent_bps: f64, asked_bps: f64, tx: &LoadReport) -> bool {
    let skipped = tx.udp_flow.as_ref().is_some_and(|flow| flow.skipped > 0);
    skipped && sent_bps < REACHED * asked_bps
}

/// One rate of another, with the unit once where it is the same: `85.2 of 100 Mbit/s`.
fn of(part_bps: f64, whole_bps: f64) -> String {
    let (part, whole) = (units::rate(part_bps), units::rate(whole_bps));
    match (part.split_once(' '), whole.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} of {whole}"),
        _ => format!("{part} of {whole}"),
    }
}

fn per_second(count: u64, report: &LoadReport) -> f64 {
    if report.elapsed_s > 0.0 { count as f64 / report.elapsed_s } else { 0.0 }
}

impl View for Udp {
    fn kind(&self) -> &'static str {
        "udp"
    }

    fn headline(&self, sample: &Sample, tx: &LoadReport, rx: &LoadReport) -> String {
        let (c, plan) = (counts(tx, rx), plan(sample));
        let sent_bps = plan.sent_bps(tx).unwrap_or(0.0);
        let sent = match plan.asked_bps() {
            Some(asked_bps) if is_late(sent_bps, asked_bps, tx) => {
                format!("{} asked for: this sender was too slow", of(sent_bps, asked_bps))
            }
            Some(asked_bps) => format!("{} asked for", of(sent_bps, asked_bps)),
            None => format!("{} sent flat out", units::rate(sent_bps)),
        };
        let mut missing = Vec::new();
        if c.lost > 0 {
            missing.push(format!("{} lost on the path", share(c.lost, c.sent)));
        }
        if c.dropped > 0 {
            missing.push(format!("{} dropped by the receiver", share(c.dropped, c.sent)));
        }
        if missing.is_empty() {
            return format!("{sent}; nothing lost");
        }
        format!("{sent}; {} delivered, {}", units::rate(rate(rx)), missing.join(", "))
    }

    fn text(&self, sample: &Sample, tx: &LoadReport, rx: &LoadReport) -> String {
        let (c, mut out) = (counts(tx, rx), String::new());
        let plan = plan(sample);
        let payload = plan.payload_bytes;
        let mut row = |name: &str, value: String| {
            let _ = writeln!(out, "{name:<24}  {value}");
        };
        let sent_bps = plan.sent_bps(tx).unwrap_or(0.0);
        let asked = plan.asked_bps();
        row("asked for", asked.map_or_else(|| "as much as the sender can send".to_owned(), units::rate));
        let of_asked = asked.filter(|asked| *asked > 0.0).map(|asked| sent_bps / asked);
        let of_asked =
            of_asked.map_or_else(String::new, |share| format!(" ({} of it)", units::percent(share)));
        // What other tools measured has no account of the flow, and no exact size of its datagrams.
        let is_ours = rx.udp_flow.is_some();
        let size = match payload {
            0 => String::new(),
            _ if is_ours => format!(" of {payload} bytes"),
            _ => format!(" of about {payload} bytes"),
        };
        let sent = format!("{} datagrams{size}, {}{of_asked}", c.sent, units::rate(sent_bps));
        row("sent", sent);
        // A sender alone counts what arrived, not how fast.
        let received_bps = Some(rate(rx)).filter(|bps| is_ours || *bps > 0.0);
        let received_bps = received_bps.map_or_else(String::new, |bps| format!(" {},", units::rate(bps)));
        let per_second = units::short(per_second(c.received, rx));
        row("received", format!("{} datagrams,{received_bps} {per_second} per second", c.received));
        row("lost on the path", format!("{} ({})", c.lost, share(c.lost, c.sent)));
        let got = rx.udp.unwrap_or_default();
        if got.kernel_drops.is_some() {
            let dropped = format!("{} ({}): its socket was full", c.dropped, share(c.dropped, c.sent));
            row("dropped by the receiver", dropped);
        }
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
            row("not sent", format!("{}: this sender was too slow", out_flow.skipped));
        }
        if is_ours {
            row("carried", carried(&out_flow, &flow));
        }
        if is_ours || tx.cpu_s + rx.cpu_s > 0.0 {
            row("CPU", format!("sender {:.2} s, receiver {:.2} s", tx.cpu_s, rx.cpu_s));
        }
        for (name, part) in whole_hosts(tx, rx) {
            row(name, part);
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
                units::rate,
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

/// In which units the datagrams went through the kernels: a rate of datagrams that were never cut is no rate
/// of packets.
fn carried(tx: &linerate_model::datagram::UdpFlow, rx: &linerate_model::datagram::UdpFlow) -> String {
    match (&tx.offload, &rx.offload) {
        (Some(_), Some(_)) => {
            format!("trains of {} (GSO), read in {} pieces (GRO): no rate of packets", tx.train, rx.units)
        }
        (Some(_), None) => format!("trains of {} (GSO), read one by one", tx.train),
        _ => format!("one by one, bursts of at most {}", tx.train),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::datagram::{UdpFlow, UdpOptions};
    use linerate_model::inventory::Layer;
    use linerate_model::load::UdpEnd;
    use linerate_model::plan::Test;
    use linerate_model::sample::Outcome;

    use super::*;
    use linerate_model::kind::TestKind;

    fn sample(flat_out: bool) -> Sample {
        let options = UdpOptions { flat_out, ..UdpOptions::default() };
        let kind =
            TestKind::from(UdpPlan { rate_bps: 100e6, payload_bytes: 1250, duration_ms: 1000, options });
        let test = Test { id: 1, ..Test::new("a".into(), "b".into(), Layer::Underlay, kind) };
        let outcome = Outcome::Gap { reason: String::new() };
        Sample::new(test, 0, outcome)
    }

    fn end(datagrams: u64, skipped: u64, kernel_drops: Option<u64>) -> LoadReport {
        LoadReport {
            bytes: datagrams * 1250,
            elapsed_s: 1.0,
            udp: Some(UdpEnd { datagrams, kernel_drops, ..UdpEnd::default() }),
            udp_flow: Some(UdpFlow { skipped, train: 4, ..UdpFlow::default() }),
            ..LoadReport::default()
        }
    }

    fn headline(flat_out: bool, tx: &LoadReport, rx: &LoadReport) -> String {
        Udp.headline(&sample(flat_out), tx, rx)
    }

    #[test]
    fn the_headline_begins_with_what_was_asked_for_and_what_was_sent() {
        let all = |datagrams| end(datagrams, 0, Some(0));
        assert_eq!(
            headline(false, &end(10_000, 0, None), &all(10_000)),
            "100 of 100 Mbit/s asked for; nothing lost"
        );
        assert_eq!(
            headline(false, &end(8_500, 1_500, None), &all(8_500)),
            "85 of 100 Mbit/s asked for: this sender was too slow; nothing lost"
        );
        assert_eq!(
            headline(false, &end(10_000, 0, None), &end(9_000, 0, Some(400))),
            "100 of 100 Mbit/s asked for; 90 Mbit/s delivered, 6 % lost on the path, 4 % dropped by the receiver"
        );
        assert_eq!(
            headline(true, &end(200_000, 0, None), &all(200_000)),
            "2 Gbit/s sent flat out; nothing lost"
        );
    }

    #[test]
    fn a_sender_is_called_slow_only_where_it_left_datagrams_out() {
        let less = headline(false, &end(50, 0, None), &end(50, 0, None));
        assert_eq!(less, "500 kbit/s of 100 Mbit/s asked for; nothing lost");
        // It was late once and caught up.
        let caught_up = headline(false, &end(9_990, 10, None), &end(9_990, 0, None));
        assert!(caught_up.ends_with("asked for; nothing lost"), "{caught_up}");
    }

    #[test]
    fn the_table_says_how_much_of_what_was_asked_for_was_sent() {
        let text = Udp.text(&sample(false), &end(8_500, 1_500, None), &end(8_500, 0, Some(0)));
        let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(row("asked for").ends_with("  100 Mbit/s"), "{text}");
        assert!(row("sent").ends_with("8500 datagrams of 1250 bytes, 85 Mbit/s (85 % of it)"), "{text}");
        assert!(row("not sent").ends_with("1500: this sender was too slow"), "{text}");
    }
}
