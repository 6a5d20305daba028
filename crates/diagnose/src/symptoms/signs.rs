//! The signs of one ordered pair: what a transfer shows by itself.
//!
//! In: a cell with its ceiling, the others beside it. Out: signs.

use std::net::IpAddr;

use linerate_model::finding::Cell;
use linerate_model::inventory::Layer;
use linerate_model::kind::{RttPlan, TcpPlan};
use linerate_model::sample::{Measurement, Sample};
use linerate_model::symptom::{Sign, Symptom};

use super::course;
use crate::evidence::CellEvidence;
use crate::rules::{CeilingRules, SymptomRules};
use crate::stats::{mean, median};

pub(super) fn symptom(from: &str, to: &str, layer: Layer, sign: Sign) -> Symptom {
    Symptom { from: from.to_owned(), to: to.to_owned(), layer, sign }
}

pub(super) fn signs(
    cell: &CellEvidence<'_>,
    reported: &Cell,
    all: &[CellEvidence<'_>],
    rules: &SymptomRules,
    ports: &CeilingRules,
) -> Vec<Sign> {
    let mut signs = Vec::new();
    signs.extend(pings(cell, rules));
    signs.extend(slow_answers(cell, rules));
    let Some(whole_bps) = cell.throughput_bps else { return signs };
    let burst = course::burst(cell, rules);
    // What a bucket or a cache let through at first is no rate that lasts.
    let bps = match &burst {
        Some(Sign::Burst { bps, .. }) => *bps,
        _ => whole_bps,
    };
    let ends = [(cell.to, cell.core_busy_rx), (cell.from, cell.core_busy_tx)];
    let full =
        ends.into_iter().find_map(|(host, busy)| Some((host, busy.filter(|b| *b >= rules.core_full)?)));
    signs.extend(full.map(|(host, busy)| Sign::CoreFull { host: host.to_owned(), busy, bps }));
    let rtt_us = cell.rtt_idle_us.or(cell.rtt_loaded_us);
    // After a loss the window is small because of it.
    let is_lossless = cell.retransmits_per_s.is_none_or(|per_s| per_s <= 0.0);
    signs.extend(window(cell.window_bytes, rtt_us, bps, rules).filter(|_| is_lossless));
    let is_burst = burst.is_some();
    signs.extend(burst);
    signs.extend(cell.two.filter(|_| !is_burst).map(|two| Sign::TwoLevels { high: two.high, low: two.low }));
    let stands = standstill(cell, rules);
    signs.extend(stands.map(|share| Sign::Standstill { share }));
    let back = all.iter().find(|o| (o.from, o.to, o.layer) == (cell.to, cell.from, cell.layer));
    if let Some(back_bps) = back.and_then(|o| o.throughput_bps).filter(|b| *b >= rules.apart_min * bps) {
        signs.push(Sign::OneDirection { bps, back_bps });
    }
    let rates = |several: bool| {
        let of = |s: &&Sample| s.test.kind.get().is_some_and(|t: &TcpPlan| t.is_parallel() == several);
        let rates: Vec<f64> = cell
            .measured()
            .filter(|(s, _)| of(s))
            .filter_map(|(_, m): (_, &Measurement)| m.throughput_bps)
            .collect();
        median(&rates)
    };
    if let Some((one, several_bps)) = rates(false).zip(rates(true)).filter(|(a, b)| *b >= rules.apart_min * a)
    {
        signs.push(Sign::OneStream { bps: one, several_bps });
    }
    let link_bps = reported.ceiling.known_bps();
    let resent = resent(cell, rules);
    match link_bps {
        Some(link_bps) if bps < rules.below_link * link_bps => signs.push(Sign::BelowLink { bps, link_bps }),
        // More is wrong than the rate.
        _ if resent.is_some() => {}
        // With several pairs the peers are the standard, on any hardware.
        _ if signs.is_empty() => {
            let is_alone = reported.ceiling.bps.is_none();
            signs.extend(port(bps, cell.mss_bytes, rules, ports).filter(|sign| is_alone || !sign.is_fault()));
        }
        _ => {}
    }
    signs.extend(resent);
    signs
}

/// What pings show: answers that are missing.
fn pings(cell: &CellEvidence<'_>, rules: &SymptomRules) -> Option<Sign> {
    let of_pings = cell.measured().filter(|(sample, _)| sample.test.kind.is::<RttPlan>());
    let losses: Vec<f64> = of_pings.map(|(_, m)| m.loss.unwrap_or(0.0)).collect();
    let share = mean(&losses).filter(|share| *share >= rules.unanswered_min);
    share.map(|share| Sign::Unanswered { share })
}

/// Pings that take so long that no distance explains it: a queue, power saving or a radio link holds them.
fn slow_answers(cell: &CellEvidence<'_>, rules: &SymptomRules) -> Option<Sign> {
    let of_pings = cell.measured().filter(|(sample, _)| sample.test.kind.is::<RttPlan>());
    let rtts_us: Vec<f64> = of_pings.filter_map(|(_, m)| m.rtt_idle_us).collect();
    let least_us = if is_private(cell.to) { rules.answer_near_us_min } else { rules.answer_far_us_min };
    median(&rtts_us).filter(|rtt_us| *rtt_us >= least_us).map(|rtt_us| Sign::SlowAnswers { rtt_us })
}

/// Whether a host is known by an address of a private network.
fn is_private(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(v4)) => v4.is_private() || v4.is_link_local(),
        Ok(IpAddr::V6(v6)) => v6.is_unique_local() || v6.is_unicast_link_local(),
        Err(_) => false,
    }
}

/// Whether so many segments are sent again that it matters at any rate.
fn resent(cell: &CellEvidence<'_>, rules: &SymptomRules) -> Option<Sign> {
    let per_s = cell.retransmits_per_s.filter(|per_s| *per_s >= rules.resent_per_s_min)?;
    let segment_bytes = cell.mss_bytes.unwrap_or(rules.usual_mss_max);
    let share = per_s * segment_bytes * 8.0 / cell.throughput_bps.filter(|bps| *bps > 0.0)?;
    (share >= rules.resent_share_min).then_some(Sign::Resent { per_s, share: share.min(1.0) })
}

/// Whether what may be in flight is what limits: it over the RTT is what was reached.
pub(super) fn window(
    window_bytes: Option<f64>,
    rtt_us: Option<f64>,
    bps: f64,
    rules: &SymptomRules,
) -> Option<Sign> {
    let (window_bytes, rtt_us) = window_bytes.zip(rtt_us.filter(|rtt| *rtt > 0.0))?;
    let share = bps / (window_bytes * 8e6 / rtt_us);
    (rules.window_share_min..=rules.window_share_max).contains(&share).then_some(Sign::Window {
        window_bytes,
        rtt_us,
        bps,
    })
}

/// Whether a rate is that of a full port, or of none. A known segment size leaves one of the two ranges.
pub(super) fn port(
    bps: f64,
    mss_bytes: Option<f64>,
    rules: &SymptomRules,
    ports: &CeilingRules,
) -> Option<Sign> {
    // Up to three bonds and PCIe lanes make too many rates to distinguish.
    let share_of = |link: &f64| bps / link;
    let usual = rules.full_usual_min..=rules.full_usual_max;
    let jumbo = rules.full_jumbo_min..=rules.full_jumbo_max;
    let is_jumbo = mss_bytes.map(|mss| mss > rules.usual_mss_max);
    let is_full = |link: &f64| {
        is_jumbo != Some(true) && usual.contains(&share_of(link))
            || is_jumbo != Some(false) && jumbo.contains(&share_of(link))
    };
    if let Some(link_bps) = ports.link_speeds_bps.into_iter().find(is_full) {
        return Some(Sign::FullPort { bps, link_bps });
    }
    let is_near = |link: &f64| (rules.near_port_min..=1.0).contains(&share_of(link));
    let is_near = ports.link_speeds_bps.iter().any(is_near);
    // With the segment size the full rate is known, and being near it is being below it.
    let is_below = is_jumbo.is_some() && bps > ports.link_speeds_bps[0];
    (is_below || bps > ports.link_speeds_bps[0] && !is_near).then_some(Sign::NoPort { bps })
}

/// Share of the intervals of a transfer in which nothing got through.
fn standstill(cell: &CellEvidence<'_>, rules: &SymptomRules) -> Option<f64> {
    let series = cell.measured().filter(|(s, _)| s.test.kind.is::<TcpPlan>()).filter_map(|(_, m)| {
        let ends = [&m.rx, &m.tx].into_iter().flatten();
        ends.map(|end| &end.series).find(|series| series.len() >= rules.intervals_min)
    });
    let shares: Vec<f64> = series
        .map(|series| series.iter().filter(|i| i.throughput_bps <= 0.0).count() as f64 / series.len() as f64)
        .collect();
    median(&shares).filter(|share| *share >= rules.standstill_min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    #[test]
    fn a_window_over_the_rtt() {
        let of = |bytes: f64, rtt_us: f64, bps: f64| {
            window(Some(bytes), Some(rtt_us), bps, &Rules::DEFAULT.symptoms).is_some()
        };
        assert!(of(16384.0, 50.0, 2.5e9), "2.62 Gbit/s");
        assert!(!of(262_144.0, 50.0, 9.38e9), "41.9 Gbit/s are not the limit of 9.38");
        assert!(!of(16384.0, 50.0, 9.38e9), "more than it allows: one of the two is wrong");
        assert!(!of(16384.0, 0.0, 9.38e9));
    }

    #[test]
    fn private_addresses_are_near() {
        assert!(is_private("192.168.7.9") && is_private("fd00::7") && is_private("fe80::1"));
        assert!(!is_private("203.0.113.9") && !is_private("2001:db8::1") && !is_private("web"));
    }

    #[test]
    fn ports_by_their_full_rate() {
        let of = |bps: f64| port(bps, None, &Rules::DEFAULT.symptoms, &Rules::DEFAULT.ceilings);
        let full = |bps: f64| match of(bps) {
            Some(Sign::FullPort { link_bps, .. }) => Some(link_bps / 1e9),
            _ => None,
        };
        for (gbit, port) in
            [(0.942, 1.0), (9.36, 10.0), (9.89, 10.0), (23.5, 25.0), (39.6, 40.0), (94.2, 100.0)]
        {
            assert_eq!(full(gbit * 1e9), Some(port), "{gbit}");
        }
        for gbit in [1.5, 1.91, 7.0, 30.0] {
            assert!(matches!(of(gbit * 1e9), Some(Sign::NoPort { .. })), "{gbit}");
        }
        // 24.5 Gbit/s are near a port of 25 only as long as the segment size is unknown.
        let with =
            |bps: f64, mss: f64| port(bps, Some(mss), &Rules::DEFAULT.symptoms, &Rules::DEFAULT.ceilings);
        assert!(matches!(with(24.5e9, 8948.0), Some(Sign::NoPort { .. })));
        assert!(matches!(with(23.5e9, 8948.0), Some(Sign::NoPort { .. })));
        assert!(matches!(with(23.5e9, 1448.0), Some(Sign::FullPort { .. })));
        assert!(matches!(with(24.7e9, 8948.0), Some(Sign::FullPort { .. })));
        // Neither a full port nor far enough from one; and a radio link may have any rate.
        for gbit in [24.5, 2.4, 0.3] {
            assert_eq!(of(gbit * 1e9), None, "{gbit}");
        }
    }
}
