//! Dials the operator instead of being spoken to on stdin: where one step of a job starts the node programs
//! of all nodes, their outputs cannot carry frames.
//!
//! In: one line on stdin with the key of the run and the addresses of the operator. Out: a sealed connection
//! on which a session is served. It listens on nothing, tries within a bounded time, and keeps the key out of
//! its arguments, its environment and every error.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use linerate_wire::sealed::{
    Caller, DialOrder, ORDER_BYTES_MAX, Opener, SealError, Sealed, SealedHandshake, Sealer,
};
use thiserror::Error;

use crate::serve::{self, Scope};

/// Longest wait for the order: a step of thousands of nodes gives its stdin on only when the last of them is
/// there.
const ORDER_WAIT: Duration = Duration::from_secs(60);
/// Longest wait for a connection to one address; a firewall may drop what is sent there.
const CONNECT_WAIT: Duration = Duration::from_secs(3);
/// Longest wait for the other end's handshake.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// Between two rounds over all addresses.
const PAUSE: Duration = Duration::from_millis(300);
/// Longest time of trying, whatever the order says.
const WAIT_S_MAX: u32 = 600;
/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;

/// Why the operator was not reached.
#[derive(Debug, Error)]
pub(crate) enum DialError {
    #[error("SLURMD_NODENAME is not set: this is no step of a Slurm job")]
    NoStep,
    /// The node is named, because all nodes of a step print this on one stream.
    #[error("{node}: {reason}")]
    Of { node: String, reason: Box<Self> },
    #[error("this node program is of build {}, the operator of {theirs:?}", linerate_wire::BUILD)]
    OtherBuild { theirs: String },
    #[error("cannot share the connection: {0}")]
    Share(io::Error),
    #[error("no order came within {} s", ORDER_WAIT.as_secs())]
    Late,
    #[error("cannot read the order: {0}")]
    Unread(io::Error),
    #[error("the operator was gone before it gave an order")]
    Gone,
    /// Its text might be the key.
    #[error("what came on stdin is no order")]
    NoOrder,
    #[error("cannot reach the operator within {} s ({})", waited.as_secs(), tried.join(", "))]
    Unreachable { waited: Duration, tried: Vec<String> },
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("it closed the connection")]
    Closed,
    #[error("no handshake within {} s", HANDSHAKE_WAIT.as_secs())]
    NoHandshake,
}

/// Reads the order, dials and serves.
pub(crate) fn run(sysfs_gap: Option<String>) -> Result<(), DialError> {
    let node = std::env::var("SLURMD_NODENAME").unwrap_or_default();
    if node.is_empty() {
        return Err(DialError::NoStep);
    }
    serve_as(&node, sysfs_gap).map_err(|error| DialError::Of { node, reason: Box::new(error) })
}

fn serve_as(node: &str, sysfs_gap: Option<String>) -> Result<(), DialError> {
    let order = order()?;
    if order.build != linerate_wire::BUILD {
        return Err(DialError::OtherBuild { theirs: order.build });
    }
    let (stream, sealed) = dial(&order, node)?;
    serve_sealed(stream, sealed, sysfs_gap, Scope::All)
}

/// Serves a session over a connection on which both ends know each other.
pub(crate) fn serve_sealed(
    stream: TcpStream,
    sealed: Sealed,
    sysfs_gap: Option<String>,
    scope: Scope,
) -> Result<(), DialError> {
    let output = stream.try_clone().map_err(DialError::Share)?;
    let reader = Unsealed { stream, opener: sealed.opener, ready: Vec::new(), taken: 0 };
    let writer = Sealing { stream: output, sealer: sealed.sealer };
    serve::serve_over(sysfs_gap, Box::new(reader), Box::new(writer), scope);
    Ok(())
}

/// The order on stdin.
fn order() -> Result<DialOrder, DialError> {
    let (to_us, line) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(std::io::stdin().take(ORDER_BYTES_MAX as u64)).read_line(&mut line);
        // Nobody waits any more when it comes too late.
        let _ = to_us.send(read.map(|_| line));
    });
    let line = line.recv_timeout(ORDER_WAIT).map_err(|_| DialError::Late)?.map_err(DialError::Unread)?;
    if line.is_empty() {
        return Err(DialError::Gone);
    }
    serde_json::from_str(line.trim_end()).map_err(|_| DialError::NoOrder)
}

/// Tries the addresses in turn until one answers or the time is over; gives the words about each of the last
/// round.
fn dial(order: &DialOrder, node: &str) -> Result<(TcpStream, Sealed), DialError> {
    let wait = Duration::from_secs(u64::from(order.wait_s.min(WAIT_S_MAX)));
    let until = Instant::now() + wait;
    loop {
        let mut tried = Vec::new();
        for address in &order.addresses {
            match SealedHandshake::dial(&order.key)
                .map_err(DialError::from)
                .and_then(|handshake| once(*address, handshake, node))
            {
                Ok(connected) => return Ok(connected),
                Err(error) => tried.push(format!("{address}: {error}")),
            }
        }
        if Instant::now() + PAUSE >= until {
            return Err(DialError::Unreachable { waited: wait, tried });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Connects and shows the key; the name goes out behind it.
pub(crate) fn once(
    address: SocketAddr,
    mut handshake: SealedHandshake,
    node: &str,
) -> Result<(TcpStream, Sealed), DialError> {
    let caller = Caller { node: node.to_owned(), pid: std::process::id() };
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_WAIT)?;
    // Frames are small and each is waited for.
    stream.set_nodelay(true)?;
    let until = Instant::now() + HANDSHAKE_WAIT;
    stream.set_write_timeout(Some(HANDSHAKE_WAIT))?;
    stream.write_all(&handshake.take_output())?;
    let mut buffer = [0; 512];
    let mut sealed = loop {
        // All of it, not each byte: a stranger at this address must not keep us from the next one.
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(DialError::NoHandshake);
        }
        stream.set_read_timeout(Some(left))?;
        let count = match stream.read(&mut buffer) {
            // The rest of its time is over.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            other => other?,
        };
        if count == 0 {
            return Err(DialError::Closed);
        }
        if let Some(sealed) = handshake.received(&buffer[..count])? {
            break sealed;
        }
    };
    let mut bytes = Vec::new();
    sealed.sealer.seal(&caller.record(), &mut bytes)?;
    stream.write_all(&bytes)?;
    // From here on the session's own limit of silence holds.
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    Ok((stream, sealed))
}

/// What the operator says.
struct Unsealed {
    stream: TcpStream,
    opener: Opener,
    ready: Vec<u8>,
    taken: usize,
}

impl Read for Unsealed {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        while self.taken == self.ready.len() {
            if let Some(text) = self.opener.next_record().map_err(std::io::Error::other)? {
                (self.ready, self.taken) = (text, 0);
                continue;
            }
            let mut bytes = [0; READ_BYTES];
            match self.stream.read(&mut bytes)? {
                0 => return Ok(0),
                count => self.opener.push(&bytes[..count]),
            }
        }
        let count = into.len().min(self.ready.len() - self.taken);
        into[..count].copy_from_slice(&self.ready[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}

/// What we say. The connection ends with it.
struct Sealing {
    stream: TcpStream,
    sealer: Sealer,
}

impl Write for Sealing {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let mut bytes = Vec::with_capacity(text.len() + 64);
        self.sealer.seal(text, &mut bytes).map_err(std::io::Error::other)?;
        // A record is written whole or the stream is over: none may be left out.
        self.stream.write_all(&bytes)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

impl Drop for Sealing {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
