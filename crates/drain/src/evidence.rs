//! What runs show about single hosts. In: a run with its diagnosis, and the settings that are to be in force.
//! Out: per host whether a fault was located there, something else explains it, or it passed.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::change::Change;
use linerate_model::fact::{FactKey, GapSubject};
use linerate_model::finding::{Diagnosis, Direction, Finding, LayerScope, Metric, Suspect};
use linerate_model::inventory::{GroupName, HostName};
use linerate_model::run_id::RunId;
use linerate_model::sample::Outcome;
use linerate_model::snapshot::Snapshot;
use linerate_model::units;

use super::rules;

/// A loss that sits on one host.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedFault {
    /// In few words.
    pub text: String,
    /// In which values it shows.
    pub metrics: Vec<Metric>,
    /// Which direction of the host suffers.
    pub direction: Direction,
    /// Which layer.
    pub layer: LayerScope,
    /// The drive, where it is one.
    pub drive: Option<String>,
}

impl LocatedFault {
    /// Whether another run shows the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let direction =
            self.direction == other.direction || [self.direction, other.direction].contains(&Direction::Both);
        let layer = self.layer == other.layer || [self.layer, other.layer].contains(&LayerScope::Any);
        let shared = self.metrics.iter().any(|metric| other.metrics.contains(metric));
        direction && layer && shared && self.drive == other.drive
    }
}

/// Why a loss at a host is not counted against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Explanation {
    /// Only traffic with one other host suffers, or all that suffers has its other end at a faulty host.
    OtherEnd,
    /// Its group, or most of the members, suffer as well.
    Group,
    /// The location or the fault is not certain.
    Uncertain,
    /// A setting that was read, without a measured loss.
    OnlyRead,
}

/// What a run shows about a host.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// A fault of its own.
    Located(LocatedFault),
    /// A loss that something else explains.
    Explained(Explanation),
    /// It was measured in both directions, and nothing was found.
    Healthy,
    /// It was not measured.
    Unseen,
}

/// What a run shows about a host, with the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Sighting {
    /// Run.
    pub run: RunId,
    /// Its start, Unix milliseconds.
    pub at_ms: u64,
    /// What it shows.
    pub seen: Seen,
    /// Kept settings that were not in force, or were not read.
    pub not_in_force: Vec<FactKey>,
}

/// Sightings by node, in any order.
pub type Evidence = BTreeMap<String, Vec<Sighting>>;

/// What a run shows about each of its hosts. `kept` are the changes of trials that were made to stay.
#[must_use]
pub fn sightings(
    snapshot: &Snapshot,
    diagnosis: &Diagnosis,
    kept: &[Change],
) -> BTreeMap<HostName, Sighting> {
    let suspects = Suspects::of(snapshot, diagnosis);
    let sighting = |host: &HostName| Sighting {
        run: snapshot.id.clone(),
        at_ms: snapshot.start_ms,
        seen: suspects.seen(host),
        not_in_force: not_in_force(snapshot, host, kept),
    };
    snapshot.inventory.hosts.iter().map(|host| (host.name.clone(), sighting(&host.name))).collect()
}

/// The findings of a run by what they accuse.
struct Suspects<'a> {
    snapshot: &'a Snapshot,
    diagnosis: &'a Diagnosis,
    /// Hosts with a certain fault of their own, before other ends and groups are considered.
    faulty: BTreeSet<&'a str>,
}

impl<'a> Suspects<'a> {
    fn of(snapshot: &'a Snapshot, diagnosis: &'a Diagnosis) -> Self {
        let certain = diagnosis.findings.iter().filter(|f| is_certain(f) && !f.was_only_read());
        Self { snapshot, diagnosis, faulty: certain.filter_map(accused).collect() }
    }

    fn seen(&self, host: &HostName) -> Seen {
        if self.is_gap(host) {
            return Seen::Unseen;
        }
        let concerns = |finding: &&Finding| finding.places.iter().any(|p| self.covers(&p.suspect, host));
        let mut own = None;
        let mut explained = None;
        for finding in self.diagnosis.findings.iter().filter(concerns) {
            match self.explanation(finding, host) {
                None => own = own.or(Some(finding)),
                Some(why) => explained = explained.or(Some(why)),
            }
        }
        match (own, explained) {
            // What is wrong with its group as well may be all that is wrong with the host.
            (_, Some(Explanation::Group)) => Seen::Explained(Explanation::Group),
            (Some(finding), _) => Seen::Located(fault(finding)),
            (None, Some(why)) => Seen::Explained(why),
            (None, None) if self.is_measured(host) => Seen::Healthy,
            (None, None) => Seen::Unseen,
        }
    }

    /// Why a finding is not counted against a host; `None` when it is.
    fn explanation(&self, finding: &Finding, host: &HostName) -> Option<Explanation> {
        let suspect = finding.places.first().map(|location| &location.suspect);
        match suspect {
            Some(Suspect::Group(_) | Suspect::GroupToGroup(..) | Suspect::All) => {
                return Some(Explanation::Group);
            }
            Some(Suspect::Pair(..) | Suspect::Mismatch(..)) => return Some(Explanation::OtherEnd),
            _ => {}
        }
        if finding.was_only_read() {
            return Some(Explanation::OnlyRead);
        }
        if accused(finding) != Some(host) || !is_certain(finding) {
            return Some(Explanation::Uncertain);
        }
        // A drive has no other end.
        if matches!(suspect, Some(Suspect::Drive(..))) {
            return None;
        }
        if self.is_of_group(host) {
            return Some(Explanation::Group);
        }
        self.is_other_end(finding, host).then_some(Explanation::OtherEnd)
    }

    /// Whether all that suffers has its other end at one host, or at hosts with a fault of their own.
    fn is_other_end(&self, finding: &Finding, host: &HostName) -> bool {
        let other = |(from, to): &'a (HostName, HostName)| if from == host { to } else { from };
        // Lifetimes of the diagnosis, not of the reference to this finding.
        let finding = self.diagnosis.findings.iter().find(|f| std::ptr::eq(*f, finding));
        let others: BTreeSet<&str> =
            finding.iter().flat_map(|f| &f.affected).map(|pair| other(pair).as_str()).collect();
        others.len() < 2 || others.is_subset(&self.faulty)
    }

    /// Whether most members of one of its groups have a fault.
    fn is_of_group(&self, host: &HostName) -> bool {
        self.snapshot.inventory.groups_of(host).into_iter().any(|group| {
            let members = self.snapshot.inventory.members(&group.name);
            let faulty = members.iter().filter(|member| self.faulty.contains(member.name.as_str())).count();
            // A group of all hosts, such as a top switch, is no other than the cluster.
            members.len() >= rules::GROUP_MEMBERS && faulty as f64 > members.len() as f64 * rules::GROUP_SHARE
        })
    }

    fn covers(&self, suspect: &Suspect, host: &HostName) -> bool {
        let within =
            |group: &GroupName| self.snapshot.inventory.groups_of(host).iter().any(|g| g.name == *group);
        match suspect {
            Suspect::Host(name) | Suspect::Drive(name, _) => name == host,
            Suspect::Group(group) => within(group),
            Suspect::GroupToGroup(from, to) => within(from) || within(to),
            Suspect::Pair(from, to) => from == host || to == host,
            Suspect::Mismatch(_, hosts) => hosts.contains(host),
            Suspect::All => true,
        }
    }

    fn is_gap(&self, host: &HostName) -> bool {
        self.snapshot.gaps.iter().any(|gap| matches!(&gap.what, GapSubject::Host(name) if name == host))
    }

    /// Whether something got through in both directions.
    fn is_measured(&self, host: &HostName) -> bool {
        let measured = self.snapshot.samples.iter().filter(|s| is_transfer(&s.outcome));
        let (mut sends, mut receives) = (false, false);
        for sample in measured.filter(|sample| sample.test.from != sample.test.to) {
            sends |= sample.test.from == *host;
            receives |= sample.test.to == *host;
        }
        sends && receives
    }
}

/// Whether bytes were moved and counted.
fn is_transfer(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Measured(measured) if measured.throughput_bps.is_some())
}

/// The host that a finding accuses first.
fn accused(finding: &Finding) -> Option<&str> {
    match &finding.places.first()?.suspect {
        Suspect::Host(host) | Suspect::Drive(host, _) => Some(host),
        _ => None,
    }
}

fn is_certain(finding: &Finding) -> bool {
    let located = finding.places.first().is_some_and(|location| location.probability >= rules::PROBABILITY);
    located && finding.probability >= rules::PROBABILITY
}

fn fault(finding: &Finding) -> LocatedFault {
    let location = finding.places.first();
    LocatedFault {
        text: text(finding),
        metrics: finding.responses.clone(),
        direction: location.map(|location| location.direction).unwrap_or_default(),
        layer: finding.layer,
        drive: match location.map(|location| &location.suspect) {
            Some(Suspect::Drive(_, device)) => Some(device.clone()),
            _ => None,
        },
    }
}

/// A finding in few words, the figures first: a list of nodes shows 20 characters.
fn text(finding: &Finding) -> String {
    let location = finding.places.first();
    let which = match location.map(|location| (&location.suspect, location.direction)) {
        Some((Suspect::Drive(_, device), _)) => device.as_str(),
        Some((_, Direction::Tx)) => "tx",
        Some((_, Direction::Rx)) => "rx",
        _ => "tx rx",
    };
    let measured = units::value(finding.measured, finding.unit);
    let expected = units::value(finding.expected, finding.unit);
    let metric = finding.responses.first().map_or("", |metric| metric.label());
    format!("{which} {measured} not {expected}, {metric}")
}

/// Kept settings of a host that a run did not read with the kept value.
fn not_in_force(snapshot: &Snapshot, host: &HostName, kept: &[Change]) -> Vec<FactKey> {
    let read = |key: &FactKey| snapshot.facts.get(host).and_then(|facts| facts.readings.get(key));
    let is_missing = |change: &&Change| read(&change.key) != Some(&change.to);
    kept.iter().filter(|change| change.host == *host).filter(is_missing).map(|c| c.key.clone()).collect()
}

#[cfg(test)]
mod tests {
    use linerate_model::fact::{FactValue, Gap, HostFacts};
    use linerate_model::finding::LossLocation;
    use linerate_model::inventory::{Endpoint, Group, Host, Inventory, Layer, TransportSpec};
    use linerate_model::kind::RttPlan;
    use linerate_model::plan::Test;
    use linerate_model::sample::{Measurement, Sample};
    use linerate_model::units::MetricUnit;

    use super::*;

    /// Four hosts `a` to `d`, the first three in a rack, all measured with each other.
    fn snapshot() -> Snapshot {
        let names = ["a", "b", "c", "d"];
        let host = |name: &&str| Host {
            name: (*name).to_owned(),
            transport: TransportSpec::Local,
            groups: if *name == "d" { vec![] } else { vec!["rack".to_owned()] },
            endpoints: vec![Endpoint {
                layer: Layer::Underlay,
                address: std::net::Ipv4Addr::LOCALHOST.into(),
                netns: None,
                link_bps: None,
            }],
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        };
        let pairs = names.iter().flat_map(|from| names.iter().map(move |to| (from, to)));
        let sample = |(from, to): (&&str, &&str)| {
            let kind = RttPlan { count: 1 }.into();
            let test = Test::new((*from).to_owned(), (*to).to_owned(), Layer::Underlay, kind);
            let measured = Measurement { throughput_bps: Some(9.4e9), ..Measurement::default() };
            Sample::new(test, 5, Outcome::Measured(Box::new(measured)))
        };
        Snapshot {
            id: "r1".into(),
            start_ms: 5,
            inventory: Inventory {
                groups: vec![Group { name: "rack".into(), ..Group::default() }],
                hosts: names.iter().map(host).collect(),
                ..Inventory::default()
            },
            samples: pairs.filter(|(from, to)| from != to).map(sample).collect(),
            ..Snapshot::default()
        }
    }

    fn finding(suspect: Suspect, affected: &[(&str, &str)]) -> Finding {
        Finding {
            places: vec![LossLocation { suspect, direction: Direction::Rx, probability: 0.97 }],
            responses: vec![Metric::Throughput],
            expected: 9.41e9,
            measured: 0.94e9,
            unit: MetricUnit::BitPerSecond,
            probability: 0.99,
            affected: affected.iter().map(|(f, t)| ((*f).to_owned(), (*t).to_owned())).collect(),
            ..Finding::default()
        }
    }

    fn host(name: &str) -> Suspect {
        Suspect::Host(name.to_owned())
    }

    fn seen(findings: Vec<Finding>) -> BTreeMap<HostName, Seen> {
        let diagnosis = Diagnosis { findings, ..Diagnosis::default() };
        sightings(&snapshot(), &diagnosis, &[]).into_iter().map(|(host, s)| (host, s.seen)).collect()
    }

    #[test]
    fn a_loss_with_several_others_is_located() {
        let all = seen(vec![finding(host("a"), &[("b", "a"), ("c", "a")])]);
        let Seen::Located(fault) = &all["a"] else { panic!("{all:?}") };
        assert_eq!(fault.text, "rx 940 Mbit/s not 9.41 Gbit/s, throughput");
        assert_eq!(all["b"], Seen::Healthy);
    }

    #[test]
    fn what_one_other_end_may_explain_is_not() {
        let explained = Seen::Explained(Explanation::OtherEnd);
        assert_eq!(seen(vec![finding(host("a"), &[("b", "a"), ("a", "b")])])["a"], explained);
        // Both partners are faulty themselves.
        let three = vec![
            finding(host("a"), &[("d", "a"), ("b", "a")]),
            finding(host("d"), &[("a", "d"), ("c", "d")]),
            finding(host("b"), &[("a", "b"), ("c", "b"), ("d", "b")]),
        ];
        assert_eq!(seen(three)["a"], Seen::Explained(Explanation::Group), "two of three of the rack");
        let two = vec![
            finding(host("a"), &[("d", "a")]),
            finding(host("d"), &[("a", "d"), ("b", "d"), ("c", "d")]),
        ];
        assert_eq!((&seen(two.clone())["a"], matches!(seen(two)["d"], Seen::Located(_))), (&explained, true));
        let pair = Suspect::Pair("a".into(), "b".into());
        assert_eq!(seen(vec![finding(pair, &[("a", "b")])])["b"], explained);
    }

    #[test]
    fn what_the_group_explains_is_not() {
        let explained = Seen::Explained(Explanation::Group);
        let own = || finding(host("a"), &[("b", "a"), ("c", "a")]);
        for suspect in [Suspect::Group("rack".into()), Suspect::All] {
            assert_eq!(seen(vec![own(), finding(suspect, &[])])["a"], explained);
        }
    }

    #[test]
    fn what_is_not_certain_or_was_only_read_is_not() {
        let own = || finding(host("a"), &[("b", "a"), ("c", "a")]);
        let unsure = Finding { probability: 0.9, ..own() };
        assert_eq!(seen(vec![unsure])["a"], Seen::Explained(Explanation::Uncertain));
        let mut elsewhere = own();
        elsewhere.places[0].probability = 0.6;
        assert_eq!(seen(vec![elsewhere])["a"], Seen::Explained(Explanation::Uncertain));
        let read = Finding { responses: vec![Metric::Setting], affected: vec![], ..own() };
        assert_eq!(seen(vec![read])["a"], Seen::Explained(Explanation::OnlyRead));
    }

    #[test]
    fn a_host_that_was_not_measured_both_ways_has_not_passed() {
        let mut snapshot = snapshot();
        snapshot.samples.retain(|sample| sample.test.to != "b");
        snapshot.gaps.push(Gap { what: GapSubject::Host("c".into()), reason: "lost".into() });
        let all = sightings(&snapshot, &Diagnosis::default(), &[]);
        assert_eq!(all["b"].seen, Seen::Unseen);
        assert_eq!(all["c"].seen, Seen::Unseen);
        assert_eq!(all["d"].seen, Seen::Healthy);
    }

    #[test]
    fn kept_settings_that_are_not_in_force_are_named() {
        let mut snapshot = snapshot();
        let value = FactValue::Int;
        let change = |host: &str, to| Change {
            host: host.into(),
            key: "sysctl.x".into(),
            from: value(1),
            to: value(to),
        };
        let facts =
            HostFacts { readings: [("sysctl.x".to_owned(), value(2))].into(), ..HostFacts::default() };
        snapshot.facts.insert("a".into(), facts);
        let all = sightings(&snapshot, &Diagnosis::default(), &[change("a", 2), change("b", 2)]);
        assert!(all["a"].not_in_force.is_empty() && all["c"].not_in_force.is_empty());
        assert_eq!(all["b"].not_in_force, ["sysctl.x"], "what was not read is not in force");
        snapshot.facts.clear();
    }
}
