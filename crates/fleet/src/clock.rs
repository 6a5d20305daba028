//! Wall-clock time and random bytes: the only place of the operator that asks for either.

use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

/// Now, Unix milliseconds.
pub fn now_ms() -> u64 {
    #[cfg(any(test, feature = "testing"))]
    if let Some(now_ms) = virtual_time::now_ms() {
        return now_ms;
    }
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

/// Whether time is virtual, in a test: it stands still while anything is waited for that takes real time,
/// such as a disk.
#[must_use]
pub fn is_virtual() -> bool {
    #[cfg(any(test, feature = "testing"))]
    return virtual_time::now_ms().is_some();
    #[cfg(not(any(test, feature = "testing")))]
    false
}

/// A wall clock that goes as the virtual time of a runtime does.
#[cfg(any(test, feature = "testing"))]
pub mod virtual_time {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::time::Instant;

    /// What the thread of the runtime read last, for the other threads; 0: time is real.
    static NOW_MS: AtomicU64 = AtomicU64::new(0);

    thread_local! {
        static BEGUN: Cell<Option<(Instant, u64)>> = const { Cell::new(None) };
    }

    /// From now on it is this moment, Unix milliseconds, for the whole process, and time is that of the
    /// runtime of this thread.
    pub fn begin(start_ms: u64) {
        BEGUN.set(Some((Instant::now(), start_ms)));
        NOW_MS.store(start_ms, Ordering::Relaxed);
    }

    pub(super) fn now_ms() -> Option<u64> {
        if let Some((begun, start_ms)) = BEGUN.get() {
            let now_ms = start_ms + begun.elapsed().as_millis() as u64;
            NOW_MS.store(now_ms, Ordering::Relaxed);
            return Some(now_ms);
        }
        Some(NOW_MS.load(Ordering::Relaxed)).filter(|now_ms| *now_ms > 0)
    }
}

/// Random bytes of the kernel.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
