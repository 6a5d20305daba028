//! The trials of a profile: one for each group of settings that changes something on the hosts, all on the
//! same kind of pair beside an untouched one; for every other group the reason why there is none.
//!
//! In: a profile beside the facts of hosts, and a diagnosis. Out: one outcome per group, with a trial that
//! has not begun where there is something to try. Pure.

use linerate_kept::profile::{GroupOutcome, GroupResult, HostProfile, ProfileReading, ReadingState};
use linerate_knowledge::profile::{Profile, ProfileGroup, SettingGroup};
use linerate_model::change::{Change, Remedy, Risk};
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::finding::{Cell, Diagnosis, Metric};
use linerate_model::inventory::{HostName, Inventory, Layer};
use linerate_model::trial::{Trial, TrialMeasure};
use linerate_model::writable::writable;

use super::sweep::{self, Ends, SweepError, SweepOptions};
use crate::observe::nic;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct ProfileOptions {
    /// Hosts to change, all together.
    pub on: Vec<HostName>,
    /// Groups to try; empty for all.
    pub groups: Vec<SettingGroup>,
    /// Pair to measure; by default one between two changed hosts, else the worst with a changed host.
    pub pair: Option<Ends>,
    /// Also try settings that may cut connectivity.
    pub disruptive: bool,
}

/// The name of a trial of a group, after which `rollout` finds it.
#[must_use]
pub fn remedy_id(profile: &str, group: SettingGroup) -> String {
    format!("{profile}/{}", group.word())
}

/// Beginning of the keys of the device with the measured address of a host, such as `nic.eth0.`.
#[must_use]
pub fn nic_of(inventory: &Inventory, host: &str, facts: &HostFacts) -> Option<String> {
    let first = || inventory.host(host).and_then(|host| host.endpoints.first());
    nic::prefix(facts, inventory.endpoint(host, Layer::Underlay).or_else(first)?)
}

/// Longest measured RTT between a host and another, microseconds.
#[must_use]
pub fn rtt_of(diagnosis: &Diagnosis, host: &str) -> Option<f64> {
    let of_host = diagnosis.cells.iter().filter(|cell| cell.from == host || cell.to == host);
    of_host.filter_map(|cell| cell.rtt_idle_us).reduce(f64::max)
}

/// One outcome per group of the profile. Ids of trials begin with `id`.
pub fn plan(
    inventory: &Inventory,
    diagnosis: &Diagnosis,
    profile: &Profile,
    compared: &[HostProfile],
    options: &ProfileOptions,
    id: &str,
) -> Result<Vec<GroupOutcome>, SweepError> {
    let ends = options.pair.iter().flat_map(|(from, to)| [from, to]);
    if let Some(host) = options.on.iter().chain(ends).find(|host| inventory.host(host).is_none()) {
        return Err(SweepError::NoHost(host.clone()));
    }
    let is_wanted =
        |group: &&ProfileGroup| options.groups.is_empty() || options.groups.contains(&group.group);
    let groups = profile.groups.iter().filter(is_wanted).zip(1..);
    groups
        .map(|(group, number)| {
            let readings: Vec<(&HostName, &ProfileReading)> = compared
                .iter()
                .flat_map(|host| host.readings.iter().map(move |reading| (&host.host, reading)))
                .filter(|(_, reading)| reading.group == group.group)
                .collect();
            let id_of_group = remedy_id(&profile.id, group.group);
            let title = format!("set the group {} of {}", group.group.word(), profile.id);
            let remedy = remedy(id_of_group, title, &readings);
            let without = |result: GroupResult, why: String| {
                Ok(GroupOutcome { group: group.group, result, why, trial: None })
            };
            if remedy.changes.is_empty() {
                let (result, why) = nothing_to_try(&readings);
                return without(result, why);
            }
            if remedy.risk > Risk::Brief && !options.disruptive {
                return without(GroupResult::Disruptive, format!("{}; --disruptive allows it", remedy.risk));
            }
            let trial = trial(inventory, diagnosis, options, group.metric, remedy, format!("{id}-{number}"))?;
            let (result, why) = (GroupResult::Planned, String::new());
            Ok(GroupOutcome { group: group.group, result, why, trial: Some(trial) })
        })
        .collect()
}

/// Why settings change nothing.
pub(super) fn nothing_to_try(readings: &[(&HostName, &ProfileReading)]) -> (GroupResult, String) {
    let first = |state: ReadingState| readings.iter().find(|(_, reading)| reading.state == state);
    if let Some((host, reading)) = first(ReadingState::NotForHost) {
        return (GroupResult::NotForHost, format!("{host}: {}", reading.why));
    }
    let has_values = |state: ReadingState| matches!(state, ReadingState::Same | ReadingState::More);
    if readings.iter().any(|(_, reading)| has_values(reading.state)) {
        return (GroupResult::InForce, String::new());
    }
    let why = first(ReadingState::Missing).map_or_else(String::new, |(host, r)| format!("{host}: {}", r.why));
    (GroupResult::Missing, why)
}

/// The change of all settings that differ.
pub(super) fn remedy(id: String, title: String, readings: &[(&HostName, &ProfileReading)]) -> Remedy {
    let change = |(host, reading): &(&HostName, &ProfileReading)| {
        let from = reading.now.clone().filter(|_| reading.state == ReadingState::Differs)?;
        let to: FactValue = sweep::like(&from, &reading.to.as_ref()?.to_string());
        Some(Change { host: (*host).clone(), key: reading.key.clone(), from, to })
    };
    let changes: Vec<Change> = readings.iter().filter_map(change).collect();
    let mut texts: Vec<&str> = Vec::new();
    for family in changes.iter().filter_map(|change| writable(&change.key)) {
        if !texts.contains(&family.what) {
            texts.push(family.what);
        }
    }
    Remedy {
        id,
        title,
        risk: changes.iter().filter_map(|change| Some(writable(&change.key)?.risk)).max().unwrap_or_default(),
        risk_text: texts.join(" "),
        changes,
        ..Remedy::default()
    }
}

fn trial(
    inventory: &Inventory,
    diagnosis: &Diagnosis,
    options: &ProfileOptions,
    metric: Metric,
    remedy: Remedy,
    id: String,
) -> Result<Trial, SweepError> {
    let pair = options.pair.clone().or_else(|| between(diagnosis, &options.on));
    let options = SweepOptions { on: options.on.clone(), pair, response: metric, ..SweepOptions::default() };
    let (pair, layer, control) = sweep::pairs(inventory, diagnosis, &options, &remedy)?;
    let measure = TrialMeasure { response: metric, layer, pair, control };
    Ok(Trial::planned(id, diagnosis.run.clone(), remedy, measure))
}

/// The worst measured pair with changes on both ends: a setting of sender and receiver takes effect
/// there as a whole.
fn between(diagnosis: &Diagnosis, on: &[HostName]) -> Option<Ends> {
    let is_inside = |cell: &&Cell| on.contains(&cell.from) && on.contains(&cell.to);
    let share = |cell: &Cell| cell.share.or(cell.throughput_bps).unwrap_or(f64::MAX);
    let worst = diagnosis.cells.iter().filter(is_inside).min_by(|a, b| share(a).total_cmp(&share(b)))?;
    Some((worst.from.clone(), worst.to.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::testing::{self, inventory};
    use linerate_kept::profile::{ProfileHost, compare};
    use linerate_knowledge::profile::Profiles;

    fn diagnosis() -> Diagnosis {
        testing::diagnosis(&[("a", "b", 0.9), ("b", "a", 0.5), ("a", "c", 0.1), ("c", "d", 1.0)])
    }

    fn planned(on: &[&str], disruptive: bool) -> Vec<GroupOutcome> {
        let profiles = Profiles::builtin().unwrap();
        let profile = profiles.get("esnet-transfer-10g").unwrap();
        let readings = [
            ("sysctl.net.ipv4.tcp_rmem".to_owned(), FactValue::Text("4096 131072 6291456".into())),
            ("sysctl.net.ipv4.tcp_sack".to_owned(), FactValue::Int(1)),
            ("sysctl.net.core.netdev_max_backlog".to_owned(), FactValue::Int(1000)),
            ("nic.eth0.qdisc".to_owned(), FactValue::Text("fq_codel".into())),
            ("nic.eth0.mtu".to_owned(), FactValue::Int(1500)),
            ("nic.eth0.max_mtu".to_owned(), FactValue::Int(9000)),
        ];
        let facts = HostFacts { readings: readings.into(), ..HostFacts::default() };
        let host = |name| ProfileHost { name, facts: &facts, nic: Some("nic.eth0."), rtt_us: Some(200.0) };
        let compared: Vec<HostProfile> = on.iter().map(|name| compare(profile, &host(name))).collect();
        let on = on.iter().map(|name| (*name).to_owned()).collect();
        let options = ProfileOptions { on, disruptive, ..ProfileOptions::default() };
        plan(&inventory(), &diagnosis(), profile, &compared, &options, "t").unwrap()
    }

    fn of(outcomes: &[GroupOutcome], group: SettingGroup) -> &GroupOutcome {
        outcomes.iter().find(|outcome| outcome.group == group).unwrap()
    }

    #[test]
    fn each_group_is_a_trial_or_a_reason() {
        let outcomes = planned(&["a"], false);
        let buffers = of(&outcomes, SettingGroup::Buffers);
        assert_eq!(
            (buffers.result, buffers.why.as_str()),
            (GroupResult::NotForHost, "a: RTT 200 us, needed from 2.5 ms")
        );
        assert_eq!(of(&outcomes, SettingGroup::Tcp).result, GroupResult::InForce);
        assert_eq!(of(&outcomes, SettingGroup::Rings).result, GroupResult::Missing);
        let mtu = of(&outcomes, SettingGroup::Mtu);
        assert_eq!(mtu.result, GroupResult::Disruptive);
        assert!(mtu.trial.is_none() && mtu.why.contains("--disruptive"), "{}", mtu.why);
        let queues = of(&outcomes, SettingGroup::Queues).trial.as_ref().unwrap();
        assert_eq!((queues.id.as_str(), queues.remedy.id.as_str()), ("t-4", "esnet-transfer-10g/queues"));
        assert_eq!(queues.remedy.changes[0].to, FactValue::Int(250_000));
        assert_eq!(queues.pair, ("a".to_owned(), "c".to_owned()), "the worst pair with a changed host");
        assert_eq!(queues.control, None, "no pair is without a and c");
        assert_eq!(of(&planned(&["a"], true), SettingGroup::Mtu).result, GroupResult::Planned);
    }

    #[test]
    fn two_hosts_change_together_and_are_measured_between_them() {
        let outcomes = planned(&["a", "b"], false);
        let qdisc = of(&outcomes, SettingGroup::Qdisc).trial.as_ref().unwrap();
        assert_eq!(qdisc.remedy.hosts(), ["a", "b"]);
        assert_eq!(qdisc.pair, ("b".to_owned(), "a".to_owned()), "the worse direction");
        assert_eq!(qdisc.control, Some(("c".to_owned(), "d".to_owned())));
        let profiles = Profiles::builtin().unwrap();
        let profile = profiles.get("esnet-transfer-10g").unwrap();
        let options = ProfileOptions { on: vec!["x".to_owned()], ..ProfileOptions::default() };
        let error = plan(&inventory(), &diagnosis(), profile, &[], &options, "t").unwrap_err();
        assert!(matches!(error, SweepError::NoHost(host) if host == "x"));
    }
}
