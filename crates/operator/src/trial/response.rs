//! What a trial measures: for each response the test that shows it, and the value read from its outcome.
//! Pure. The value is in the unit of the response; which direction is better is the diagnosis' knowledge.

use linerate_model::finding::Metric;
use linerate_model::inventory::{HostName, Layer};
use linerate_model::kind::{MtuPlan, RttPlan, TcpPlan, UdpPlan};
use linerate_model::load::Interval;
use linerate_model::path_mtu::MtuProbe;
use linerate_model::plan::Test;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::Snapshot;

/// Payload of UDP probes: fits every tunnel, so that loss is not mistaken for an MTU fault.
const UDP_PAYLOAD_BYTES: u16 = 1200;
/// Share of the known rate that a UDP probe takes.
const UDP_SHARE: f64 = 0.2;
/// Rate of a UDP probe where no rate is known, and its limits, bit/s.
const UDP_BPS: (f64, f64, f64) = (20e6, 2e6, 200e6);
/// Requests of an RTT test.
const RTT_COUNT: u16 = 40;
/// Packet sizes that are probed when the survey did not: the smallest that all must take, and Ethernet's full
/// size.
const MTU_SIZES: [u32; 2] = [576, 1500];
/// Probes per size.
const MTU_TRIES: u8 = 3;
/// The start of a transfer does not belong to its levels, milliseconds.
const STARTUP_MS: f64 = 200.0;

/// The test that shows a response on a pair. `ceiling_bps` is what the pair should carry, where known.
pub fn test(
    response: Metric,
    pair: &(HostName, HostName),
    layer: Layer,
    snapshot: &Snapshot,
    ceiling_bps: Option<f64>,
    duration_ms: u32,
) -> Test {
    let kind = match response {
        Metric::Loss | Metric::Reordering | Metric::Stalls => {
            let rate_bps = ceiling_bps.map_or(UDP_BPS.0, |c| (c * UDP_SHARE).clamp(UDP_BPS.1, UDP_BPS.2));
            UdpPlan::paced(rate_bps, UDP_PAYLOAD_BYTES, duration_ms).into()
        }
        Metric::RttIdle => RttPlan { count: RTT_COUNT }.into(),
        Metric::PathMtu => MtuPlan { sizes: sizes(pair, layer, snapshot), tries: MTU_TRIES }.into(),
        _ => TcpPlan::single(duration_ms).into(),
    };
    Test {
        // Numbers of a trial's tests are above those of any survey.
        id: 1_000_000,
        from: pair.0.clone(),
        to: pair.1.clone(),
        layer,
        kind,
        repeat: 0,
        serial: true,
        second_stage: false,
    }
}

/// The sizes that the survey probed on this pair.
fn sizes(pair: &(HostName, HostName), layer: Layer, snapshot: &Snapshot) -> Vec<u32> {
    let of_pair = |s: &&Sample| s.test.from == pair.0 && s.test.to == pair.1 && s.test.layer == layer;
    let probed = snapshot.samples.iter().filter(of_pair).find_map(|s| s.test.kind.get::<MtuPlan>());
    probed.map_or_else(|| MTU_SIZES.to_vec(), |plan| plan.sizes.clone())
}

/// The value of a response; `None` when the test says nothing about it.
pub fn value(response: Metric, outcome: &Outcome) -> Option<f64> {
    match outcome {
        Outcome::Measured(m) => measured(response, m).filter(|v| v.is_finite()),
        // Nothing through is the worst throughput there is, and says nothing about a time or a cost.
        Outcome::NothingThrough { .. } => match response {
            Metric::Throughput | Metric::TwoState | Metric::PathMtu => Some(0.0),
            Metric::Loss => Some(1.0),
            _ => None,
        },
        Outcome::Invalid { .. } | Outcome::Gap { .. } => None,
    }
}

fn measured(response: Metric, m: &Measurement) -> Option<f64> {
    match response {
        Metric::Throughput => m.throughput_bps,
        // It is read; the throughput is what a change of it is measured by.
        Metric::Setting | Metric::TcpOptions => None,
        Metric::TwoState => low_level(m).or(m.throughput_bps),
        Metric::Loss => m.loss,
        Metric::Reordering => Some(m.reordered? + m.duplicated.unwrap_or(0.0)),
        Metric::Retransmits => m.retransmits_per_s,
        Metric::RttIdle => m.rtt_idle_us,
        Metric::RttLoaded => m.rtt_loaded_us,
        Metric::Stalls => m.latest_us(),
        Metric::CpuCost => m.cpu_s_per_gb,
        // The largest size of which most probes arrive.
        Metric::PathMtu => {
            let arrives = |p: &&MtuProbe| u32::from(p.answered) * 2 > u32::from(p.sent);
            let largest = m.mtu.iter().filter(arrives).map(|p| p.bytes).max();
            (!m.mtu.is_empty()).then(|| f64::from(largest.unwrap_or(0)))
        }
        Metric::Storage => {
            let phase = m.tx.as_ref()?.disk.as_ref()?.phases.first()?;
            phase.is_evidence().then(|| phase.bytes_per_s())
        }
    }
}

/// The low level of a throughput that jumps: the tenth part of the intervals, never the mean of both levels.
fn low_level(m: &Measurement) -> Option<f64> {
    let series = m.rx.as_ref().or(m.tx.as_ref()).map(|r| r.series.as_slice())?;
    let settled = |i: &&Interval| i.at_ms > STARTUP_MS;
    let mut rates: Vec<f64> = series.iter().filter(settled).map(|i| i.throughput_bps).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 10).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::load::LoadReport;

    #[test]
    fn bimodal_throughput_is_judged_by_its_low_level() {
        let series: Vec<Interval> = (0..40)
            .map(|i| Interval {
                at_ms: f64::from(i) * 50.0,
                throughput_bps: if i % 2 == 0 { 9.47e9 } else { 2.33e9 },
                ..Interval::default()
            })
            .collect();
        let m = Measurement {
            throughput_bps: Some(5.9e9),
            rx: Some(Box::new(LoadReport { series, ..LoadReport::default() })),
            ..Measurement::default()
        };
        assert_eq!(value(Metric::TwoState, &Outcome::Measured(Box::new(m))), Some(2.33e9));
    }

    #[test]
    fn nothing_through_is_zero_throughput_and_no_time() {
        let dead = Outcome::NothingThrough { reason: "connect".into() };
        assert_eq!(value(Metric::Throughput, &dead), Some(0.0));
        assert_eq!(value(Metric::Loss, &dead), Some(1.0));
        assert_eq!(value(Metric::RttIdle, &dead), None);
        assert_eq!(value(Metric::Throughput, &Outcome::Invalid { reason: "late".into() }), None);
    }

    #[test]
    fn path_mtu_is_the_largest_size_that_arrives() {
        let probe = |bytes, answered| MtuProbe { bytes, sent: 3, answered, refused_mtu: None };
        let m = Measurement { mtu: vec![probe(576, 3), probe(1500, 0)], ..Measurement::default() };
        assert_eq!(value(Metric::PathMtu, &Outcome::Measured(Box::new(m))), Some(576.0));
    }

    #[test]
    fn each_response_has_its_test() {
        let snapshot = Snapshot::default();
        let pair = ("a".to_owned(), "b".to_owned());
        let kind = |r| test(r, &pair, Layer::Overlay, &snapshot, Some(190e6), 800).kind;
        assert_eq!(kind(Metric::CpuCost).name(), "tcp");
        assert_eq!(kind(Metric::PathMtu).name(), "mtu");
        let loss = kind(Metric::Loss);
        assert!(loss.get().is_some_and(|udp: &UdpPlan| (udp.rate_bps - 38e6).abs() < 1.0));
    }
}
