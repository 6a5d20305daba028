//! What a path between two hosts carries, measured by plain sockets: whether something that was drawn does
//! anything at all.
//!
//! In: a cluster, two hosts. Out: rate, loss, RTT and largest datagram of each direction and layer, and how
//! much worse they are than before. It knows nothing of `linerate`.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use linerate_sys::socket::set_mtu_probing;

use crate::cluster::Cluster;
use crate::error::{LabError, Result};
use crate::namespace::Namespace;
use crate::topology::HostPlan;

/// What of a transfer comes first is slow start.
const RAMP: Duration = Duration::from_millis(200);
/// What is counted after it.
const COUNTED: Duration = Duration::from_millis(500);
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Datagrams of a test, and how many are sent at a time.
const DATAGRAMS: usize = 600;
const BATCH: usize = 6;
const BATCH_EVERY: Duration = Duration::from_millis(6);
/// Payload of half of the datagrams; the other half is small.
const LARGE: usize = 1300;
const SMALL: usize = 100;
/// Payloads of datagrams that no machine may split: of a full packet, and of steps below it. The largest go
/// first, while no queue is full.
const SIZES: [usize; 19] = [
    1472, 1450, 1400, 1350, 1300, 1250, 1200, 1150, 1100, 1050, 1000, 950, 900, 850, 800, 750, 700, 650, 600,
];
/// How often each is sent: one may be lost.
const PER_SIZE: usize = 3;
/// Longest wait for the next datagram.
const NEXT_WITHIN: Duration = Duration::from_millis(250);
/// Questions and answers of a test.
const RTT_SAMPLES: usize = 25;

/// One direction of one layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathState {
    /// Bytes per second of one TCP connection; 0 where none is made.
    pub rate: f64,
    /// Share of datagrams that are lost.
    pub loss: f64,
    /// Median of the RTTs, seconds.
    pub rtt: f64,
    /// Payload of the largest datagram, of some sizes, that arrives unsplit, bytes; 0 where none does.
    pub largest: usize,
}

/// How strong an effect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// No value is worse than by its noise.
    None,
    /// Neither.
    Unclear,
    /// One value at least is far worse.
    Clear,
}

impl PathState {
    /// How much worse this is than before.
    fn against(&self, before: &Self) -> Strength {
        let rate = self.rate / before.rate.max(1.0);
        let later = self.rtt - before.rtt;
        // Full packets that are lost harm, although streams that learn of it are as fast.
        let is_smaller = self.largest < before.largest;
        let is_clear = rate < 0.7 || self.loss > before.loss + 0.008 || later > 0.002 || is_smaller;
        let is_none = rate > 0.88 && self.loss <= before.loss + 0.002 && later < 0.000_7;
        match (is_clear, is_none) {
            (true, _) => Strength::Clear,
            (_, true) => Strength::None,
            _ => Strength::Unclear,
        }
    }
}

/// Both directions of both layers between two hosts.
///
/// # Errors
/// There is no such host, or a namespace cannot be entered.
pub fn measured(cluster: &Cluster, ends: &(String, String)) -> Result<Vec<PathState>> {
    let (one, other) = (cluster.host(&ends.0)?, cluster.host(&ends.1)?);
    let address = |plan: &HostPlan| [IpAddr::V4(plan.underlay()), IpAddr::V4(plan.overlay())];
    let mut states = Vec::new();
    for (from, to) in [(one, other), (other, one)] {
        for address in address(&to.0) {
            states.push(PathState {
                rate: rate(&from.1, &to.1, address)?,
                loss: loss(&from.1, &to.1, address)?,
                rtt: rtt(&from.1, &to.1, address)?,
                largest: largest(&from.1, &to.1, address)?,
            });
        }
    }
    Ok(states)
}

/// The better of two measurements of the same paths, value by value.
pub fn better(one: &[PathState], other: &[PathState]) -> Vec<PathState> {
    let best = |(one, other): (&PathState, &PathState)| PathState {
        rate: one.rate.max(other.rate),
        loss: one.loss.min(other.loss),
        rtt: one.rtt.min(other.rtt),
        largest: one.largest.max(other.largest),
    };
    one.iter().zip(other).map(best).collect()
}

/// The strongest effect of all.
pub fn strength(before: &[PathState], after: &[PathState]) -> Strength {
    after.iter().zip(before).map(|(after, before)| after.against(before)).max().unwrap_or(Strength::None)
}

/// A connection from one to the other; `None` where none is made in time. A socket stays in the namespace in
/// which it was made.
fn connected(from: &Namespace, to: &Namespace, address: IpAddr) -> Result<Option<(TcpStream, TcpStream)>> {
    let listener = to.run(|| TcpListener::bind((address, 0)))?.map_err(step("listening"))?;
    let at = listener.local_addr().map_err(step("listening"))?;
    let Ok(client) = from.run(|| TcpStream::connect_timeout(&at, PATIENCE))? else { return Ok(None) };
    listener.set_nonblocking(true).map_err(step("accepting"))?;
    let begun = Instant::now();
    // The client may be connected before the last part of the handshake has arrived.
    while begun.elapsed() < PATIENCE {
        if let Ok((server, _)) = listener.accept() {
            server.set_nonblocking(false).map_err(step("accepting"))?;
            for side in [&client, &server] {
                side.set_read_timeout(Some(PATIENCE)).map_err(step("a time limit"))?;
                side.set_write_timeout(Some(PATIENCE)).map_err(step("a time limit"))?;
                side.set_nodelay(true).map_err(step("a time limit"))?;
            }
            return Ok(Some((client, server)));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(None)
}

fn step(what: &'static str) -> impl FnOnce(std::io::Error) -> LabError {
    LabError::at(format!("measuring an effect: {what}"))
}

fn rate(from: &Namespace, to: &Namespace, address: IpAddr) -> Result<f64> {
    let Some((mut client, mut server)) = connected(from, to, address)? else { return Ok(0.0) };
    let begun = Instant::now();
    let sender = thread::spawn(move || {
        let piece = vec![0; 32 << 10];
        while begun.elapsed() < RAMP + COUNTED && client.write_all(&piece).is_ok() {}
    });
    let (mut piece, mut bytes) = (vec![0; 64 << 10], 0);
    while begun.elapsed() < RAMP + COUNTED {
        match server.read(&mut piece) {
            Ok(count) if count > 0 => bytes += if begun.elapsed() > RAMP { count } else { 0 },
            _ => break,
        }
    }
    drop(server);
    // It ends by its time limit.
    let _ = sender.join();
    Ok(bytes as f64 / (COUNTED).as_secs_f64())
}

/// Sockets for datagrams from one to the other, and where they go.
fn datagrams(
    from: &Namespace,
    to: &Namespace,
    address: IpAddr,
) -> Result<(UdpSocket, UdpSocket, SocketAddr)> {
    let server = to.run(|| UdpSocket::bind((address, 0)))?.map_err(step("a datagram socket"))?;
    let at = server.local_addr().map_err(step("a datagram socket"))?;
    let any = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);
    let client = from.run(|| UdpSocket::bind(any))?.map_err(step("a datagram socket"))?;
    server.set_read_timeout(Some(NEXT_WITHIN)).map_err(step("a time limit"))?;
    Ok((client, server, at))
}

fn largest(from: &Namespace, to: &Namespace, address: IpAddr) -> Result<usize> {
    let (client, server, at) = datagrams(from, to, address)?;
    set_mtu_probing(&client, false).map_err(step("a datagram socket"))?;
    for size in SIZES {
        for _ in 0..PER_SIZE {
            // Refused because of its size is lost as well.
            let _ = client.send_to(&vec![0; size], at);
        }
    }
    let (mut piece, mut largest) = ([0; 2048], 0);
    while let Ok(size) = server.recv(&mut piece) {
        largest = largest.max(size);
    }
    Ok(largest)
}

fn loss(from: &Namespace, to: &Namespace, address: IpAddr) -> Result<f64> {
    let (client, server, at) = datagrams(from, to, address)?;
    let sender = thread::spawn(move || {
        for number in 0..DATAGRAMS {
            let size = if number % 2 == 0 { LARGE } else { SMALL };
            // Refused or dropped at once is lost as well.
            let _ = client.send_to(&vec![0; size], at);
            if number % BATCH == 0 {
                thread::sleep(BATCH_EVERY);
            }
        }
    });
    let (mut piece, mut arrived) = ([0; 2048], 0_usize);
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && arrived < DATAGRAMS {
        match server.recv(&mut piece) {
            Ok(_) => arrived += 1,
            Err(_) if sender.is_finished() => break,
            Err(_) => {}
        }
    }
    let _ = sender.join();
    Ok(1.0 - arrived as f64 / DATAGRAMS as f64)
}

fn rtt(from: &Namespace, to: &Namespace, address: IpAddr) -> Result<f64> {
    let Some((mut client, mut server)) = connected(from, to, address)? else {
        return Ok(PATIENCE.as_secs_f64());
    };
    let echo = thread::spawn(move || {
        let mut byte = [0];
        while server.read(&mut byte).is_ok_and(|n| n == 1) && server.write_all(&byte).is_ok() {}
    });
    let mut times = Vec::new();
    for _ in 0..RTT_SAMPLES {
        let (begun, mut byte) = (Instant::now(), [0]);
        if client.write_all(&byte).is_err() || !client.read(&mut byte).is_ok_and(|n| n == 1) {
            break;
        }
        times.push(begun.elapsed().as_secs_f64());
    }
    drop(client);
    let _ = echo.join();
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or(PATIENCE.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_worse_is_clear_and_noise_is_none() {
        let good = PathState { rate: 2e7, loss: 0.0, rtt: 0.005, largest: 1472 };
        let at = |rate, loss, rtt| PathState { rate, loss, rtt, ..good };
        for (state, expected) in [
            (at(1.9e7, 0.0, 0.0051), Strength::None),
            (at(1.6e7, 0.0, 0.005), Strength::Unclear),
            (at(1e7, 0.0, 0.005), Strength::Clear),
            (at(2e7, 0.02, 0.005), Strength::Clear),
            (at(2e7, 0.0, 0.008), Strength::Clear),
            (at(0.0, 1.0, 1.5), Strength::Clear),
            (PathState { largest: 1350, ..good }, Strength::Clear),
        ] {
            assert_eq!(strength(&[good], &[state]), expected, "{state:?}");
        }
    }

    #[test]
    fn what_is_bad_once_has_no_effect() {
        let good = PathState { rate: 2e7, loss: 0.0, rtt: 0.005, largest: 1472 };
        let (slow, late) = (PathState { rate: 1e7, ..good }, PathState { rtt: 0.009, ..good });
        assert_eq!(strength(&[good], &better(&[slow], &[late])), Strength::None);
        assert_eq!(strength(&[good], &better(&[slow], &[slow])), Strength::Clear);
    }
}
