//! UDP tests with an offered rate above the capacity of the path: their packet loss is expected and is no
//! fault.
//!
//! In: samples and facts as read. Out: the same, with such tests marked invalid for packet loss.

use std::collections::BTreeMap;

use linerate_model::fact::HostFacts;
use linerate_model::inventory::HostName;
use linerate_model::kind::{TcpPlan, UdpPlan};
use linerate_model::sample::{Outcome, Sample};
use linerate_model::units::rate;

/// Share of the path's capacity from which an offered rate is too high: headers and other traffic take the
/// rest.
const TOO_MUCH: f64 = 0.95;

/// Marks such tests invalid.
pub(crate) fn mark(samples: &mut [Sample], facts: &BTreeMap<HostName, HostFacts>) {
    let carried = Carried::new(samples, facts);
    for sample in samples {
        let Some(UdpPlan { rate_bps, .. }) = sample.test.kind.get().copied() else { continue };
        let lost = matches!(&sample.outcome, Outcome::Measured(m) if m.loss.is_some_and(|loss| loss > 0.0));
        let limit = carried.between(&sample.test.from, &sample.test.to);
        let Some(limit) = limit.filter(|limit| lost && rate_bps > TOO_MUCH * limit) else { continue };
        let reason = format!(
            "{} of datagrams were offered where {} can be carried: that what is too much was lost is no fault",
            rate(rate_bps),
            rate(limit)
        );
        sample.outcome = Outcome::Invalid { reason };
    }
}

/// Capacity of paths, bit/s.
struct Carried {
    /// Fastest known link of each host.
    links: BTreeMap<HostName, f64>,
    /// Best TCP throughput from one host to another.
    tcp: BTreeMap<(HostName, HostName), f64>,
}

impl Carried {
    fn new(samples: &[Sample], facts: &BTreeMap<HostName, HostFacts>) -> Self {
        let link = |(host, facts): (&HostName, &HostFacts)| {
            let readings = facts.readings.iter();
            let speeds = readings.filter(|(key, _)| key.starts_with("nic.") && key.ends_with(".speed_mbit"));
            let mbit = speeds
                .filter_map(|(_, value)| value.number(0))
                .filter(|mbit| *mbit > 0.0)
                .reduce(f64::max)?;
            Some((host.clone(), mbit * 1e6))
        };
        let mut tcp: BTreeMap<(HostName, HostName), f64> = BTreeMap::new();
        for sample in samples.iter().filter(|s| s.test.kind.is::<TcpPlan>()) {
            let Outcome::Measured(m) = &sample.outcome else { continue };
            let best = tcp.entry((sample.test.from.clone(), sample.test.to.clone())).or_default();
            *best = best.max(m.throughput_bps.unwrap_or_default());
        }
        Self { links: facts.iter().filter_map(link).collect(), tcp }
    }

    /// The slower link of both ends, or the TCP throughput if no link is known.
    fn between(&self, from: &HostName, to: &HostName) -> Option<f64> {
        let links = [from, to].into_iter().filter_map(|host| self.links.get(host)).copied();
        let tcp = || self.tcp.get(&(from.clone(), to.clone())).copied().filter(|bps| *bps > 0.0);
        links.reduce(f64::min).or_else(tcp)
    }
}
