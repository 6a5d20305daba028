//! From the two reports of a test to its outcome. Pure.
//!
//! What comes in: the test, the sender's and the receiver's report. What goes out: a measurement, "nothing
//! got through", or "invalid" with the reason. Never an average over the start-up of a transfer.

use std::collections::BTreeMap;

use linerate_diagnose::stats::median;
use linerate_model::fact::FactKey;
use linerate_model::load::{Interval, LoadReport, Strangers, TestKind};
use linerate_model::printable::without_hint;
use linerate_model::sample::{Measurement, Outcome, Sample};

/// A TCP receiver may lack this much of what the sender wrote before both ends count as disagreeing: what was
/// still in buffers and in flight when the time was over.
const IN_FLIGHT_BYTES: u64 = 16 << 20;

/// The outcome of a test that both ends reported.
pub fn outcome(kind: &TestKind, tx: LoadReport, rx: LoadReport) -> Outcome {
    if let Some(refused) = [&tx, &rx].into_iter().find(|report| report.refused) {
        let reason = refused.stopped.clone().unwrap_or_else(|| "it cannot do what was asked for".to_owned());
        return Outcome::Gap { reason };
    }
    let nothing = nothing_through(kind, &tx, &rx);
    if let Some(reason) = strangers(kind, &tx, &rx, nothing) {
        return Outcome::Invalid { reason };
    }
    if let Some(what) = nothing {
        return Outcome::NothingThrough { reason: why_stopped(&tx, &rx).unwrap_or(what).to_owned() };
    }
    if let Some(reason) = disagreement(kind, &tx, &rx) {
        return Outcome::Invalid { reason };
    }
    let mut m = Measurement::default();
    match kind {
        TestKind::Tcp { .. } => tcp(&mut m, &tx, &rx),
        TestKind::Udp { rate_bps, payload_bytes, duration_ms, options } => {
            let rate_bps = if options.flat_out { 0.0 } else { *rate_bps };
            let planned = rate_bps * f64::from(*duration_ms) / 8000.0 / f64::from(*payload_bytes).max(1.0);
            if let Some(reason) = udp(&mut m, &tx, &rx, planned) {
                return Outcome::Invalid { reason };
            }
            m.asked_bps = (rate_bps > 0.0).then_some(rate_bps);
            let planned_s = if tx.stopped.is_none() { f64::from(*duration_ms) / 1e3 } else { 0.0 };
            m.sent_bps = rate(tx.bytes, tx.elapsed_s.max(planned_s));
        }
        TestKind::Rtt { .. } => m.rtt_idle_us = median(&tx.rtt_us),
        TestKind::Mtu { .. } => m.mtu.clone_from(&tx.mtu),
        TestKind::Latency(_) => {
            let median_us = |loaded: bool| {
                let phase = tx.latency.iter().find(|r| r.phase.loaded == loaded)?;
                phase.round_trip_ns.quantile(0.5).map(|ns| ns as f64 / 1e3)
            };
            (m.rtt_idle_us, m.rtt_loaded_us) = (median_us(false), median_us(true));
        }
        TestKind::PathMtu(_) | TestKind::Connects(_) | TestKind::Http(_) | TestKind::Disk(_) => {}
    }
    m.tx = Some(Box::new(tx));
    m.rx = Some(Box::new(rx));
    Outcome::Measured(Box::new(m))
}

fn why_stopped<'a>(tx: &'a LoadReport, rx: &'a LoadReport) -> Option<&'a str> {
    tx.stopped.as_deref().or(rx.stopped.as_deref())
}

/// What is missing, where nothing got through.
fn nothing_through(kind: &TestKind, tx: &LoadReport, rx: &LoadReport) -> Option<&'static str> {
    let (nothing, what) = match kind {
        TestKind::Tcp { .. } | TestKind::Udp { .. } => (rx.bytes == 0, "no byte arrived"),
        TestKind::Rtt { .. } => (tx.rtt_us.is_empty(), "no request was answered"),
        TestKind::Mtu { .. } => (tx.mtu.iter().all(|p| p.answered == 0), "no probe was answered"),
        TestKind::Latency(_) => {
            (tx.latency.iter().all(|r| r.round_trip_ns.count() == 0), "no request was answered")
        }
        TestKind::PathMtu(_) => (tx.path_mtu.is_none(), "no probe was answered"),
        TestKind::Connects(_) => (tx.connects.as_ref().is_none_or(|c| c.done == 0), "no connection was made"),
        TestKind::Http(_) => (tx.http.is_empty(), "nothing was downloaded"),
        TestKind::Disk(_) => (tx.disk.as_ref().is_none_or(|d| d.phases.is_empty()), "no request ended"),
    };
    nothing.then_some(what)
}

/// Share of the datagrams of a test that may have been dropped because of others: below it the loss is right
/// to its last digit.
const DROPPED_FOR_OTHERS_MAX: f64 = 0.001;

/// Why a test says nothing about the path because of what others sent to its port: `nothing` got through, or
/// less than should, while they were there. What reached its end in spite of them is measured.
fn strangers(kind: &TestKind, tx: &LoadReport, rx: &LoadReport, nothing: Option<&str>) -> Option<String> {
    let both = [tx, rx].into_iter().filter_map(|report| report.strangers);
    let met = both.fold(Strangers::default(), Strangers::and).some()?;
    let (own, failed) = match (kind, &tx.connects) {
        // Those that failed came without the token as well, and the one that ends the test.
        (TestKind::Connects(_), Some(end)) => (end.failed + 1, end.failed > 0),
        (TestKind::Latency(_), _) => (0, tx.stopped.is_some()),
        _ => (0, false),
    };
    let connections = met.connections.saturating_sub(own);
    let why = why_stopped(tx, rx).or(nothing).unwrap_or("not everything got through");
    if connections > 0 && (nothing.is_some() || failed) {
        return Some(format!("disturbed: {connections} foreign connections at the port of the test; {why}"));
    }
    let lost = match kind {
        TestKind::Udp { .. } => {
            let (sent, got) = (tx.udp.unwrap_or_default(), rx.udp.unwrap_or_default());
            let read = met.datagrams as f64 + got.datagrams as f64 + got.duplicates as f64;
            // The kernel does not say which it dropped: in proportion to those that were read.
            let of_test = met.dropped as f64 * (1.0 - met.datagrams as f64 / read.max(1.0));
            let for_others = met.dropped as f64 - of_test;
            for_others > DROPPED_FOR_OTHERS_MAX * sent.datagrams as f64
        }
        TestKind::Rtt { .. } | TestKind::Mtu { .. } | TestKind::PathMtu(_) | TestKind::Latency(_) => {
            met.dropped > 0
        }
        _ => false,
    };
    (lost && met.datagrams > 0).then(|| {
        format!(
            "disturbed: {} foreign datagrams at the port of the test, whose buffer was full for {}",
            met.datagrams, met.dropped
        )
    })
}

fn disagreement(kind: &TestKind, tx: &LoadReport, rx: &LoadReport) -> Option<String> {
    if !matches!(kind, TestKind::Tcp { .. } | TestKind::Udp { .. }) {
        return None;
    }
    if let Some(reason) = tx.stopped.as_ref().filter(|_| rx.bytes > tx.bytes) {
        // A sender that was broken off knows only what was acknowledged when it last looked.
        return Some(format!(
            "the sender ended early ({}) and knows of {} of {} bytes received",
            without_hint(reason).0,
            tx.bytes,
            rx.bytes
        ));
    }
    if rx.bytes > tx.bytes {
        return Some(format!(
            "{} bytes received but only {} sent: traffic of somebody else",
            rx.bytes, tx.bytes
        ));
    }
    let ended_well = tx.stopped.is_none() && rx.stopped.is_none();
    if ended_well && tx.drained && rx.drained && tx.bytes != rx.bytes && matches!(kind, TestKind::Tcp { .. })
    {
        return Some(format!(
            "{} bytes sent but {} received, although every stream was read to its end",
            tx.bytes, rx.bytes
        ));
    }
    let missing = tx.bytes - rx.bytes;
    let streams =
        if let TestKind::Tcp { streams, .. } = kind { u64::from(*streams).max(1) } else { return None };
    (ended_well && missing > IN_FLIGHT_BYTES * streams && missing * 50 > tx.bytes)
        .then(|| format!("{} bytes sent but {} received: the two ends disagree", tx.bytes, rx.bytes))
}

fn tcp(m: &mut Measurement, tx: &LoadReport, rx: &LoadReport) {
    // An iperf3 server that receives gives no series; its sender's, of bytes acknowledged, shows the same
    // start-up.
    let series = if rx.series.is_empty() { &tx.series } else { &rx.series };
    let skipped = start_up(series, tx.started_ms);
    let begin_ms = skipped.checked_sub(1).and_then(|i| series.get(i)).map_or(0.0, |i| i.at_ms);
    m.throughput_bps = steady(series, skipped).or_else(|| rate(rx.bytes, rx.elapsed_s));
    m.cpu_s_per_gb = cpu_cost(tx, rx);
    let loaded: Vec<f64> =
        tx.series.iter().filter(|i| i.at_ms > begin_ms && i.rtt_us > 0.0).map(|i| i.rtt_us).collect();
    m.rtt_loaded_us = median(&loaded);
    m.retransmits_per_s =
        tx.tcp.as_ref().filter(|_| tx.elapsed_s > 0.0).map(|end| end.retransmits as f64 / tx.elapsed_s);
}

/// Share of the planned datagrams below which a probe of loss is worthless.
const SENT_MIN: f64 = 0.1;

/// Fills the UDP values; gives the reason when the sender was not able to offer what was asked.
fn udp(m: &mut Measurement, tx: &LoadReport, rx: &LoadReport, planned: f64) -> Option<String> {
    let sent = tx.udp.unwrap_or_default().datagrams;
    let got = rx.udp.unwrap_or_default();
    if sent == 0 || got.datagrams > sent {
        return Some(format!("{} datagrams received but {sent} sent", got.datagrams));
    }
    // A late sender leaves datagrams out rather than sending them in a burst; with very few the share of the
    // lost says nothing.
    if tx.stopped.is_none() && (sent as f64) < planned * SENT_MIN {
        return Some(format!("only {sent} of about {planned:.0} datagrams could be sent in time"));
    }
    // What the receiver's own socket threw away is lost by the measurement, not by the path.
    let arrived = (got.datagrams + got.kernel_drops.unwrap_or(0)).min(sent);
    m.loss = Some(1.0 - arrived as f64 / sent as f64);
    m.reordered = Some(got.reordered as f64 / got.datagrams.max(1) as f64);
    m.duplicated = Some(got.duplicates as f64 / got.datagrams.max(1) as f64);
    m.throughput_bps = rate(rx.bytes, rx.elapsed_s);
    m.cpu_s_per_gb = cpu_cost(tx, rx);
    None
}

/// Counter of the receiver for datagrams whose checksum was wrong.
const WRONG_CHECKSUMS: &str = "snmp.Udp.InCsumErrors";

/// The kernel counts a datagram that arrived damaged among those that the socket threw away. That one the
/// path has lost.
pub(super) fn damaged_on_the_way(mut rx: LoadReport, counters: &BTreeMap<FactKey, i64>) -> LoadReport {
    let damaged = counters.get(WRONG_CHECKSUMS).copied().and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    if let Some(drops) = rx.udp.as_mut().and_then(|udp| udp.kernel_drops.as_mut()) {
        *drops = drops.saturating_sub(damaged);
    }
    rx
}

fn rate(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds)
}

/// Of both ends together, over the bytes of both directions.
fn cpu_cost(tx: &LoadReport, rx: &LoadReport) -> Option<f64> {
    let bytes = rx.bytes + tx.back.as_ref().map_or(0, |back| back.bytes);
    (rx.bytes > 0).then(|| (tx.cpu_s + rx.cpu_s) / (bytes as f64 / 1e9))
}

/// How many intervals belong to the start-up: until the sender's connections had left slow start
/// (`started_ms`, by their own state) and until one interval reaches 80 % of the median of the second half;
/// at least one, at most half of them. Both are needed: after slow start ended early a window may still grow,
/// and a series alone cannot tell a start from a rate that jumps. Series of fewer than four intervals are
/// kept whole.
fn start_up(series: &[Interval], started_ms: Option<f64>) -> usize {
    if series.len() < 4 {
        return 0;
    }
    let half = series.len() / 2;
    let later: Vec<f64> = series[half..].iter().map(|i| i.throughput_bps).collect();
    let level = 0.8 * median(&later).unwrap_or(0.0);
    let by_rate = series.iter().position(|i| i.throughput_bps >= level).unwrap_or(half);
    let by_state =
        started_ms.map_or(0, |started| series.iter().position(|i| i.at_ms > started).unwrap_or(series.len()));
    by_rate.max(by_state).clamp(1, half)
}

/// Mean rate of the intervals after the first `skipped`, weighted by their length.
fn steady(series: &[Interval], skipped: usize) -> Option<f64> {
    let mut before_ms = skipped.checked_sub(1).and_then(|i| series.get(i)).map_or(0.0, |i| i.at_ms);
    let (mut bits, mut seconds) = (0.0, 0.0);
    for interval in series.iter().skip(skipped) {
        let width_s = (interval.at_ms - before_ms) / 1e3;
        before_ms = interval.at_ms;
        if width_s > 0.0 && interval.throughput_bps.is_finite() {
            bits += interval.throughput_bps * width_s;
            seconds += width_s;
        }
    }
    (seconds > 0.0).then(|| bits / seconds)
}

/// Share of a test that an end may wait for a CPU before the test says more about the machine's other work
/// than about the path.
const WAIT_SHARE_MAX: f64 = 0.5;
/// Share of the path's rate from which a transfer counts as having filled it: framing and tunnel headers take
/// up to a tenth.
const PATH_FILLED: f64 = 0.8;

/// Whether a single stream mostly waited for a CPU because of what else its machine does. A host whose quota
/// holds it back (its cgroup was throttled) is no disturbance but a finding; and a test that filled its path
/// of `path_bps` was not harmed by waiting. Datagrams are counted at both ends and by the receiver's socket:
/// waiting loses none of them on the path.
pub fn starved(sample: &Sample, path_bps: impl FnOnce() -> Option<f64>) -> Option<String> {
    let Outcome::Measured(m) = &sample.outcome else { return None };
    if !matches!(sample.test.kind, TestKind::Tcp { streams: 1, .. }) {
        return None;
    }
    let waited =
        [(&sample.test.from, &m.tx, &sample.tx_counters), (&sample.test.to, &m.rx, &sample.rx_counters)]
            .into_iter()
            .find_map(|(host, report, counters)| {
                let report = report.as_ref()?;
                let throttled = counters.keys().any(|key| key.starts_with("cgroup."));
                (!throttled && report.wait_s > WAIT_SHARE_MAX * report.elapsed_s.max(0.1)).then(|| {
                    format!(
                        "the load on {host} waited {:.2} s of {:.2} s for a CPU",
                        report.wait_s, report.elapsed_s
                    )
                })
            });
    // Asked for last: it takes a look at the facts of both hosts.
    let filled =
        || path_bps().zip(m.throughput_bps).is_some_and(|(path, reached)| reached >= PATH_FILLED * path);
    waited.filter(|_| !filled())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::load::{TcpEnd, UdpEnd};

    const TCP: TestKind = TestKind::Tcp { streams: 1, duration_ms: 400 };

    fn series(rates: &[f64]) -> Vec<Interval> {
        rates
            .iter()
            .enumerate()
            .map(|(i, r)| Interval {
                at_ms: 50.0 * (i + 1) as f64,
                throughput_bps: *r,
                rtt_us: 1000.0 + i as f64,
                ..Interval::default()
            })
            .collect()
    }

    fn report(bytes: u64, rates: &[f64]) -> LoadReport {
        LoadReport { bytes, elapsed_s: 0.4, cpu_s: 0.05, series: series(rates), ..LoadReport::default() }
    }

    #[test]
    fn the_start_up_of_a_transfer_is_left_out() {
        let rates = [1e7, 5e7, 1.9e8, 2e8, 2e8, 2e8, 2e8, 2e8];
        let tx = LoadReport {
            tcp: Some(TcpEnd { retransmits: 4, ..TcpEnd::default() }),
            ..report(8_000_000, &rates)
        };
        let Outcome::Measured(m) = outcome(&TCP, tx, report(8_000_000, &rates)) else { panic!() };
        let got = m.throughput_bps.unwrap();
        assert!((1.98e8..=2e8).contains(&got), "{got}");
        assert_eq!(m.retransmits_per_s, Some(10.0));
        assert_eq!(m.cpu_s_per_gb, Some(12.5));
        assert_eq!(m.rtt_loaded_us, Some(1004.5));
    }

    #[test]
    fn a_transfer_that_jumps_between_two_rates_keeps_both() {
        let rates = [2e8, 2e8, 5e7, 5e7, 2e8, 2e8, 5e7, 5e7];
        let Outcome::Measured(m) = outcome(&TCP, report(6_250_000, &rates), report(6_250_000, &rates)) else {
            panic!()
        };
        assert!(m.throughput_bps.unwrap() < 1.3e8);
        assert_eq!(m.rx.unwrap().series.len(), 8);
    }

    #[test]
    fn the_state_of_the_connections_tells_when_the_start_up_ended() {
        let points = series(&[1.7e8, 1.8e8, 1.9e8, 2e8, 2e8, 2e8, 2e8, 2e8]);
        assert_eq!((start_up(&points, None), start_up(&points, Some(10.0))), (1, 1));
        assert_eq!(start_up(&points, Some(120.0)), 2);
        // Never more than half: something has to be left.
        assert_eq!(start_up(&points, Some(1e6)), 4);
        // Slow start ended at once, the window grew for long.
        let slow = series(&[2e7, 6e7, 1e8, 1.7e8, 2e8, 2e8, 2e8, 2e8]);
        assert_eq!(start_up(&slow, Some(0.0)), 3);
    }

    #[test]
    fn where_everything_was_read_a_single_byte_counts() {
        let drained = |bytes| LoadReport { drained: true, ..report(bytes, &[2e8; 8]) };
        let less = outcome(&TCP, drained(8_000_000), drained(7_999_999));
        assert!(matches!(&less, Outcome::Invalid { reason } if reason.contains("7999999")), "{less:?}");
        assert!(matches!(outcome(&TCP, drained(8_000_000), drained(8_000_000)), Outcome::Measured(_)));
    }

    /// A receiver that found others at its port.
    fn visited(strangers: Strangers) -> LoadReport {
        LoadReport {
            strangers: Some(strangers),
            stopped: Some("nothing arrived within 3000 ms: 0 of 2 streams".into()),
            ..LoadReport::default()
        }
    }

    #[test]
    fn a_test_that_foreign_connections_disturbed_is_invalid_and_never_nothing_through() {
        let rx = visited(Strangers { connections: 18, ..Strangers::default() });
        let got = outcome(&TCP, LoadReport::default(), rx.clone());
        let reason = "disturbed: 18 foreign connections at the port of the test; nothing arrived within 3000 ms: 0 of 2 streams";
        assert_eq!(got, Outcome::Invalid { reason: reason.into() });
        // What got through in spite of them is measured.
        let through = LoadReport { stopped: None, strangers: rx.strangers, ..report(8_000_000, &[2e8; 8]) };
        assert!(matches!(outcome(&TCP, report(8_000_000, &[2e8; 8]), through), Outcome::Measured(_)));
    }

    #[test]
    fn connections_of_a_sender_that_failed_are_no_foreign_ones() {
        let kind = TestKind::Connects(linerate_model::connects::ConnectsPlan {
            parallel: 1,
            duration_ms: 100,
            count_max: 50,
        });
        let end = linerate_model::connects::ConnectsEnd { failed: 10, ..Default::default() };
        let tx = LoadReport { connects: Some(end), ..LoadReport::default() };
        let came = |connections| visited(Strangers { connections, ..Strangers::default() });
        assert!(matches!(outcome(&kind, tx.clone(), came(11)), Outcome::NothingThrough { .. }));
        let got = outcome(&kind, tx, came(12));
        assert!(
            matches!(&got, Outcome::Invalid { reason } if reason.contains("1 foreign connection")),
            "{got:?}"
        );
    }

    #[test]
    fn foreign_datagrams_count_where_the_socket_had_to_drop() {
        let kind = TestKind::udp(8e6, 1000, 1000);
        let end = |datagrams| LoadReport {
            udp: Some(UdpEnd { datagrams, ..UdpEnd::default() }),
            bytes: datagrams * 1000,
            elapsed_s: 1.0,
            ..LoadReport::default()
        };
        let with = |datagrams, dropped| {
            let strangers = Some(Strangers { datagrams, dropped, ..Strangers::default() });
            outcome(&kind, end(1000), LoadReport { strangers, ..end(980) })
        };
        assert!(matches!(with(50_000, 0), Outcome::Measured(_)), "all of them were read");
        assert!(matches!(with(1, 20), Outcome::Measured(_)), "the drops are the test's own");
        let got = with(50_000, 200);
        assert!(
            matches!(&got, Outcome::Invalid { reason } if reason.starts_with("disturbed: 50000")),
            "{got:?}"
        );
        let full = LoadReport {
            strangers: Some(Strangers { datagrams: 9, dropped: 3, ..Strangers::default() }),
            ..LoadReport::default()
        };
        let rtt = TestKind::Rtt { count: 5 };
        assert!(matches!(outcome(&rtt, LoadReport::default(), full), Outcome::Invalid { .. }));
    }

    #[test]
    fn what_an_end_refused_to_begin_is_a_gap() {
        let reason = "host a: cannot run on CPU 99: this host allows CPU 0-1".to_owned();
        let tx = LoadReport { refused: true, stopped: Some(reason.clone()), ..LoadReport::default() };
        assert_eq!(outcome(&TCP, tx, LoadReport::default()), Outcome::Gap { reason });
    }

    #[test]
    fn nothing_through_is_a_value_with_its_reason() {
        let tx = LoadReport { stopped: Some("connect: timed out".into()), ..LoadReport::default() };
        let got = outcome(&TCP, tx, LoadReport::default());
        assert_eq!(got, Outcome::NothingThrough { reason: "connect: timed out".into() });
    }

    #[test]
    fn ends_that_disagree_are_invalid() {
        let more = outcome(&TCP, report(1000, &[]), report(2000, &[]));
        assert!(matches!(more, Outcome::Invalid { .. }), "{more:?}");
        let less = outcome(&TCP, report(1 << 30, &[]), report(1 << 28, &[]));
        assert!(matches!(less, Outcome::Invalid { .. }), "{less:?}");
    }

    #[test]
    fn a_sender_that_was_broken_off_is_named_rather_than_a_stranger() {
        let (mut tx, rx) = (report(999, &[1e9]), report(1000, &[1e9]));
        let reason = |tx: &LoadReport| match outcome(&TCP, tx.clone(), rx.clone()) {
            Outcome::Invalid { reason } => reason,
            other => panic!("{other:?}"),
        };
        assert!(reason(&tx).contains("traffic of somebody else"));
        tx.stopped = Some("the deadline".into());
        assert_eq!(
            reason(&tx),
            "the sender ended early (the deadline) and knows of 999 of 1000 bytes received"
        );
    }

    #[test]
    fn udp_counts_loss_and_refuses_a_sender_that_could_not_keep_up() {
        let kind = TestKind::udp(9.6e6, 1200, 1000);
        let end = |n: u64| LoadReport {
            bytes: n * 1200,
            elapsed_s: 1.0,
            udp: Some(UdpEnd { datagrams: n, ..UdpEnd::default() }),
            ..LoadReport::default()
        };
        let Outcome::Measured(m) = outcome(&kind, end(1000), end(980)) else { panic!() };
        assert_eq!((m.asked_bps, m.sent_bps), (Some(9.6e6), Some(9.6e6)));
        assert!((m.loss.unwrap() - 0.02).abs() < 1e-9);
        assert!(matches!(outcome(&kind, end(80), end(80)), Outcome::Invalid { .. }));
        let dropped = LoadReport {
            udp: Some(UdpEnd { datagrams: 980, kernel_drops: Some(20), ..UdpEnd::default() }),
            ..end(980)
        };
        let lost = |counters: &[(String, i64)]| {
            let counters = counters.iter().cloned().collect();
            match outcome(&kind, end(1000), damaged_on_the_way(dropped.clone(), &counters)) {
                Outcome::Measured(m) => m.loss.unwrap(),
                other => panic!("{other:?}"),
            }
        };
        assert!(lost(&[]).abs() < 1e-9, "the socket had no room");
        let damaged = lost(&[(WRONG_CHECKSUMS.to_owned(), 15)]);
        assert!((damaged - 0.015).abs() < 1e-9, "{damaged}: the path damaged them");
        assert!(matches!(outcome(&kind, end(1000), end(0)), Outcome::NothingThrough { .. }));
    }

    #[test]
    fn a_load_that_waited_for_a_cpu_is_worthless_unless_its_quota_held_it_back() {
        let test = linerate_model::plan::Test {
            id: 1,
            from: "a".into(),
            to: "b".into(),
            layer: linerate_model::inventory::Layer::Underlay,
            kind: TCP,
            repeat: 0,
            serial: false,
            second_stage: false,
        };
        let waited = LoadReport { wait_s: 0.3, ..report(8_000_000, &[2e8; 8]) };
        let mut sample = Sample {
            test,
            start_ms: 0,
            outcome: outcome(&TCP, report(8_000_000, &[2e8; 8]), waited),
            tx_counters: std::collections::BTreeMap::new(),
            rx_counters: std::collections::BTreeMap::new(),
        };
        assert!(starved(&sample, || None).unwrap().contains("on b waited 0.30 s"));
        assert!(starved(&sample, || Some(1e9)).is_some());
        assert_eq!(starved(&sample, || Some(2e8)), None, "it filled its path");
        sample.rx_counters.insert("cgroup.throttled_us".into(), 90_000);
        assert_eq!(starved(&sample, || None), None);
    }
}
