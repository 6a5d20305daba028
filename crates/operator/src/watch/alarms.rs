//! The alarms of a watch as they are kept in the history: opened, measured, over. Events in, records out; one
//! that could not be handed on yet waits.

use std::collections::{BTreeMap, BTreeSet};

use linerate_history::AlarmRecord;
use linerate_model::fact_change::FactChange;
use linerate_model::watch::{LossAlarm, WatchEvent};

/// All that are open, and those that are over and not handed on yet.
pub struct AlarmBook {
    cluster: String,
    command: String,
    watch_ms: u64,
    records: BTreeMap<u64, AlarmRecord>,
    unsaved: BTreeSet<u64>,
}

impl AlarmBook {
    /// Of a watch that begins now; `command`: what a person types next.
    pub fn begin(cluster: &str, command: &str, now_ms: u64) -> Self {
        Self {
            cluster: cluster.to_owned(),
            command: command.to_owned(),
            watch_ms: now_ms,
            records: BTreeMap::new(),
            unsaved: BTreeSet::new(),
        }
    }

    /// Learns of an event; `changed` are the settings that changed before an alarm.
    pub fn event(&mut self, event: &WatchEvent, now_ms: u64, changed: &[FactChange]) {
        match event {
            WatchEvent::Opened { alarm, .. } => {
                changed.clone_into(&mut self.record(alarm, now_ms).changed);
            }
            WatchEvent::Measured { alarm, decided, .. } => {
                let record = self.record(alarm, now_ms);
                (record.decided, record.changed) = (Some(decided.clone()), changed.to_owned());
            }
            WatchEvent::Widened { alarm } => {
                self.record(alarm, now_ms);
            }
            WatchEvent::Closed { alarm } => self.record(alarm, now_ms).ended_ms = Some(now_ms),
            _ => {}
        }
    }

    /// They are open still: how much they lose by now.
    pub fn refresh<'a>(&mut self, open: impl Iterator<Item = &'a LossAlarm>, now_ms: u64) {
        for alarm in open {
            self.record(alarm, now_ms);
        }
    }

    /// The record of an alarm, in its newest state.
    fn record(&mut self, alarm: &LossAlarm, now_ms: u64) -> &mut AlarmRecord {
        self.unsaved.insert(alarm.id);
        let record = self.records.entry(alarm.id).or_insert_with(|| AlarmRecord {
            cluster: self.cluster.clone(),
            watch_ms: self.watch_ms,
            alarm: alarm.clone(),
            decided: None,
            changed: Vec::new(),
            seen_ms: now_ms,
            ended_ms: None,
            command: self.command.clone(),
        });
        record.alarm = alarm.clone();
        record.seen_ms = now_ms;
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

    #[test]
    fn an_alarm_is_one_record_from_its_begin_to_its_end_and_waits_where_it_is_not_taken() {
        let mut book = AlarmBook::begin("three", "linerate survey -i c.toml", 500);
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
        assert_eq!((taken[0].alarm.lost, taken[0].decided.as_ref()), (5, Some(&decided)));
        assert_eq!((taken[0].watch_ms, taken[0].seen_ms, taken[0].ended_ms), (500, 12_000, None));
        book.event(&WatchEvent::Closed { alarm: alarm(1, 7) }, 70_000, &[]);
        book.refresh([alarm(2, 11)].iter(), 72_000);
        book.hand_on(|records| {
            taken = records;
            true
        });
        assert_eq!(
            (taken[0].alarm.lost, taken[0].ended_ms, &taken[0].decided),
            (7, Some(70_000), &Some(decided))
        );
        assert_eq!((taken[1].alarm.lost, taken[1].seen_ms), (11, 72_000));
        assert_eq!(book.records.len(), 1, "what is over and handed on is forgotten");
        book.hand_on(|_| panic!("nothing is new"));
    }
}
