//! Both ends of a session in memory, in virtual time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use linerate_model::fact::{FactValue, HostFacts};
use linerate_wire::frame::{FrameKind, MAGIC, encode};
use linerate_wire::message::{
    Event, FromNode, Hello, PROTOCOL, Request, SessionRequest, ToNode, TrialRequest,
};
use linerate_wire::session::{HEARTBEAT, NodeEvent, NodeSession, OperatorEvent, OperatorSession};
use linerate_wire::silence::{HELLO_MS, SILENCE_MS};
use proptest::prelude::*;

fn hello(protocol: u32) -> Hello {
    Hello {
        protocol,
        version: "0.1.0".into(),
        build: "test".into(),
        facts: Vec::new(),
        loads: vec!["tcp".into()],
        root: false,
        wall_ms: None,
        boot_id: None,
    }
}

fn failed() -> Event {
    Event::Failed { error: "no".into(), hint: "yes".into(), undo_failed: false }
}

fn from_node(messages: &[(u64, Event)]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    for (id, body) in messages {
        let body = serde_json::to_vec(&FromNode { id: *id, body: body.clone() }).unwrap();
        encode(FrameKind::FromNode, &body, &mut out).unwrap();
    }
    out
}

fn to_node<R: Into<Request> + Clone>(messages: &[(u64, R)]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    for (id, body) in messages {
        let body = serde_json::to_vec(&ToNode { id: *id, body: body.clone().into() }).unwrap();
        encode(FrameKind::ToNode, &body, &mut out).unwrap();
    }
    out
}

fn handshake() -> (u64, Event) {
    (0, Event::Hello(Box::new(hello(PROTOCOL))))
}

fn operator_events(session: &mut OperatorSession) -> Vec<OperatorEvent> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

fn node_events(session: &mut NodeSession) -> Vec<NodeEvent> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

fn reason(events: &[OperatorEvent]) -> String {
    match events.last() {
        Some(OperatorEvent::Lost { reason }) => reason.clone(),
        other => panic!("not lost but {other:?}"),
    }
}

fn node_reason(events: &[NodeEvent]) -> String {
    match events.last() {
        Some(NodeEvent::OperatorLost { reason }) => reason.clone(),
        other => panic!("not lost but {other:?}"),
    }
}

/// Carries what both ends wrote to the other, `piece` bytes at a time.
fn carry(now_ms: u64, operator: &mut OperatorSession, node: &mut NodeSession, piece: usize) {
    loop {
        let (down, up) = (operator.take_output(), node.take_output());
        if down.is_empty() && up.is_empty() {
            return;
        }
        down.chunks(piece).for_each(|bytes| node.received(now_ms, bytes));
        up.chunks(piece).for_each(|bytes| operator.received(now_ms, bytes));
    }
}

#[test]
fn a_request_is_answered_whatever_the_pipe_cuts() {
    for piece in [1, 2, 3, 7, 64, 1 << 20] {
        let (mut operator, mut node) = (OperatorSession::new(), NodeSession::new(hello(PROTOCOL)));
        let id = operator.request(0, TrialRequest::Journals);
        carry(0, &mut operator, &mut node, piece);
        assert_eq!(node_events(&mut node), [NodeEvent::Request { id, body: TrialRequest::Journals.into() }]);
        node.respond(1, id, Event::Journals(Vec::new()));
        node.respond(1, id, Event::Done);
        carry(1, &mut operator, &mut node, piece);
        assert_eq!(
            operator_events(&mut operator),
            [
                OperatorEvent::Hello(Box::new(hello(PROTOCOL))),
                OperatorEvent::Event { id, body: Event::Journals(Vec::new()) },
                OperatorEvent::Event { id, body: Event::Done },
            ]
        );
        assert_eq!(operator.open().count(), 0);
    }
}

#[test]
fn heartbeats_alone_keep_both_ends_alive_for_an_hour() {
    let (mut operator, mut node) = (OperatorSession::new(), NodeSession::new(hello(PROTOCOL)));
    let mut now_ms = 0;
    let mut turns = 0;
    while now_ms < 3_600_000 {
        operator.tick(now_ms);
        node.tick(now_ms);
        carry(now_ms, &mut operator, &mut node, 4096);
        let next =
            operator.next_wakeup_ms().unwrap().min(node.next_wakeup_ms().expect("the operator is there"));
        assert!(next > now_ms, "a wake-up in the past spins");
        now_ms = next;
        turns += 1;
    }
    assert!(turns <= 3_601, "{turns} wake-ups");
    assert_eq!(operator_events(&mut operator), [OperatorEvent::Hello(Box::new(hello(PROTOCOL)))]);
    assert_eq!(node_events(&mut node), []);
}

#[test]
fn both_ends_begin_with_a_heartbeat() {
    let (mut operator, mut node) = (OperatorSession::new(), NodeSession::new(hello(PROTOCOL)));
    node.take_output();
    node.tick(0);
    operator.tick(0);
    let mut beats = MAGIC.to_vec();
    encode(FrameKind::ToNode, HEARTBEAT, &mut beats).unwrap();
    assert_eq!(operator.take_output(), beats);
    beats.clear();
    encode(FrameKind::FromNode, HEARTBEAT, &mut beats).unwrap();
    assert_eq!(node.take_output(), beats);
}

#[test]
fn silence_loses_the_other_end_after_exactly_four_seconds() {
    let (mut operator, mut node) = (OperatorSession::new(), NodeSession::new(hello(PROTOCOL)));
    carry(100, &mut operator, &mut node, 4096);
    for now_ms in [1_000, 2_000, 3_000, 100 + SILENCE_MS - 1] {
        operator.tick(now_ms);
        node.tick(now_ms);
        assert!(!matches!(operator.poll_event(), Some(OperatorEvent::Lost { .. })));
        assert_eq!(node.poll_event(), None);
    }
    assert_eq!(node.next_wakeup_ms(), Some(100 + SILENCE_MS));
    operator.tick(100 + SILENCE_MS);
    node.tick(100 + SILENCE_MS);
    assert_eq!(reason(&operator_events(&mut operator)), "no data for 4000 ms");
    assert_eq!(node_reason(&node_events(&mut node)), "no data for 4000 ms");
    assert_eq!((operator.next_wakeup_ms(), node.next_wakeup_ms()), (None, None));
}

#[test]
fn a_node_that_sends_nothing_is_lost_after_the_hello_time() {
    let mut operator = OperatorSession::new();
    operator.tick(5);
    operator.tick(5 + HELLO_MS - 1);
    assert_eq!(operator.poll_event(), None);
    operator.tick(5 + HELLO_MS);
    assert_eq!(reason(&operator_events(&mut operator)), "no data for 15000 ms");
    // A shell that babbles for ever is no node either.
    let mut operator = OperatorSession::new();
    for second in 0..=HELLO_MS / 1000 {
        operator.received(second * 1000, b"password: ");
        operator.tick(second * 1000);
    }
    assert!(reason(&operator_events(&mut operator)).contains("password:"));
}

#[test]
fn a_banner_before_the_hello_is_passed_over_and_explains_a_failure() {
    let mut operator = OperatorSession::new();
    operator.received(0, b"Last login: yesterday\r\n\x1b[0m");
    operator.received(0, &from_node(&[handshake()]));
    assert!(matches!(operator.poll_event(), Some(OperatorEvent::Hello(_))));

    let mut operator = OperatorSession::new();
    operator.received(0, b"bash: linerate-node: command not found\n");
    operator.closed(1);
    assert_eq!(
        reason(&operator_events(&mut operator)),
        "it ended; its output: bash: linerate-node: command not found"
    );
    let mut operator = OperatorSession::new();
    for _ in 0..20 {
        operator.received(0, &[b'y'; 4096]);
    }
    assert!(reason(&operator_events(&mut operator)).contains("no linerate stream in the first"));
}

#[test]
fn another_protocol_is_reported_with_both_versions() {
    let mut operator = OperatorSession::new();
    operator.request(0, TrialRequest::Journals);
    operator.take_output();
    operator.received(0, &from_node(&[(0, Event::Hello(Box::new(hello(PROTOCOL + 1))))]));
    let text = reason(&operator_events(&mut operator));
    let both = [format!("protocol {} (version 0.1.0)", PROTOCOL + 1), format!("to {PROTOCOL}")];
    assert!(both.iter().all(|part| text.contains(part)), "{text}");
    assert!(operator.take_output().is_empty(), "a request went to a node of another protocol");
}

#[test]
fn requests_wait_for_the_hello() {
    let mut operator = OperatorSession::new();
    operator.request(0, SessionRequest::Bye);
    operator.tick(0);
    let mut beat = MAGIC.to_vec();
    encode(FrameKind::ToNode, HEARTBEAT, &mut beat).unwrap();
    assert_eq!(operator.take_output(), beat);
    operator.received(1, &from_node(&[handshake()]));
    assert!(operator.take_output().ends_with(&to_node(&[(1, SessionRequest::Bye)])[MAGIC.len()..]));
}

#[test]
fn answers_come_in_any_order_and_late_ones_are_dropped() {
    let mut operator = OperatorSession::new();
    operator.received(0, &from_node(&[handshake()]));
    let ids: Vec<u64> = (0..3).map(|_| operator.request(0, TrialRequest::Journals)).collect();
    let answers = [(ids[2], Event::Done), (ids[0], failed()), (ids[2], Event::Done), (ids[1], Event::Done)];
    operator.received(1, &from_node(&answers)[MAGIC.len()..]);
    let got: Vec<u64> = operator_events(&mut operator)
        .into_iter()
        .filter_map(|e| if let OperatorEvent::Event { id, .. } = e { Some(id) } else { None })
        .collect();
    assert_eq!(got, [3, 1, 2], "the duplicate of the last answer to 3 is dropped");
}

#[test]
fn answers_to_what_was_never_asked_lose_the_node() {
    for (messages, words) in [
        (vec![handshake(), (9, Event::Done)], "never asked"),
        (vec![handshake(), (0, Event::Done)], "never asked"),
        (vec![handshake(), handshake()], "second hello"),
        (vec![(1, Event::Done)], "before its hello"),
    ] {
        let mut operator = OperatorSession::new();
        operator.received(0, &from_node(&messages));
        let text = reason(&operator_events(&mut operator));
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_request_number_is_never_carried_out_twice() {
    for ids in [vec![1, 1], vec![2, 1], vec![0]] {
        let mut node = NodeSession::new(hello(PROTOCOL));
        let requests: Vec<_> = ids.iter().map(|id| (*id, SessionRequest::Bye)).collect();
        node.received(0, &to_node(&requests));
        let text = node_reason(&node_events(&mut node));
        assert!(text.contains("request number"), "{text}");
    }
}

#[test]
fn a_node_drops_events_behind_the_last_one() {
    let mut node = NodeSession::new(hello(PROTOCOL));
    node.received(0, &to_node(&[(1, TrialRequest::Journals)]));
    node.take_output();
    node.respond(0, 1, Event::Done);
    assert!(!node.take_output().is_empty());
    node.respond(0, 1, Event::Done);
    node.respond(0, 5, Event::Done);
    assert!(node.take_output().is_empty());
}

#[test]
fn an_answer_that_is_too_large_becomes_a_failure() {
    let mut node = NodeSession::new(hello(PROTOCOL));
    let mut operator = OperatorSession::new();
    let id = operator.request(0, TrialRequest::Journals);
    carry(0, &mut operator, &mut node, 4096);
    node.respond(
        0,
        id,
        Event::Failed { error: "x".repeat(17 << 20), hint: String::new(), undo_failed: false },
    );
    carry(0, &mut operator, &mut node, 4096);
    let events = operator_events(&mut operator);
    let Some(OperatorEvent::Event { body: Event::Failed { error, .. }, .. }) = events.last() else {
        panic!("{events:?}")
    };
    assert!(error.contains("at most 16777216"), "{error}");
}

#[test]
fn an_echo_a_cut_and_a_text_are_distinguished() {
    let mut operator = OperatorSession::new();
    operator.tick(0);
    let echo = operator.take_output();
    operator.received(0, &echo);
    assert!(reason(&operator_events(&mut operator)).contains("echo"));

    let mut node = NodeSession::new(hello(PROTOCOL));
    let bytes = to_node(&[(1, TrialRequest::Journals)]);
    node.received(0, &bytes[..bytes.len() - 3]);
    node.closed(1);
    assert!(node_reason(&node_events(&mut node)).contains("the stream ended after"));

    let mut node = NodeSession::new(hello(PROTOCOL));
    node.received(0, b"GET / HTTP/1.1\r\n\r\n");
    assert!(node_reason(&node_events(&mut node)).contains("GET / HTTP/1.1"));

    let mut node = NodeSession::new(hello(PROTOCOL));
    let mut bytes = MAGIC.to_vec();
    encode(FrameKind::ToNode, b"{\"body\":\"format-disk\"}", &mut bytes).unwrap();
    node.received(0, &bytes);
    assert!(node_reason(&node_events(&mut node)).contains("not understood"));
}

#[test]
fn nothing_is_sent_after_the_end() {
    let mut node = NodeSession::new(hello(PROTOCOL));
    node.received(0, &to_node(&[(1, TrialRequest::Journals)]));
    node.closed(0);
    node.respond(0, 1, Event::Done);
    node.tick(5_000);
    node.received(6_000, &[1, 2, 3]);
    assert!(node.take_output().is_empty());
    assert_eq!(node_events(&mut node).len(), 1, "only the loss, and only once");
    let mut operator = OperatorSession::new();
    operator.closed(0);
    operator.request(1, SessionRequest::Bye);
    operator.closed(2);
    assert!(operator.take_output().is_empty());
    assert_eq!(operator_events(&mut operator).len(), 1);
}

proptest! {
    #[test]
    fn damage_anywhere_is_survived_and_answered_by_loss_or_silence(
        at in any::<prop::sample::Index>(),
        replacement in prop::collection::vec(any::<u8>(), 0..30),
        removed in 0usize..30,
    ) {
        let mut bytes = from_node(&[handshake(), (1, Event::Done), (2, Event::Done)]);
        let start = at.index(bytes.len());
        let end = (start + removed).min(bytes.len());
        bytes.splice(start..end, replacement);
        let mut operator = OperatorSession::new();
        operator.request(0, TrialRequest::Journals);
        operator.request(0, TrialRequest::Journals);
        for (i, piece) in bytes.chunks(5).enumerate() {
            operator.received(i as u64, piece);
        }
        operator.tick(100_000);
        let events = operator_events(&mut operator);
        let is_lost = matches!(events.last(), Some(OperatorEvent::Lost { .. }));
        prop_assert!(is_lost);
    }

    #[test]
    fn random_requests_never_panic_a_node(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut node = NodeSession::new(hello(PROTOCOL));
        node.received(0, &MAGIC);
        node.received(0, &bytes);
        node.closed(1);
        prop_assert!(node.poll_event().is_some());
    }
}

#[test]
fn a_node_that_floods_is_lost_before_it_fills_the_memory() {
    use linerate_wire::session::{RECEIVED_BYTES_MAX, RECEIVED_BYTES_PER_REQUEST};
    let mut operator = OperatorSession::new();
    operator.received(0, &from_node(&[handshake()]));
    operator.request(0, TrialRequest::Journals);
    // Each frame alone is a good one: a heartbeat with a megabyte of blanks behind it.
    let mut body = HEARTBEAT.to_vec();
    body.resize(1 << 20, b' ');
    let mut flood = Vec::new();
    encode(FrameKind::FromNode, &body, &mut flood).unwrap();
    let mut sent = 0;
    while operator.next_wakeup_ms().is_some() {
        operator.received(0, &flood);
        sent += flood.len() as u64;
        assert!(sent < 2 * RECEIVED_BYTES_MAX, "still listening after {sent} bytes");
    }
    assert!(sent >= RECEIVED_BYTES_MAX);
    let allowed = RECEIVED_BYTES_MAX + RECEIVED_BYTES_PER_REQUEST;
    let why = reason(&operator_events(&mut operator));
    assert_eq!(why, format!("more than {allowed} bytes for 1 requests"));
}

#[test]
fn a_node_that_answers_without_end_is_lost() {
    use linerate_wire::session::{EVENTS_PER_REQUEST_MAX, FACTS_MAX};
    let facts = |count: usize| {
        let readings = (0..count).map(|n| (n.to_string(), FactValue::Int(0))).collect();
        Event::Facts(Box::new(HostFacts { readings, ..HostFacts::default() }))
    };
    let lost = |answers: Vec<(u64, Event)>| {
        let mut operator = OperatorSession::new();
        operator.request(0, TrialRequest::Journals);
        operator.received(0, &from_node(&[vec![handshake()], answers].concat()));
        operator_events(&mut operator)
    };
    let most = EVENTS_PER_REQUEST_MAX as usize;
    assert_eq!(lost(vec![(1, facts(1)); most]).len(), most + 1, "the hello and each of them");
    let events = lost(vec![(1, facts(1)); most + 1]);
    assert_eq!(reason(&events), format!("it answered request 1 more than {most} times"));
    let events = lost(vec![(1, facts(FACTS_MAX + 1))]);
    assert_eq!(reason(&events), format!("more than {FACTS_MAX} facts in one answer"));
}
