//! A wire in user space between two TAP devices: rate, queue, delay, loss, damage, reordering, doubling,
//! jitter, pauses, black holes.
//!
//! In: two open TAPs and settings for each direction. Out: frames, on time; and a line in the disturbances
//! file whenever they were not. Two threads, one per direction. It never outlives the process, and never
//! blocks on a peer.

pub mod damaged;
pub mod disturbance;
pub mod overlay_join;
pub mod policer;
pub mod queue;
pub mod segment;
pub mod settings;

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use linerate_sys::sched;
use linerate_sys::tap::{FRAME_BYTES_MAX, Tap};

use disturbance::Disturbances;
use overlay_join::OverlayJoin;
use queue::Queue;
use settings::{Settings, Shared};

/// Real-time priority of the wires: above that of the loads, or the loads would make the wires late.
const FIFO_PRIORITY: i32 = 12;
const BATCH_FRAMES: usize = 32;
/// Longest sleep of an idle wire: the time within which it notices that it should end.
const IDLE_NS: u64 = 50_000_000;
/// A wire that delivers later than this disturbs the measurement that it carries.
const LATE_NS: u64 = 8_000_000;

/// A direction, seen from the hypervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toward {
    /// Into the hypervisor: what it receives.
    Hypervisor,
    /// Out of it: what it sends.
    Core,
}

/// A running wire. Dropping it ends its threads and closes its devices.
#[derive(Debug)]
pub struct Wire {
    into_hypervisor: Arc<Shared>,
    into_core: Arc<Shared>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Wire {
    /// Starts to carry frames.
    pub fn start(
        name: &str,
        hypervisor: Tap,
        core: Tap,
        settings: Settings,
        disturbances: &Arc<Disturbances>,
    ) -> io::Result<Self> {
        let ends = [Arc::new(hypervisor), Arc::new(core)];
        let stop = Arc::new(AtomicBool::new(false));
        let mut wire = Self {
            into_hypervisor: Arc::new(Shared::new(settings)),
            into_core: Arc::new(Shared::new(settings)),
            stop: Arc::clone(&stop),
            threads: Vec::new(),
        };
        let both = [(0, 1, &wire.into_core, "out"), (1, 0, &wire.into_hypervisor, "in")];
        let mut threads = Vec::new();
        for (from, to, shared, direction) in both {
            let carrier = Carrier {
                name: format!("wire of {name}, {direction}"),
                from: Arc::clone(&ends[from]),
                to: Arc::clone(&ends[to]),
                shared: Arc::clone(shared),
                stop: Arc::clone(&stop),
                disturbances: Arc::clone(disturbances),
            };
            let label = format!("wire-{direction}-{name}").chars().take(15).collect();
            threads.push(std::thread::Builder::new().name(label).spawn(move || carrier.run())?);
        }
        wire.threads = threads;
        Ok(wire)
    }

    /// The settings of a direction.
    pub fn toward(&self, toward: Toward) -> &Arc<Shared> {
        match toward {
            Toward::Hypervisor => &self.into_hypervisor,
            Toward::Core => &self.into_core,
        }
    }

    /// Asks the threads to end; dropping waits for them. Several wires end together when all are asked first.
    pub fn ask_to_stop(&self) {
        self.stop.store(true, Ordering::Release);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.ask_to_stop();
        for thread in self.threads.drain(..) {
            // A panicked wire has nothing left to clean up.
            let _ = thread.join();
        }
    }
}

/// What one thread needs.
struct Carrier {
    name: String,
    from: Arc<Tap>,
    to: Arc<Tap>,
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    disturbances: Arc<Disturbances>,
}

impl Carrier {
    fn run(&self) {
        // Both only make the wire more exact. Without the right for it the wire still works, and reports when
        // it was late.
        let _ = sched::set_fifo(FIFO_PRIORITY);
        let _ = sched::set_timer_slack(1);
        let mut changes = self.shared.changes();
        let mut settings = self.shared.get();
        let mut queue = Queue::new(settings, sched::monotonic_ns());
        let mut nic = OverlayJoin::default();
        let mut buffer = vec![0; FRAME_BYTES_MAX];
        while !self.stop.load(Ordering::Acquire) {
            if self.shared.changes() != changes {
                changes = self.shared.changes();
                settings = self.shared.get();
                queue.set(settings);
            }
            if self.take_in(&mut queue, &mut buffer, &settings, &mut nic).is_err() {
                return;
            }
            self.deliver(&mut queue);
            let now = sched::monotonic_ns();
            let until = queue.next_due_ns().unwrap_or(u64::MAX).min(now + IDLE_NS);
            if sched::wait_readable([self.from.as_fd()], until).is_err() {
                return;
            }
        }
    }

    fn take_in(
        &self,
        queue: &mut Queue,
        buffer: &mut [u8],
        settings: &Settings,
        nic: &mut OverlayJoin,
    ) -> io::Result<()> {
        for _ in 0..BATCH_FRAMES {
            let bytes = match self.from.read(buffer) {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock || e.kind() == io::ErrorKind::Interrupted => {
                    break;
                }
                // The device is down for a moment while the lab is built, or gone for good when it is taken
                // down.
                Err(e) if e.raw_os_error() == Some(libc::EIO) => break,
                Err(e) => return Err(e),
            };
            let now = sched::monotonic_ns();
            if !(settings.destroys_joined_overlay && nic.destroys(now, &buffer[..bytes])) {
                queue.accept(now, &buffer[..bytes]);
            }
        }
        Ok(())
    }

    fn deliver(&self, queue: &mut Queue) {
        let now = sched::monotonic_ns();
        let mut latest_ns = 0;
        while let Some(parcel) = queue.take_due(now) {
            latest_ns = latest_ns.max(now - parcel.due_ns);
            // A device that refuses a frame (down, out of memory) is a lossy wire, not an error of the lab.
            let _ = self.to.write(&parcel.frame);
        }
        if latest_ns > LATE_NS {
            self.disturbances.late(&self.name, latest_ns);
        }
    }
}
