//! Messages of earlier versions of the protocol are still understood, and those sent to them they understand.
//!
//! `protocol-2.jsonl` has messages that an operator and nodes of protocol 2 exchanged, cut to a few values:
//! one for each request, kind of load and event. A new version gets a file of its own; the oldest one goes
//! when `PROTOCOL_OLDEST` passes it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;

use linerate_wire::frame::{FrameKind, MAGIC, encode};
use linerate_wire::message::{
    BuildRequest, Event, FromNode, Hello, ObserveRequest, PROTOCOL, PROTOCOL_OLDEST, Request, SessionRequest,
    ToNode, TrialRequest,
};
use linerate_wire::session::{NodeEvent, NodeSession, OperatorEvent, OperatorSession};
use serde_json::Value;

/// Recorded messages by version.
const RECORDED: &[(u32, &str)] = &[(2, include_str!("protocol-2.jsonl"))];

fn recorded(version: u32, side: &str) -> Vec<Value> {
    let (_, lines) = RECORDED.iter().find(|(of, _)| *of == version).expect("a file for this version");
    let values = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    values.filter_map(|mut value| value.as_object_mut()?.remove(side)).collect()
}

/// Whether everything of `old` stands in `new` as well. Numbers are equal as numbers: `1` and `1.0` are.
fn holds(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            old.iter().all(|(key, value)| new.get(key).is_some_and(|new| holds(new, value)))
        }
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| holds(new, old))
        }
        (Value::Number(new), Value::Number(old)) => new.as_f64() == old.as_f64(),
        _ => new == old,
    }
}

fn request(request: &Request) -> &'static str {
    match request {
        Request::Session(session) => match session {
            SessionRequest::Setup(_) => "setup",
            SessionRequest::StopLoad { .. } => "stop-load",
            SessionRequest::Bye => "bye",
        },
        Request::Observe(observe) => match observe {
            ObserveRequest::Facts { .. } => "facts",
            ObserveRequest::Follow { .. } => "follow",
            ObserveRequest::Notices => "notices",
            ObserveRequest::Drops => "drops",
            ObserveRequest::Probe(_) => "probe",
            ObserveRequest::Load(load) => load.kind.name(),
            ObserveRequest::Iperf3(_) => "iperf3",
            ObserveRequest::Durability(_) => "durability",
            ObserveRequest::Audit(_) => "audit",
        },
        Request::Trial(trial) => match trial {
            TrialRequest::Apply { .. } => "apply",
            TrialRequest::Revert { .. } => "revert",
            TrialRequest::Extend { .. } => "extend",
            TrialRequest::Keep { .. } => "keep",
            TrialRequest::PlanKeep { .. } => "plan-keep",
            TrialRequest::Undo { .. } => "undo",
            TrialRequest::Journals => "journals",
        },
        Request::Build(build) => match build {
            BuildRequest::Look(_) => "look",
            BuildRequest::Step { .. } => "step",
            BuildRequest::Unbuild { .. } => "unbuild",
            BuildRequest::Built { .. } => "built",
            BuildRequest::Builds => "builds",
        },
    }
}

fn event(event: &Event) -> &'static str {
    match event {
        Event::Hello(_) => "hello",
        Event::Listening { .. } => "listening",
        Event::LoadDone { .. } => "load-done",
        Event::Facts(_) => "facts",
        Event::Noticed(_) => "noticed",
        Event::Probed(_) => "probed",
        Event::Durability(_) => "durability",
        Event::Audit(_) => "audit",
        Event::Changed { .. } => "changed",
        Event::Kept { .. } => "kept",
        Event::Planned { .. } => "planned",
        Event::Journals(_) => "journals",
        Event::Seen(_) => "seen",
        Event::Unbuilt { .. } => "unbuilt",
        Event::Builds(_) => "builds",
        Event::Done => "done",
        Event::Failed { .. } => "failed",
    }
}

/// Requests of protocol 2 besides the kinds of loads, and its events.
const REQUESTS_OF_2: usize = 18;
const EVENTS_OF_2: usize = 14;

#[test]
fn requests_of_the_version_before_mean_the_same() {
    let mut seen = BTreeSet::new();
    for old in recorded(PROTOCOL_OLDEST, "to_node") {
        let now: ToNode = serde_json::from_value(old.clone()).unwrap_or_else(|e| panic!("{e}: {old}"));
        seen.insert(request(&now.body));
        let sent = serde_json::to_value(&now).unwrap();
        assert!(
            holds(&sent, &old),
            "a node of version {PROTOCOL_OLDEST} understands\n{old}\nand not\n{sent}"
        );
    }
    let kinds = linerate_model::kind::TestKind::names();
    assert!(kinds.iter().all(|kind| seen.contains(kind)), "{seen:?} lacks a kind of {kinds:?}");
    assert_eq!(seen.len(), REQUESTS_OF_2 + kinds.len(), "{seen:?}");
}

#[test]
fn events_of_the_version_before_are_understood() {
    let mut seen = BTreeSet::new();
    for old in recorded(PROTOCOL_OLDEST, "from_node") {
        let now: FromNode = serde_json::from_value(old.clone()).unwrap_or_else(|e| panic!("{e}: {old}"));
        seen.insert(event(&now.body));
        let again = serde_json::to_value(&now).unwrap();
        let lost = "a part of the event is lost";
        assert!(holds(&again, &old), "{lost}:\n{old}\n{again}");
    }
    assert_eq!(seen.len(), EVENTS_OF_2, "{seen:?}");
}

fn frames(kind: FrameKind, bodies: &[Value]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    for body in bodies {
        encode(kind, body.to_string().as_bytes(), &mut out).unwrap();
    }
    out
}

#[test]
fn a_session_with_a_node_of_the_version_before_works() {
    let hello = recorded(PROTOCOL_OLDEST, "from_node").into_iter().find(|m| m["body"]["hello"].is_object());
    let mut operator = OperatorSession::new();
    operator.received(0, &frames(FrameKind::FromNode, &[hello.unwrap()]));
    assert!(matches!(operator.poll_event(), Some(OperatorEvent::Hello(h)) if h.protocol == PROTOCOL_OLDEST));
    let id = operator.request(1, TrialRequest::Journals);
    let answer = serde_json::json!({ "id": id, "body": { "journals": [] } });
    operator.received(2, &frames(FrameKind::FromNode, &[answer])[MAGIC.len()..]);
    assert_eq!(operator.poll_event(), Some(OperatorEvent::Event { id, body: Event::Journals(Vec::new()) }));
}

#[test]
fn a_request_of_a_later_version_is_refused_and_the_session_goes_on() {
    let hello = Hello {
        protocol: PROTOCOL,
        version: "0.1.0".into(),
        build: "test".into(),
        facts: Vec::new(),
        loads: Vec::new(),
        root: false,
        wall_ms: None,
        boot_id: None,
    };
    let mut node = NodeSession::new(hello);
    let asked = [
        serde_json::json!({ "id": 1, "body": { "observe": { "of-next-year": { "depth": 3 } } } }),
        serde_json::json!({ "id": 2, "body": { "trial": "journals" } }),
    ];
    node.received(0, &frames(FrameKind::ToNode, &asked));
    assert_eq!(node.poll_event(), Some(NodeEvent::Request { id: 2, body: TrialRequest::Journals.into() }));
    assert_eq!(node.poll_event(), None);
    let sent = String::from_utf8_lossy(&node.take_output()).into_owned();
    assert!(sent.contains(&format!("this node program speaks protocol {PROTOCOL}")), "{sent}");
}
