//! From a cause with its facts to a remedy that leaves no choice: which setting on which host from what to
//! what.

use linerate_knowledge::keys::{nic_of, pattern_fits};
use linerate_knowledge::{FixTarget, SettingPlan};
use linerate_model::change::{Change, Remedy};
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::writable::writable;

use super::facts::candidates;
use super::{Scored, SuspectContext};
use crate::evidence::Facts;

/// The remedy of a cause at a location.
pub(crate) fn remedy(
    facts: &Facts<'_>,
    location: &SuspectContext<'_>,
    scored: &Scored<'_>,
) -> Option<Remedy> {
    let plan = scored.cause.remedy.as_ref()?;
    let mut changes: Vec<Change> = Vec::new();
    for set in &plan.set {
        for change in planned(facts, location, scored, set) {
            if !changes.iter().any(|c| c.host == change.host && c.key == change.key) {
                changes.push(change);
            }
        }
    }
    let hit = scored.hits.first();
    let host = changes.first().map(|c| c.host.as_str()).or(hit.map(|h| h.host.as_str()));
    let host = host.or(location.subjects.suspects.first().copied()).unwrap_or("the host");
    let key = changes.first().map(|c| c.key.as_str()).or(hit.map(|h| h.key.as_str()));
    let layer = linerate_model::inventory::Layer::Underlay;
    let nic = key.and_then(nic_of).or_else(|| facts.nic(host, layer)).unwrap_or("NIC");
    let resource = key.and_then(resource_of);
    let hosts = hosts_of(facts, host, resource);
    let named = |text: &str| {
        let text = text.replace("{host}", host).replace("{hosts}", &hosts).replace("{nic}", nic);
        // In keys a dot of the name is a slash.
        resource.map_or_else(|| text.clone(), |name| text.replace("<resource>", &name.replace('/', ".")))
    };
    let (instruction, persistence) = (named(&plan.instruction), named(&plan.persistence));
    Some(Remedy {
        id: scored.cause.id.clone(),
        title: plan.title.clone(),
        changes,
        instruction,
        persistence,
        risk: plan.risk,
        risk_text: plan.risk_text.clone(),
    })
}

/// The resource of DRBD that a key is about: `r0` of `drbd.r0.connection`.
fn resource_of(key: &str) -> Option<&str> {
    key.strip_prefix("drbd.")?.split_once('.').map(|(name, _)| name)
}

/// The hosts that a command about a location needs: all that have the resource, else the one.
fn hosts_of(facts: &Facts<'_>, host: &str, resource: Option<&str>) -> String {
    let Some(resource) = resource else { return host.to_owned() };
    let head = format!("drbd.{resource}.");
    let has = |facts: &HostFacts| facts.readings.keys().any(|key| key.starts_with(&head));
    let all = facts.snapshot.facts.iter().filter(|(_, facts)| has(facts));
    all.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ")
}

/// The settings that indicated the cause where there are some, else all that the pattern names.
fn planned(
    facts: &Facts<'_>,
    location: &SuspectContext<'_>,
    scored: &Scored<'_>,
    set: &SettingPlan,
) -> Vec<Change> {
    let indicating: Vec<(&str, &str, &FactValue)> = scored
        .hits
        .iter()
        .filter(|h| set.keys.iter().any(|k| pattern_fits(k, &h.key)))
        .map(|h| (h.host.as_str(), h.key.as_str(), &h.value))
        .collect();
    let named: Vec<(&str, &str, &FactValue)> = if indicating.is_empty() {
        let mut named = Vec::new();
        for host in location.subjects.side(set.side) {
            for (key, value) in candidates(facts, host, &set.keys, set.nic, location) {
                named.push((host, key, value));
            }
        }
        named
    } else {
        indicating
    };
    named
        .into_iter()
        // A pattern of a file may match more than it was checked for; the node would refuse the whole trial.
        .filter(|(_, key, _)| writable(key).is_some())
        .filter_map(|(host, key, from)| {
            let usual = || location.subjects.peers_of(host).population(facts, host, key).usual().cloned();
            let to = match &set.to {
                FixTarget::Peers => usual().filter(|u| u != from)?,
                FixTarget::Value(value) => like(from, value),
                FixTarget::PeersOr(value) => {
                    usual().filter(|u| u != from).unwrap_or_else(|| like(from, value))
                }
            };
            (to != *from).then(|| Change {
                host: host.to_owned(),
                key: key.to_owned(),
                from: from.clone(),
                to,
            })
        })
        .collect()
}

/// The wanted value in the form of the old one: `on` for a flag is a flag.
fn like(old: &FactValue, wanted: &FactValue) -> FactValue {
    match (old, wanted) {
        (FactValue::Flag(_), FactValue::Text(text)) if text == "on" || text == "off" => {
            FactValue::Flag(text == "on")
        }
        (FactValue::Int(_), FactValue::Text(text)) => {
            text.parse().map_or_else(|_| wanted.clone(), FactValue::Int)
        }
        (FactValue::Text(_), FactValue::Flag(flag)) => {
            FactValue::Text(if *flag { "on" } else { "off" }.to_owned())
        }
        (FactValue::Text(_), FactValue::Int(number)) => FactValue::Text(number.to_string()),
        _ => wanted.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_the_form_that_was_read() {
        assert_eq!(like(&FactValue::Flag(true), &FactValue::Text("off".into())), FactValue::Flag(false));
        assert_eq!(
            like(&FactValue::Text("on".into()), &FactValue::Flag(false)),
            FactValue::Text("off".into())
        );
        assert_eq!(like(&FactValue::Int(0), &FactValue::Int(1)), FactValue::Int(1));
    }
}
