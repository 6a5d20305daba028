//! Which packet sizes arrive unfragmented: datagrams of each size with "do not fragment", each answered by a
//! small one.
//!
//! What comes in: IP packet sizes and tries per size. What goes out: per size how many were sent and
//! answered, and the path MTU that the kernel named when it, or a router through it, refused. A size that is
//! neither answered nor refused indicates a black hole. All sizes are tried in turn, so that a short
//! disturbance does not hit one size alone. The whole test takes less than 0.7 s also when everything is
//! lost.
//!
//! Not the search of `path_mtu_search.rs`, which sends one size at a time and waits up to 0.5 s for each that
//! vanishes: a survey has thousands of pairs, counts each answer, and needs one direction.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use linerate_model::kind::MtuPlan;
use linerate_model::load::{LoadReport, Role};
use linerate_model::path_mtu::MtuProbe;
use linerate_sys::socket;

use crate::datagram::{self, HEADER_BYTES, Labels};
use crate::job::{Job, LoadError, is_passing};
use crate::load::Load;
use crate::token::Stamp;

/// The load `mtu`.
pub(crate) struct Mtu;

const LABELS: Labels = Labels { request: "mtu probe", answer: "mtu answer", end: "mtu end" };

/// How long the answers of one try are waited for, all sizes together; an answer that comes later still
/// counts.
const TRY_WAIT: Duration = Duration::from_millis(40);

/// How long all tries may wait together.
const ALL_WAIT: Duration = Duration::from_millis(200);

/// How long the first, small exchange may take, which pays for the resolution of addresses.
const FIRST_WAIT: Duration = Duration::from_millis(60);

/// How long answers are waited for after the last try, when some are missing: paths around the world, and
/// ends that wait for a CPU. Without it, such a path would lose what it carries.
const LATE_WAIT: Duration = Duration::from_millis(400);

impl Load for Mtu {
    type Plan = MtuPlan;

    fn run(&self, job: &Job<'_>, plan: &MtuPlan, report: &mut LoadReport) -> Result<(), LoadError> {
        job.whole(report, |report| match job.spec.role {
            Role::Receiver => {
                report.bytes = datagram::answer(job, &LABELS, HEADER_BYTES)?;
                Ok(())
            }
            Role::Sender { peer } => probe(job, peer, plan, report),
        })
    }
}

/// Probes in flight.
struct Prober {
    socket: UdpSocket,
    ipv6: bool,
    request: Stamp,
    answer: Stamp,
    probes: Vec<MtuProbe>,
    /// Which size each datagram had, by sequence number, and whether it was answered; the first is the small
    /// exchange.
    sent: Vec<(Option<usize>, bool)>,
}

fn probe(job: &Job<'_>, peer: SocketAddr, plan: &MtuPlan, report: &mut LoadReport) -> Result<(), LoadError> {
    let mut prober = Prober {
        socket: datagram::connect(job, peer)?,
        ipv6: peer.is_ipv6(),
        request: job.token.stamp(LABELS.request, &[]),
        answer: job.token.stamp(LABELS.answer, &[]),
        probes: (plan.sizes.iter())
            .map(|&bytes| MtuProbe { bytes, sent: 0, answered: 0, refused_mtu: None })
            .collect(),
        sent: Vec::new(),
    };
    socket::set_mtu_probing(&prober.socket, prober.ipv6).map_err(LoadError::io("forbid fragments"))?;
    let result = prober.all_tries(job, plan.tries);
    datagram::farewell(&prober.socket, &job.token.stamp(LABELS.end, &[]), 0);
    report.bytes = prober.probes.iter().map(|probe| u64::from(probe.bytes) * u64::from(probe.answered)).sum();
    let sent: u32 = prober.probes.iter().map(|probe| u32::from(probe.sent)).sum();
    let nothing = prober.probes.iter().all(|probe| probe.answered == 0);
    report.mtu = prober.probes;
    result?;
    if nothing && sent > 0 {
        return Err(LoadError::Unanswered { unanswered: sent, sent });
    }
    Ok(())
}

impl Prober {
    fn all_tries(&mut self, job: &Job<'_>, tries: u8) -> Result<(), LoadError> {
        self.send(None, HEADER_BYTES);
        self.collect(job, FIRST_WAIT)?;
        let wait = TRY_WAIT.min(ALL_WAIT / u32::from(tries.max(1)));
        for _ in 0..tries {
            for index in 0..self.probes.len() {
                if let Some(payload) = self.payload(index) {
                    self.send(Some(index), payload);
                }
            }
            self.collect(job, wait)?;
        }
        self.collect(job, LATE_WAIT)
    }

    /// UDP payload that makes an IP packet of the wanted size; `None` for sizes that cannot carry the header.
    fn payload(&self, index: usize) -> Option<usize> {
        let headers = datagram::outer_bytes(self.ipv6);
        let payload = usize::try_from(self.probes[index].bytes).ok()?.checked_sub(headers)?;
        (HEADER_BYTES..=65_535 - headers).contains(&payload).then_some(payload)
    }

    fn send(&mut self, index: Option<usize>, payload: usize) {
        let datagram = datagram::padded(&self.request, self.sent.len() as u64, 0, payload);
        self.sent.push((index, false));
        let mut result = self.socket.send(&datagram);
        if result.as_ref().is_err_and(socket::is_too_large) {
            // It may be the late answer of a router to an earlier probe, reported at the next call: ask
            // again.
            self.note_refusal();
            result = self.socket.send(&datagram);
        }
        let Some(probe) = index.and_then(|index| self.probes.get_mut(index)) else { return };
        match result {
            Err(error) if socket::is_too_large(&error) => {
                probe.refused_mtu = socket::path_mtu(&self.socket, self.ipv6).ok();
            }
            // Other errors are an unreachable network or a local filter: counted as sent and not answered.
            Ok(_) | Err(_) => probe.sent = probe.sent.saturating_add(1),
        }
    }

    /// A router, or the kernel for it, reported a packet as too large: every size above the path MTU was
    /// refused.
    fn note_refusal(&mut self) {
        let Ok(mtu) = socket::path_mtu(&self.socket, self.ipv6) else { return };
        for probe in &mut self.probes {
            if probe.bytes > mtu && probe.answered == 0 {
                probe.refused_mtu = Some(mtu);
            }
        }
    }

    /// Whether some datagram is neither answered nor refused.
    fn waiting(&self) -> bool {
        let refused = |index: usize| self.probes[index].refused_mtu.is_some();
        self.sent.iter().any(|&(index, answered)| !answered && !index.is_some_and(refused))
    }

    /// Takes answers until all are there or the time is over.
    fn collect(&mut self, job: &Job<'_>, wait: Duration) -> Result<(), LoadError> {
        let begun = Instant::now();
        while self.waiting() {
            job.check("probing the path MTU")?;
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            self.socket.set_read_timeout(Some(left)).map_err(LoadError::io("set a time-out"))?;
            let mut buffer = [0; 256];
            match self.socket.recv(&mut buffer) {
                Ok(length) => self.note_answer(&buffer[..length]),
                Err(error) if socket::is_too_large(&error) => self.note_refusal(),
                Err(error) if is_passing(&error) => {}
                // The receiver is gone, or the network reports so: nothing more will come of this try.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => break,
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn note_answer(&mut self, datagram: &[u8]) {
        let Some((sequence, _)) = datagram::parse(&self.answer, datagram) else { return };
        let Some(entry) = usize::try_from(sequence).ok().and_then(|at| self.sent.get_mut(at)) else { return };
        let (index, answered) = *entry;
        entry.1 = true;
        if let Some(probe) = index.and_then(|index| self.probes.get_mut(index))
            && !answered
        {
            probe.answered = probe.answered.saturating_add(1);
        }
    }
}
