//! A link that goes away for a moment again and again, as with a loose plug or a dying optic.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Fault, Place, Truth};
use crate::damage::Damage;
use crate::error::{LabError, Result};
use crate::namespace::Namespace;
use crate::topology::Topology;

pub(super) struct HostLinkFlap;

const UP: Duration = Duration::from_millis(350);
const DOWN: Duration = Duration::from_millis(60);

/// The thread that moves the plug; ends, with the link up, when dropped.
struct Flapping {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Flapping {
    fn start(hypervisor: Namespace, port: String) -> Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let flap = move || {
            while stopped.recv_timeout(UP) == Err(RecvTimeoutError::Timeout) {
                // A port that cannot be moved is the end of the fault, not of the lab.
                if hypervisor.ip(&format!("link set {port} down\n")).is_err() {
                    break;
                }
                // Asked to stop meanwhile: the link comes up first.
                let _ = stopped.recv_timeout(DOWN);
                if hypervisor.ip(&format!("link set {port} up\n")).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("host-link-flap".into()).spawn(flap);
        let thread = thread.map_err(LabError::at("starting to move a plug"))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Flapping {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to do.
            let _ = thread.join();
        }
    }
}

impl Fault for HostLinkFlap {
    fn name(&self) -> &'static str {
        "host-link-flap"
    }

    fn cause(&self) -> &'static str {
        "host-link-flapping"
    }

    fn summary(&self) -> &'static str {
        "the link of one host goes down for 60 ms about twice a second"
    }

    fn outside_the_hosts(&self) -> bool {
        true
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_hosts(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, _strength: f64) -> Result<()> {
        let (plan, _) = damage.host(place.host()?)?;
        let hypervisor = damage.cluster.hypervisors[plan.hypervisor].again()?;
        let flapping = Flapping::start(hypervisor, plan.port())?;
        damage.step(
            |_| Ok(()),
            move |_| {
                drop(flapping);
                Ok(())
            },
        )
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::host(self, topology, place, &[])
    }
}
