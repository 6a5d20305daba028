//! Node programs that mean harm, for tests: they speak the protocol and use every place where a node may say
//! something. In: the name of an attack. Out: bytes on stdout. They send to nobody but the operator that
//! started them.

use std::collections::BTreeMap;
use std::io::Write;

use linerate_model::change::Change;
use linerate_model::fact::{FactDecl, FactValue, Gap, HostFacts};
use linerate_model::kind::UdpPlan;
use linerate_model::load::{Interval, LoadReport, LoadSpec, Role, TcpEnd, UdpEnd};
use linerate_model::path_mtu::MtuProbe;
use linerate_wire::frame::{BODY_BYTES_MAX, FrameKind, encode};
use linerate_wire::message::{
    Event, FromNode, Hello, JournalEntry, JournalState, ObserveRequest, Request, TrialRequest,
};
use linerate_wire::session::{HEARTBEAT, NodeSession};

/// What everything that is text says: commands to terminals, to browsers and to shells, a path out of every
/// folder, a line that looks like one of ours.
pub(crate) const WORDS: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\r\nerror: all is lost\nhint: run $(touch owned)`touch owned`;touch owned\
     <script>alert(1)</script><img src=x onerror=alert(1)>'\"|&\u{0}../../../../../../tmp/owned\u{7f}";

/// Attacks on the operator's memory. Each ends when nobody listens any more.
pub(crate) const FLOODS: &[&str] =
    &["flood-of-heartbeats", "flood-of-answers", "flood-of-facts", "flood-of-noise", "frame-without-end"];

/// Attacks on whoever believes numbers and words.
pub(crate) const LIES: &[&str] =
    &["evil-words", "absurd-numbers", "deep-json", "answers-that-were-not-asked"];

/// What the session of such a node begins with.
pub(super) fn hello(behaviour: &str, plain: Hello) -> Hello {
    if behaviour != "evil-words" {
        return plain;
    }
    let declaration = FactDecl {
        pattern: WORDS.to_owned(),
        unit: WORDS.to_owned(),
        meaning: WORDS.to_owned(),
        setting: true,
    };
    Hello { version: WORDS.to_owned(), build: WORDS.to_owned(), facts: vec![declaration], ..plain }
}

/// Does the harm at this request; `false` leaves the answer to an honest node.
pub(super) fn answer(session: &mut NodeSession, now: u64, id: u64, body: &Request, behaviour: &str) -> bool {
    match (behaviour, body) {
        ("flood-of-heartbeats", Request::Observe(ObserveRequest::Facts { .. })) => {
            flood(HEARTBEAT.to_vec(), 0);
        }
        ("flood-of-answers", Request::Observe(ObserveRequest::Facts { .. })) => {
            flood(frame_body(id, facts_of(1)), 0);
        }
        // As many values as fit into a frame, again and again.
        ("flood-of-facts", Request::Observe(ObserveRequest::Facts { .. })) => {
            flood(frame_body(id, facts_of(700_000)), 0);
        }
        ("flood-of-noise", Request::Observe(ObserveRequest::Facts { .. })) => {
            flood(HEARTBEAT.to_vec(), 1 << 20);
        }
        ("frame-without-end", Request::Observe(ObserveRequest::Facts { .. })) => endless_frame(),
        ("deep-json", Request::Observe(ObserveRequest::Facts { .. })) => deep(id),
        ("answers-that-were-not-asked", Request::Observe(ObserveRequest::Load(_))) => {
            let mut bytes = Vec::new();
            encode(FrameKind::FromNode, &frame_body(u64::MAX, facts_of(1)), &mut bytes).unwrap();
            super::say(&bytes);
        }
        ("evil-words", Request::Observe(ObserveRequest::Facts { .. })) => {
            session.respond(now, id, Event::Facts(Box::new(evil_facts())));
            session.respond(now, id, Event::Done);
        }
        ("evil-words", Request::Trial(TrialRequest::Journals)) => {
            let entry = JournalEntry {
                trial: WORDS.to_owned(),
                state: JournalState::Kept,
                changes: Vec::<Change>::new(),
                files: vec![WORDS.into()],
            };
            session.respond(now, id, Event::Journals(vec![entry]));
            session.respond(now, id, Event::Done);
        }
        ("evil-words", Request::Observe(ObserveRequest::Load(spec))) if spec.kind.is::<UdpPlan>() => {
            let (error, hint) = (WORDS.to_owned(), WORDS.to_owned());
            session.respond(now, id, Event::Failed { error, hint, undo_failed: true });
        }
        ("evil-words", Request::Observe(ObserveRequest::Load(spec))) => {
            let report = LoadReport {
                stopped: Some(WORDS.to_owned()),
                tcp: Some(TcpEnd { congestion: WORDS.to_owned(), ..TcpEnd::default() }),
                ..super::report(spec)
            };
            load_done(session, now, id, spec, report);
        }
        ("absurd-numbers", Request::Observe(ObserveRequest::Load(spec))) => {
            load_done(session, now, id, spec, absurd(spec));
        }
        _ => return false,
    }
    true
}

fn load_done(session: &mut NodeSession, now: u64, id: u64, spec: &LoadSpec, report: LoadReport) {
    if spec.role == Role::Receiver {
        session.respond(now, id, Event::Listening { port: 9 });
    }
    let counters = BTreeMap::from([(WORDS.to_owned(), i64::MIN), ("softnet.dropped".to_owned(), i64::MAX)]);
    session.respond(now, id, Event::LoadDone { report: Box::new(report), counters });
}

fn evil_facts() -> HostFacts {
    let mut facts = HostFacts::default();
    for key in ["nic.eth0.driver", "sysctl.net.ipv4.tcp_rmem", "kernel.release", WORDS] {
        facts.readings.insert(key.to_owned(), FactValue::Text(WORDS.to_owned()));
    }
    facts.readings.insert("cpu.list".to_owned(), FactValue::List(vec![WORDS.to_owned(); 3]));
    facts.counters.insert(WORDS.to_owned(), i64::MAX);
    facts.gaps.push(Gap { what: WORDS.into(), reason: WORDS.to_owned() });
    facts
}

fn facts_of(count: u32) -> Event {
    let readings = (0..count).map(|n| (format!("k.{n}"), FactValue::Int(0))).collect();
    Event::Facts(Box::new(HostFacts { readings, ..HostFacts::default() }))
}

/// Numbers at the ends of their types, and series that run backwards.
fn absurd(spec: &LoadSpec) -> LoadReport {
    let series = (0..50_000)
        .map(|i: u32| Interval {
            at_ms: if i.is_multiple_of(2) { f64::MAX } else { -f64::from(i) },
            throughput_bps: if i.is_multiple_of(3) { f64::MAX } else { f64::MIN },
            rtt_us: f64::MIN_POSITIVE,
            retransmits: u64::MAX,
            cwnd: u32::MAX,
            delivery_bps: f64::MIN,
        })
        .collect();
    let udp = UdpEnd {
        datagrams: u64::MAX,
        reordered: u64::MAX,
        duplicates: u64::MAX,
        kernel_drops: Some(u64::MAX),
    };
    let probe = MtuProbe { bytes: u32::MAX, sent: 0, answered: u8::MAX, refused_mtu: Some(u32::MAX) };
    LoadReport {
        bytes: if spec.role == Role::Receiver { u64::MAX - 1 } else { u64::MAX },
        elapsed_s: f64::MIN_POSITIVE,
        cpu_s: f64::MAX,
        softirq_s: Some(f64::MIN),
        wait_s: -1.0,
        core_busy_max: Some(f64::MAX),
        series,
        started_ms: Some(f64::MIN),
        verified_streams: Some(u16::MAX),
        drained: true,
        udp: Some(udp),
        tcp: Some(TcpEnd { retransmits: u64::MAX, wscale: (u8::MAX, u8::MAX), ..TcpEnd::default() }),
        rtt_us: vec![f64::MAX, f64::MIN, 0.0, -0.0, 1e-300],
        mtu: vec![probe; 1000],
        ..LoadReport::default()
    }
}

fn frame_body(id: u64, body: Event) -> Vec<u8> {
    serde_json::to_vec(&FromNode { id, body }).unwrap()
}

/// The same frame for ever, with blanks behind its body.
fn flood(mut body: Vec<u8>, blanks: usize) {
    body.resize((body.len() + blanks).min(BODY_BYTES_MAX), b' ');
    let mut bytes = Vec::new();
    encode(FrameKind::FromNode, &body, &mut bytes).unwrap();
    while bytes.len() < 64 << 10 {
        bytes.extend_from_within(..);
    }
    pour(&bytes);
}

fn pour(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    while stdout.write_all(bytes).and_then(|()| stdout.flush()).is_ok() {}
    std::process::exit(0);
}

/// The head of the largest frame, then anything for ever.
fn endless_frame() {
    let mut bytes = Vec::new();
    encode(FrameKind::FromNode, &vec![b'['; BODY_BYTES_MAX], &mut bytes).unwrap();
    super::say(&bytes[..bytes.len() - 1]);
    pour(&vec![b'['; 64 << 10]);
}

/// JSON that is nested as deep as a frame is long.
fn deep(id: u64) {
    let begin = format!("{{\"id\":{id},\"body\":{{\"facts\":{{\"readings\":{{\"a\":");
    let mut body = begin.into_bytes();
    body.resize(BODY_BYTES_MAX, b'[');
    let mut bytes = Vec::new();
    encode(FrameKind::FromNode, &body, &mut bytes).unwrap();
    super::say(&bytes);
}
