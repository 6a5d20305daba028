//! A connection of a test that carries more than bulk data: made by the sender, proven by both ends.
//!
//! What comes in: connections from anyone who finds the port. What goes out: the one that showed the token.
//! Nothing else is read before that; what stays silent or lies is closed and counted, and neither ends the
//! test nor holds it up.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use linerate_sys::affinity;
use linerate_sys::socket::{self, Ready};

use crate::job::{FIRST_CONTACT, Job, LoadError, SLICE, is_passing};
use crate::token::{Nonces, STAMP_BYTES, Stamp, same};
use crate::unproven::{self, PROOF_TIME, ProofRead, QueueLimits, Unproven};

/// Labels of both proofs.
const PROOF: &str = "admission proof";
const WELCOME: &str = "admission welcome";

struct Candidate {
    stream: TcpStream,
    nonce: Stamp,
    shown: Stamp,
    length: usize,
}

/// Listens on the endpoint's address, announces the port, returns the first connection that shows the token.
pub(crate) fn accept_one(job: &Job<'_>) -> Result<TcpStream, LoadError> {
    // Strangers take descriptors too. If the limit cannot be raised, the oldest of them leaves earlier.
    let _ = affinity::raise_open_files();
    let nonces = Nonces::open().map_err(LoadError::io("read random bytes"))?;
    let listener = TcpListener::bind((job.spec.bind, 0)).map_err(LoadError::io("listen"))?;
    listener.set_nonblocking(true).map_err(LoadError::io("listen without blocking"))?;
    let port = listener.local_addr().map_err(LoadError::io("read the address of the listener"))?.port();
    (job.control.listening)(port);
    let mut candidates = Unproven::new(QueueLimits::data_port(1));
    let found = first_proven(job, &listener, &nonces, &mut candidates);
    job.met_connections(candidates.unproven(), u64::from(found.is_err()));
    found?.welcome(job)
}

fn first_proven(
    job: &Job<'_>,
    listener: &TcpListener,
    nonces: &Nonces,
    candidates: &mut Unproven<Candidate>,
) -> Result<Candidate, LoadError> {
    let since = Instant::now();
    loop {
        job.check("waiting for the sender")?;
        let waited = since.elapsed();
        if unproven::is_over(waited, !candidates.is_empty()) {
            return Err(LoadError::NobodyCame { waited_ms: waited.as_millis(), got: 0, wanted: 1 });
        }
        let sockets: Vec<BorrowedFd<'_>> = (candidates.takes().then(|| listener.as_fd()).into_iter())
            .chain(candidates.iter().map(|candidate| candidate.stream.as_fd()))
            .collect();
        socket::wait(&sockets, Ready::Readable, SLICE).map_err(LoadError::io("wait for the sender"))?;
        let now = Instant::now();
        candidates
            .fill(now, || listener.accept(), |_, (stream, _)| handshake(stream, nonces).ok())
            .map_err(LoadError::io("accept the sender"))?;
        if let Some((candidate, ())) = candidates.next_proven(now, |candidate| candidate.poll(job)) {
            return Ok(candidate);
        }
    }
}

fn handshake(stream: TcpStream, nonces: &Nonces) -> io::Result<Candidate> {
    stream.set_nonblocking(true)?;
    socket::reset_on_close(&stream)?;
    let nonce = nonces.next()?;
    // The send buffer of a new connection always has capacity for it.
    (&stream).write_all(&nonce)?;
    Ok(Candidate { stream, nonce, shown: [0; STAMP_BYTES], length: 0 })
}

impl Candidate {
    /// Whether it showed the token.
    fn poll(&mut self, job: &Job<'_>) -> ProofRead<()> {
        while self.length < STAMP_BYTES {
            match self.stream.read(&mut self.shown[self.length..]) {
                Ok(0) => return ProofRead::Wrong,
                Ok(length) => self.length += length,
                Err(error) if is_passing(&error) => return ProofRead::Part,
                Err(_) => return ProofRead::Wrong,
            }
        }
        if same(&self.shown, &job.token.stamp(PROOF, &self.nonce)) {
            ProofRead::Proof(())
        } else {
            ProofRead::Wrong
        }
    }

    fn welcome(mut self, job: &Job<'_>) -> Result<TcpStream, LoadError> {
        prepare(&self.stream).map_err(LoadError::io("prepare a connection"))?;
        let proof = job.token.stamp(WELCOME, &self.nonce);
        self.stream.write_all(&proof).map_err(LoadError::io("answer the sender"))?;
        Ok(self.stream)
    }
}

/// Blocking, but never longer than a slice; small writes leave at once; closing leaves nothing behind.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(SLICE))?;
    stream.set_write_timeout(Some(SLICE))?;
    stream.set_nodelay(true)?;
    socket::reset_on_close(stream)
}

/// Waits until a connection that was started is there.
pub(crate) fn connect(
    job: &Job<'_>,
    peer: SocketAddr,
    wait: Duration,
    what: &'static str,
) -> Result<TcpStream, LoadError> {
    let refused = |reason: String| LoadError::Connect { peer, bind: job.spec.bind, reason };
    let stream = socket::connect_start(job.spec.bind, peer).map_err(|error| refused(error.to_string()))?;
    let begun = Instant::now();
    loop {
        job.check(what)?;
        let left = wait.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(refused(format!("no answer within {} ms", wait.as_millis())));
        }
        if socket::wait(&[stream.as_fd()], Ready::Writable, left.min(SLICE)).map_err(LoadError::io(what))? {
            match stream.take_error().map_err(LoadError::io(what))? {
                Some(error) => return Err(refused(error.to_string())),
                None => return Ok(stream),
            }
        }
    }
}

/// Connects to the receiver and proves to it, and has it prove, that both know the token.
pub(crate) fn knock(job: &Job<'_>, peer: SocketAddr) -> Result<TcpStream, LoadError> {
    let mut stream = connect(job, peer, FIRST_CONTACT, "connecting")?;
    prepare(&stream).map_err(LoadError::io("prepare a connection"))?;
    let mut nonce = [0; STAMP_BYTES];
    read_exactly(job, &mut stream, &mut nonce, PROOF_TIME)?;
    stream.write_all(&job.token.stamp(PROOF, &nonce)).map_err(LoadError::io("show the token"))?;
    let mut shown = [0; STAMP_BYTES];
    read_exactly(job, &mut stream, &mut shown, PROOF_TIME)?;
    if same(&shown, &job.token.stamp(WELCOME, &nonce)) {
        Ok(stream)
    } else {
        Err(LoadError::NotProven { peer })
    }
}

/// Fills `buffer` from a proven connection within a time.
pub(crate) fn read_exactly(
    job: &Job<'_>,
    stream: &mut TcpStream,
    buffer: &mut [u8],
    wait: Duration,
) -> Result<(), LoadError> {
    let (begun, mut got) = (Instant::now(), 0);
    while got < buffer.len() {
        job.check("waiting for the other end")?;
        let waited = begun.elapsed();
        if waited >= wait {
            return Err(LoadError::Stalled { bytes: got as u64, waited_ms: waited.as_millis() });
        }
        match stream.read(&mut buffer[got..]) {
            Ok(0) => {
                return Err(LoadError::Broken { bytes: got as u64, source: ErrorKind::UnexpectedEof.into() });
            }
            Ok(length) => got += length,
            Err(error) if is_passing(&error) => {}
            Err(source) => return Err(LoadError::Broken { bytes: got as u64, source }),
        }
    }
    Ok(())
}
