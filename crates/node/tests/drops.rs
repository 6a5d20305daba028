//! What a real node reports of dropped packets: counted from when it is asked first, by reason and device.
//!
//! In: root of the machine, `ip`, `nft`, `tc`. What is missing is printed as a skip.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

// Other tests use the rest of it.
#[allow(dead_code)]
mod operator;

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::process::Command;

use linerate_model::drops::{DROPS, INSIDE};
use linerate_sys::netns;
use linerate_testkit as testkit;
use linerate_wire::message::{Event, ObserveRequest};
use operator::{Operator, Scene};

const CLOSED_PORT: &str = "drop.NO_SOCKET.0800.lo";
const FIREWALL: &str = "drop.NETFILTER_DROP.0800.lo";
const QUEUE: &str = "nic.d0.stat.qdisc_drops";

/// The counters, and why those of the kernel's reasons are missing.
fn drops(operator: &mut Operator) -> (BTreeMap<String, i64>, Option<String>) {
    let events = operator.ask(ObserveRequest::Drops);
    let [Event::Facts(facts), Event::Done] = events.as_slice() else { panic!("{events:?}") };
    assert!(facts.readings.iter().next().is_none());
    let gap = facts.gaps.iter().find(|gap| gap.what.is_below(DROPS));
    (facts.counters.clone(), gap.map(|gap| gap.reason.clone()))
}

fn sh(line: &str) {
    let output = Command::new("sh").args(["-ec", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", testkit::text(&output.stderr));
}

/// Datagrams to a port of the loopback, from a socket each: the answer to one is an error of the next.
fn datagrams(count: usize, port: u16) {
    for _ in 0..count {
        // What a firewall drops when it is sent is an error here.
        let _ = UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[0; 100], ("127.0.0.1", port));
    }
}

/// More than a token bucket lets through and holds.
fn into_a_full_queue() {
    sh("ip link add d0 type veth peer name d1; ip addr add 192.0.2.1/24 dev d0
        ip link set d0 up; ip link set d1 up
        ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev d0
        tc qdisc replace dev d0 root tbf rate 8kbit burst 2000 limit 3000");
    let socket = UdpSocket::bind("192.0.2.1:0").unwrap();
    for _ in 0..50 {
        let _ = socket.send_to(&[0; 1000], "192.0.2.2:9");
    }
}

#[test]
fn drops_of_a_host_are_counted_from_the_first_request_on() {
    const NAME: &str = "drops_of_a_host_are_counted_from_the_first_request_on";
    let Some(scene) = Scene::new() else { return };
    let inside = |work: fn()| netns::run_in(&scene.namespace, work).unwrap();
    inside(|| {
        sh("ip link set lo up");
        datagrams(3, 9);
    });
    let mut operator = Operator::start(Some(&scene));
    let (first, missing) = drops(&mut operator);
    // Without rights the counters that need none are there.
    assert!(first.contains_key("netstat.TcpExt.ListenDrops") && first.contains_key("softnet.dropped"));
    assert!(!first.keys().any(|key| key.starts_with("cpu.") || key.starts_with("irq.")));
    if let Some(reason) = missing {
        testkit::skip(NAME, &reason);
        return;
    }
    assert!(!first.contains_key(CLOSED_PORT), "{first:?}");
    inside(|| datagrams(7, 9));
    let (counted, _) = drops(&mut operator);
    assert_eq!(counted.get(CLOSED_PORT), Some(&7), "{counted:?}");
    // Those of other hosts of this machine are not counted here.
    assert!(counted.keys().all(|key| !key.contains(INSIDE)), "{counted:?}");
    assert!(counted["drop.cost.runs"] >= 7 && counted["drop.cost.ns"] > 0, "{counted:?}");
    if testkit::has(NAME, "nft", "nftables") {
        inside(|| {
            sh("nft add table inet x; nft 'add chain inet x c { type filter hook input priority 0; }'
                nft add rule inet x c udp dport 7 drop");
            datagrams(9, 7);
        });
        let (counted, _) = drops(&mut operator);
        assert_eq!(counted.get(FIREWALL), Some(&9), "{counted:?}");
    }
    if testkit::has(NAME, "tc", "iproute2") {
        inside(into_a_full_queue);
        let (counted, _) = drops(&mut operator);
        let by_queue = counted[QUEUE];
        assert!(by_queue >= 40, "{counted:?}");
        let of_queue = |key: &str| key.starts_with("drop.QDISC_") && key.contains(".0800.");
        let by_reason: i64 = counted.iter().filter(|(key, _)| of_queue(key)).map(|(_, count)| count).sum();
        assert_eq!(by_reason, by_queue, "{counted:?}");
    }
}
