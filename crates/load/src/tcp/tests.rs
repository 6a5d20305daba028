//! Both ends of a bulk transfer by every method, over every family, and with content that changes in transit.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use linerate_model::load::{LoadReport, LoadSpec, Role, Turn};
use linerate_model::tuning::{Pin, Protocol, STREAMS_MAX, Tuning};
use linerate_sys::{affinity, stream};

use super::proof::PROOF_BYTES;
use super::{receive, send};
use crate::tests::{Receiver, V4, both, families, reason, send as run_sender, spec, tcp};

fn tuned(streams: u16, tuning: &Tuning) -> (LoadReport, LoadReport) {
    both(&tcp(streams, 100), V4, |spec| *spec.tuning = tuning.clone())
}

fn assert_agree(sent: &LoadReport, received: &LoadReport, what: &str) {
    assert_eq!((&sent.stopped, &received.stopped), (&None, &None), "{what}");
    assert!(sent.bytes > 0 && sent.bytes == received.bytes, "{what}: {} {}", sent.bytes, received.bytes);
    assert!(sent.drained && received.drained, "{what}");
}

#[test]
fn every_method_moves_every_byte() {
    for send in send::names() {
        for receive in receive::names() {
            let tuning = Tuning {
                send: Some(send.to_owned()),
                receive: Some(receive.to_owned()),
                verify: receive == "verify",
                ..Tuning::default()
            };
            let what = format!("{send} > {receive}");
            let (sent, received) = tuned(2, &tuning);
            assert_agree(&sent, &received, &what);
            assert_eq!(sent.way.unwrap().name, send, "{what}");
            assert_eq!(received.way.unwrap().name, receive, "{what}");
            assert_eq!(sent.verified_streams, (receive == "verify").then_some(2), "{what}");
        }
    }
}

#[test]
fn odd_sizes_of_writes_keep_their_content() {
    for send in send::names() {
        for bytes in [1500, 100_003] {
            let tuning = Tuning {
                send: Some(send.to_owned()),
                write_bytes: Some(bytes),
                verify: true,
                ..Tuning::default()
            };
            let (sent, received) = tuned(1, &tuning);
            assert_agree(&sent, &received, &format!("{send} {bytes}"));
            assert_eq!(sent.verified_streams, Some(1));
        }
    }
}

/// Sits between the ends of a test of one stream and changes one byte of its content.
fn corrupt_one_byte(listener: &TcpListener, far: std::net::SocketAddr) {
    let (mut near, _) = listener.accept().unwrap();
    let mut far = TcpStream::connect(far).unwrap();
    let (mut back_in, mut back_out) = (far.try_clone().unwrap(), near.try_clone().unwrap());
    let back = thread::spawn(move || std::io::copy(&mut back_in, &mut back_out));
    let mut head = vec![0; PROOF_BYTES + 50_000];
    near.read_exact(&mut head[..PROOF_BYTES]).unwrap();
    far.write_all(&head[..PROOF_BYTES]).unwrap();
    let content = &mut head[PROOF_BYTES..];
    near.read_exact(content).unwrap();
    content[31_415] ^= 1;
    far.write_all(content).unwrap();
    // The ends close with a reset; what was sent before is what counts.
    let _ = std::io::copy(&mut near, &mut far);
    let _ = far.shutdown(Shutdown::Write);
    let _ = back.join().unwrap();
}

#[test]
fn one_changed_bit_is_noticed_by_a_verified_test() {
    for verify in [true, false] {
        let tuning = Tuning { verify, ..Tuning::default() };
        let tuned = |role| LoadSpec { tuning: Box::new(tuning.clone()), ..spec(tcp(1, 100), role, V4) };
        let receiver = Receiver::start(tuned(Role::Receiver));
        let listener = TcpListener::bind((V4, 0)).unwrap();
        let peer = listener.local_addr().unwrap();
        let sending = tuned(Role::Sender { peer });
        let sender = thread::spawn(move || run_sender(&sending));
        corrupt_one_byte(&listener, receiver.address);
        let (sent, received) = (sender.join().unwrap(), receiver.report());
        assert_eq!(sent.bytes, received.bytes);
        if verify {
            assert!(reason(&sent).starts_with("the content of 1 streams differs"), "{sent:?}");
            assert_eq!(sent.verified_streams, Some(0));
        } else {
            assert_eq!(sent.stopped, None);
        }
    }
}

#[test]
fn both_directions_run_at_the_same_time() {
    for (streams, verify) in [(1, false), (3, true)] {
        let (sent, received) = tuned(streams, &Tuning { both_ways: true, verify, ..Tuning::default() });
        assert_agree(&sent, &received, "there");
        let (back_received, back_sent) = (sent.back.unwrap(), received.back.unwrap());
        assert_agree(&back_sent, &back_received, "back");
        assert_eq!(back_sent.verified_streams, verify.then_some(streams));
        assert!(!back_sent.inside.is_empty() && back_received.back.is_none());
    }
}

#[test]
fn a_calibration_lists_its_turns_and_uses_one_of_them() {
    for bind in families() {
        let (sent, received) = both(&tcp(2, 100), bind, |spec| spec.tuning.calibrate = true);
        assert_agree(&sent, &received, "calibrated");
        assert!(!sent.calibration.is_empty());
        let chosen: Vec<_> = sent.calibration.iter().filter(|turn| turn.chosen).collect();
        let (send, receive) = (sent.way.unwrap().name, received.way.unwrap().name);
        assert!(chosen.iter().all(|turn| turn.send == send && turn.receive == receive), "{chosen:?}");
        // What came in one piece has no rate, and without any rate the methods are those that were asked for.
        let has_rate = |t: &Turn| t.bps > 0.0 && t.tx_s_per_gb > 0.0 && t.rx_s_per_gb > 0.0;
        let is_measured = chosen.iter().any(|turn| has_rate(turn));
        assert!(is_measured || !sent.calibration.iter().any(has_rate), "{:?}", sent.calibration);
    }
    // Nothing to compare: no turn.
    let decided = Tuning {
        calibrate: true,
        both_ways: true,
        send: Some("write".into()),
        receive: Some("read".into()),
        ..Tuning::default()
    };
    let (sent, received) = tuned(1, &decided);
    assert_agree(&sent, &received, "decided");
    assert!(sent.calibration.is_empty() && received.back.is_some());
}

#[test]
fn a_method_that_a_family_lacks_is_reported_and_not_chosen() {
    let unix = Tuning { protocol: Protocol::Unix, calibrate: true, ..Tuning::default() };
    let (sent, received) = tuned(1, &unix);
    assert_agree(&sent, &received, "unix");
    let zerocopy: Vec<_> = sent.calibration.iter().filter(|turn| turn.send == "zerocopy").collect();
    assert!(!zerocopy.is_empty() && zerocopy.iter().all(|turn| turn.failed.is_some() && !turn.chosen));
    let forced = Tuning { send: Some("zerocopy".into()), calibrate: false, ..unix };
    let (sent, _) = tuned(1, &forced);
    assert!(reason(&sent).contains("cannot use the send method `zerocopy`"), "{sent:?}");
}

#[test]
fn other_families_carry_the_same_test() {
    for protocol in [Protocol::Unix, Protocol::Mptcp, Protocol::Vsock { cid: 1 }] {
        let tuning = Tuning { protocol, ..Tuning::default() };
        let Ok(there) = stream::open(super::options::kind(protocol), false) else {
            println!("SKIPPED a_transfer_over_{}: hardware: this kernel does not have it", protocol.name());
            continue;
        };
        drop(there);
        if matches!(protocol, Protocol::Vsock { .. }) && !vsock_loopback() {
            println!("SKIPPED a_transfer_over_vsock: hardware: this kernel has no loopback for it");
            continue;
        }
        for verify in [false, true] {
            let (sent, received) = tuned(3, &Tuning { verify, ..tuning.clone() });
            assert_agree(&sent, &received, protocol.name());
        }
        let receiver = Receiver::start(LoadSpec {
            tuning: Box::new(tuning.clone()),
            ..spec(tcp(1, 100), Role::Receiver, V4)
        });
        let role = Role::Sender { peer: receiver.address };
        let own = LoadSpec { tuning: Box::new(tuning), ..spec(tcp(1, 100), role, V4) };
        let wrong = run_sender(&LoadSpec { token: [8; 16], ..own.clone() });
        assert!(wrong.bytes == 0 && wrong.stopped.is_some(), "{wrong:?}");
        let right = run_sender(&own);
        assert_agree(&right, &receiver.report(), protocol.name());
    }
}

fn vsock_loopback() -> bool {
    let kind = stream::StreamKind::Vsock { cid: 1 };
    stream::open(kind, false).is_ok_and(|socket| stream::listen(&socket, kind, V4, 40_000).is_ok())
}

#[test]
fn as_many_streams_as_are_allowed() {
    let (sent, received) = both(&tcp(STREAMS_MAX, 100), V4, |_| {});
    assert_agree(&sent, &received, "512");
    assert_eq!(sent.inside.len(), usize::from(STREAMS_MAX));
}

#[test]
fn options_reach_the_connections() {
    let tuning = Tuning {
        congestion: Some("reno".into()),
        dscp: Some(8),
        mss: Some(1000),
        window_bytes: Some(65_536),
        no_delay: true,
        pacing_bps: Some(80e6),
        sample_hz: 100,
        ..Tuning::default()
    };
    for bind in families() {
        let (sent, received) = both(&tcp(1, 200), bind, |spec| *spec.tuning = tuning.clone());
        assert_agree(&sent, &received, &format!("{bind}"));
        let end = sent.tcp.unwrap();
        assert_eq!(end.congestion, "reno");
        assert!(end.mss <= 1000 && end.snd_wnd_max <= 2 * 65_536, "{end:?}");
        // Unpaced, loopback moves hundreds of times as much.
        assert!(sent.bytes < 20_000_000, "{}", sent.bytes);
        let readings = sent.inside[0].unpack().unwrap();
        assert!(readings.iter().all(|reading| reading.pacing_bytes_per_s <= 10_000_000), "{readings:?}");
    }
    let tuning = Tuning { congestion: Some("nosuch".into()), ..Tuning::default() };
    let role = Role::Sender { peer: (V4, 9).into() };
    let sent = run_sender(&LoadSpec { tuning: Box::new(tuning), ..spec(tcp(1, 100), role, V4) });
    assert!(reason(&sent).contains("cannot use the congestion control `nosuch`"), "{sent:?}");
}

#[test]
fn a_sender_ends_at_its_limit_of_bytes() {
    let limit = 1_000_000;
    let tuning = Tuning { bytes_max: Some(limit), write_bytes: Some(16_384), ..Tuning::default() };
    for streams in [1, 4] {
        let (sent, received) = both(&tcp(streams, 2_000), V4, |spec| *spec.tuning = tuning.clone());
        assert_agree(&sent, &received, "limited");
        // Without it loopback moves thousands of times as much.
        assert!((limit / 2..=limit).contains(&sent.bytes), "{streams} streams: {}", sent.bytes);
        assert!(sent.elapsed_s < 1.9, "it does not wait for its time: {} s", sent.elapsed_s);
    }
}

#[test]
fn the_inside_of_each_connection_can_be_read_again() {
    let (sent, received) = both(&tcp(3, 1_500), V4, |spec| spec.tuning.sample_hz = 100);
    assert_eq!(sent.inside.len(), 3);
    for packed in &sent.inside {
        let readings = packed.unpack().unwrap();
        assert!(!readings.is_empty() && readings.windows(2).all(|pair| pair[0].at_us < pair[1].at_us));
        assert!(readings.windows(2).all(|pair| pair[0].acked_bytes <= pair[1].acked_bytes));
        assert!(readings.iter().any(|reading| reading.rtt_us > 0 && reading.cwnd > 0 && reading.busy_us > 0));
    }
    assert!(sent.sampling_s.unwrap() > 0.0 && sent.sampling_s.unwrap() < sent.cpu_s);
    assert!(sent.calibration.is_empty() && received.inside.is_empty());
    assert!(!received.cores.is_empty() && received.socket_drops.is_some());
}

#[test]
fn threads_run_on_their_pinned_cpus() {
    let last = *affinity::allowed().unwrap().last().unwrap();
    for pin in [Pin::Cpus(vec![last]), Pin::None] {
        let (sent, received) = tuned(2, &Tuning { pin: pin.clone(), ..Tuning::default() });
        assert_agree(&sent, &received, "pinned");
        let expected = if let Pin::Cpus(cpus) = pin { cpus } else { Vec::new() };
        assert_eq!((sent.way.unwrap().cpus, received.way.unwrap().cpus), (expected.clone(), expected));
    }
}

#[test]
fn ends_with_different_plans_do_not_hang() {
    let receiver = Receiver::start(LoadSpec { deadline_ms: 400, ..spec(tcp(2, 100), Role::Receiver, V4) });
    let role = Role::Sender { peer: receiver.address };
    let sent = run_sender(&LoadSpec { deadline_ms: 400, ..spec(tcp(1, 100), role, V4) });
    assert!(sent.stopped.is_some() && receiver.report().stopped.is_some());
}
