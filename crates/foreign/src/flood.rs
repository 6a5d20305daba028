//! Datagrams that were offered faster than the path can carry: what is too much is lost, and no fault is needed for that.
//!
//! In: samples and facts as they were read. Out: the same, with such tests marked as saying nothing of a loss.

use std::collections::BTreeMap;

use linerate_model::fact::HostFacts;
use linerate_model::inventory::HostName;
use linerate_model::load::TestKind;
use linerate_model::sample::{Outcome, Sample};

/// From this share of what the path carries on, an offer is too much: headers, and other traffic, take their part.
const TOO_MUCH: f64 = 0.95;

/// Marks them.
pub(crate) fn mark(samples: &mut [Sample], facts: &BTreeMap<HostName, HostFacts>) {
    let limits: Vec<Option<f64>> = samples.iter().map(|sample| carried(sample, samples, facts)).collect();
    for (sample, limit) in samples.iter_mut().zip(limits) {
        let TestKind::Udp { rate_bps, .. } = sample.test.kind else { continue };
        let lost = matches!(&sample.outcome, Outcome::Measured(m) if m.loss.is_some_and(|loss| loss > 0.0));
        let Some(limit) = limit.filter(|limit| lost && rate_bps > TOO_MUCH * limit) else { continue };
        let reason = format!(
            "{} of datagrams were offered where {} can be carried: that what is too much was lost is no fault",
            rate(rate_bps),
            rate(limit)
        );
        sample.outcome = Outcome::Invalid { reason };
    }
}

/// What the path of a sample carries: the slower link of both ends, or what TCP reached on it where no link is known.
fn carried(sample: &Sample, all: &[Sample], facts: &BTreeMap<HostName, HostFacts>) -> Option<f64> {
    let link = |host: &HostName| {
        let readings = facts.get(host)?.readings.iter();
        let speeds = readings.filter(|(key, _)| key.starts_with("nic.") && key.ends_with(".speed_mbit"));
        speeds.filter_map(|(_, value)| value.number(0)).filter(|mbit| *mbit > 0.0).reduce(f64::max)
    };
    let links = [&sample.test.from, &sample.test.to].into_iter().filter_map(link).map(|mbit| mbit * 1e6);
    let tcp = || {
        let same = all.iter().filter(|s| s.test.from == sample.test.from && s.test.to == sample.test.to);
        let rates =
            same.filter(|s| matches!(s.test.kind, TestKind::Tcp { .. })).filter_map(|s| match &s.outcome {
                Outcome::Measured(m) => m.throughput_bps,
                _ => None,
            });
        rates.reduce(f64::max)
    };
    links.reduce(f64::min).or_else(tcp)
}

fn rate(bps: f64) -> String {
    if bps >= 1e9 { format!("{:.2} Gbit/s", bps / 1e9) } else { format!("{:.0} Mbit/s", bps / 1e6) }
}
