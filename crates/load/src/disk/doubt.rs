//! Which figures are no evidence about a drive. Pure.
//!
//! What comes in: what a phase was asked for, what it did, what the kernel counted meanwhile. What goes out: reasons for doubt.

use linerate_model::disk_load::{DiskPhase, Doubt, Durable};

/// Fewer requests are too few for a figure.
const REQUESTS_MIN: u64 = 20;
/// Through the cache: storage has to give at least this share of what was read. Reading ahead gives more, never less.
const FROM_STORAGE: f64 = 0.9;

/// What is known about a phase.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    /// Requests that ended.
    pub requests: u64,
    /// Bytes that reads moved.
    pub read_bytes: u64,
    /// Bytes that the kernel read from storage for this program meanwhile; `None` where it does not count them.
    pub from_storage: Option<u64>,
    /// Size of the target, bytes.
    pub target_bytes: u64,
    /// Memory of the host, bytes.
    pub memory_bytes: u64,
    /// The target is memory.
    pub is_memory: bool,
    /// Reads that were looked at, and those that were all zero.
    pub looked_at: u64,
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
    if !phase.direct && phase.writes() && phase.durable == Durable::Never {
        doubts.push(Doubt::WriteBack);
    }
    if seen.looked_at > 0 && seen.zero == seen.looked_at {
        doubts.push(Doubt::Zeros);
    }
    if seen.requests < REQUESTS_MIN {
        doubts.push(Doubt::Few);
    }
    doubts
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

    #[test]
    fn zeros_and_few_requests_are_no_evidence() {
        let seen = Seen { requests: 1000, looked_at: 10, zero: 10, ..Seen::default() };
        assert_eq!(doubts(&phase(100, true), &seen), [Doubt::Zeros]);
        assert_eq!(doubts(&phase(100, true), &Seen { zero: 9, ..seen }), []);
        assert_eq!(doubts(&phase(100, true), &Seen { requests: 19, ..Seen::default() }), [Doubt::Few]);
    }
}
