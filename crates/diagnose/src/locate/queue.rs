//! Hypotheses by score, the best first, while their scores change: a look at all of them for each finding
//! would be a square.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A hypothesis as it was scored when it was put in.
struct Entry {
    score: f64,
    column: usize,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        // Of equals the last one, as a maximum over all of them would give.
        self.score.total_cmp(&other.score).then(self.column.cmp(&other.column))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

/// The queue.
#[derive(Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Entry>,
}

impl Queue {
    /// Puts in a hypothesis, or puts it in again because its score has changed. Those that say nothing stay
    /// out.
    pub(super) fn put(&mut self, column: usize, score: f64) {
        if score.is_finite() {
            self.heap.push(Entry { score, column });
        }
    }

    /// Takes out the best one whose score is still what it was.
    pub(super) fn take(&mut self, now: impl Fn(usize) -> f64) -> Option<usize> {
        while let Some(entry) = self.heap.pop() {
            if entry.score.to_bits() == now(entry.column).to_bits() {
                return Some(entry.column);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_comes_first_and_old_scores_do_not_count() {
        let mut scores = [1.0, 5.0, 3.0, f64::NEG_INFINITY];
        let mut queue = Queue::default();
        for (i, score) in scores.iter().enumerate() {
            queue.put(i, *score);
        }
        scores[1] = 2.0;
        queue.put(1, 2.0);
        let mut order = Vec::new();
        while let Some(column) = queue.take(|i| scores[i]) {
            order.push(column);
        }
        assert_eq!(order, [2, 1, 0]);
    }
}
