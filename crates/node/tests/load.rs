//! `linerate-node load`: both ends of a test as two processes, without an operator.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};

use linerate_model::kind::{
    ConnectsPlan, LatencyPlan, MtuPlan, PathMtuPlan, RttPlan, TcpPlan, TestKind, UdpPlan,
};
use linerate_model::latency::{Carrier, LatencyPhase, Waiting};
use linerate_model::load::{LoadReport, LoadSpec, Role};
use linerate_model::tuning::{Pin, Tuning};

struct End {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl End {
    fn start(spec: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate-node"));
        command.arg("load");
        Self::start_with(command, spec)
    }

    /// One that may have so many descriptors.
    fn start_with_descriptors(number: usize, spec: &str) -> Self {
        let mut command = Command::new("sh");
        let line = format!("ulimit -n {number} && exec \"$0\" load");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_linerate-node")]);
        Self::start_with(command, spec)
    }

    fn start_with(mut command: Command, spec: &str) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(spec.as_bytes()).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> serde_json::Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn report(mut self) -> LoadReport {
        let report = serde_json::from_value(self.line()).unwrap();
        assert!(self.child.wait().unwrap().success());
        report
    }
}

fn spec(role: Role) -> String {
    // A transfer is given up after as long without progress as it was to last: longer than a busy machine
    // stands still.
    spec_of(TestKind::from(TcpPlan { streams: 2, duration_ms: 3_000 }), role)
}

fn spec_of(kind: TestKind, role: Role) -> String {
    let spec = LoadSpec {
        kind,
        role,
        bind: [127, 0, 0, 1].into(),
        netns: None,
        token: [3; 16],
        deadline_ms: 120_000,
        same_host: false,
        tuning: Box::new(Tuning { verify: true, ..Tuning::default() }),
    };
    serde_json::to_string(&spec).unwrap()
}

#[test]
fn two_processes_run_one_test() {
    let mut receiver = End::start(&spec(Role::Receiver));
    let port = receiver.line()["listening"].as_u64().unwrap() as u16;
    let sender = End::start(&spec(Role::Sender { peer: ([127, 0, 0, 1], port).into() }));
    let (sent, received) = (sender.report(), receiver.report());
    assert_eq!((sent.stopped, received.stopped), (None, None));
    assert!(sent.bytes > 0 && sent.bytes == received.bytes && sent.verified_streams == Some(2));
}

/// One test of each kind whose receiver has a port.
fn kinds() -> Vec<TestKind> {
    let phase = |carrier, loaded| LatencyPhase { carrier, waiting: Waiting::Blocking, loaded };
    let phases = vec![phase(Carrier::Tcp, false), phase(Carrier::Udp, false), phase(Carrier::Tcp, true)];
    vec![
        TestKind::from(TcpPlan { streams: 2, duration_ms: 1_000 }),
        TestKind::from(UdpPlan::paced(5e6, 1000, 500)),
        TestKind::from(RttPlan { count: 5 }),
        TestKind::from(MtuPlan { sizes: vec![600, 1200], tries: 2 }),
        TestKind::from(LatencyPlan {
            phases,
            phase_ms: 300,
            payload_bytes: 64,
            load_streams: 1,
            settle_ms: 100,
            spins_on_free_cpus: false,
        }),
        TestKind::from(PathMtuPlan { least_bytes: 600, most_bytes: 1500, tries: 2 }),
        TestKind::from(ConnectsPlan { parallel: 2, duration_ms: 60_000, count_max: 100 }),
    ]
}

#[test]
fn strangers_at_the_port_of_every_kind_of_test_change_nothing() {
    for kind in kinds() {
        let mut receiver = End::start(&spec_of(kind.clone(), Role::Receiver));
        let port = receiver.line()["listening"].as_u64().unwrap() as u16;
        let peer = SocketAddr::from(([127, 0, 0, 1], port));
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        let silent: Vec<TcpStream> = (0..20).filter_map(|_| TcpStream::connect(peer).ok()).collect();
        for _ in 0..20 {
            drop(TcpStream::connect(peer));
            // Where nothing takes datagrams the kernel says so.
            let _ = stranger.send_to(&[7; 40], peer);
        }
        let (sent, received) =
            (End::start(&spec_of(kind.clone(), Role::Sender { peer })).report(), receiver.report());
        let name = kind.name();
        assert_eq!((&sent.stopped, &received.stopped), (&None, &None), "{name}");
        assert!(sent.bytes > 0, "{name}");
        let met = received.strangers.unwrap();
        // A connection to a port of datagrams may have met the port of another test with this number.
        assert!(met.datagrams + met.connections > 0, "{name}: {met:?}");
        drop(silent);
    }
}

#[test]
fn a_data_port_survives_without_descriptors() {
    let mut receiver = End::start_with_descriptors(40, &spec(Role::Receiver));
    let port = receiver.line()["listening"].as_u64().unwrap() as u16;
    let peer = SocketAddr::from(([127, 0, 0, 1], port));
    let silent: Vec<TcpStream> = (0..45).map(|_| TcpStream::connect(peer).unwrap()).collect();
    let sender = End::start(&spec(Role::Sender { peer }));
    let (sent, received) = (sender.report(), receiver.report());
    assert_eq!((sent.stopped, received.stopped), (None, None));
    assert!(sent.bytes > 0 && sent.bytes == received.bytes);
    assert_eq!(received.strangers.unwrap().connections, silent.len() as u64);
}

#[test]
fn a_cpu_that_no_host_has_is_refused_before_anything_listens() {
    let tuning = Tuning { pin: Pin::Cpus(vec![0, 1023]), ..Tuning::default() };
    for role in [Role::Receiver, Role::Sender { peer: ([127, 0, 0, 1], 9).into() }] {
        let spec = LoadSpec {
            same_host: false,
            tuning: Box::new(tuning.clone()),
            ..serde_json::from_str::<LoadSpec>(&spec(role)).unwrap()
        };
        let report = End::start(&serde_json::to_string(&spec).unwrap()).report();
        let reason = report.stopped.unwrap();
        assert!(
            report.refused && reason.starts_with("cannot run on CPU 1023: this host allows CPU "),
            "{reason}"
        );
        assert_eq!(report.way, None);
    }
}

#[test]
fn what_is_no_spec_is_refused() {
    let mut end = End::start("{\"kind\":1}");
    assert_eq!(end.child.wait().unwrap().code(), Some(2));
}
