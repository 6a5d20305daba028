//! Looks at the receive offload of every uplink: switched on, the wire behind it starts to behave like the NIC of the
//! casebook; switched off, by whomever, it stops.
//!
//! In: namespaces and wires. Out: a setting of the wires. It never switches anything on a device.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_sys::offload::{Ethtool, Switch};

use crate::cluster::UPLINK;
use crate::error::{LabError, Result};
use crate::namespace::Namespace;
use crate::wire::settings::Shared;
use crate::wire::{Toward, Wire};

const PERIOD: Duration = Duration::from_millis(100);

/// The watching thread; ends when dropped.
#[derive(Debug)]
pub struct NicWatch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl NicWatch {
    /// Watches the uplink of each hypervisor for the wire at the same index.
    pub fn start(hypervisors: &[Namespace], wires: &[Wire]) -> Result<Self> {
        let mut watched: Vec<(Ethtool, Arc<Shared>)> = Vec::new();
        for (hypervisor, wire) in hypervisors.iter().zip(wires) {
            let ethtool = hypervisor
                .run(Ethtool::open)?
                .map_err(LabError::at(format!("opening a socket in {}", hypervisor.name)))?;
            watched.push((ethtool, Arc::clone(wire.toward(Toward::Hypervisor))));
        }
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("nic-watch".into())
            .spawn(move || {
                while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                    look(&watched);
                }
            })
            .map_err(LabError::at("starting the NIC watch"))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

fn look(watched: &[(Ethtool, Arc<Shared>)]) {
    for (ethtool, wire) in watched {
        // A device that is going away has no switch to follow.
        let Ok(on) = ethtool.get(UPLINK, Switch::Gro) else { continue };
        if wire.get().destroys_joined_overlay != on {
            wire.update(|s| s.destroys_joined_overlay = on);
        }
    }
}

impl Drop for NicWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panicked watcher has nothing left to do.
            let _ = thread.join();
        }
    }
}
