//! Settings that changed when a level did: the log of changes in, those between two runs out.

use linerate_model::fact_change::{FactChange, SeenBy};
use linerate_model::finding::Suspect;
use linerate_model::inventory::HostName;

/// A run: its identifier, and its start in Unix milliseconds.
pub type RunStart<'a> = (&'a str, u64);

/// Settings of the hosts in question that changed between two runs: seen by the later one, or by a reading
/// between both. What the earlier one saw was there when it measured.
#[must_use]
pub fn settings_between<'l>(
    suspect: &Suspect,
    last: RunStart<'_>,
    first: RunStart<'_>,
    log: &'l [FactChange],
) -> Vec<&'l FactChange> {
    let concerns = |host: &HostName| match suspect {
        Suspect::Host(one) => one == host,
        Suspect::Pair(a, b) => a == host || b == host,
        _ => true,
    };
    let is_then = |one: &&FactChange| match &one.seen_by {
        SeenBy::Run(run) if run == first.0 => true,
        SeenBy::Run(run) if run == last.0 => false,
        _ => one.seen_ms > last.1 && one.after_ms < first.1,
    };
    log.iter().filter(|one| concerns(&one.host)).filter(is_then).collect()
}
