//! What a cause left behind on a host that was read once: counts since boot and events of logs.
//!
//! In: facts and counters of imported evidence, which has no test around which a counter could grow. Out:
//! clues for the cause. Of a survey only the growth counts: events of last year explain no loss of today.

use linerate_knowledge::keys::{nic_of, pattern_fits};
use linerate_knowledge::{Cause, StandingCount};
use linerate_model::fact::HostFacts;
use linerate_model::finding::Clue;

use super::facts::beside;
use super::scored::Scored;
use super::suspect_context::SuspectContext;
use crate::evidence::Facts;

/// Counts of a host that support a cause.
pub(crate) fn clues(facts: &Facts<'_>, host: &str, cause: &Cause) -> Vec<Clue> {
    let Some(of_host) = facts.of(host).filter(|_| facts.snapshot.imported.is_some()) else {
        return Vec::new();
    };
    cause.standing.iter().filter_map(|count| largest(of_host, count)).collect()
}

/// Adds them to the score of a cause; whether there were any.
pub(super) fn judge(
    facts: &Facts<'_>,
    location: &SuspectContext<'_>,
    cause: &Cause,
    scored: &mut Scored<'_>,
) -> bool {
    let of_host = |host: &&str| clues(facts, host, cause);
    let found: Vec<Clue> = location.subjects.suspects.iter().flat_map(of_host).collect();
    let any = !found.is_empty();
    if any {
        scored.score += facts.rules.attribute.standing;
        scored.is_read = true;
        scored.supports.extend(found.into_iter().take(facts.rules.attribute.lines_max));
    }
    any
}

/// The largest count that holds.
fn largest(facts: &HostFacts, count: &StandingCount) -> Option<Clue> {
    let readings = facts.readings.iter().filter_map(|(key, value)| Some((key, value.number(0)?)));
    let counters = facts.counters.iter().map(|(key, value)| (key, *value as f64));
    let fits = |key: &str| count.keys.iter().any(|pattern| pattern_fits(pattern, key));
    let is_share = |key: &str, value: f64| match &count.of {
        None => true,
        Some(of) => whole(facts, &beside(key, of)).is_some_and(|whole| value >= count.share * whole),
    };
    let held = readings
        .chain(counters)
        .filter(|(key, value)| fits(key) && *value >= count.at_least && is_share(key, *value));
    let (name, value) = held.max_by(|a, b| a.1.total_cmp(&b.1))?;
    // One host has several devices.
    let device = nic_of(name).map(|nic| format!("{nic}: ")).unwrap_or_default();
    Some(Clue::Measured { name: name.clone(), value, says: format!("{device}{}", count.text) })
}

/// What a count is a part of.
fn whole(facts: &HostFacts, key: &str) -> Option<f64> {
    let reading = || facts.readings.get(key)?.number(0);
    facts.counters.get(key).map(|value| *value as f64).or_else(reading).filter(|whole| *whole > 0.0)
}
