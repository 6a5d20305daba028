//! Which settings of a kept set a host has: by its name, its groups, and the drivers and speeds of its NICs.
//! The values of a profile that a cohort names come from outside, and count behind the settings of the file.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::drift::{BOOT, KeptSetting};
use linerate_model::fact::{FactKey, FactValue, HostFacts, pattern_fits};
use linerate_model::inventory::Inventory;

use crate::error::KeptError;
use crate::set::{Cohort, CohortProfile, CohortSetting, KeptSet};

/// Profiles that cohorts name.
pub trait ProfileValues {
    /// Beginnings of the keys that a profile needs.
    fn prefixes(&self, profile: &str) -> Vec<String>;
    /// Settings of a profile that apply to a host, with the values that it should have.
    fn of_host(&self, profile: &str, host: &str, facts: &HostFacts) -> Vec<(FactKey, FactValue)>;
}

/// Beginnings of the keys that have to be read on a host; none where no cohort can be its own.
#[must_use]
pub fn prefixes(
    set: &KeptSet,
    inventory: &Inventory,
    host: &str,
    profiles: &dyn ProfileValues,
) -> Vec<String> {
    let mut wanted = BTreeSet::new();
    for cohort in set.cohorts.iter().filter(|cohort| is_named(cohort, inventory, host)) {
        if cohort.driver.is_some() || cohort.speed_mbit.is_some() {
            wanted.insert("nic.".to_owned());
        }
        let literal = |setting: &CohortSetting| setting.key.split('*').next().unwrap_or_default().to_owned();
        wanted.extend(cohort.settings.iter().map(literal));
        wanted.extend(cohort.profile.iter().flat_map(|chosen| profiles.prefixes(&chosen.name)));
    }
    if !wanted.is_empty() {
        wanted.insert(BOOT.to_owned());
    }
    wanted.into_iter().collect()
}

/// The settings of a host, in the order of the file. Without facts (a host out of reach) each cohort counts
/// whose names and groups fit, with the keys as they stand.
///
/// # Errors
/// Two cohorts keep different values of one setting of the host.
pub fn of_host(
    set: &KeptSet,
    inventory: &Inventory,
    host: &str,
    facts: Option<&HostFacts>,
    profiles: &dyn ProfileValues,
) -> Result<Vec<KeptSetting>, KeptError> {
    let mut chosen: Vec<&CohortProfile> = Vec::new();
    let mut kept: Vec<KeptSetting> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for cohort in set.cohorts.iter().filter(|cohort| is_named(cohort, inventory, host)) {
        let nics = facts.map(|facts| nics(cohort, facts));
        let has_condition = cohort.driver.is_some() || cohort.speed_mbit.is_some();
        if has_condition && nics.as_ref().is_some_and(BTreeSet::is_empty) {
            continue;
        }
        chosen.extend(&cohort.profile);
        for setting in &cohort.settings {
            let keys = match (facts, &nics) {
                (Some(facts), Some(nics)) => keys(setting, nics, has_condition, facts),
                _ => vec![setting.key.clone()],
            };
            for key in keys {
                let (value, policy, trial) = (setting.value.clone(), setting.policy, setting.trial.clone());
                let (line, profile) = (setting.line, None);
                let one = KeptSetting { host: host.to_owned(), key, value, policy, trial, profile, line };
                match known.get(&one.key).map(|at| &kept[*at]) {
                    None => {
                        known.insert(one.key.clone(), kept.len());
                        kept.push(one);
                    }
                    Some(other) if other.value.is_same(&one.value) => {}
                    Some(other) => {
                        return Err(KeptError {
                            file: set.file.clone(),
                            line: one.line,
                            problem: format!(
                                "{host}: {} is kept as {} here and as {} in line {}",
                                one.key, one.value, other.value, other.line
                            ),
                            hint: "make the cohorts exclude each other, or their values the same".to_owned(),
                            others: Vec::new(),
                        });
                    }
                }
            }
        }
    }
    for one in chosen {
        let values = match facts {
            Some(facts) => profiles.of_host(&one.name, host, facts),
            // One row for a host that cannot be read.
            None => vec![(format!("profile.{}", one.name), FactValue::Text(one.name.clone()))],
        };
        for (key, value) in values {
            if known.contains_key(&key) {
                continue;
            }
            known.insert(key.clone(), kept.len());
            let (host, profile) = (host.to_owned(), Some(one.name.clone()));
            let (policy, line) = (one.policy, one.line);
            kept.push(KeptSetting { host, key, value, policy, trial: None, profile, line });
        }
    }
    Ok(kept)
}

/// Whether names and groups of a cohort fit a host.
fn is_named(cohort: &Cohort, inventory: &Inventory, host: &str) -> bool {
    let is_member = |group: &String| inventory.groups_of(host).iter().any(|of| of.name == *group);
    (cohort.hosts.is_empty() || cohort.hosts.iter().any(|name| name == host))
        && cohort.group.as_ref().is_none_or(is_member)
}

/// The NICs of a host that fit driver and speed.
fn nics(cohort: &Cohort, facts: &HostFacts) -> BTreeSet<String> {
    let names = facts.readings.beginning_with("nic.").filter_map(|(key, _)| key.split('.').nth(1));
    let names: BTreeSet<&str> = names.collect();
    let reads = |nic: &str, field: &str, wanted: FactValue| {
        facts.readings.get(&format!("nic.{nic}.{field}")).is_some_and(|value| value.is_same(&wanted))
    };
    let fits = |nic: &&str| {
        cohort.driver.as_ref().is_none_or(|driver| reads(nic, "driver", FactValue::Text(driver.clone())))
            && cohort.speed_mbit.is_none_or(|speed| reads(nic, "speed_mbit", FactValue::Int(speed)))
    };
    names.into_iter().filter(fits).map(str::to_owned).collect()
}

/// The keys of a setting: a NIC `*` is each NIC of the cohort, another `*` what the host has. One that fits
/// nothing stays as it is, and cannot be read.
fn keys(
    setting: &CohortSetting,
    nics: &BTreeSet<String>,
    has_condition: bool,
    facts: &HostFacts,
) -> Vec<String> {
    if !setting.key.contains('*') {
        return vec![setting.key.clone()];
    }
    let of_nic = setting.key.strip_prefix("nic.*.").filter(|rest| !rest.contains('*'));
    let keys: Vec<String> = match of_nic {
        Some(rest) if has_condition => nics.iter().map(|nic| format!("nic.{nic}.{rest}")).collect(),
        _ => facts.readings.keys().filter(|key| pattern_fits(&setting.key, key)).cloned().collect(),
    };
    if keys.is_empty() { vec![setting.key.clone()] } else { keys }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use linerate_model::drift::DriftPolicy;
    use linerate_model::inventory::{Group, Host, TransportSpec};

    use super::*;

    fn inventory() -> Inventory {
        let host = |name: &str, groups: &[&str]| Host {
            name: name.to_owned(),
            transport: TransportSpec::Local,
            groups: groups.iter().map(|g| (*g).to_owned()).collect(),
            endpoints: Vec::new(),
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        };
        let group = |name: &str, parent: Option<&str>| Group {
            name: name.to_owned(),
            parent: parent.map(str::to_owned),
            ..Group::default()
        };
        Inventory {
            name: "c".to_owned(),
            groups: vec![group("storage", None), group("rack-1", Some("storage"))],
            hosts: vec![host("a", &["rack-1"]), host("b", &[])],
            ..Inventory::default()
        }
    }

    fn facts() -> HostFacts {
        let text = |text: &str| FactValue::Text(text.to_owned());
        let readings = [
            ("nic.eth0.driver".to_owned(), text("mlx5_core")),
            ("nic.eth0.speed_mbit".to_owned(), FactValue::Int(25_000)),
            ("nic.eth0.ring.rx".to_owned(), FactValue::Int(1024)),
            ("nic.eth1.driver".to_owned(), text("mlx5_core")),
            ("nic.eth1.speed_mbit".to_owned(), FactValue::Int(25_000)),
            ("nic.lan.driver".to_owned(), text("igb")),
            ("nic.lan.ring.rx".to_owned(), FactValue::Int(256)),
        ];
        HostFacts { readings: readings.into(), ..HostFacts::default() }
    }

    fn set(text: &str) -> KeptSet {
        KeptSet::parse("kept.toml", text).unwrap()
    }

    /// A profile of two settings.
    struct Made;

    impl ProfileValues for Made {
        fn prefixes(&self, _profile: &str) -> Vec<String> {
            vec!["nic.".to_owned(), "sysctl.vm.swappiness".to_owned()]
        }

        fn of_host(&self, profile: &str, _host: &str, _facts: &HostFacts) -> Vec<(FactKey, FactValue)> {
            assert_eq!(profile, "fast");
            vec![
                ("nic.eth0.ring.rx".to_owned(), FactValue::Int(8192)),
                ("sysctl.vm.swappiness".to_owned(), FactValue::Int(1)),
            ]
        }
    }

    #[test]
    fn a_chosen_profile_counts_behind_what_was_proven() {
        let set = set("[[cohort]]\ngroup = 'storage'\nprofile = 'fast'\npolicy = 'propose'\n\
                       [[cohort.setting]]\nkey = 'sysctl.vm.swappiness'\nvalue = 10\ntrial = 't'\n");
        let kept = of_host(&set, &inventory(), "a", Some(&facts()), &Made).unwrap();
        let shown = |one: &KeptSetting| {
            (one.key.clone(), one.value.to_string(), one.trial.is_some(), one.profile.clone(), one.line)
        };
        assert_eq!(
            kept.iter().map(shown).collect::<Vec<_>>(),
            [
                ("sysctl.vm.swappiness".to_owned(), "10".to_owned(), true, None, 6),
                ("nic.eth0.ring.rx".to_owned(), "8192".to_owned(), false, Some("fast".to_owned()), 3),
            ]
        );
        assert!(kept.iter().all(|one| one.policy == DriftPolicy::Propose));
        assert_eq!(prefixes(&set, &inventory(), "a", &Made), ["boot.", "nic.", "sysctl.vm.swappiness"]);
        assert!(of_host(&set, &inventory(), "b", Some(&facts()), &Made).unwrap().is_empty());
        let lost = of_host(&set, &inventory(), "a", None, &Made).unwrap();
        assert_eq!(lost[1].key, "profile.fast");
    }

    #[test]
    fn a_cohort_is_a_role_a_driver_and_a_speed() {
        let text = "[[cohort]]\ngroup = 'storage'\ndriver = 'mlx5_core'\nspeed = '25G'\n\
                    [[cohort.setting]]\nkey = 'nic.*.ring.rx'\nvalue = 8192\n";
        let set = set(text);
        let keys = |host: &str, facts: Option<&HostFacts>| -> Vec<String> {
            of_host(&set, &inventory(), host, facts, &Made)
                .unwrap()
                .into_iter()
                .map(|kept| kept.key)
                .collect()
        };
        // A NIC of the cohort without a reading has to be reported as well.
        assert_eq!(keys("a", Some(&facts())), ["nic.eth0.ring.rx", "nic.eth1.ring.rx"]);
        assert_eq!(keys("b", Some(&facts())), [""; 0], "of no group");
        assert_eq!(keys("a", Some(&HostFacts::default())), [""; 0], "no such NIC");
        assert_eq!(keys("a", None), ["nic.*.ring.rx"], "out of reach");
        assert_eq!(prefixes(&set, &inventory(), "a", &Made), ["boot.", "nic."]);
        assert!(prefixes(&set, &inventory(), "b", &Made).is_empty());
    }

    #[test]
    fn a_pattern_without_conditions_is_what_the_host_has() {
        let set = set("[[cohort]]\nhosts = ['b']\n[[cohort.setting]]\nkey = 'nic.*.ring.rx'\nvalue = 8192\n");
        let kept = of_host(&set, &inventory(), "b", Some(&facts()), &Made).unwrap();
        assert_eq!(
            kept.iter().map(|one| one.key.as_str()).collect::<Vec<_>>(),
            ["nic.eth0.ring.rx", "nic.lan.ring.rx"]
        );
    }

    #[test]
    fn cohorts_that_disagree_about_a_host_are_refused() {
        let text = |second: &str| {
            format!(
                "[[cohort]]\nhosts = ['a']\n[[cohort.setting]]\nkey = 'sysctl.vm.swappiness'\nvalue = 1\n\
                 [[cohort]]\ngroup = 'storage'\n[[cohort.setting]]\nkey = 'sysctl.vm.swappiness'\nvalue = {second}\n"
            )
        };
        let of = |text: &str| of_host(&set(text), &inventory(), "a", Some(&facts()), &Made);
        assert_eq!(of(&text("'1'")).unwrap().len(), 1);
        let error = of(&text("10")).unwrap_err();
        assert_eq!(error.line, 9);
        assert!(error.problem.contains("is kept as 10 here and as 1 in line 4"), "{error}");
    }
}
