//! An uplink that goes down and comes back again and again.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_model::finding::Direction;

use super::{Fault, Place, Truth};
use crate::cluster::UPLINK;
use crate::damage::{Damage, Machine};
use crate::error::{LabError, Result};
use crate::namespace::Namespace;
use crate::topology::Topology;

/// A link that flaps has done so before anybody looks.
const EARLIER: usize = 5;
const UP: Duration = Duration::from_millis(350);
const DOWN: Duration = Duration::from_millis(60);

pub(super) struct UplinkFlapping;

impl Fault for UplinkFlapping {
    fn name(&self) -> &'static str {
        "uplink-flapping"
    }

    fn cause(&self) -> &'static str {
        "uplink-flapping"
    }

    fn summary(&self) -> &'static str {
        "the uplink of a hypervisor loses its carrier for 60 ms, twice a second"
    }

    fn outside_the_hosts(&self) -> bool {
        true
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_hypervisors(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, _strength: f64) -> Result<()> {
        let hypervisor = damage.cluster.topology.hypervisor(place.hypervisor()?)?;
        let namespace = Machine::Hypervisor(hypervisor).of(damage.cluster).again()?;
        for _ in 0..EARLIER {
            flap(&namespace)?;
        }
        let flapping = Flapping::start(namespace)?;
        damage.step(
            |_| Ok(()),
            move |_| {
                drop(flapping);
                Ok(())
            },
        )
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::group(self, topology, place, &[Direction::Both])
    }
}

fn flap(namespace: &Namespace) -> Result<()> {
    namespace.ip(&format!("link set {UPLINK} carrier off\n"))?;
    std::thread::sleep(DOWN);
    namespace.ip(&format!("link set {UPLINK} carrier on\n"))
}

/// The thread that does it; ends with the link up when dropped.
struct Flapping {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Flapping {
    fn start(namespace: Namespace) -> Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new().name("uplink-flapping".into()).spawn(move || {
            while stopped.recv_timeout(UP) == Err(RecvTimeoutError::Timeout) {
                // A lab that is going away has no link to flap.
                let _ = flap(&namespace);
            }
        });
        let thread = thread.map_err(LabError::at("starting to flap a link"))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Flapping {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panicked thread flaps nothing more.
            let _ = thread.join();
        }
    }
}
