//! Which tests may run at the same time. Pure.
//!
//! What comes in: ordered pairs and the inventory. What goes out: rounds. Each host is in at most one test of
//! a round. With [`Sharing::Bulk`] two tests never share the uplink of a group (unless its rate is known to
//! hold more than one link), and no rule ever lets both directions of an uplink run at once. Nothing here
//! knows what the tests measure.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::inventory::{Inventory, Layer};

use linerate_model::random::Random;

/// How much of an uplink one test takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// All that there is: TCP transfers.
    Bulk,
    /// About a fifth: three may run in one direction.
    Fifth,
    /// Next to nothing, so that uplinks are no matter: single packets.
    Nothing,
}

/// Uplinks that tests in parallel may need, by index, with the number of bulk tests that each can hold.
#[derive(Debug, Clone, Default)]
pub struct Uplinks {
    /// Groups of each host, in order.
    groups: Vec<Vec<usize>>,
    room: Vec<usize>,
}

impl Uplinks {
    /// The uplinks between these hosts. `link_bps` is the largest known link rate of a host in this layer.
    pub fn new(
        inventory: &Inventory,
        hosts: &[String],
        link_bps: impl Fn(&str, Layer) -> Option<f64>,
        layer: Layer,
    ) -> Self {
        let numbers: BTreeMap<&str, usize> =
            inventory.groups.iter().enumerate().map(|(i, g)| (g.name.as_str(), i)).collect();
        let groups: Vec<Vec<usize>> = hosts
            .iter()
            .map(|host| {
                let mine = inventory.groups_of(host);
                let mut mine: Vec<usize> =
                    mine.iter().filter_map(|g| numbers.get(g.name.as_str()).copied()).collect();
                mine.sort_unstable();
                mine
            })
            .collect();
        // The fastest link in each group, how many hosts of it have an unknown one, and how many there are.
        let mut links = vec![(0.0_f64, 0_usize, 0_usize); inventory.groups.len()];
        for (host, groups) in hosts.iter().zip(&groups) {
            let link = link_bps(host, layer);
            for group in groups {
                let (most, unknown, all) = &mut links[*group];
                *most = most.max(link.unwrap_or(0.0));
                *unknown += usize::from(link.is_none());
                *all += 1;
            }
        }
        let room = inventory
            .groups
            .iter()
            .zip(links)
            // In a large group a few hosts that nobody could read must not slow down the whole survey.
            .map(|(group, (link, unknown, all))| match group.uplink_bps.filter(|_| unknown * 10 <= all) {
                Some(uplink) if link > 0.0 && uplink >= 2.0 * link => (uplink / link) as usize,
                _ => 1,
            })
            .collect();
        Self { groups, room }
    }

    /// The uplinks on the way of a pair: (uplink, whether it is left upwards).
    fn path(&self, (from, to): (usize, usize)) -> impl Iterator<Item = (usize, bool)> {
        let of = |host: usize| self.groups.get(host).map_or(&[][..], Vec::as_slice);
        let (mine, theirs) = (of(from), of(to));
        let up = mine.iter().filter(|g| !theirs.contains(g)).map(|g| (*g, true));
        up.chain(theirs.iter().filter(|g| !mine.contains(g)).map(|g| (*g, false)))
    }
}

/// Rounds that hold all the pairs. The most wanted resource is served first, which for the shapes that
/// clusters have gives as many rounds as that resource has tests.
pub fn pack(
    pairs: &[(usize, usize)],
    uplinks: &Uplinks,
    sharing: Sharing,
    seed: u64,
) -> Vec<Vec<(usize, usize)>> {
    let tries = if pairs.len() <= 300 { 8 } else { 1 };
    (0..tries)
        .map(|n| pack_once(pairs, uplinks, sharing, &mut Random(seed.wrapping_add(n))))
        .min_by_key(Vec::len)
        .unwrap_or_default()
}

/// From so many pairs on the order in which they are tried is made anew only every few rounds: what is most
/// wanted changes slowly then, and sorting would take most of the time.
const MANY_PAIRS: usize = 4000;
const ORDER_KEPT_ROUNDS: usize = 8;

fn pack_once(
    pairs: &[(usize, usize)],
    uplinks: &Uplinks,
    sharing: Sharing,
    random: &mut Random,
) -> Vec<Vec<(usize, usize)>> {
    let hosts = pairs.iter().map(|(a, b)| 1 + *a.max(b)).max().unwrap_or(0);
    let mut left: Vec<(usize, usize)> = pairs.to_vec();
    let mut rounds = Vec::new();
    let mut order: Vec<(usize, usize)> = Vec::new();
    // In which round each host was last taken.
    let mut busy = vec![usize::MAX; hosts];
    while !left.is_empty() {
        if order.is_empty() || left.len() < MANY_PAIRS || rounds.len() % ORDER_KEPT_ROUNDS == 0 {
            order = wanted_first(&left, uplinks, sharing, random);
        }
        let mut round = Vec::new();
        let mut use_of: BTreeMap<usize, (bool, usize)> = BTreeMap::new();
        for pair in &order {
            let free = busy[pair.0] != rounds.len() && busy[pair.1] != rounds.len();
            if !free || !fits(*pair, uplinks, sharing, &use_of) {
                continue;
            }
            for (group, upwards) in uplinks.path(*pair) {
                use_of.entry(group).or_insert((upwards, 0)).1 += 1;
            }
            (busy[pair.0], busy[pair.1]) = (rounds.len(), rounds.len());
            round.push(*pair);
        }
        // No host is twice in a round, so no pair is either; a pair that is wanted twice loses one.
        let mut taken: BTreeSet<(usize, usize)> = round.iter().copied().collect();
        left.retain(|pair| !taken.remove(pair));
        let mut taken: BTreeSet<(usize, usize)> = round.iter().copied().collect();
        order.retain(|pair| !taken.remove(pair));
        rounds.push(round);
    }
    rounds
}

/// The pairs in the order in which they are tried: those that need the most wanted host or uplink first.
fn wanted_first(
    left: &[(usize, usize)],
    uplinks: &Uplinks,
    sharing: Sharing,
    random: &mut Random,
) -> Vec<(usize, usize)> {
    let demand = Demand::of(left, uplinks, sharing);
    let mut order: Vec<(u64, u64, usize)> = left
        .iter()
        .enumerate()
        .map(|(i, pair)| {
            let (most, sum) = demand.weight(*pair, uplinks, sharing);
            // Larger first; among equals the order of the list with a little chance in it.
            (u64::MAX - most * 4096 - sum, i as u64 / 8 * 8 + random.next_u64() % 8, i)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, i)| left[i]).collect()
}

fn room(uplinks: &Uplinks, group: usize, sharing: Sharing) -> usize {
    let bulk = uplinks.room.get(group).copied().unwrap_or(1);
    match sharing {
        Sharing::Bulk => bulk,
        Sharing::Fifth => bulk * 3,
        Sharing::Nothing => usize::MAX,
    }
}

fn fits(
    pair: (usize, usize),
    uplinks: &Uplinks,
    sharing: Sharing,
    use_of: &BTreeMap<usize, (bool, usize)>,
) -> bool {
    sharing == Sharing::Nothing
        || uplinks.path(pair).all(|(group, upwards)| {
            use_of.get(&group).is_none_or(|(direction, count)| {
                *direction == upwards && *count < room(uplinks, group, sharing)
            })
        })
}

/// How many rounds each host and uplink still needs.
struct Demand {
    hosts: Vec<u64>,
    uplinks: Vec<u64>,
}

impl Demand {
    fn of(left: &[(usize, usize)], uplinks: &Uplinks, sharing: Sharing) -> Self {
        let hosts = left.iter().map(|(a, b)| 1 + *a.max(b)).max().unwrap_or(0);
        let mut demand = Self { hosts: vec![0; hosts], uplinks: vec![0; uplinks.room.len()] };
        for pair in left {
            demand.hosts[pair.0] += 1;
            demand.hosts[pair.1] += 1;
            if sharing != Sharing::Nothing {
                for (group, _) in uplinks.path(*pair) {
                    demand.uplinks[group] += 1;
                }
            }
        }
        if sharing != Sharing::Nothing {
            for (group, count) in demand.uplinks.iter_mut().enumerate() {
                *count = count.div_ceil(room(uplinks, group, sharing) as u64);
            }
        }
        demand
    }

    fn weight(&self, pair: (usize, usize), uplinks: &Uplinks, sharing: Sharing) -> (u64, u64) {
        let shared = uplinks.path(pair).filter(|_| sharing != Sharing::Nothing);
        let (mut most, mut sum) = (0, 0);
        for count in [self.hosts[pair.0], self.hosts[pair.1]]
            .into_iter()
            .chain(shared.map(|(group, _)| self.uplinks[group]))
        {
            most = most.max(count);
            sum += count;
        }
        (most, sum.min(4095))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::pairs;
    use linerate_model::inventory::{Endpoint, Group, Host, TransportSpec};
    use proptest::prelude::*;

    /// Hosts `h0`…, host `i` in group `g<groups[i]>`; all groups inside one room.
    pub(crate) fn cluster(groups: &[usize], uplink_bps: Option<f64>) -> Inventory {
        let count = groups.iter().max().map_or(0, |m| m + 1);
        let group = |name: String, parent: Option<String>| Group {
            name,
            kind: "rack".into(),
            parent,
            uplink_bps,
            machine: None,
        };
        Inventory {
            name: "test".into(),
            groups: std::iter::once(group("room".into(), None))
                .chain((0..count).map(|g| group(format!("g{g}"), Some("room".into()))))
                .collect(),
            hosts: groups
                .iter()
                .enumerate()
                .map(|(i, g)| Host {
                    name: format!("h{i}"),
                    transport: TransportSpec::Local,
                    groups: vec![format!("g{g}")],
                    endpoints: vec![Endpoint {
                        address: std::net::IpAddr::from([10, 0, 0, i as u8 + 1]),
                        layer: Layer::Underlay,
                        netns: None,
                        link_bps: Some(1e9),
                    }],
                    state_dir: None,
                    etc_dir: None,
                    cache_dir: None,
                })
                .collect(),
            disturbances: None,
            ..Inventory::default()
        }
    }

    fn uplinks(inventory: &Inventory) -> Uplinks {
        let hosts: Vec<String> = inventory.hosts.iter().map(|h| h.name.clone()).collect();
        Uplinks::new(inventory, &hosts, |_, _| Some(1e9), Layer::Underlay)
    }

    #[test]
    fn the_lab_of_six_needs_eighteen_rounds() {
        // Three hosts on one hypervisor: 3 x 3 pairs out and in through one uplink.
        let inventory = cluster(&[0, 0, 1, 0, 2, 3], Some(1e9));
        let rounds = pack(&pairs::all(6), &uplinks(&inventory), Sharing::Bulk, 1);
        assert_eq!(rounds.len(), 18, "{rounds:?}");
        let small = pack(&pairs::all(6), &uplinks(&inventory), Sharing::Nothing, 1);
        assert_eq!(small.len(), 10, "{small:?}");
        let fifth = pack(&pairs::all(6), &uplinks(&inventory), Sharing::Fifth, 1);
        assert!(fifth.len() <= 13, "{}", fifth.len());
    }

    #[test]
    fn a_known_wide_uplink_holds_several_tests() {
        let narrow =
            pack(&pairs::all(8), &uplinks(&cluster(&[0, 0, 0, 0, 1, 1, 1, 1], Some(1e9))), Sharing::Bulk, 1);
        let wide =
            pack(&pairs::all(8), &uplinks(&cluster(&[0, 0, 0, 0, 1, 1, 1, 1], Some(4e9))), Sharing::Bulk, 1);
        assert!(narrow.len() >= 32 && wide.len() <= 16, "{} {}", narrow.len(), wide.len());
    }

    proptest! {
        #[test]
        fn every_pair_runs_once_and_no_rule_is_broken(
            groups in prop::collection::vec(0_usize..4, 2..9),
            factor in 0.5_f64..5.0,
            fifth in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let inventory = cluster(&groups, Some(factor * 1e9));
            let uplinks = uplinks(&inventory);
            let sharing = if fifth { Sharing::Fifth } else { Sharing::Bulk };
            let wanted = pairs::all(groups.len());
            let rounds = pack(&wanted, &uplinks, sharing, seed);
            let mut ran: Vec<_> = rounds.concat();
            ran.sort_unstable();
            prop_assert_eq!(ran, wanted);
            let room = if factor >= 2.0 { factor as usize } else { 1 } * if fifth { 3 } else { 1 };
            for round in rounds {
                let mut hosts: Vec<_> = round.iter().flat_map(|p| [p.0, p.1]).collect();
                hosts.sort_unstable();
                hosts.dedup();
                prop_assert_eq!(hosts.len(), round.len() * 2);
                for group in 0..4 {
                    let out = round.iter().filter(|p| groups[p.0] == group && groups[p.1] != group).count();
                    let into = round.iter().filter(|p| groups[p.1] == group && groups[p.0] != group).count();
                    prop_assert!(out == 0 || into == 0, "both directions of an uplink at once");
                    prop_assert!(out <= room && into <= room);
                }
            }
        }
    }
}
