//! The receiver's door: accepts exactly the announced number of streams that show the token, then closes.
//!
//! What comes in: connections from anyone who finds the port. What goes out: proven streams in the order of their numbers.
//! Every connection gets a nonce of its own and must answer it with the stamp of the test before anything else is read
//! from it. Connections that do not are closed; too many of them end the test, and silent ones do not hold up the others.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_sys::socket::{self, Ready};
use linerate_sys::stream;

use super::{GO, PROOF, PROOF_BYTES, Plan, is_passing, options, set_time_outs};
use crate::job::{FIRST_CONTACT, Job, LoadError, SLICE, patience};
use crate::token::{self, Stamp, same};

/// Connections without a valid proof that are borne.
const WRONG_MAX: usize = 16;

/// How long a connection may take to show its proof: a lost segment is sent again after a second.
const PROOF_TIME: Duration = patience(3_000, 30_000);

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
    since: Instant,
}

/// What a look at a candidate says.
enum Look {
    Waiting,
    Wrong,
    Proven(usize),
}

/// The streams so far.
struct Door {
    slots: Vec<Option<Proven>>,
    candidates: Vec<Candidate>,
    wrong: usize,
    since: Instant,
}

/// Listens, announces the port, and returns the proven streams, each of which was told to go. Nothing listens any more
/// when it returns.
pub(super) fn accept(job: &Job<'_>, plan: Plan) -> Result<Vec<TcpStream>, LoadError> {
    let listener = options::socket(&job.spec.tuning, job.spec.bind.is_ipv6())?;
    let [high, low, ..] = token::nonce().map_err(LoadError::io("read random bytes"))?;
    let first = u16::from_be_bytes([high, low]);
    let port = stream::listen(&listener, plan.kind, job.spec.bind, first).map_err(LoadError::io("listen"))?;
    (job.control.listening)(port);
    let mut door = Door {
        slots: (0..plan.connections()).map(|_| None).collect(),
        candidates: Vec::new(),
        wrong: 0,
        since: Instant::now(),
    };
    while door.slots.iter().any(Option::is_none) {
        job.check("waiting for the streams of the sender")?;
        door.check_time()?;
        let sockets: Vec<BorrowedFd<'_>> = std::iter::once(listener.as_fd())
            .chain(door.candidates.iter().map(|candidate| candidate.stream.as_fd()))
            .collect();
        socket::wait(&sockets, Ready::Readable, SLICE).map_err(LoadError::io("wait for streams"))?;
        door.let_in(&listener)?;
        door.look(job);
        if door.wrong > WRONG_MAX {
            return Err(LoadError::WrongStreams { seen: door.wrong });
        }
    }
    drop(listener);
    let mut streams = Vec::with_capacity(door.slots.len());
    for Proven { stream, nonce } in door.slots.into_iter().flatten() {
        set_time_outs(&stream)
            .and_then(|()| options::finish(&job.spec.tuning, &stream))
            .map_err(LoadError::io("prepare a stream"))?;
        (&stream).write_all(&job.token.stamp(GO, &nonce)).map_err(LoadError::io("start a stream"))?;
        streams.push(stream);
    }
    Ok(streams)
}

impl Door {
    /// The wait for the next stream is bounded.
    fn check_time(&self) -> Result<(), LoadError> {
        let waited = self.since.elapsed();
        if waited < FIRST_CONTACT {
            return Ok(());
        }
        let got = self.slots.iter().flatten().count();
        Err(LoadError::NobodyCame { waited_ms: waited.as_millis(), got, wanted: self.slots.len() })
    }

    fn let_in(&mut self, listener: &OwnedFd) -> Result<(), LoadError> {
        // What does not fit waits in the kernel's queue until a candidate is decided.
        while self.candidates.len() < self.slots.len() + WRONG_MAX {
            // A connection that was taken back before it was accepted is no reason to end either.
            let Ok(stream) = stream::accept(listener) else { return Ok(()) };
            let nonce = token::nonce().map_err(LoadError::io("read random bytes"))?;
            let candidate =
                Candidate { nonce, shown: [0; PROOF_BYTES], length: 0, since: Instant::now(), stream };
            if candidate.greet().is_err() {
                self.wrong += 1;
                continue;
            }
            self.candidates.push(candidate);
        }
        Ok(())
    }

    fn look(&mut self, job: &Job<'_>) {
        for mut candidate in std::mem::take(&mut self.candidates) {
            match candidate.look(job) {
                Look::Waiting => self.candidates.push(candidate),
                Look::Wrong => self.wrong += 1,
                Look::Proven(index) => match self.slots.get_mut(index) {
                    Some(slot @ None) => {
                        *slot = Some(Proven { stream: candidate.stream, nonce: candidate.nonce });
                        self.since = Instant::now();
                    }
                    // A number beyond the test or one that is there already.
                    _ => self.wrong += 1,
                },
            }
        }
    }
}

impl Candidate {
    fn greet(&self) -> std::io::Result<()> {
        self.stream.set_nonblocking(true)?;
        socket::reset_on_close(&self.stream)?;
        // The send buffer of a new connection always has room for it.
        (&self.stream).write_all(&self.nonce)
    }

    fn look(&mut self, job: &Job<'_>) -> Look {
        while self.length < PROOF_BYTES {
            match self.stream.read(&mut self.shown[self.length..]) {
                Ok(0) => return Look::Wrong,
                Ok(length) => self.length += length,
                Err(error) if is_passing(&error) && self.since.elapsed() < PROOF_TIME => {
                    return Look::Waiting;
                }
                Err(_) => return Look::Wrong,
            }
        }
        let (number, proof) = self.shown.split_at(2);
        let mut signed = self.nonce.to_vec();
        signed.extend_from_slice(number);
        if same(proof, &job.token.stamp(PROOF, &signed)) {
            Look::Proven(usize::from(u16::from_be_bytes([number[0], number[1]])))
        } else {
            Look::Wrong
        }
    }
}
