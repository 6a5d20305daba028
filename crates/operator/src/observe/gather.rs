//! From the two reports of a test to its outcome. Pure.
//!
//! What comes in: the test, the sender's and the receiver's report. What goes out: a measurement, "nothing
//! got through", or "invalid" with the reason. What the reports of a kind come to, its plan knows.

use std::collections::BTreeMap;

use linerate_model::fact::FactKey;
use linerate_model::kind::{Interference, TcpPlan, TestKind, TestPlan};
use linerate_model::load::{LoadReport, Strangers};
use linerate_model::sample::{Measurement, Outcome, Sample};

/// The outcome of a test that both ends reported.
pub(crate) fn outcome(kind: &TestKind, tx: LoadReport, rx: LoadReport) -> Outcome {
    if let Some(refused) = [&tx, &rx].into_iter().find(|report| report.refused) {
        let reason = refused.stopped.clone().unwrap_or_else(|| "it cannot do what was asked for".to_owned());
        return Outcome::Gap { reason };
    }
    let plan = kind.plan();
    let nothing = plan.missing(&tx, &rx);
    if let Some(reason) = interfered(plan, &tx, &rx, nothing) {
        return Outcome::Invalid { reason };
    }
    if let Some(what) = nothing {
        return Outcome::NothingThrough { reason: why_stopped(&tx, &rx).unwrap_or(what).to_owned() };
    }
    let mut m = Measurement::default();
    if let Err(reason) = plan.read(&tx, &rx, &mut m) {
        return Outcome::Invalid { reason };
    }
    m.tx = Some(Box::new(tx));
    m.rx = Some(Box::new(rx));
    Outcome::Measured(Box::new(m))
}

fn why_stopped<'a>(tx: &'a LoadReport, rx: &'a LoadReport) -> Option<&'a str> {
    tx.stopped.as_deref().or(rx.stopped.as_deref())
}

/// Why a test says nothing about the path because of what others sent to its port: `nothing` got through, or
/// less than should, while they were there. What reached its end in spite of them is measured.
fn interfered(
    plan: &dyn TestPlan,
    tx: &LoadReport,
    rx: &LoadReport,
    nothing: Option<&str>,
) -> Option<String> {
    let both = [tx, rx].into_iter().filter_map(|report| report.strangers);
    let met = both.fold(Strangers::default(), Strangers::and).some()?;
    let Interference { own_connections, by_connections, by_datagrams } = plan.interference(tx, rx, met);
    let connections = met.connections.saturating_sub(own_connections);
    let why = why_stopped(tx, rx).or(nothing).unwrap_or("not everything got through");
    if connections > 0 && (nothing.is_some() || by_connections) {
        return Some(format!("contended: {connections} stray connections at the port of the test; {why}"));
    }
    (by_datagrams && met.datagrams > 0).then(|| {
        format!(
            "contended: {} stray datagrams at the port of the test, whose buffer was full for {}",
            met.datagrams, met.dropped
        )
    })
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
pub(crate) fn starved(sample: &Sample, path_bps: impl FnOnce() -> Option<f64>) -> Option<String> {
    let Outcome::Measured(m) = &sample.outcome else { return None };
    if !sample.test.kind.get().is_some_and(TcpPlan::is_single) {
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
    use linerate_model::kind::{RttPlan, UdpPlan};
    use linerate_model::load::{Interval, TcpEnd, UdpEnd};

    fn tcp() -> TestKind {
        TcpPlan::single(400).into()
    }

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
        let Outcome::Measured(m) = outcome(&tcp(), tx, report(8_000_000, &rates)) else { panic!() };
        let got = m.throughput_bps.unwrap();
        assert!((1.98e8..=2e8).contains(&got), "{got}");
        assert_eq!(m.retransmits_per_s, Some(10.0));
        assert_eq!(m.cpu_s_per_gb, Some(12.5));
        assert_eq!(m.rtt_loaded_us, Some(1004.5));
    }

    #[test]
    fn a_transfer_that_jumps_between_two_rates_keeps_both() {
        let rates = [2e8, 2e8, 5e7, 5e7, 2e8, 2e8, 5e7, 5e7];
        let Outcome::Measured(m) = outcome(&tcp(), report(6_250_000, &rates), report(6_250_000, &rates))
        else {
            panic!()
        };
        assert!(m.throughput_bps.unwrap() < 1.3e8);
        assert_eq!(m.rx.unwrap().series.len(), 8);
    }

    #[test]
    fn where_everything_was_read_a_single_byte_counts() {
        let drained = |bytes| LoadReport { drained: true, ..report(bytes, &[2e8; 8]) };
        let less = outcome(&tcp(), drained(8_000_000), drained(7_999_999));
        assert!(matches!(&less, Outcome::Invalid { reason } if reason.contains("7999999")), "{less:?}");
        assert!(matches!(outcome(&tcp(), drained(8_000_000), drained(8_000_000)), Outcome::Measured(_)));
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
    fn a_test_that_stray_connections_contended_is_invalid_and_never_nothing_through() {
        let rx = visited(Strangers { connections: 18, ..Strangers::default() });
        let got = outcome(&tcp(), LoadReport::default(), rx.clone());
        let reason = "contended: 18 stray connections at the port of the test; nothing arrived within 3000 ms: 0 of 2 streams";
        assert_eq!(got, Outcome::Invalid { reason: reason.into() });
        // What got through in spite of them is measured.
        let through = LoadReport { stopped: None, strangers: rx.strangers, ..report(8_000_000, &[2e8; 8]) };
        assert!(matches!(outcome(&tcp(), report(8_000_000, &[2e8; 8]), through), Outcome::Measured(_)));
    }

    #[test]
    fn connections_of_a_sender_that_failed_are_no_stray_ones() {
        let kind = TestKind::from(linerate_model::kind::ConnectsPlan {
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
            matches!(&got, Outcome::Invalid { reason } if reason.contains("1 stray connection")),
            "{got:?}"
        );
    }

    #[test]
    fn stray_datagrams_count_where_the_socket_had_to_drop() {
        let kind = TestKind::from(UdpPlan::paced(8e6, 1000, 1000));
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
            matches!(&got, Outcome::Invalid { reason } if reason.starts_with("contended: 50000")),
            "{got:?}"
        );
        let full = LoadReport {
            strangers: Some(Strangers { datagrams: 9, dropped: 3, ..Strangers::default() }),
            ..LoadReport::default()
        };
        let rtt = TestKind::from(RttPlan { count: 5 });
        assert!(matches!(outcome(&rtt, LoadReport::default(), full), Outcome::Invalid { .. }));
    }

    #[test]
    fn what_an_end_refused_to_begin_is_a_gap() {
        let reason = "host a: cannot run on CPU 99: this host allows CPU 0-1".to_owned();
        let tx = LoadReport { refused: true, stopped: Some(reason.clone()), ..LoadReport::default() };
        assert_eq!(outcome(&tcp(), tx, LoadReport::default()), Outcome::Gap { reason });
    }

    #[test]
    fn nothing_through_is_a_value_with_its_reason() {
        let tx = LoadReport { stopped: Some("connect: timed out".into()), ..LoadReport::default() };
        let got = outcome(&tcp(), tx, LoadReport::default());
        assert_eq!(got, Outcome::NothingThrough { reason: "connect: timed out".into() });
    }

    #[test]
    fn ends_that_disagree_are_invalid() {
        let more = outcome(&tcp(), report(1000, &[]), report(2000, &[]));
        assert!(matches!(more, Outcome::Invalid { .. }), "{more:?}");
        let less = outcome(&tcp(), report(1 << 30, &[]), report(1 << 28, &[]));
        assert!(matches!(less, Outcome::Invalid { .. }), "{less:?}");
    }

    #[test]
    fn a_sender_that_was_broken_off_is_named_rather_than_a_stranger() {
        let (mut tx, rx) = (report(999, &[1e9]), report(1000, &[1e9]));
        let reason = |tx: &LoadReport| match outcome(&tcp(), tx.clone(), rx.clone()) {
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
        let kind = TestKind::from(UdpPlan::paced(9.6e6, 1200, 1000));
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
            serial: false,
            ..linerate_model::plan::Test::new(
                "a".into(),
                "b".into(),
                linerate_model::inventory::Layer::Underlay,
                tcp(),
            )
        };
        let waited = LoadReport { wait_s: 0.3, ..report(8_000_000, &[2e8; 8]) };
        let mut sample = Sample::new(test, 0, outcome(&tcp(), report(8_000_000, &[2e8; 8]), waited));
        assert!(starved(&sample, || None).unwrap().contains("on b waited 0.30 s"));
        assert!(starved(&sample, || Some(1e9)).is_some());
        assert_eq!(starved(&sample, || Some(2e8)), None, "it filled its path");
        sample.rx_counters.insert("cgroup.throttled_us".into(), 90_000);
        assert_eq!(starved(&sample, || None), None);
    }
}
