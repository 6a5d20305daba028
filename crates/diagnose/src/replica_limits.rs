//! What is wrong with a resource that no state shows: settings that hold it back, and a filesystem on it that
//! is full. Facts, rates, room and the knowledge come in, alarms go out. When a setting is worth an alarm,
//! and what is said about it, stands in the file of its cause.

use std::collections::BTreeMap;

use linerate_knowledge::placeholder::{self, Placeholder};
use linerate_knowledge::{Cause, Condition, Knowledge};
use linerate_model::drbd::{DrbdAlarm, DrbdEvidence, DrbdTrouble};
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::inventory::HostName;
use linerate_model::snapshot::Snapshot;
use linerate_model::step::Space;

use crate::attribute;
use crate::evidence::Facts;
use crate::rules::Rules;

/// What is known of one side beside its states.
#[derive(Debug, Clone, Default)]
pub struct SideFacts {
    /// Host.
    pub host: HostName,
    /// Its facts `drbd.*`.
    pub facts: HostFacts,
    /// Resource, folder and room of each filesystem that is mounted from a device of DRBD.
    pub mounted: Vec<(String, String, Space)>,
}

/// Alarms of settings, with the causes that know them.
const ALARMS: [(DrbdTrouble, &str); 3] = [
    (DrbdTrouble::ResyncThrottled, "drbd-resync-throttled"),
    (DrbdTrouble::SmallActivityLog, "drbd-activity-log"),
    (DrbdTrouble::Barriers, "drbd-barrier"),
];

/// All alarms. `syncing` are resources that are synchronised, with their rates, KiB/s.
#[must_use]
pub fn limits(sides: &[SideFacts], syncing: &[(String, f64)], knowledge: &Knowledge) -> Vec<DrbdAlarm> {
    let mut found: Vec<DrbdAlarm> = Vec::new();
    let mut add = |alarm: DrbdAlarm| {
        // Both sides have the same settings mostly: one alarm for a resource, with the first host that shows
        // it.
        if !found.iter().any(|known| known.resource == alarm.resource && known.what == alarm.what) {
            found.push(alarm);
        }
    };
    for side in sides {
        for key in resources(&side.facts) {
            let name = key.replace('/', ".");
            let rate = syncing.iter().find(|(resource, _)| *resource == name).map(|(_, rate)| *rate);
            let snapshot = alone(side, key, rate);
            let has = |side: &&SideFacts| resources(&side.facts).contains(&key);
            let hosts: Vec<&str> = sides.iter().filter(has).map(|side| side.host.as_str()).collect();
            let seen = Seen {
                facts: Facts::new(&snapshot, &Rules::DEFAULT),
                host: &side.host,
                hosts: hosts.join(" "),
                key,
                name,
            };
            let known = |(what, id): (DrbdTrouble, &str)| seen.alarm(what, knowledge.get(id)?);
            ALARMS.into_iter().filter_map(known).for_each(&mut add);
        }
        for (resource, folder, space) in &side.mounted {
            full(side, resource, folder, *space).into_iter().for_each(&mut add);
        }
    }
    found
}

/// Resources by the names that keys have.
fn resources(facts: &HostFacts) -> Vec<&str> {
    facts.readings.keys().filter_map(|key| key.strip_prefix("drbd.")?.strip_suffix(".peer")).collect()
}

/// The facts of one resource of a side, so that those of another neither indicate nor exclude anything; while
/// it is synchronised also its limit (`resync.limit`, KiB/s) and how much of that it reaches.
fn alone(side: &SideFacts, key: &str, rate_kib: Option<f64>) -> Snapshot {
    let head = format!("drbd.{key}.");
    let own = side.facts.readings.iter().filter(|(key, _)| key.starts_with(&head));
    let mut facts = HostFacts::default();
    facts.readings.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    if let Some(((option, text, limit), rate)) = limit(&facts, &head).zip(rate_kib) {
        let percent = (100.0 * rate / limit).round() as i64;
        facts.readings.extend([
            (format!("{head}resync.limit"), FactValue::Text(format!("{limit} KiB/s ({option} {text})"))),
            (format!("{head}resync.percent_of_limit"), FactValue::Int(percent)),
        ]);
    }
    Snapshot { facts: BTreeMap::from([(side.host.clone(), facts)]), ..Snapshot::default() }
}

/// What limits a synchronisation: the option, as it is written, and as KiB/s.
fn limit(facts: &HostFacts, head: &str) -> Option<(&'static str, String, f64)> {
    let value = |name: &str| facts.readings.get(&format!("{head}disk.{name}")).map(ToString::to_string);
    let option = if value("c-plan-ahead")? == "0" { "resync-rate" } else { "c-max-rate" };
    let text = value(option)?;
    let limit = kib(&text).filter(|limit| *limit > 0.0)?;
    Some((option, text, limit))
}

/// A resource on one side.
struct Seen<'a> {
    facts: Facts<'a>,
    host: &'a str,
    /// All hosts that have it.
    hosts: String,
    /// Its name as keys have it.
    key: &'a str,
    name: String,
}

impl Seen<'_> {
    /// Readings that are as a condition wants them.
    fn holding(&self, condition: &Condition) -> Vec<(String, String)> {
        let head = format!("drbd.{}.", self.key);
        let readings = condition.keys.iter().flat_map(|pattern| self.facts.matching(self.host, pattern));
        let holding =
            readings.filter(|(key, value)| attribute::fits(&self.facts, self.host, key, value, condition));
        let named = |key: &str| key.strip_prefix(&head).unwrap_or(key).to_owned();
        holding.map(|(key, value)| (named(key), value.to_string())).collect()
    }

    /// The alarm that a cause is worth without a measurement, where all holds that it asks for.
    fn alarm(&self, what: DrbdTrouble, cause: &Cause) -> Option<DrbdAlarm> {
        let further = cause.alarm.as_ref()?;
        if cause.excludes.iter().any(|test| !self.holding(&Condition::from(test)).is_empty()) {
            return None;
        }
        let indicators = cause.indicators.iter().filter(|test| test.required).map(Condition::from);
        let mut readings: Vec<(String, String)> = Vec::new();
        for condition in indicators.chain(further.iter().cloned()) {
            let holding = self.holding(&condition);
            if holding.is_empty() {
                return None;
            }
            readings.extend(holding);
        }
        readings.dedup();
        let remedy = cause.remedy.as_ref().map(|remedy| {
            let instruction = placeholder::prose(&remedy.instruction, |hole| match hole {
                Placeholder::Host => Some(self.host.to_owned()),
                Placeholder::Hosts => Some(self.hosts.clone()),
                Placeholder::Resource => Some(self.name.clone()),
                _ => None,
            });
            (instruction, remedy.risk_text.clone())
        });
        let evidence = DrbdEvidence::Cause {
            host: self.host.to_owned(),
            title: cause.title.clone(),
            mechanism: cause.mechanism.trim().to_owned(),
            readings,
            remedy,
        };
        Some(alarm(&self.name, what, evidence))
    }
}

fn alarm(resource: &str, what: DrbdTrouble, evidence: DrbdEvidence) -> DrbdAlarm {
    DrbdAlarm {
        resource: resource.to_owned(),
        what,
        evidence: Some(evidence),
        sentence: String::new(),
        advice: String::new(),
    }
}

/// `102400k`, `1M`, `8192s` or bytes, as KiB.
fn kib(text: &str) -> Option<f64> {
    let (digits, scale) = match text.char_indices().next_back()? {
        (at, 's') => (&text[..at], 0.5),
        (at, 'k' | 'K') => (&text[..at], 1.0),
        (at, 'M') => (&text[..at], 1024.0),
        (at, 'G') => (&text[..at], 1024.0 * 1024.0),
        _ => (text, 1.0 / 1024.0),
    };
    digits.parse::<f64>().ok().map(|number| number * scale)
}

fn full(side: &SideFacts, resource: &str, folder: &str, space: Space) -> Option<DrbdAlarm> {
    let share = space.free_bytes as f64 / space.size_bytes as f64;
    let is_full = space.size_bytes > 0 && share < Rules::DEFAULT.disks.full_filesystem;
    let evidence = DrbdEvidence::Full { host: side.host.clone(), folder: folder.to_owned(), space };
    is_full.then(|| alarm(resource, DrbdTrouble::Full, evidence))
}

#[cfg(test)]
mod tests {
    use linerate_report::words::drbd::written;

    use super::*;

    fn side(host: &str, changed: &[(&str, &str)]) -> SideFacts {
        let mut facts = HostFacts::default();
        let usual = [
            ("disk.al-extents", "1237"),
            ("disk.disk-barrier", "no"),
            ("disk.c-plan-ahead", "20"),
            ("disk.c-max-rate", "102400k"),
            ("disk.resync-rate", "250k"),
        ];
        for (name, value) in usual.iter().chain(changed) {
            let value = value.parse().map_or_else(|_| FactValue::Text((*value).into()), FactValue::Int);
            facts.readings.insert(format!("drbd.a/b.{name}"), value);
        }
        facts.readings.insert("drbd.a/b.peer".into(), FactValue::Flag(true));
        SideFacts { host: host.into(), facts, mounted: Vec::new() }
    }

    fn said(sides: &[SideFacts], rate: Option<f64>) -> Vec<DrbdTrouble> {
        let syncing: Vec<(String, f64)> = rate.map(|rate| ("a.b".to_owned(), rate)).into_iter().collect();
        let found = limits(sides, &syncing, &Knowledge::builtin().unwrap());
        let found: Vec<DrbdAlarm> = found.into_iter().map(written).collect();
        assert!(
            found.iter().all(|alarm| alarm.resource == "a.b" && alarm.sentence.contains("a.b")),
            "{found:?}"
        );
        found.into_iter().map(|alarm| alarm.what).collect()
    }

    #[test]
    fn what_everybody_has_is_no_alarm_and_each_bad_setting_is_one_for_both_sides() {
        assert_eq!(said(&[side("one", &[]), side("two", &[])], Some(90_000.0)), []);
        for (name, value, what) in [
            ("disk.al-extents", "67", DrbdTrouble::SmallActivityLog),
            ("disk.disk-barrier", "yes", DrbdTrouble::Barriers),
        ] {
            assert_eq!(said(&[side("one", &[(name, value)]), side("two", &[(name, value)])], None), [what]);
            assert_eq!(said(&[side("one", &[]), side("two", &[(name, value)])], None), [what]);
        }
    }

    #[test]
    fn a_small_log_of_a_small_device_is_no_alarm() {
        let mut small = side("one", &[("disk.al-extents", "67")]);
        small.facts.readings.insert("drbd.a/b.al_covers_percent".into(), FactValue::Int(100));
        assert_eq!(said(&[small.clone()], None), []);
        // It says nothing of another resource.
        small.facts.readings.insert("drbd.c.peer".into(), FactValue::Flag(true));
        small.facts.readings.insert("drbd.c.disk.al-extents".into(), FactValue::Int(67));
        let found = limits(&[small], &[], &Knowledge::builtin().unwrap());
        let names: Vec<&str> = found.iter().map(|alarm| alarm.resource.as_str()).collect();
        assert_eq!(names, ["c"], "{found:?}");
    }

    #[test]
    fn an_alarm_says_what_its_cause_says_with_the_values_that_were_read() {
        let knowledge = Knowledge::builtin().unwrap();
        let said = |changed: &[(&str, &str)], rate: f64| {
            written(limits(&[side("one", changed)], &[("a.b".to_owned(), rate)], &knowledge).remove(0))
        };
        for (changed, id, value) in [
            (("disk.al-extents", "67"), "drbd-activity-log", ": disk.al-extents is 67. "),
            (("disk.disk-barrier", "yes"), "drbd-barrier", ": disk.disk-barrier is yes. "),
            (
                ("disk.c-max-rate", "1M"),
                "drbd-resync-throttled",
                ": resync.limit is 1024 KiB/s (c-max-rate 1M), resync.percent_of_limit is 98. ",
            ),
        ] {
            let (alarm, cause) = (said(&[changed], 1000.0), knowledge.get(id).unwrap());
            assert!(alarm.sentence.starts_with(&format!("a.b on one: {}{value}", cause.title)), "{alarm:?}");
            assert!(alarm.sentence.ends_with(&cause.mechanism), "{alarm:?}");
            assert!(alarm.advice.contains("drbdadm adjust a.b") && !alarm.advice.contains("{resource}"));
        }
    }

    #[test]
    fn a_synchronisation_is_throttled_when_it_runs_at_its_limit_and_not_when_something_else_holds_it() {
        let low = [("disk.c-max-rate", "1M")];
        assert_eq!(said(&[side("one", &low)], Some(1000.0)), [DrbdTrouble::ResyncThrottled]);
        assert_eq!(said(&[side("one", &low)], Some(300.0)), []);
        assert_eq!(said(&[side("one", &low)], None), []);
        let fixed = [("disk.c-plan-ahead", "0"), ("disk.resync-rate", "512k")];
        assert_eq!(said(&[side("one", &fixed)], Some(500.0)), [DrbdTrouble::ResyncThrottled]);
        assert_eq!(
            [kib("8s"), kib("2G"), kib("1048576"), kib(""), kib("x")],
            [Some(4.0), Some(2_097_152.0), Some(1024.0), None, None]
        );
    }

    #[test]
    fn a_full_filesystem_is_named() {
        let mounted = |free_bytes| SideFacts {
            mounted: vec![("a.b".into(), "/mnt".into(), Space { size_bytes: 1 << 30, free_bytes })],
            ..side("one", &[])
        };
        assert_eq!(said(&[mounted(0)], None), [DrbdTrouble::Full]);
        assert_eq!(said(&[mounted(1 << 29)], None), []);
    }
}
