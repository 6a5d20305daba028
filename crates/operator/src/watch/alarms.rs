//! The alarms of a watch as they are kept in the history: opened, measured, over. Events in, records out; one
//! that could not be handed on yet waits.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use linerate_history::AlarmRecord;
use linerate_model::fact_change::FactChange;
use linerate_model::inventory::{Host, HostName, Inventory};
use linerate_model::suspect::Suspect;
use linerate_model::watch::{LossAlarm, WatchAlarm, WatchEvent};
use linerate_report::watch as words;

/// The hosts that an alarm is of: of downloads who downloads and the front end, where it is a host of the
/// inventory. None where it is every path.
#[must_use]
pub fn hosts_of(inventory: &Inventory, alarm: &WatchAlarm) -> Vec<HostName> {
    if let Some(of) = alarm.downloads() {
        let front_end = of.via.as_deref().and_then(|via| front_end(inventory, via));
        let front_end = front_end.filter(|host| of.host.as_ref() != Some(host));
        return of.host.iter().cloned().chain(front_end).collect();
    }
    match alarm.suspect() {
        Some(Suspect::Host(host)) => vec![host.clone()],
        Some(Suspect::Pair(from, to)) => vec![from.clone(), to.clone()],
        Some(Suspect::Group(group)) => {
            let mut hosts: Vec<HostName> =
                inventory.members(group).into_iter().map(|host| host.name.clone()).collect();
            let machine = inventory.group(group).and_then(|group| group.machine.clone());
            hosts.extend(machine.filter(|machine| !hosts.contains(machine)));
            hosts
        }
        _ => Vec::new(),
    }
}

/// The host that a front end is, by its name or its address, with a port or without.
fn front_end(inventory: &Inventory, via: &str) -> Option<HostName> {
    let name = via.rsplit_once(':').map_or(via, |(name, _)| name);
    let address = via.parse().ok().or_else(|| Some(via.parse::<SocketAddr>().ok()?.ip()));
    let is_it = |host: &&Host| {
        let has = |address: IpAddr| host.endpoints.iter().any(|end| end.address == address);
        host.name == via || host.name == name || address.is_some_and(has)
    };
    inventory.hosts.iter().find(is_it).map(|host| host.name.clone())
}

/// All that are open, and those that are over and not handed on yet.
pub struct AlarmBook {
    inventory: Inventory,
    command: String,
    found_by: String,
    watch_ms: u64,
    records: BTreeMap<u64, AlarmRecord>,
    unsaved: BTreeSet<u64>,
}

impl AlarmBook {
    /// Of a watch that begins now; `command`: what a person types next; `found_by`: arguments by which other
    /// commands find the inventory.
    pub fn begin(inventory: &Inventory, command: &str, found_by: &str, now_ms: u64) -> Self {
        Self {
            inventory: inventory.clone(),
            command: command.to_owned(),
            found_by: found_by.to_owned(),
            watch_ms: now_ms,
            records: BTreeMap::new(),
            unsaved: BTreeSet::new(),
        }
    }

    /// Learns of an event; `changed` are the settings that changed before an alarm.
    pub fn event(&mut self, event: &WatchEvent, now_ms: u64, changed: &[FactChange]) {
        match event {
            WatchEvent::Opened { alarm, .. } => {
                changed.clone_into(&mut self.loss(alarm, now_ms).changed);
            }
            WatchEvent::Measured { alarm, decided, .. } => {
                let record = self.loss(alarm, now_ms);
                (record.decided, record.changed) = (Some(decided.clone()), changed.to_owned());
            }
            // It is of more hosts now.
            WatchEvent::Widened { alarm } => changed.clone_into(&mut self.loss(alarm, now_ms).changed),
            WatchEvent::Closed { alarm } => self.loss(alarm, now_ms).ended_ms = Some(now_ms),
            WatchEvent::Slowed { alarm, .. } | WatchEvent::Remeasured { alarm, .. } => {
                changed.clone_into(&mut self.record(WatchAlarm::Slow(alarm.clone()), now_ms).changed);
            }
            WatchEvent::Recovered { alarm } => {
                self.record(WatchAlarm::Slow(alarm.clone()), now_ms).ended_ms = Some(now_ms);
            }
            _ => {}
        }
    }

    /// They are open still: how much they are by now.
    pub fn refresh(&mut self, open: impl Iterator<Item = WatchAlarm>, now_ms: u64) {
        for alarm in open {
            self.record(alarm, now_ms);
        }
    }

    fn loss(&mut self, alarm: &LossAlarm, now_ms: u64) -> &mut AlarmRecord {
        self.record(WatchAlarm::Loss(alarm.clone()), now_ms)
    }

    /// The record of an alarm, in its newest state.
    fn record(&mut self, alarm: WatchAlarm, now_ms: u64) -> &mut AlarmRecord {
        let id = alarm.id();
        self.unsaved.insert(id);
        let command = match &alarm {
            WatchAlarm::Loss(_) => None,
            WatchAlarm::Slow(alarm) => words::slow_command(alarm),
        };
        let hosts = hosts_of(&self.inventory, &alarm);
        let record = self.records.entry(id).or_insert_with(|| AlarmRecord {
            cluster: self.inventory.name.clone(),
            watch_ms: self.watch_ms,
            alarm: alarm.clone(),
            decided: None,
            changed: Vec::new(),
            seen_ms: now_ms,
            ended_ms: None,
            command: String::new(),
            hosts: Vec::new(),
            inventory: self.found_by.clone(),
        });
        record.hosts = hosts;
        record.alarm = alarm;
        record.seen_ms = now_ms;
        // One that has become wider may need another.
        record.command = command.unwrap_or_else(|| self.command.clone());
        record
    }

    /// Hands on what is new, all of it or nothing.
    pub fn hand_on(&mut self, take: impl FnOnce(Vec<AlarmRecord>) -> bool) {
        let new: Vec<AlarmRecord> =
            self.unsaved.iter().filter_map(|id| self.records.get(id).cloned()).collect();
        if !new.is_empty() && take(new) {
            self.unsaved.clear();
            self.records.retain(|_, record| record.ended_ms.is_none());
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::slow::{DownloadSuspect, SlowAlarm, SlowOf, UsualOf};
    use linerate_model::suspect::{Direction, Suspect};
    use linerate_model::watch::{DecidedLoss, LossVerdict};

    use super::*;

    fn alarm(id: u64, lost: u64) -> LossAlarm {
        let suspect = Suspect::Host("arc-2".to_owned());
        let (since_ms, reported_ms) = (1000, 9000);
        LossAlarm {
            id,
            suspect,
            direction: Direction::Rx,
            since_ms,
            reported_ms,
            lost,
            sent: 400,
            partners: 3,
        }
    }

    fn three() -> Inventory {
        Inventory { name: "three".to_owned(), ..Inventory::default() }
    }

    #[test]
    fn a_front_end_is_a_host_by_its_name_or_address_and_a_group_has_its_machine() {
        use linerate_model::inventory::{Endpoint, Group, Layer, TransportSpec};
        let host = |number: u8| Host {
            name: format!("arc-{number}"),
            transport: TransportSpec::Local,
            groups: vec!["on-vs-4".to_owned()],
            endpoints: vec![Endpoint {
                address: [192, 0, 2, number].into(),
                layer: Layer::Underlay,
                netns: None,
                link_bps: None,
            }],
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        };
        let machine = Some("vs-4".to_owned());
        let group = Group { name: "on-vs-4".to_owned(), machine, ..Group::default() };
        let inventory = Inventory { groups: vec![group], hosts: vec![host(1), host(2)], ..three() };
        let of = |via: &str| {
            let of = DownloadSuspect { host: Some("arc-2".into()), url: None, via: Some(via.into()) };
            hosts_of(&inventory, &WatchAlarm::Slow(slow(SlowOf::Download(of))))
        };
        for via in ["arc-1", "arc-1:8080", "192.0.2.1", "192.0.2.1:8080"] {
            assert_eq!(of(via), ["arc-2", "arc-1"], "{via}");
        }
        assert_eq!(of("proxy.example"), ["arc-2"]);
        assert_eq!(of("arc-2"), ["arc-2"]);
        let suspect = SlowOf::Rtt(Suspect::Group("on-vs-4".into()));
        assert_eq!(hosts_of(&inventory, &WatchAlarm::Slow(slow(suspect))), ["arc-1", "arc-2", "vs-4"]);
    }

    fn slow(of: SlowOf) -> SlowAlarm {
        SlowAlarm {
            id: 3,
            of,
            since_ms: 1000,
            reported_ms: 2000,
            usual: 800e6,
            now: 256e3,
            usual_of: UsualOf::Peers,
            seen_with: 1,
            failure: None,
            decided: None,
        }
    }

    fn lost(record: &AlarmRecord) -> u64 {
        let WatchAlarm::Loss(alarm) = &record.alarm else { panic!("{record:?}") };
        alarm.lost
    }

    #[test]
    fn what_is_slow_is_kept_with_its_own_command_until_it_is_as_usual() {
        let mut book = AlarmBook::begin(&three(), "linerate survey -i c.toml", "-i c.toml", 500);
        let url = Some("http://a/b c".to_owned());
        let mut slow = slow(SlowOf::Download(DownloadSuspect { url, ..DownloadSuspect::default() }));
        let mut taken = Vec::new();
        let mut handed_on = |book: &mut AlarmBook| {
            book.hand_on(|records| {
                taken = records;
                true
            });
            std::mem::take(&mut taken)
        };
        book.event(&WatchEvent::Slowed { alarm: slow.clone(), changes: Vec::new() }, 2000, &[]);
        book.event(&WatchEvent::Opened { alarm: alarm(4, 1), changes: Vec::new() }, 2000, &[]);
        let kept = handed_on(&mut book);
        assert_eq!((kept.len(), &kept[0].alarm), (2, &WatchAlarm::Slow(slow.clone())));
        assert_eq!(kept[0].command, "linerate measure http 'http://a/b c'");
        // Of more than this URL.
        slow.of = SlowOf::Download(DownloadSuspect::default());
        book.event(&WatchEvent::Slowed { alarm: slow.clone(), changes: Vec::new() }, 3000, &[]);
        book.refresh([WatchAlarm::Slow(slow.clone())].into_iter(), 60_000);
        let kept = handed_on(&mut book);
        assert_eq!((kept.len(), kept[0].seen_ms, kept[0].ended_ms), (1, 60_000, None));
        assert_eq!(kept[0].command, "linerate survey -i c.toml");
        book.event(&WatchEvent::Recovered { alarm: slow }, 90_000, &[]);
        assert_eq!(handed_on(&mut book)[0].ended_ms, Some(90_000));
        assert_eq!(book.records.keys().collect::<Vec<_>>(), [&4]);
    }

    #[test]
    fn an_alarm_is_one_record_from_its_begin_to_its_end_and_waits_where_it_is_not_taken() {
        let mut book = AlarmBook::begin(&three(), "linerate survey -i c.toml", "-i c.toml", 500);
        book.event(&WatchEvent::Opened { alarm: alarm(1, 4), changes: Vec::new() }, 9000, &[]);
        book.hand_on(|_| false);
        let decided = DecidedLoss {
            verdict: LossVerdict::Confirmed,
            flows: Vec::new(),
            controls: Vec::new(),
            reason: String::new(),
        };
        let measured =
            WatchEvent::Measured { alarm: alarm(1, 5), changes: Vec::new(), decided: decided.clone() };
        book.event(&measured, 12_000, &[]);
        book.event(&WatchEvent::Opened { alarm: alarm(2, 9), changes: Vec::new() }, 12_000, &[]);
        let mut taken = Vec::new();
        book.hand_on(|records| {
            taken = records;
            true
        });
        assert_eq!(taken.len(), 2);
        assert_eq!((lost(&taken[0]), taken[0].decided.as_ref()), (5, Some(&decided)));
        assert_eq!((taken[0].watch_ms, taken[0].seen_ms, taken[0].ended_ms), (500, 12_000, None));
        book.event(&WatchEvent::Closed { alarm: alarm(1, 7) }, 70_000, &[]);
        book.refresh([WatchAlarm::Loss(alarm(2, 11))].into_iter(), 72_000);
        book.hand_on(|records| {
            taken = records;
            true
        });
        assert_eq!(
            (lost(&taken[0]), taken[0].ended_ms, &taken[0].decided),
            (7, Some(70_000), &Some(decided))
        );
        assert_eq!((lost(&taken[1]), taken[1].seen_ms), (11, 72_000));
        assert_eq!(book.records.len(), 1, "what is over and handed on is forgotten");
        book.hand_on(|_| panic!("nothing is new"));
    }
}
