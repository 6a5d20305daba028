//! Counters `disk_time.*`: how long requests to block devices took. Counted only when asked for by this
//! prefix, because it means a program of ours at tracepoints of the kernel: it begins with the first question
//! of a session and is gone with the session, however that ends.
//!
//! In: prefixes of keys. Out: counters by device, direction and range of time, or a gap with the reason. It
//! never asks twice where the kernel has refused.

use std::sync::{Mutex, PoisonError};

use linerate_model::disk::TIMES;
use linerate_model::fact::{FactDecl, FactKey, Gap, HostFacts};
use linerate_sys::block::Number;
use linerate_sys::block_times::{BlockTimes, DIRECTIONS};
use linerate_sys::root::{ReadError, Root};
use thiserror::Error;

/// What is known of it in this session.
#[derive(Debug, Default)]
enum State {
    #[default]
    NotAsked,
    Counting(BlockTimes),
    Refused(String),
}

/// The counts of a session.
#[derive(Debug, Default)]
pub(crate) struct DiskTimes(Mutex<State>);

pub(crate) fn declarations() -> Vec<FactDecl> {
    vec![FactDecl {
        pattern: format!("{TIMES}*.*.*"),
        unit: "count".to_owned(),
        meaning: "Requests (read, write, discard, flush) that the device had for as long as the key says, from-to in ns, since the session asked first. Only when asked for, by a program at tracepoints of the kernel.".to_owned(),
        setting: false,
    }]
}

impl DiskTimes {
    /// Adds the counts to what is read where they are asked for.
    pub(crate) fn add(&self, prefixes: &[FactKey], facts: &mut HostFacts) {
        if !prefixes.iter().any(|prefix| prefix.starts_with(TIMES)) {
            return;
        }
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::NotAsked) {
            *state = BlockTimes::begin()
                .map_or_else(|refused| State::Refused(refused.to_string()), State::Counting);
        }
        let read = match &*state {
            State::Counting(times) => read(times, prefixes, facts).map_err(|e| e.to_string()),
            State::Refused(reason) => Err(reason.clone()),
            State::NotAsked => return,
        };
        if let Err(reason) = read {
            facts.gaps.push(Gap { what: format!("{TIMES}*").into(), reason });
        }
    }
}

/// Why the counts cannot be read.
#[derive(Debug, Error)]
enum TimesError {
    #[error(transparent)]
    List(#[from] ReadError),
    #[error("{name}: {source}")]
    Device { name: String, source: std::io::Error },
}

/// Watches devices that have come, and reads all.
fn read(times: &BlockTimes, prefixes: &[FactKey], facts: &mut HostFacts) -> Result<(), TimesError> {
    let text = Root::live().read("/proc/diskstats")?;
    for (number, name) in text.lines().filter_map(device) {
        let words = |source| TimesError::Device { name: name.to_owned(), source };
        times.watch(number).map_err(words)?;
        let Some(counts) = times.read(number).map_err(words)? else { continue };
        let disk = name.replace('.', "/");
        for (at, direction) in DIRECTIONS.iter().enumerate() {
            for (low, high, count) in counts.of(at) {
                let key = format!("{TIMES}{disk}.{direction}.{low}-{high}");
                if prefixes.iter().any(|prefix| key.starts_with(prefix.as_str())) {
                    facts.counters.insert(key, i64::try_from(count).unwrap_or(i64::MAX));
                }
            }
        }
    }
    Ok(())
}

/// Number and name of a device, at the beginning of its line.
fn device(line: &str) -> Option<(Number, &str)> {
    let mut words = line.split_ascii_whitespace();
    let (major, minor) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((Number { major, minor }, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_who_does_not_ask_is_counted_for() {
        let times = DiskTimes::default();
        let mut facts = HostFacts::default();
        for prefixes in [vec![], vec!["disk.".to_owned()], vec!["disk".to_owned()]] {
            times.add(&prefixes, &mut facts);
        }
        assert!(matches!(*times.0.lock().unwrap(), State::NotAsked));
        assert_eq!(facts, HostFacts::default());
    }

    #[test]
    fn a_line_of_a_device_is_understood_and_others_are_not() {
        let line = "   8      16 sdb 5 0 40 1 0 0 0 0 0 1 1";
        assert_eq!(device(line), Some((Number { major: 8, minor: 16 }, "sdb")));
        assert!(["", "8", "8 x sdb", "8 16", "-1 2 sdb"].iter().all(|line| device(line).is_none()));
    }
}
