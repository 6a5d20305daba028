//! Hosts that answer slowly, so that a round with them takes many times as long as one without.
//!
//! What comes in: how long each small test took. What goes out: which further small tests are not worth
//! waiting for. A slow host still gets a few of each kind: that it is slow is what there is to see. It never
//! drops a test that moves data.

use std::collections::BTreeMap;

use linerate_model::inventory::HostName;
use linerate_model::kind::{MtuPlan, RttPlan};
use linerate_model::plan::Test;
use linerate_model::statistics::median;

/// Small tests of one kind, layer and direction that a slow host gets in any case.
const ENOUGH: usize = 3;
/// A host is slow when its small tests take this many times as long as those of all, and at least so long.
const TIMES: f64 = 4.0;
const LEAST_MS: f64 = 200.0;
/// Before so many tests nothing is said about a host.
const TESTS_MIN: usize = 4;

/// What the small tests took so far.
#[derive(Debug, Default)]
pub struct SmallTestTimes {
    took_ms: BTreeMap<HostName, Vec<f64>>,
    all_ms: Vec<f64>,
    /// Median of the above, until the next test ends.
    middle_ms: Option<f64>,
    /// Small tests done, by host, kind, layer and direction.
    done: BTreeMap<String, usize>,
    dropped: BTreeMap<HostName, usize>,
}

impl SmallTestTimes {
    /// A test ended after `took_ms`.
    pub fn saw(&mut self, test: &Test, took_ms: u64) {
        if !is_small(test) {
            return;
        }
        self.all_ms.push(took_ms as f64);
        self.middle_ms = None;
        for host in [&test.from, &test.to] {
            self.took_ms.entry(host.clone()).or_default().push(took_ms as f64);
            *self.done.entry(place(test, host)).or_default() += 1;
        }
    }

    /// Whether a test is not worth waiting for; counted as left out then.
    pub fn drops(&mut self, test: &Test) -> bool {
        if !is_small(test) {
            return false;
        }
        if self.middle_ms.is_none() {
            self.middle_ms = median(&self.all_ms);
        }
        let enough = |host: &&HostName| self.done.get(&place(test, host)).is_some_and(|n| *n >= ENOUGH);
        let slow = [&test.from, &test.to].into_iter().find(|h| self.is_slow(h) && enough(h)).cloned();
        if let Some(host) = &slow {
            *self.dropped.entry(host.clone()).or_default() += 1;
        }
        slow.is_some()
    }

    fn is_slow(&self, host: &str) -> bool {
        let Some(own) = self.took_ms.get(host).filter(|o| o.len() >= TESTS_MIN) else { return false };
        let (Some(own), Some(all)) = (median(own), self.middle_ms) else { return false };
        own > LEAST_MS && own > TIMES * all
    }

    /// What was left out, in words.
    pub fn left_out(&self) -> impl Iterator<Item = String> {
        self.dropped
            .iter()
            .map(|(host, count)| format!("{count} small tests with {host}, which answers slowly"))
    }
}

fn is_small(test: &Test) -> bool {
    test.kind.is::<RttPlan>() || test.kind.is::<MtuPlan>()
}

fn place(test: &Test, host: &str) -> String {
    let direction = if test.from == host { "from" } else { "to" };
    format!("{} {} {direction} {host}", test.kind.name(), test.layer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::inventory::Layer;
    use linerate_model::kind::TcpPlan;

    fn rtt(from: &str, to: &str) -> Test {
        Test {
            id: 1,
            serial: false,
            ..Test::new(from.into(), to.into(), Layer::Underlay, RttPlan { count: 6 }.into())
        }
    }

    #[test]
    fn a_slow_host_gets_a_few_small_tests_and_all_that_move_data() {
        let mut slow = SmallTestTimes::default();
        for partner in 1..=4 {
            let name = format!("h{partner}");
            assert!(!slow.drops(&rtt("tired", &name)));
            slow.saw(&rtt("tired", &name), 400);
            for other in 5..=8 {
                slow.saw(&rtt(&name, &format!("h{other}")), 60);
            }
        }
        assert!(slow.drops(&rtt("tired", "h5")));
        assert!(!slow.drops(&rtt("h5", "tired")), "the other direction was not seen yet");
        assert!(!slow.drops(&rtt("h1", "h9")), "its partners are not slow");
        let bulk = Test { kind: TcpPlan::single(300).into(), ..rtt("tired", "h5") };
        assert!(!slow.drops(&bulk));
        assert_eq!(slow.left_out().collect::<Vec<_>>(), ["1 small tests with tired, which answers slowly"]);
    }

    #[test]
    fn far_away_is_not_slow() {
        let mut slow = SmallTestTimes::default();
        for partner in 0..20 {
            slow.saw(&rtt("a", &format!("h{partner}")), 700);
        }
        assert!(!slow.drops(&rtt("a", "h30")));
    }
}
