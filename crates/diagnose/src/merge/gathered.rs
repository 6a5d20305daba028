//! A setting that is wrong on most hosts of a cluster is one thing to know and one remedy, not a finding of
//! each host.
//!
//! In: what is wrong at single hosts, of one cause. Out: the same, or one location that stands for all hosts.

use std::collections::BTreeSet;

use linerate_model::finding::{Clue, Direction, LayerScope, Suspect};
use linerate_model::inventory::HostName;

use crate::attribute::Scored;
use crate::rules::MergeRules;

/// A setting that is wrong at a location.
pub(crate) struct Wrong<'k> {
    /// Where.
    pub suspect: Suspect,
    /// Direction of its harm.
    pub direction: Direction,
    /// Layers of its harm.
    pub layer: LayerScope,
    /// The cause with its evidence.
    pub scored: Scored<'k>,
}

/// One location instead of many, where more than half of `hosts` have the same wrong; else what came in.
pub(crate) fn gathered<'k>(mut wrong: Vec<Wrong<'k>>, hosts: usize, rules: &MergeRules) -> Vec<Wrong<'k>> {
    if wrong.len() < rules.many_hosts || wrong.len() as f64 <= rules.majority * hosts as f64 {
        return wrong;
    }
    wrong.sort_by(|a, b| b.scored.score.total_cmp(&a.scored.score));
    let mut all = wrong.into_iter();
    let Some(mut first) = all.next() else { return Vec::new() };
    first.scored.hits.extend(all.flat_map(|other| other.scored.hits));
    first.suspect = Suspect::All;
    vec![first]
}

/// Hosts that a wrong setting was read on.
pub(crate) fn hosts<'w>(wrong: &'w Wrong<'_>) -> BTreeSet<&'w str> {
    wrong.scored.hits.iter().map(|hit| hit.host.as_str()).collect()
}

/// The hosts of which the evidence quotes no value: it quotes those of a few.
pub(crate) fn on_others(wrong: &Wrong<'_>) -> Option<Clue> {
    let is_quoted = |host: &str| {
        wrong.scored.supports.iter().any(|clue| matches!(clue, Clue::Read(hit) if hit.host == host))
    };
    let rest = hosts(wrong).into_iter().filter(|host| !is_quoted(host));
    let rest: Vec<HostName> = rest.map(str::to_owned).collect();
    (!rest.is_empty()).then_some(Clue::AlsoOn(rest))
}

#[cfg(test)]
mod tests {
    use linerate_knowledge::{Knowledge, SuspectKind};
    use linerate_model::fact::FactValue;
    use linerate_model::finding::FactHit;

    use super::*;

    fn wrong(knowledge: &Knowledge, count: usize) -> Vec<Wrong<'_>> {
        let cause = knowledge.causes().find(|c| c.is_static).unwrap();
        let one = |number: usize| {
            let host = format!("n{number}");
            let hit =
                FactHit { host: host.clone(), key: "key".to_owned(), value: FactValue::Int(0), peers: None };
            Wrong {
                suspect: Suspect::Host(host),
                direction: Direction::Both,
                layer: LayerScope::Any,
                scored: Scored {
                    cause,
                    score: 1.0 + number as f64,
                    supports: vec![Clue::Read(hit.clone())],
                    contradicts: Vec::new(),
                    hits: vec![hit],
                    is_read: true,
                    native: SuspectKind::HostBoth,
                },
            }
        };
        (1..=count).map(one).collect()
    }

    #[test]
    fn what_most_hosts_have_is_one_place_and_a_few_stay_apart() {
        let knowledge = Knowledge::builtin().unwrap();
        let rules = &crate::rules::Rules::DEFAULT.merge;
        assert_eq!(gathered(wrong(&knowledge, 7), 8, rules).len(), 7, "few");
        assert_eq!(gathered(wrong(&knowledge, 10), 20, rules).len(), 10, "not most of them");
        let one = gathered(wrong(&knowledge, 11), 20, rules);
        assert_eq!((one.len(), &one[0].suspect), (1, &Suspect::All));
        assert_eq!(hosts(&one[0]).len(), 11);
        assert!(matches!(&one[0].scored.supports[..], [Clue::Read(hit)] if hit.host == "n11"));
        assert!(matches!(on_others(&one[0]), Some(Clue::AlsoOn(hosts)) if hosts.len() == 10));
    }
}
