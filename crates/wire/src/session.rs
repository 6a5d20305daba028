//! The two ends of a session as pure state machines.
//!
//! In: bytes of the other end, the end of its stream, the time in milliseconds of any clock that never goes
//! back. Out: bytes to write, events to act on, the time of the next tick. It never reads a clock, a pipe or
//! a file.
//!
//! Rules that both ends enforce: [`MAGIC`] first; the node's hello first and once; a heartbeat every second;
//! 4 s without a byte, the end of the stream, a node that sends more than it was asked for, or anything that
//! is not the protocol ends the session for good. A request is answered by events and exactly one last event
//! ([`is_last`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::frame::{BANNER_BYTES_MAX, Decoder, FrameKind, MAGIC, SkipToMagic, encode};
use crate::message::{Event, FromNode, Hello, PROTOCOL, PROTOCOL_OLDEST, Request, RequestId, ToNode};
use crate::silence::{HEARTBEAT_MS, HELLO_MS, SILENCE_MS};

/// Limit of what a node may send before any request, bytes: more than the largest answer has (a frame of
/// [`crate::frame::BODY_BYTES_MAX`] and the events before it).
pub const RECEIVED_BYTES_MAX: u64 = 48 << 20;

/// Further bytes that it may send for each request. A report of a test has some ten kilobytes, facts have up
/// to a megabyte. Together with [`RECEIVED_BYTES_MAX`] it bounds what a node can make its operator keep.
pub const RECEIVED_BYTES_PER_REQUEST: u64 = 512 << 10;

/// Events that may answer one request: none needs more than two. Small ones take far more memory here than on
/// the wire.
pub const EVENTS_PER_REQUEST_MAX: u32 = 4;

/// Facts, counters and gaps in one answer. A node keeps itself to 200,000 readings; a host with hundreds of
/// CPUs and queues has some ten thousand.
pub const FACTS_MAX: usize = 400_000;

/// Body of a heartbeat, the same in both directions. An operator of thousands of nodes takes and sends
/// thousands of them a second, so they are compared and never parsed.
pub const HEARTBEAT: &[u8] = br#"{"id":0,"body":"heartbeat"}"#;

/// A message whose number alone is needed.
#[derive(Debug, Deserialize)]
struct Numbered {
    id: RequestId,
    #[serde(rename = "body")]
    _body: IgnoredAny,
}

/// What an operator sent: a request, or the number of one of a newer protocol and why it is not understood.
type Asked = (RequestId, Result<Request, String>);

fn asked(body: &[u8]) -> serde_json::Result<Asked> {
    match serde_json::from_slice::<ToNode>(body) {
        Ok(ToNode { id, body }) => Ok((id, Ok(body))),
        Err(error) => {
            let Numbered { id, .. } = serde_json::from_slice(body)?;
            Ok((id, Err(error.to_string())))
        }
    }
}

/// Whether nothing follows this event for its request.
pub fn is_last(event: &Event) -> bool {
    matches!(event, Event::Done | Event::Failed { .. } | Event::LoadDone { .. })
}

/// How the body of a frame is read.
type Parse<T> = fn(&[u8]) -> serde_json::Result<T>;

/// What both ends have in common: the stream in, the stream out, the time.
#[derive(Debug)]
struct Link {
    sends: FrameKind,
    skip: SkipToMagic,
    decoder: Decoder,
    output: Vec<u8>,
    started_ms: Option<u64>,
    received_ms: Option<u64>,
    beat_ms: Option<u64>,
    lost: bool,
}

impl Link {
    fn new(sends: FrameKind, noise_bytes: usize) -> Self {
        Self {
            sends,
            skip: SkipToMagic::new(noise_bytes),
            decoder: Decoder::new(),
            output: MAGIC.to_vec(),
            started_ms: None,
            received_ms: None,
            beat_ms: None,
            lost: false,
        }
    }

    fn send<T: Serialize>(&mut self, message: &T) -> Result<(), String> {
        let body = serde_json::to_vec(message).map_err(|e| format!("cannot encode a message: {e}"))?;
        encode(self.sends, &body, &mut self.output).map_err(|e| e.to_string())
    }

    /// Takes bytes and gives the messages that are whole. The messages before a bad frame are given too.
    fn receive<T>(&mut self, now_ms: u64, bytes: &[u8], parse: Parse<T>) -> (Vec<T>, Option<String>) {
        self.started_ms.get_or_insert(now_ms);
        if !bytes.is_empty() {
            self.received_ms = Some(now_ms);
        }
        match self.skip.push(bytes) {
            Ok(rest) => self.decoder.push(&rest),
            Err(error) => return (Vec::new(), Some(error.to_string())),
        }
        let mut messages = Vec::new();
        loop {
            match self.decoder.next_frame() {
                Ok(None) => return (messages, None),
                Ok(Some(frame)) if frame.kind == self.sends => {
                    return (
                        messages,
                        Some("an echo of our own bytes; the far end is a terminal".to_owned()),
                    );
                }
                Ok(Some(frame)) if frame.body.trim_ascii_end() == HEARTBEAT => {}
                Ok(Some(frame)) => match parse(&frame.body) {
                    Ok(message) => messages.push(message),
                    Err(error) => {
                        return (messages, Some(format!("a message that is not understood: {error}")));
                    }
                },
                Err(error) => return (messages, Some(error.to_string())),
            }
        }
    }

    fn send_heartbeat(&mut self) {
        // A heartbeat is a few bytes; it always fits a frame.
        let _ = encode(self.sends, HEARTBEAT, &mut self.output);
    }

    /// Why the stream ended, in words.
    fn end(&self) -> String {
        if !self.skip.found() {
            let noise = self.skip.noise();
            return if noise.is_empty() {
                "it ended without any output".to_owned()
            } else {
                format!("it ended; its output: {noise}")
            };
        }
        self.decoder.end().map_or_else(|e| e.to_string(), |()| "it closed the stream".to_owned())
    }

    /// When the other end is lost unless something comes. Before the first byte `first_ms` is allowed.
    fn silent_at(&self, first_ms: u64) -> Option<u64> {
        self.received_ms.map(|t| t + SILENCE_MS).or_else(|| self.started_ms.map(|t| t + first_ms))
    }

    /// Whether it is time for a heartbeat; if so it counts as sent.
    fn beat(&mut self, now_ms: u64) -> bool {
        self.started_ms.get_or_insert(now_ms);
        let due = self.beat_ms.is_none_or(|t| now_ms >= t + HEARTBEAT_MS);
        if due {
            self.beat_ms = Some(now_ms);
        }
        due
    }

    fn wakeup(&self, first_ms: u64) -> Option<u64> {
        if self.lost {
            return None;
        }
        let beat = self.beat_ms.map_or(0, |t| t + HEARTBEAT_MS);
        Some(self.silent_at(first_ms).map_or(beat, |t| t.min(beat)))
    }
}

/// Event of an operator's session.
#[derive(Debug, Clone, PartialEq)]
pub enum OperatorEvent {
    /// The node is there and speaks our protocol.
    Hello(Box<Hello>),
    /// An event of a request.
    Event {
        /// Which.
        id: RequestId,
        /// What.
        body: Event,
    },
    /// Nothing more will come. Every open request is without an answer.
    Lost {
        /// Why: an end to the sentence "the node is lost: …".
        reason: String,
    },
}

/// The operator's end.
#[derive(Debug)]
pub struct OperatorSession {
    link: Link,
    last_id: RequestId,
    /// Open requests with the number of their events so far.
    open: BTreeMap<RequestId, u32>,
    hello_seen: bool,
    /// Requests made before the hello; nothing but heartbeats goes to a node whose protocol is unknown.
    waiting: Vec<ToNode>,
    events: VecDeque<OperatorEvent>,
    /// Bytes that came from the node.
    received_bytes: u64,
}

impl Default for OperatorSession {
    fn default() -> Self {
        Self::new()
    }
}

impl OperatorSession {
    /// A session whose node was just started.
    pub fn new() -> Self {
        Self {
            link: Link::new(FrameKind::ToNode, BANNER_BYTES_MAX),
            last_id: 0,
            open: BTreeMap::new(),
            hello_seen: false,
            waiting: Vec::new(),
            events: VecDeque::new(),
            received_bytes: 0,
        }
    }

    /// Sends a request. After the session is lost this still returns a number, but nothing is sent.
    pub fn request(&mut self, now_ms: u64, body: impl Into<Request>) -> RequestId {
        self.link.started_ms.get_or_insert(now_ms);
        self.last_id += 1;
        let message = ToNode { id: self.last_id, body: body.into() };
        if !self.link.lost {
            self.open.insert(message.id, 0);
            if self.hello_seen { self.send(&message) } else { self.waiting.push(message) }
        }
        self.last_id
    }

    /// Takes bytes of the node.
    pub fn received(&mut self, now_ms: u64, bytes: &[u8]) {
        if self.link.lost {
            return;
        }
        self.received_bytes += bytes.len() as u64;
        let allowed = RECEIVED_BYTES_MAX + self.last_id * RECEIVED_BYTES_PER_REQUEST;
        if self.received_bytes > allowed {
            self.lose(format!("more than {allowed} bytes for {} requests", self.last_id));
            return;
        }
        let (messages, error) =
            self.link.receive::<FromNode>(now_ms, bytes, |body| serde_json::from_slice(body));
        for message in messages {
            self.take(message);
        }
        if let Some(reason) = error {
            self.lose(reason);
        }
    }

    /// The node's stream ended.
    pub fn closed(&mut self, _now_ms: u64) {
        let reason = self.link.end();
        self.lose(reason);
    }

    /// Time passed: call at least at [`OperatorSession::next_wakeup_ms`], after the bytes that are there were
    /// given.
    pub fn tick(&mut self, now_ms: u64) {
        if self.link.lost {
            return;
        }
        if self.link.beat(now_ms) {
            self.link.send_heartbeat();
        }
        let first_ms = HELLO_MS;
        if self.link.silent_at(first_ms).is_some_and(|t| now_ms >= t) {
            let limit = if self.link.received_ms.is_some() { SILENCE_MS } else { first_ms };
            self.lose(format!("no data for {limit} ms"));
        } else if !self.hello_seen && self.link.started_ms.is_some_and(|t| now_ms >= t + first_ms) {
            self.lose(format!("no hello within {first_ms} ms, only: {}", self.link.skip.noise()));
        }
    }

    /// Bytes to write to the node now.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.link.output)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<OperatorEvent> {
        self.events.pop_front()
    }

    /// When [`OperatorSession::tick`] has something to do; `None` after the session is lost.
    pub fn next_wakeup_ms(&self) -> Option<u64> {
        self.link.wakeup(HELLO_MS)
    }

    /// Requests whose last event has not come.
    pub fn open(&self) -> impl Iterator<Item = RequestId> {
        self.open.keys().copied()
    }

    fn send(&mut self, message: &ToNode) {
        if let Err(error) = self.link.send(message) {
            self.open.remove(&message.id);
            let hint = "the request is too large; ask for less".to_owned();
            let body = Event::Failed { error, hint, undo_failed: false };
            self.events.push_back(OperatorEvent::Event { id: message.id, body });
        }
    }

    fn take(&mut self, message: FromNode) {
        if self.link.lost {
            return;
        }
        let FromNode { id, body } = message;
        match body {
            Event::Hello(_) if self.hello_seen => self.lose("a second hello".to_owned()),
            Event::Hello(hello) if !(PROTOCOL_OLDEST..=PROTOCOL).contains(&hello.protocol) => {
                self.lose(format!(
                    "it speaks protocol {} (version {}) where this program speaks {PROTOCOL_OLDEST} to {PROTOCOL}",
                    hello.protocol, hello.version
                ));
            }
            Event::Hello(hello) => {
                self.hello_seen = true;
                self.events.push_back(OperatorEvent::Hello(hello));
                for waiting in std::mem::take(&mut self.waiting) {
                    self.send(&waiting);
                }
            }
            _ if !self.hello_seen => self.lose("it answered before its hello".to_owned()),
            _ if id == 0 || id > self.last_id => {
                self.lose(format!("it answered request {id}, which was never asked"));
            }
            Event::Facts(facts)
                if facts.readings.len() + facts.counters.len() + facts.gaps.len() > FACTS_MAX =>
            {
                self.lose(format!("more than {FACTS_MAX} facts in one answer"));
            }
            body => self.answered(id, body),
        }
    }

    /// Ignores events after the last one of a request.
    fn answered(&mut self, id: RequestId, body: Event) {
        let Some(events) = self.open.get_mut(&id) else { return };
        *events += 1;
        if *events > EVENTS_PER_REQUEST_MAX {
            self.lose(format!("it answered request {id} more than {EVENTS_PER_REQUEST_MAX} times"));
            return;
        }
        if is_last(&body) {
            self.open.remove(&id);
        }
        self.events.push_back(OperatorEvent::Event { id, body });
    }

    fn lose(&mut self, reason: String) {
        if !self.link.lost {
            self.link.lost = true;
            self.link.output.clear();
            self.waiting.clear();
            self.open.clear();
            self.events.push_back(OperatorEvent::Lost { reason });
        }
    }
}

/// Event of a node's session.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeEvent {
    /// A request.
    Request {
        /// Number for the answer.
        id: RequestId,
        /// What.
        body: Request,
    },
    /// The operator is lost. Last event.
    OperatorLost {
        /// Why: an end to the sentence "the operator is lost: …".
        reason: String,
    },
}

fn unknown_request(why: &str) -> Event {
    let error = format!("this node program speaks protocol {PROTOCOL}, which has no such request: {why}");
    let hint = "install the node program of the operator's version".to_owned();
    Event::Failed { error, hint, undo_failed: false }
}

/// The node's end.
#[derive(Debug)]
pub struct NodeSession {
    link: Link,
    last_id: RequestId,
    open: BTreeSet<RequestId>,
    events: VecDeque<NodeEvent>,
}

impl NodeSession {
    /// A session whose hello is sent at once.
    pub fn new(hello: Hello) -> Self {
        let mut link = Link::new(FrameKind::FromNode, 0);
        let sent = link.send(&FromNode { id: 0, body: Event::Hello(Box::new(hello)) });
        let mut session = Self { link, last_id: 0, open: BTreeSet::new(), events: VecDeque::new() };
        if let Err(error) = sent {
            session.lose(format!("our hello cannot be sent: {error}"));
        }
        session
    }

    /// Takes bytes of the operator.
    pub fn received(&mut self, now_ms: u64, bytes: &[u8]) {
        if self.link.lost {
            return;
        }
        let (messages, error) = self.link.receive(now_ms, bytes, asked);
        for (id, body) in messages {
            if self.link.lost {
                return;
            }
            // A request must never be carried out twice, so a number that is not new ends the session.
            if id <= self.last_id {
                self.lose(format!("request number {id} came after {}", self.last_id));
                return;
            }
            self.last_id = id;
            self.open.insert(id);
            match body {
                Ok(body) => self.events.push_back(NodeEvent::Request { id, body }),
                Err(why) => self.respond(now_ms, id, unknown_request(&why)),
            }
        }
        if let Some(reason) = error {
            self.lose(reason);
        }
    }

    /// The operator's stream ended.
    pub fn closed(&mut self, _now_ms: u64) {
        let reason = self.link.end();
        self.lose(reason);
    }

    /// Time passed: call at least at [`NodeSession::next_wakeup_ms`], after the bytes that are there were
    /// given.
    pub fn tick(&mut self, now_ms: u64) {
        if self.link.lost {
            return;
        }
        if self.link.beat(now_ms) {
            self.link.send_heartbeat();
        }
        if self.link.silent_at(SILENCE_MS).is_some_and(|t| now_ms >= t) {
            self.lose(format!("no data for {SILENCE_MS} ms"));
        }
    }

    /// Answers. An event for a request that is not open (never asked, or its last event is out) is dropped.
    pub fn respond(&mut self, _now_ms: u64, id: RequestId, body: Event) {
        if self.link.lost || !self.open.contains(&id) {
            return;
        }
        if is_last(&body) {
            self.open.remove(&id);
        }
        if let Err(error) = self.link.send(&FromNode { id, body }) {
            self.open.remove(&id);
            let hint = "the answer is too large; ask for less".to_owned();
            // This text is far below the limit of a frame.
            let _ = self.link.send(&FromNode { id, body: Event::Failed { error, hint, undo_failed: false } });
        }
    }

    /// Bytes to write to the operator now.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.link.output)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<NodeEvent> {
        self.events.pop_front()
    }

    /// When [`NodeSession::tick`] has something to do; `None` after the operator is lost.
    pub fn next_wakeup_ms(&self) -> Option<u64> {
        self.link.wakeup(SILENCE_MS)
    }

    fn lose(&mut self, reason: String) {
        if !self.link.lost {
            self.link.lost = true;
            self.link.output.clear();
            self.open.clear();
            // Requests not yet begun are dropped.
            self.events.clear();
            self.events.push_back(NodeEvent::OperatorLost { reason });
        }
    }
}
