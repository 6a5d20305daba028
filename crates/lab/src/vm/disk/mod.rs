//! Drives of guests: each a file behind a server that makes it slow, broken, forgetful or lying at run time.
//!
//! In: sizes, behaviour, requests of qemu over a unix socket (NBD). Out: what was stored, counters. A drive
//! never touches a device of the host.

mod medium;
mod nbd;
mod server;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
pub use medium::{Keep, Medium, SECTOR_BYTES};
pub use server::NbdServer;

/// Cache of a drive, and how it handles a flush.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// No cache: every write survives.
    #[default]
    None,
    /// Unflushed writes are lost at a power cut.
    Volatile,
    /// As volatile, and flushes are acknowledged but not done.
    Lying,
}

/// How a drive behaves; may change at any time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Behaviour {
    /// Requests per second, one at a time; 0 is unlimited.
    pub ops_per_s: f64,
    /// Additional delay of each request, ms.
    pub delay_ms: f64,
    /// Cache and handling of flushes.
    pub cache: Cache,
    /// Bytes whose reading and writing fails.
    pub fails: Option<Range<u64>>,
    /// Whether every request fails, as if the drive was pulled.
    pub gone: bool,
}

impl Behaviour {
    /// Time that a request takes.
    fn service(&self) -> Duration {
        let seconds = if self.ops_per_s > 0.0 { 1.0 / self.ops_per_s } else { 0.0 };
        Duration::from_secs_f64((seconds + self.delay_ms / 1000.0).clamp(0.0, LONGEST_S))
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// The value and its limits.
    pub fn check(&self) -> Result<(), String> {
        if !(0.0..=1e6).contains(&self.ops_per_s)
            || (self.ops_per_s > 0.0 && self.ops_per_s < 1.0 / LONGEST_S)
        {
            return Err(format!(
                "ops_per_s = {}: 0 (no limit), or {} to 1000000 wanted",
                self.ops_per_s,
                1.0 / LONGEST_S
            ));
        }
        if !(0.0..=1000.0 * LONGEST_S).contains(&self.delay_ms) {
            return Err(format!("delay_ms = {}: 0 to {} wanted", self.delay_ms, 1000.0 * LONGEST_S));
        }
        Ok(())
    }
}

/// The kernel's timeout of a request is 30 s; a slower drive would be dead.
const LONGEST_S: f64 = 10.0;

/// What a drive did since it was made.
#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    writes: AtomicU64,
    flushes: AtomicU64,
    lies: AtomicU64,
    errors: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    sectors_lost: AtomicU64,
}

/// The same, at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Reads that were answered.
    pub reads: u64,
    /// Writes that were answered.
    pub writes: u64,
    /// Flushes that were done, writes with FUA among them.
    pub flushes: u64,
    /// Flushes that were acknowledged and not done.
    pub lies: u64,
    /// Requests that were answered with an error.
    pub errors: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Sectors that are in the volatile cache now.
    pub sectors_unflushed: u64,
    /// Sectors that power cuts took.
    pub sectors_lost: u64,
}

/// A drive.
#[derive(Debug)]
pub struct Drive {
    /// Its name, which is also the serial number that the guest sees.
    pub name: String,
    /// Size, bytes.
    pub size_bytes: u64,
    behaviour: Mutex<Behaviour>,
    changed: Condvar,
    medium: Mutex<Medium>,
    counts: Counts,
    /// When it will have done what it was given.
    free: Mutex<Option<Instant>>,
    ration: Mutex<Option<Ration>>,
}

/// How many more writes several drives may begin together; further ones wait until they have another ration.
pub type Ration = Arc<AtomicU64>;

/// A request as a drive sees it.
#[derive(Debug)]
enum Work<'a> {
    Read { offset: u64, into: &'a mut [u8] },
    Write { offset: u64, data: &'a [u8], flush: bool },
    Flush,
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// The drive is broken there.
    Broken,
    /// Out of range, or not whole sectors.
    Nonsense,
}

impl Drive {
    /// A new drive full of zeros, kept in a file that must not exist yet.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(name: &str, size_bytes: u64, behaviour: Behaviour, file: &Path) -> Result<Self> {
        let step = format!("making the drive {}", file.display());
        let medium = Medium::create(file, size_bytes).map_err(LabError::at(step))?;
        Ok(Self {
            name: name.to_owned(),
            size_bytes,
            behaviour: Mutex::new(behaviour),
            changed: Condvar::new(),
            medium: Mutex::new(medium),
            counts: Counts::default(),
            free: Mutex::new(None),
            ration: Mutex::new(None),
        })
    }

    /// Its current behaviour.
    pub fn behaviour(&self) -> Behaviour {
        lock(&self.behaviour).clone()
    }

    /// Changes its behaviour, at once also for waiting requests.
    ///
    /// # Errors
    /// The cache could not be written back, or the behaviour makes no sense.
    pub fn behave(&self, change: impl FnOnce(&mut Behaviour)) -> Result<()> {
        let mut behaviour = lock(&self.behaviour);
        let mut new = behaviour.clone();
        change(&mut new);
        new.check().map_err(|what| LabError::Unknown(format!("drive {}: {what}", self.name)))?;
        if new.cache == Cache::None {
            let step = format!("writing back the cache of drive {}", self.name);
            lock(&self.medium).flush().map_err(LabError::at(step))?;
        }
        *behaviour = new;
        self.changed.notify_all();
        Ok(())
    }

    /// Bounds its writes, or bounds them no longer; counts at once also for writes that wait.
    pub fn ration(&self, ration: Option<Ration>) {
        let behaviour = lock(&self.behaviour);
        *lock(&self.ration) = ration;
        drop(behaviour);
        self.changed.notify_all();
    }

    /// What it did.
    pub fn counters(&self) -> Counters {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            reads: of(&self.counts.reads),
            writes: of(&self.counts.writes),
            flushes: of(&self.counts.flushes),
            lies: of(&self.counts.lies),
            errors: of(&self.counts.errors),
            bytes_read: of(&self.counts.bytes_read),
            bytes_written: of(&self.counts.bytes_written),
            sectors_unflushed: lock(&self.medium).unflushed(),
            sectors_lost: of(&self.counts.sectors_lost),
        }
    }

    /// Cuts the power: unflushed writes are lost, all or half of them. No request may be in flight.
    ///
    /// # Errors
    /// What survives could not be written.
    pub fn power_cut(&self, keep: Keep, seed: u64) -> Result<u64> {
        let step = format!("cutting the power of drive {}", self.name);
        let lost = lock(&self.medium).power_cut(keep, seed).map_err(LabError::at(step))?;
        self.counts.sectors_lost.fetch_add(lost, Ordering::Relaxed);
        *lock(&self.free) = None;
        Ok(lost)
    }

    /// Serves a request in the time of its behaviour. The wait ends when `live` turns false.
    fn serve(&self, work: &mut Work<'_>, live: &dyn Fn() -> bool) -> Result<(), Refused> {
        if matches!(work, Work::Write { .. }) {
            self.wait_for_ration(live);
        }
        let behaviour = self.wait(live);
        let done = self.act(work, &behaviour);
        let counter = match (&done, &work) {
            (Err(_), _) => &self.counts.errors,
            (Ok(()), Work::Read { .. }) => &self.counts.reads,
            (Ok(()), Work::Write { .. }) => &self.counts.writes,
            (Ok(()), Work::Flush) => return done,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        done
    }

    /// Waits until the ration has a write left, and takes it.
    fn wait_for_ration(&self, live: &dyn Fn() -> bool) {
        let mut behaviour = lock(&self.behaviour);
        loop {
            let taken = lock(&self.ration).as_ref().is_none_or(|ration| {
                ration.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
            });
            if taken || !live() {
                return;
            }
            let waited = self.changed.wait_timeout(behaviour, POLL_INTERVAL);
            behaviour = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until this request had its time; a change of behaviour counts at once. Returns the behaviour at
    /// the end.
    fn wait(&self, live: &dyn Fn() -> bool) -> Behaviour {
        let begin = {
            let free = *lock(&self.free);
            let now = Instant::now();
            // What came while the drive was at work begins when it was free, not when a thread woke up.
            free.filter(|free| now.saturating_duration_since(*free) < LATE).unwrap_or(now)
        };
        let mut behaviour = lock(&self.behaviour);
        let due = loop {
            let due = begin + behaviour.service();
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() || !live() {
                break due;
            }
            let waited = self.changed.wait_timeout(behaviour, left.min(POLL_INTERVAL));
            behaviour = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        *lock(&self.free) = Some(due);
        behaviour.clone()
    }

    fn act(&self, work: &mut Work<'_>, behaviour: &Behaviour) -> Result<(), Refused> {
        let (offset, length) = match work {
            Work::Read { offset, into } => (*offset, into.len()),
            Work::Write { offset, data, .. } => (*offset, data.len()),
            Work::Flush => (0, 0),
        };
        let sector = SECTOR_BYTES as u64;
        let end = offset
            .checked_add(length as u64)
            .filter(|end| *end <= self.size_bytes)
            .ok_or(Refused::Nonsense)?;
        if offset % sector != 0 || end % sector != 0 {
            return Err(Refused::Nonsense);
        }
        let broken = behaviour.fails.as_ref().is_some_and(|r| length > 0 && r.start < end && offset < r.end);
        if behaviour.gone || broken {
            return Err(Refused::Broken);
        }
        let mut medium = lock(&self.medium);
        let add = |counter: &AtomicU64, n: usize| counter.fetch_add(n as u64, Ordering::Relaxed);
        let flush = match work {
            Work::Read { offset, into } => {
                medium.read(*offset, into).map_err(|_| Refused::Broken)?;
                add(&self.counts.bytes_read, into.len());
                false
            }
            Work::Write { offset, data, flush } => {
                medium.write(*offset, data, behaviour.cache != Cache::None).map_err(|_| Refused::Broken)?;
                add(&self.counts.bytes_written, data.len());
                *flush
            }
            Work::Flush => true,
        };
        if flush && behaviour.cache == Cache::Lying {
            add(&self.counts.lies, 1);
        } else if flush {
            medium.flush().map_err(|_| Refused::Broken)?;
            add(&self.counts.flushes, 1);
        }
        Ok(())
    }
}

/// A thread that is up to so late still counts as on time.
const LATE: Duration = Duration::from_millis(5);
/// How soon a waiting request notices that its guest is gone.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
