//! One thread of a phase: keeps its requests in flight until time, bytes or requests are used up, and notes
//! how long each took.
//!
//! What comes in: a queue, the part of the target that is its own, limits. What goes out: a [`Tally`]. The
//! clock is read once per poll of the queue; a request counts from the poll before its submission. After a
//! stop it ends with the requests in flight.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use linerate_model::disk_load::{DiskPhase, DiskPoint, DiskRequests, Durable};
use linerate_model::histogram::Histogram;
use linerate_model::random::Random;
use linerate_sys::uring::Ask;

use super::methods::queue::Queue;
use super::seal::{SECTOR, Seal};
use crate::job::{Job, LoadError};

/// Length of an interval of the series, milliseconds.
const POINT_MS: u64 = 100;
/// Points that are kept.
const POINTS_MAX: usize = 600;
/// Every so many reads one is checked whether it is all zero.
const ZERO_CHECK_EVERY: u64 = 61;

/// So often the kernel may return `EAGAIN` for one request.
const AGAIN_MAX: u32 = 100;

/// What a thread has to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// What.
    pub phase: DiskPhase,
    /// First byte of the part of the target for random requests, and of its own part for sequential ones.
    pub start: u64,
    /// Whole requests that fit in there.
    pub blocks: u64,
    /// Slots of its queue.
    pub slots: usize,
    /// Requests at most.
    pub requests_max: u64,
    /// Longest time.
    pub limit: Duration,
    /// Where chance begins.
    pub seed: u64,
}

/// What a thread did.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub read: DiskRequests,
    pub write: DiskRequests,
    pub flush_ns: Histogram,
    pub elapsed: Duration,
    pub series: Vec<DiskPoint>,
    /// Reads with checked content, and those of them that were all zero.
    pub checked: u64,
    pub zero: u64,
}

/// A request in flight.
#[derive(Debug, Clone, Copy, Default)]
struct InFlight {
    since_ns: u64,
    what: Option<Ask>,
    offset: u64,
    /// How often the kernel returned `EAGAIN`.
    again: u32,
}

struct Worker<'a> {
    job: &'a Job<'a>,
    work: Work,
    queue: &'a mut dyn Queue,
    random: Random,
    seal: Seal,
    free: Vec<usize>,
    slots: Vec<InFlight>,
    /// Begin of writes that no flush made safe yet.
    unsafe_yet: Vec<u64>,
    asked: u64,
    next: u64,
    over: bool,
    tally: Tally,
}

/// Works until it is over.
pub(super) fn run(job: &Job<'_>, work: Work, queue: &mut dyn Queue) -> Result<Tally, LoadError> {
    let mut worker = Worker {
        job,
        work,
        queue,
        random: Random(work.seed),
        seal: Seal::of(job),
        free: (0..work.slots).rev().collect(),
        slots: vec![InFlight::default(); work.slots],
        unsafe_yet: Vec::new(),
        asked: 0,
        next: 0,
        over: work.blocks == 0,
        tally: Tally::default(),
    };
    for slot in 0..work.slots {
        if let Some(memory) = worker.queue.slot(slot) {
            worker.random.fill(memory);
            worker.seal.put(memory);
        }
    }
    worker.run()?;
    Ok(worker.tally)
}

/// Words of a request that failed.
fn verb(what: Ask) -> &'static str {
    match what {
        Ask::Read => "read",
        Ask::Write => "write",
        Ask::FlushData | Ask::Flush => "flush",
    }
}

impl Worker<'_> {
    fn run(&mut self) -> Result<(), LoadError> {
        let start = Instant::now();
        let limit_ns = self.work.limit.as_nanos() as u64;
        let mut now_ns = 0;
        let mut ends: Vec<(usize, io::Result<u32>)> = Vec::with_capacity(self.work.slots);
        loop {
            self.over |= now_ns >= limit_ns || self.job.control.stop.load(Ordering::Relaxed);
            self.ask(now_ns)?;
            let in_flight = self.queue.in_flight();
            if in_flight == 0 {
                break;
            }
            // At the end, and before a flush, all that is left is waited for.
            let batch = usize::from(self.work.phase.batch).clamp(1, in_flight);
            self.queue.wait(batch).map_err(LoadError::io("wait for requests"))?;
            self.queue.ended(&mut ends);
            now_ns = start.elapsed().as_nanos() as u64;
            for (slot, end) in ends.drain(..) {
                self.ended(slot, end, now_ns)?;
            }
        }
        self.tally.elapsed = Duration::from_nanos(now_ns);
        Ok(())
    }

    /// Submits as much as may be in flight.
    fn ask(&mut self, now_ns: u64) -> Result<(), LoadError> {
        // Known before the flush is checked: what is left at the end is flushed as well.
        self.over |= self.asked >= self.work.requests_max;
        let flush = match self.work.phase.durable {
            Durable::Data(every) => Some((Ask::FlushData, every)),
            Durable::Full(every) => Some((Ask::Flush, every)),
            Durable::Never | Durable::Each => None,
        };
        if let Some((what, every)) = flush {
            let due = self.unsafe_yet.len() as u64 + self.queue.in_flight() as u64;
            if due >= u64::from(every.max(1)) || (self.over && due > 0) {
                // A flush makes safe what ended before it: nothing else may be in flight.
                if self.queue.in_flight() == 0 && !self.unsafe_yet.is_empty() {
                    self.hand_over(what, 0, now_ns)?;
                }
                return Ok(());
            }
        }
        while !self.over && !self.free.is_empty() {
            if self.asked >= self.work.requests_max {
                self.over = true;
                break;
            }
            let what = self.direction();
            let block = self.next_block();
            let offset = self.work.start + block * u64::from(self.work.phase.block_bytes);
            self.hand_over(what, offset, now_ns)?;
            self.asked += 1;
            if let Some((_, every)) = flush
                && self.unsafe_yet.len() as u64 + self.queue.in_flight() as u64 >= u64::from(every.max(1))
            {
                break;
            }
        }
        Ok(())
    }

    fn direction(&mut self) -> Ask {
        match self.work.phase.reads {
            0 => Ask::Write,
            100 => Ask::Read,
            reads if self.random.below(100) < usize::from(reads) => Ask::Read,
            _ => Ask::Write,
        }
    }

    /// Number of the block that is next.
    fn next_block(&mut self) -> u64 {
        if self.work.phase.random {
            return self.random.below(self.work.blocks as usize) as u64;
        }
        let block = self.next;
        self.next = if block + 1 < self.work.blocks { block + 1 } else { 0 };
        block
    }

    fn hand_over(&mut self, what: Ask, offset: u64, now_ns: u64) -> Result<(), LoadError> {
        let Some(slot) = self.free.pop() else { return Ok(()) };
        if what == Ask::Write {
            // No two blocks alike: some drives and file systems keep only one of them.
            let stamp = self.random.next_u64().to_le_bytes();
            if let Some(sector) = self.queue.slot(slot).and_then(|m| m.get_mut(..SECTOR)) {
                sector[..stamp.len()].copy_from_slice(&stamp);
                self.seal.put(sector);
            }
        }
        self.slots[slot] = InFlight { since_ns: now_ns, what: Some(what), offset, again: 0 };
        self.queue.ask(slot, what, offset).map_err(LoadError::io(verb(what)))
    }

    fn ended(&mut self, slot: usize, end: io::Result<u32>, now_ns: u64) -> Result<(), LoadError> {
        let Some(InFlight { since_ns, what: Some(what), offset, again }) = self.slots.get(slot).copied()
        else {
            return Ok(());
        };
        // It counts from its first hand-over.
        if end.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock) && again < AGAIN_MAX {
            self.slots[slot].again += 1;
            return self.queue.ask_patiently(slot, what, offset).map_err(LoadError::io(verb(what)));
        }
        self.free.push(slot);
        let bytes = end.map_err(LoadError::io(verb(what)))?;
        let block = self.work.phase.block_bytes;
        if matches!(what, Ask::Read | Ask::Write) && bytes != block {
            let source = io::Error::other(format!("{bytes} of {block} bytes were moved"));
            return Err(LoadError::Io { what: verb(what), source });
        }
        let took_ns = now_ns.saturating_sub(since_ns);
        match what {
            Ask::Read => {
                if self.tally.read.requests.is_multiple_of(ZERO_CHECK_EVERY) {
                    self.check_zero(slot);
                }
                count(&mut self.tally.read, took_ns, block);
                self.point(now_ns, took_ns);
            }
            Ask::Write if matches!(self.work.phase.durable, Durable::Data(_) | Durable::Full(_)) => {
                self.unsafe_yet.push(since_ns);
            }
            Ask::Write => {
                count(&mut self.tally.write, took_ns, block);
                self.point(now_ns, took_ns);
            }
            Ask::FlushData | Ask::Flush => {
                self.tally.flush_ns.record(took_ns);
                for since_ns in std::mem::take(&mut self.unsafe_yet) {
                    count(&mut self.tally.write, now_ns.saturating_sub(since_ns), block);
                    self.point(now_ns, now_ns.saturating_sub(since_ns));
                }
            }
        }
        Ok(())
    }

    fn check_zero(&mut self, slot: usize) {
        if let Some(memory) = self.queue.slot(slot) {
            self.tally.checked += 1;
            self.tally.zero += u64::from(memory.iter().all(|byte| *byte == 0));
        }
    }

    fn point(&mut self, now_ns: u64, took_ns: u64) {
        let index = (now_ns / (POINT_MS * 1_000_000)) as usize;
        if index >= POINTS_MAX {
            return;
        }
        while self.tally.series.len() <= index {
            let at_ms = (self.tally.series.len() as u64 + 1) * POINT_MS;
            self.tally.series.push(DiskPoint { at_ms: at_ms as u32, ..DiskPoint::default() });
        }
        let Some(point) = self.tally.series.get_mut(index) else { return };
        point.requests += 1;
        point.bytes += u64::from(self.work.phase.block_bytes);
        point.slowest_us = point.slowest_us.max(u32::try_from(took_ns / 1000).unwrap_or(u32::MAX));
    }
}

fn count(requests: &mut DiskRequests, took_ns: u64, block: u32) {
    requests.requests += 1;
    requests.bytes += u64::from(block);
    requests.took_ns.record(took_ns);
}

impl Tally {
    /// Adds what another thread did.
    pub(super) fn merge(&mut self, other: Self) {
        for (mine, theirs) in [(&mut self.read, &other.read), (&mut self.write, &other.write)] {
            mine.requests += theirs.requests;
            mine.bytes += theirs.bytes;
            mine.took_ns.merge(&theirs.took_ns);
        }
        self.flush_ns.merge(&other.flush_ns);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.checked += other.checked;
        self.zero += other.zero;
        for (index, point) in other.series.into_iter().enumerate() {
            match self.series.get_mut(index) {
                Some(mine) => {
                    mine.requests = mine.requests.saturating_add(point.requests);
                    mine.bytes += point.bytes;
                    mine.slowest_us = mine.slowest_us.max(point.slowest_us);
                }
                None => self.series.push(point),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::VecDeque;

    use super::*;
    use crate::tests::{V4, control, spec};
    use linerate_model::kind::RttPlan;
    use linerate_model::load::Role;

    /// A queue whose every request first fails with `EAGAIN`, as on a stacked device.
    #[derive(Default)]
    struct Busy {
        memory: Vec<u8>,
        ends: VecDeque<(usize, io::Result<u32>)>,
        patient: u32,
        never: bool,
    }

    impl Queue for Busy {
        fn slot(&mut self, _: usize) -> Option<&mut [u8]> {
            Some(&mut self.memory)
        }

        fn ask(&mut self, slot: usize, _: Ask, _: u64) -> io::Result<()> {
            self.ends.push_back((slot, Err(io::ErrorKind::WouldBlock.into())));
            Ok(())
        }

        fn ask_patiently(&mut self, slot: usize, what: Ask, offset: u64) -> io::Result<()> {
            if self.never {
                return self.ask(slot, what, offset);
            }
            self.patient += 1;
            self.ends.push_back((slot, Ok(4096)));
            Ok(())
        }

        fn wait(&mut self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn ended(&mut self, list: &mut Vec<(usize, io::Result<u32>)>) {
            list.extend(self.ends.pop_front());
        }

        fn in_flight(&self) -> usize {
            self.ends.len()
        }

        fn remark(&self) -> Option<String> {
            None
        }
    }

    fn work() -> Work {
        let phase = DiskPhase {
            random: true,
            reads: 0,
            block_bytes: 4096,
            depth: 4,
            threads: 1,
            direct: true,
            durable: Durable::Never,
            batch: 1,
        };
        let limit = Duration::from_secs(60);
        Work { phase, start: 0, blocks: 64, slots: 4, requests_max: 40, limit, seed: 1 }
    }

    #[test]
    fn what_has_to_be_tried_again_is_and_counts_once() {
        let spec = spec(RttPlan { count: 1 }, Role::Receiver, V4);
        let control = control(|_| {});
        let job = Job::new(&spec, &control);
        let mut queue = Busy { memory: vec![1; 4096], ..Busy::default() };
        let tally = run(&job, work(), &mut queue).unwrap();
        assert_eq!((tally.write.requests, queue.patient), (40, 40));
        let mut queue = Busy { memory: vec![1; 4096], never: true, ..Busy::default() };
        let error = run(&job, work(), &mut queue).unwrap_err();
        assert!(error.to_string().contains("write"), "{error}");
    }
}
