//! The sending end of a TCP load.
//!
//! What comes in: the receiver's address. What goes out: the report of the sender, with the state of the connections
//! sampled all along. It writes only to a receiver that showed the token as well.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_model::load::LoadReport;
use linerate_sys::socket::{self, Ready};
use linerate_sys::tcp_info::{self, TcpInfo};

use super::crew::{self, Crew, Keeper};
use super::{
    BUFFER_BYTES, COUNT_BYTES, GO, PROOF, PROOF_BYTES, Plan, StreamEnd, end_state, is_passing, set_time_outs,
    verdict,
};
use crate::job::{Job, LoadError, SLICE};
use crate::sampler::{Series, Totals, read_at};
use crate::token::{STAMP_BYTES, same};

/// A connection attempt may take so long: one lost SYN is sent again after a second.
const CONNECT_TIME: Duration = Duration::from_millis(1500);

/// The exchange of proofs may take so long.
const PROOF_TIME: Duration = Duration::from_secs(3);

/// A queue of unsent bytes that takes longer than this to drain is kept from growing, or the end of a slow test would
/// be spent on draining it. Nothing of the kind happens on a path that runs well.
const UNSENT_TIME_MAX: f64 = 0.1;

/// To what it is limited then: enough to keep the path busy between two wake-ups of the sender.
const UNSENT_TIME: f64 = 0.05;
const UNSENT_BYTES_MIN: u32 = 64 * 1024;

/// Samples the connections.
struct Sampler<'a> {
    streams: &'a [TcpStream],
    /// State when the transfer began: the proofs are not part of it.
    base: Vec<TcpInfo>,
    start: Instant,
    duration: Duration,
    series: Series,
    in_flight_max: u64,
    window_max: u64,
    last_bytes: u64,
}

impl Keeper for Sampler<'_> {
    fn start(&mut self, now: Instant) {
        self.start = now;
        self.series = Series::new(now, self.duration, Totals::default());
    }

    fn tick(&mut self, crew: &Crew) -> u64 {
        let (now, infos) = read_at(|| {
            self.streams.iter().map(|stream| tcp_info::read(stream).unwrap_or_default()).collect::<Vec<_>>()
        });
        let totals = self.totals(&infos, crew);
        self.last_bytes = self.last_bytes.max(totals.bytes);
        for info in &infos {
            self.in_flight_max = self.in_flight_max.max(info.in_flight_bytes());
            let window = info.snd_wnd.unwrap_or(0);
            self.window_max = self.window_max.max(u64::from(window));
        }
        if self.series.is_open() {
            self.series.push(now, totals);
            self.limit_unsent(now, &infos);
        }
        totals.bytes
    }
}

impl<'a> Sampler<'a> {
    fn new(streams: &'a [TcpStream], duration: Duration) -> Self {
        let base: Vec<TcpInfo> =
            streams.iter().map(|stream| tcp_info::read(stream).unwrap_or_default()).collect();
        let start = Instant::now();
        let series = Series::new(start, duration, Totals::default());
        Self { streams, base, start, duration, series, in_flight_max: 0, window_max: 0, last_bytes: 0 }
    }

    fn totals(&self, infos: &[TcpInfo], crew: &Crew) -> Totals {
        let mut totals = Totals::default();
        for (index, (info, base)) in infos.iter().zip(&self.base).enumerate() {
            totals.bytes += if let (Some(now), Some(then)) = (info.bytes_acked, base.bytes_acked) {
                now.saturating_sub(then)
            } else {
                // A kernel that does not count acknowledged bytes: what was written and is no longer queued.
                let queued = socket::unacknowledged(&self.streams[index]).unwrap_or(0);
                crew.bytes_of(index).saturating_sub(queued)
            };
            totals.retransmits += u64::from(info.total_retrans.saturating_sub(base.total_retrans));
        }
        if let Some(first) = infos.first() {
            totals.rtt_us = f64::from(first.rtt_us);
            totals.cwnd = first.snd_cwnd;
            totals.delivery_bps = first.delivery_rate.unwrap_or(0) as f64 * 8.0;
        }
        totals
    }

    fn limit_unsent(&self, now: Instant, infos: &[TcpInfo]) {
        let elapsed_s = (now - self.start).as_secs_f64();
        if elapsed_s < UNSENT_TIME_MAX {
            return;
        }
        for ((stream, info), base) in self.streams.iter().zip(infos).zip(&self.base) {
            let (Some(acked), Some(unsent)) = (info.bytes_acked, info.notsent_bytes) else { continue };
            let rate = acked.saturating_sub(base.bytes_acked.unwrap_or(0)) as f64 / elapsed_s;
            if unsent > UNSENT_BYTES_MIN && f64::from(unsent) > rate * UNSENT_TIME_MAX {
                // Without it the end only takes longer.
                let _ = socket::set_unsent_bytes(stream, UNSENT_BYTES_MIN.max((rate * UNSENT_TIME) as u32));
            }
        }
    }
}

/// Runs the sending end.
pub(super) fn send(
    job: &Job<'_>,
    plan: Plan,
    peer: SocketAddr,
    report: &mut LoadReport,
) -> Result<(), LoadError> {
    let streams = connect_all(job, plan, peer)?;
    prove_all(job, &streams, peer)?;
    let buffer = vec![0x5a; BUFFER_BYTES];
    let mut sampler = Sampler::new(&streams, plan.duration);
    let (mut ends, kept) = job.account(|| {
        crew::run(job, plan, &streams, &mut sampler, |crew, index, stream| {
            write_all_the_time(crew, index, stream, &buffer)
        })
    });
    let last = ends.iter().filter_map(|end| end.span).map(|span| span.1).max();
    report.elapsed_s =
        last.unwrap_or_else(Instant::now).saturating_duration_since(sampler.start).as_secs_f64();
    let acked = sampler.last_bytes;
    for (end, base) in ends.iter_mut().zip(&sampler.base) {
        end.info.total_retrans = end.info.total_retrans.saturating_sub(base.total_retrans);
    }
    let mut end = end_state(&streams, &ends);
    end.mss = ends.iter().map(|end| end.info.snd_mss).max().unwrap_or(0);
    end.unacked_bytes_max = sampler.in_flight_max;
    end.snd_wnd_max = sampler.window_max;
    report.series = sampler.series.finish();
    report.tcp = Some(end);
    let confirmed: Option<u64> = ends.iter().map(|end| end.confirmed).sum();
    // What the receiver did not confirm counts only as far as its kernel acknowledged it.
    let sent: u64 = ends.iter().map(|end| end.bytes).sum();
    report.bytes = confirmed.unwrap_or_else(|| acked.min(sent));
    kept?;
    verdict(&mut ends)?;
    if ends.iter().any(|end| end.confirmed != Some(end.bytes)) {
        return Err(LoadError::BytesDiffer { sent, received: confirmed.unwrap_or(0) });
    }
    Ok(())
}

/// All streams at the same time, each bounded.
fn connect_all(job: &Job<'_>, plan: Plan, peer: SocketAddr) -> Result<Vec<TcpStream>, LoadError> {
    let refused = |reason: String| LoadError::Connect { peer, bind: job.spec.bind, reason };
    let started: Result<Vec<_>, _> =
        (0..plan.streams).map(|_| socket::connect_start(job.spec.bind, peer)).collect();
    let streams = started.map_err(|error| refused(error.to_string()))?;
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
        set_time_outs(stream).map_err(LoadError::io("prepare a stream"))?;
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
    room: &mut [u8],
    limit: Instant,
) -> Result<(), LoadError> {
    let mut length = 0;
    while length < room.len() {
        job.check("showing the token")?;
        match stream.read(&mut room[length..]) {
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

/// Writes until the time is over, then waits for the receiver's count.
fn write_all_the_time(crew: &Crew, index: usize, mut stream: &TcpStream, buffer: &[u8]) -> StreamEnd {
    let begun = Instant::now();
    let mut end = StreamEnd::default();
    while end.error.is_none() && !crew.is_over() {
        match stream.write(buffer) {
            Ok(length) => crew.add(index, length),
            Err(error) if is_passing(&error) => {}
            Err(error) => end.error = Some(error),
        }
    }
    end.bytes = crew.bytes_of(index);
    if end.error.is_none() && !crew.is_aborted() {
        match stream.shutdown(Shutdown::Write).and_then(|()| read_count(crew, stream)) {
            Ok(count) => end.confirmed = count,
            Err(error) => end.error = Some(error),
        }
    }
    end.span = Some((begun, Instant::now()));
    end.info = tcp_info::read(stream).unwrap_or_default();
    end
}

fn read_count(crew: &Crew, mut stream: &TcpStream) -> io::Result<Option<u64>> {
    let mut bytes = [0; COUNT_BYTES];
    let mut length = 0;
    while !crew.is_aborted() {
        match stream.read(&mut bytes[length..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => length += more,
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        if length == COUNT_BYTES {
            return Ok(Some(u64::from_be_bytes(bytes)));
        }
    }
    Ok(None)
}
