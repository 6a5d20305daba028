//! Fact tests of a cause: whose facts, which NICs, against what.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::rc::Rc;

use linerate_knowledge::keys::{OF_DEVICES, bare, device_of, nic_of};
use linerate_knowledge::{Cause, Condition, FactSide, FactTest, NicRole, Op};
use linerate_model::fact::FactValue;
use linerate_model::finding::{Clue, FactHit, LayerScope, Suspect};
use linerate_model::inventory::Layer;

use super::ends;
use super::population::Population;
use super::scored::Scored;
use super::shape::Shape;
use super::suspect_context::SuspectContext;
use crate::evidence::Facts;

/// Adds the fact tests of a cause to its score; `None` when a required one fails or an exclusion holds.
pub(super) fn judge(
    facts: &Facts<'_>,
    location: &SuspectContext<'_>,
    cause: &Cause,
    scored: &mut Scored<'_>,
) -> Option<()> {
    let rules = &facts.rules.attribute;
    if is_excluded(facts, location, cause) {
        return None;
    }
    for test in &cause.indicators {
        match run(facts, location, test) {
            Outcome::Holds(hits) => {
                // Contrast only for tests about the suspects: senders of bad cells are mostly benign.
                let contrast = if matches!(test.side, FactSide::Sender | FactSide::Receiver) {
                    0.0
                } else {
                    hits.iter()
                        .map(|h| {
                            let peers = location.subjects.peers_of(&h.host);
                            peers.population(facts, &h.host, &h.key).contrast(&h.value, rules)
                        })
                        .fold(f64::NEG_INFINITY, f64::max)
                };
                scored.is_read |= test.weight > 0.0 && contrast >= 0.0;
                scored.score +=
                    test.weight + contrast.clamp(rules.reading_contrast_min, rules.reading_contrast_max);
                // Two tests of one fact (unlike its peers; too small for the path) say the same.
                for clue in hits.iter().take(rules.lines_max).cloned().map(Clue::Read) {
                    if !scored.supports.contains(&clue) {
                        scored.supports.push(clue);
                    }
                }
                scored.hits.extend(hits);
            }
            Outcome::Fails(_) | Outcome::Unread if test.required => return None,
            Outcome::Fails(seen) => {
                scored.score += test.against;
                if test.against < 0.0 {
                    scored.contradicts.push(Clue::Read(seen));
                }
            }
            Outcome::Unread => {}
        }
    }
    Some(())
}

/// Whether some fact may indicate the cause, whatever was measured. What depends on measured values counts as
/// possible.
pub(crate) fn possible(facts: &Facts<'_>, location: &SuspectContext<'_>, cause: &Cause) -> bool {
    cause.indicators.iter().any(|test| {
        matches!(test.op, Op::WindowBinds | Op::WindowAmple | Op::RateBinds)
            || matches!(run(facts, location, test), Outcome::Holds(_))
    })
}

/// Whether a fact rules the cause out.
pub(crate) fn is_excluded(facts: &Facts<'_>, location: &SuspectContext<'_>, cause: &Cause) -> bool {
    cause.excludes.iter().any(|test| matches!(run(facts, location, test), Outcome::Holds(_)))
}

enum Outcome {
    Holds(Vec<FactHit>),
    Fails(FactHit),
    Unread,
}

fn run(facts: &Facts<'_>, location: &SuspectContext<'_>, test: &FactTest) -> Outcome {
    let rules = &facts.rules.attribute;
    let mut hits = Vec::new();
    let mut seen: Option<FactHit> = None;
    for host in location.subjects.side(test.side) {
        if test.op == Op::MissingUnlikePeers {
            hits.extend(missing(facts, location, host, &test.keys));
            continue;
        }
        for (key, value) in candidates(facts, host, &test.keys, test.nic, location) {
            // Asked for only where the value alone does not decide: of thousands of hosts that costs.
            let population = LazyCell::new(|| location.subjects.peers_of(host).population(facts, host, key));
            let unlike = || {
                !test.unlike_peers
                    || population.differs(value, rules)
                    || (population.values.is_empty()
                        && !same_at_the_other_end(facts, location, host, key, value))
            };
            let also = || test.also.iter().all(|condition| also_holds(facts, host, key, condition));
            let hit = |peers| {
                let (host, key, value) = (host.to_owned(), key.to_owned(), value.clone());
                FactHit { host, key, value, peers }
            };
            if holds(facts, host, key, value, &population, test, location.shape) && unlike() && also() {
                hits.push(hit(population.usual().filter(|u| *u != value).cloned()));
            } else if seen.is_none() {
                seen = Some(hit(None));
            }
        }
    }
    if hits.is_empty() { seen.map_or(Outcome::Unread, Outcome::Fails) } else { Outcome::Holds(hits) }
}

/// Whether the other end has the same value although only one direction suffers.
fn same_at_the_other_end(
    facts: &Facts<'_>,
    location: &SuspectContext<'_>,
    host: &str,
    key: &str,
    value: &FactValue,
) -> bool {
    let subjects = &location.subjects;
    let is_machine = |host: &str| subjects.machines.contains(&host);
    let others: Vec<&str> = subjects
        .side(FactSide::Either)
        .into_iter()
        .filter(|other| *other != host && is_machine(other) == is_machine(host))
        .collect();
    let there = Population::of(facts, host, key, &others);
    subjects.way_back_is_fine && !there.values.is_empty() && !there.differs(value, &facts.rules.attribute)
}

/// Readings that a test speaks of, on the NICs that it speaks of.
pub(crate) fn candidates<'a>(
    facts: &Facts<'a>,
    host: &str,
    keys: &[String],
    role: NicRole,
    location: &SuspectContext<'_>,
) -> Vec<(&'a str, &'a FactValue)> {
    let layers: Vec<Layer> = match location.layer {
        LayerScope::Only(layer) => vec![layer],
        LayerScope::Any => vec![Layer::Underlay, Layer::Overlay],
    };
    let on_path: Vec<&str> = layers.iter().flat_map(|l| facts.path_nics(host, *l)).collect();
    let fits = |key: &str| {
        nic_of(key).is_none_or(|nic| match role {
            NicRole::Any => true,
            NicRole::Path => on_path.is_empty() || on_path.contains(&nic),
            // Pasted settings of a host without tests: any may be the one.
            NicRole::Underlay => match facts.nic(host, Layer::Underlay) {
                Some(own) => own == nic,
                None => facts.snapshot.imported.is_some(),
            },
            NicRole::Overlay => match facts.nic(host, Layer::Overlay) {
                Some(own) => own == nic,
                None => facts.is_layer_open() && facts.is_virtual(host, nic),
            },
        })
    };
    // Of a drive count its own facts, and those of no device.
    let is_its_own = |key: &str| match (location.suspect, device_of(key)) {
        (Suspect::Drive(_, own), Some(device)) => own.replace('.', "/") == device,
        _ => true,
    };
    let mut found: Vec<(&str, &FactValue)> = Vec::new();
    for (key, value) in keys.iter().flat_map(|pattern| facts.matching(host, pattern)) {
        if fits(key) && is_its_own(key) && !found.iter().any(|(k, _)| *k == key) {
            found.push((key, value));
        }
    }
    found
}

fn holds(
    facts: &Facts<'_>,
    host: &str,
    key: &str,
    value: &FactValue,
    population: &impl Deref<Target = Rc<Population>>,
    test: &FactTest,
    shape: &Shape,
) -> bool {
    let rules = &facts.rules.attribute;
    let text = value.to_string();
    let number = value.number(test.field);
    let limit = || test.values.first().and_then(|v| v.parse::<f64>().ok());
    let usual = || population.usual().and_then(|u| u.number(test.field));
    match test.op {
        Op::Equals => test.values.contains(&text),
        Op::Contains => test.values.iter().any(|v| text.contains(v.as_str())),
        Op::DiffersFromPeers => population.differs(value, rules),
        Op::LessThan => number.zip(limit()).is_some_and(|(n, l)| n < l),
        Op::GreaterThan => number.zip(limit()).is_some_and(|(n, l)| n > l),
        Op::LessThanPeers => number.zip(usual()).is_some_and(|(n, u)| n < rules.below_peers * u),
        Op::GreaterThanPeers => number.zip(usual()).is_some_and(|(n, u)| n > rules.above_peers * u),
        Op::WindowBinds => number.is_some_and(|bytes| window_binds(facts, bytes, shape)),
        Op::WindowAmple => number.is_some_and(|bytes| window_ample(facts, bytes, shape)),
        Op::RateBinds => number.is_some_and(|mbit| rate_binds(facts, mbit, shape)),
        Op::ExceedsLowerMtu => {
            number.zip(limit()).is_some_and(|(mtu, room)| exceeds(facts, host, key, mtu, room))
        }
        Op::RouteToPeers => ends::route_to_peers(facts, host, key, value, &test.values),
        Op::SmallPackets => ends::small_packets(facts, host, key, value),
        Op::Detour => ends::detour(facts, host, key, value),
        Op::WrongNeighbour => ends::wrong_neighbour(facts, host, key, value),
        Op::WrongForwarding => ends::wrong_forwarding(facts, host, key, value),
        Op::SharedAddress => ends::shared(facts, host, key, value),
        Op::Present => true,
        Op::LessThanFact | Op::AtLeastFact | Op::SameAsFact | Op::OutsideCpusOf => {
            against_fact(facts, host, key, value, test.op, &test.values)
        }
        // Found by the keys that are absent, not by a value.
        Op::MissingUnlikePeers => false,
    }
}

/// A value beside that of another fact of the same host, and NIC or block device.
fn against_fact(
    facts: &Facts<'_>,
    host: &str,
    key: &str,
    value: &FactValue,
    op: Op,
    values: &[String],
) -> bool {
    let Some(other) = values.first().and_then(|pattern| facts.get(host, &beside(key, pattern))) else {
        return false;
    };
    if op == Op::OutsideCpusOf {
        let (mine, theirs) = (cpus(&value.to_string()), cpus(&other.to_string()));
        return !mine.is_empty() && !theirs.is_empty() && mine.is_disjoint(&theirs);
    }
    if op == Op::SameAsFact {
        return *other == *value;
    }
    let factor = values.get(1).and_then(|f| f.parse::<f64>().ok()).unwrap_or(1.0);
    let Some((number, limit)) = value.number(0).zip(other.number(0).map(|o| o * factor)) else {
        return false;
    };
    if op == Op::LessThanFact { number < limit } else { number >= limit }
}

/// Topics whose keys name a thing behind them; those of a group name the same things.
const TOPICS: [&[&str]; 4] = [&["nic."], &OF_DEVICES, &["nfs."], &["raid."]];

/// A pattern with the NIC, the block device, the mounted folder or the volume of a key for its `nic.*`,
/// `disk.*` and so on.
pub(crate) fn beside(key: &str, pattern: &str) -> String {
    let plain = bare(key);
    let namespace = &key[..key.len() - plain.len()];
    for topics in TOPICS {
        let rest = topics.iter().find_map(|topic| plain.strip_prefix(topic));
        if let Some(name) = rest.and_then(|rest| rest.split('.').next()) {
            let own = topics.iter().find_map(|topic| {
                let behind = pattern.strip_prefix(topic)?.strip_prefix('*')?;
                Some(format!("{topic}{name}{behind}"))
            });
            return format!("{namespace}{}", own.as_deref().unwrap_or(pattern));
        }
    }
    pattern.to_owned()
}

/// The CPUs of a list such as `0-3,8`; empty for anything else, and for lists that no machine has.
pub(crate) fn cpus(list: &str) -> BTreeSet<u32> {
    const CPUS_MAX: u32 = 4096;
    let mut found = BTreeSet::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let Some((first, last)) = first.trim().parse::<u32>().ok().zip(last.trim().parse::<u32>().ok())
        else {
            return BTreeSet::new();
        };
        found.extend(first..=last.min(CPUS_MAX));
    }
    found
}

/// Whether a further condition holds for the host, and the NIC or block device, of a key.
fn also_holds(facts: &Facts<'_>, host: &str, key: &str, condition: &Condition) -> bool {
    let readings = |pattern: &String| facts.matching(host, &beside(key, pattern));
    let is_wanted = |(other, value): (&str, &FactValue)| fits(facts, host, other, value, condition);
    condition.keys.iter().any(|pattern| readings(pattern).into_iter().any(is_wanted))
}

/// Whether a reading is as a condition wants it.
pub(crate) fn fits(
    facts: &Facts<'_>,
    host: &str,
    key: &str,
    value: &FactValue,
    condition: &Condition,
) -> bool {
    let text = value.to_string();
    let limit = || condition.values.first().and_then(|v| v.parse::<f64>().ok());
    match condition.op {
        Op::Equals => condition.values.contains(&text),
        Op::Contains => condition.values.iter().any(|v| text.contains(v.as_str())),
        Op::LessThan => value.number(0).zip(limit()).is_some_and(|(n, l)| n < l),
        Op::GreaterThan => value.number(0).zip(limit()).is_some_and(|(n, l)| n > l),
        Op::Present => !text.is_empty(),
        Op::LessThanFact | Op::AtLeastFact => {
            against_fact(facts, host, key, value, condition.op, &condition.values)
        }
        _ => false,
    }
}

/// Keys that most peers of a host have and the host lacks, although it has others of the family.
fn missing(
    facts: &Facts<'_>,
    location: &SuspectContext<'_>,
    host: &str,
    patterns: &[String],
) -> Vec<FactHit> {
    let rules = &facts.rules.attribute;
    let peers = location.subjects.peers_of(host);
    let mut hits = Vec::new();
    for pattern in patterns {
        if facts.matching(host, pattern).is_empty() || peers.hosts().len() < rules.peers_min {
            continue;
        }
        // What four fifths have is found among any few of them.
        let mut seen: BTreeMap<&str, &FactValue> = BTreeMap::new();
        for peer in peers.hosts().iter().take(rules.peers_asked) {
            seen.extend(facts.matching(peer, pattern));
        }
        seen.retain(|key, _| facts.get(host, key).is_none());
        let usual = seen.into_iter().filter(|(key, _)| {
            let population = peers.population(facts, host, key);
            population.values.len() as f64 >= rules.missing_min * population.asked as f64
        });
        hits.extend(usual.map(|(key, value)| FactHit {
            host: host.to_owned(),
            key: key.to_owned(),
            value: FactValue::Text("missing".to_owned()),
            peers: Some(value.clone()),
        }));
    }
    hits
}

/// Whether this many bytes, or half of them (bookkeeping), over the loaded RTT give the measured rate.
fn window_binds(facts: &Facts<'_>, bytes: f64, shape: &Shape) -> bool {
    let (Some(rtt_us), Some(rate)) = (shape.rtt_us, shape.rate_bps) else { return false };
    let rules = &facts.rules.attribute;
    [1.0, facts.rules.ceilings.receive_window_share].iter().any(|part| {
        let allowed = bytes * part * 8.0 / (rtt_us / 1e6);
        (rules.window_fit_min..=rules.window_fit_max).contains(&(allowed / rate.max(1.0)))
    })
}

/// Whether a window is far from what limits though no test measured an RTT: at the measured rate even half of
/// it lasts longer than any path inside a cluster. Where the RTT is known, that decides.
fn window_ample(facts: &Facts<'_>, bytes: f64, shape: &Shape) -> bool {
    let lasts_us = |rate: f64| facts.rules.ceilings.receive_window_share * bytes * 8.0 / rate.max(1.0) * 1e6;
    shape.rtt_us.is_none()
        && shape.rate_bps.is_some_and(|rate| lasts_us(rate) >= facts.rules.attribute.rtt_inside_us)
}

/// Whether a link of this rate is what limits: headers take a few percent of it, and a slow start more.
fn rate_binds(facts: &Facts<'_>, mbit: f64, shape: &Shape) -> bool {
    let fits = facts.rules.attribute.rate_fit_min..=facts.rules.attribute.rate_fit_max;
    shape.rate_bps.is_some_and(|rate| fits.contains(&(rate / (mbit * 1e6).max(1.0))))
}

/// Whether an overlay device leaves too little room below the MTU of its lower NIC.
fn exceeds(facts: &Facts<'_>, host: &str, key: &str, mtu: f64, room: f64) -> bool {
    let Some(nic) = nic_of(key) else { return false };
    if facts.nic(host, Layer::Overlay) != Some(nic) {
        return false;
    }
    let lower = facts
        .get(host, &format!("nic.{nic}.vxlan.lower"))
        .or_else(|| facts.get(host, &format!("nic.{nic}.lower")))
        .map(ToString::to_string)
        .filter(|l| !l.is_empty())
        .or_else(|| facts.nic(host, Layer::Underlay).map(ToOwned::to_owned));
    let lower_mtu = lower.and_then(|l| facts.number(host, &format!("nic.{l}.mtu")));
    lower_mtu.is_some_and(|lower| mtu + room > lower)
}
