//! Which tests may run at the same time. Pure.
//!
//! What comes in: ordered pairs and the inventory. What goes out: rounds. Each host is in at most one test of a round. With
//! [`Sharing::Bulk`] two tests never share the uplink of a group (unless its rate is known to hold more than one link), and no
//! rule ever lets both directions of an uplink run at once. Nothing here knows what the tests measure.

use std::collections::BTreeMap;

use linerate_model::inventory::{Inventory, Layer};

use super::pairs::Random;

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
    /// Per ordered pair: (uplink, whether it is left upwards).
    paths: BTreeMap<(usize, usize), Vec<(usize, bool)>>,
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
        let groups: Vec<Vec<usize>> = hosts
            .iter()
            .map(|host| {
                let mine = inventory.groups_of(host);
                (0..inventory.groups.len())
                    .filter(|i| mine.iter().any(|g| g.name == inventory.groups[*i].name))
                    .collect()
            })
            .collect();
        let room = (0..inventory.groups.len())
            .map(|group| {
                let members = (0..hosts.len()).filter(|h| groups[*h].contains(&group));
                let link = members
                    .map(|h| link_bps(&hosts[h], layer))
                    .try_fold(0.0_f64, |most, bps| Some(most.max(bps?)));
                match (inventory.groups[group].uplink_bps, link) {
                    (Some(uplink), Some(link)) if link > 0.0 && uplink >= 2.0 * link => {
                        (uplink / link) as usize
                    }
                    _ => 1,
                }
            })
            .collect();
        let mut paths = BTreeMap::new();
        for (from, to) in super::pairs::all(hosts.len()) {
            let up = groups[from].iter().filter(|g| !groups[to].contains(g)).map(|g| (*g, true));
            let down = groups[to].iter().filter(|g| !groups[from].contains(g)).map(|g| (*g, false));
            paths.insert((from, to), up.chain(down).collect());
        }
        Self { paths, room }
    }

    fn path(&self, pair: (usize, usize)) -> &[(usize, bool)] {
        self.paths.get(&pair).map_or(&[], Vec::as_slice)
    }
}

/// Rounds that hold all the pairs. The most wanted resource is served first, which for the shapes that clusters have gives as
/// many rounds as that resource has tests.
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

fn pack_once(
    pairs: &[(usize, usize)],
    uplinks: &Uplinks,
    sharing: Sharing,
    random: &mut Random,
) -> Vec<Vec<(usize, usize)>> {
    let mut left: Vec<(usize, usize)> = pairs.to_vec();
    let mut rounds = Vec::new();
    while !left.is_empty() {
        let demand = Demand::of(&left, uplinks, sharing);
        let mut order: Vec<(u64, u64, usize)> = left
            .iter()
            .enumerate()
            .map(|(i, pair)| {
                let (most, sum) = demand.weight(*pair, uplinks, sharing);
                // Larger first; among equals the order of the list with a little chance in it.
                (u64::MAX - most * 4096 - sum, i as u64 / 8 * 8 + random.next() % 8, i)
            })
            .collect();
        order.sort_unstable();
        let mut round = Vec::new();
        let mut taken = Vec::new();
        let mut use_of: BTreeMap<usize, (bool, usize)> = BTreeMap::new();
        for (_, _, i) in order {
            let pair = left[i];
            let busy = round.iter().any(|(a, b)| [*a, *b].contains(&pair.0) || [*a, *b].contains(&pair.1));
            if busy || !fits(pair, uplinks, sharing, &use_of) {
                continue;
            }
            for (group, upwards) in uplinks.path(pair) {
                use_of.entry(*group).or_insert((*upwards, 0)).1 += 1;
            }
            round.push(pair);
            taken.push(i);
        }
        taken.sort_unstable_by(|a, b| b.cmp(a));
        for i in taken {
            left.remove(i);
        }
        rounds.push(round);
    }
    rounds
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
        || uplinks.path(pair).iter().all(|(group, upwards)| {
            use_of.get(group).is_none_or(|(direction, count)| {
                direction == upwards && *count < room(uplinks, *group, sharing)
            })
        })
}

/// How many rounds each host and uplink still needs.
struct Demand {
    hosts: BTreeMap<usize, u64>,
    uplinks: BTreeMap<usize, u64>,
}

impl Demand {
    fn of(left: &[(usize, usize)], uplinks: &Uplinks, sharing: Sharing) -> Self {
        let mut demand = Self { hosts: BTreeMap::new(), uplinks: BTreeMap::new() };
        for pair in left {
            *demand.hosts.entry(pair.0).or_default() += 1;
            *demand.hosts.entry(pair.1).or_default() += 1;
            if sharing != Sharing::Nothing {
                for (group, _) in uplinks.path(*pair) {
                    *demand.uplinks.entry(*group).or_default() += 1;
                }
            }
        }
        for (group, count) in &mut demand.uplinks {
            *count = count.div_ceil(room(uplinks, *group, sharing) as u64);
        }
        demand
    }

    fn weight(&self, pair: (usize, usize), uplinks: &Uplinks, sharing: Sharing) -> (u64, u64) {
        let of_host = |h: usize| self.hosts.get(&h).copied().unwrap_or(0);
        let path = if sharing == Sharing::Nothing { &[] } else { uplinks.path(pair) };
        let shared = path.iter().map(|(g, _)| self.uplinks.get(g).copied().unwrap_or(0));
        let all: Vec<u64> = [of_host(pair.0), of_host(pair.1)].into_iter().chain(shared).collect();
        (all.iter().copied().max().unwrap_or(0), all.iter().sum::<u64>().min(4095))
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
                })
                .collect(),
            disturbances: None,
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
