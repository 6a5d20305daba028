//! The listener at which node programs arrive that dial back.
//!
//! What comes in: open sockets and the keys. What goes out: connections whose other end has shown that it
//! knows the key of the run, with the name that it gives itself, or that of an agent, with the name that the
//! key belongs to. Everybody else is cut off: without an answer,
//! after a bounded number of bytes and seconds, and where too many are there at once the one that has said
//! nothing for longest makes room for the next. Nothing listens when the listener is dropped.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use linerate_wire::sealed::{AgentKey, Caller, KEY_ID_BYTES, Key, SealError, Sealed, SealedHandshake};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

/// Longest time of a handshake. One that is honest takes two RTTs.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(5);
/// Connections that may be there without having said who they are. Each is an open file.
pub(super) const UNKNOWN_MAX: usize = 256;
/// Where so many are there, each has this long before it has to make room. Thousands of nodes come in the
/// same moment: those wait.
const CROWDED_WAIT: Duration = Duration::from_secs(1);
/// After an accept that failed (no open file left): the connection stays in the queue, and the next try would
/// fail as well.
const PAUSE: Duration = Duration::from_millis(50);

/// Why a connection was cut off.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("it closed the connection without saying who it is")]
    Closed,
    #[error("it did not say who it is within {} s", HANDSHAKE_WAIT.as_secs())]
    Late,
    #[error("it did not say who it is, and {others} others waited as well")]
    Crowded { others: usize },
}

/// What those who are awaited know.
#[derive(Debug)]
pub(super) enum Keys {
    /// All the same.
    Run(Key),
    /// Each agent its own, found by its number.
    Agents {
        /// Name of the host and its key.
        known: BTreeMap<[u8; KEY_ID_BYTES], (String, AgentKey)>,
        /// Instead of that of an unknown number, so that it fails as a wrong key does.
        none: Key,
    },
}

/// Who came in.
#[derive(Debug)]
pub(super) struct Guest {
    /// Who it says it is.
    pub caller: Caller,
    /// From where.
    pub from: SocketAddr,
    /// The connection, behind its first record.
    pub connection: TcpStream,
    /// Its encryption.
    pub sealed: Sealed,
}

/// Those that were cut off.
#[derive(Debug, Default)]
pub(super) struct TurnedAway {
    /// How many.
    pub count: u64,
    /// The last of them, and why.
    pub last: Option<(SocketAddr, HandshakeError)>,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct Listener {
    listeners: Vec<TcpListener>,
    keys: Arc<Keys>,
    unknown: JoinSet<(SocketAddr, Result<Guest, HandshakeError>)>,
    /// Those in `unknown` and some that have ended, the oldest first.
    order: VecDeque<(Instant, SocketAddr, AbortHandle)>,
    pub(super) turned_away: TurnedAway,
    /// Wakes who waits for the next that is cut off.
    pub(super) cut_off: Arc<Notify>,
    /// No accept before.
    paused_until: Option<Instant>,
}

impl Listener {
    /// Awaits those who know the keys at these sockets.
    pub(super) fn new(listeners: Vec<TcpListener>, keys: Keys) -> Self {
        let (unknown, order) = (JoinSet::new(), VecDeque::new());
        let (keys, turned_away) = (Arc::new(keys), TurnedAway::default());
        Self { listeners, keys, unknown, order, turned_away, cut_off: Arc::default(), paused_until: None }
    }

    /// Where it listens.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|l| l.local_addr().ok()).collect()
    }

    /// The next one who knows the key. Nothing is lost when the wait is given up.
    pub(super) async fn next(&mut self) -> Guest {
        loop {
            self.order.retain(|(_, _, task)| !task.is_finished());
            let crowded = self.unknown.len() >= UNKNOWN_MAX;
            let patience = self.order.front().map_or_else(Instant::now, |(came, _, _)| *came + CROWDED_WAIT);
            let paused_until = self.paused_until;
            let ended = tokio::select! {
                accepted = accept(&self.listeners), if !crowded && paused_until.is_none() => {
                    match accepted {
                        Ok((connection, from)) => self.handshake(connection, from),
                        Err(_) => self.pause(),
                    }
                    continue;
                }
                () = sleep_until(paused_until.unwrap_or(patience)), if paused_until.is_some() => {
                    self.paused_until = None;
                    continue;
                }
                Some(ended) = self.unknown.join_next() => ended,
                () = sleep_until(patience), if crowded => {
                    self.make_room();
                    continue;
                }
            };
            match ended {
                Ok((_, Ok(guest))) => return guest,
                Ok((from, Err(why))) => self.turn_away(from, why),
                // One that had to make room: it was counted then.
                Err(_) => {}
            }
        }
    }

    /// An accept failed: those that are there are served meanwhile, and the oldest of them gives its
    /// descriptor where that is what is missing.
    pub(super) fn pause(&mut self) {
        let now = Instant::now();
        self.paused_until = Some(now + PAUSE);
        if self.order.front().is_some_and(|(came, ..)| *came + CROWDED_WAIT <= now) {
            self.make_room();
        }
    }

    fn make_room(&mut self) {
        if let Some((_, from, oldest)) = self.order.pop_front() {
            oldest.abort();
            let others = self.order.len();
            self.turn_away(from, HandshakeError::Crowded { others });
        }
    }

    fn handshake(&mut self, connection: TcpStream, from: SocketAddr) {
        let keys = Arc::clone(&self.keys);
        let task = self.unknown.spawn(async move {
            let guest = timeout(HANDSHAKE_WAIT, handshake(connection, from, &keys)).await;
            (from, guest.unwrap_or(Err(HandshakeError::Late)))
        });
        self.order.push_back((Instant::now(), from, task));
    }

    fn turn_away(&mut self, from: SocketAddr, why: HandshakeError) {
        self.turned_away.count += 1;
        self.turned_away.last = Some((from, why));
        self.cut_off.notify_one();
    }
}

/// The next connection at any of the listeners.
async fn accept(listeners: &[TcpListener]) -> io::Result<(TcpStream, SocketAddr)> {
    poll_fn(|cx| {
        let mut ready = listeners.iter().map(|listener| listener.poll_accept(cx));
        ready.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await
}

/// Both ends show that they know the key, and the other one says its name.
async fn handshake(
    mut connection: TcpStream,
    from: SocketAddr,
    keys: &Keys,
) -> Result<Guest, HandshakeError> {
    let mut buffer = [0; 1024];
    let (mut handshake, name, begun) = match keys {
        Keys::Run(key) => (SealedHandshake::answer(key)?, None, Vec::new()),
        Keys::Agents { known, none } => {
            let mut begun = Vec::new();
            let id = loop {
                if let Some(id) = AgentKey::named(&begun)? {
                    break id;
                }
                begun.extend_from_slice(some(&mut connection, &mut buffer).await?);
            };
            let (handshake, name) = match known.get(&id) {
                Some((name, key)) => (SealedHandshake::answer_to(key, name)?, Some(name)),
                None => (SealedHandshake::answer_to(&AgentKey::unknown(id, none.clone()), "")?, None),
            };
            (handshake, name, begun)
        }
    };
    let mut ready = handshake.received(&begun)?;
    let mut sealed = loop {
        if let Some(sealed) = ready {
            break sealed;
        }
        ready = handshake.received(some(&mut connection, &mut buffer).await?)?;
    };
    // Frames are small and each is waited for.
    connection.set_nodelay(true)?;
    connection.write_all(&handshake.take_output()).await?;
    let record = loop {
        if let Some(record) = sealed.opener.next_record()? {
            break record;
        }
        let bytes = some(&mut connection, &mut buffer).await?;
        sealed.opener.push(bytes);
    };
    let caller = Caller::read(&record)?;
    if name.is_some_and(|name| *name != caller.node) {
        return Err(SealError::Name.into());
    }
    Ok(Guest { caller, from, connection, sealed })
}

async fn some<'a>(connection: &mut TcpStream, buffer: &'a mut [u8]) -> Result<&'a [u8], HandshakeError> {
    match connection.read(buffer).await {
        Ok(0) => Err(HandshakeError::Closed),
        Ok(count) => Ok(&buffer[..count]),
        Err(error) => Err(error.into()),
    }
}
