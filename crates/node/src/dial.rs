//! Dials the operator instead of being spoken to on stdin: where one step of a job starts the node programs
//! of all nodes, their outputs cannot carry frames.
//!
//! In: one line on stdin with the key of the run and the addresses of the operator. Out: a sealed connection
//! on which a session is served. It listens on nothing, tries within a bounded time, and keeps the key out of
//! its arguments, its environment and every error.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use linerate_wire::sealed::{Caller, DialOrder, Greeting, ORDER_BYTES_MAX, Opener, Sealed, Sealer};

use crate::serve;

/// Longest wait for the order: a step of thousands of nodes gives its stdin on only when the last of them is
/// there.
const ORDER_WAIT: Duration = Duration::from_secs(60);
/// Longest wait for a connection to one address; a firewall may drop what is sent there.
const CONNECT_WAIT: Duration = Duration::from_secs(3);
/// Longest wait for the other end's greeting.
const GREETING_WAIT: Duration = Duration::from_secs(10);
/// Between two rounds over all addresses.
const PAUSE: Duration = Duration::from_millis(300);
/// Longest time of trying, whatever the order says.
const WAIT_S_MAX: u32 = 600;
/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;

/// Reads the order, dials and serves. The error names the node, because all nodes of a step say it on one
/// stream.
pub(crate) fn run(sysfs_gap: Option<String>) -> Result<(), String> {
    let node = std::env::var("SLURMD_NODENAME").unwrap_or_default();
    let named = |error: String| format!("{node}: {error}");
    if node.is_empty() {
        return Err("SLURMD_NODENAME is not set: this is no step of a Slurm job".to_owned());
    }
    let order = order().map_err(named)?;
    if order.build != linerate_wire::BUILD {
        let (ours, theirs) = (linerate_wire::BUILD, &order.build);
        return Err(named(format!("this node program is of build {ours}, the operator of {theirs:?}")));
    }
    let caller = Caller { node: node.clone(), pid: std::process::id() };
    let (stream, sealed) = dial(&order, &caller).map_err(named)?;
    let output = stream.try_clone().map_err(|e| named(format!("cannot share the connection: {e}")))?;
    let reader = Unsealed { stream, opener: sealed.opener, ready: Vec::new(), taken: 0 };
    let writer = Sealing { stream: output, sealer: sealed.sealer };
    serve::serve_over(sysfs_gap, Box::new(reader), Box::new(writer));
    Ok(())
}

/// The order on stdin.
fn order() -> Result<DialOrder, String> {
    let (to_us, line) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(std::io::stdin().take(ORDER_BYTES_MAX as u64)).read_line(&mut line);
        // Nobody waits any more when it comes too late.
        let _ = to_us.send(read.map(|_| line));
    });
    let late = |_| format!("no order came within {} s", ORDER_WAIT.as_secs());
    let line = line.recv_timeout(ORDER_WAIT).map_err(late)?;
    let line = line.map_err(|e| format!("cannot read the order: {e}"))?;
    if line.is_empty() {
        return Err("the operator was gone before it gave an order".to_owned());
    }
    // Its words might be the key.
    serde_json::from_str(line.trim_end()).map_err(|_| "what came on stdin is no order".to_owned())
}

/// Tries the addresses in turn until one answers or the time is over; gives the words about each of the last
/// round.
fn dial(order: &DialOrder, caller: &Caller) -> Result<(TcpStream, Sealed), String> {
    let wait = Duration::from_secs(u64::from(order.wait_s.min(WAIT_S_MAX)));
    let until = Instant::now() + wait;
    loop {
        let mut words = Vec::new();
        for address in &order.addresses {
            match once(*address, order, caller) {
                Ok(connected) => return Ok(connected),
                Err(error) => words.push(format!("{address}: {error}")),
            }
        }
        if Instant::now() + PAUSE >= until {
            let (waited, words) = (wait.as_secs(), words.join(", "));
            return Err(format!("cannot reach the operator within {waited} s ({words})"));
        }
        std::thread::sleep(PAUSE);
    }
}

fn once(address: SocketAddr, order: &DialOrder, caller: &Caller) -> Result<(TcpStream, Sealed), String> {
    let words = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_WAIT).map_err(words)?;
    // Frames are small and each is waited for.
    stream.set_nodelay(true).map_err(words)?;
    stream.set_read_timeout(Some(GREETING_WAIT)).map_err(words)?;
    stream.set_write_timeout(Some(GREETING_WAIT)).map_err(words)?;
    let mut greeting = Greeting::dial(&order.key).map_err(|e| e.to_string())?;
    stream.write_all(&greeting.take_output()).map_err(words)?;
    let mut buffer = [0; 512];
    let mut sealed = loop {
        let count = stream.read(&mut buffer).map_err(words)?;
        if count == 0 {
            return Err("it closed the connection".to_owned());
        }
        if let Some(sealed) = greeting.received(&buffer[..count]).map_err(|e| e.to_string())? {
            break sealed;
        }
    };
    let mut bytes = Vec::new();
    sealed.sealer.seal(&caller.record(), &mut bytes).map_err(|e| e.to_string())?;
    stream.write_all(&bytes).map_err(words)?;
    // From here on the session's own limit of silence holds.
    stream.set_read_timeout(None).map_err(words)?;
    stream.set_write_timeout(None).map_err(words)?;
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
