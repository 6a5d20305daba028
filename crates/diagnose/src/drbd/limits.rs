//! What is wrong with a resource that no state shows: settings that hold it back, and a filesystem on it that is full. Facts, rates and room come in, alarms go out.

use linerate_model::drbd::{DrbdAlarm, DrbdTrouble};
use linerate_model::fact::HostFacts;
use linerate_model::inventory::HostName;
use linerate_model::step::Space;

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

/// `al-extents` without a word in the file (drbd.conf-8.4(5)): nobody makes it smaller by chance.
const AL_EXTENTS: i64 = 1237;
/// Limit of a synchronisation without a word in the file, KiB/s (drbd.conf-8.4(5): `c-max-rate`).
const MAX_RATE_KIB: f64 = 102_400.0;
/// From this share of its limit on a synchronisation is held back by it and by nothing else.
const AT_LIMIT: f64 = 0.6;
/// A filesystem with less room than this share is full.
const FULL: f64 = 0.01;

/// All alarms. `syncing` are resources that are synchronised, with their rates, KiB/s.
#[must_use]
pub fn limits(sides: &[SideFacts], syncing: &[(String, f64)]) -> Vec<DrbdAlarm> {
    let mut found: Vec<DrbdAlarm> = Vec::new();
    let mut add = |alarm: DrbdAlarm| {
        // Both sides have the same settings mostly: one alarm for a resource, with the first host that shows it.
        if !found.iter().any(|known| known.resource == alarm.resource && known.what == alarm.what) {
            found.push(alarm);
        }
    };
    for side in sides {
        for resource in resources(&side.facts) {
            let seen = Seen { side, resource };
            let rate =
                syncing.iter().find(|(name, _)| *name == resource.replace('/', ".")).map(|(_, rate)| *rate);
            seen.throttled(rate).into_iter().chain(seen.log()).chain(seen.barriers()).for_each(&mut add);
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

struct Seen<'a> {
    side: &'a SideFacts,
    resource: &'a str,
}

impl Seen<'_> {
    fn value(&self, name: &str) -> Option<String> {
        let key = format!("drbd.{}.{name}", self.resource);
        self.side.facts.readings.get(&key).map(ToString::to_string)
    }

    fn alarm(&self, what: DrbdTrouble, sentence: &str, advice: &str) -> DrbdAlarm {
        let resource = self.resource.replace('/', ".");
        DrbdAlarm {
            what,
            sentence: format!("{resource} on {}: {sentence}", self.side.host),
            advice: advice.replace("RESOURCE", &resource),
            resource,
        }
    }

    /// A synchronisation that runs at the limit that somebody set for it.
    fn throttled(&self, rate_kib: Option<f64>) -> Option<DrbdAlarm> {
        let option = if self.value("disk.c-plan-ahead")? == "0" { "resync-rate" } else { "c-max-rate" };
        let text = self.value(&format!("disk.{option}"))?;
        let limit = kib(&text)?;
        let rate = rate_kib.filter(|rate| limit < MAX_RATE_KIB && *rate >= AT_LIMIT * limit)?;
        let sentence = format!(
            "the synchronisation runs at {rate:.0} KiB/s, held back by {option} {text}: it takes as long as that, whatever disks and network could do"
        );
        let advice = format!(
            "raise {option} on both sides (`drbdadm disk-options` after the file was changed); programs get less of the disk while it runs"
        );
        Some(self.alarm(DrbdTrouble::ResyncThrottled, &sentence, &advice))
    }

    fn log(&self) -> Option<DrbdAlarm> {
        let extents: i64 = self.value("disk.al-extents")?.parse().ok()?;
        // One that covers the whole device is never waited for.
        let covers_all = self.value("al_covers_percent").is_some_and(|percent| percent == "100");
        if extents >= AL_EXTENTS || covers_all {
            return None;
        }
        let sentence = format!(
            "its activity log is small: al-extents {extents} covers {} MiB, and a write beyond that waits for a note on the disk first",
            extents * 4
        );
        let advice = "al-extents 6007 in the disk section of both sides, then `drbdadm adjust RESOURCE`; `linerate drbd bench RESOURCE` shows what it costs";
        Some(self.alarm(DrbdTrouble::SmallActivityLog, &sentence, advice))
    }

    fn barriers(&self) -> Option<DrbdAlarm> {
        (self.value("disk.disk-barrier")? == "yes").then(|| {
            self.alarm(
                DrbdTrouble::Barriers,
                "writes are kept in order by barriers, which empty the whole queue of the disk; kernels since 2.6.37 have none, so that nothing is promised for it",
                "disk-barrier no; disk-flushes yes; md-flushes yes; on both sides, then `drbdadm adjust RESOURCE`",
            )
        })
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
    (space.size_bytes > 0 && share < FULL).then(|| DrbdAlarm {
        resource: resource.to_owned(),
        what: DrbdTrouble::Full,
        sentence: format!(
            "the filesystem of {resource} on {} ({folder}) is full: {} of {} MiB are left to programs; the replica is well, and every write fails",
            side.host,
            space.free_bytes >> 20,
            space.size_bytes >> 20
        ),
        advice: "remove files, or grow the devices of both sides, then the resource (`drbdadm resize`) and the filesystem".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::fact::FactValue;

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
        let found = limits(sides, &syncing);
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
        assert_eq!(said(&[small], None), []);
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
