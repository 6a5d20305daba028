//! Connections set up: counted the same at both ends, bounded, and refused without the token.

use super::*;
use linerate_model::kind::{ConnectsPlan, TestKind};

fn kind(parallel: u16, duration_ms: u32, count_max: u32) -> TestKind {
    TestKind::from(ConnectsPlan { parallel, duration_ms, count_max })
}

#[test]
fn both_ends_count_the_same() {
    for bind in families() {
        for parallel in [1, 4] {
            let (sent, received) = both(&kind(parallel, 100_000, 300), bind, |_| {});
            assert_eq!((&sent.stopped, &received.stopped), (&None, &None), "{bind}");
            let (tx, rx) = (sent.connects.unwrap(), received.connects.unwrap());
            assert_eq!((tx.done, tx.failed, rx.done), (300, 0, 300), "{:?}", tx.first_failure);
            assert_eq!((tx.connect_ns.count(), tx.whole_ns.count()), (300, 300));
            assert!(tx.whole_ns.min() >= tx.connect_ns.min());
        }
    }
}

#[test]
fn the_time_ends_it_too() {
    let (sent, received) = both(&kind(1, 1_000, 20_000), V4, |_| {});
    assert!(sent.elapsed_s < LONG.as_secs_f64() && sent.bytes > 0 && sent.bytes == received.bytes);
}

#[test]
fn who_lacks_the_token_gets_no_answer() {
    let receiver = Receiver::start(spec(kind(1, 100_000, 20), Role::Receiver, V4));
    let mut liar = TcpStream::connect(receiver.address).unwrap();
    liar.write_all(&[3; 24]).unwrap();
    assert!(!matches!(liar.read(&mut [0; 1]), Ok(1..)));
    let role = Role::Sender { peer: receiver.address };
    let wrong = send(&LoadSpec { token: [8; 16], ..spec(kind(1, 100_000, 5), role.clone(), V4) });
    assert!(wrong.stopped.is_some() && wrong.connects.unwrap().done == 0);
    let right = send(&spec(kind(1, 100_000, 20), role, V4));
    assert_eq!(right.connects.unwrap().done, 20);
    assert_eq!(receiver.report().connects.unwrap().done, 20);
}

#[test]
fn senseless_numbers_and_missing_ends_are_values() {
    let closed = TcpListener::bind((V4, 0)).unwrap().local_addr().unwrap();
    let report = send(&spec(kind(2, 1000, 100), Role::Sender { peer: closed }, V4));
    assert_eq!(reason(&report).matches("cannot connect").count(), 1, "{report:?}");
    assert!(report.connects.unwrap().failed <= 20, "a dead end is left soon");
    for wrong in [kind(0, 1, 1), kind(33, 1, 1), kind(1, 1, 0), kind(1, 1, 20_001)] {
        let report = send(&spec(wrong, Role::Sender { peer: closed }, V4));
        assert!(reason(&report).contains("allowed"), "{report:?}");
    }
    let begun = Instant::now();
    let alone = Receiver::start(LoadSpec { deadline_ms: 100, ..spec(kind(2, 1, 1), Role::Receiver, V4) });
    assert!(reason(&alone.report()).contains("deadline of 100 ms"));
    assert!(begun.elapsed() < LONG);
}
