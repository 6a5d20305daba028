//! Whether the links of a host are idle: two readings of what they have moved in, the link that is in use
//! out.

use std::collections::BTreeMap;

use linerate_model::throughput::BusyHost;

use crate::rules::{IN_USE_BPS, IN_USE_SHARE};

/// What the links of a host have moved since it started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkCounts {
    /// When they were read, milliseconds of any clock.
    pub at_ms: u64,
    /// Bytes of each device: received, sent.
    pub bytes: BTreeMap<String, (i64, i64)>,
    /// Speeds that are known, bit/s.
    pub speed_bps: BTreeMap<String, f64>,
}

/// The link of a host that is in use by the most between two readings; `None` where all are idle. A device
/// that is in one of them alone, or whose counters began anew, shows nothing.
pub fn busiest(host: &str, before: &LinkCounts, after: &LinkCounts) -> Option<BusyHost> {
    let seconds = after.at_ms.saturating_sub(before.at_ms).max(1) as f64 / 1000.0;
    let mut busiest: Option<(f64, BusyHost)> = None;
    for (device, (received, sent)) in &after.bytes {
        let Some((received_before, sent_before)) = before.bytes.get(device) else { continue };
        let moved = received.saturating_sub(*received_before).max(sent.saturating_sub(*sent_before)).max(0);
        let rate_bps = moved as f64 * 8.0 / seconds;
        let limit = after.speed_bps.get(device).map_or(IN_USE_BPS, |speed| speed * IN_USE_SHARE);
        let times = rate_bps / limit.max(1.0);
        if times > 1.0 && busiest.as_ref().is_none_or(|(most, _)| times > *most) {
            busiest = Some((times, BusyHost { host: host.to_owned(), device: device.clone(), rate_bps }));
        }
    }
    busiest.map(|(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(at_ms: u64, all: &[(&str, i64, i64)]) -> LinkCounts {
        let bytes = all.iter().map(|(name, received, sent)| ((*name).to_owned(), (*received, *sent)));
        LinkCounts {
            at_ms,
            bytes: bytes.collect(),
            speed_bps: [("eth0".to_owned(), 10e9), ("eth2".to_owned(), 0.0)].into(),
        }
    }

    #[test]
    fn a_link_is_in_use_by_its_busier_direction_and_by_its_own_speed() {
        let before = counts(1000, &[("eth0", 0, 500), ("eth1", 900, 0), ("new", 0, 0)]);
        // 80 Mbit/s of 10 Gbit/s; 8 Mbit/s where no speed is known.
        let idle = counts(2000, &[("eth0", 10_000_000, 600), ("eth1", 1_000_900, 0)]);
        assert_eq!(busiest("a", &before, &idle), None);
        let busy = counts(2000, &[("eth0", 0, 20_000_500), ("eth1", 1_500_900, 0)]);
        let found = busiest("a", &before, &busy).unwrap();
        assert_eq!((found.device.as_str(), found.host.as_str()), ("eth0", "a"));
        assert!((found.rate_bps - 160e6).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn counters_that_began_anew_and_devices_that_came_show_nothing() {
        let before = counts(1000, &[("eth0", 9_000_000_000, 9_000_000_000)]);
        let after = counts(1000, &[("eth0", 5, 5), ("eth1", 9_000_000_000, 0)]);
        assert_eq!(busiest("a", &before, &after), None);
        let extreme = counts(0, &[("eth0", i64::MAX, i64::MIN)]);
        assert!(busiest("a", &extreme, &counts(9, &[("eth0", i64::MIN, i64::MAX)])).is_some());
    }
}
