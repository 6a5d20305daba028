//! What is known of a host from its last readings, and what a new reading changes of it. Pure: a reading
//! comes in with what it was asked for, changes go out. What a reading was not asked for or could not see is
//! no change, and stays known as it was.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fact::{FactKey, FactValue, HostFacts, changes_by_itself, pattern_fits};

/// Families that are read only when they are asked for by name.
const ASKED_ONLY: [&str; 3] = ["drbd.", "lldp.", "netns."];
/// The subject of the gap of a host that has more facts than are read.
const SOME_KEYS: &str = "keys";

/// What a reading was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadScope<'a> {
    /// All facts of a host.
    All,
    /// All facts whose keys have one of these prefixes.
    Below(&'a [FactKey]),
    /// A part that has no rule: what is absent in it means nothing.
    Part,
}

/// From when to when a reading took, Unix milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadSpan {
    pub started_ms: u64,
    pub ended_ms: u64,
}

impl ReadSpan {
    /// Whether another reading, of that moment, is newer: it began while this one was running. One that
    /// began after this one had ended was made before the clock was set back.
    fn is_before(self, other_ms: u64) -> bool {
        self.started_ms < other_ms && other_ms <= self.ended_ms
    }
}

/// A fact that a reading changed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Changed {
    pub key: FactKey,
    pub from: Option<FactValue>,
    pub to: Option<FactValue>,
    /// When the old value was read last.
    pub after_ms: u64,
}

/// What is known of a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Known {
    /// Values, and when each was read last.
    pub facts: BTreeMap<FactKey, (FactValue, u64)>,
    /// Beginnings of keys that were read whole, and when last: a key below one of them that is not known was
    /// absent then.
    pub covered: BTreeMap<String, u64>,
    /// Patterns of keys that could not be read.
    pub unseen: BTreeSet<String>,
}

impl Known {
    /// Takes over a reading; gives what it changed, in the order of keys. What another reading saw after this
    /// one began is newer, and stays.
    pub(super) fn learn(&mut self, new: &HostFacts, scope: ReadScope<'_>, when: ReadSpan) -> Vec<Changed> {
        let covered = covered(new, scope);
        let unseen: BTreeSet<String> = new.gaps.iter().map(|gap| gap.what.to_string()).collect();
        let mut changed = self.disappear(new, &covered, &unseen, when);
        for (key, value) in new.readings.iter().filter(|(key, _)| !changes_by_itself(key)) {
            let now = (value.clone(), when.started_ms);
            let (from, old_ms) = match self.facts.entry(key.clone()) {
                Entry::Occupied(known) if when.is_before(known.get().1) => continue,
                Entry::Occupied(mut known) => {
                    let (old, seen_ms) = std::mem::replace(known.get_mut(), now);
                    (Some(old), Some(seen_ms))
                }
                Entry::Vacant(free) => {
                    let absent = self.covered.iter().filter(|(prefix, _)| covers(prefix, key));
                    let absent_ms = absent.map(|(_, ms)| *ms).max();
                    if absent_ms.is_some_and(|ms| when.is_before(ms)) {
                        continue;
                    }
                    free.insert(now);
                    (None, absent_ms.filter(|_| !is_unseen(&self.unseen, key)))
                }
            };
            if let Some(ms) = old_ms.filter(|_| from.as_ref() != Some(value)) {
                let (key, to) = (key.clone(), Some(value.clone()));
                changed.push(Changed { key, from, to, after_ms: ms.min(when.started_ms) });
            }
        }
        self.remember(covered, unseen, scope, when.started_ms);
        changed.sort_by(|a, b| a.key.cmp(&b.key));
        changed
    }

    /// Facts that the reading would have shown.
    fn disappear(
        &mut self,
        new: &HostFacts,
        covered: &BTreeSet<String>,
        unseen: &BTreeSet<String>,
        when: ReadSpan,
    ) -> Vec<Changed> {
        let is_gone = |key: &str| {
            let is_covered = covered.iter().any(|prefix| covers(prefix, key));
            is_covered && !new.readings.contains_key(key) && !is_unseen(unseen, key)
        };
        let known = self.facts.iter().filter(|(key, (_, ms))| !when.is_before(*ms) && is_gone(key));
        let gone: Vec<FactKey> = known.map(|(key, _)| key.clone()).collect();
        let gone = gone.into_iter().filter_map(|key| {
            let (old, ms) = self.facts.remove(&key)?;
            Some(Changed { key, from: Some(old), to: None, after_ms: ms.min(when.started_ms) })
        });
        gone.collect()
    }

    fn remember(
        &mut self,
        covered: BTreeSet<String>,
        unseen: BTreeSet<String>,
        scope: ReadScope<'_>,
        at_ms: u64,
    ) {
        if scope == ReadScope::All {
            self.unseen = unseen;
            // Below everything is all but what has to be asked for by name.
            self.covered.retain(|prefix, ms| family(prefix).is_some() || *ms > at_ms);
        } else {
            self.unseen.extend(unseen);
        }
        for prefix in covered {
            let last = self.covered.entry(prefix).or_insert(at_ms);
            *last = at_ms.max(*last);
        }
    }
}

/// Beginnings of keys that a reading shows whole.
fn covered(new: &HostFacts, scope: ReadScope<'_>) -> BTreeSet<String> {
    match scope {
        ReadScope::Part => BTreeSet::new(),
        ReadScope::Below(prefixes) if !prefixes.is_empty() => prefixes.iter().cloned().collect(),
        // Of namespaces inside a host those that were entered.
        ReadScope::All | ReadScope::Below(_) => {
            let inside = new.readings.keys().filter(|key| key.starts_with("netns."));
            inside.filter_map(|key| family(key)).map(str::to_owned).chain([String::new()]).collect()
        }
    }
}

/// The family of a key that is read only when it is asked for; of a namespace inside a host its whole prefix.
fn family(key: &str) -> Option<&str> {
    let family = ASKED_ONLY.into_iter().find(|family| key.starts_with(family))?;
    let inside = key.find('|').filter(|_| family == "netns.").map(|at| &key[..=at]);
    inside.or_else(|| key.get(..family.len()))
}

/// Whether a reading of all keys with one of these prefixes shows this one.
fn covers(prefix: &str, key: &str) -> bool {
    key.starts_with(prefix) && prefix.starts_with(family(key).unwrap_or_default())
}

fn is_unseen(unseen: &BTreeSet<String>, key: &str) -> bool {
    let (inside, _) = apart(key);
    unseen.iter().any(|what| {
        let (of, pattern) = apart(what);
        of == inside && (pattern.is_empty() || pattern == SOME_KEYS || pattern_fits(pattern, key))
    })
}

/// The namespace inside a host that a key or a pattern speaks of, and the rest.
fn apart(key: &str) -> (&str, &str) {
    let at = key.find('|').filter(|_| key.starts_with("netns.")).map_or(0, |at| at + 1);
    key.split_at(at)
}
