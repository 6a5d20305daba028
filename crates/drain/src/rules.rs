//! The numbers that decide about draining and resuming, each with its unit and source.

/// Runs that have to locate the fault on the host. ByteRobust (ByteDance, 2025) acts on a network alarm only
/// when it is repeated; Azure's node checks drained healthy nodes after a single bad pass.
pub const SIGHTINGS: usize = 2;

/// Least time between the starts of the two runs, milliseconds: 5 minutes, the window of ByteRobust.
pub const APART_MS: u64 = 5 * 60 * 1000;

/// Age of the newest run above which it is not evidence any more, milliseconds: 1 hour. A person who reads
/// an older run measures again first.
pub const NEWEST_AGE_MS_MAX: u64 = 60 * 60 * 1000;

/// Longest time between the two runs, milliseconds: 24 hours. What was seen earlier is another incident.
pub const APART_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// Least probability of the finding and of its location, 0 to 1: `certain` in the words of `docs/STYLE.md`.
pub const PROBABILITY: f64 = 0.95;

/// Share of the cluster's nodes that may be held at a time: 5 %, as operators bound rolling maintenance.
pub const CAP_SHARE: f64 = 0.05;

/// Nodes that may be held at a time in a small cluster, where the share is less than that.
pub const CAP_NODES: usize = 2;

/// Share of the members of a group above which a fault of each of them is one of the group, 0 to 1.
pub const GROUP_SHARE: f64 = 0.5;

/// Members that a group needs before it can explain anything: with two hosts each of them is half of it.
pub const GROUP_MEMBERS: usize = 3;

/// What a boot time of the scheduler may differ from the operator's clock, milliseconds: 1 minute. Munge
/// refuses clocks that are 5 minutes off.
pub const CLOCK_MS: u64 = 60 * 1000;

/// Characters of a reason: the finding, then the run. `sinfo -R` shows the first 20.
pub const REASON_CHARS: usize = 120;

/// Nodes that may be held at a time in a cluster of this size.
#[must_use]
pub fn cap(nodes: usize) -> usize {
    ((nodes as f64 * CAP_SHARE) as usize).max(CAP_NODES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_is_two_nodes_or_five_percent() {
        assert_eq!([0, 4, 40, 59, 60, 1000].map(cap), [2, 2, 2, 2, 3, 50]);
    }
}
