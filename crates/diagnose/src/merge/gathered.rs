//! A setting that is wrong on most hosts of a cluster is one thing to know and one remedy, not a finding of
//! each host.
//!
//! In: what is wrong at single hosts, of one cause. Out: the same, or one place that stands for all hosts.

use std::collections::BTreeSet;

use linerate_model::finding::{Direction, LayerScope, Suspect};
use linerate_model::names::ranges;

use crate::attribute::Scored;
use crate::rules::MergeRules;

/// A setting that is wrong at a place.
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

/// One place instead of many, where more than half of `hosts` have the same wrong; else what came in.
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

/// The hosts that no line of the evidence begins with, as a line more; the lines quote the values of a few.
pub(crate) fn on_others(wrong: &Wrong<'_>) -> Option<String> {
    let quoted = |host: &str| {
        let begins = |line: &String| line.strip_prefix(host).is_some_and(|rest| rest.starts_with(": "));
        wrong.scored.evidence.iter().any(begins)
    };
    let rest: Vec<&str> = hosts(wrong).into_iter().filter(|host| !quoted(host)).collect();
    (!rest.is_empty()).then(|| format!("likewise on {}", ranges(&rest)))
}

#[cfg(test)]
mod tests {
    use linerate_knowledge::{Knowledge, SuspectKind};
    use linerate_model::fact::FactValue;

    use super::*;
    use crate::attribute::FactHit;

    fn wrong(knowledge: &Knowledge, count: usize) -> Vec<Wrong<'_>> {
        let cause = knowledge.causes().find(|c| c.is_static).unwrap();
        let one = |number: usize| Wrong {
            suspect: Suspect::Host(format!("n{number}")),
            direction: Direction::Both,
            layer: LayerScope::Any,
            scored: Scored {
                cause,
                score: 1.0 + number as f64,
                evidence: vec![format!("n{number}: key is 0")],
                against: Vec::new(),
                hits: vec![FactHit {
                    host: format!("n{number}"),
                    key: "key".to_owned(),
                    value: FactValue::Int(0),
                    peers: None,
                }],
                native: SuspectKind::HostBoth,
            },
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
        assert_eq!(one[0].scored.evidence, ["n11: key is 0"]);
        assert_eq!(on_others(&one[0]).as_deref(), Some("likewise on n[1-10]"));
    }
}
