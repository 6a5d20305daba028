//! Connections that have not shown yet that they belong to the test: how many wait, for how long, and which
//! one leaves first.
//!
//! What comes in: connections, the time. What goes out: those that showed what they had to, and a count of
//! the others. Any host that reaches the port can fill a queue, so that it is never closed to newcomers: when
//! it is full, the connection that has waited longest leaves. Each has a short time in which it cannot be
//! pushed out, which an honest end needs for one RTT. It does no I/O of its own and reads no clock.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use linerate_sys::accept::AcceptFailure;

use crate::job::FIRST_CONTACT;

/// Connections that are accepted before those that wait are read again: an honest one among them is read
/// before it can be the oldest.
const BATCH: usize = 64;

/// How long either end may take for its part of the exchange of proofs: a lost segment is sent again after a
/// second.
pub(crate) const PROOF_TIME: Duration = Duration::from_secs(3);

/// In which no newcomer pushes it out: an RTT around the world, and a sender that waits for a CPU.
const GRACE: Duration = Duration::from_millis(300);

/// Strangers that may wait at a data port beside the connections of the test.
const STRANGERS_MAX: usize = 256;

/// Bounds of a queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    /// Connections at the same time: each is a descriptor.
    pub capacity: usize,
    /// For so long no newcomer pushes a connection out.
    pub grace: Duration,
    /// Longest wait of one connection.
    pub life: Duration,
}

impl QueueLimits {
    /// For a data port whose sender opens so many connections.
    pub(crate) fn data_port(connections: usize) -> Self {
        Self { capacity: connections + STRANGERS_MAX, grace: GRACE, life: PROOF_TIME }
    }
}

/// Whether the wait for the next connection of the sender is over. One that came in time may still show its
/// proof: how many others wait beside it changes nothing.
pub(crate) fn is_over(waited: Duration, anyone_waits: bool) -> bool {
    waited >= FIRST_CONTACT + PROOF_TIME || (!anyone_waits && waited >= FIRST_CONTACT)
}

/// What a read of a waiting connection brought.
#[derive(Debug, PartialEq, Eq)]
pub enum ProofRead<R> {
    /// Not everything yet.
    Part,
    /// It is closed, or what it showed is wrong.
    Wrong,
    /// What it had to show.
    Proof(R),
}

/// See the file's head.
#[derive(Debug)]
pub struct Unproven<T> {
    limits: QueueLimits,
    queue: VecDeque<(Instant, T)>,
    paused: bool,
    came: u64,
    proven: u64,
}

impl<T> Unproven<T> {
    /// An empty queue.
    pub fn new(limits: QueueLimits) -> Self {
        Self { limits, queue: VecDeque::new(), paused: false, came: 0, proven: 0 }
    }

    /// Whether no connection waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Those that wait, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.queue.iter().map(|(_, item)| item)
    }

    /// Whether the listener belongs into the next wait. Not after an accept that would fail again at once: it
    /// stays readable, and waiting for it would not wait.
    pub fn takes(&self) -> bool {
        !self.paused
    }

    /// Connections that came and have not shown what they had to, those that still wait among them.
    pub(crate) fn unproven(&self) -> u64 {
        self.came - self.proven
    }

    /// Whether the connection that has waited longest has had its time of grace.
    fn may_push_out(&self, now: Instant) -> bool {
        self.queue
            .front()
            .is_some_and(|(since, _)| now.saturating_duration_since(*since) >= self.limits.grace)
    }

    /// Takes the first that waits and fits, whatever its time.
    pub fn push_out_of(&mut self, fits: impl Fn(&T) -> bool) -> Option<T> {
        let index = self.queue.iter().position(|(_, item)| fits(item))?;
        self.queue.remove(index).map(|(_, item)| item)
    }

    /// Accepts what has come, at most a batch: `accept` gives the next connection, `handshake` prepares it.
    /// The error is the listener's own; everything else that an accept can fail with passes.
    pub fn fill<S>(
        &mut self,
        now: Instant,
        mut accept: impl FnMut() -> io::Result<S>,
        mut handshake: impl FnMut(&mut Self, S) -> Option<T>,
    ) -> io::Result<()> {
        self.paused = false;
        // The descriptor of one that left must do: if it does not, another one would not help either.
        let mut evicted = false;
        for _ in 0..BATCH {
            let full = self.queue.len() >= self.limits.capacity;
            if full && !self.may_push_out(now) {
                self.paused = true;
                return Ok(());
            }
            match accept() {
                Ok(stream) => {
                    self.came += 1;
                    evicted = false;
                    if full {
                        self.queue.pop_front();
                    }
                    if let Some(item) = handshake(self, stream) {
                        self.queue.push_back((now, item));
                    }
                }
                Err(error) => match AcceptFailure::of(&error) {
                    AcceptFailure::Empty => return Ok(()),
                    AcceptFailure::Gone => {}
                    AcceptFailure::Exhausted => {
                        if evicted || !self.may_push_out(now) {
                            self.paused = true;
                            return Ok(());
                        }
                        self.queue.pop_front();
                        evicted = true;
                    }
                    AcceptFailure::Broken => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Reads every connection with `poll`; returns the next one that has shown its proof, in the order in
    /// which they came. Those that are wrong or too late leave.
    pub fn next_proven<R>(
        &mut self,
        now: Instant,
        mut poll: impl FnMut(&mut T) -> ProofRead<R>,
    ) -> Option<(T, R)> {
        let mut found = None;
        let life = self.limits.life;
        let mut index = 0;
        while let Some((since, item)) = self.queue.get_mut(index) {
            match poll(item) {
                ProofRead::Part if now.saturating_duration_since(*since) < life => index += 1,
                ProofRead::Part | ProofRead::Wrong => drop(self.queue.remove(index)),
                ProofRead::Proof(proof) => {
                    found = Some(proof);
                    break;
                }
            }
        }
        let (_, item) = self.queue.remove(index).filter(|_| found.is_some())?;
        self.proven += 1;
        Some((item, found?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMFILE: i32 = 24;
    const MS: Duration = Duration::from_millis(1);
    const LIMITS: QueueLimits =
        QueueLimits { capacity: 4, grace: Duration::from_millis(300), life: Duration::from_secs(3) };

    /// A listener whose accepts give these results, then nothing.
    fn accepts(results: &mut VecDeque<Result<u32, i32>>) -> io::Result<u32> {
        match results.pop_front() {
            Some(Ok(number)) => Ok(number),
            Some(Err(errno)) => Err(io::Error::from_raw_os_error(errno)),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn fill(queue: &mut Unproven<u32>, now: Instant, results: &mut VecDeque<Result<u32, i32>>) {
        queue.fill(now, || accepts(results), |_, number| Some(number)).unwrap();
    }

    fn numbers(queue: &Unproven<u32>) -> Vec<u32> {
        queue.iter().copied().collect()
    }

    /// Silent but for `right`.
    fn shows(right: u32) -> impl FnMut(&mut u32) -> ProofRead<()> {
        move |number| if *number == right { ProofRead::Proof(()) } else { ProofRead::Part }
    }

    #[test]
    fn the_oldest_leaves_when_it_is_full_but_not_in_its_time_of_grace() {
        let start = Instant::now();
        let mut queue = Unproven::new(LIMITS);
        let mut coming: VecDeque<_> = (0..6).map(Ok).collect();
        fill(&mut queue, start, &mut coming);
        assert_eq!((numbers(&queue), queue.takes(), coming.len()), (vec![0, 1, 2, 3], false, 2));
        fill(&mut queue, start + 299 * MS, &mut coming);
        assert_eq!((numbers(&queue), queue.takes()), (vec![0, 1, 2, 3], false));
        fill(&mut queue, start + 300 * MS, &mut coming);
        assert_eq!((numbers(&queue), queue.takes()), (vec![2, 3, 4, 5], true));
        assert_eq!(queue.unproven(), 6);
        fill(&mut queue, start + 900 * MS, &mut coming);
        assert_eq!(numbers(&queue), [2, 3, 4, 5], "nothing came for which one would have to leave");
    }

    #[test]
    fn the_right_one_is_found_in_an_endless_stream_of_others() {
        let start = Instant::now();
        let mut queue = Unproven::new(LIMITS);
        let mut number = 0;
        for turn in 0..100 {
            let now = start + turn * 150 * MS;
            // Two strangers a turn; the right one is number 77, and shows its token a turn later.
            let mut coming: VecDeque<_> = (number..number + 2).map(Ok).collect();
            fill(&mut queue, now, &mut coming);
            number += 2;
            let right = if number > 79 { 77 } else { u32::MAX };
            if let Some((found, ())) = queue.next_proven(now, shows(right)) {
                assert_eq!(found, 77);
                return;
            }
        }
        panic!("the right connection was pushed out");
    }

    #[test]
    fn a_silent_one_has_its_time_and_a_closed_one_leaves_at_once() {
        let start = Instant::now();
        let mut queue = Unproven::new(LIMITS);
        fill(&mut queue, start, &mut VecDeque::from([Ok(1), Ok(2), Ok(3)]));
        let closed = |number: &mut u32| if *number == 2 { ProofRead::Wrong } else { ProofRead::Part };
        assert_eq!(queue.next_proven::<()>(start, closed), None);
        assert_eq!(numbers(&queue), [1, 3]);
        assert_eq!(queue.next_proven(start + 2_999 * MS, shows(3)), Some((3, ())));
        assert_eq!(queue.next_proven(start + 3_000 * MS, shows(3)), None);
        assert!(queue.is_empty());
        assert_eq!(queue.unproven(), 2, "the third showed its token");
    }

    #[test]
    fn used_up_descriptors_push_the_oldest_out_or_pause_the_listener() {
        let start = Instant::now();
        let mut queue = Unproven::new(LIMITS);
        fill(&mut queue, start, &mut VecDeque::from([Ok(1), Err(EMFILE), Ok(2)]));
        assert_eq!((numbers(&queue), queue.takes()), (vec![1], false), "nothing may leave yet");
        let mut later = VecDeque::from([Err(EMFILE), Ok(2), Err(EMFILE), Ok(3)]);
        fill(&mut queue, start + 300 * MS, &mut later);
        assert_eq!((numbers(&queue), queue.takes()), (vec![2], false));
        fill(&mut queue, start + 300 * MS, &mut later);
        assert_eq!((numbers(&queue), queue.takes()), (vec![2, 3], true));
        fill(&mut queue, start + 900 * MS, &mut VecDeque::from([Err(EMFILE), Err(EMFILE), Ok(4)]));
        assert_eq!((numbers(&queue), queue.takes()), (vec![3], false), "one leaves, not all");
    }

    #[test]
    fn a_failed_connection_is_passed_over_and_a_broken_listener_is_an_error() {
        let start = Instant::now();
        let mut queue = Unproven::new(LIMITS);
        // ECONNABORTED, EPROTO, EHOSTUNREACH.
        fill(&mut queue, start, &mut VecDeque::from([Err(103), Err(71), Err(113), Ok(7)]));
        assert_eq!((numbers(&queue), queue.takes()), (vec![7], true));
        // EINVAL.
        let broken = queue.fill(start, || Err::<u32, _>(io::Error::from_raw_os_error(22)), |_, n| Some(n));
        assert!(broken.is_err());
    }
}
