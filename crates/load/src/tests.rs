//! Both ends of every load against each other, and against ends that lie, stall or are not there.
//!
//! What comes in: loopback, and namespaces made here. What goes out: nothing. The time-outs are those of
//! production. Times are asserted only as deadlines, and these lie so far ahead that a thread may stand still
//! for seconds.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use linerate_model::kind::{MtuPlan, RttPlan, TcpPlan, TestKind, UdpPlan};
use linerate_model::load::{LoadReport, LoadSpec, Role};
use linerate_sys::{affinity, socket};

use crate::token::Token;
use crate::{LoadControl, names, run};

mod connects;
mod latency;
mod path_mtu;
mod strangers;
mod udp;

pub(crate) const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
pub(crate) const TOKEN: [u8; 16] = [7; 16];

/// No test that goes well takes as long.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn tcp(streams: u16, duration_ms: u32) -> TestKind {
    TestKind::from(TcpPlan { streams, duration_ms })
}

pub(crate) fn spec(kind: impl Into<TestKind>, role: Role, bind: IpAddr) -> LoadSpec {
    LoadSpec {
        kind: kind.into(),
        role,
        bind,
        netns: None,
        token: TOKEN,
        deadline_ms: 120_000,
        same_host: false,
        tuning: Box::default(),
    }
}

pub(crate) fn control(listening: impl Fn(u16) + Send + Sync + 'static) -> LoadControl {
    LoadControl { stop: Arc::new(AtomicBool::new(false)), listening: Box::new(listening) }
}

/// A receiver on a thread of its own.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<LoadReport>,
}

impl Receiver {
    pub(crate) fn start(spec: LoadSpec) -> Self {
        let (port_out, port_in) = mpsc::channel();
        let bind = spec.bind;
        let control = control(move |port| port_out.send(port).unwrap());
        let stop = control.stop.clone();
        let thread = thread::spawn(move || run(&spec, &control));
        let port = port_in.recv_timeout(LONG).expect("the receiver listens");
        Self { address: SocketAddr::new(bind, port), stop, thread }
    }

    /// Ends it as its operator does.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn report(self) -> LoadReport {
        self.thread.join().unwrap()
    }
}

pub(crate) fn send(spec: &LoadSpec) -> LoadReport {
    let work = || run(spec, &control(|_| panic!("a sender does not listen")));
    if spec.kind.is::<UdpPlan>() { on_one_cpu(work) } else { work() }
}

/// Keeps the calling thread, and those that it starts, on the CPU where it is: each CPU has a queue of its
/// own in front of the loopback, and datagrams of a thread that moves may overtake each other.
fn stay_on_this_cpu() {
    if let Some(cpu) = affinity::current_cpu() {
        affinity::restrict(0, &[cpu]).unwrap();
    }
}

fn on_one_cpu<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let stays = || {
        stay_on_this_cpu();
        work()
    };
    thread::scope(|scope| scope.spawn(stays).join()).unwrap()
}

/// Packets that all CPUs threw away before a protocol saw them: a busy machine's queues in front of the
/// loopback may overflow.
pub(crate) fn backlog_drops() -> u64 {
    let table = std::fs::read_to_string("/proc/net/softnet_stat").unwrap();
    let dropped = |line: &str| u64::from_str_radix(line.split_ascii_whitespace().nth(1)?, 16).ok();
    table.lines().filter_map(dropped).sum()
}

/// Demands that every datagram that did not arrive is accounted for. `reported` is the number of reported
/// drops: end messages of the sender may be among them (eight at two sockets), and trains that were not full.
/// `backlog` packets of up to `train` datagrams may have vanished besides.
pub(crate) fn assert_accounted(missing: u64, reported: u64, backlog: u64, train: u64, what: &str) {
    assert!(
        missing <= reported + train * backlog,
        "{what}: {missing} missing, {reported} reported, {backlog} backlog"
    );
    assert!(reported <= missing + 8 * train, "{what}: {missing} missing, {reported} reported");
}

/// Runs both ends; `adapt` changes both specs.
pub(crate) fn both(kind: &TestKind, bind: IpAddr, adapt: impl Fn(&mut LoadSpec)) -> (LoadReport, LoadReport) {
    let mut receiving = spec(kind.clone(), Role::Receiver, bind);
    adapt(&mut receiving);
    let receiver = Receiver::start(receiving);
    let mut sending = spec(kind.clone(), Role::Sender { peer: receiver.address }, bind);
    adapt(&mut sending);
    let sent = send(&sending);
    (sent, receiver.report())
}

pub(crate) fn families() -> Vec<IpAddr> {
    let mut families = vec![V4];
    if UdpSocket::bind((V6, 0)).is_ok() {
        families.push(V6);
    }
    families
}

pub(crate) fn reason(report: &LoadReport) -> &str {
    report.stopped.as_deref().unwrap_or("")
}

#[test]
fn every_kind_has_its_load() {
    let known = ["tcp", "udp", "rtt", "mtu", "latency", "path-mtu", "connects", "http", "disk"];
    assert_eq!(names(), known);
}

#[test]
fn tcp_ends_agree_on_bytes() {
    for bind in families() {
        for streams in [1, 4, 20] {
            let (sent, received) = both(&tcp(streams, 150), bind, |_| {});
            assert_eq!((&sent.stopped, &received.stopped), (&None, &None), "{bind} {streams}");
            assert!(sent.bytes > 0 && sent.bytes == received.bytes, "{bind} {streams}");
            assert!(sent.cpu_s > 0.0 && received.cpu_s > 0.0);
            assert!(received.elapsed_s > 0.0 && sent.elapsed_s >= 0.15);
            let end = sent.tcp.unwrap();
            assert!(end.rtt_min_us > 0.0 && end.mss > 500 && !end.congestion.is_empty());
            assert!(end.busy_us > 0 && end.sndbuf_bytes > 0, "{end:?}");
            assert!(received.tcp.unwrap().mss > 500);
        }
    }
}

#[test]
fn tcp_series_follow_the_transfer() {
    let (sent, received) = both(&tcp(1, 2_000), V4, |_| {});
    assert_eq!((&sent.stopped, &received.stopped), (&None, &None));
    for series in [&sent.series, &received.series] {
        // How many intervals there are is up to the machine; one there always is, and each ends behind the
        // one before.
        assert!(series.iter().any(|point| point.throughput_bps > 0.0), "{series:?}");
        assert!(series.windows(2).all(|pair| pair[0].at_ms < pair[1].at_ms), "{series:?}");
    }
    assert!(sent.series.iter().any(|point| point.rtt_us > 0.0 && point.cwnd > 0));
    // Both series are of the same bytes: they cannot report more than what went through.
    let mut at = 0.0;
    let seen: f64 = received
        .series
        .iter()
        .map(|point| {
            let bits = point.throughput_bps * (point.at_ms - at) / 1e3;
            at = point.at_ms;
            bits
        })
        .sum();
    assert!(seen <= received.bytes as f64 * 8.0 * 1.001 && seen > 0.0);
}

#[test]
fn nothing_listens_after_the_streams_came() {
    let receiver = Receiver::start(spec(tcp(1, 300), Role::Receiver, V4));
    let address = receiver.address;
    let sender = thread::spawn(move || send(&spec(tcp(1, 300), Role::Sender { peer: address }, V4)));
    assert!(sender.join().unwrap().bytes > 0);
    assert!(receiver.report().stopped.is_none());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_wrong_token_is_refused_and_does_not_hold_up_the_right_one() {
    let receiver = Receiver::start(spec(tcp(1, 100), Role::Receiver, V4));
    let role = Role::Sender { peer: receiver.address };
    let silent = TcpStream::connect(receiver.address).unwrap();
    let wrong = send(&LoadSpec { token: [8; 16], ..spec(tcp(1, 100), role.clone(), V4) });
    assert!(wrong.bytes == 0 && reason(&wrong).contains("broke"), "{wrong:?}");
    let right = send(&spec(tcp(1, 100), role, V4));
    assert_eq!(right.stopped, None);
    assert_eq!(receiver.report().bytes, right.bytes);
    drop(silent);
}

/// The receiver's half of the exchange of proofs, then nothing more.
fn accept_and_hold(listener: &TcpListener, knows: bool) -> TcpStream {
    let (mut stream, _) = listener.accept().unwrap();
    let nonce = [9; 16];
    let token = Token::new(if knows { TOKEN } else { [0; 16] });
    // A sender with a short deadline may be gone at any of these steps: its report names it.
    let _ = stream
        .write_all(&nonce)
        .and_then(|()| stream.read_exact(&mut [0; 18]))
        .and_then(|()| stream.write_all(&token.stamp("tcp go", &nonce)));
    stream
}

#[test]
fn a_receiver_that_stalls_is_a_value() {
    let listener = TcpListener::bind((V4, 0)).unwrap();
    let role = Role::Sender { peer: listener.local_addr().unwrap() };
    let sender = thread::spawn({
        let role = role.clone();
        move || send(&spec(tcp(1, 100), role, V4))
    });
    let held = accept_and_hold(&listener, true);
    let report = sender.join().unwrap();
    assert!(reason(&report).starts_with("nothing got through after"), "{report:?}");
    assert!(report.bytes > 0 && report.tcp.is_some());
    drop(held);

    // The deadline comes first when it is shorter.
    let sender =
        thread::spawn(move || send(&LoadSpec { deadline_ms: 300, ..spec(tcp(1, 10_000), role, V4) }));
    let held = accept_and_hold(&listener, true);
    let report = sender.join().unwrap();
    assert!(reason(&report).contains("deadline of 300 ms"), "{report:?}");
    drop(held);
}

#[test]
fn a_receiver_that_does_not_know_the_token_gets_nothing() {
    let listener = TcpListener::bind((V4, 0)).unwrap();
    let role = Role::Sender { peer: listener.local_addr().unwrap() };
    let sender = thread::spawn(move || send(&spec(tcp(1, 100), role, V4)));
    let mut held = accept_and_hold(&listener, false);
    let report = sender.join().unwrap();
    assert!(reason(&report).contains("did not show the token") && report.bytes == 0, "{report:?}");
    assert!(!matches!(held.read(&mut [0; 16]), Ok(1..)));
}

#[test]
fn a_sender_that_stalls_is_a_value() {
    let receiver = Receiver::start(spec(tcp(1, 100), Role::Receiver, V4));
    let mut stream = TcpStream::connect(receiver.address).unwrap();
    let mut nonce = [0; 16];
    stream.read_exact(&mut nonce).unwrap();
    let mut signed = nonce.to_vec();
    signed.extend_from_slice(&[0, 0]);
    stream.write_all(&[0, 0]).unwrap();
    stream.write_all(&Token::new(TOKEN).stamp("tcp proof", &signed)).unwrap();
    let mut go = [0; 16];
    stream.read_exact(&mut go).unwrap();
    assert_eq!(go, Token::new(TOKEN).stamp("tcp go", &nonce));
    stream.write_all(&[1; 777]).unwrap();
    let report = receiver.report();
    assert!(reason(&report).starts_with("nothing got through after 777 bytes"), "{report:?}");
    assert_eq!(report.bytes, 777);
}

#[test]
fn bytes_lost_between_the_ends_are_noticed() {
    let receiver = Receiver::start(spec(tcp(1, 100), Role::Receiver, V4));
    let listener = TcpListener::bind((V4, 0)).unwrap();
    let peer = listener.local_addr().unwrap();
    let sender = thread::spawn(move || send(&spec(tcp(1, 100), Role::Sender { peer }, V4)));
    let (mut near, _) = listener.accept().unwrap();
    let mut far = TcpStream::connect(receiver.address).unwrap();
    let (mut back_in, mut back_out) = (far.try_clone().unwrap(), near.try_clone().unwrap());
    let back = thread::spawn(move || std::io::copy(&mut back_in, &mut back_out));
    let mut proof = [0; 18];
    near.read_exact(&mut proof).unwrap();
    far.write_all(&proof).unwrap();
    let mut eaten = [0; 1000];
    near.read_exact(&mut eaten).unwrap();
    std::io::copy(&mut near, &mut far).unwrap();
    far.shutdown(std::net::Shutdown::Write).unwrap();
    let (sent, received) = (sender.join().unwrap(), receiver.report());
    assert!(reason(&sent).starts_with("bytes differ"), "{sent:?}");
    assert_eq!(received.bytes, sent.bytes);
    drop((near, far));
    let _ = back.join().unwrap();
}

#[test]
fn an_end_that_is_not_there_is_a_value() {
    for bind in families() {
        let closed = TcpListener::bind((bind, 0)).unwrap().local_addr().unwrap();
        let report = send(&spec(tcp(3, 100), Role::Sender { peer: closed }, bind));
        assert!(reason(&report).contains("cannot connect"), "{report:?}");
        assert!(report.bytes == 0 && report.tcp.is_none());
        let report = send(&spec(RttPlan { count: 3 }, Role::Sender { peer: closed }, bind));
        assert!(report.stopped.is_some() && report.rtt_us.is_empty());
    }
    let mixed = send(&spec(tcp(1, 100), Role::Sender { peer: SocketAddr::new(V6, 1) }, V4));
    assert!(reason(&mixed).contains("family"), "{mixed:?}");
}

#[test]
fn every_kind_of_test_has_its_load() {
    assert_eq!(crate::names(), TestKind::names());
}

#[test]
fn senseless_numbers_are_values() {
    for kind in [
        tcp(0, 100),
        tcp(513, 100),
        TestKind::from(UdpPlan::paced(f64::NAN, 1, 1)),
        TestKind::from(MtuPlan { sizes: vec![0; 99], tries: 1 }),
    ] {
        let report = send(&spec(kind, Role::Sender { peer: SocketAddr::new(V4, 9) }, V4));
        assert!(reason(&report).contains("allowed"), "{report:?}");
    }
    let path = Some(PathBuf::from("/nonexistent/netns"));
    let report = run(&LoadSpec { netns: path, ..spec(tcp(1, 1), Role::Receiver, V4) }, &control(|_| {}));
    assert!(reason(&report).contains("namespace"), "{report:?}");
}

#[test]
fn receivers_without_a_sender_end_at_their_deadline() {
    let kinds = [
        tcp(1, 10),
        TestKind::from(UdpPlan::paced(1e6, 100, 10)),
        TestKind::from(RttPlan { count: 1 }),
        TestKind::from(MtuPlan { sizes: vec![100], tries: 1 }),
    ];
    for kind in kinds {
        let begun = Instant::now();
        let spec = LoadSpec { deadline_ms: 100, ..spec(kind, Role::Receiver, V4) };
        let report = Receiver::start(spec).report();
        assert!(reason(&report).contains("deadline of 100 ms"), "{report:?}");
        assert!(begun.elapsed() < LONG);
    }
}

#[test]
fn the_stop_flag_ends_every_load() {
    for kind in [tcp(2, 600_000), TestKind::from(UdpPlan::paced(1e6, 1000, 600_000))] {
        let begun = Instant::now();
        let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
        let sending = spec(kind, Role::Sender { peer: receiver.address }, V4);
        let stopping = control(|_| {});
        let stop = stopping.stop.clone();
        let sender = thread::spawn(move || run(&sending, &stopping));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(sender.join().unwrap().stopped.as_deref(), Some("stopped by the operator"));
        receiver.stop();
        receiver.report();
        assert!(begun.elapsed() < LONG);
    }
    // As many RTTs as there may be take seconds only: stopped when the fourth is in flight.
    let kind = TestKind::from(RttPlan { count: u16::MAX });
    let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
    let stopping = control(|_| {});
    let stop = stopping.stop.clone();
    let relay = Relay::start(receiver.address, move |number, _| {
        stop.fetch_or(number == 3, Ordering::Relaxed);
        1
    });
    let report = run(&spec(kind, Role::Sender { peer: relay.address }, V4), &stopping);
    assert_eq!(report.stopped.as_deref(), Some("stopped by the operator"));
    receiver.stop();
    receiver.report();
    relay.end();
}

#[test]
fn udp_ends_count_the_same() {
    for bind in families() {
        for (rate_bps, payload_bytes) in [(2e6, 1000), (100e6, 1400)] {
            let kind = TestKind::from(UdpPlan::paced(rate_bps, payload_bytes, 2_000));
            let before = backlog_drops();
            let (sent, received) = both(&kind, bind, |_| {});
            let backlog = backlog_drops() - before;
            assert_eq!((&sent.stopped, &received.stopped), (&None, &None));
            let (tx, rx) = (sent.udp.unwrap(), received.udp.unwrap());
            let (missing, reported) = (tx.datagrams - rx.datagrams, rx.kernel_drops.unwrap_or(0));
            assert_accounted(missing, reported, backlog, 1, &format!("{bind} {rate_bps}"));
            assert_eq!((rx.reordered, rx.duplicates), (0, 0));
            let planned = (rate_bps * 2.0 / 8.0 / f64::from(payload_bytes)) as u64;
            assert!((1..=planned + 1).contains(&tx.datagrams), "{} of {planned}", tx.datagrams);
            assert_eq!(received.bytes, rx.datagrams * u64::from(payload_bytes));
        }
    }
}

/// Sits between the ends of a UDP test and passes on what it likes.
struct Relay {
    address: SocketAddr,
    dropped: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: thread::JoinHandle<u64>,
}

impl Relay {
    /// Passes on so many copies of each datagram to `far`, counted from 0, and everything back.
    fn start(far: SocketAddr, passes: impl Fn(u64, &[u8]) -> usize + Send + 'static) -> Self {
        Self::start_with(far, move |back, number, datagram| {
            let copies = if back { 1 } else { passes(number, datagram) };
            vec![datagram.to_vec(); copies]
        })
    }

    /// Replaces each datagram by what `passes` makes of it; its first argument is true in the reverse
    /// direction.
    fn start_with(
        far: SocketAddr,
        mut passes: impl FnMut(bool, u64, &[u8]) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Self {
        let socket = UdpSocket::bind((far.ip(), 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let _ = socket::set_receive_buffer(&socket, 4 << 20);
        let address = socket.local_addr().unwrap();
        let dropped = Arc::new(AtomicU64::new(0));
        let over = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (dropped, over) = (dropped.clone(), over.clone());
            move || {
                stay_on_this_cpu();
                let (mut buffer, mut near, mut number) = (vec![0; 65_536], None, 0);
                while !over.load(Ordering::Relaxed) {
                    let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                    let back = from == far;
                    let to = if back { near.unwrap() } else { far };
                    let out = passes(back, number, &buffer[..length]);
                    if !back {
                        near = Some(from);
                        number += 1;
                        dropped.fetch_add(u64::from(out.is_empty()), Ordering::Relaxed);
                    }
                    for datagram in out {
                        socket.send_to(&datagram, to).unwrap();
                    }
                }
                socket::dropped(&socket).unwrap()
            }
        });
        Self { address, dropped, over, thread }
    }

    /// Datagrams dropped on purpose, and by the relay's own socket.
    fn end(self) -> (u64, u64) {
        self.over.store(true, Ordering::Relaxed);
        let own = self.thread.join().unwrap();
        (self.dropped.load(Ordering::Relaxed), own)
    }
}

#[test]
fn udp_loss_and_duplicates_are_counted_exactly() {
    let kind = TestKind::from(UdpPlan::paced(20e6, 1000, 2_000));
    let before = backlog_drops();
    let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
    // Of every ten: one lost, one doubled. The last words of the sender (shorter) pass.
    let relay = Relay::start(receiver.address, |number, datagram| match (datagram.len(), number % 10) {
        (1000, 3) => 0,
        (1000, 7) => 2,
        _ => 1,
    });
    let sent = send(&spec(kind, Role::Sender { peer: relay.address }, V4)).udp.unwrap();
    let report = receiver.report();
    let (dropped, own) = relay.end();
    let backlog = backlog_drops() - before;
    let received = report.udp.unwrap();
    assert!(dropped > 0 && report.stopped.is_none());
    let missing = sent.datagrams - received.datagrams;
    let by_sockets = own + received.kernel_drops.unwrap_or(0);
    // What sockets dropped may have been the second of two.
    assert!(missing <= dropped + by_sockets + backlog, "{missing}: {dropped} {by_sockets} {backlog}");
    if by_sockets == 0 && backlog == 0 {
        assert_eq!(missing, dropped);
    }
    assert!(received.duplicates > 0 && received.reordered == 0, "{received:?}");
}

#[test]
fn datagrams_without_the_token_are_passed_over() {
    let kind = TestKind::from(RttPlan { count: 5 });
    let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
    let role = Role::Sender { peer: receiver.address };
    let wrong = send(&LoadSpec { token: [1; 16], ..spec(kind.clone(), role.clone(), V4) });
    assert!(reason(&wrong).starts_with("nothing got through") && wrong.rtt_us.is_empty(), "{wrong:?}");
    let right = send(&spec(kind, role, V4));
    assert_eq!(right.rtt_us.len(), 5, "{right:?}");
    assert!(receiver.report().stopped.is_none());
}

#[test]
fn round_trips_are_listed_and_lost_ones_left_out() {
    for bind in families() {
        let (sent, received) = both(&TestKind::from(RttPlan { count: 40 }), bind, |_| {});
        assert_eq!((&sent.stopped, &received.stopped), (&None, &None));
        assert!(sent.rtt_us.len() == 40 && sent.rtt_us.iter().all(|&us| us > 0.0));
    }
    let kind = TestKind::from(RttPlan { count: 10 });
    let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
    let relay = Relay::start(receiver.address, |number, _| usize::from(number != 4));
    let sent = send(&spec(kind.clone(), Role::Sender { peer: relay.address }, V4));
    assert_eq!((sent.rtt_us.len(), &sent.stopped), (9, &None));
    receiver.report();
    relay.end();

    let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
    // What ends the test (shorter than a request) passes.
    let relay =
        Relay::start(receiver.address, |number, datagram| usize::from(number < 4 || datagram.len() != 64));
    let sent = send(&spec(kind, Role::Sender { peer: relay.address }, V4));
    assert!(sent.rtt_us.len() == 3 && reason(&sent).contains("not answered"), "{sent:?}");
    receiver.report();
    relay.end();
}

/// A path whose answers come only when nothing more is asked.
fn late_at(last: u64, address: SocketAddr) -> Relay {
    Relay::start_with(address, move |back, number, datagram| {
        if back && number >= last {
            thread::sleep(Duration::from_millis(150));
        }
        vec![datagram.to_vec()]
    })
}

#[test]
fn an_answer_after_the_last_request_counts() {
    let kind = TestKind::from(RttPlan { count: 3 });
    let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
    // The first exchange and three requests.
    let relay = late_at(4, receiver.address);
    let sent = send(&spec(kind, Role::Sender { peer: relay.address }, V4));
    assert_eq!((sent.rtt_us.len(), &sent.stopped), (3, &None));
    receiver.report();
    relay.end();

    let kind = TestKind::from(MtuPlan { sizes: vec![100], tries: 2 });
    let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
    let relay = late_at(3, receiver.address);
    let sent = send(&spec(kind, Role::Sender { peer: relay.address }, V4));
    assert_eq!((sent.mtu[0].sent, sent.mtu[0].answered), (2, 2));
    receiver.report();
    relay.end();
}

#[test]
fn a_black_hole_for_large_packets_is_neither_answered_nor_refused() {
    let kind = TestKind::from(MtuPlan { sizes: vec![100, 1400, 1450, 10], tries: 3 });
    let receiver = Receiver::start(spec(kind.clone(), Role::Receiver, V4));
    let relay = Relay::start(receiver.address, |_, datagram| usize::from(datagram.len() + 28 <= 1400));
    let sent = send(&spec(kind, Role::Sender { peer: relay.address }, V4));
    let seen: Vec<_> = sent.mtu.iter().map(|probe| (probe.bytes, probe.sent, probe.answered)).collect();
    assert_eq!(seen, [(100, 3, 3), (1400, 3, 3), (1450, 3, 0), (10, 0, 0)]);
    assert!(sent.mtu.iter().all(|probe| probe.refused_mtu.is_none()) && sent.stopped.is_none());
    receiver.report();
    relay.end();
}

/// A namespace whose loopback is up with this MTU; `None`, with a message, where that is not possible.
fn namespace(mtu: &str) -> Option<(std::fs::File, PathBuf)> {
    let file = linerate_sys::netns::create()
        .inspect_err(|error| println!("SKIPPED a load in a namespace: cannot make one: {error}"))
        .ok()?;
    let set = linerate_sys::netns::run_in(&file, || {
        std::process::Command::new("ip").args(["link", "set", "lo", "mtu", mtu, "up"]).status()
    });
    if !matches!(&set, Ok(Ok(status)) if status.success()) {
        println!("SKIPPED a load in a namespace: cannot set up its loopback: {set:?}");
        return None;
    }
    let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    Some((file, path))
}

#[test]
fn a_load_enters_its_namespace_and_sees_the_mtu_there() {
    let Some((_file, path)) = namespace("1400") else { return };
    let inside = |spec: &mut LoadSpec| spec.netns = Some(path.clone());
    for bind in [V4, V6] {
        let kind = TestKind::from(MtuPlan { sizes: vec![100, 1400, 1401, 1500], tries: 2 });
        let (sent, _) = both(&kind, bind, inside);
        let seen: Vec<_> = sent.mtu.iter().map(|probe| (probe.answered, probe.refused_mtu)).collect();
        assert_eq!(seen, [(2, None), (2, None), (0, Some(1400)), (0, Some(1400))], "{bind}");
        let (sent, received) = both(&tcp(2, 100), bind, inside);
        assert!(sent.stopped.is_none() && sent.bytes == received.bytes && sent.bytes > 0, "{sent:?}");
        assert!(sent.tcp.unwrap().mss <= 1400);
    }
    // The test's own threads stayed outside.
    let receiver = Receiver::start(spec(tcp(1, 10), Role::Receiver, V4));
    let there = LoadSpec {
        netns: Some(path.clone()),
        ..spec(tcp(1, 10), Role::Sender { peer: receiver.address }, V4)
    };
    assert!(reason(&send(&there)).contains("cannot connect"));
    assert!(send(&spec(tcp(1, 10), Role::Sender { peer: receiver.address }, V4)).stopped.is_none());
    assert!(receiver.report().stopped.is_none());
}

/// What an eavesdropper on an old test has: its token, and every byte of its handshake.
#[test]
fn a_token_of_an_old_run_opens_nothing() {
    let old = Receiver::start(spec(tcp(1, 100), Role::Receiver, V4));
    let listener = TcpListener::bind((V4, 0)).unwrap();
    let peer = listener.local_addr().unwrap();
    let sender = thread::spawn(move || send(&spec(tcp(1, 100), Role::Sender { peer }, V4)));
    let (mut near, _) = listener.accept().unwrap();
    let mut far = TcpStream::connect(old.address).unwrap();
    let (mut back_in, mut back_out) = (far.try_clone().unwrap(), near.try_clone().unwrap());
    let back = thread::spawn(move || std::io::copy(&mut back_in, &mut back_out));
    let mut recorded = [0; 18];
    near.read_exact(&mut recorded).unwrap();
    far.write_all(&recorded).unwrap();
    std::io::copy(&mut near, &mut far).unwrap();
    far.shutdown(std::net::Shutdown::Write).unwrap();
    let (sent, received) = (sender.join().unwrap(), old.report());
    assert!(sent.bytes > 0 && received.bytes == sent.bytes, "the recorded handshake was a good one");
    drop((near, far));
    let _ = back.join().unwrap();

    // The token of the run after, and for good measure the old one with a new nonce: a recording is worth
    // nothing in either case.
    for token in [[8; 16], TOKEN] {
        let fresh = LoadSpec { token, ..spec(tcp(1, 100), Role::Receiver, V4) };
        let receiver = Receiver::start(fresh);
        let role = Role::Sender { peer: receiver.address };
        if token != TOKEN {
            let stale = send(&spec(tcp(1, 100), role.clone(), V4));
            assert!(stale.bytes == 0 && stale.stopped.is_some(), "{stale:?}");
        }
        let mut replayed = TcpStream::connect(receiver.address).unwrap();
        replayed.read_exact(&mut [0; 16]).unwrap();
        replayed.write_all(&recorded).unwrap();
        // Cut off without the welcome that the right one gets.
        assert!(!matches!(replayed.read(&mut [0; 16]), Ok(1..)));
        let right = send(&LoadSpec { token, ..spec(tcp(1, 100), role, V4) });
        assert_eq!(right.stopped, None);
        assert_eq!(receiver.report().bytes, right.bytes, "nothing of the others was counted");
    }
}
