//! What the threads of a test share: whether to go on, what may still be sent, and what each stream has
//! counted.
//!
//! What comes in: the watchdog's order and the threads' counts. What goes out: both, to every thread. It
//! touches no socket.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use linerate_sys::cpu::ThreadTimes;

use super::parameters::Parameters;
use super::tally::Tally;

/// Senders send and receivers receive.
const RUNNING: u8 = 0;
/// Senders have to stop; receivers take what is still in flight.
const DRAINING: u8 = 1;
/// All have to stop.
const STOPPED: u8 = 2;

/// Shared by all threads of a test.
#[derive(Debug)]
pub(super) struct Board {
    /// All times of the test count from here.
    pub(super) origin: Instant,
    phase: AtomicU8,
    /// During the start-up that is left out, nothing is taken from the budget.
    omitting: AtomicBool,
    limited: bool,
    by_blocks: bool,
    left: AtomicU64,
    costs: Mutex<ThreadTimes>,
}

impl Board {
    /// With what the parameters let be sent in all.
    pub(super) fn new(parameters: &Parameters, bounded: bool) -> Self {
        let by_blocks = parameters.blocks > 0;
        let left = if by_blocks { parameters.blocks } else { parameters.bytes };
        Self {
            origin: Instant::now(),
            phase: AtomicU8::new(RUNNING),
            omitting: AtomicBool::new(parameters.omit_s > 0),
            limited: bounded && left > 0,
            by_blocks,
            left: AtomicU64::new(left),
            costs: Mutex::default(),
        }
    }

    /// A thread has ended that took so much.
    pub(super) fn add_costs(&self, times: ThreadTimes) {
        let mut costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        costs.running += times.running;
        costs.waiting += times.waiting;
    }

    /// What all threads that have ended took.
    pub(super) fn costs(&self) -> ThreadTimes {
        *self.costs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since the origin.
    pub(super) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    pub(super) fn senders_go_on(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == RUNNING
    }

    pub(super) fn receivers_go_on(&self) -> bool {
        self.phase.load(Ordering::Relaxed) != STOPPED
    }

    pub(super) fn is_draining(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == DRAINING
    }

    pub(super) fn drain(&self) {
        self.phase.fetch_max(DRAINING, Ordering::Relaxed);
    }

    pub(super) fn stop(&self) {
        self.phase.store(STOPPED, Ordering::Relaxed);
    }

    pub(super) fn end_omitting(&self) {
        self.omitting.store(false, Ordering::Relaxed);
    }

    /// How many of `want` bytes of a block may be sent; 0 when nothing is left.
    pub(super) fn take(&self, want: usize) -> usize {
        if !self.limited || self.omitting.load(Ordering::Relaxed) {
            return want;
        }
        let cost = if self.by_blocks { 1 } else { want as u64 };
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left > 0).then(|| left.saturating_sub(cost))
        });
        match taken {
            Ok(left) if self.by_blocks => {
                if left > 0 {
                    want
                } else {
                    0
                }
            }
            Ok(left) => want.min(usize::try_from(left).unwrap_or(want)),
            Err(_) => 0,
        }
    }

    /// Whether everything that may be sent was taken.
    pub(super) fn is_spent(&self) -> bool {
        self.limited && self.left.load(Ordering::Relaxed) == 0
    }
}

/// Counts of one stream.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Bytes sent or received.
    pub(super) bytes: AtomicU64,
    /// Datagrams sent, or blocks of TCP.
    pub(super) packets: AtomicU64,
    /// Time of the last byte since the origin, microseconds.
    pub(super) last_us: AtomicU64,
    /// The thread has ended.
    pub(super) ended: AtomicBool,
    tally: Mutex<Tally>,
    error: Mutex<Option<String>>,
}

impl Meter {
    pub(super) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, bytes: u64, packets: u64, at: Duration) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.packets.fetch_add(packets, Ordering::Relaxed);
        self.last_us.store(at.as_micros() as u64, Ordering::Relaxed);
    }

    pub(super) fn fail(&self, why: String) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    pub(super) fn error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_spent_to_the_byte_or_block() {
        let bytes = Board::new(&Parameters { bytes: 2500, ..Parameters::default() }, true);
        assert_eq!(
            [bytes.take(1000), bytes.take(1000), bytes.take(1000), bytes.take(1000)],
            [1000, 1000, 500, 0]
        );
        assert!(bytes.is_spent());
        let blocks = Board::new(&Parameters { blocks: 2, ..Parameters::default() }, true);
        assert_eq!([blocks.take(10), blocks.take(10), blocks.take(10)], [10, 10, 0]);
        let free = Board::new(&Parameters::default(), true);
        assert_eq!((free.take(5), free.is_spent()), (5, false));
        let omitting = Board::new(&Parameters { bytes: 5, omit_s: 1, ..Parameters::default() }, true);
        assert_eq!(omitting.take(50), 50);
        omitting.end_omitting();
        assert_eq!(omitting.take(50), 5);
    }
}
