//! The steps of a watch, and the alarms that are not over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linerate_model::watch::LossAlarm;

use crate::rules::{CLEAN_EXPECTED, TestRules};

/// Numbers of the alarms of a watch, from 1: each of its reasoners takes the next.
#[derive(Debug, Clone, Default)]
pub struct AlarmIds(Arc<AtomicU64>);

impl AlarmIds {
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum AlarmStep {
    /// The host and its partners send more probes for [`crate::rules::FASTER_MS`].
    Faster(usize),
    /// Report of it.
    Opened(LossAlarm),
    /// An alarm that was reported is larger than it was reported: both directions, or a whole group.
    Widened(LossAlarm),
    /// It is over.
    Closed(LossAlarm),
}

/// What loses, by indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suspected {
    Host(usize),
    Pair(usize, usize),
    Group(usize),
    All,
}

/// An alarm that is not over.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) suspected: Suspected,
    pub(crate) alarm: LossAlarm,
    last_loss_ms: u64,
    clean: u64,
}

impl Open {
    pub(crate) fn new(suspected: Suspected, alarm: LossAlarm) -> Self {
        let last_loss_ms = alarm.reported_ms;
        Self { suspected, alarm, last_loss_ms, clean: 0 }
    }

    pub(crate) fn learn(&mut self, at_ms: u64, sent: u64, lost: u64) {
        self.clean = self.clean.saturating_add(sent);
        if lost == 0 {
            return;
        }
        // What arrives after the last loss is not part of it: the alarm would fade and never end.
        self.alarm.sent = self.alarm.sent.saturating_add(std::mem::take(&mut self.clean));
        self.alarm.lost = self.alarm.lost.saturating_add(lost);
        self.last_loss_ms = at_ms;
    }

    /// Whether so much came through that what was lost would be lost again by now.
    pub(crate) fn is_over(&self, at_ms: u64, rules: &TestRules) -> bool {
        at_ms >= self.last_loss_ms + rules.clean_ms
            && self.clean as f64 * self.alarm.share() >= CLEAN_EXPECTED
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::suspect::{Direction, Suspect};

    use super::*;
    use crate::rules::{CLEAN_MS, LOSS};

    #[test]
    fn an_alarm_of_few_losses_ends_when_as_many_probes_as_make_seven_arrived() {
        let alarm = LossAlarm {
            id: 1,
            suspect: Suspect::All,
            direction: Direction::Both,
            since_ms: 0,
            reported_ms: 0,
            lost: 3,
            sent: 300,
            partners: 2,
        };
        let mut open = Open::new(Suspected::All, alarm);
        open.learn(CLEAN_MS, 690, 0);
        assert!(!open.is_over(CLEAN_MS, &LOSS));
        open.learn(CLEAN_MS, 10, 0);
        assert!(open.is_over(CLEAN_MS, &LOSS) && !open.is_over(CLEAN_MS - 1, &LOSS));
        assert!((open.alarm.share() - 0.01).abs() < 1e-9);
        open.learn(CLEAN_MS, 0, 1);
        assert_eq!((open.alarm.sent, open.alarm.lost), (1000, 4));
        assert!(!open.is_over(2 * CLEAN_MS, &LOSS));
    }
}
