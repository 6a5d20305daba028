//! A recorded story: hosts, what happens to them when, and what a person must be able to read afterwards. The
//! text of a file in, the checked story out; what is wrong with it is named with its line.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use linerate_fleet::simulated::{self, PathCondition, SimulatedHost};
use linerate_model::download::DownloadSpec;
use linerate_model::fact::{FactKey, FactValue};
use linerate_model::inventory::{Endpoint, Group, Host, HostName, Inventory, Layer, SshSpec, TransportSpec};
use linerate_model::notice::Writer;
use linerate_model::units;
use serde::Deserialize;
use toml::Spanned;

use crate::cli::quantity;

/// The day of all stories.
const DAY: (i64, i64, i64) = (2026, 3, 2);
/// Ends of paths: all hosts that are not at the other end.
const OTHERS: &str = "others";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStory {
    title: String,
    /// What it is made from.
    source: Spanned<String>,
    starts: Spanned<String>,
    lasts: Spanned<String>,
    group: Vec<RawGroup>,
    #[serde(default)]
    settings: BTreeMap<FactKey, FactValue>,
    #[serde(default)]
    path: Vec<RawPath>,
    #[serde(default)]
    setting: Vec<RawSetting>,
    #[serde(default)]
    reboot: Vec<RawReboot>,
    #[serde(default)]
    session: Vec<RawSession>,
    #[serde(default)]
    front_end: Vec<RawFrontEnd>,
    http: Option<RawHttp>,
    answer: Option<RawAnswer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGroup {
    name: String,
    kind: String,
    hosts: Vec<Spanned<String>>,
    machine: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPath {
    at: Spanned<String>,
    #[serde(rename = "for")]
    time: Option<Spanned<String>>,
    from: Spanned<String>,
    to: Spanned<String>,
    loss_percent: Option<f64>,
    delay_us: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSetting {
    at: Spanned<String>,
    host: Spanned<String>,
    key: FactKey,
    to: FactValue,
    by: Option<String>,
    #[serde(default)]
    is_cause: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReboot {
    at: Spanned<String>,
    #[serde(rename = "for")]
    time: Spanned<String>,
    host: Spanned<String>,
    #[serde(default)]
    settings: BTreeMap<FactKey, FactValue>,
    #[serde(default)]
    is_cause: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSession {
    at: Spanned<String>,
    #[serde(rename = "for")]
    time: Spanned<String>,
    host: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFrontEnd {
    at: Spanned<String>,
    via: Spanned<String>,
    bytes_per_s: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHttp {
    urls: Vec<String>,
    via: Vec<Spanned<String>>,
    from: Vec<Spanned<String>>,
    every: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAnswer {
    who: Vec<String>,
    direction: String,
    since: Spanned<String>,
    within: Spanned<String>,
    reported_within: Spanned<String>,
    command: String,
}

/// What happens.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Happening {
    /// A path is so for a time; without one to the end.
    Path(PathCondition, Option<Duration>),
    Setting {
        host: HostName,
        key: FactKey,
        to: FactValue,
        writer: Option<Writer>,
    },
    Reboot {
        host: HostName,
        time: Duration,
        settings: BTreeMap<FactKey, FactValue>,
    },
    Session {
        host: HostName,
        time: Duration,
    },
    /// A front end sends so many bit/s.
    FrontEnd {
        via: String,
        bps: f64,
    },
}

/// A setting that is the cause, as it must be shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cause {
    pub(super) host: HostName,
    pub(super) key: FactKey,
    pub(super) from: Option<FactValue>,
    pub(super) to: FactValue,
}

/// What a person must be able to read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expected {
    /// Names of the suspect, all of them.
    pub(super) who: Vec<String>,
    /// Part of the words for the direction.
    pub(super) direction: String,
    /// From the start, with what it may be off.
    pub(super) since: (Duration, Duration),
    /// Longest time from then to the alarm.
    pub(super) reported_within: Duration,
    /// A command that is to be typed.
    pub(super) command: String,
    /// Settings that caused it; none: nothing that a host shows did.
    pub(super) causes: Vec<Cause>,
}

/// A story.
#[derive(Debug, Clone)]
pub(super) struct Story {
    pub(super) title: String,
    pub(super) start_ms: u64,
    pub(super) lasts: Duration,
    pub(super) inventory: Inventory,
    pub(super) hosts: Vec<SimulatedHost>,
    /// In time order, from the start.
    pub(super) happens: Vec<(Duration, Happening)>,
    /// `None`: nothing may be an alarm.
    pub(super) expected: Option<Expected>,
    /// Settings that change and cause nothing.
    pub(super) harmless: Vec<(HostName, FactKey)>,
}

/// What is wrong with a file, at which byte.
type Flaw = (usize, String);

impl Story {
    /// Reads the text of a file.
    pub(super) fn parse(file: &str, text: &str) -> anyhow::Result<Self> {
        let raw = toml::from_str::<RawStory>(text).map_err(|error| {
            let what = error.message().lines().next().unwrap_or("not TOML").to_owned();
            (error.span().map_or(0, |span| span.start), what)
        });
        raw.and_then(|raw| Reader::new(&raw)?.story(raw)).map_err(|(at, what)| {
            let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
            anyhow::anyhow!("{file}:{line}: {what}")
        })
    }
}

/// Reads one file: knows its hosts and how long it lasts.
struct Reader {
    lasts: Duration,
    hosts: Vec<HostName>,
    groups: BTreeMap<String, Vec<HostName>>,
}

fn flaw(at: &Spanned<String>, what: &str) -> Flaw {
    (at.span().start, format!("`{}` {what}", at.get_ref()))
}

fn span(text: &Spanned<String>) -> Result<Duration, Flaw> {
    quantity::duration(text.get_ref()).map_err(|_| flaw(text, "is no time, such as 90s or 12m"))
}

impl Reader {
    fn new(raw: &RawStory) -> Result<Self, Flaw> {
        let mut seen = BTreeSet::new();
        for host in raw.group.iter().flat_map(|group| &group.hosts) {
            if !seen.insert(host.get_ref()) {
                return Err(flaw(host, "is in two groups, or twice in one"));
            }
        }
        let members = |group: &RawGroup| group.hosts.iter().map(|host| host.get_ref().clone()).collect();
        let groups = raw.group.iter().map(|group| (group.name.clone(), members(group))).collect();
        let hosts = raw.group.iter().flat_map(members_in_order).collect();
        Ok(Self { lasts: span(&raw.lasts)?, hosts, groups })
    }

    fn host(&self, name: &Spanned<String>) -> Result<HostName, Flaw> {
        let known = self.hosts.contains(name.get_ref()).then(|| name.get_ref().clone());
        known.ok_or_else(|| flaw(name, "is no host of a group"))
    }

    /// A moment of the story.
    fn at(&self, text: &Spanned<String>) -> Result<Duration, Flaw> {
        let at = span(text)?;
        if at >= self.lasts { Err(flaw(text, "is not before the end of the story")) } else { Ok(at) }
    }

    /// A host, a group, or nothing for the others.
    fn end(&self, text: &Spanned<String>) -> Result<Option<Vec<HostName>>, Flaw> {
        match text.get_ref().strip_prefix("group ") {
            _ if text.get_ref() == OTHERS => Ok(None),
            Some(group) => match self.groups.get(group) {
                Some(members) => Ok(Some(members.clone())),
                None => Err(flaw(text, "is no group")),
            },
            None => self.host(text).map(|host| Some(vec![host])),
        }
    }

    fn path(&self, raw: &RawPath) -> Result<Happening, Flaw> {
        let (from, to) = (self.end(&raw.from)?, self.end(&raw.to)?);
        let others = |of: &[HostName]| self.hosts.iter().filter(|host| !of.contains(host)).cloned().collect();
        let (from, to) = match (from, to) {
            (Some(from), Some(to)) => (from, to),
            (Some(from), None) => (from.clone(), others(&from)),
            (None, Some(to)) => (others(&to), to),
            (None, None) => return Err(flaw(&raw.to, "has no other end that it is beside")),
        };
        let loss = raw.loss_percent.unwrap_or(0.0) / 100.0;
        if !(0.0..=1.0).contains(&loss) || (raw.loss_percent, raw.delay_us) == (None, None) {
            return Err(flaw(&raw.at, "needs loss_percent from 0 to 100, or delay_us"));
        }
        let condition = PathCondition { from, to, loss, delay_us: raw.delay_us.unwrap_or(0) };
        Ok(Happening::Path(condition, raw.time.as_ref().map(span).transpose()?))
    }

    fn happens(&self, raw: &RawStory) -> Result<Vec<(Duration, Happening)>, Flaw> {
        let mut all = Vec::new();
        for path in &raw.path {
            all.push((self.at(&path.at)?, self.path(path)?));
        }
        for one in &raw.setting {
            let writer = one.by.clone().map(|name| Writer {
                pid: 4711,
                unit: name.ends_with(".service").then(|| name.clone()),
                name: Some(name),
                is_probable: false,
            });
            let (host, key, to) = (self.host(&one.host)?, one.key.clone(), one.to.clone());
            all.push((self.at(&one.at)?, Happening::Setting { host, key, to, writer }));
        }
        for one in &raw.reboot {
            let (host, settings) = (self.host(&one.host)?, one.settings.clone());
            all.push((self.at(&one.at)?, Happening::Reboot { host, time: span(&one.time)?, settings }));
        }
        for one in &raw.session {
            let (host, time) = (self.host(&one.host)?, span(&one.time)?);
            all.push((self.at(&one.at)?, Happening::Session { host, time }));
        }
        for one in &raw.front_end {
            let (via, bps) = (one.via.get_ref().clone(), one.bytes_per_s * 8.0);
            let is_known =
                raw.http.as_ref().is_some_and(|http| http.via.iter().any(|of| *of.get_ref() == via));
            if !is_known {
                return Err(flaw(&one.via, "is no front end of [http]"));
            }
            all.push((self.at(&one.at)?, Happening::FrontEnd { via, bps }));
        }
        all.sort_by_key(|(at, _)| *at);
        Ok(all)
    }

    fn inventory(&self, raw: &RawStory) -> Result<Inventory, Flaw> {
        let group = |group: &RawGroup| {
            let machine = group.machine.as_ref().map(|name| self.host(name)).transpose()?;
            Ok(Group { name: group.name.clone(), kind: group.kind.clone(), machine, ..Group::default() })
        };
        let host = |(number, name): (usize, &HostName)| Host {
            name: name.clone(),
            transport: TransportSpec::Ssh(SshSpec { host: name.clone(), user: None, port: None, sudo: true }),
            groups: self.groups_of(name),
            endpoints: vec![Endpoint {
                address: simulated::address(number),
                layer: Layer::Underlay,
                netns: None,
                link_bps: None,
            }],
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        };
        Ok(Inventory {
            name: "recorded".to_owned(),
            groups: raw.group.iter().map(group).collect::<Result<_, Flaw>>()?,
            hosts: self.hosts.iter().enumerate().map(host).collect(),
            downloads: raw.http.iter().map(|http| self.downloads(http)).collect::<Result<_, _>>()?,
            ..Inventory::default()
        })
    }

    fn groups_of(&self, host: &HostName) -> Vec<String> {
        let own = self.groups.iter().filter(|(_, members)| members.contains(host));
        own.map(|(name, _)| name.clone()).collect()
    }

    fn downloads(&self, raw: &RawHttp) -> Result<DownloadSpec, Flaw> {
        Ok(DownloadSpec {
            urls: raw.urls.clone(),
            via: raw.via.iter().map(|via| via.get_ref().clone()).collect(),
            from: raw.from.iter().map(|host| self.host(host)).collect::<Result<_, _>>()?,
            every_s: span(&raw.every)?.as_secs() as u32,
            bytes_max: 10_000_000,
            timeout_ms: 10_000,
        })
    }

    fn expected(&self, raw: &RawStory, causes: Vec<Cause>) -> Result<Option<Expected>, Flaw> {
        let Some(answer) = &raw.answer else { return Ok(None) };
        Ok(Some(Expected {
            who: answer.who.clone(),
            direction: answer.direction.clone(),
            since: (self.at(&answer.since)?, span(&answer.within)?),
            reported_within: span(&answer.reported_within)?,
            command: answer.command.clone(),
            causes,
        }))
    }

    fn story(&self, raw: RawStory) -> Result<Story, Flaw> {
        let happens = self.happens(&raw)?;
        let start_ms = start(&raw.starts)?;
        if raw.source.get_ref().trim().is_empty() {
            return Err(flaw(&raw.source, "has no source"));
        }
        let simulated =
            |name: &HostName| SimulatedHost { name: name.clone(), settings: raw.settings.clone() };
        let changed = raw.setting.iter().map(|one| {
            let to = BTreeMap::from([(one.key.clone(), one.to.clone())]);
            (one.host.get_ref(), to, one.is_cause)
        });
        let lost = raw.reboot.iter().map(|one| (one.host.get_ref(), one.settings.clone(), one.is_cause));
        let (mut causes, mut harmless) = (Vec::new(), Vec::new());
        for (host, settings, is_cause) in changed.chain(lost) {
            for (key, to) in settings {
                let (host, from) = (host.clone(), raw.settings.get(&key).cloned());
                if is_cause {
                    causes.push(Cause { host, key, from, to });
                } else {
                    harmless.push((host, key));
                }
            }
        }
        Ok(Story {
            start_ms,
            lasts: self.lasts,
            inventory: self.inventory(&raw)?,
            hosts: self.hosts.iter().map(simulated).collect(),
            happens,
            expected: self.expected(&raw, causes)?,
            harmless,
            title: raw.title,
        })
    }
}

fn members_in_order(group: &RawGroup) -> Vec<HostName> {
    group.hosts.iter().map(|host| host.get_ref().clone()).collect()
}

/// A time of the day of all stories, Unix milliseconds.
fn start(text: &Spanned<String>) -> Result<u64, Flaw> {
    let no_time = || flaw(text, "is no time of day, such as 06:15");
    let (hour, minute) = text.get_ref().split_once(':').ok_or_else(no_time)?;
    let number = |text: &str, below: u64| text.parse::<u64>().ok().filter(|number| *number < below);
    let (hour, minute) = number(hour, 24).zip(number(minute, 60)).ok_or_else(no_time)?;
    let (year, month, day) = DAY;
    let midnight_ms = units::midnight_ms(year, month, day).ok_or_else(no_time)?;
    Ok(midnight_ms + (hour * 60 + minute) * 60_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORY: &str = r#"title = "t"
source = "s"
starts = "06:15"
lasts = "10m"

[[group]]
name = "r"
kind = "rack"
hosts = ["a", "b", "c"]

[[path]]
at = "2m"
from = "others"
to = "a"
loss_percent = 1.0
"#;

    fn wrong(old: &str, new: &str) -> String {
        assert!(STORY.contains(old), "{old}");
        Story::parse("x.toml", &STORY.replace(old, new)).unwrap_err().to_string()
    }

    #[test]
    fn a_path_from_others_to_a_host_is_of_all_but_that_host() {
        let story = Story::parse("x.toml", STORY).unwrap();
        let Happening::Path(path, None) = &story.happens[0].1 else { panic!("{:?}", story.happens) };
        assert_eq!((path.from.join(" "), path.to.join(" ")), ("b c".to_owned(), "a".to_owned()));
        assert_eq!(units::date(story.start_ms), "2026-03-02 06:15:00 UTC");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named_with_its_line() {
        assert_eq!(wrong("\"2m\"", "\"11m\""), "x.toml:12: `11m` is not before the end of the story");
        assert_eq!(wrong("\"2m\"", "\"soon\""), "x.toml:12: `soon` is no time, such as 90s or 12m");
        assert_eq!(wrong("to = \"a\"", "to = \"d\""), "x.toml:14: `d` is no host of a group");
        assert_eq!(wrong("to = \"a\"", "to = \"group q\""), "x.toml:14: `group q` is no group");
        assert_eq!(wrong("\"c\"]", "\"a\"]"), "x.toml:9: `a` is in two groups, or twice in one");
        assert_eq!(wrong("06:15", "6"), "x.toml:3: `6` is no time of day, such as 06:15");
        assert!(wrong("loss_percent = 1.0", "loss = 1").starts_with("x.toml:15: unknown field `loss`"));
        assert!(wrong("loss_percent = 1.0\n", "").starts_with("x.toml:12: `2m` needs loss_percent"));
        assert!(wrong("lasts = \"10m\"\n", "").starts_with("x.toml:1: missing field `lasts`"));
    }
}
