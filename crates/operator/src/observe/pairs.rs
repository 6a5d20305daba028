//! Which pairs a survey measures. Pure.
//!
//! What comes in: a number of hosts and a seed. What goes out: every ordered pair, or rounds of random
//! perfect matchings (a random regular graph is an expander, which is what localisation needs). Never which
//! of them run together.

use linerate_model::random::Random;

/// All ordered pairs of `0..hosts`.
pub fn all(hosts: usize) -> Vec<(usize, usize)> {
    (0..hosts).flat_map(|from| (0..hosts).filter(move |to| *to != from).map(move |to| (from, to))).collect()
}

/// Pairs of `rounds` random perfect matchings, each pair in both directions after each other; with an odd
/// number of hosts one of them rests in each matching. A pair that an earlier matching holds is avoided where
/// possible.
pub fn matchings(hosts: usize, rounds: usize, seed: u64) -> Vec<(usize, usize)> {
    let mut random = Random(seed);
    let mut seen = std::collections::BTreeSet::new();
    let mut rested = vec![0_usize; hosts];
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let best = (0..16)
            .map(|_| {
                let matching = one(hosts, &mut random);
                let again = matching.iter().filter(|p| seen.contains(*p)).count();
                let rest = resting(hosts, &matching).map(|h| rested[h]).max().unwrap_or(0);
                (rest, again, matching)
            })
            .min()
            .map_or(Vec::new(), |(_, _, matching)| matching);
        for host in resting(hosts, &best) {
            rested[host] += 1;
        }
        for (a, b) in best {
            seen.insert((a, b));
            let (first, second) = if random.below(2) == 0 { (a, b) } else { (b, a) };
            pairs.extend([(first, second), (second, first)]);
        }
    }
    pairs
}

/// Hosts that are in no pair.
fn resting(hosts: usize, matching: &[(usize, usize)]) -> impl Iterator<Item = usize> {
    let mut rests = vec![true; hosts];
    for (a, b) in matching {
        (rests[*a], rests[*b]) = (false, false);
    }
    (0..hosts).filter(move |h| rests[*h])
}

fn one(hosts: usize, random: &mut Random) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..hosts).collect();
    random.shuffle(&mut order);
    order.chunks_exact(2).map(|p| (p[0].min(p[1]), p[0].max(p[1]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_matrix_has_every_ordered_pair_once() {
        let pairs = all(6);
        assert_eq!(pairs.len(), 30);
        assert_eq!(pairs.iter().collect::<std::collections::BTreeSet<_>>().len(), 30);
        assert!(all(0).is_empty() && all(1).is_empty());
    }

    #[test]
    fn in_matchings_each_host_sends_and_receives_equally_often() {
        for hosts in [9, 12, 40] {
            let pairs = matchings(hosts, 8, 7);
            assert_eq!(pairs, matchings(hosts, 8, 7), "seeded");
            for host in 0..hosts {
                let sends = pairs.iter().filter(|p| p.0 == host).count();
                let receives = pairs.iter().filter(|p| p.1 == host).count();
                assert_eq!(sends, receives);
                assert!(sends >= 8 - hosts % 2 * 2, "host {host} of {hosts} sends {sends}");
            }
        }
    }
}
