//! Node programs that are not real, for tests: this very test program started again, as a child that speaks
//! the protocol, or breaks it in one of the ways that nodes break. Makes no traffic and changes nothing.

// The file of this module is found from here also when a test beside the crate uses this file.
#[path = "fake_node/hostile.rs"]
#[allow(dead_code, reason = "the list of attacks is gone through by a test beside the crate")]
pub(crate) mod hostile;

#[path = "fake_node/builder.rs"]
mod builder;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::kind::{MtuPlan, RttPlan, TcpPlan, UdpPlan};
use linerate_model::load::{Interval, LoadReport, LoadSpec, Role, TcpEnd, UdpEnd};
use linerate_model::path_mtu::MtuProbe;
use linerate_wire::frame::{FrameKind, HEADER_BYTES, encode};
use linerate_wire::message::{
    Event, Hello, ObserveRequest, PROTOCOL, PROTOCOL_OLDEST, Request, SessionRequest,
};
use linerate_wire::session::{NodeEvent, NodeSession};

const VARIABLE: &str = "LINERATE_FAKE_NODE";

/// Writes a program into the folder that is a fake node of this behaviour, whatever its arguments.
pub(crate) fn program(folder: &Path, behaviour: &str) -> PathBuf {
    let path = folder.join(format!("node-{behaviour}"));
    let this = std::env::current_exe().unwrap();
    let run = format!("'{}' fake_node::not_a_test --exact --nocapture", this.display());
    // `mute` says hello, then closes its stdout and lives on.
    let script = if behaviour == "mute" {
        format!("#!/bin/sh\n{VARIABLE}=hello {run}\nexec >&-\ncat > /dev/null\n")
    } else {
        format!("#!/bin/sh\n{VARIABLE}={behaviour} exec {run}\n")
    };
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The program itself; as a test among tests it does nothing.
#[test]
fn not_a_test() {
    let Ok(behaviour) = std::env::var(VARIABLE) else { return };
    let code = match behaviour.as_str() {
        "huge" => huge(),
        "garbage" => say(b"hello, I am a login banner and nothing else\n"),
        "crash" => {
            eprintln!("cannot enter the namespace: no such file");
            7
        }
        "hello" => {
            let mut session = NodeSession::new(hello());
            say(&session.take_output())
        }
        "silent" => {
            let mut session = NodeSession::new(hello());
            say(&session.take_output());
            wait_for_end()
        }
        "slow" => serve(1, None, Way::Open, &behaviour),
        "dies-early" => serve(usize::MAX, Some(4), Way::Open, &behaviour),
        "no-way-to-2" => serve(usize::MAX, None, Way::NoneToTwo, &behaviour),
        _ => serve(usize::MAX, None, Way::Open, &behaviour),
    };
    std::process::exit(code);
}

/// What gets through.
#[derive(Clone, Copy)]
enum Way {
    Open,
    /// Nothing to the address that ends in 2.
    NoneToTwo,
}

fn say(bytes: &[u8]) -> i32 {
    let mut stdout = std::io::stdout().lock();
    i32::from(stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err())
}

/// A frame of 100 MB, as far as anybody takes it.
fn huge() -> i32 {
    let mut session = NodeSession::new(hello());
    say(&session.take_output());
    let mut header = Vec::new();
    encode(FrameKind::FromNode, b"", &mut header).unwrap();
    // The length stands before the checksum, both of four bytes, at the end of the header.
    header[HEADER_BYTES - 8..HEADER_BYTES - 4].copy_from_slice(&100_000_000_u32.to_le_bytes());
    let chunk = vec![b'x'; 1 << 20];
    let mut code = say(&header);
    for _ in 0..100 {
        if code == 0 {
            code = say(&chunk);
        }
    }
    wait_for_end()
}

/// Lives on without a word until the operator closes stdin.
fn wait_for_end() -> i32 {
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    0
}

fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: "fake".into(),
        build: "fake".into(),
        facts: vec![],
        loads: ["tcp", "udp", "rtt", "mtu"].map(str::to_owned).into(),
        root: false,
        wall_ms: None,
        boot_id: None,
    }
}

/// A node that answers everything; `chunk` bytes at a time; dead at the load number `dies_at`.
fn serve(chunk: usize, dies_at: Option<u32>, way: Way, behaviour: &str) -> i32 {
    let (bytes, incoming) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = std::io::stdin().read(&mut buffer) {
            if bytes.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let begun = Instant::now();
    let plain = match behaviour {
        "older" => Hello { protocol: PROTOCOL_OLDEST, ..hello() },
        _ => hello(),
    };
    let mut session = NodeSession::new(hostile::hello(behaviour, plain));
    let mut loads = 0;
    let mut builder = builder::Builder::default();
    loop {
        let now = begun.elapsed().as_millis() as u64;
        session.tick(now);
        for part in session.take_output().chunks(chunk) {
            if say(part) != 0 {
                return 0;
            }
        }
        match incoming.recv_timeout(Duration::from_millis(100)) {
            Ok(bytes) => session.received(now, &bytes),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return 0,
        }
        while let Some(NodeEvent::Request { id, body }) = session.poll_event() {
            let leaves = body == SessionRequest::Bye.into();
            if let Request::Observe(ObserveRequest::Load(spec)) = &body {
                loads += u32::from(spec.kind.is::<TcpPlan>());
                if dies_at.is_some_and(|n| loads >= n) {
                    eprintln!("out of memory");
                    return 9;
                }
            }
            if !hostile::answer(&mut session, now, id, &body, behaviour)
                && !builder.answer(&mut session, now, id, &body, behaviour)
            {
                answer(&mut session, now, id, &body, way);
            }
            if leaves {
                say(&session.take_output());
                return 0;
            }
        }
    }
}

fn answer(session: &mut NodeSession, now: u64, id: u64, body: &Request, way: Way) {
    match body {
        Request::Observe(ObserveRequest::Facts { .. }) => {
            let readings = [("cpu.count".to_owned(), FactValue::Int(2))].into();
            let facts = HostFacts { readings, ..HostFacts::default() };
            session.respond(now, id, Event::Facts(Box::new(facts)));
        }
        Request::Observe(ObserveRequest::Load(spec)) => {
            if spec.role == Role::Receiver {
                session.respond(now, id, Event::Listening { port: 9 });
            }
            let to = if let Role::Sender { peer } = spec.role { peer.ip() } else { spec.bind };
            let cut_off = matches!(way, Way::NoneToTwo) && to.to_string().ends_with(".2");
            let report = if cut_off {
                LoadReport { stopped: Some("no answer".into()), ..LoadReport::default() }
            } else {
                report(spec)
            };
            let report = Box::new(report);
            session.respond(now, id, Event::LoadDone { report, counters: BTreeMap::new() });
            return;
        }
        _ => {}
    }
    session.respond(now, id, Event::Done);
}

/// 200 Mbit/s, without loss, 1 ms away.
fn report(spec: &LoadSpec) -> LoadReport {
    let mut report = LoadReport { elapsed_s: 0.5, cpu_s: 0.01, ..LoadReport::default() };
    let kind = &spec.kind;
    if kind.is::<TcpPlan>() {
        report.bytes = 12_500_000;
        report.series = (1..=10)
            .map(|i| Interval {
                at_ms: 50.0 * f64::from(i),
                throughput_bps: 2e8,
                rtt_us: 1100.0,
                ..Interval::default()
            })
            .collect();
        report.tcp = Some(TcpEnd::default());
    } else if let Some(udp) = kind.get::<UdpPlan>() {
        let payload = u64::from(udp.payload_bytes);
        let datagrams = (udp.rate_bps * f64::from(udp.duration_ms) / 8e3 / payload as f64) as u64;
        report.bytes = datagrams * payload;
        report.udp = Some(UdpEnd { datagrams, ..UdpEnd::default() });
    } else if let Some(rtt) = kind.get::<RttPlan>() {
        report.rtt_us = vec![1000.0; usize::from(rtt.count)];
    } else if let Some(MtuPlan { sizes, tries }) = kind.get() {
        let probe =
            |bytes: &u32| MtuProbe { bytes: *bytes, sent: *tries, answered: *tries, refused_mtu: None };
        report.mtu = sizes.iter().map(probe).collect();
    } else {
        report.stopped = Some(format!("a fake node makes no `{}`", kind.name()));
    }
    report
}
