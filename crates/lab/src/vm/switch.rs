//! The switch between guests: learned addresses, and a link to each guest that can be slow, lossy or cut in
//! either direction.
//!
//! In: Ethernet frames as datagrams of qemu, one unix socket per port. Out: the same, at the time that the
//! link's settings want. One thread. It never blocks on a guest: one that does not read loses frames, as with
//! a real switch.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use linerate_sys::sched;
use linerate_sys::tap::{FRAME_BYTES_MAX, VNET_HEADER_BYTES};

use crate::error::{LabError, Result};
use crate::wire::queue::Queue;
use crate::wire::settings::{Settings, Shared};

type Mac = [u8; 6];
/// Multicast bit of the first byte of an address.
const GROUP_BIT: u8 = 1;

const BATCH_FRAMES: usize = 32;
const IDLE_NS: u64 = 50_000_000;
/// Retry interval when a guest's socket is full.
const FULL_AGAIN_NS: u64 = 200_000;
/// Frames that wait for a guest that does not read; more are dropped.
const WAITING_MAX: usize = 512;

/// Direction of traffic on a link, as seen from the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum TrafficDirection {
    /// Received by the guest.
    In,
    /// Sent by the guest.
    Out,
    /// Both directions.
    Both,
}

/// The link of a guest.
#[derive(Debug, Clone)]
pub struct GuestLink {
    into_guest: Arc<Shared>,
    out_of_guest: Arc<Shared>,
}

impl GuestLink {
    /// Changes one or both directions, under traffic.
    pub fn update(&self, direction: TrafficDirection, change: impl Fn(&mut Settings)) {
        if direction != TrafficDirection::Out {
            self.into_guest.update(&change);
        }
        if direction != TrafficDirection::In {
            self.out_of_guest.update(&change);
        }
    }

    /// The settings toward the guest and away from it.
    pub fn settings(&self) -> (Settings, Settings) {
        (self.into_guest.get(), self.out_of_guest.get())
    }
}

/// Paths of the two ends of a port: ours, and that of qemu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The switch reads here.
    pub switch: PathBuf,
    /// The guest's qemu reads here.
    pub guest: PathBuf,
}

/// A running switch.
#[derive(Debug)]
pub struct VirtualSwitch {
    ports: Vec<Port>,
    links: Vec<GuestLink>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl VirtualSwitch {
    /// Starts a switch with so many ports, whose sockets lie in a folder.
    ///
    /// # Errors
    /// The sockets cannot be made.
    pub fn start(count: usize, folder: &Path) -> Result<Self> {
        let mut switch = Self {
            ports: Vec::new(),
            links: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            thread: None,
        };
        let mut ends = Vec::new();
        for number in 0..count {
            let path = |end: &str| folder.join(format!("port-{number}-{end}"));
            let port = Port { switch: path("switch"), guest: path("guest") };
            let step = || format!("opening port {}", port.switch.display());
            let socket = UnixDatagram::bind(&port.switch).map_err(LabError::at(step()))?;
            socket.set_nonblocking(true).map_err(LabError::at(step()))?;
            let link = GuestLink { into_guest: Arc::default(), out_of_guest: Arc::default() };
            ends.push(End::new(socket, port.guest.clone(), &link, number as u64));
            switch.links.push(link);
            switch.ports.push(port);
        }
        let stop = Arc::clone(&switch.stop);
        let thread = std::thread::Builder::new().name("switch".into()).spawn(move || run(ends, &stop));
        switch.thread = Some(thread.map_err(LabError::at("starting the switch"))?);
        Ok(switch)
    }

    /// The sockets of a port.
    pub fn port(&self, number: usize) -> &Port {
        &self.ports[number]
    }

    /// The link of a port.
    pub fn link(&self, number: usize) -> &GuestLink {
        &self.links[number]
    }
}

impl Drop for VirtualSwitch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panicked switch has nothing left to clean up.
            let _ = thread.join();
        }
    }
}

/// One direction: the frames in flight, following its settings.
struct Lane {
    shared: Arc<Shared>,
    changes: u64,
    queue: Queue,
}

impl Lane {
    fn new(shared: &Arc<Shared>, seed: u64) -> Self {
        Self { shared: Arc::clone(shared), changes: shared.changes(), queue: Queue::new(shared.get(), seed) }
    }

    fn follow(&mut self) {
        if self.shared.changes() != self.changes {
            self.changes = self.shared.changes();
            self.queue.set(self.shared.get());
        }
    }

    /// Accepts a frame by the current settings, not by those of the last clock reading.
    fn accept(&mut self, now: u64, frame: &[u8]) {
        self.follow();
        self.queue.accept(now, frame);
    }
}

/// A port from the inside.
struct End {
    socket: UnixDatagram,
    guest: PathBuf,
    from: Lane,
    to: Lane,
    /// Due, but the guest's socket was full.
    waiting: VecDeque<Vec<u8>>,
}

impl End {
    fn new(socket: UnixDatagram, guest: PathBuf, link: &GuestLink, seed: u64) -> Self {
        let (from, to) = (Lane::new(&link.out_of_guest, 2 * seed), Lane::new(&link.into_guest, 2 * seed + 1));
        Self { socket, guest, from, to, waiting: VecDeque::new() }
    }

    /// Takes what the guest sent. `buffer` begins with an empty header of the kind that queues expect.
    fn take_in(&mut self, now: u64, buffer: &mut [u8]) {
        self.from.follow();
        self.to.follow();
        for _ in 0..BATCH_FRAMES {
            let Ok(length) = self.socket.recv(&mut buffer[VNET_HEADER_BYTES..]) else { return };
            // An Ethernet header is the least that can be a frame.
            if length >= 14 {
                self.from.accept(now, &buffer[..VNET_HEADER_BYTES + length]);
            }
        }
    }

    /// Hands over what is due; frames for a guest that is off vanish.
    fn deliver(&mut self, now: u64) {
        while let Some(parcel) = self.to.queue.take_due(now) {
            if self.waiting.len() < WAITING_MAX {
                self.waiting.push_back(parcel.frame);
            }
        }
        while let Some(frame) = self.waiting.front() {
            let sent = self.socket.send_to(frame.get(VNET_HEADER_BYTES..).unwrap_or_default(), &self.guest);
            if sent.is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock) {
                return;
            }
            self.waiting.pop_front();
        }
    }

    fn next_due_ns(&self, now: u64) -> u64 {
        let full = if self.waiting.is_empty() { u64::MAX } else { now + FULL_AGAIN_NS };
        [self.from.queue.next_due_ns(), self.to.queue.next_due_ns()]
            .into_iter()
            .flatten()
            .fold(full, u64::min)
    }
}

fn run(mut ends: Vec<End>, stop: &AtomicBool) {
    // Only makes delays more exact.
    let _ = sched::set_timer_slack(1);
    let mut table: BTreeMap<Mac, usize> = BTreeMap::new();
    let mut buffer = vec![0; FRAME_BYTES_MAX];
    while !stop.load(Ordering::Acquire) {
        let now = sched::monotonic_ns();
        for end in &mut ends {
            end.take_in(now, &mut buffer);
        }
        for from in 0..ends.len() {
            while let Some(parcel) = ends[from].from.queue.take_due(now) {
                for to in targets(&mut table, from, ends.len(), &parcel.frame[VNET_HEADER_BYTES..]) {
                    ends[to].to.accept(now, &parcel.frame);
                }
            }
        }
        for end in &mut ends {
            end.deliver(now);
        }
        let until = ends.iter().map(|end| end.next_due_ns(now)).fold(now + IDLE_NS, u64::min);
        let descriptors: Vec<_> = ends.iter().map(|end| end.socket.as_fd()).collect();
        if sched::wait_any_readable(&descriptors, until).is_err() {
            return;
        }
    }
}

/// Ports that a frame goes to; learns where its sender is.
fn targets(table: &mut BTreeMap<Mac, usize>, from: usize, ports: usize, frame: &[u8]) -> Vec<usize> {
    let (Some(to), Some(sender)) = (mac(frame, 0), mac(frame, 6)) else { return Vec::new() };
    if sender[0] & GROUP_BIT == 0 {
        table.insert(sender, from);
    }
    match table.get(&to).filter(|_| to[0] & GROUP_BIT == 0) {
        Some(port) => {
            if *port == from {
                Vec::new()
            } else {
                vec![*port]
            }
        }
        None => (0..ports).filter(|port| *port != from).collect(),
    }
}

fn mac(frame: &[u8], at: usize) -> Option<Mac> {
    frame.get(at..at + 6)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::{Duration, Instant};

    use super::*;

    fn frame(to: u8, from: u8, mark: u8) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5];
        frame.resize(60, mark);
        frame
    }

    struct Scene {
        switch: VirtualSwitch,
        guests: Vec<UnixDatagram>,
        folder: PathBuf,
    }

    impl Scene {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("linerate-switch-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).unwrap();
            let switch = VirtualSwitch::start(3, &folder).unwrap();
            let open = |n| {
                let socket = UnixDatagram::bind(&switch.port(n).guest).unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                socket
            };
            let guests = (0..3).map(open).collect();
            Self { switch, guests, folder }
        }

        fn send(&self, from: u8, to: u8, mark: u8) {
            let port = self.switch.port(usize::from(from));
            self.guests[usize::from(from)].send_to(&frame(to, from, mark), &port.switch).unwrap();
        }

        fn mark(&self, at: usize) -> u8 {
            let mut buffer = [0; 100];
            assert_eq!(self.guests[at].recv(&mut buffer).unwrap(), 60);
            buffer[59]
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn unknown_addresses_go_everywhere_and_learned_ones_to_their_port() {
        let scene = Scene::new("learn");
        scene.send(0, 1, 1);
        assert_eq!((scene.mark(1), scene.mark(2)), (1, 1));
        scene.send(1, 0, 2);
        assert_eq!(scene.mark(0), 2);
        // The next thing that port 2 sees is not the frame between the others.
        scene.send(0, 2, 3);
        assert_eq!((scene.mark(1), scene.mark(2)), (3, 3));
    }

    #[test]
    fn a_link_is_cut_in_one_direction_and_heals() {
        let scene = Scene::new("cut");
        scene.switch.link(1).update(TrafficDirection::In, |s| s.loss_ppm = 1_000_000);
        scene.send(0, 9, 1);
        // It arrives at the third port, so that the switch has dealt with it.
        assert_eq!(scene.mark(2), 1);
        scene.send(1, 9, 2);
        assert_eq!((scene.mark(0), scene.mark(2)), (2, 2), "the other direction is open");
        scene.switch.link(1).update(TrafficDirection::Both, |s| s.loss_ppm = 0);
        scene.send(0, 9, 3);
        assert_eq!((scene.mark(1), scene.mark(2)), (3, 3), "what was sent into the cut is gone");
    }

    #[test]
    fn a_delay_is_at_least_as_long_as_it_was_set() {
        let scene = Scene::new("delay");
        scene.switch.link(1).update(TrafficDirection::In, |s| s.delay_ns = 30_000_000);
        scene.switch.link(0).update(TrafficDirection::Out, |s| s.delay_ns = 20_000_000);
        let begin = Instant::now();
        scene.send(0, 1, 7);
        assert_eq!(scene.mark(1), 7);
        assert!(begin.elapsed() >= Duration::from_millis(50));
    }
}
