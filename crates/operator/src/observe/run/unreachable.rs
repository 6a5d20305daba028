//! Pairs between which not even a small request was answered, and hosts that no request reaches or that reach
//! nobody. What else is planned for them comes after all others, and waits less: each such test takes its
//! whole time to end.
//!
//! What comes in: samples. What goes out: whether a test is worth its place in the plan.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::inventory::{HostName, Inventory, Layer};
use linerate_model::kind::RttPlan;
use linerate_model::plan::Test;
use linerate_model::sample::{Outcome, Sample};

/// A host is unreachable in a direction after requests with so many others in vain and none answered. The
/// others are of two groups at least: all paths between two racks may be cut while those inside are intact.
const PARTNERS_MIN: usize = 3;
const GROUPS_MIN: usize = 2;

/// One end of a test: host, layer, and whether it sends.
type End = (HostName, Layer, bool);

#[derive(Debug, Default)]
pub(super) struct Unreachable {
    pairs: BTreeSet<(HostName, HostName, Layer)>,
    /// Others that each end asked in vain, each with its group; `None` once one was answered.
    ends: BTreeMap<End, Option<BTreeMap<HostName, String>>>,
}

impl Unreachable {
    /// A test ended. Only requests count: a transfer that fails may be a matter of its port.
    pub(super) fn saw(&mut self, sample: &Sample, inventory: &Inventory) {
        let test = &sample.test;
        if !test.kind.is::<RttPlan>() {
            return;
        }
        let vain = match sample.outcome {
            Outcome::NothingThrough { .. } => true,
            Outcome::Measured(_) => false,
            Outcome::Invalid { .. } | Outcome::Gap { .. } => return,
        };
        if vain {
            self.pairs.insert((test.from.clone(), test.to.clone(), test.layer));
        }
        for (end, other) in ends(test).into_iter().zip([&test.to, &test.from]) {
            let asked = self.ends.entry(end).or_insert_with(|| Some(BTreeMap::new()));
            if !vain {
                *asked = None;
            } else if let Some(asked) = asked {
                let group = inventory.groups_of(other).first().map_or(other, |group| &group.name);
                asked.insert(other.clone(), group.clone());
            }
        }
    }

    /// Whether nothing is expected to come of a test.
    pub(super) fn has(&self, test: &Test) -> bool {
        let is_unreachable = |end: &End| {
            self.ends.get(end).and_then(Option::as_ref).is_some_and(|asked| {
                let groups: BTreeSet<&String> = asked.values().collect();
                asked.len() >= PARTNERS_MIN && groups.len() >= GROUPS_MIN
            })
        };
        self.pairs.contains(&(test.from.clone(), test.to.clone(), test.layer))
            || ends(test).iter().any(is_unreachable)
    }
}

fn ends(test: &Test) -> [End; 2] {
    [(test.from.clone(), test.layer, true), (test.to.clone(), test.layer, false)]
}

#[cfg(test)]
mod tests {
    use linerate_model::inventory::{Group, Host, TransportSpec};

    use super::*;
    use linerate_model::kind::{TcpPlan, TestKind};

    fn test(from: &str, to: &str, kind: TestKind) -> Test {
        Test { id: 1, serial: false, ..Test::new(from.into(), to.into(), Layer::Underlay, kind) }
    }

    fn request(from: &str, to: &str, answered: bool) -> Sample {
        let outcome = if answered {
            Outcome::Measured(Box::default())
        } else {
            Outcome::NothingThrough { reason: "no answer".to_owned() }
        };
        Sample::new(test(from, to, TestKind::from(RttPlan { count: 6 })), 0, outcome)
    }

    fn transfer(from: &str, to: &str) -> Test {
        test(from, to, TestKind::from(TcpPlan::single(250)))
    }

    /// Hosts `a` and `b` in one rack, `c`, `d` and `e` in another.
    fn racks() -> Inventory {
        let group = |name: &str| Group {
            name: name.to_owned(),
            kind: "rack".to_owned(),
            parent: None,
            uplink_bps: None,
            machine: None,
        };
        let host = |(name, rack): (&str, &str)| Host {
            name: name.to_owned(),
            transport: TransportSpec::Local,
            groups: vec![rack.to_owned()],
            endpoints: Vec::new(),
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        };
        let hosts = [("a", "1"), ("b", "1"), ("c", "2"), ("d", "2"), ("e", "2")].map(host).to_vec();
        Inventory { groups: vec![group("1"), group("2")], hosts, ..Inventory::default() }
    }

    fn after(requests: &[(&str, &str, bool)]) -> Unreachable {
        let mut unreachable = Unreachable::default();
        for (from, to, answered) in requests {
            unreachable.saw(&request(from, to, *answered), &racks());
        }
        unreachable
    }

    #[test]
    fn a_host_that_three_others_of_two_racks_do_not_reach_is_expected_to_be_out_of_reach_for_the_rest() {
        let two = [("b", "a", false), ("c", "a", false)];
        let unreachable = after(&two);
        assert!(
            unreachable.has(&transfer("b", "a")) && !unreachable.has(&transfer("d", "a")),
            "two may be two bad ways"
        );
        let unreachable = after(&[two[0], two[1], ("d", "a", false)]);
        assert!(unreachable.has(&transfer("e", "a")), "nobody asked yet, and nobody needs to");
        assert!(!unreachable.has(&transfer("a", "e")), "the other direction was not looked at");
        assert!(!unreachable.has(&Test { layer: Layer::Overlay, ..transfer("e", "a") }));
    }

    #[test]
    fn ways_to_one_rack_one_answer_and_contended_requests_say_nothing_of_the_others() {
        let unreachable = after(&[("a", "c", false), ("a", "d", false), ("a", "e", false)]);
        assert!(
            unreachable.has(&transfer("a", "c")) && !unreachable.has(&transfer("a", "b")),
            "inside the rack it may be fine"
        );
        let unreachable = after(&[("a", "b", false), ("c", "b", true), ("d", "b", false), ("e", "b", false)]);
        assert!(unreachable.has(&transfer("a", "b")) && !unreachable.has(&transfer("c", "b")));
        let mut unreachable = Unreachable::default();
        for other in ["b", "c", "d"] {
            let outcome = Outcome::Invalid { reason: "contended".to_owned() };
            unreachable.saw(&Sample { outcome, ..request(other, "a", false) }, &racks());
        }
        assert!(!unreachable.has(&transfer("e", "a")));
    }
}
