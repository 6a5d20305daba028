//! One session with one node program: a child process, the pure session of the wire, and the requests under
//! way.
//!
//! What comes in: a child process that speaks the protocol, and requests. What goes out: the events of each
//! request, in order. A node that dies, stalls or talks nonsense turns every request under way into
//! [`LinkError::Lost`]; nothing here retries or restarts.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use linerate_model::inventory::Host;
use linerate_wire::message::{Event, Hello, Request, RequestId, SessionRequest, Setup};
use linerate_wire::session::{OperatorEvent, OperatorSession, is_last};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::pipes::{Pipes, ToNode, escaped};
use super::words;
use crate::clock;

/// Longest wait for the hello of a node.
pub(super) const HELLO_WAIT: Duration = Duration::from_secs(10);
/// Longest wait for a small request such as `Setup`.
pub const REQUEST_WAIT: Duration = Duration::from_secs(10);
/// Output that a node leaves unread before it is given up.
const UNREAD_BYTES_MAX: usize = 4 << 20;
/// Bytes taken from a node at once. Each session keeps that much room, and an operator has thousands.
const READ_BYTES: usize = 4 << 10;
/// How long a node may take to undo and exit after `Bye` before it is killed; its guardian then undoes.
const BYE_WAIT: Duration = Duration::from_secs(5);
/// How long a child whose session was lost may take to say why. The pipes of a node that was killed close
/// before it can be reaped, and on a busy operator the end of the process is heard of much later than that of
/// the stream. Whoever does not wait reaches only for `kill` then, and the user reads that the session ended
/// instead of what ended it (`signal: 9`, and what `ssh` said last).
const LOST_WAIT: Duration = Duration::from_secs(2);

/// Why a request was not answered as hoped.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LinkError {
    /// The node is gone or was never there.
    #[error("host {host} is lost: {reason}")]
    Lost {
        /// Host.
        host: String,
        /// Why.
        reason: String,
    },
    /// The node refused.
    #[error("host {host}: {error}{}{hint}", if hint.is_empty() { "" } else { "\nhint: " })]
    Refused {
        /// Host.
        host: String,
        /// Its words.
        error: String,
        /// What to do.
        hint: String,
        /// Old values could not be restored.
        undo_failed: bool,
    },
    /// No answer in time.
    #[error("host {host} did not answer within {waited_ms} ms")]
    Deadline {
        /// Host.
        host: String,
        /// How long it was waited.
        waited_ms: u128,
    },
}

enum Order {
    Request { body: Box<Request>, events: mpsc::UnboundedSender<Event>, number: oneshot::Sender<RequestId> },
    Bye,
}

/// A session with a node; see the file's head.
#[derive(Debug)]
pub struct NodeLink {
    host: String,
    hello: Hello,
    clock_ahead_ms: Option<i64>,
    reached: ConnectInfo,
    orders: mpsc::UnboundedSender<Order>,
    lost: watch::Receiver<Option<String>>,
    #[cfg(test)]
    pid: u32,
}

/// What the transport learned on the way.
#[derive(Debug, Clone, Default)]
pub struct ConnectInfo {
    /// Address of the host at which the session arrived.
    pub address: Option<IpAddr>,
    /// Process id of the node program there; 0 where it is not known.
    pub pid: u32,
    /// Why the node program runs without the rights of root.
    pub plain: Option<String>,
    /// Bytes of the node program that were copied for this session.
    pub copied_bytes: Option<usize>,
    /// Where the node program was copied to, and why not to a folder before it.
    pub elsewhere: Option<String>,
    /// What `ssh` warned of, escaped.
    pub warning: Option<String>,
}

/// A request under way.
#[derive(Debug)]
pub struct PendingRequest {
    host: String,
    /// Number of the request, for `StopLoad`.
    pub number: RequestId,
    events: mpsc::UnboundedReceiver<Event>,
    lost: watch::Receiver<Option<String>>,
}

impl LinkError {
    /// Why, where the host is named already.
    pub fn reason(self) -> String {
        match self {
            Self::Lost { reason, .. } => reason,
            other => other.to_string(),
        }
    }
}

impl NodeLink {
    /// Tells a node program that said hello about its host.
    pub(super) async fn set_up(self, host: &Host) -> Result<Self, LinkError> {
        let setup = SessionRequest::Setup(Setup {
            state_dir: host.state_dir.clone().unwrap_or_else(|| PathBuf::from("/var/lib/linerate")),
            etc_dir: host.etc_dir.clone().unwrap_or_else(|| PathBuf::from("/etc")),
            host: host.name.clone(),
        });
        match self.request(setup, REQUEST_WAIT).await {
            Ok(_) => Ok(self),
            Err(error) => {
                self.bye().await;
                Err(error)
            }
        }
    }

    /// Takes over a child whose stdout begins, after any noise, with a node's protocol, and waits for its
    /// hello. `heard` is what was read of it already.
    pub(super) async fn over(
        host: &str,
        pipes: Pipes,
        heard: Vec<u8>,
        wait: Duration,
    ) -> Result<Self, LinkError> {
        let lost_now = |reason: String| LinkError::Lost { host: host.to_owned(), reason };
        #[cfg(test)]
        let pid = pipes.pid();
        let (orders, orders_rx) = mpsc::unbounded_channel();
        let (lost_tx, mut lost) = watch::channel(None);
        let (hello_tx, hello_rx) = oneshot::channel();
        let mut driver = Driver {
            session: OperatorSession::new(),
            started: Instant::now(),
            pipes,
            unsent: Vec::new(),
            under_way: BTreeMap::new(),
            hello: Some(hello_tx),
            leaving: false,
        };
        driver.session.received(0, &heard);
        tokio::spawn(driver.run(orders_rx, lost_tx));
        let hello = match timeout(wait, hello_rx).await {
            Ok(Ok(hello)) => *hello,
            Ok(Err(_)) => {
                // The driver dropped the sender: it gave up and says why at once.
                let _ = lost.wait_for(Option::is_some).await;
                let reason = lost.borrow().clone();
                return Err(lost_now(
                    reason.unwrap_or_else(|| "the session ended before the hello".to_owned()),
                ));
            }
            Err(_) => {
                let _ = orders.send(Order::Bye);
                return Err(lost_now(format!("no hello within {} s", wait.as_secs_f32())));
            }
        };
        let now_ms = clock::now_ms();
        // Both go into sentences.
        let hello = Hello { version: escaped(&hello.version), build: escaped(&hello.build), ..hello };
        Ok(Self {
            host: host.to_owned(),
            clock_ahead_ms: hello.wall_ms.map(|ms| ahead_ms(ms, now_ms)),
            hello,
            reached: ConnectInfo::default(),
            orders,
            lost,
            #[cfg(test)]
            pid,
        })
    }

    /// Name of the host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What the node said about itself.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// How far the clock of the host is ahead of ours, by the time in its hello; less than the way of the
    /// hello took is no difference. `None` where the node does not say.
    pub fn clock_ahead_ms(&self) -> Option<i64> {
        self.clock_ahead_ms
    }

    /// The same with what the transport learned.
    pub(super) fn with(self, reached: ConnectInfo) -> Self {
        Self { reached, ..self }
    }

    /// What the transport learned on the way.
    pub fn reached(&self) -> &ConnectInfo {
        &self.reached
    }

    /// Process id of the child.
    #[cfg(test)]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Why the session ended, if it did.
    pub fn lost(&self) -> Option<String> {
        self.lost.borrow().clone()
    }

    /// Starts a request.
    pub async fn start(&self, body: impl Into<Request>) -> Result<PendingRequest, LinkError> {
        let (events, events_rx) = mpsc::unbounded_channel();
        let (number, number_rx) = oneshot::channel();
        let gone = || LinkError::Lost {
            host: self.host.clone(),
            reason: self.lost().unwrap_or_else(|| "the session has ended".to_owned()),
        };
        self.orders
            .send(Order::Request { body: Box::new(body.into()), events, number })
            .map_err(|_| gone())?;
        let number = number_rx.await.map_err(|_| gone())?;
        Ok(PendingRequest { host: self.host.clone(), number, events: events_rx, lost: self.lost.clone() })
    }

    /// Starts a request and collects its events up to its end.
    pub async fn request(&self, body: impl Into<Request>, wait: Duration) -> Result<Vec<Event>, LinkError> {
        let until = Instant::now() + wait;
        let mut exchange = self.start(body).await?;
        let mut events = Vec::new();
        loop {
            let event = exchange.next(until).await?;
            let last = is_last(&event);
            events.push(event);
            if last {
                return Ok(events);
            }
        }
    }

    /// Ends the session: the node undoes what is not confirmed and exits; a node that does not is killed.
    pub async fn bye(&self) {
        let _ = self.orders.send(Order::Bye);
        let mut lost = self.lost.clone();
        let _ = timeout(BYE_WAIT + Duration::from_secs(2), lost.wait_for(Option::is_some)).await;
    }
}

impl PendingRequest {
    /// The next event. `Done` and `LoadDone` are the last ones; a refusal is an error.
    pub async fn next(&mut self, until: Instant) -> Result<Event, LinkError> {
        let begun = Instant::now();
        match timeout_at(until, self.events.recv()).await {
            Ok(Some(Event::Failed { error, hint, undo_failed })) => {
                Err(LinkError::Refused { host: self.host.clone(), error, hint, undo_failed })
            }
            Ok(Some(event)) => Ok(event),
            Ok(None) => {
                let reason = self.lost.borrow().clone().unwrap_or_else(|| "the session has ended".to_owned());
                Err(LinkError::Lost { host: self.host.clone(), reason })
            }
            Err(_) => {
                Err(LinkError::Deadline { host: self.host.clone(), waited_ms: begun.elapsed().as_millis() })
            }
        }
    }
}

struct Driver {
    session: OperatorSession,
    started: Instant,
    pipes: Pipes,
    unsent: Vec<u8>,
    under_way: BTreeMap<RequestId, mpsc::UnboundedSender<Event>>,
    hello: Option<oneshot::Sender<Box<Hello>>>,
    leaving: bool,
}

impl Driver {
    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>, lost: watch::Sender<Option<String>>) {
        let mut buffer = vec![0; READ_BYTES];
        let mut leave_by: Option<Instant> = None;
        // One for the whole session: to set a timer costs more than to read a heartbeat.
        let mut alarm = std::pin::pin!(sleep_until(self.started));
        let reason = loop {
            if let Some(reason) = self.settle() {
                break reason;
            }
            // A lost session was left above; without a time of its own it is looked at every second.
            let wake_ms = self.session.next_wakeup_ms().unwrap_or_else(|| self.now_ms() + 1000);
            let wake = self.started + Duration::from_millis(wake_ms);
            if alarm.deadline() != wake {
                alarm.as_mut().reset(wake);
            }
            let unsent = !self.unsent.is_empty();
            tokio::select! {
                read = self.pipes.stdout.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => { let now = self.now_ms(); self.session.closed(now); }
                    Ok(count) => { let now = self.now_ms(); self.session.received(now, &buffer[..count]); }
                },
                wrote = write_some(&mut self.pipes.stdin, &self.unsent), if unsent => if let Ok(count @ 1..) = wrote {
                    self.unsent.drain(..count);
                } else {
                    self.pipes.stdin = None;
                    self.unsent.clear();
                },
                order = orders.recv(), if leave_by.is_none() => match order {
                    Some(Order::Request { body, events, number }) => self.begin(*body, events, number),
                    Some(Order::Bye) | None => {
                        self.leaving = true;
                        let now = self.now_ms();
                        let _ = self.session.request(now, SessionRequest::Bye);
                        leave_by = Some(Instant::now() + BYE_WAIT);
                    }
                },
                () = &mut alarm => { let now = self.now_ms(); self.session.tick(now); }
                () = sleep_until(leave_by.unwrap_or(wake)), if leave_by.is_some() => {
                    break format!("did not exit within {} s after the end of the session", BYE_WAIT.as_secs());
                }
            }
        };
        let patience = if self.leaving { BYE_WAIT } else { LOST_WAIT };
        let reason = self.pipes.end(reason, patience).await;
        // The reason first: it is read when the channel of an event or of the hello closes.
        let _ = lost.send(Some(reason));
        self.under_way.clear();
        drop(self.hello.take());
    }

    /// Moves everything that the session has to say; gives the reason when it is lost.
    fn settle(&mut self) -> Option<String> {
        let mut reason = None;
        while let Some(event) = self.session.poll_event() {
            match event {
                OperatorEvent::Hello(hello) => {
                    if let Some(waiting) = self.hello.take() {
                        let _ = waiting.send(hello);
                    }
                }
                OperatorEvent::Event { id, body } => {
                    let last = is_last(&body);
                    if let Some(events) = self.under_way.get(&id) {
                        let _ = events.send(words::on_one_line(body));
                    }
                    if last {
                        self.under_way.remove(&id);
                    }
                }
                OperatorEvent::Lost { reason: why } => reason = Some(why),
            }
        }
        self.unsent.extend(self.session.take_output());
        if reason.is_none() && self.unsent.len() > UNREAD_BYTES_MAX {
            reason = Some(format!("leaves {} bytes unread", self.unsent.len()));
        }
        reason
    }

    fn begin(
        &mut self,
        body: Request,
        events: mpsc::UnboundedSender<Event>,
        number: oneshot::Sender<RequestId>,
    ) {
        let now = self.now_ms();
        let id = self.session.request(now, body);
        self.under_way.insert(id, events);
        let _ = number.send(id);
    }
}

/// How far a clock is ahead of another, both in milliseconds since 1970. A clock may say anything.
fn ahead_ms(clock_ms: u64, other_ms: u64) -> i64 {
    i64::try_from(i128::from(clock_ms) - i128::from(other_ms)).unwrap_or(if clock_ms > other_ms {
        i64::MAX
    } else {
        i64::MIN
    })
}

async fn write_some(stdin: &mut Option<ToNode>, bytes: &[u8]) -> std::io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_says_anything_does_not_wrap() {
        assert_eq!((ahead_ms(1_500, 1_000), ahead_ms(1_000, 1_500)), (500, -500));
        assert_eq!((ahead_ms(u64::MAX, 1_000), ahead_ms(0, u64::MAX)), (i64::MAX, i64::MIN));
        assert_eq!((ahead_ms(u64::MAX, u64::MAX - 1), ahead_ms(0, 0)), (1, 0));
    }
}
