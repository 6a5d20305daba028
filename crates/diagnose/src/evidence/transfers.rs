//! The transfers of a cell: how fast each was, and the series of one.
//!
//! In: samples of one ordered pair in one layer. Out: rates, bit/s. Nothing is judged here.

use linerate_model::kind::TcpPlan;
use linerate_model::load::LoadReport;
use linerate_model::sample::{Measurement, Outcome, Sample};

use crate::rules::EvidenceRules;
use crate::stats::two_levels;

/// Throughput of the single-stream tests; of all TCP tests when there is none with a single stream.
pub(super) fn rates(samples: &[&Sample], rules: &EvidenceRules) -> Vec<f64> {
    let single = rates_of(samples.iter(), true, rules);
    if single.is_empty() { rates_of(samples.iter(), false, rules) } else { single }
}

/// Throughput of the TCP tests, of those with a single stream or of all.
pub(super) fn rates_of<'s, 'a: 's>(
    samples: impl Iterator<Item = &'s &'a Sample>,
    single: bool,
    rules: &EvidenceRules,
) -> Vec<f64> {
    samples
        .filter(|s| s.test.kind.get().is_some_and(|tcp: &TcpPlan| !single || tcp.is_single()))
        .flat_map(|s| rates_in(s, rules))
        .map(|(_, rate)| rate)
        .filter(|v| v.is_finite() && *v >= 0.0)
        .collect()
}

/// The throughput of a TCP test, and when it began, milliseconds since the start of the test. A transfer of
/// one stream that is long enough to show a state and its end counts as several where its rate jumps between
/// two levels: its mean is the rate of neither.
pub(super) fn rates_in(sample: &Sample, rules: &EvidenceRules) -> Vec<(u64, f64)> {
    let Some(plan) = sample.test.kind.get::<TcpPlan>() else { return Vec::new() };
    match &sample.outcome {
        Outcome::Measured(m) => {
            let is_long = plan.is_single() && plan.duration_ms >= rules.long_ms;
            let jumps = || two_levels(&series(m, rules), rules).is_some();
            let parts = if is_long && jumps() { parts(m, rules) } else { Vec::new() };
            if parts.is_empty() {
                m.throughput_bps.map(|rate| (0, rate)).into_iter().collect()
            } else {
                parts
            }
        }
        Outcome::NothingThrough { .. } => vec![(0, 0.0)],
        _ => Vec::new(),
    }
}

/// The rates of the whole parts of a transfer, [`EvidenceRules::part_ms`] each, without its start.
fn parts(measurement: &Measurement, rules: &EvidenceRules) -> Vec<(u64, f64)> {
    let ends = [&measurement.rx, &measurement.tx];
    let Some(end) = ends.into_iter().flatten().find(|end| !end.series.is_empty()) else { return Vec::new() };
    let (mut parts, mut bits, mut begin_ms, mut last_ms) = (Vec::new(), 0.0, 0.0, 0.0);
    for interval in &end.series {
        let duration_ms = interval.at_ms - last_ms;
        last_ms = interval.at_ms;
        if interval.at_ms <= rules.ramp_ms {
            begin_ms = interval.at_ms;
            continue;
        }
        bits += interval.throughput_bps * duration_ms;
        if last_ms - begin_ms >= rules.part_ms {
            parts.push((begin_ms as u64, bits / (last_ms - begin_ms)));
            (bits, begin_ms) = (0.0, last_ms);
        }
    }
    parts
}

/// The receiver's series where it has one, else the sender's, without the start of the transfer, smoothed
/// over [`EvidenceRules::smoothing_ms`]: what is read in bunches shows as an empty interval beside a double
/// one.
pub(crate) fn series(measurement: &Measurement, rules: &EvidenceRules) -> Vec<f64> {
    let long = |report: &Option<Box<LoadReport>>| -> Option<Vec<f64>> {
        let series = &report.as_ref()?.series;
        let end = series.last()?.at_ms;
        let step = end / series.len() as f64;
        let start = if step < rules.smoothing_ms { rules.ramp_ms } else { 0.0 };
        let raw: Vec<f64> = series.iter().filter(|i| i.at_ms > start).map(|i| i.throughput_bps).collect();
        let width = ((rules.smoothing_ms / step.max(1.0)).round() as usize).clamp(1, raw.len().max(1));
        Some(raw.windows(width).map(|w| w.iter().sum::<f64>() / w.len() as f64).collect())
    };
    long(&measurement.rx).filter(|s| !s.is_empty()).or_else(|| long(&measurement.tx)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use linerate_model::inventory::Layer;
    use linerate_model::load::Interval;
    use linerate_model::plan::Test;

    use super::*;
    use crate::rules::Rules;

    /// A transfer with a rate every 20 ms; its mean is 100 Mbit/s.
    fn sample(duration_ms: u32, rate_at: impl Fn(u32) -> f64) -> Sample {
        let interval = |at_ms: u32| Interval {
            at_ms: at_ms.into(),
            throughput_bps: rate_at(at_ms),
            ..Interval::default()
        };
        let series = (1..=duration_ms / 20).map(|i| interval(20 * i)).collect();
        let measured = Measurement {
            throughput_bps: Some(100e6),
            rx: Some(Box::new(LoadReport { series, ..LoadReport::default() })),
            ..Measurement::default()
        };
        let test = Test::new("a".into(), "b".into(), Layer::Underlay, TcpPlan::single(duration_ms).into());
        Sample::new(test, 0, Outcome::Measured(Box::new(measured)))
    }

    fn rates(sample: &Sample) -> Vec<f64> {
        rates_of([sample].iter(), true, &Rules::DEFAULT.evidence).into_iter().map(f64::round).collect()
    }

    #[test]
    fn a_long_transfer_that_jumps_counts_as_its_parts() {
        let rate_at = |at_ms| if (950..=1740).contains(&at_ms) { 50e6 } else { 190e6 };
        let parts = rates(&sample(2500, rate_at));
        assert_eq!(parts[..5], [190e6, 190e6, 50e6, 50e6, 190e6], "{parts:?}");
        assert_eq!(parts.len(), 5);
        assert_eq!(
            rates(&sample(1000, |at_ms| rate_at(at_ms + 600))),
            [100e6],
            "one state is all it has time for"
        );
        assert_eq!(rates(&sample(2500, |_| 100e6)), [100e6]);
    }
}
