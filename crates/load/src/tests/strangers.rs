//! Strangers at the ports of tests: silent ones, closed ones, liars, an endless stream of them, datagrams.
//! The right sender gets through all the same, and the receiver's report counts the others.

use linerate_model::kind::{ConnectsPlan, LatencyPlan, RttPlan, TestKind, UdpPlan};
use linerate_model::latency::{Carrier, LatencyPhase, Waiting};
use linerate_model::load::Strangers;

use super::*;

/// More than may wait at a data port of a small test.
const MANY: usize = 300;

fn connects() -> TestKind {
    TestKind::from(ConnectsPlan { parallel: 2, duration_ms: 100_000, count_max: 50 })
}

fn latency() -> TestKind {
    TestKind::from(LatencyPlan {
        phases: vec![LatencyPhase { carrier: Carrier::Tcp, waiting: Waiting::Blocking, loaded: false }],
        phase_ms: 100,
        payload_bytes: 64,
        load_streams: 1,
        settle_ms: 100,
        spins_on_free_cpus: false,
    })
}

/// Every kind whose receiver takes connections.
fn kinds() -> [TestKind; 3] {
    [tcp(2, 100), latency(), connects()]
}

fn silent(address: SocketAddr, number: usize) -> Vec<TcpStream> {
    affinity::raise_open_files().unwrap();
    (0..number).map(|_| TcpStream::connect(address).unwrap()).collect()
}

fn sender(kind: &TestKind, receiver: &Receiver) -> LoadReport {
    send(&spec(kind.clone(), Role::Sender { peer: receiver.address }, V4))
}

fn assert_through(sent: &LoadReport, received: &LoadReport, what: &str) {
    assert_eq!((&sent.stopped, &received.stopped), (&None, &None), "{what}");
    assert!(sent.bytes > 0, "{what}");
}

#[test]
fn silent_connections_make_room_for_the_sender() {
    for kind in kinds() {
        for number in [18, 200, MANY] {
            let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
            let strangers = silent(receiver.address, number);
            let sent = sender(&kind, &receiver);
            let received = receiver.report();
            let what = format!("{} {number}", kind.name());
            assert_through(&sent, &received, &what);
            let met = received.strangers.unwrap();
            // They came before the sender, and each thread of the receiver of connections takes them one by
            // one.
            let expected = Strangers { connections: number as u64, ..Strangers::default() };
            assert!(met == expected || (kind.name() == "connects" && met.connections > 0), "{what}: {met:?}");
            drop(strangers);
        }
    }
}

#[test]
fn closed_connections_do_not_end_the_test() {
    for kind in kinds() {
        for number in [17, MANY] {
            let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
            for _ in 0..number {
                drop(TcpStream::connect(receiver.address).unwrap());
            }
            let sent = sender(&kind, &receiver);
            assert_through(&sent, &receiver.report(), &format!("{} {number}", kind.name()));
        }
    }
}

#[test]
fn liars_do_not_end_the_test() {
    for kind in kinds() {
        let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
        for number in 0..40 {
            let mut liar = TcpStream::connect(receiver.address).unwrap();
            liar.write_all(&[number; 64]).unwrap();
            // Until it is thrown out, whatever it got before.
            let _ = liar.read_to_end(&mut Vec::new());
        }
        let sent = sender(&kind, &receiver);
        let received = receiver.report();
        assert_through(&sent, &received, kind.name());
        assert_eq!(received.strangers.unwrap().connections, 40, "{}", kind.name());
    }
}

#[test]
fn an_endless_stream_of_connections_does_not_keep_the_sender_out() {
    for kind in kinds() {
        let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
        let (address, over) = (receiver.address, AtomicBool::new(false));
        let came = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        // The port is closed when the test is over.
                        if let Ok(stream) = TcpStream::connect(address) {
                            came.fetch_add(1, Ordering::Relaxed);
                            drop(stream);
                        }
                    }
                });
            }
            while came.load(Ordering::Relaxed) < 50 {
                thread::yield_now();
            }
            let sent = sender(&kind, &receiver);
            over.store(true, Ordering::Relaxed);
            assert_through(&sent, &receiver.report(), kind.name());
        });
    }
}

#[test]
fn strangers_without_a_sender_are_counted() {
    // A test of connections cannot distinguish them from its own that failed: its sender can.
    for (kind, own) in [(tcp(2, 100), 2), (latency(), 1), (connects(), 0)] {
        let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
        let mut strangers = silent(receiver.address, 20);
        if kind.name() == "connects" {
            for mut stranger in strangers.drain(..) {
                stranger.write_all(&[1; 24]).unwrap();
                let _ = stranger.read_to_end(&mut Vec::new());
            }
        }
        for stranger in &mut strangers {
            // Each is greeted when it is taken.
            stranger.read_exact(&mut [0; 16]).unwrap();
        }
        receiver.stop();
        let received = receiver.report();
        assert!(received.stopped.is_some() && received.bytes == 0, "{received:?}");
        assert_eq!(received.strangers.unwrap().connections, 20 - own, "{}", kind.name());
    }
}

#[test]
fn a_test_without_strangers_reports_none() {
    for kind in kinds() {
        let (sent, received) = both(&kind, V4, |_| {});
        assert_through(&sent, &received, kind.name());
        assert_eq!((sent.strangers, received.strangers), (None, None), "{}", kind.name());
    }
}

#[test]
fn stray_datagrams_are_counted_and_change_nothing() {
    for kind in [TestKind::from(UdpPlan::paced(2e6, 500, 300)), TestKind::from(RttPlan { count: 3 })] {
        let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
        let stranger = UdpSocket::bind((V4, 0)).unwrap();
        for _ in 0..20 {
            stranger.send_to(&[5; 64], receiver.address).unwrap();
        }
        let sent = sender(&kind, &receiver);
        let received = receiver.report();
        assert_through(&sent, &received, kind.name());
        let met = received.strangers.unwrap();
        assert!((1..=20).contains(&met.datagrams) && met.connections == 0, "{met:?}");
        if let (Some(tx), Some(rx)) = (sent.udp, received.udp) {
            assert!(rx.datagrams <= tx.datagrams, "{rx:?}");
        }
    }
}
