//! Who probes whom: the same few partners for each host, chosen by name.
//!
//! Four rings hold all hosts in four orders that their names alone decide; a host probes those before and
//! behind it. A host that joins or leaves changes two partnerships of each ring. The first ring goes group by
//! group, so that paths inside of a group are probed too; the others cross groups.

use std::collections::BTreeSet;

use crate::rules::PARTNERS;

/// A host to be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its group, if it has one.
    pub group: Option<&'a str>,
}

/// Pairs of indices that probe each other, the smaller one first, in order. With few hosts it is all pairs.
pub fn partners(members: &[Member<'_>]) -> Vec<(usize, usize)> {
    let pairs: BTreeSet<(usize, usize)> =
        (0..PARTNERS / 2).flat_map(|number| partners_of_round(members, number)).collect();
    pairs.into_iter().collect()
}

/// Those of one ring: each host with two others. Four rounds have all of [`partners`].
pub fn partners_of_round(members: &[Member<'_>], round: usize) -> Vec<(usize, usize)> {
    let ring = round % (PARTNERS / 2);
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_cached_key(|at| {
        let member = members[*at];
        let group = member.group.filter(|_| ring == 0).map(|group| (hash(ring, group), group));
        (group, hash(ring, member.name), member.name)
    });
    let next = |at: usize| order[(at + 1) % order.len()];
    let pairs: BTreeSet<(usize, usize)> = (order.iter().enumerate())
        .map(|(at, one)| (*one.min(&next(at)), *one.max(&next(at))))
        .filter(|(one, other)| one != other)
        .collect();
    pairs.into_iter().collect()
}

/// FNV-1a with 64 bits, then mixed once: names that differ in one digit are far apart.
fn hash(ring: usize, name: &str) -> u64 {
    let absorb = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let sum = name.bytes().fold(absorb(0xcbf2_9ce4_8422_2325, ring as u8), absorb);
    linerate_model::random::Random(sum).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<(String, String)> {
        (0..count).map(|at| (format!("node{at}"), format!("rack{}", at / 20))).collect()
    }

    fn pairs(names: &[(String, String)]) -> BTreeSet<(&str, &str)> {
        let members: Vec<_> = names.iter().map(|(name, group)| Member { name, group: Some(group) }).collect();
        partners(&members).into_iter().map(|(a, b)| (members[a].name, members[b].name)).collect()
    }

    #[test]
    fn each_host_has_eight_partners_in_its_group_and_in_others() {
        let names = names(1000);
        let pairs = pairs(&names);
        let group = |name: &str| names.iter().find(|one| one.0 == name).map(|one| one.1.clone());
        let mut all = 0;
        for (name, own) in &names {
            let with = pairs.iter().filter_map(
                |(a, b)| {
                    if a == name { Some(*b) } else { (b == name).then_some(*a) }
                },
            );
            let (same, other): (Vec<_>, Vec<_>) = with.partition(|one| group(one).as_ref() == Some(own));
            assert!(!same.is_empty() && other.len() >= 2, "{name}: {same:?} {other:?}");
            assert!(same.len() + other.len() <= PARTNERS, "{name}");
            all += same.len() + other.len();
        }
        // Rings seldom hold the same pair twice.
        assert!(all >= 1000 * PARTNERS - 40, "{all}");
    }

    #[test]
    fn a_host_that_joins_changes_two_partnerships_a_ring() {
        let many = names(200);
        let (before, after) = (pairs(&many[..199]), pairs(&many));
        assert!(before.difference(&after).count() <= PARTNERS / 2, "{:?}", before.difference(&after));
        assert!(after.difference(&before).count() <= PARTNERS);
    }

    #[test]
    fn few_hosts_probe_all_others() {
        let four = names(4);
        assert_eq!(pairs(&four).len(), 6);
        let two = [("a", None), ("b", None)].map(|(name, group)| Member { name, group });
        assert_eq!(partners_of_round(&two, 7), [(0, 1)]);
        assert_eq!(pairs(&names(1)).len(), 0);
        assert_eq!(partners(&[]).len(), 0);
    }
}
