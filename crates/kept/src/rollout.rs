//! A change that was proven on one host, carried to further hosts in waves: what is planned, what became of
//! each host, and what the measurement of a host means for its wave.
//!
//! In: proven trials, hosts, the trial of each host. Out: waves, results, where to go on. Pure: it measures
//! nothing and writes nothing.

use linerate_knowledge::profile::{Profile, ProfileGroup, ProfileSetting, SettingGroup};
use linerate_model::finding::Metric;
use linerate_model::inventory::HostName;
use linerate_model::run_id::RunId;
use linerate_model::trial::{Effect, Trial, TrialStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is carried where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rollout {
    /// Identifier.
    pub id: RunId,
    /// Trial or profile that it carries.
    pub source: String,
    /// Proven trials that the settings are from.
    pub trials: Vec<RunId>,
    /// Run whose pairs are measured.
    pub run: RunId,
    /// What is compared on each host.
    pub metric: Metric,
    /// Whether the proving host received in its pair; `None` where both ends were changed.
    pub receives: Option<bool>,
    /// Settings, by group.
    pub groups: Vec<ProfileGroup>,
    /// Hosts, by wave.
    pub waves: Vec<Vec<HostName>>,
    /// Measurements of each host.
    pub arms: usize,
}

/// The journal of a wave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutWave {
    /// Number, from 1.
    pub number: usize,
    /// Where it stands.
    pub status: WaveStatus,
    /// Its hosts, in order.
    pub hosts: Vec<RolloutHost>,
}

/// Where a wave stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaveStatus {
    /// Not begun.
    Planned,
    /// Begun; a rollout that ended here resumes with it.
    Running,
    /// All its hosts are changed, or need no change.
    Done,
    /// Undone as a whole, because of one of its hosts.
    Undone,
}

impl WaveStatus {
    /// The word of tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Running => "running",
            Self::Done => "done",
            Self::Undone => "undone",
        }
    }
}

/// A host of a wave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutHost {
    /// Host.
    pub host: HostName,
    /// Its last trial, where one was begun.
    pub trial: Option<RunId>,
    /// Result.
    pub result: HostResult,
    /// Ratio of after to before and its 95 % interval; above 1 is better.
    pub ratio: Option<(f64, f64, f64)>,
    /// The reason of a result; empty where the figures show it.
    pub why: String,
}

/// What became of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostResult {
    /// Not begun.
    Planned,
    /// Begun: whatever became of it is undone before it is begun again.
    Begun,
    /// Changed for good: better, or without effect.
    Kept,
    /// Has the values already.
    InForce,
    /// The conditions of the settings do not hold here.
    NotForHost,
    /// Measurably worse; undone.
    Harm,
    /// Neither harm nor its absence could be shown; undone.
    Undecided,
    /// Could not be tried; undone.
    Failed,
    /// Was changed, and undone because of another host of its wave.
    Undone,
    /// Could not be undone.
    UndoFailed,
}

impl HostResult {
    /// The word of tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Begun => "begun",
            Self::Kept => "kept",
            Self::InForce => "in force",
            Self::NotForHost => "not for host",
            Self::Harm => "harm",
            Self::Undecided => "undecided",
            Self::Failed => "failed",
            Self::Undone => "undone",
            Self::UndoFailed => "NOT undone",
        }
    }

    /// Whether nothing is left to do on the host.
    #[must_use]
    pub fn is_done(self) -> bool {
        matches!(self, Self::Kept | Self::InForce | Self::NotForHost)
    }

    /// Whether its wave stops and is undone.
    #[must_use]
    pub fn stops(self) -> bool {
        matches!(self, Self::Harm | Self::Undecided | Self::Failed | Self::UndoFailed)
    }

    /// What a trial means that keeps what is harmless.
    #[must_use]
    pub fn of(trial: &Trial) -> Self {
        match (trial.status, trial.effect.as_ref().map(|size| size.effect)) {
            (TrialStatus::UndoFailed, _) => Self::UndoFailed,
            (TrialStatus::Kept, _) => Self::Kept,
            (TrialStatus::Measured, Some(Effect::Worse)) => Self::Harm,
            (TrialStatus::Measured, Some(_)) => Self::Undecided,
            _ => Self::Failed,
        }
    }
}

impl RolloutHost {
    /// A host that was not begun.
    #[must_use]
    pub fn planned(host: HostName) -> Self {
        Self { host, trial: None, result: HostResult::Planned, ratio: None, why: String::new() }
    }

    /// Takes over the end of its trial.
    pub fn ended(&mut self, trial: &Trial) {
        self.trial = Some(trial.id.clone());
        self.result = HostResult::of(trial);
        let size = trial.effect.as_ref().filter(|size| size.fewer_than.is_none());
        self.ratio = size.map(|size| (size.ratio, size.interval.0, size.interval.1));
        let is_in_figures = matches!(self.result, HostResult::Kept | HostResult::Harm);
        let last = trial.notes.last().filter(|_| !is_in_figures);
        self.why = last.cloned().unwrap_or_default();
    }
}

impl RolloutWave {
    /// A wave that was not begun.
    #[must_use]
    pub fn planned(number: usize, hosts: &[HostName]) -> Self {
        let hosts = hosts.iter().cloned().map(RolloutHost::planned).collect();
        Self { number, status: WaveStatus::Planned, hosts }
    }

    /// Hosts that are still to be changed, by their index in the wave.
    #[must_use]
    pub fn left(&self) -> Vec<usize> {
        let is_left = |at: &usize| !self.hosts[*at].result.is_done();
        (0..self.hosts.len()).filter(is_left).collect()
    }

    /// Whether one of its hosts stops it and the others are not undone yet.
    #[must_use]
    pub fn is_to_be_undone(&self) -> bool {
        self.status == WaveStatus::Running && self.hosts.iter().any(|host| host.result.stops())
    }

    /// Hosts that this wave changed, by their index in it, the last first: the order of undoing them.
    #[must_use]
    pub fn kept(&self) -> Vec<usize> {
        let is_kept = |at: &usize| self.hosts[*at].result == HostResult::Kept;
        (0..self.hosts.len()).rev().filter(is_kept).collect()
    }
}

/// Hosts in waves: of `size` hosts each, or of 1, 2, 4, … without it.
#[must_use]
pub fn waves(hosts: &[HostName], size: Option<usize>) -> Vec<Vec<HostName>> {
    let mut waves: Vec<Vec<HostName>> = Vec::new();
    let (mut rest, mut next) = (hosts, size.unwrap_or(1).max(1));
    while !rest.is_empty() {
        let (wave, others) = rest.split_at(next.min(rest.len()));
        waves.push(wave.to_vec());
        rest = others;
        if size.is_none() {
            next *= 2;
        }
    }
    waves
}

/// Why a trial cannot be carried to other hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotCarried {
    /// It is not proven to be better.
    NotProven,
    /// It changes a setting that only its own host has.
    OfOneHost(String),
}

/// The settings of a proven trial for other hosts. `nic` gives the beginning of the keys of the device with
/// the measured address of a host, which becomes `nic.*.`.
pub fn settings_of(
    trial: &Trial,
    nic: impl Fn(&str) -> Option<String>,
) -> Result<Vec<ProfileGroup>, NotCarried> {
    if trial.effect.as_ref().map(|size| size.effect) != Some(Effect::Better) {
        return Err(NotCarried::NotProven);
    }
    let mut groups: Vec<ProfileGroup> = Vec::new();
    for change in &trial.remedy.changes {
        let key = match nic(&change.host) {
            Some(nic) if change.key.starts_with(&nic) => format!("nic.*.{}", &change.key[nic.len()..]),
            _ => change.key.clone(),
        };
        let is_general = key.starts_with("nic.*.") || key.starts_with("sysctl.") || key.starts_with("cpu.");
        if !is_general || key.contains(".irq.") {
            return Err(NotCarried::OfOneHost(change.key.clone()));
        }
        if groups.iter().flat_map(|group| &group.set).any(|set| set.key == key) {
            continue;
        }
        let setting = ProfileSetting {
            key: key.clone(),
            to: Some(change.to.clone()),
            to_fact: None,
            to_first_cpu_of: None,
            at_least: false,
            reason: format!("proven by trial {}", trial.id),
            source: None,
            when: Vec::new(),
        };
        let group = SettingGroup::of_key(&key);
        match groups.iter_mut().find(|known| known.group == group) {
            Some(known) => known.set.push(setting),
            None => groups.push(ProfileGroup { group, metric: trial.response, set: vec![setting] }),
        }
    }
    Ok(groups)
}

/// The groups of a profile that are proven by trials: with their conditions and limits.
#[must_use]
pub fn groups_of(profile: &Profile, proven: &[SettingGroup]) -> Vec<ProfileGroup> {
    profile.groups.iter().filter(|group| proven.contains(&group.group)).cloned().collect()
}

/// Whether the changed host received in the pair of a trial; `None` where both ends or neither were changed.
#[must_use]
pub fn receives(trial: &Trial) -> Option<bool> {
    let hosts = trial.remedy.hosts();
    let (from, to) = (hosts.contains(&trial.pair.0), hosts.contains(&trial.pair.1));
    (from != to).then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::change::{Change, Remedy};
    use linerate_model::fact::FactValue;
    use linerate_model::inventory::Layer;
    use linerate_model::trial::EffectSize;

    fn names(count: usize) -> Vec<HostName> {
        (0..count).map(|n| format!("h{n}")).collect()
    }

    #[test]
    fn waves_grow_or_have_one_size_and_hold_every_host_once_in_order() {
        let sizes = |waves: &[Vec<HostName>]| waves.iter().map(Vec::len).collect::<Vec<_>>();
        let hosts = names(12);
        let growing = waves(&hosts, None);
        assert_eq!(sizes(&growing), [1, 2, 4, 5]);
        assert_eq!(growing.concat(), hosts);
        assert_eq!(sizes(&waves(&hosts, Some(5))), [5, 5, 2]);
        assert_eq!(sizes(&waves(&names(3), Some(0))), [1, 1, 1]);
        assert!(waves(&[], None).is_empty());
    }

    fn trial(effect: Option<Effect>, status: TrialStatus) -> Trial {
        let size = |effect| EffectSize {
            effect,
            ratio: 1.5,
            interval: (1.4, 1.6),
            control_ratio: 1.0,
            control_interval: (0.9, 1.1),
            before: 1.0,
            after: 1.5,
            fewer_than: None,
            sentence: String::new(),
        };
        Trial {
            id: "t-1".to_owned(),
            run: "r".to_owned(),
            remedy: Remedy::default(),
            response: Metric::Throughput,
            layer: Layer::Underlay,
            pair: ("a".to_owned(), "b".to_owned()),
            control: None,
            arms: Vec::new(),
            effect: effect.map(size),
            status,
            persisted: Vec::new(),
            notes: vec!["first".to_owned(), "last".to_owned()],
        }
    }

    #[test]
    fn the_result_of_a_host_is_that_of_its_trial_and_only_what_is_kept_goes_on() {
        use TrialStatus::{Kept, Measured, Undone};
        for (effect, status, result, stops) in [
            (Some(Effect::Better), Kept, HostResult::Kept, false),
            (Some(Effect::NoEffect), Kept, HostResult::Kept, false),
            (Some(Effect::Worse), Measured, HostResult::Harm, true),
            (Some(Effect::NotShown), Measured, HostResult::Undecided, true),
            (None, Undone, HostResult::Failed, true),
            (Some(Effect::Worse), TrialStatus::UndoFailed, HostResult::UndoFailed, true),
        ] {
            let found = HostResult::of(&trial(effect, status));
            assert_eq!((found, found.stops()), (result, stops));
            assert!(!(found.stops() && found.is_done()));
        }
        let mut host = RolloutHost::planned("a".to_owned());
        host.ended(&trial(Some(Effect::NotShown), Measured));
        assert_eq!((host.ratio, host.why.as_str()), (Some((1.5, 1.4, 1.6)), "last"));
        host.ended(&trial(Some(Effect::Worse), Measured));
        assert_eq!(host.why, "", "the figures show it");
    }

    #[test]
    fn a_wave_knows_what_is_left_and_what_it_changed() {
        let mut wave = RolloutWave::planned(2, &names(4));
        assert_eq!(wave.left(), [0, 1, 2, 3]);
        for (at, result) in [HostResult::Kept, HostResult::InForce, HostResult::Kept].into_iter().enumerate()
        {
            wave.hosts[at].result = result;
        }
        assert_eq!((wave.left(), wave.kept()), (vec![3], vec![2, 0]));
        wave.hosts[3].result = HostResult::Begun;
        assert_eq!(wave.left(), [3], "a host that was begun is made again");
        wave.status = WaveStatus::Running;
        assert!(!wave.is_to_be_undone());
        wave.hosts[3].result = HostResult::Harm;
        assert!(wave.is_to_be_undone(), "it ended before the others were undone");
        wave.status = WaveStatus::Undone;
        assert!(!wave.is_to_be_undone(), "a wave that was undone is begun again");
    }

    #[test]
    fn a_proven_trial_becomes_settings_of_any_host() {
        let change = |host: &str, key: &str| Change {
            host: host.to_owned(),
            key: key.to_owned(),
            from: FactValue::Int(1),
            to: FactValue::Int(2),
        };
        let nic = |host: &str| Some(if host == "a" { "nic.eth0." } else { "nic.ens3." }.to_owned());
        let mut proven = trial(Some(Effect::Better), TrialStatus::Kept);
        proven.remedy.changes = vec![
            change("a", "nic.eth0.ring.rx"),
            change("b", "nic.ens3.ring.rx"),
            change("a", "sysctl.net.ipv4.tcp_sack"),
        ];
        let groups = settings_of(&proven, nic).unwrap();
        let keys: Vec<_> = groups.iter().map(|g| (g.group, g.set[0].key.as_str(), g.set.len())).collect();
        assert_eq!(
            keys,
            [(SettingGroup::Rings, "nic.*.ring.rx", 1), (SettingGroup::Tcp, "sysctl.net.ipv4.tcp_sack", 1),]
        );
        assert_eq!(receives(&proven), None, "both ends were changed");
        proven.remedy.changes = vec![change("b", "nic.eth9.ring.rx")];
        assert_eq!(receives(&proven), Some(true));
        assert_eq!(settings_of(&proven, nic), Err(NotCarried::OfOneHost("nic.eth9.ring.rx".to_owned())));
        for key in ["route.10.0.0.0/8", "disk.sda.nr_requests", "nic.ens3.irq.31.affinity"] {
            proven.remedy.changes = vec![change("b", key)];
            assert_eq!(settings_of(&proven, nic), Err(NotCarried::OfOneHost(key.to_owned())));
        }
        let open = trial(Some(Effect::NoEffect), TrialStatus::Measured);
        assert_eq!(settings_of(&open, nic), Err(NotCarried::NotProven));
    }
}
