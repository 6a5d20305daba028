//! Requests and answers on loopback, in every phase that there is.

use linerate_model::kind::{LatencyPlan, TestKind};
use linerate_model::latency::{Carrier, LatencyPhase, Waiting};

use super::*;
use crate::admission;
use crate::job::Job;
use crate::latency::protocol::{BEGIN, END, QUIT};

fn plan(phases: Vec<LatencyPhase>) -> LatencyPlan {
    LatencyPlan {
        phases,
        phase_ms: 80,
        payload_bytes: 1,
        load_streams: 2,
        settle_ms: 50,
        spins_on_free_cpus: false,
    }
}

fn phases(loaded: &[bool]) -> Vec<LatencyPhase> {
    let mut all = Vec::new();
    for &loaded in loaded {
        for carrier in [Carrier::Tcp, Carrier::Udp] {
            for waiting in [Waiting::Blocking, Waiting::Spinning] {
                all.push(LatencyPhase { carrier, waiting, loaded });
            }
        }
    }
    all
}

#[test]
fn every_phase_has_its_histogram_and_its_course() {
    for bind in families() {
        let wanted = phases(&[false, true]);
        let (sent, received) = both(&TestKind::from(plan(wanted.clone())), bind, |_| {});
        assert_eq!((&sent.stopped, &received.stopped), (&None, &None), "{bind}");
        assert_eq!(sent.latency.iter().map(|r| r.phase).collect::<Vec<_>>(), wanted);
        for result in &sent.latency {
            let trips = &result.round_trip_ns;
            assert!(trips.count() > 0 && trips.min() > Some(0), "{}", result.phase);
            assert!(result.elapsed_s > 0.0 && result.per_second() > 0.0);
            let answers: u64 = result.series.iter().map(|point| u64::from(point.answers)).sum();
            assert_eq!(answers, trips.count(), "the course has every answer once: {}", result.phase);
            assert!(result.series.len() <= 101);
            assert_eq!(result.load_bps.is_some_and(|bps| bps > 0.0), result.phase.loaded, "{}", result.phase);
        }
    }
}

/// Keeps every CPU busy while `work` runs.
fn without_a_free_cpu<T>(work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..2 * cpus {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = work();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn no_end_spins_where_no_cpu_is_free() {
    let asked = |phases| LatencyPlan { spins_on_free_cpus: true, ..plan(phases) };
    let (sent, received) =
        without_a_free_cpu(|| both(&TestKind::from(asked(phases(&[false, true]))), V4, |_| {}));
    assert_eq!((&sent.stopped, &received.stopped), (&None, &None));
    for result in &sent.latency {
        let spins = result.phase.waiting == Waiting::Spinning;
        assert_eq!(
            (result.refused.is_some(), result.round_trip_ns.count() == 0),
            (spins, spins),
            "{result:?}"
        );
    }
    let mut spinning = phases(&[false]);
    spinning.retain(|phase| phase.waiting == Waiting::Spinning);
    let (sent, _) = without_a_free_cpu(|| both(&TestKind::from(asked(spinning)), V4, |_| {}));
    assert!(sent.refused && reason(&sent).starts_with("sender: no free CPU to spin on: 0."), "{sent:?}");
}

#[test]
fn a_receiver_without_a_free_cpu_refuses_and_serves_a_sender_that_goes_on() {
    let spinning = LatencyPhase { carrier: Carrier::Tcp, waiting: Waiting::Spinning, loaded: false };
    let asked = LatencyPlan { spins_on_free_cpus: true, ..plan(vec![spinning]) };
    let ports = without_a_free_cpu(|| {
        let own = spec(TestKind::from(asked), Role::Receiver, V4);
        let receiver = Receiver::start(own.clone());
        let sending = control(|_| {});
        let sender = spec(own.kind.clone(), Role::Sender { peer: receiver.address }, V4);
        let job = Job::new(&sender, &sending);
        let mut stream = admission::knock(&job, receiver.address).unwrap();
        stream.write_all(&[BEGIN, 0]).unwrap();
        let mut ports = [9; 4];
        admission::read_exactly(&job, &mut stream, &mut ports, LONG).unwrap();
        let mut answer = [0];
        stream.write_all(b"R").unwrap();
        admission::read_exactly(&job, &mut stream, &mut answer, LONG).unwrap();
        assert_eq!(&answer, b"R");
        stream.write_all(&[END, QUIT]).unwrap();
        assert_eq!(receiver.report().stopped, None);
        ports
    });
    assert_eq!(ports, [0, 0, 0, 1]);
}

#[test]
fn both_ends_count_the_same_bytes_over_tcp() {
    let all = vec![LatencyPhase { carrier: Carrier::Tcp, waiting: Waiting::Blocking, loaded: false }];
    let kind = TestKind::from(LatencyPlan { payload_bytes: 900, ..plan(all) });
    let (sent, received) = both(&kind, V4, |_| {});
    // The first exchange is in no histogram.
    assert_eq!(sent.bytes + 900, received.bytes);
}

#[test]
fn a_wrong_token_gets_no_answer_and_holds_nobody_up() {
    let kind = TestKind::from(plan(phases(&[false])));
    let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
    let role = Role::Sender { peer: receiver.address };
    let silent = TcpStream::connect(receiver.address).unwrap();
    let wrong = send(&LoadSpec { token: [8; 16], ..spec(kind.clone(), role.clone(), V4) });
    assert!(wrong.stopped.is_some() && wrong.latency.is_empty(), "{wrong:?}");
    let right = send(&spec(kind, role, V4));
    assert_eq!((right.stopped, right.latency.len()), (None, 4));
    assert_eq!(receiver.report().stopped, None);
    drop(silent);
}

#[test]
fn a_receiver_that_lies_gets_nothing() {
    let listener = TcpListener::bind((V4, 0)).unwrap();
    let role = Role::Sender { peer: listener.local_addr().unwrap() };
    let kind = TestKind::from(plan(phases(&[false])));
    let sender = thread::spawn(move || send(&spec(kind, role, V4)));
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&[9; 16]).unwrap();
    stream.read_exact(&mut [0; 16]).unwrap();
    stream.write_all(&[1; 16]).unwrap();
    let report = sender.join().unwrap();
    assert!(reason(&report).contains("did not show the token"), "{report:?}");
    assert!(!matches!(stream.read(&mut [0; 16]), Ok(1..)));
}

#[test]
fn deadlines_and_the_stop_flag_end_it() {
    let long = LatencyPlan { phase_ms: 300_000, ..plan(phases(&[false, true])) };
    let kind = TestKind::from(long);
    let (sent, received) = both(&kind, V4, |spec| spec.deadline_ms = 300);
    for report in [&sent, &received] {
        assert!(report.stopped.is_some(), "{report:?}");
        assert!(report.elapsed_s < LONG.as_secs_f64());
    }
    let receiver = Receiver::start(LoadSpec { deadline_ms: 100, ..spec(kind.clone(), Role::Receiver, V4) });
    assert!(reason(&receiver.report()).contains("deadline of 100 ms"));

    let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
    let sending = spec(kind, Role::Sender { peer: receiver.address }, V4);
    let stopping = control(|_| {});
    let stop = stopping.stop.clone();
    let sender = thread::spawn(move || run(&sending, &stopping));
    stop.store(true, Ordering::Relaxed);
    assert_eq!(sender.join().unwrap().stopped.as_deref(), Some("stopped by the operator"));
    receiver.stop();
    assert!(receiver.report().elapsed_s < LONG.as_secs_f64());
}

#[test]
fn senseless_plans_are_values() {
    let one = phases(&[true]);
    for wrong in [
        plan(vec![]),
        plan([one.clone(), one.clone(), one.clone(), one.clone(), one.clone()].concat()),
        LatencyPlan { payload_bytes: 0, ..plan(one.clone()) },
        LatencyPlan { payload_bytes: 9000, ..plan(one.clone()) },
        LatencyPlan { phase_ms: u32::MAX, ..plan(one.clone()) },
        LatencyPlan { load_streams: 0, ..plan(one) },
    ] {
        let report = send(&spec(wrong, Role::Sender { peer: SocketAddr::new(V4, 9) }, V4));
        assert!(reason(&report).contains("allowed"), "{report:?}");
    }
}

#[test]
fn the_end_of_a_phase_is_not_read_with_what_follows() {
    let tcp = LatencyPhase { carrier: Carrier::Tcp, waiting: Waiting::Blocking, loaded: false };
    let kind = TestKind::from(LatencyPlan { payload_bytes: 64, phase_ms: 5, ..plan(vec![tcp; 16]) });
    let (sent, received) = both(&kind, V4, |_| {});
    assert_eq!((&sent.stopped, &received.stopped), (&None, &None));
    assert_eq!(sent.latency.len(), 16);
    assert_eq!(sent.bytes + 16 * 64, received.bytes);
}

/// Sends datagrams of no test without a pause, until stopped.
fn flood(to: SocketAddr, stop: &AtomicBool) {
    let socket = UdpSocket::bind((V4, 0)).unwrap();
    while !stop.load(Ordering::Relaxed) {
        // A full queue takes no more for a moment.
        let _ = socket.send_to(&[5; 64], to);
    }
}

#[test]
fn stray_datagrams_without_end_hold_up_neither_the_end_of_a_phase_nor_a_stop() {
    for waiting in [Waiting::Blocking, Waiting::Spinning] {
        for stopped in [false, true] {
            let phase = LatencyPhase { carrier: Carrier::Udp, waiting, loaded: false };
            let kind = TestKind::from(plan(vec![phase]));
            let receiver =
                Receiver::start(LoadSpec { deadline_ms: 300_000, ..spec(kind.clone(), Role::Receiver, V4) });
            let role = Role::Sender { peer: receiver.address };
            let (sending, never) = (spec(kind, role, V4), control(|_| {}));
            let job = Job::new(&sending, &never);
            let mut stream = admission::knock(&job, receiver.address).unwrap();
            stream.write_all(&[BEGIN, 0]).unwrap();
            let mut ports = [0; 4];
            admission::read_exactly(&job, &mut stream, &mut ports, LONG).unwrap();
            let to = SocketAddr::new(V4, u16::from_be_bytes([ports[0], ports[1]]));
            let (begun, over) = (Instant::now(), AtomicBool::new(false));
            let report = thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| flood(to, &over));
                }
                if stopped {
                    receiver.stop();
                } else {
                    stream.write_all(&[END, QUIT]).unwrap();
                }
                let report = receiver.report();
                over.store(true, Ordering::Relaxed);
                report
            });
            assert_eq!(report.stopped.is_some(), stopped, "{report:?}");
            assert!(begun.elapsed() < LONG, "{waiting:?}");
        }
    }
}
