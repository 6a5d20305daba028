//! The values of a profile that a cohort of the kept set names, on a host.

use linerate_kept::ProfileValues;
use linerate_kept::profile::{ProfileHost, ReadingState, compare};
use linerate_knowledge::profile::{HostCondition, ProfileSetting};
use linerate_model::fact::{FactKey, FactValue, HostFacts};
use linerate_model::inventory::Inventory;

use crate::cli::profile::named;
use linerate_operator::trial::profile::nic_of;

/// Profiles by name or file, for the hosts of an inventory.
pub(in super::super) struct ChosenProfiles<'a>(pub(in super::super) &'a Inventory);

/// Patterns of the keys that decide about a setting.
fn keys(setting: &ProfileSetting) -> impl Iterator<Item = &String> {
    let conditions = setting.when.iter().filter_map(|condition| match condition {
        HostCondition::FactMin { key, .. } => Some(key),
        HostCondition::RttUsMin(_) => None,
    });
    let others = [&setting.to_fact, &setting.to_first_cpu_of].into_iter().flatten();
    std::iter::once(&setting.key).chain(others).chain(conditions)
}

impl ProfileValues for ChosenProfiles<'_> {
    fn prefixes(&self, profile: &str) -> Vec<String> {
        let Ok(profile) = named::find(profile) else { return Vec::new() };
        let settings = profile.groups.iter().flat_map(|group| &group.set);
        let literal = |key: &String| key.split('*').next().unwrap_or_default().to_owned();
        // The addresses of NICs identify the one that is meant.
        std::iter::once("nic.".to_owned()).chain(settings.flat_map(keys).map(literal)).collect()
    }

    /// What has more than a profile asks for is kept as it is; a setting that a kernel or driver does not
    /// have is none.
    fn of_host(&self, profile: &str, host: &str, facts: &HostFacts) -> Vec<(FactKey, FactValue)> {
        let Ok(profile) = named::find(profile) else { return Vec::new() };
        let nic = nic_of(self.0, host, facts);
        let host = ProfileHost { name: host, facts, nic: nic.as_deref(), rtt_us: None };
        let is_unseen = |key: &FactKey| nic.is_none() && key.starts_with("nic.");
        let readings = compare(&profile, &host).readings.into_iter();
        let values = readings.filter_map(|one| {
            let value = match one.state {
                ReadingState::Same | ReadingState::Differs => one.to,
                ReadingState::More => one.now,
                ReadingState::Missing if is_unseen(&one.key) => one.to,
                ReadingState::Missing | ReadingState::NotForHost => None,
            };
            Some((one.key, value?))
        });
        values.collect()
    }
}
