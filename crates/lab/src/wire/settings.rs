//! Settings of one direction of a wire, changeable under traffic.
//!
//! In: settings from the lab. Out: a copy for the thread that carries the frames. It never touches a frame.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// From the beginning of one pause to that of the next.
pub const PAUSE_EVERY_NS: u64 = 500_000_000;

/// One direction of a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// bit/s on the wire, all headers counted; 0 is without limit.
    pub rate_bps: u64,
    /// The rate alternates between `rate_bps` and this, 100 to 200 ms each; 0 is off.
    pub flapping_rate_bps: u64,
    /// Delay.
    pub delay_ns: u64,
    /// Bytes that may wait for the wire before it drops.
    pub queue_bytes: u64,
    /// Packets lost per million.
    pub loss_ppm: u32,
    /// Packets per million that are overtaken by those behind them.
    pub reorder_ppm: u32,
    /// Packets per million that arrive twice.
    pub duplicate_ppm: u32,
    /// Drops IP packets larger than this silently; 0 is unlimited.
    pub packet_bytes_max: u32,
    /// Packets per million that arrive with a flipped bit.
    pub damage_ppm: u32,
    /// Drops traffic above this rate, bit/s, instead of queueing it; 0 is off.
    pub police_bps: u64,
    /// The policer counts packets of the tunnel only.
    pub polices_tunnel_only: bool,
    /// Limit of packets per second, whatever their size; 0 is unlimited.
    pub packets_per_s: u32,
    /// Each packet is late by a random time up to this; none overtakes another.
    pub jitter_ns: u64,
    /// At every turn of [`PAUSE_EVERY_NS`] nothing arrives for this long; what was held up arrives at its
    /// end.
    pub pause_ns: u64,
    /// What the NIC of the hypervisor lets through, bytes of an IP packet; 0 is everything.
    pub nic_mtu: u32,
    /// Destroys bursts of TCP inside vxlan, as a NIC does that joins received packets and joins these
    /// wrongly.
    pub destroys_joined_overlay: bool,
}

/// Settings that a thread follows while others change them.
#[derive(Debug, Default)]
pub struct Shared {
    changes: AtomicU64,
    current: Mutex<Settings>,
}

impl Shared {
    /// Starts with these.
    pub fn new(settings: Settings) -> Self {
        Self { changes: AtomicU64::new(0), current: Mutex::new(settings) }
    }

    /// The settings now.
    pub fn get(&self) -> Settings {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes some of them.
    pub fn update(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.current.lock().unwrap_or_else(PoisonError::into_inner));
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// How often they were changed: a thread copies them again only when this moved.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }
}
