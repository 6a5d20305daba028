//! The largest packet that a path takes, searched in both directions in one test: `linerate measure mtu`. A
//! survey probes a few sizes instead (`path_mtu_probe.rs`).
//!
//! What comes in: the smallest and the largest IP packet to try. What goes out: per direction the largest
//! size that arrived and the smallest that did not, and whether the kernel refused it (it knows the path MTU)
//! or it vanished without an error: a black hole. Packets forbid fragments. The sender asks for each probe of
//! the reverse direction, so that the receiver sends only to the holder of the token, and only as many as
//! were asked for.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use linerate_model::kind::PathMtuPlan;
use linerate_model::load::{LoadReport, Role};
use linerate_model::path_mtu::{MtuProbe, PathMtu, SizeLimit};
use linerate_sys::socket;

use crate::datagram;
use crate::job::{FIRST_CONTACT, Job, LoadError, SLICE, is_passing};
use crate::load::Load;
use crate::token::Stamp;

/// The load `path-mtu`.
pub(crate) struct Search;

/// A forward probe, its small answer, the request for a reverse probe, the probe, its refusal, the end
/// message.
const THERE: &str = "path-mtu there";
const ARRIVED: &str = "path-mtu arrived";
const REQUEST: &str = "path-mtu request";
const BACK: &str = "path-mtu back";
const REFUSED: &str = "path-mtu refused";
const END: &str = "path-mtu end";

/// Limits of the wait for an answer, and how many RTTs it is. The least is for ends that wait for a CPU: a
/// late answer would count as a black hole. Each size that vanishes costs it once.
const WAIT_MIN: Duration = Duration::from_millis(300);
const WAIT_MAX: Duration = Duration::from_millis(500);
const WAIT_TRIPS: u32 = 4;
/// The first exchange pays for the resolution of addresses.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const FIRST_TRIES: usize = 4;
/// A receiver ends after so long without a message from the sender. On a path that lets little through it
/// gets no probe while the sender halves the size: 17 sizes, each with the longest wait.
const IDLE: Duration = Duration::from_secs(10);
const _: () = assert!(IDLE.as_millis() > 17 * WAIT_MAX.as_millis());
/// Reverse probes that a receiver sends at most: 17 sizes of at most 8 tries.
const BACK_MAX: u32 = 256;

impl Load for Search {
    type Plan = PathMtuPlan;

    fn run(&self, job: &Job<'_>, plan: &PathMtuPlan, report: &mut LoadReport) -> Result<(), LoadError> {
        job.whole(report, |report| match job.spec.role {
            Role::Receiver => answer(job, report),
            Role::Sender { peer } => search(job, *plan, peer, report),
        })
    }
}

/// A probe that makes an IP packet of this size.
fn sized(stamp: &Stamp, sequence: u64, argument: u64, bytes: u32, ipv6: bool) -> Vec<u8> {
    datagram::padded(stamp, sequence, argument, (bytes as usize).saturating_sub(datagram::outer_bytes(ipv6)))
}

/// Sends a datagram; the path MTU that the kernel knows when it refused for its size.
fn send_sized(socket: &UdpSocket, datagram: &[u8], bytes: u32, ipv6: bool) -> Option<u32> {
    for _ in 0..2 {
        match socket.send(datagram) {
            Err(error) if socket::is_too_large(&error) => {
                // It may be the late answer of a router to an earlier, larger probe: then the second try goes
                // out.
                if let Some(mtu) = socket::path_mtu(socket, ipv6).ok().filter(|mtu| *mtu < bytes) {
                    return Some(mtu);
                }
            }
            // Other errors are an unreachable network or a local filter: nothing will be answered.
            _ => return None,
        }
    }
    None
}

fn answer(job: &Job<'_>, report: &mut LoadReport) -> Result<(), LoadError> {
    let stamps = [THERE, ARRIVED, REQUEST, BACK, REFUSED, END].map(|label| job.token.stamp(label, &[]));
    let ipv6 = matches!(job.spec.bind, IpAddr::V6(_));
    let socket = datagram::bind(job, None)?;
    socket::set_mtu_probing(&socket, ipv6).map_err(LoadError::io("forbid fragments"))?;
    let mut strangers = 0;
    let result = answer_probes(job, &socket, stamps, report, &mut strangers);
    job.met_datagrams(strangers, &socket);
    result
}

fn answer_probes(
    job: &Job<'_>,
    socket: &UdpSocket,
    [there, arrived, request, back, refused, end]: [Stamp; 6],
    report: &mut LoadReport,
    strangers: &mut u64,
) -> Result<(), LoadError> {
    let ipv6 = matches!(job.spec.bind, IpAddr::V6(_));
    let mut buffer = vec![0; 65_536];
    let (mut known, mut sent_back) = (false, 0);
    let mut limit = Instant::now() + FIRST_CONTACT;
    while Instant::now() < limit {
        job.check("answering")?;
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            // A router's error about a reverse probe, or nothing.
            Err(error) if is_passing(&error) || socket::is_too_large(&error) || known => continue,
            Err(source) => return Err(LoadError::Io { what: "receive", source }),
        };
        if known && datagram::parse(&end, &buffer[..length]).is_some() {
            return Ok(());
        }
        let probe = datagram::parse(&there, &buffer[..length]);
        let asked = datagram::parse(&request, &buffer[..length]);
        let Some((sequence, argument)) = probe.or(asked) else {
            *strangers += 1;
            continue;
        };
        if !known {
            socket.connect(from).map_err(LoadError::io("connect to the sender"))?;
            known = true;
        }
        limit = Instant::now() + IDLE;
        report.bytes += length as u64;
        if probe.is_some() {
            // A lost answer is one more try.
            let _ = socket.send(&datagram::header(&arrived, sequence, length as u64));
            continue;
        }
        sent_back += 1;
        if sent_back > BACK_MAX {
            continue;
        }
        let bytes = argument.min(65_535) as u32;
        let probe = sized(&back, sequence, argument, bytes, ipv6);
        if let Some(mtu) = send_sized(socket, &probe, bytes, ipv6) {
            let _ = socket.send(&datagram::header(&refused, sequence, mtu.into()));
        }
    }
    if known {
        return Ok(());
    }
    Err(LoadError::NobodyCame { waited_ms: FIRST_CONTACT.as_millis(), got: 0, wanted: 1 })
}

/// Probes in flight.
struct Prober<'a> {
    job: &'a Job<'a>,
    plan: PathMtuPlan,
    socket: UdpSocket,
    ipv6: bool,
    there: Stamp,
    request: Stamp,
    /// What answers a probe of either direction, and the refusal of one.
    arrived: Stamp,
    back: Stamp,
    refused: Stamp,
    sequence: u64,
    wait: Duration,
    buffer: Vec<u8>,
}

fn search(
    job: &Job<'_>,
    plan: PathMtuPlan,
    peer: SocketAddr,
    report: &mut LoadReport,
) -> Result<(), LoadError> {
    let [there, arrived, request, back, refused] =
        [THERE, ARRIVED, REQUEST, BACK, REFUSED].map(|label| job.token.stamp(label, &[]));
    let mut prober = Prober {
        job,
        plan,
        socket: datagram::connect(job, peer)?,
        ipv6: peer.is_ipv6(),
        there,
        request,
        arrived,
        back,
        refused,
        sequence: 0,
        wait: FIRST_WAIT,
        buffer: vec![0; 65_536],
    };
    socket::set_mtu_probing(&prober.socket, prober.ipv6).map_err(LoadError::io("forbid fragments"))?;
    let result = prober.both(report);
    datagram::farewell(&prober.socket, &job.token.stamp(END, &[]), 0);
    result
}

impl Prober<'_> {
    fn both(&mut self, report: &mut LoadReport) -> Result<(), LoadError> {
        self.first_contact()?;
        let found = report.path_mtu.insert(PathMtu::default());
        self.search(true, &mut found.forward)?;
        self.search(false, &mut found.backward)?;
        report.bytes = [&found.forward, &found.backward]
            .iter()
            .flat_map(|direction| &direction.probes)
            .map(|probe| u64::from(probe.bytes) * u64::from(probe.answered))
            .sum();
        Ok(())
    }

    /// A small exchange, which measures how long answers take.
    fn first_contact(&mut self) -> Result<(), LoadError> {
        for attempt in 1..=FIRST_TRIES {
            let begun = Instant::now();
            let probe = self.probe(true, 0, 1)?;
            if probe.answered > 0 {
                // A second one, for the first paid for the resolution of addresses.
                let again = Instant::now();
                let second = self.probe(true, 0, 1)?;
                let trip = if second.answered > 0 { again.elapsed() } else { begun.elapsed() };
                self.wait = (trip * WAIT_TRIPS).clamp(WAIT_MIN, WAIT_MAX);
                return Ok(());
            }
            if attempt == FIRST_TRIES {
                let tried = FIRST_TRIES as u32;
                return Err(LoadError::Unanswered { unanswered: tried, sent: tried });
            }
        }
        Ok(())
    }

    /// The largest size that passes and the smallest that does not.
    fn search(&mut self, there: bool, limit: &mut SizeLimit) -> Result<(), LoadError> {
        let PathMtuPlan { least_bytes, most_bytes, tries } = self.plan;
        let (mut passes, mut fails) = (None, None);
        let mut next = Some(most_bytes);
        while let Some(bytes) = next {
            let probe = self.probe(there, bytes, tries)?;
            let mut hint = None;
            if probe.answered > 0 {
                passes = passes.max(Some(bytes));
            } else {
                fails = Some(fails.map_or(bytes, |least: u32| least.min(bytes)));
                limit.refused_mtu = probe.refused_mtu.or(limit.refused_mtu);
                hint = probe.refused_mtu;
            }
            limit.probes.push(probe);
            let (low, high) = (passes.unwrap_or(least_bytes - 1), fails.unwrap_or(most_bytes + 1));
            next = match hint.filter(|mtu| *mtu > low && *mtu < high) {
                _ if high <= low + 1 => None,
                // The kernel named a size: it saves most of the search.
                Some(mtu) => Some(mtu),
                // What every path takes comes second: without it the search is senseless.
                None if passes.is_none() => Some(least_bytes),
                // A path that refuses names its limit: the size beyond it is worth a try before halving.
                None if limit.refused_mtu == Some(low) => Some(low + 1),
                None => Some(low + (high - low) / 2),
            };
            if passes.is_none() && fails == Some(least_bytes) {
                next = None;
            }
        }
        limit.probes.sort_by_key(|probe| probe.bytes);
        (limit.largest_passing, limit.smallest_failing) = (passes, fails);
        Ok(())
    }

    /// Tries one size in one direction: all tries at once, then the wait. Size 0 is the smallest datagram of
    /// the test.
    fn probe(&mut self, there: bool, bytes: u32, tries: u8) -> Result<MtuProbe, LoadError> {
        let mut probe = MtuProbe { bytes, sent: 0, answered: 0, refused_mtu: None };
        let first = self.sequence + 1;
        for _ in 0..tries {
            self.sequence += 1;
            let refused = if there {
                let datagram = sized(&self.there, self.sequence, 0, bytes, self.ipv6);
                send_sized(&self.socket, &datagram, bytes, self.ipv6)
            } else {
                let request = datagram::header(&self.request, self.sequence, bytes.into());
                let _ = self.socket.send(&request);
                None
            };
            if refused.is_some() {
                probe.refused_mtu = refused;
                return Ok(probe);
            }
            probe.sent += 1;
        }
        let begun = Instant::now();
        while probe.answered < probe.sent && probe.refused_mtu.is_none() {
            self.job.check("searching the path MTU")?;
            let left = self.wait.saturating_sub(begun.elapsed());
            // One answer is enough: what is late to others is passed over.
            if left.is_zero() || probe.answered > 0 {
                break;
            }
            self.listen(there, first, left.min(SLICE), &mut probe)?;
        }
        Ok(probe)
    }

    fn listen(
        &mut self,
        there: bool,
        first: u64,
        wait: Duration,
        probe: &mut MtuProbe,
    ) -> Result<(), LoadError> {
        self.socket.set_read_timeout(Some(wait)).map_err(LoadError::io("set a time-out"))?;
        let length = match self.socket.recv(&mut self.buffer) {
            Ok(length) => length,
            Err(error) if socket::is_too_large(&error) && there => {
                // A router reported it.
                let known = socket::path_mtu(&self.socket, self.ipv6).ok();
                probe.refused_mtu = known.filter(|mtu| *mtu < probe.bytes);
                return Ok(());
            }
            // Nothing yet, or the echo of a datagram that was not received.
            Err(_) => return Ok(()),
        };
        let datagram = &self.buffer[..length];
        let expected = if there { &self.arrived } else { &self.back };
        if datagram::parse(expected, datagram).is_some_and(|(sequence, _)| sequence >= first) {
            probe.answered += 1;
        } else if !there
            && let Some((sequence, mtu)) = datagram::parse(&self.refused, datagram)
            && sequence >= first
        {
            probe.refused_mtu = u32::try_from(mtu).ok();
        }
        Ok(())
    }
}
