//! Which figures are no evidence about a drive. Pure.
//!
//! What comes in: what a phase was asked for, what it did, what the kernel counted meanwhile. What goes out:
//! reasons for doubt.

use linerate_model::disk_load::{DiskPhase, Doubt, Durable, REQUESTS_MIN};

/// Through the cache: storage has to give at least this share of what was read. Reading ahead gives more,
/// never less.
const FROM_STORAGE: f64 = 0.9;
/// Through the cache: the device has to get at least this share of what was written, by the end of the last
/// flush. The journal of a file system and other programs add to it.
pub(super) const TO_DEVICE: f64 = 0.9;

/// What is known about a phase.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    /// Requests that ended.
    pub requests: u64,
    /// Bytes that reads moved.
    pub read_bytes: u64,
    /// Bytes that the kernel read from storage for this program meanwhile; `None` where it does not count
    /// them.
    pub from_storage: Option<u64>,
    /// Bytes that writes moved.
    pub write_bytes: u64,
    /// Bytes that were written at the device below until the end of the last flush; `None` where it has none.
    pub to_device: Option<u64>,
    /// Size of the target, bytes.
    pub target_bytes: u64,
    /// Memory of the host, bytes.
    pub memory_bytes: u64,
    /// The target is memory.
    pub is_memory: bool,
    /// Reads with checked content, and those that were all zero.
    pub checked: u64,
    /// See above.
    pub zero: u64,
}

/// Why the figures of a phase are no evidence.
pub(super) fn doubts(phase: &DiskPhase, seen: &Seen) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if seen.is_memory {
        doubts.push(Doubt::Memory);
    }
    let reads_cached = !phase.direct && phase.reads > 0 && seen.read_bytes > 0;
    if reads_cached && !seen.is_memory {
        match seen.from_storage {
            Some(bytes) if (bytes as f64) < FROM_STORAGE * seen.read_bytes as f64 => {
                doubts.push(Doubt::FromCache);
            }
            None if seen.target_bytes < seen.memory_bytes => doubts.push(Doubt::FitsMemory),
            _ => {}
        }
    }
    let kept = kept(phase, seen);
    doubts.extend(kept.filter(|doubt| !doubts.contains(doubt)));
    // A write-back doubt is only about a rate that is the drive's.
    if !phase.direct && phase.writes() && phase.durable == Durable::Never && !seen.is_memory && kept.is_none()
    {
        doubts.push(Doubt::WriteBack);
    }
    if seen.checked > 0 && seen.zero == seen.checked {
        doubts.push(Doubt::Zeros);
    }
    if seen.requests < REQUESTS_MIN {
        doubts.push(Doubt::Few);
    }
    doubts
}

/// Whether the cache kept what was written to it.
fn kept(phase: &DiskPhase, seen: &Seen) -> Option<Doubt> {
    if phase.direct || seen.is_memory || seen.write_bytes == 0 {
        return None;
    }
    if let Some(bytes) = seen.to_device {
        return ((bytes as f64) < TO_DEVICE * seen.write_bytes as f64).then_some(Doubt::KeptInCache);
    }
    // Each page is written at most once by a single pass in a row, and every write is flushed by itself where
    // that is asked for.
    let rewrites = phase.random || seen.write_bytes > seen.target_bytes;
    let fits = seen.target_bytes < seen.memory_bytes;
    (rewrites && fits && phase.durable == Durable::Never).then_some(Doubt::FitsMemory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(reads: u8, direct: bool) -> DiskPhase {
        DiskPhase {
            random: false,
            reads,
            block_bytes: 1 << 20,
            depth: 1,
            threads: 4,
            direct,
            durable: Durable::Never,
            batch: 1,
        }
    }

    /// Casebook E3: reads at 8000 MB/s were the page cache.
    #[test]
    fn reads_that_the_cache_answered_are_no_evidence() {
        let seen = Seen {
            requests: 8000,
            read_bytes: 8_000_000_000,
            from_storage: Some(1_000_000_000),
            target_bytes: 4 << 30,
            memory_bytes: 64 << 30,
            ..Seen::default()
        };
        assert_eq!(doubts(&phase(100, false), &seen), [Doubt::FromCache]);
        assert_eq!(doubts(&phase(100, true), &seen), []);
        let honest = Seen { from_storage: Some(8_100_000_000), ..seen };
        assert_eq!(doubts(&phase(100, false), &honest), []);
        let silent = Seen { from_storage: None, ..seen };
        assert_eq!(doubts(&phase(100, false), &silent), [Doubt::FitsMemory]);
        assert_eq!(doubts(&phase(100, false), &Seen { target_bytes: 128 << 30, ..silent }), []);
    }

    #[test]
    fn writes_into_memory_are_no_evidence_for_times() {
        let seen = Seen { requests: 1000, ..Seen::default() };
        assert_eq!(doubts(&phase(0, false), &seen), [Doubt::WriteBack]);
        assert!(!Doubt::WriteBack.refuses_rate(), "the final flush is in the rate");
        let safe = DiskPhase { durable: Durable::Data(1), ..phase(0, false) };
        assert_eq!(doubts(&safe, &seen), []);
        assert_eq!(doubts(&phase(0, true), &Seen { is_memory: true, ..seen }), [Doubt::Memory]);
    }

    /// 3400 MB "written" into a file of 64 MB: the flush at the end brought only 64 MB to the drive.
    #[test]
    fn writes_that_the_cache_kept_are_no_evidence() {
        let seen = Seen {
            requests: 3400,
            write_bytes: 3_400_000_000,
            to_device: Some(67_108_864),
            target_bytes: 64 << 20,
            memory_bytes: 64 << 30,
            ..Seen::default()
        };
        assert_eq!(doubts(&phase(0, false), &seen), [Doubt::KeptInCache]);
        assert!(Doubt::KeptInCache.refuses_rate());
        assert_eq!(doubts(&phase(0, true), &seen), [], "around the cache nothing is kept");
        let all = Seen { to_device: Some(3_400_100_000), ..seen };
        assert_eq!(doubts(&phase(0, false), &all), [Doubt::WriteBack]);
        // Where the device is not known: one pass in a row is written once, and more than that not.
        let silent = Seen { to_device: None, ..seen };
        assert_eq!(doubts(&phase(0, false), &silent), [Doubt::FitsMemory]);
        let once = Seen { write_bytes: 64 << 20, ..silent };
        assert_eq!(doubts(&phase(0, false), &once), [Doubt::WriteBack]);
        let random = DiskPhase { random: true, ..phase(0, false) };
        assert_eq!(doubts(&random, &once), [Doubt::FitsMemory]);
        assert_eq!(doubts(&DiskPhase { durable: Durable::Each, ..random }, &once), []);
        // Reads and writes, and neither count is known: reported once.
        let both = Seen { read_bytes: 1 << 20, ..silent };
        assert_eq!(doubts(&phase(50, false), &both), [Doubt::FitsMemory]);
    }

    #[test]
    fn zeros_and_few_requests_are_no_evidence() {
        let seen = Seen { requests: 1000, checked: 10, zero: 10, ..Seen::default() };
        assert_eq!(doubts(&phase(100, true), &seen), [Doubt::Zeros]);
        assert_eq!(doubts(&phase(100, true), &Seen { zero: 9, ..seen }), []);
        assert_eq!(doubts(&phase(100, true), &Seen { requests: 19, ..Seen::default() }), [Doubt::Few]);
    }
}
