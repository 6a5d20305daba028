//! Probes between hosts that are watched: a few datagrams a second, each numbered and answered.
//!
//! What comes in: who the partners are. What goes out: what arrived from each of them, what did not, and
//! their RTTs. All datagrams of one direction between two hosts, probes and answers, have one row of numbers,
//! so that the receiver alone knows what was lost on its path. Nothing is sent to an address that was not
//! named, but an answer to a probe that shows the secret; it ends with its handle.

mod counts;
mod datagram;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use linerate_model::probe::{
    FASTER_MS_MAX, PARTNERS_MAX, PER_S_MAX, PROBE_PORTS, ProbePartner, ProbeReport, ProbeSpec,
};

use crate::job::LoadError;
use worker::{Shared, Worker};

/// An answer without a loss comes after this time.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Two answers are at least so far apart: what is lost together is reported together.
const ANSWER_MIN: Duration = Duration::from_millis(500);
/// How soon a stop is noticed.
const STOP_WAIT: Duration = Duration::from_millis(200);

/// Probes that are sent and answered until this is dropped.
pub struct Probing {
    ports: Vec<u16>,
    shared: Arc<Shared>,
}

impl Probing {
    /// Begins to answer.
    ///
    /// # Errors
    /// The namespace cannot be entered, or the address is not there.
    pub fn begin(spec: ProbeSpec) -> Result<Self, LoadError> {
        let shared = Arc::<Shared>::default();
        let (to_us, bound) = mpsc::channel();
        let of_thread = Arc::clone(&shared);
        // A thread of its own: entering a namespace is for good.
        let run = move || {
            let worker = Worker::bind(&spec);
            let ports = worker.as_ref().map(Worker::ports).map_err(|_| ());
            match (worker, ports) {
                (Ok(mut worker), Ok(ports)) => {
                    if to_us.send(Ok(ports)).is_ok() {
                        while !of_thread.ends.load(Ordering::Relaxed) {
                            worker.turn(&of_thread);
                        }
                    }
                }
                (Err(error), _) => drop(to_us.send(Err(error))),
                (Ok(_), Err(())) => {}
            }
        };
        std::thread::Builder::new()
            .name("probes".to_owned())
            .spawn(run)
            .map_err(LoadError::io("start a thread"))?;
        let ended = |_| LoadError::io("start a thread")(std::io::ErrorKind::Other.into());
        let ports = bound.recv().map_err(ended)??;
        Ok(Self { ports, shared })
    }

    /// Whom to probe from now on. Of partners that stay, what was counted stays.
    ///
    /// # Errors
    /// There are too many, or one lacks an address.
    pub fn set_partners(&self, partners: &[ProbePartner]) -> Result<(), LoadError> {
        if partners.len() > PARTNERS_MAX {
            return Err(out_of("number of partners", partners.len() as f64, "0 to 64"));
        }
        if let Some(few) = partners.iter().find(|partner| partner.at.len() != PROBE_PORTS) {
            return Err(out_of("number of ports of a partner", few.at.len() as f64, "4"));
        }
        self.shared.state().set_partners(partners, Instant::now());
        Ok(())
    }

    /// Sends more for some time.
    ///
    /// # Errors
    /// It is too much, or for too long.
    pub fn faster(&self, per_s: f64, for_ms: u32) -> Result<(), LoadError> {
        if !(1.0..=PER_S_MAX).contains(&per_s) {
            return Err(out_of("number of probes a second", per_s, "1 to 10"));
        }
        if for_ms > FASTER_MS_MAX {
            return Err(out_of("time of more probes in ms", f64::from(for_ms), "0 to 120000"));
        }
        self.shared.state().faster(per_s, Instant::now() + Duration::from_millis(for_ms.into()));
        Ok(())
    }

    /// What was counted; waits until something was lost since the last report, at most ten seconds.
    pub fn report(&self, stop: &AtomicBool) -> ProbeReport {
        let begun = Instant::now();
        let mut state = self.shared.state();
        while begun.elapsed() < ANSWER_MAX && !stop.load(Ordering::Relaxed) {
            if state.has_lost() && begun.elapsed() >= ANSWER_MIN {
                break;
            }
            state = self
                .shared
                .lost
                .wait_timeout(state, STOP_WAIT)
                .map_or_else(|error| error.into_inner().0, |waited| waited.0);
        }
        ProbeReport { ports: self.ports.clone(), partners: state.report() }
    }

    /// Ports on which it answers.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
    }
}

fn out_of(what: &'static str, value: f64, limit: &'static str) -> LoadError {
    LoadError::Spec { what, value, limit }
}

#[cfg(test)]
mod tests;
