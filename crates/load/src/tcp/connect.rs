//! The sender's side of the handshake: connects all streams and shows the token on each.
//!
//! What comes in: the receiver's address. What goes out: streams whose receiver showed that it knows the
//! token as well. It gives the receiver nothing before that.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_sys::socket::{self, Ready};
use linerate_sys::stream;

use super::options;
use super::plan::Plan;
use super::proof::{GO, PROOF, PROOF_BYTES, set_time_outs};
use crate::job::{Job, LoadError, SLICE, is_passing};
use crate::token::{STAMP_BYTES, same};
use crate::unproven::PROOF_TIME;

/// A connection attempt may take so long: one lost SYN is sent again after a second.
const CONNECT_TIME: Duration = Duration::from_millis(1_500);

/// Connects and proves all streams of a test.
pub(super) fn connect(job: &Job<'_>, plan: Plan, peer: SocketAddr) -> Result<Vec<TcpStream>, LoadError> {
    let streams = open_all(job, plan, peer)?;
    prove_all(job, &streams, peer)?;
    Ok(streams)
}

/// All streams at the same time, each bounded.
fn open_all(job: &Job<'_>, plan: Plan, peer: SocketAddr) -> Result<Vec<TcpStream>, LoadError> {
    let refused = |reason: String| LoadError::Connect { peer, bind: job.spec.bind, reason };
    let mut streams = Vec::with_capacity(plan.connections());
    for _ in 0..plan.connections() {
        let socket = options::socket(&job.spec.tuning, peer.is_ipv6())?;
        let stream = stream::connect(socket, plan.kind, job.spec.bind, peer);
        streams.push(stream.map_err(|error| refused(error.to_string()))?);
    }
    let begun = Instant::now();
    for stream in &streams {
        while !socket::wait(&[stream.as_fd()], Ready::Writable, SLICE)
            .map_err(LoadError::io("wait for a connection"))?
        {
            job.check("connecting")?;
            if begun.elapsed() >= CONNECT_TIME {
                return Err(refused(format!("no answer within {} ms", CONNECT_TIME.as_millis())));
            }
        }
        if let Some(error) = stream.take_error().map_err(LoadError::io("ask for a connection"))? {
            return Err(refused(error.to_string()));
        }
        set_time_outs(stream)
            .and_then(|()| options::finish(&job.spec.tuning, stream))
            .map_err(LoadError::io("prepare a stream"))?;
    }
    Ok(streams)
}

/// Shows the token on every stream, and wants to see it from the receiver as well.
fn prove_all(job: &Job<'_>, streams: &[TcpStream], peer: SocketAddr) -> Result<(), LoadError> {
    let limit = Instant::now() + PROOF_TIME;
    let mut nonces = Vec::with_capacity(streams.len());
    for (number, mut stream) in (0_u16..).zip(streams) {
        let mut nonce = [0; STAMP_BYTES];
        read_exact(job, stream, &mut nonce, limit)?;
        let mut signed = nonce.to_vec();
        signed.extend_from_slice(&number.to_be_bytes());
        let mut proof = [0; PROOF_BYTES];
        proof[..2].copy_from_slice(&number.to_be_bytes());
        proof[2..].copy_from_slice(&job.token.stamp(PROOF, &signed));
        stream.write_all(&proof).map_err(|source| LoadError::Broken { bytes: 0, source })?;
        nonces.push(nonce);
    }
    for (stream, nonce) in streams.iter().zip(&nonces) {
        let mut go = [0; STAMP_BYTES];
        read_exact(job, stream, &mut go, limit)?;
        if !same(&go, &job.token.stamp(GO, nonce)) {
            return Err(LoadError::NotProven { peer });
        }
    }
    Ok(())
}

fn read_exact(
    job: &Job<'_>,
    mut stream: &TcpStream,
    buffer: &mut [u8],
    limit: Instant,
) -> Result<(), LoadError> {
    let mut length = 0;
    while length < buffer.len() {
        job.check("showing the token")?;
        match stream.read(&mut buffer[length..]) {
            Ok(0) => return Err(LoadError::Broken { bytes: 0, source: io::ErrorKind::UnexpectedEof.into() }),
            Ok(more) => length += more,
            Err(error) if is_passing(&error) && Instant::now() < limit => {}
            Err(error) if is_passing(&error) => {
                return Err(LoadError::Stalled { bytes: 0, waited_ms: PROOF_TIME.as_millis() });
            }
            Err(source) => return Err(LoadError::Broken { bytes: 0, source }),
        }
    }
    Ok(())
}
