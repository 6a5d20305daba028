//! The search for the largest packet: open paths, limits that the kernel knows, and black holes in either
//! direction.

use linerate_model::kind::{PathMtuPlan, TestKind};
use linerate_model::path_mtu::SizeLimit;

use super::*;

fn kind(least_bytes: u32, most_bytes: u32) -> TestKind {
    TestKind::from(PathMtuPlan { least_bytes, most_bytes, tries: 2 })
}

fn limits(limit: &SizeLimit) -> (Option<u32>, Option<u32>, Option<u32>, bool) {
    (limit.largest_passing, limit.smallest_failing, limit.refused_mtu, limit.is_black_hole())
}

#[test]
fn an_open_path_takes_the_largest() {
    for bind in families() {
        let (sent, received) = both(&kind(576, 9000), bind, |_| {});
        assert_eq!((&sent.stopped, &received.stopped), (&None, &None), "{bind}");
        let found = sent.path_mtu.unwrap();
        for direction in [&found.forward, &found.backward] {
            assert_eq!(limits(direction), (Some(9000), None, None, false), "{bind}: {direction:?}");
        }
    }
}

#[test]
fn a_limit_that_the_kernel_knows_is_no_black_hole() {
    let Some((_file, path)) = namespace("1400") else { return };
    for bind in [V4, V6] {
        let (sent, _) = both(&kind(600, 9000), bind, |spec| spec.netns = Some(path.clone()));
        assert_eq!(sent.stopped, None);
        let found = sent.path_mtu.unwrap();
        for direction in [&found.forward, &found.backward] {
            assert_eq!(
                limits(direction),
                (Some(1400), Some(1401), Some(1400), false),
                "{bind}: {direction:?}"
            );
        }
    }
}

#[test]
fn black_holes_are_found_to_the_byte_in_each_direction() {
    let receiver = Receiver::start(spec(kind(600, 1500), Role::Receiver, V4));
    // 28 bytes of headers: packets above 1380 bytes vanish forward, above 1491 in reverse.
    let relay = Relay::start_with(receiver.address, |back, _, datagram| {
        let most = if back { 1491 } else { 1380 };
        if datagram.len() + 28 <= most { vec![datagram.to_vec()] } else { Vec::new() }
    });
    let sent = send(&spec(kind(600, 1500), Role::Sender { peer: relay.address }, V4));
    receiver.report();
    relay.end();
    assert_eq!(sent.stopped, None);
    let found = sent.path_mtu.unwrap();
    assert_eq!(limits(&found.forward), (Some(1380), Some(1381), None, true), "{:?}", found.forward);
    assert_eq!(limits(&found.backward), (Some(1491), Some(1492), None, true), "{:?}", found.backward);
}

#[test]
fn a_path_for_small_packets_only_is_reported() {
    let receiver = Receiver::start(spec(kind(600, 1500), Role::Receiver, V4));
    let relay = Relay::start(receiver.address, |_, datagram| usize::from(datagram.len() < 100));
    let sent = send(&spec(kind(600, 1500), Role::Sender { peer: relay.address }, V4));
    receiver.report();
    relay.end();
    let found = sent.path_mtu.unwrap();
    assert_eq!(limits(&found.forward), (None, Some(600), None, false), "{:?}", found.forward);
    assert_eq!(found.backward.largest_passing, Some(1500));
}

#[test]
fn a_search_without_another_end_is_a_value() {
    let closed = UdpSocket::bind((V4, 0)).unwrap().local_addr().unwrap();
    let report = send(&spec(kind(600, 1500), Role::Sender { peer: closed }, V4));
    assert!(reason(&report).contains("not answered"), "{report:?}");
    let receiver = Receiver::start(spec(kind(600, 1500), Role::Receiver, V4));
    let role = Role::Sender { peer: receiver.address };
    let wrong = send(&LoadSpec { token: [1; 16], ..spec(kind(600, 1500), role, V4) });
    assert!(reason(&wrong).contains("not answered") && wrong.path_mtu.is_none(), "{wrong:?}");
    // It still waits for one that shows the token.
    receiver.stop();
    assert_eq!(receiver.report().stopped.as_deref(), Some("stopped by the operator"));
    for (least, most) in [(1, 1500), (1500, 600), (600, 70_000)] {
        let report = send(&spec(kind(least, most), Role::Sender { peer: closed }, V4));
        assert!(reason(&report).contains("allowed"), "{report:?}");
    }
}
