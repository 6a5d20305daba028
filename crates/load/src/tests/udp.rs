//! Counts of datagrams: exact through a path that drops, doubles and swaps on purpose, with and without
//! offload.

use linerate_model::datagram::{Offload, UdpOptions};
use linerate_model::kind::{TestKind, UdpPlan};

use super::*;

fn flat_out(payload_bytes: u16, offload: Offload) -> TestKind {
    let options = UdpOptions { flat_out: true, offload };
    TestKind::from(UdpPlan { rate_bps: 0.0, payload_bytes, duration_ms: 150, options })
}

#[test]
fn a_probe_of_a_survey_finds_one_lost_in_a_thousand() {
    // The rate that a survey asks for on a path of 1 Gbit/s or more: 20 %.
    let kind = TestKind::from(UdpPlan::paced(200e6, 1200, 2_000));
    let before = backlog_drops();
    let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
    let relay = Relay::start(receiver.address, |number, datagram| {
        usize::from(datagram.len() != 1200 || number % 1000 != 500)
    });
    let sent = send(&spec(kind, Role::Sender { peer: relay.address }, V4));
    let report = receiver.report();
    let (dropped, own) = relay.end();
    let backlog = backlog_drops() - before;
    let (tx, rx, flow) = (sent.udp.unwrap(), report.udp.unwrap(), report.udp_flow.unwrap());
    let missing = tx.datagrams - rx.datagrams;
    let by_sockets = own + rx.kernel_drops.unwrap_or(0);
    assert_accounted(missing, dropped + by_sockets, backlog, 1, "with loss");
    // Bursts are a few datagrams: the sender's own flow reports them.
    assert!((1..=4).contains(&sent.udp_flow.unwrap().train));
    if by_sockets == 0 && backlog == 0 {
        assert_eq!(missing, dropped);
        assert_eq!(dropped, (tx.datagrams + 499) / 1000, "each thousandth of {}", tx.datagrams);
        let gaps: Vec<_> = flow.gaps.unwrap().buckets().collect();
        let single: Vec<_> = (dropped > 0).then_some((1, 1, dropped)).into_iter().collect();
        assert_eq!(gaps, single, "every gap is one datagram");
    }
    let (most, end) = flow.jitter_us.unwrap();
    assert!(most >= end && end > 0.0);
    assert_eq!(flow.delay_change_ns.unwrap().count(), rx.datagrams + rx.duplicates);
}

#[test]
fn swapped_datagrams_are_counted_exactly() {
    let kind = TestKind::from(UdpPlan::paced(10e6, 1000, 2_000));
    let before = backlog_drops();
    let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
    let swapped = Arc::new(AtomicU64::new(0));
    let mut held: Option<Vec<u8>> = None;
    let count = swapped.clone();
    let relay = Relay::start_with(receiver.address, move |back, number, datagram| {
        if !back && datagram.len() == 1000 && number % 10 == 3 {
            held = Some(datagram.to_vec());
            return Vec::new();
        }
        let late = held.take();
        if !back && datagram.len() == 1000 {
            count.fetch_add(u64::from(late.is_some()), Ordering::Relaxed);
            return std::iter::once(datagram.to_vec()).chain(late).collect();
        }
        // The last word stays the last one: behind it a receiver waits only for a moment.
        late.into_iter().chain([datagram.to_vec()]).collect()
    });
    let sent = send(&spec(kind, Role::Sender { peer: relay.address }, V4)).udp.unwrap();
    let received = receiver.report().udp.unwrap();
    let (_, own) = relay.end();
    if own == 0 && received.kernel_drops == Some(0) && backlog_drops() == before {
        assert_eq!(sent.datagrams, received.datagrams, "nothing was lost");
        assert_eq!(received.reordered, swapped.load(Ordering::Relaxed));
    }
    assert!(received.reordered > 0 && received.duplicates == 0);
}

#[test]
fn flat_out_counts_the_same_at_both_ends_with_and_without_offload() {
    for bind in families() {
        for offload in [Offload::Auto, Offload::SendOnly, Offload::Off] {
            for payload in [64, 1448] {
                let before = backlog_drops();
                let (sent, received) = both(&flat_out(payload, offload), bind, |_| {});
                let backlog = backlog_drops() - before;
                assert_eq!((&sent.stopped, &received.stopped), (&None, &None), "{bind} {offload:?}");
                let (tx, rx) = (sent.udp.unwrap(), received.udp.unwrap());
                assert!(rx.datagrams > 0);
                // What is lost may be a train each time.
                let (missing, reported) = (tx.datagrams - rx.datagrams, rx.kernel_drops.unwrap());
                assert_accounted(missing, reported, backlog, 64, &format!("{bind} {offload:?} {payload}"));
                assert_eq!(received.bytes, rx.datagrams * u64::from(payload));
                assert_eq!((rx.reordered, rx.duplicates), (0, 0));
                let (out, inward) = (sent.udp_flow.unwrap(), received.udp_flow.unwrap());
                if offload == Offload::Off {
                    assert_eq!((out.units, out.offload), (tx.datagrams, None));
                } else if out.offload.is_some() {
                    assert!(out.units < tx.datagrams && out.train > 4);
                }
                if offload != Offload::Auto {
                    assert_eq!((inward.units, inward.offload), (rx.datagrams, None));
                }
                assert!(inward.receive_buffer_bytes > 0);
            }
        }
    }
}

#[test]
fn a_path_that_cannot_cut_is_sent_to_one_by_one() {
    // Segments above the MTU are refused by the kernel: the flow goes on without offload, in fragments.
    let Some((_file, path)) = namespace("1300") else { return };
    let (sent, received) = both(&flat_out(1448, Offload::Auto), V4, |spec| spec.netns = Some(path.clone()));
    assert_eq!((&sent.stopped, &received.stopped), (&None, &None));
    assert!(received.udp.unwrap().datagrams > 0 && sent.udp_flow.unwrap().offload.is_none());
}

#[test]
fn a_late_sender_leaves_datagrams_out() {
    // More than any machine sends one by one: what is missed is counted, not sent in a burst.
    let options = UdpOptions { flat_out: false, offload: Offload::Off };
    let kind = TestKind::from(UdpPlan { rate_bps: 100e9, payload_bytes: 64, duration_ms: 1_500, options });
    let (sent, _) = both(&kind, V4, |_| {});
    assert!(sent.udp_flow.unwrap().skipped > 0);
}

#[test]
fn datagrams_of_another_test_are_not_counted() {
    let kind = TestKind::from(UdpPlan::paced(5e6, 500, 1_000));
    let before = backlog_drops();
    let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
    let role = Role::Sender { peer: receiver.address };
    let wrong = send(&LoadSpec { token: [1; 16], ..spec(kind.clone(), role.clone(), V4) });
    let right = send(&spec(kind, role, V4));
    let received = receiver.report().udp.unwrap();
    let backlog = backlog_drops() - before;
    assert!(wrong.udp.unwrap().datagrams > 0 && received.datagrams > 0);
    let missing = right.udp.unwrap().datagrams - received.datagrams;
    assert_accounted(missing, received.kernel_drops.unwrap_or(0), backlog, 1, "beside another test");
}
