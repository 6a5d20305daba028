//! A profile beside what a host has: for each setting the value in force, the wanted one, and whether a trial
//! would change it.
//!
//! In: a profile, facts of a host, the device with its measured address, its longest RTT. Out: one reading
//! per setting. Pure; it decides nothing about how good a value is.

use linerate_knowledge::keys::pattern_fits;
use linerate_knowledge::profile::{HostCondition, Profile, ProfileGroup, ProfileSetting, SettingGroup};
use linerate_model::change::Risk;
use linerate_model::fact::{FactKey, FactValue, HostFacts};
use linerate_model::inventory::HostName;
use linerate_model::trial::{Effect, Trial, TrialStatus};
use linerate_model::writable::writable;
use schemars::JsonSchema;
use serde::Serialize;

/// A host for a comparison with a profile.
#[derive(Debug, Clone, Copy)]
pub struct ProfileHost<'a> {
    /// Name.
    pub name: &'a str,
    /// What was read there.
    pub facts: &'a HostFacts,
    /// Beginning of the keys of the device with the measured address, such as `nic.eth0.`, with its
    /// namespace before it; `None` where that device is unknown.
    pub nic: Option<&'a str>,
    /// Longest RTT to another host, microseconds, where one was measured.
    pub rtt_us: Option<f64>,
}

/// A profile beside one host.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HostProfile {
    /// Host.
    pub host: HostName,
    /// Speed of the device with the measured address, Gbit/s.
    pub speed_gbits: Option<f64>,
    /// Whether the profile is for that speed; `None` where either has none.
    pub is_for_speed: Option<bool>,
    /// Longest RTT to another host, microseconds.
    pub rtt_us: Option<f64>,
    /// In the order of the profile.
    pub readings: Vec<ProfileReading>,
}

/// A setting of a profile on one host.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProfileReading {
    /// Group.
    pub group: SettingGroup,
    /// Key on this host; the pattern of the profile where the host has no such setting.
    pub key: FactKey,
    /// Value in force.
    pub now: Option<FactValue>,
    /// Value of the profile.
    pub to: Option<FactValue>,
    /// How the two compare.
    pub state: ReadingState,
    /// The reason for a state other than `same` and `differs`; empty for those.
    pub why: String,
    /// Cost of writing it.
    pub risk: Risk,
}

/// How a value in force compares with that of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadingState {
    /// Has the value.
    Same,
    /// Has more than the profile asks for at least.
    More,
    /// Has another value: a trial changes it.
    Differs,
    /// A condition of the setting does not hold on this host.
    NotForHost,
    /// The host has no such setting, or it could not be read.
    Missing,
}

impl ReadingState {
    /// The word of tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::More => "more",
            Self::Differs => "differs",
            Self::NotForHost => "not for host",
            Self::Missing => "missing",
        }
    }
}

/// What became of a group of settings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GroupOutcome {
    /// Group.
    pub group: SettingGroup,
    /// Result.
    pub result: GroupResult,
    /// The reason where nothing was tried; empty elsewhere.
    pub why: String,
    /// Its trial, where there is something to try.
    pub trial: Option<Trial>,
}

/// Results of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupResult {
    /// Better, with an interval above no change.
    Proven,
    /// No change, with a narrow interval.
    NoEffect,
    /// Worse, with an interval below no change.
    Harm,
    /// The interval is too wide, or the control pair moved as much.
    NotShown,
    /// To be tried.
    Planned,
    /// All hosts have the values.
    InForce,
    /// The conditions of its settings do not hold.
    NotForHost,
    /// The hosts have none of its settings.
    Missing,
    /// It may cut connectivity, and that was not allowed.
    Disruptive,
    /// It could not be measured to its end; the old values are back.
    Failed,
}

impl GroupResult {
    /// The word of tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::NoEffect => "no effect",
            Self::Harm => "harm",
            Self::NotShown => "not shown",
            Self::Planned => "planned",
            Self::InForce => "in force",
            Self::NotForHost => "not for host",
            Self::Missing => "missing",
            Self::Disruptive => "disruptive",
            Self::Failed => "failed",
        }
    }

    /// The result of a trial.
    #[must_use]
    pub fn of(trial: &Trial) -> Self {
        match (trial.status, trial.effect.as_ref().map(|size| size.effect)) {
            (TrialStatus::Running, None) => Self::Planned,
            (TrialStatus::Undone | TrialStatus::UndoFailed | TrialStatus::Running, _) | (_, None) => {
                Self::Failed
            }
            (_, Some(Effect::Better)) => Self::Proven,
            (_, Some(Effect::NoEffect)) => Self::NoEffect,
            (_, Some(Effect::Worse)) => Self::Harm,
            (_, Some(Effect::NotShown)) => Self::NotShown,
        }
    }
}

/// A profile beside a host.
#[must_use]
pub fn compare(profile: &Profile, host: &ProfileHost<'_>) -> HostProfile {
    let speed_gbits = host.number("nic.*.speed_mbit").map(|mbit| mbit / 1e3);
    let is_for_speed =
        profile.speed_gbits.zip(speed_gbits).map(|((least, most), speed)| (least..=most).contains(&speed));
    HostProfile {
        host: host.name.to_owned(),
        speed_gbits,
        is_for_speed,
        rtt_us: host.rtt_us,
        readings: readings(&profile.groups, host),
    }
}

/// The settings of some groups beside a host.
#[must_use]
pub fn readings(groups: &[ProfileGroup], host: &ProfileHost<'_>) -> Vec<ProfileReading> {
    let settings = groups.iter().flat_map(|group| group.set.iter().map(move |set| (group.group, set)));
    settings.flat_map(|(group, setting)| host.readings(group, setting)).collect()
}

impl ProfileHost<'_> {
    /// Keys of this host that a pattern of a profile names.
    fn keys(&self, pattern: &str) -> Vec<FactKey> {
        let namespace = self.nic.and_then(|nic| Some(nic.split_once('|')?.0)).map(|name| format!("{name}|"));
        let namespace = namespace.unwrap_or_default();
        let key = match pattern.strip_prefix("nic.*.") {
            Some(rest) => match self.nic {
                Some(nic) => format!("{nic}{rest}"),
                None => return Vec::new(),
            },
            None if pattern.starts_with("sysctl.net.") => format!("{namespace}{pattern}"),
            None => pattern.to_owned(),
        };
        let Some((first, _)) = key.split_once('*') else { return vec![key] };
        // `pattern_fits` leaves out the namespace of a key.
        let bare = linerate_knowledge::keys::bare(&key);
        let of_family = self.facts.readings.beginning_with(first);
        of_family.filter(|(key, _)| pattern_fits(bare, key)).map(|(key, _)| key.clone()).collect()
    }

    fn value(&self, pattern: &str) -> Option<&FactValue> {
        self.keys(pattern).iter().find_map(|key| self.facts.readings.get(key))
    }

    fn number(&self, pattern: &str) -> Option<f64> {
        self.value(pattern)?.number(0)
    }

    fn readings(&self, group: SettingGroup, setting: &ProfileSetting) -> Vec<ProfileReading> {
        let keys = self.keys(&setting.key);
        let risk = writable(&setting.key).map(|family| family.risk).unwrap_or_default();
        let to = self.wanted(setting);
        let reading = |key: FactKey, now: Option<FactValue>| {
            let (state, why) = self.state(setting, now.as_ref(), to.as_ref());
            ProfileReading { group, key, now, to: to.clone(), state, why, risk }
        };
        if keys.is_empty() {
            return vec![reading(setting.key.clone(), None)];
        }
        keys.into_iter()
            .map(|key| {
                let now = self.facts.readings.get(&key).cloned();
                reading(key, now)
            })
            .collect()
    }

    /// The value of a setting for this host.
    fn wanted(&self, setting: &ProfileSetting) -> Option<FactValue> {
        if let Some(key) = &setting.to_fact {
            return self.value(key).cloned();
        }
        if let Some(key) = &setting.to_first_cpu_of {
            let list = self.value(key)?.to_string();
            let first = list.split([',', '-']).next().filter(|first| !first.is_empty())?;
            return Some(FactValue::Text(first.to_owned()));
        }
        setting.to.clone()
    }

    fn state(
        &self,
        setting: &ProfileSetting,
        now: Option<&FactValue>,
        to: Option<&FactValue>,
    ) -> (ReadingState, String) {
        let Some(now) = now else {
            return (ReadingState::Missing, "this host has no such setting".to_owned());
        };
        let Some(to) = to else {
            let from = setting.to_fact.as_ref().or(setting.to_first_cpu_of.as_ref());
            let from = from.cloned().unwrap_or_default();
            return (ReadingState::Missing, format!("{from} is unknown"));
        };
        if let Some(why) = setting.when.iter().find_map(|condition| self.contradicts(condition)) {
            return (ReadingState::NotForHost, why);
        }
        if now.is_same(to) {
            (ReadingState::Same, String::new())
        } else if setting.at_least && last_number(now) >= last_number(to) && last_number(to).is_some() {
            (ReadingState::More, "has at least as much".to_owned())
        } else {
            (ReadingState::Differs, String::new())
        }
    }

    /// Why a condition does not hold. What is unknown contradicts nothing: the trial measures it.
    fn contradicts(&self, condition: &HostCondition) -> Option<String> {
        match condition {
            HostCondition::RttUsMin(min) => {
                let rtt = self.rtt_us.filter(|rtt| rtt < min)?;
                let shown = linerate_model::units::duration_us;
                Some(format!("RTT {}, needed from {}", shown(rtt), shown(*min)))
            }
            HostCondition::FactMin { key, min } => {
                let number = self.number(key).filter(|number| number < min)?;
                let number = linerate_model::fact::decimal(number);
                Some(format!("{key} is {number}, needed from {}", linerate_model::fact::decimal(*min)))
            }
        }
    }
}

/// The number in the last field of a value.
fn last_number(value: &FactValue) -> Option<f64> {
    let fields = value.to_string().split_whitespace().count();
    value.number(fields.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_knowledge::profile::Profiles;

    fn facts(values: &[(&str, FactValue)]) -> HostFacts {
        let readings = values.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        HostFacts { readings, ..HostFacts::default() }
    }

    fn text(value: &str) -> FactValue {
        FactValue::Text(value.to_owned())
    }

    fn host(facts: &HostFacts, rtt_us: Option<f64>) -> ProfileHost<'_> {
        ProfileHost { name: "a", facts, nic: Some("nic.eth0."), rtt_us }
    }

    fn state(compared: &HostProfile, end: &str) -> (ReadingState, String) {
        let found = compared.readings.iter().find(|reading| reading.key.ends_with(end)).unwrap();
        (found.state, found.why.clone())
    }

    #[test]
    fn each_setting_is_compared_and_conditions_decide() {
        let profiles = Profiles::builtin().unwrap();
        let profile = profiles.get("esnet-transfer-10g").unwrap();
        let facts = facts(&[
            ("sysctl.net.ipv4.tcp_rmem", text("4096\t131072\t6291456")),
            ("sysctl.net.ipv4.tcp_wmem", text("4096 16384 67108864")),
            ("sysctl.net.ipv4.tcp_sack", FactValue::Int(1)),
            ("sysctl.net.ipv4.tcp_mtu_probing", FactValue::Int(0)),
            ("nic.eth0.speed_mbit", FactValue::Int(10_000)),
            ("nic.eth0.mtu", FactValue::Int(1500)),
            ("nic.eth0.max_mtu", FactValue::Int(9216)),
            ("nic.eth0.ring.rx", FactValue::Int(512)),
            ("nic.eth0.ring.rx_max", FactValue::Int(4096)),
            ("nic.eth1.ring.tx", FactValue::Int(512)),
        ]);
        let far = compare(profile, &host(&facts, Some(20_000.0)));
        assert_eq!((far.speed_gbits, far.is_for_speed), (Some(10.0), Some(true)));
        assert_eq!(state(&far, "tcp_rmem").0, ReadingState::Differs);
        assert_eq!(state(&far, "tcp_wmem").0, ReadingState::More);
        assert_eq!(state(&far, "tcp_sack").0, ReadingState::Same);
        assert_eq!(state(&far, "nic.eth0.ring.rx").0, ReadingState::Differs);
        assert_eq!(state(&far, "ring.tx").0, ReadingState::Missing, "another device is not meant");
        assert_eq!(state(&far, "nic.eth0.mtu").0, ReadingState::Differs);
        let (probing, why) = state(&far, "tcp_mtu_probing");
        assert_eq!(probing, ReadingState::NotForHost);
        assert_eq!(why, "nic.*.mtu is 1500, needed from 8001");
        let near = compare(profile, &host(&facts, Some(200.0)));
        assert_eq!(
            state(&near, "tcp_rmem"),
            (ReadingState::NotForHost, "RTT 200 us, needed from 2.5 ms".to_owned())
        );
        let unknown = compare(profile, &host(&facts, None));
        assert_eq!(state(&unknown, "tcp_rmem").0, ReadingState::Differs, "what is unknown is tried");
    }

    #[test]
    fn every_interrupt_gets_the_first_cpu_near_the_device_in_its_namespace() {
        let profiles = Profiles::builtin().unwrap();
        let profile = profiles.get("casebook-storage-node").unwrap();
        let facts = facts(&[
            ("netns./run/x|nic.eth0.local_cpus", text("4-7,12")),
            ("netns./run/x|nic.eth0.irq.31.affinity", text("0")),
            ("netns./run/x|nic.eth0.irq.32.affinity", text("4")),
            ("netns./run/x|nic.eth0.irq.32.name", text("eth0-1")),
            ("nic.eth0.irq.33.affinity", text("0")),
        ]);
        let host = ProfileHost { nic: Some("netns./run/x|nic.eth0."), ..host(&facts, None) };
        let compared = compare(profile, &host);
        let irqs: Vec<_> = compared.readings.iter().filter(|r| r.key.contains(".irq.")).collect();
        let shown: Vec<_> = irqs.iter().map(|r| (r.key.as_str(), r.state)).collect();
        assert_eq!(
            shown,
            [
                ("netns./run/x|nic.eth0.irq.31.affinity", ReadingState::Differs),
                ("netns./run/x|nic.eth0.irq.32.affinity", ReadingState::Same),
            ]
        );
        assert_eq!(irqs[0].to, Some(text("4")));
    }
}
