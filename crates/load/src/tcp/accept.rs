//! The receiver's admission: accepts exactly the announced number of streams that show the token, then
//! closes.
//!
//! What comes in: connections from anyone who finds the port. What goes out: proven streams in the order of
//! their numbers. Every connection gets a nonce of its own and must answer it with the stamp of the test
//! before anything else is read from it. Those that do not are closed and counted; however many there are,
//! they neither end the test nor hold it up.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use linerate_sys::socket::{self, Ready};
use linerate_sys::{affinity, stream};

use super::options;
use super::plan::Plan;
use super::proof::{GO, PROOF, PROOF_BYTES, set_time_outs};
use crate::job::{Job, LoadError, SLICE, is_passing};
use crate::token::{Nonces, Stamp, same};
use crate::unproven::{self, ProofRead, QueueLimits, Unproven};

/// A stream that showed the token, with the nonce that it answered.
struct Proven {
    stream: TcpStream,
    nonce: Stamp,
}

/// A connection that has not shown its proof yet.
struct Candidate {
    stream: TcpStream,
    nonce: Stamp,
    shown: [u8; PROOF_BYTES],
    length: usize,
}

/// The streams so far.
struct Admission {
    slots: Vec<Option<Proven>>,
    candidates: Unproven<Candidate>,
    since: Instant,
}

/// Listens, announces the port, and returns the proven streams, after the start stamp on each. The listener
/// is closed when it returns.
pub(super) fn accept(job: &Job<'_>, plan: Plan) -> Result<Vec<TcpStream>, LoadError> {
    // Strangers take descriptors too. If the limit cannot be raised, the oldest of them leaves earlier.
    let _ = affinity::raise_open_files();
    let listener = options::socket(&job.spec.tuning, job.spec.bind.is_ipv6())?;
    let nonces = Nonces::open().map_err(LoadError::io("read random bytes"))?;
    let [high, low, ..] = nonces.next().map_err(LoadError::io("read random bytes"))?;
    let first = u16::from_be_bytes([high, low]);
    let port = stream::listen(&listener, plan.kind, job.spec.bind, first).map_err(LoadError::io("listen"))?;
    (job.control.listening)(port);
    let connections = plan.connections();
    let mut admission = Admission {
        slots: (0..connections).map(|_| None).collect(),
        candidates: Unproven::new(QueueLimits::data_port(connections)),
        since: Instant::now(),
    };
    let complete = admission.complete(job, &listener, &nonces);
    drop(listener);
    let missing = admission.slots.iter().filter(|slot| slot.is_none()).count();
    job.met_connections(admission.candidates.unproven(), missing as u64);
    complete?;
    let mut streams = Vec::with_capacity(admission.slots.len());
    for Proven { stream, nonce } in admission.slots.into_iter().flatten() {
        set_time_outs(&stream)
            .and_then(|()| options::finish(&job.spec.tuning, &stream))
            .map_err(LoadError::io("prepare a stream"))?;
        (&stream).write_all(&job.token.stamp(GO, &nonce)).map_err(LoadError::io("start a stream"))?;
        streams.push(stream);
    }
    Ok(streams)
}

impl Admission {
    /// Until every stream is there.
    fn complete(&mut self, job: &Job<'_>, listener: &OwnedFd, nonces: &Nonces) -> Result<(), LoadError> {
        while self.slots.iter().any(Option::is_none) {
            job.check("waiting for the streams of the sender")?;
            self.check_time()?;
            let sockets: Vec<BorrowedFd<'_>> =
                (self.candidates.takes().then(|| listener.as_fd()).into_iter())
                    .chain(self.candidates.iter().map(|candidate| candidate.stream.as_fd()))
                    .collect();
            socket::wait(&sockets, Ready::Readable, SLICE).map_err(LoadError::io("wait for streams"))?;
            let now = Instant::now();
            self.candidates
                .fill(now, || stream::accept(listener), |_, stream| Candidate::handshake(stream, nonces))
                .map_err(LoadError::io("accept streams"))?;
            self.poll(job, now);
        }
        Ok(())
    }

    /// The wait for the next stream is bounded.
    fn check_time(&self) -> Result<(), LoadError> {
        let waited = self.since.elapsed();
        if !unproven::is_over(waited, !self.candidates.is_empty()) {
            return Ok(());
        }
        let got = self.slots.iter().flatten().count();
        Err(LoadError::NobodyCame { waited_ms: waited.as_millis(), got, wanted: self.slots.len() })
    }

    fn poll(&mut self, job: &Job<'_>, now: Instant) {
        while let Some((candidate, index)) = self.candidates.next_proven(now, |candidate| candidate.poll(job))
        {
            // A number beyond the test, or one that is there already, leaves.
            if let Some(slot @ None) = self.slots.get_mut(index) {
                *slot = Some(Proven { stream: candidate.stream, nonce: candidate.nonce });
                self.since = now;
            }
        }
    }
}

impl Candidate {
    fn handshake(stream: TcpStream, nonces: &Nonces) -> Option<Self> {
        let nonce = nonces.next().ok()?;
        let handshake = || {
            stream.set_nonblocking(true)?;
            socket::reset_on_close(&stream)?;
            // The send buffer of a new connection always has capacity for it.
            (&stream).write_all(&nonce)
        };
        handshake().ok()?;
        Some(Self { nonce, shown: [0; PROOF_BYTES], length: 0, stream })
    }

    fn poll(&mut self, job: &Job<'_>) -> ProofRead<usize> {
        while self.length < PROOF_BYTES {
            match self.stream.read(&mut self.shown[self.length..]) {
                Ok(0) => return ProofRead::Wrong,
                Ok(length) => self.length += length,
                Err(error) if is_passing(&error) => return ProofRead::Part,
                Err(_) => return ProofRead::Wrong,
            }
        }
        let (number, proof) = self.shown.split_at(2);
        let mut signed = self.nonce.to_vec();
        signed.extend_from_slice(number);
        if same(proof, &job.token.stamp(PROOF, &signed)) {
            ProofRead::Proof(usize::from(u16::from_be_bytes([number[0], number[1]])))
        } else {
            ProofRead::Wrong
        }
    }
}
