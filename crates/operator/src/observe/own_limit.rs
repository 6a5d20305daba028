//! What the tool itself reaches on a host: a short transfer over its loopback, so that "the tool was the
//! bottleneck" is never mistaken for the network.
//!
//! What comes in: the samples so far. What goes out: hosts whose own limit is worth knowing, and the
//! inventory in which that is a test like any other. A host none of whose pairs is fast is not asked: there
//! the tool cannot be what binds, and the survey does not get longer. The figure is stored with the facts of
//! the host.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use linerate_model::inventory::{Endpoint, Host, HostName, Inventory, Layer, TransportSpec};
use linerate_model::kind::TcpPlan;
use linerate_model::plan::Test;
use linerate_model::sample::{Measurement, Outcome, Sample};

use super::limits::FAST_BPS;
use super::nic::{self, Facts};

/// Time of one transfer.
const DURATION_MS: u32 = 200;

/// Hosts with a link or a result from which on the tool may bind, and whose limit is not known yet.
pub(crate) fn hosts_in_question(inventory: &Inventory, facts: &Facts, samples: &[Sample]) -> Vec<HostName> {
    let mut fast: BTreeSet<&str> = BTreeSet::new();
    for sample in samples {
        let Outcome::Measured(measured) = &sample.outcome else { continue };
        let (from, to) = (sample.test.from.as_str(), sample.test.to.as_str());
        if !sample.test.kind.is::<TcpPlan>() || (fast.contains(from) && fast.contains(to)) {
            continue;
        }
        let is_fast = |bps: Option<f64>| bps.is_some_and(|bps| bps >= FAST_BPS);
        let path_bps = || nic::path_bps(facts, inventory, from, to, sample.test.layer);
        if is_fast(measured.throughput_bps) || is_fast(path_bps()) {
            fast.extend([from, to]);
        }
    }
    let unknown = |host: &str| facts.get(host).is_some_and(|f| f.tool_bps.is_none());
    fast.into_iter().filter(|host| unknown(host)).map(str::to_owned).collect()
}

/// Hosts on the machine of the operator: they share its CPUs, so they are asked one after the other, and this
/// many of them tell.
pub(crate) const HERE_MAX: usize = 16;
/// Hosts on machines of their own that are asked at the same time: 10,000 of them in a few seconds.
pub(crate) const AT_ONCE: usize = 1024;

/// Whether a host is a part of the machine that the operator runs on.
pub(crate) fn is_here(inventory: &Inventory, host: &str) -> bool {
    let transport = inventory.host(host).map(|h| &h.transport);
    matches!(transport, Some(TransportSpec::Local | TransportSpec::Netns { .. }))
}

/// The inventory in which the host is only its own loopback, and the test in it.
pub(crate) fn test_of(inventory: &Inventory, host: &str) -> (Inventory, Test) {
    let loopback = Endpoint {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        layer: Layer::Underlay,
        netns: None,
        link_bps: None,
    };
    let hosts = inventory.host(host).map(|h| Host { endpoints: vec![loopback], ..h.clone() });
    let own = Inventory { hosts: hosts.into_iter().collect(), ..Inventory::default() };
    let test =
        Test::new(host.to_owned(), host.to_owned(), Layer::Underlay, TcpPlan::single(DURATION_MS).into());
    (own, test)
}

/// A send buffer that stays below this is a setting of the host, for on a loopback it grows to megabytes; so
/// is a window that held a transfer up, for a window is small as well where its reader keeps up.
const SMALL_BYTES: u64 = 128 << 10;
/// Share of the time from which on it held it up.
const HELD_UP: f64 = 0.4;

/// What a transfer over the loopback says about the tool: its rate, unless a buffer of the host was small.
/// That is a fault to be found, and must not become the ceiling of the host's pairs. How long the sender
/// waited for its own buffer is not asked: on a busy host both ends wait for a CPU as well, and each write
/// that fills a small buffer costs two such waits.
pub(crate) fn tool_bps(measured: &Measurement) -> Option<f64> {
    let end = measured.tx.as_ref().and_then(|report| report.tcp.as_ref());
    let is_small = |bytes: u64| (1..SMALL_BYTES).contains(&bytes);
    let by_setting = end.is_some_and(|end| {
        let held_up = end.busy_us > 0 && end.rwnd_limited_us as f64 >= HELD_UP * end.busy_us as f64;
        is_small(end.snd_wnd_max) && held_up || is_small(end.sndbuf_bytes)
    });
    measured.throughput_bps.filter(|_| !by_setting)
}

#[cfg(test)]
mod tests {

    use linerate_model::fact::HostFacts;
    use linerate_model::load::{LoadReport, TcpEnd};

    use super::*;

    fn sample(from: &str, to: &str, bps: f64) -> Sample {
        let (_, test) = test_of(&Inventory::default(), from);
        Sample::new(
            Test { to: to.to_owned(), ..test },
            0,
            Outcome::Measured(Box::new(Measurement { throughput_bps: Some(bps), ..Measurement::default() })),
        )
    }

    #[test]
    fn only_fast_hosts_of_unknown_limit_are_asked() {
        let mut facts = Facts::new();
        for host in ["a", "b", "c", "d"] {
            facts.insert(host.to_owned(), HostFacts::default());
        }
        facts.insert("b".to_owned(), HostFacts { tool_bps: Some(4e10), ..HostFacts::default() });
        let samples = [sample("a", "b", 9e9), sample("c", "d", 9e8), sample("gone", "a", 9e9)];
        assert_eq!(hosts_in_question(&Inventory::default(), &facts, &samples), ["a"]);
    }

    #[test]
    fn a_small_buffer_of_the_host_is_no_limit_of_the_tool() {
        let transfer = |end: TcpEnd| {
            let tx = Some(Box::new(LoadReport { tcp: Some(end), ..LoadReport::default() }));
            tool_bps(&Measurement { throughput_bps: Some(2.5e8), tx, ..Measurement::default() })
        };
        let (busy_us, rwnd_limited_us) = (200_000, 190_000);
        let held_up = TcpEnd { busy_us, rwnd_limited_us, snd_wnd_max: 6144, ..TcpEnd::default() };
        assert_eq!(transfer(held_up.clone()), None);
        assert_eq!(transfer(TcpEnd { snd_wnd_max: 65_536, ..TcpEnd::default() }), Some(2.5e8));
        let slow_reader = TcpEnd { snd_wnd_max: 3 << 20, ..held_up };
        assert_eq!(transfer(slow_reader), Some(2.5e8));
        assert_eq!(transfer(TcpEnd { sndbuf_bytes: 16_384, ..TcpEnd::default() }), None);
        assert_eq!(transfer(TcpEnd::default()), Some(2.5e8));
    }

    #[test]
    fn the_test_stays_on_the_host() {
        let inventory = linerate_inventory::localhost();
        let (own, test) = test_of(&inventory, "localhost");
        assert_eq!(test.from, test.to);
        assert!(own.endpoint("localhost", test.layer).unwrap().address.is_loopback());
    }
}
