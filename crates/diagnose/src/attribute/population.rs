//! What peers have: the same key on hosts of the same role that are fine.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use linerate_knowledge::keys::{device_of, nic_of, pattern_fits};
use linerate_model::fact::FactValue;
use linerate_model::inventory::Layer;

use crate::evidence::Facts;
use crate::rules::AttributeRules;

/// Hosts with which a suspect is compared. Suspects that have the same ones share them, with what was found
/// out about them: of thousands of hosts nearly all do.
#[derive(Debug, Default)]
pub(crate) struct Peers<'a> {
    hosts: Vec<&'a str>,
    /// More hosts, of which these are all but a few, and the locations of those few among them.
    among: Option<(Rc<Peers<'a>>, Vec<usize>)>,
    /// Populations by key and by the role of the suspect's NIC.
    known: RefCell<HashMap<String, [Option<Rc<Population>>; 4]>>,
}

impl<'a> Peers<'a> {
    /// These hosts.
    pub(crate) fn new(hosts: Vec<&'a str>) -> Self {
        Self { hosts, among: None, known: RefCell::default() }
    }

    /// These hosts without those that are suspects themselves.
    pub(crate) fn without(all: &Rc<Self>, suspect: impl Fn(&str) -> bool) -> Rc<Self> {
        let left_out: Vec<usize> = (0..all.hosts.len()).filter(|i| suspect(all.hosts[*i])).collect();
        if left_out.is_empty() {
            return Rc::clone(all);
        }
        let hosts = all.hosts.iter().copied().filter(|host| !suspect(host)).collect();
        Rc::new(Self { hosts, among: Some((Rc::clone(all), left_out)), known: RefCell::default() })
    }

    /// Who they are.
    pub(crate) fn hosts(&self) -> &[&'a str] {
        &self.hosts
    }

    /// What they have where `host` has the key.
    pub(crate) fn population(&self, facts: &Facts<'_>, host: &str, key: &str) -> Rc<Population> {
        let nic = nic_of(key);
        let carries = |layer| usize::from(nic.is_some() && facts.nic(host, layer) == nic);
        let role = carries(Layer::Underlay) + 2 * carries(Layer::Overlay);
        // Drives are compared with those of their make: what is known is known of that.
        let known_as = match device_of(key) {
            Some(device) => format!("{key}\n{}", make(facts, host, device)),
            None => key.to_owned(),
        };
        if let Some(known) = self.known.borrow().get(&known_as).and_then(|roles| roles[role].clone()) {
            return known;
        }
        // What all of them have is known already, mostly; to read it again from hundreds of hosts for each
        // suspect costs more.
        let among = self.among.as_ref();
        let shared = among.and_then(|(all, left_out)| {
            all.population(facts, host, key).without(left_out, key, &facts.rules.attribute)
        });
        let population = Rc::new(shared.unwrap_or_else(|| Population::of(facts, host, key, &self.hosts)));
        self.known.borrow_mut().entry(known_as).or_default()[role] = Some(Rc::clone(&population));
        population
    }
}

/// Peers of a suspect for one key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Population {
    /// Value on each peer that has one.
    pub values: Vec<FactValue>,
    /// Whose value that is: the location among the peers.
    of: Vec<usize>,
    /// Peers.
    peers: usize,
    /// Values, or their absence, that were asked for: those of each peer, or of each NIC of the peers.
    pub asked: usize,
    /// The values are those of all NICs of the peers: different things, of which none need be usual.
    pub mixed: bool,
    /// Which of the values most of them have.
    usual: Option<usize>,
}

impl Population {
    /// Values of the key on the peers. A NIC is compared with the NIC of the same role there, then with the
    /// one of the same name, then with all NICs of the peers.
    pub(super) fn of(facts: &Facts<'_>, host: &str, key: &str, peers: &[&str]) -> Self {
        let (of, values): (Vec<usize>, Vec<FactValue>) = (peers.iter().enumerate())
            .filter_map(|(number, peer)| Some((number, same_role(facts, host, key, peer)?)))
            .unzip();
        if !values.is_empty() || nic_of(key).is_none() {
            return Self::with(values, of, peers.len(), false, &facts.rules.attribute);
        }
        let pattern = nic_of(key)
            .map_or_else(|| key.to_owned(), |nic| key.replacen(&format!("nic.{nic}."), "nic.*.", 1));
        let (of, all): (Vec<usize>, Vec<FactValue>) = (peers.iter().enumerate())
            .flat_map(|(number, peer)| {
                facts.matching(peer, &pattern).into_iter().map(move |kv| (number, kv.1.clone()))
            })
            .unzip();
        Self::with(all, of, peers.len(), true, &facts.rules.attribute)
    }

    /// The same without some of the peers, by their locations; none where other values would have to be asked
    /// for then.
    fn without(&self, left_out: &[usize], key: &str, rules: &AttributeRules) -> Option<Self> {
        let kept = self.of.iter().zip(&self.values).filter(|(of, _)| !left_out.contains(of));
        let (of, values): (Vec<usize>, Vec<FactValue>) = kept.map(|(of, value)| (*of, value.clone())).unzip();
        let enough = self.mixed || !values.is_empty() || nic_of(key).is_none();
        enough.then(|| Self::with(values, of, self.peers - left_out.len(), self.mixed, rules))
    }

    fn with(
        values: Vec<FactValue>,
        of: Vec<usize>,
        peers: usize,
        mixed: bool,
        rules: &AttributeRules,
    ) -> Self {
        let asked = if mixed { peers.max(values.len()) } else { peers };
        // Whatever 60 % agree on outlives every pairing off with something else, so one candidate is enough.
        let (mut best, mut lead) = (0, 0_usize);
        for (number, value) in values.iter().enumerate() {
            match (*value == values[best], lead) {
                (true, _) => lead += 1,
                (false, 0) => (best, lead) = (number, 1),
                (false, _) => lead -= 1,
            }
        }
        let population = Self { values, of, peers, asked, mixed, usual: None };
        let agree = population.values.get(best).map_or(0, |value| population.same(value));
        let usual =
            (agree > 0 && agree as f64 >= rules.usual_min * population.values.len() as f64).then_some(best);
        Self { usual, ..population }
    }

    /// What most peers have, when at least 60 % of those that have the key agree.
    pub(crate) fn usual(&self) -> Option<&FactValue> {
        self.values.get(self.usual?)
    }

    /// Whether the value is not what peers have. Without peers nothing differs.
    pub(crate) fn differs(&self, value: &FactValue, rules: &AttributeRules) -> bool {
        match self.usual() {
            Some(usual) => usual != value && !close(usual, value, rules.close),
            None => self.mixed && !self.values.is_empty() && self.same(value) == 0,
        }
    }

    /// Whether the value is of a device whose name peers lack, such as the port of a guest, and some device
    /// of theirs has it too.
    pub(crate) fn has_its_like(&self, value: &FactValue) -> bool {
        self.mixed && self.same(value) > 0
    }

    /// How many peers have the value.
    pub(crate) fn same(&self, value: &FactValue) -> usize {
        self.values.iter().filter(|v| *v == value).count()
    }

    /// Log odds from the contrast: a peer that is fine with the same value speaks against, peers without it
    /// speak for.
    pub(crate) fn contrast(&self, value: &FactValue, rules: &AttributeRules) -> f64 {
        let same = self.same(value) as f64;
        let others = self.asked.max(self.values.len()) as f64 - same;
        let odds = (others + 1.0) / (1.0 + rules.contrast_peers * same);
        odds.ln().clamp(rules.contrast_min, rules.contrast_max)
    }
}

/// Numbers that are the same but for noise.
fn close(a: &FactValue, b: &FactValue, share: f64) -> bool {
    match (a, b) {
        (FactValue::Float(a), FactValue::Float(b)) => (a - b).abs() <= share * a.abs().max(b.abs()),
        _ => false,
    }
}

/// What a drive is, as far as its settings follow from it: its model, and whether it rotates. Empty for a
/// device that reports neither.
fn make(facts: &Facts<'_>, host: &str, device: &str) -> String {
    let of = |field: &str| facts.get(host, &format!("disk.{device}.{field}")).map(ToString::to_string);
    format!("{} {}", of("model").unwrap_or_default(), of("rotational").unwrap_or_default())
}

fn same_role(facts: &Facts<'_>, host: &str, key: &str, peer: &str) -> Option<FactValue> {
    if let Some(device) = device_of(key)
        && make(facts, host, device) != make(facts, peer, device)
    {
        return None;
    }
    if let Some(nic) = nic_of(key) {
        for layer in [Layer::Underlay, Layer::Overlay] {
            if facts.nic(host, layer) == Some(nic)
                && let Some(other) = facts.nic(peer, layer)
            {
                let there = key.replacen(&format!("nic.{nic}."), &format!("nic.{other}."), 1);
                let bare = linerate_knowledge::keys::bare(&there).to_owned();
                return facts
                    .get(peer, &there)
                    .cloned()
                    .or_else(|| facts.matching(peer, &bare).first().map(|(_, v)| (*v).clone()));
            }
        }
    }
    facts.get(peer, key).cloned().or_else(|| {
        let bare = linerate_knowledge::keys::bare(key);
        (bare != key).then(|| facts.matching(peer, bare).first().map(|(_, v)| (*v).clone())).flatten()
    })
}

/// Whether a key fits one of the patterns.
pub(crate) fn any_fits(patterns: &[String], key: &str) -> bool {
    patterns.iter().any(|p| pattern_fits(p, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    #[test]
    fn the_port_of_a_guest_is_no_difference_where_peers_have_such_ports() {
        // Two peers with an uplink, a bridge and a port each: the ports alone have it on.
        let values: Vec<FactValue> = [false, false, true, false, false, true].map(FactValue::Flag).into();
        let population = Population::with(values, vec![0, 0, 0, 1, 1, 1], 2, true, &Rules::DEFAULT.attribute);
        let on = FactValue::Flag(true);
        assert!(population.differs(&on, &Rules::DEFAULT.attribute) && population.has_its_like(&on));
        let named = Population { mixed: false, ..population };
        assert!(!named.has_its_like(&on));
    }
}
