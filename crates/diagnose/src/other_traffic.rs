//! What else passed the NICs of both ends during a transfer: bytes that the NIC counted beside those of the
//! test itself. Each host takes part in one test at a time, so the rest is traffic of others.
//!
//! In: cells, with the counters of the NICs around each test. Out: the share of others at each end, and
//! remarks. What the host forwards counts too; what only shares a link behind the NIC is not seen.

use std::collections::BTreeMap;

use linerate_model::fact::FactKey;
use linerate_model::finding::Direction;
use linerate_model::inventory::Layer;
use linerate_model::kind::TcpPlan;
use linerate_model::load::LoadReport;
use linerate_model::remark::Remark;
use linerate_model::sample::{Measurement, Sample};

use crate::context::Context;
use crate::evidence::{CellEvidence, Facts};
use crate::rules::AttributeRules;
use crate::stats::median;

/// Traffic of others at a NIC during one test.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Others {
    /// Their share of what the NIC counted.
    share: f64,
    /// Their rate, bit/s.
    bps: f64,
}

/// What a NIC counted beside a test that moved these bytes of payload. `None` where it counted less: then it
/// does not see what passes (a NIC that offloads flows).
fn beside(counted: i64, report: &LoadReport, mss: u32, again: u64, rules: &AttributeRules) -> Option<Others> {
    let segment = if mss > 0 { f64::from(mss) } else { rules.segment_bytes };
    let headers = 1.0 + rules.tunnel_bytes / segment;
    let own = (report.bytes as f64 + again as f64 * segment) * headers;
    let counted = counted as f64;
    let is_seen = counted >= report.bytes as f64 && report.bytes > 0 && report.elapsed_s > 0.0;
    let others = (counted - own).max(0.0);
    is_seen.then(|| Others { share: others / counted, bps: others * 8.0 / report.elapsed_s })
}

/// The NIC with the bytes of a host's test: below an overlay, the NIC below it.
fn counted(
    facts: &Facts<'_>,
    host: &str,
    layer: Layer,
    counters: &BTreeMap<FactKey, i64>,
    what: &str,
) -> Option<i64> {
    let nic = facts.nic(host, Layer::Underlay).or_else(|| facts.nic(host, layer))?;
    counters.get(&format!("nic.{nic}.stat.{what}")).copied()
}

/// Traffic of others during a test: at the sender, beside what it sends, and at the receiver, beside what it
/// receives.
fn of_test(facts: &Facts<'_>, sample: &Sample, m: &Measurement) -> [Option<Others>; 2] {
    let test = &sample.test;
    // A calibration moves bytes that are not those of the test.
    let reports = m.tx.as_ref().zip(m.rx.as_ref()).filter(|(tx, _)| tx.calibration.is_empty());
    let Some((tx, rx)) = reports.filter(|_| test.kind.is::<TcpPlan>()) else { return [None, None] };
    let (mss, again) = tx.tcp.as_ref().map_or((0, 0), |tcp| (tcp.mss, tcp.retransmits));
    let rules = &facts.rules.attribute;
    let at = |host: &str, counters, what, report: &LoadReport| {
        beside(counted(facts, host, test.layer, counters, what)?, report, mss, again, rules)
    };
    [at(&test.from, &sample.tx_counters, "tx_bytes", tx), at(&test.to, &sample.rx_counters, "rx_bytes", rx)]
}

/// Share of others at the suspects' NICs during the tests of cells, at the end where it is larger: the median
/// over the tests.
pub(crate) fn share<'c, 'a: 'c>(
    facts: &Facts<'_>,
    cells: impl Iterator<Item = &'c CellEvidence<'a>>,
    suspects: &[&str],
) -> Option<f64> {
    let mut ends: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for (sample, m) in cells.flat_map(CellEvidence::measured) {
        let hosts = [sample.test.from.as_str(), sample.test.to.as_str()];
        for ((all, seen), host) in ends.iter_mut().zip(of_test(facts, sample, m)).zip(hosts) {
            all.extend(seen.filter(|_| suspects.contains(&host)).map(|others| others.share));
        }
    }
    ends.iter().filter_map(|shares| median(shares)).reduce(f64::max)
}

/// Hosts whose NICs carried much of others during the tests.
pub(crate) fn remarks(context: &Context<'_>) -> Vec<Remark> {
    let facts = &context.facts;
    let rules = &facts.rules.notes;
    let mut seen: BTreeMap<(&str, Direction), Vec<Others>> = BTreeMap::new();
    for cell in &context.cells {
        for (sample, m) in cell.measured() {
            let [tx, rx] = of_test(facts, sample, m);
            for (host, direction, others) in [(cell.from, Direction::Tx, tx), (cell.to, Direction::Rx, rx)] {
                seen.entry((host, direction)).or_default().extend(others);
            }
        }
    }
    let remark = |((host, direction), all): ((&str, Direction), Vec<Others>)| {
        let of = |value: fn(&Others) -> f64| median(&all.iter().map(value).collect::<Vec<_>>());
        let (share, bps) = (of(|o| o.share)?, of(|o| o.bps)?);
        let is_much = all.len() >= rules.others_tests_min && share >= rules.others_min;
        is_much.then(|| Remark::OtherTraffic { host: host.to_owned(), direction, share, bps })
    };
    seen.into_iter().filter_map(remark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    fn report(bytes: u64) -> LoadReport {
        LoadReport { bytes, elapsed_s: 1.0, ..LoadReport::default() }
    }

    #[test]
    fn headers_and_what_was_sent_again_are_no_traffic_of_others() {
        let rules = &Rules::DEFAULT.attribute;
        let test = report(10_000_000);
        // 1448 of 1538 bytes on the wire, and a tenth sent again.
        let wire = 10_000_000 * 1538 / 1448;
        let others = beside(wire + wire / 10, &test, 1448, 700, rules).unwrap();
        assert!(others.share < 0.01, "{others:?}");
        let others = beside(wire + 10_000_000, &test, 1448, 0, rules).unwrap();
        assert!((0.4..0.5).contains(&others.share), "{others:?}");
        assert!((7e7..8.1e7).contains(&others.bps), "{others:?}");
        // Segments of 256 bytes have headers of a third.
        let small = beside(10_000_000 * 346 / 256, &test, 256, 0, rules).unwrap();
        assert!(small.share < 0.01, "{small:?}");
    }

    #[test]
    fn a_nic_that_counts_less_than_the_test_gives_no_share() {
        let rules = &Rules::DEFAULT.attribute;
        assert_eq!(beside(1_000, &report(10_000_000), 1448, 0, rules), None);
        assert_eq!(beside(1_000, &report(0), 1448, 0, rules), None);
    }
}
